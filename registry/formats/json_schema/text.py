"""JSON text: strict reading, writing as in Confluent's registry, comparison, labels, and shortening for reports."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

from registry.formats.json_pointer import (
    MAX_DEPTH,
    SchemaProblem,
    check_text,
    decode,
    invalid,
    join,
    object_of,
    refuse_duplicate,
)

MAX_NODES: Final = 200_000
MAX_DIGITS: Final = 400
_MAX_EXPONENT: Final = 308
_MAX_DOUBLE: Final = Decimal("1.7976931348623157E+308")

_CONTROL: Final = re.compile(r"\\u00[01][0-9a-f]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def read_json(text: str) -> Any:
    """Return the JSON value of a schema text of at most MAX_TEXT_LENGTH characters; raises InvalidSchema."""
    check_text(text, "a JSON Schema")
    value = decode(text, _DECODER, lambda: refuse_duplicate(text, ", because readers differ in which one they use"))
    try:
        _check_tree(value)
    except SchemaProblem as problem:
        raise invalid(problem, text) from None
    return value


def compact(value: Any) -> str:
    """Return JSON without whitespace, with keys in their order, as Jackson writes a tree that it has read."""
    return _written(value, is_sorted=False)


def normalized(value: Any) -> str:
    """Like `compact`, with the keys of every object in Java's string order (UTF-16 code units)."""
    return _written(value, is_sorted=True)


def spaced(value: Any) -> str:
    """Return JSON on one line as people write it, with a space after each comma and colon."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_string(key)}: {spaced(item)}" for key, item in value.items()) + "}"
    return f"[{', '.join(spaced(item) for item in value)}]" if isinstance(value, list) else _scalar(value)


def _check_tree(value: Any) -> None:
    """Raise SchemaProblem if a tree is too deep or too large, or has an invalid string or number."""
    stack: list[tuple[Any, str, int]] = [(value, "", 1)]
    count = 0
    while stack:
        item, pointer, depth = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise SchemaProblem(f"the JSON has more than {MAX_NODES:,} values: split the schema", "")
        if depth > MAX_DEPTH:
            raise SchemaProblem(f"the JSON is nested too deeply: {MAX_DEPTH} levels are allowed", pointer)
        if isinstance(item, str):
            _check_text(item, pointer)
        elif isinstance(item, (Decimal, int)):
            _check_number(item, pointer)
        elif isinstance(item, dict):
            for key, child in item.items():
                _check_text(key, pointer)
                stack.append((child, join(pointer, key), depth + 1))
        elif isinstance(item, list):
            stack.extend((child, f"{pointer}/{index}", depth + 1) for index, child in enumerate(item))


def _check_text(text: str, pointer: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise SchemaProblem(
            "a string contains half of a surrogate pair, which is not a character: write the whole character", pointer
        )


def _check_number(number: Decimal | int, pointer: str) -> None:
    if -1_000_000 < number < 1_000_000 and not isinstance(number, Decimal):
        return
    size = Decimal(number).adjusted() if number else 0
    if abs(size) > _MAX_EXPONENT or abs(Decimal(number)) > _MAX_DOUBLE:
        raise SchemaProblem(
            f"the number of size 1e{size} doesn't fit a double: use a number within ±1.79e{_MAX_EXPONENT}", pointer
        )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON: write a number, or remove the keyword")


def _decimal(digits: str) -> Decimal:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"the number {digits[:40]}… has more than {MAX_DIGITS} digits")
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise ValueError(f"the number {digits[:40]} can't be represented") from None
    return number if number else abs(number)


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"the number {digits[:40]}… has more than {MAX_DIGITS} digits")
    return int(digits)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=object_of, parse_constant=_refuse_constant, parse_float=_decimal, parse_int=_integer
)


def utf16_order(text: str) -> bytes:
    """Return the sort key for Java's string order."""
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    if "\\u00" not in written:
        return written
    return _CONTROL.sub(lambda match: match.group()[:2] + match.group()[2:].upper(), written)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value)


def _written(value: Any, *, is_sorted: bool) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=utf16_order) if is_sorted else value
        inner = ",".join(f"{_string(key)}:{_written(value[key], is_sorted=is_sorted)}" for key in keys)
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(_written(item, is_sorted=is_sorted) for item in value)}]"
    return _scalar(value)


class Interning:
    """A mapping of JSON values to numbers, equal for equal values; containers must stay alive and unchanged."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._known: dict[int, int] = {}

    def number(self, value: Any) -> int:
        """Return the number of a JSON value, at most a few hundred levels deep."""
        if not isinstance(value, (dict, list)):
            return self._new(_scalar_key(value))
        identifier = self._known.get(id(value))
        if identifier is None:
            if isinstance(value, dict):
                items = frozenset((key, self.number(item)) for key, item in value.items())
                identifier = self._new(("object", items))
            else:
                identifier = self._new(("array", tuple(self.number(item) for item in value)))
            self._known[id(value)] = identifier
        return identifier

    def _new(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _scalar_key(value: Any) -> tuple[str, Any]:
    """Return a key that distinguishes true from 1 but not 1 from 1.0, as in JSON."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, (int, Decimal, float)):
        return ("number", value)
    return ("string", value) if isinstance(value, str) else ("null", None)


def json_equal(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal: numbers by value, objects in any order, true differs from 1."""
    if first is second:
        return True
    interning = Interning()
    return interning.number(first) == interning.number(second)


def type_words(schema: Any, depth: int = 0) -> str:
    """Return the type of a schema: `string (date)`, `array of integer`, `string or null`, `Address` for a reference."""
    if schema is True or schema == {}:
        return "any"
    if not isinstance(schema, dict):
        return "nothing"
    if isinstance(schema.get("$ref"), str):
        return _short(schema["$ref"].rstrip("/").rpartition("/")[2] or schema["$ref"])
    if "const" in schema:
        return _short(f"constant {compact(schema['const'])}")
    named = schema.get("type")
    if isinstance(named, list):
        return " or ".join(str(name) for name in named)
    if "enum" in schema and isinstance(schema["enum"], list):
        return f"{named or 'value'} of {len(schema['enum'])}"
    if named == "array" and isinstance(schema.get("items"), (dict, bool)) and depth < 4:
        return f"array of {type_words(schema['items'], depth + 1)}"
    if isinstance(named, str):
        return f"{named} ({schema['format']})" if isinstance(schema.get("format"), str) else named
    return _combined(schema, depth)


def _combined(schema: dict[str, Any], depth: int) -> str:
    for keyword, glue in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        members = schema.get(keyword)
        if isinstance(members, list) and members and depth < 3:
            shown = [type_words(member, depth + 1) for member in members[:4]]
            return glue.join(shown) + (" …" if len(members) > 4 else "")
    if "properties" in schema or "additionalProperties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "any"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"


def to_plain(value: Any) -> Any:
    """Return the value with Decimals as int or float, which any JSON writer accepts; containers are new."""
    if isinstance(value, Decimal):
        return to_number(value)
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def to_number(number: Decimal) -> int | float:
    """Return a Decimal as a float, or as an int if it is an integer that a float can't represent."""
    as_float = float(number)
    if number == number.to_integral_value() and Decimal(as_float) != number:
        return int(number)
    return as_float
