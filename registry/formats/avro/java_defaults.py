"""The values that Java's decoder fills in for defaults, which aren't always the declared ones.

In a union, Java takes the first branch that isn't a primitive or fixed of another JSON shape: a number goes to the
first numeric type, and any value at all goes to a record, an enum, an array or a map. The value is then cast to that
branch, and anything but an object becomes an empty one. So the default null of a union of a record and null may become
a record.

Source: `encode` of `ResolvingGrammarGenerator` and `FastReaderBuilder` of org.apache.avro 1.12; tests compare this
module with them.
"""

from __future__ import annotations

import math
from typing import Any, Final

from registry.formats.avro.datum import rounded
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Record, RecordField, Union

_MAX_DEPTH: Final = 100
_BITS: Final = {"int": 32, "long": 64}
_SHAPES: Final = {
    "null": "null",
    "boolean": "boolean",
    **dict.fromkeys(("int", "long", "float", "double"), "number"),
    **dict.fromkeys(("string", "bytes", "fixed"), "text"),
}


class DefaultRefused(Exception):
    """Java's parser accepts the default, but its decoder fails to make the value."""


def java_default(field: RecordField) -> Any:
    """Return the value that Java fills in for the field's default, without branch names; raises DefaultRefused."""
    value = _field(field, field.default, 0)
    if isinstance(field.type, Union) and value == []:
        raise DefaultRefused("an empty array in a union gets the type of the union")
    return value


def _field(field: RecordField, value: Any, depth: int) -> Any:
    if isinstance(value, str) and value is field.default and field.type.kind in ("float", "double"):
        return float(value)
    return _value(field.type, value, depth)


def _value(type_: AvroType, value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise DefaultRefused("the default of a recursive type is endless")
    if isinstance(type_, Union):
        branch = next((item for item in type_.branches if _SHAPES.get(item.kind) in (None, _shape(value))), None)
        if branch is None:
            raise DefaultRefused("no branch of the union matches the default")
        return _value(branch, value, depth + 1)
    if isinstance(type_, Record):
        return _record(type_, value if isinstance(value, dict) else {}, depth)
    if isinstance(type_, Array):
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [_value(type_.items, item, depth + 1) for item in items]
    if isinstance(type_, Map):
        if isinstance(value, list) and value:
            raise DefaultRefused("the items of an array have no keys for a map")
        entries = value if isinstance(value, dict) else {}
        return {key: _value(type_.values, item, depth + 1) for key, item in entries.items()}
    return _leaf(type_, value)


def _record(record: Record, value: dict[str, Any], depth: int) -> dict[str, Any]:
    lacking = next((field for field in record.fields if field.name not in value and not field.has_default), None)
    if lacking is not None:
        raise DefaultRefused(f'the default lacks "{lacking.name}"')
    return {field.name: _field(field, value.get(field.name, field.default), depth + 1) for field in record.fields}


def _leaf(type_: AvroType, value: Any) -> Any:
    if isinstance(type_, Enum):
        if not isinstance(value, str) or value not in type_.symbol_set:
            raise DefaultRefused(f"{type_.full_name} has no such symbol")
        return value
    if _SHAPES[type_.kind] != _shape(value):
        raise DefaultRefused(f"the default is not a {type_.kind}")
    if type_.kind in _BITS:
        return _integer(value, _BITS[type_.kind])
    if type_.kind in ("float", "double"):
        return rounded(type_, float(value))
    if type_.kind not in ("bytes", "fixed"):
        return value
    encoded = value.encode("latin-1", "replace")
    return encoded[: type_.size].ljust(type_.size, b"\0") if isinstance(type_, Fixed) else encoded


def _integer(value: Any, bits: int) -> int:
    """Cast like Java: an integer keeps its lowest bits, a fraction is truncated and clamped."""
    half = 1 << (bits - 1)
    if isinstance(value, float):
        return 0 if math.isnan(value) else int(max(-half, min(half - 1, value)))
    return int((value + half) % (2 * half) - half)


def _shape(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else "other"
