"""Types that have one thing alone against them, so that what a decoder says of one reason isn't hidden by another."""

from __future__ import annotations

from registry.formats.avro.model import AvroType, Enum, Field, Fixed, Named, Primitive, Record
from registry.formats.avro.resolution import Pair, Reason


def with_this_alone(reason: Reason, pair: Pair) -> AvroType | None:
    """A reader that is the pair's but for its other reasons; None where the pair has but one."""
    rule, _, field, _ = reason
    reader, writer = pair.reader, pair.writer
    if isinstance(reader, Record) and isinstance(writer, Record):
        fields = () if field is None else (_field_alone(rule, field),)
        return record_of(fields, reader if rule == "NAME_CHANGED" else writer)
    if len(pair.reasons) < 2 or not (isinstance(reader, Named) and isinstance(writer, Named)):
        return None
    return _renamed(reader, writer) if rule != "NAME_CHANGED" else _renamed(writer, reader)


def _field_alone(rule: str, field: Field) -> Field:
    if rule != "FIELD_WITHOUT_DEFAULT":
        return field
    alone = Field(field.name, Primitive("null", "", None), 0, field.pointer)
    alone.aliases = field.aliases
    return alone


def record_of(fields: tuple[Field, ...], name_of: Record) -> Record:
    """A record with other fields under the name of another."""
    record = Record(name_of.full_name, "", None)
    record.aliases, record.alias_set = name_of.aliases, name_of.alias_set
    record.fields = fields
    record.by_name = {field.name: field for field in fields}
    return record


def _renamed(type_: Named, named: Named) -> AvroType:
    """An enum or fixed under another's name."""
    if isinstance(type_, Enum):
        enum = Enum(named.full_name, "", None)
        enum.symbols, enum.symbol_set, enum.default = type_.symbols, type_.symbol_set, type_.default
        enum.aliases, enum.alias_set = named.aliases, named.alias_set
        return enum
    assert isinstance(type_, Fixed)
    fixed = Fixed(named.full_name, "", None)
    fixed.size, fixed.aliases, fixed.alias_set = type_.size, named.aliases, named.alias_set
    return fixed
