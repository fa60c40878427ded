"""A value that a hazard changes: what the writer meant and what the reader gets, really computed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from registry.formats.avro.meaning import ordinary_number, shown_number
from registry.formats.avro.model import AvroType, Enum


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
    number = 12_345 if "decimal" in (reader.logical.name, writer.logical.name) else ordinary_number(writer.logical)
    meant, read = shown_number(writer.logical, number), shown_number(reader.logical, number)
    return f"{number} on the wire means {meant} to the writer and {read} to the reader" if meant and read else ""


_EXAMPLES: Final[Mapping[str, Callable[[AvroType, AvroType], str]]] = {
    "ENUM_SYMBOL_DEFAULTED": _lost_symbol,
    "WIDENING_LOSES_PRECISION": _lost_digits,
    "LOGICAL_TYPE_REINTERPRETED": _reinterpreted,
}
