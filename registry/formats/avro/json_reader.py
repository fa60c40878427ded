"""Strict reading of a schema's JSON (no duplicate keys, no NaN): names, docs, aliases, properties, logical types."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from registry.formats.avro.model import AvroType, Fixed, LogicalType
from registry.formats.json_pointer import (
    MAX_DEPTH,
    SchemaProblem,
    check_text,
    decode,
    object_of,
    refuse_duplicate,
    without_comments,
)


def read_json(text: str) -> Any:
    """Return the JSON value of a text of at most MAX_TEXT_LENGTH characters; raises InvalidSchema with a position."""
    check_text(text, "an Avro schema")
    return decode(without_comments(text), _DECODER, lambda: refuse_duplicate(text))


def check_depth(value: Any, pointer: str) -> None:
    """Raise SchemaProblem if a JSON value is nested deeper than MAX_DEPTH; without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise SchemaProblem(f"the JSON is nested too deeply: {MAX_DEPTH} levels are allowed", pointer)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not JSON; write it as the string "{name}" in the default of a float or double')


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:
        raise ValueError(f"the number {digits[:40]} is too large for a double")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=object_of, parse_constant=_refuse_constant, parse_float=_finite)


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def qualified(name: str, namespace: str, pointer: str) -> str:
    """Return the full name; a dotted name has its own namespace, and one with a leading dot has none."""
    full_name = name if "." in name or not namespace else f"{namespace}.{name}"
    if full_name.startswith("."):
        full_name = full_name[1:]
    for part in full_name.split("."):
        check_name(part, "name" if part == full_name else f'part of the name "{full_name[:200]}"', pointer)
    return full_name


def check_name(name: str, what: str, pointer: str) -> None:
    """Raise SchemaProblem if a name isn't valid in Avro: ASCII letters, digits and _, no leading digit."""
    if _NAME.fullmatch(name) is None:
        raise SchemaProblem(
            f'"{name[:200]}" can\'t be a {what}: a name starts with a letter A to Z, a to z or _, '
            "and goes on with these or digits",
            pointer,
        )


def properties(value: dict[str, Any], reserved: frozenset[str], pointer: str) -> dict[str, Any]:
    """Return the members that aren't Avro's own attributes."""
    props = {key: item for key, item in value.items() if key not in reserved}
    for item in props.values():
        if isinstance(item, (dict, list)):
            check_depth(item, pointer)
    return props


def doc_of(value: dict[str, Any], pointer: str) -> str | None:
    """Return the doc; None if there is none."""
    doc = value.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise SchemaProblem(f'a "doc" is a string, not {json_kind(doc)}', pointer + "/doc")
    return doc


def aliases_of(value: dict[str, Any], pointer: str) -> tuple[str, ...]:
    """Return the aliases as written, each once."""
    aliases = value["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise SchemaProblem('"aliases" is an array of strings', pointer + "/aliases")
    return tuple(dict.fromkeys(aliases))


def json_kind(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


_MAX_INT: Final = 2**31 - 1

# The base types of each logical type (Avro 1.12, "Logical Types").
_PLACES: Final[Mapping[str, frozenset[str]]] = {
    "date": frozenset({"int"}),
    "time-millis": frozenset({"int"}),
    "time-micros": frozenset({"long"}),
    "timestamp-millis": frozenset({"long"}),
    "timestamp-micros": frozenset({"long"}),
    "timestamp-nanos": frozenset({"long"}),
    "local-timestamp-millis": frozenset({"long"}),
    "local-timestamp-micros": frozenset({"long"}),
    "local-timestamp-nanos": frozenset({"long"}),
    "uuid": frozenset({"string", "fixed"}),
    "duration": frozenset({"fixed"}),
    "decimal": frozenset({"bytes", "fixed"}),
    "big-decimal": frozenset({"bytes"}),
}
_FIXED_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "duration": 12}
_PLAIN: Final = {name: LogicalType(name) for name in _PLACES if name != "decimal"}


def logical_type(type_: AvroType, attributes: Mapping[str, Any]) -> LogicalType | None:
    """Return the valid logical type that the attributes give the type; None if there is none."""
    name = attributes.get("logicalType")
    if not isinstance(name, str) or type_.kind not in _PLACES.get(name, ()):
        return None
    if name == "decimal":
        return _decimal(type_, attributes)
    if isinstance(type_, Fixed) and type_.size != _FIXED_SIZES[name]:
        return None
    return _PLAIN[name]


def _decimal(type_: AvroType, attributes: Mapping[str, Any]) -> LogicalType | None:
    precision, scale = _int(attributes.get("precision")), _int(attributes.get("scale", 0))
    if precision is None or scale is None or precision <= 0 or not 0 <= scale <= precision:
        return None
    if isinstance(type_, Fixed) and precision > max_precision(type_.size):
        return None
    return LogicalType("decimal", precision, scale)


def max_precision(size: int) -> int:
    """Return how many decimal digits a signed number of `size` bytes can always hold."""
    return max(0, math.floor(math.log10(2) * (8 * size - 1)))


def _int(value: Any) -> int | None:
    """Return the value if it is a 32-bit integer; otherwise None."""
    is_int = isinstance(value, int) and not isinstance(value, bool) and -_MAX_INT - 1 <= value <= _MAX_INT
    return value if is_int else None
