"""Logical types: which annotation is valid on which type; an invalid or unknown one is ignored, as Avro says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from registry.formats.avro.model import AvroType, Fixed, LogicalType

_MAX_INT: Final = 2**31 - 1

# Where each logical type may stand (Avro 1.12, "Logical Types"); None as size: a fixed of any size.
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
    """The valid logical type that the attributes give the type, None where there is none."""
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
    """How many decimal digits a signed number of `size` bytes can always hold."""
    return max(0, math.floor(math.log10(2) * (8 * size - 1)))


def _int(value: Any) -> int | None:
    """The value if it is a whole number of 32 bits."""
    is_int = isinstance(value, int) and not isinstance(value, bool) and -_MAX_INT - 1 <= value <= _MAX_INT
    return value if is_int else None
