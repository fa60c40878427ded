"""A value that a hazard changes: what the writer meant and what the reader gets, really computed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from registry.formats.avro.model import AvroType, Enum, LogicalType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER: Final = 1_700_000_000
# The unit of a logical type as a part of a second; days are told apart by 0.
_PARTS: Final[Mapping[str, int]] = {"date": 0, "millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}


def example(rule: str, reader: AvroType, writer: AvroType) -> str:
    """A sentence with a changed value; empty for a rule that has no value to show."""
    make = _EXAMPLES.get(rule)
    return make(reader, writer) if make is not None else ""


def _lost_symbol(reader: AvroType, writer: AvroType) -> str:
    assert isinstance(reader, Enum)
    assert isinstance(writer, Enum)
    missing = next(symbol for symbol in writer.symbols if symbol not in reader.symbol_set)
    return f"{missing} is read as {reader.default}"


def _lost_digits(reader: AvroType, writer: AvroType) -> str:
    number = 2**24 + 1 if reader.kind == "float" else 2**53 + 1
    layout = "<f" if reader.kind == "float" else "<d"
    read = struct.unpack(layout, struct.pack(layout, float(number)))[0]
    return f"{number} is read as {read:.0f}"


def _reinterpreted(reader: AvroType, writer: AvroType) -> str:
    if reader.logical is None or writer.logical is None:
        return ""
    number = 12_345 if "decimal" in (reader.logical.name, writer.logical.name) else _number(writer.logical)
    meant, read = _value(writer.logical, number), _value(reader.logical, number)
    return f"{number} on the wire means {meant} to the writer and {read} to the reader" if meant and read else ""


def _number(logical: LogicalType) -> int:
    """A number that stands for an ordinary date or time of the type."""
    parts = _PARTS[logical.name.rpartition("-")[2]] if logical.name in _TIMES else 1
    return 19_675 if parts == 0 else _NUMBER * parts if "stamp" in logical.name else 3_600 * parts


def _value(logical: LogicalType, number: int) -> str:
    """What a number means as the logical type; empty where it means nothing that can be written."""
    if logical.name == "decimal":
        return str(Decimal(number).scaleb(-logical.scale))
    if logical.name not in _TIMES:
        return ""
    parts = _PARTS[logical.name.rpartition("-")[2]]
    try:
        moment = _EPOCH + (timedelta(days=number) if parts == 0 else timedelta(seconds=number / parts))
    except OverflowError:
        return "a moment beyond the year 9999"
    if parts == 0:
        return moment.date().isoformat()
    return moment.isoformat(timespec="seconds") if "stamp" in logical.name else moment.time().isoformat("milliseconds")


_TIMES: Final = frozenset(
    {
        "date",
        "time-millis",
        "time-micros",
        *(f"{kind}-{unit}" for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")),
    }
)
_EXAMPLES: Final[Mapping[str, Callable[[AvroType, AvroType], str]]] = {
    "ENUM_SYMBOL_DEFAULTED": _lost_symbol,
    "WIDENING_LOSES_PRECISION": _lost_digits,
    "LOGICAL_TYPE_REINTERPRETED": _reinterpreted,
}
