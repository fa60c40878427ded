"""Defaults of fields: whether a JSON value is valid for a type, and initial defaults for fields without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Record, Union, type_label
from registry.formats.json_edit import NoSuchPlace

_RANGES: Final[Mapping[str, tuple[int, int]]] = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_MAX_DEPTH: Final = 100
_TOO_DEEP: Final = (
    f"it is nested more than {_MAX_DEPTH} levels deep: set a value for the field in which the record contains itself"
)

# Java's parser accepts these strings as floats and writes them back as strings.
NON_FINITE: Final[Mapping[str, str]] = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "+Infinity": "Infinity",
    "-Infinity": "-Infinity",
}


def float_default(value: Any, type_: AvroType) -> Any:
    """Return the number that a string default of a float or double spells; any other value unchanged."""
    if not isinstance(value, str) or type_.kind not in ("float", "double"):
        return value
    text = value.strip()
    if text in NON_FINITE:
        return NON_FINITE[text]
    try:
        number = float(text)
    except ValueError:
        return value
    return number if "_" not in text and number - number == 0 else value


def why_invalid(type_: AvroType, value: Any, *, is_strict: bool = False) -> str | None:
    """Return why the value can't be the type's default, or None; strict mode allows only a union's first branch."""
    if _is_non_finite(type_, value):
        return None
    return why_invalid_inside(type_, value, is_strict=is_strict)


def why_invalid_inside(type_: AvroType, value: Any, *, is_strict: bool = False) -> str | None:
    """Like `why_invalid`, for a value inside a default: there, as in Java's parser, a string isn't a number."""
    return _DefaultCheck(is_strict=is_strict).why_not(type_, value, 0)


class _DefaultCheck:
    """A check of one default; tests each value and type once, because unions of unions would multiply the work."""

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._known: dict[tuple[int, int], str | None] = {}

    def why_not(self, type_: AvroType, value: Any, depth: int) -> str | None:
        """Return why the value doesn't fit the type; None if it does."""
        if type_.kind in _SIMPLE:
            return _why_not_simple(type_, value)
        if depth > _MAX_DEPTH:
            return _TOO_DEEP
        key = (id(type_), id(value))
        if key not in self._known:
            self._known[key] = self._why_not_complex(type_, value, depth)
        return self._known[key]

    def _why_not_complex(self, type_: AvroType, value: Any, depth: int) -> str | None:
        if isinstance(type_, Array):
            if not isinstance(value, list):
                return _expected("an array", value)
            return self._first_reason(type_.items, value, depth)
        if isinstance(type_, Map):
            if not isinstance(value, dict):
                return _expected("an object", value)
            return self._first_reason(type_.values, value.values(), depth)
        if isinstance(type_, Union):
            if self._is_strict and type_.branches:
                return self.why_not(type_.branches[0], value, depth + 1)
            if any(self.why_not(branch, value, depth + 1) is None for branch in type_.branches):
                return None
            return _expected(f"a value of one of the branches of {type_label(type_)}", value)
        assert isinstance(type_, Record)
        return self._why_no_record(type_, value, depth)

    def _why_no_record(self, record: Record, value: Any, depth: int) -> str | None:
        if not isinstance(value, dict):
            return _expected("an object", value)
        for field in record.fields:
            if field.name not in value and not field.has_default:
                return f'it lacks the field "{field.name}" of {record.full_name}, which has no default'
            item = value.get(field.name, field.default)
            if field.name not in value and _is_non_finite(field.type, item):
                continue
            reason = self.why_not(field.type, item, depth + 1)
            if reason == _TOO_DEEP:
                return reason
            if reason is not None:
                return f'in the field "{field.name}": {reason}'
        return None

    def _first_reason(self, type_: AvroType, values: Iterable[Any], depth: int) -> str | None:
        reasons = (self.why_not(type_, value, depth + 1) for value in values)
        return next((reason for reason in reasons if reason is not None), None)


def _is_non_finite(type_: AvroType, value: Any) -> bool:
    return type_.kind in ("float", "double") and isinstance(value, str) and value in NON_FINITE


_SIMPLE: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum"})


def _why_not_simple(type_: AvroType, value: Any) -> str | None:
    kind = type_.kind
    if kind == "string":
        return None if isinstance(value, str) else _expected("a string", value)
    if kind == "null":
        return None if value is None else _expected("null", value)
    if kind == "boolean":
        return None if isinstance(value, bool) else _expected("true or false", value)
    if kind in _RANGES:
        return _why_no_integer(value, *_RANGES[kind])
    if kind in ("float", "double"):
        return _why_no_number(value)
    if isinstance(type_, Enum):
        is_symbol = isinstance(value, str) and value in type_.symbol_set
        return None if is_symbol else _expected(f"one of {', '.join(type_.symbols[:20])}", value)
    return _why_no_bytes(type_, value)


def _why_no_integer(value: Any, low: int, high: int) -> str | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return _expected("a whole number", value)
    return None if low <= value <= high else f"{value} is outside the range {low} to {high}"


def _why_no_number(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _expected("a number", value)
    try:
        float(value)
    except OverflowError:
        return "the number is too large for a double"
    return None


def _why_no_bytes(type_: AvroType, value: Any) -> str | None:
    if not isinstance(value, str):
        return _expected("a string of characters from U+0000 to U+00FF, one per byte", value)
    if any(ord(character) > 255 for character in value):
        return "a character above U+00FF doesn't represent a byte"
    if isinstance(type_, Fixed) and len(value) != type_.size:
        return f"it has {len(value)} bytes, the fixed {type_.full_name} has {type_.size}"
    return None


def _expected(what: str, value: Any) -> str:
    if value is None:
        shown = "null"
    elif isinstance(value, bool):
        shown = str(value).lower()
    else:
        shown = repr(value) if isinstance(value, str) else str(value)
    return f"{what} is expected, found {shown if len(shown) <= 80 else shown[:79] + '…'}"


_MAX_DEFAULT_DEPTH: Final = 20
_MAX_FIXED: Final = 64
_VALUES: Final[Mapping[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
    "array": [],
    "map": {},
}


def initial_value(type_: AvroType, depth: int = 0) -> Any:
    """Return a JSON value for a new default; raises NoSuchPlace if the type has none suitable for a text."""
    if depth > _MAX_DEFAULT_DEPTH:
        raise NoSuchPlace("default")
    if isinstance(type_, Union):
        if not type_.branches:
            raise NoSuchPlace("default")
        return initial_value(type_.branches[0], depth + 1)  # the only branch allowed for defaults before Avro 1.12
    if isinstance(type_, Record):
        return {
            field.name: field.default if field.has_default else initial_value(field.type, depth + 1)
            for field in type_.fields
        }
    if isinstance(type_, Enum):
        if not type_.symbols:
            raise NoSuchPlace("default")
        return type_.default if type_.default is not None else type_.symbols[0]
    if isinstance(type_, Fixed):
        if type_.size > _MAX_FIXED:
            raise NoSuchPlace("default")
        return "\x00" * type_.size
    return _VALUES[type_.kind]
