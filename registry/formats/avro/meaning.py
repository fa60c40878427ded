"""What a value on the wire stands for, by its logical type: to compare two readings of it, and to show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

from registry.formats.avro.model import AvroType, Fixed, LogicalType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The unit of a logical type as a part of a second; days are told apart by 0.
_PARTS: Final[Mapping[str, int]] = {"date": 0, "millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
_MANY_DIGITS: Final = Context(prec=200)
_MAX_SHOWN_BYTES: Final = 40
_MAX_SHOWN_SCALE: Final = 1_000

TIMES: Final = frozenset(
    {
        "date",
        "time-millis",
        "time-micros",
        *(f"{kind}-{unit}" for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")),
    }
)


def parts(logical: LogicalType) -> int:
    """How many of the units of a date or time type make a second; 0 for days."""
    return _PARTS[logical.name.rpartition("-")[2]]


def ordinary_value(type_: AvroType) -> Any:
    """A value of the type that stands for something ordinary, None where any will do."""
    logical = type_.logical
    if logical is None:
        return None
    if logical.name in TIMES:
        return ordinary_number(logical)
    if logical.name == "decimal":
        number = int("12345"[: logical.precision])
        size = type_.size if isinstance(type_, Fixed) else (number.bit_length() + 8) // 8
        return number.to_bytes(size, "big", signed=True)
    if logical.name == "uuid":
        value = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")
        return value.bytes if isinstance(type_, Fixed) else str(value)
    if logical.name == "duration":
        return b"".join(number.to_bytes(4, "little") for number in (1, 2, 3_000))
    return None


def ordinary_number(logical: LogicalType) -> int:
    """A number that stands for an ordinary date or time of the type."""
    of_second = parts(logical) if logical.name in TIMES else 1
    if of_second == 0:
        return 19_675
    return 1_700_000_000 * of_second if "stamp" in logical.name else 3_600 * of_second


def meaning(type_: AvroType, value: Any) -> object:
    """What a value stands for: equal for two readings exactly if they mean the same.

    Whole numbers of time are instants, decimals numbers; all else means itself.
    """
    logical = type_.logical
    if logical is None:
        return value
    if logical.name == "decimal" and isinstance(value, bytes):
        return ("decimal", *_reduced(value, logical.scale))
    if logical.name in TIMES and isinstance(value, int):
        of_second = parts(logical)
        kind = logical.name.removeprefix("local-").rpartition("-")[0] or "date"
        return (kind, Fraction(value, of_second) if of_second else Fraction(value * 86_400))
    return (logical.name, value)


def shown(type_: AvroType, value: Any) -> str:
    """A value as people read it, by its logical type; at most about 200 characters."""
    logical = type_.logical
    if logical is not None and logical.name == "decimal" and isinstance(value, bytes):
        return _short(shown_number(logical, _unscaled(value[:_MAX_SHOWN_BYTES])))
    if logical is not None and logical.name in TIMES and isinstance(value, int):
        return shown_number(logical, value)
    if logical is not None and isinstance(value, bytes) and logical.name == "uuid" and len(value) == 16:
        return str(UUID(bytes=value))
    if logical is not None and isinstance(value, bytes) and logical.name == "duration" and len(value) == 12:
        months, days, millis = (int.from_bytes(value[at : at + 4], "little") for at in (0, 4, 8))
        return f"{months} months, {days} days, {millis} ms"
    if isinstance(value, bytes):
        return _short(f"the bytes {value[:_MAX_SHOWN_BYTES].hex(' ')}")
    return _short(str(value))


def shown_number(logical: LogicalType, number: int) -> str:
    """What a whole number means as the logical type; empty where it means nothing that can be written."""
    if logical.name == "decimal":
        if logical.scale > _MAX_SHOWN_SCALE:
            return f"{number} × 10^-{logical.scale}"
        return str(Decimal(number).scaleb(-logical.scale, _MANY_DIGITS))
    if logical.name not in TIMES:
        return ""
    of_second = parts(logical)
    try:
        moment = _EPOCH + (timedelta(days=number) if of_second == 0 else timedelta(seconds=number / of_second))
    except OverflowError:
        return "a moment beyond the year 9999"
    if of_second == 0:
        return moment.date().isoformat()
    return moment.isoformat(timespec="seconds") if "stamp" in logical.name else moment.time().isoformat("milliseconds")


def _reduced(value: bytes, scale: int) -> tuple[object, int]:
    """A decimal as its digits without zeros at the end, and its scale; very long ones as they stand."""
    if len(value) > _MAX_SHOWN_BYTES:
        return value, scale
    number = _unscaled(value)
    if number == 0:
        return 0, 0
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    return number, scale


def _unscaled(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"
