"""Value changes that the check allows: lossy widenings, logical types, enum defaults; with computed examples."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

from registry.formats.avro.datum import change_of_default, datum_from_default
from registry.formats.avro.defaults import why_invalid
from registry.formats.avro.java_defaults import DefaultRefused, java_default
from registry.formats.avro.model import AvroType, Enum, Fixed, LogicalType, Named, Record, RecordField

_LOSSY: Final = frozenset({("int", "float"), ("long", "float"), ("long", "double")})
_UNSURE: Final = _LOSSY | {("bytes", "string"), ("string", "bytes")}
_DECIMALS: Final = frozenset({"decimal", "big-decimal"})

# For these types every decoder fills in a valid default unchanged.
_FILLED_ALIKE: Final = frozenset({"null", "boolean", "int", "long", "string", "enum"})

Hazard = tuple[str, str, RecordField | None, tuple[object, ...]]


def pair_hazards(reader: AvroType, writer: AvroType) -> tuple[Hazard, ...]:
    """Return what changes when the writer's type is read as the reader's; empty if nothing does."""
    hazards: list[Hazard] = []
    if reader.logical is not writer.logical:
        rule = logical_hazard(reader, writer)
        if rule is not None:
            hazards.append((rule, "", None, ()))
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        missing = writer.symbol_set - reader.symbol_set
        if missing and reader.default is not None:
            hazards.append(("ENUM_SYMBOL_DEFAULTED", "/symbols", None, (sorted(missing),)))
    elif (writer.kind, reader.kind) in _LOSSY:
        hazards.append(("WIDENING_LOSES_PRECISION", "", None, ()))
    elif writer.kind == "bytes" and reader.kind == "string":
        hazards.append(("BYTES_READ_AS_STRING", "", None, ()))
    return tuple(hazards)


def has_unsure_order(branches: Sequence[AvroType]) -> bool:
    """Return whether a branch precedes one whose values it may change, so decoders differ even for equal unions."""
    kinds = [branch.kind for branch in branches]
    return any((kind, before) in _UNSURE for at, kind in enumerate(kinds) for before in kinds[:at])


def is_changed_by_order(branches: Sequence[AvroType], writer: AvroType) -> bool:
    """Return whether decoders differ on a union: the first branch that reads a primitive may change its values."""
    return (writer.kind, branches[0].kind) in _UNSURE and any(branch.kind == writer.kind for branch in branches)


def logical_hazard(reader: AvroType, writer: AvroType) -> str | None:
    """Return the rule for a change between two logical types; None if nothing changes."""
    ours, theirs = reader.logical, writer.logical
    if ours == theirs or reader.kind in ("union", "null") or writer.kind in ("union", "null"):
        return None
    if theirs is None and ours is not None and ours.name in _DECIMALS and writer.kind != "fixed":
        return "LOGICAL_TYPE_REINTERPRETED" if writer.kind == "string" else "BYTES_READ_AS_DECIMAL"
    if ours is None or theirs is None:
        is_text_as_uuid = reader.kind == "string" and ours is not None and ours.name == "uuid"
        return "STRING_READ_AS_UUID" if is_text_as_uuid else "LOGICAL_TYPE_CHANGED"
    if ours.name == theirs.name:
        if ours.scale != theirs.scale:
            return "LOGICAL_TYPE_REINTERPRETED"
        return "DECIMAL_PRECISION_NARROWED" if ours.precision < theirs.precision else None
    same_unit = ours.name.removeprefix("local-") == theirs.name.removeprefix("local-")
    return "LOGICAL_TYPE_CHANGED" if same_unit else "LOGICAL_TYPE_REINTERPRETED"


def field_alias_hazards(reader: Record, writer: Record) -> list[Hazard]:
    """Return hazards of field aliases that the check accepts but decoders don't apply as intended."""
    hazards: list[Hazard] = []
    readers_of: dict[str, list[RecordField]] = {}
    for field in reader.fields:
        match = next((name for name in (field.name, *field.aliases) if name in writer.by_name), None)
        if match is None:
            continue
        readers_of.setdefault(match, []).append(field)
        if match != field.name and not _record_is_known_as(reader, writer):
            hazards.append(("FIELD_ALIAS_ACROSS_NAMESPACES", f"/fields/{field.position}", field, ()))
    for name, fields in readers_of.items():
        if len(fields) > 1:
            hazards.append(("FIELD_ALIASED_TWICE", f"/fields/{fields[-1].position}", fields[-1], (name, fields)))
    return hazards


def is_filled_differently(field: RecordField) -> bool:
    """Return whether decoders fill in different values for a default when the data lacks the field."""
    if field.type.kind in _FILLED_ALIKE or why_invalid(field.type, field.default) is not None:
        return False
    meant = datum_from_default(field.type, field.default)
    if change_of_default(field.type, meant, field.default):
        return True
    try:
        return bool(change_of_default(field.type, meant, java_default(field)))
    except DefaultRefused:
        return True


def _record_is_known_as(reader: Named, writer: Named) -> bool:
    return reader.full_name == writer.full_name or writer.full_name in reader.alias_set


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The fraction of a second of each unit; 0 means days.
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
    """Return how many units of a date or time type make a second; 0 for days."""
    return _PARTS[logical.name.rpartition("-")[2]]


def ordinary_value(type_: AvroType) -> Any:
    """Return a typical value of a logical type; None if any value will do."""
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
    """Return the number of a typical date or time of the type."""
    of_second = parts(logical) if logical.name in TIMES else 1
    if of_second == 0:
        return 19_675
    return 1_700_000_000 * of_second if "stamp" in logical.name else 3_600 * of_second


def meaning(type_: AvroType, value: Any) -> object:
    """Return what a value means; two results are equal if and only if the values mean the same.

    Integers of time types are instants, decimals are numbers; all other values mean themselves.
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
    """Return a value for people, according to its logical type; at most about 200 characters."""
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
    """Return what an integer means in the logical type; empty if it has no printable meaning."""
    if logical.name == "decimal":
        if logical.scale > _MAX_SHOWN_SCALE:
            return f"{number} × 10^-{logical.scale}"
        return str(Decimal(number).scaleb(-logical.scale, _MANY_DIGITS))
    if logical.name not in TIMES:
        return ""
    of_second = parts(logical)
    try:
        passed = timedelta(microseconds=number * 1_000_000 // of_second) if of_second else timedelta(days=number)
        moment = _EPOCH + passed
    except OverflowError:
        return "a time after the year 9999"
    if of_second == 0:
        return moment.date().isoformat()
    if "stamp" not in logical.name:
        return moment.time().isoformat("milliseconds" if of_second == 1_000 else "microseconds")
    moment = moment.replace(tzinfo=None) if logical.name.startswith("local-") else moment
    return moment.isoformat(timespec="auto" if number % of_second else "seconds")


def _reduced(value: bytes, scale: int) -> tuple[object, int]:
    """Return a decimal's digits without trailing zeros, and its scale; very long ones unchanged."""
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


def example(rule: str, reader: AvroType, writer: AvroType) -> str:
    """Return a sentence with a changed value; empty for a rule without an example."""
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
    return (
        f"the encoded number {number} means {meant} in the writer schema and {read} in the reader schema"
        if meant and read
        else ""
    )


_EXAMPLES: Final[Mapping[str, Callable[[AvroType, AvroType], str]]] = {
    "ENUM_SYMBOL_DEFAULTED": _lost_symbol,
    "WIDENING_LOSES_PRECISION": _lost_digits,
    "LOGICAL_TYPE_REINTERPRETED": _reinterpreted,
}
