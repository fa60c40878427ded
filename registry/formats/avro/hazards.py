"""What passes the check and yet changes values: lossy widenings, logical types, defaults of enums, aliases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from registry.formats.avro.datum import change_of_default, datum_from_default
from registry.formats.avro.defaults import why_invalid
from registry.formats.avro.java_defaults import DefaultRefused, java_default
from registry.formats.avro.model import AvroType, Enum, Field, Named, Record

_LOSSY: Final = frozenset({("int", "float"), ("long", "float"), ("long", "double")})
_UNSURE: Final = _LOSSY | {("bytes", "string"), ("string", "bytes")}
_DECIMALS: Final = frozenset({"decimal", "big-decimal"})

# Of these every default that is valid is the value itself.
_FILLED_ALIKE: Final = frozenset({"null", "boolean", "int", "long", "string", "enum"})

Hazard = tuple[str, str, Field | None, tuple[object, ...]]


def pair_hazards(reader: AvroType, writer: AvroType) -> tuple[Hazard, ...]:
    """What changes when the writer's type is read as the reader's; empty if nothing does."""
    found: list[Hazard] = []
    if reader.logical is not writer.logical:
        rule = logical_hazard(reader, writer)
        if rule is not None:
            found.append((rule, "", None, ()))
    if isinstance(reader, Enum) and isinstance(writer, Enum):
        missing = writer.symbol_set - reader.symbol_set
        if missing and reader.default is not None:
            found.append(("ENUM_SYMBOL_DEFAULTED", "/symbols", None, (sorted(missing),)))
    elif (writer.kind, reader.kind) in _LOSSY:
        found.append(("WIDENING_LOSES_PRECISION", "", None, ()))
    elif writer.kind == "bytes" and reader.kind == "string":
        found.append(("BYTES_READ_AS_STRING", "", None, ()))
    return tuple(found)


def has_unsure_order(branches: Sequence[AvroType]) -> bool:
    """Whether a branch stands before one whose values it may change, so that even equal unions part decoders."""
    kinds = [branch.kind for branch in branches]
    return any((kind, before) in _UNSURE for at, kind in enumerate(kinds) for before in kinds[:at])


def is_changed_by_order(branches: Sequence[AvroType], writer: AvroType) -> bool:
    """Whether decoders part on a union: the first branch that reads a primitive may change its values."""
    return (writer.kind, branches[0].kind) in _UNSURE and any(branch.kind == writer.kind for branch in branches)


def logical_hazard(reader: AvroType, writer: AvroType) -> str | None:
    """The rule of what changes between two logical types, None if nothing does."""
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
    """Aliases of fields that the check accepts and decoders don't apply as meant."""
    found: list[Hazard] = []
    readers_of: dict[str, list[Field]] = {}
    for field in reader.fields:
        match = next((name for name in (field.name, *field.aliases) if name in writer.by_name), None)
        if match is None:
            continue
        readers_of.setdefault(match, []).append(field)
        if match != field.name and not _record_is_known_as(reader, writer):
            found.append(("FIELD_ALIAS_ACROSS_NAMESPACES", f"/fields/{field.position}", field, ()))
    for name, fields in readers_of.items():
        if len(fields) > 1:
            found.append(("FIELD_ALIASED_TWICE", f"/fields/{fields[-1].position}", fields[-1], (name, fields)))
    return found


def is_filled_differently(field: Field) -> bool:
    """Whether decoders fill a field that the data don't have with different values from its default."""
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
