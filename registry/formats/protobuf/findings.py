"""Findings with their sentences, pointers and cures: hazards that pass the check, and losses of data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from registry.formats.base import Incompatibility, Severity, Witness
from registry.formats.protobuf.model import (
    GROUPS,
    Enum,
    Field,
    Message,
    full_label,
    is_narrowing,
    is_reinterpreted,
    type_label,
)
from registry.formats.protobuf.rules import RULES


@dataclass(frozen=True, slots=True)
class SchemaPointer:
    """A place in one of the two schemas: its pointer, and the import path if it is in another file."""

    pointer: str | None
    source: str | None = None

    @staticmethod
    def of(part: Field | Message) -> SchemaPointer:
        """Return the place of a field or message."""
        return SchemaPointer(part.pointer, part.source)


@dataclass(frozen=True, slots=True)
class FindingAnchor:
    """The place where two schemas are compared: the path for people, Confluent's notation, and both sides."""

    path: str
    location: str
    reader: SchemaPointer
    writer: SchemaPointer


def finding(
    rule_id: str,
    anchor: FindingAnchor,
    *,
    name: str,
    writer: Any,
    reader: Any,
    severity: Severity | None = None,
    example: str = "",
    witness: Witness | None = None,
) -> Incompatibility:
    """Return a finding of the rule; `writer` and `reader` are the values of each side, None if it has none."""
    rule = RULES[rule_id]
    values = {"name": name, "writer": _shown(writer), "reader": _shown(reader)}
    return Incompatibility(
        rule=rule.id,
        kind=rule.kind,
        reader_pointer=anchor.reader.pointer,
        writer_pointer=anchor.writer.pointer,
        path=anchor.path,
        before=writer,
        after=reader,
        message=rule.sentence.format_map(values),
        severity=severity or rule.severity,
        location=anchor.location,
        why=rule.why,
        remedy_in_reader=rule.in_reader.format_map(values),
        remedy_in_writer=rule.in_writer.format_map(values),
        reader_source=anchor.reader.source,
        writer_source=anchor.writer.source,
        example=example,
        witness=witness,
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {number}" for name, number in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "nothing" if value is None else str(value)


def plain_finding(rule_id: str, anchor: FindingAnchor, name: str, writer: Any, reader: Any) -> Incompatibility:
    """Return a finding of the rule without proof, as in a judgement."""
    return finding(rule_id, anchor, name=name, writer=writer, reader=reader)


def field_path(message: Message, field: Field) -> str:
    """Return the path of a field in the message that declares it: `Order.price`."""
    return f"{message.local_name}.{field.shown_name}"


Hazard = tuple[str, str, Any, Any]


def message_hazards(writer: Message, reader: Message, location: str) -> Iterator[Incompatibility]:
    """Yield the hazards of two messages with one name, in the order of the writer's fields."""
    names: frozenset[str] | None = None
    for theirs in (*writer.fields, *writer.extended.values()) if writer.extended else writer.fields:
        ours = reader.numbered(theirs.number)
        if ours is None:
            continue
        if theirs.name == ours.name and theirs.kind == ours.kind and not theirs.type_name and _is_same(theirs, ours):
            continue
        anchor = None
        if theirs.name != ours.name and names is None:
            names = frozenset(field.name for field in reader.fields)
        # A name that the reader has elsewhere is reported as FIELD_RENUMBERED.
        is_moved = names is not None and theirs.name in names
        for rule, name, before, after in field_hazards(theirs, ours, is_moved=is_moved):
            anchor = anchor or FindingAnchor(
                field_path(reader, ours), f"{location}/{ours.number}", SchemaPointer.of(ours), SchemaPointer.of(theirs)
            )
            yield finding(rule, anchor, name=name, writer=before, reader=after)
    yield from _renumbered(writer, reader, location)


def _is_same(theirs: Field, ours: Field) -> bool:
    return (
        theirs.is_repeated == ours.is_repeated
        and theirs.is_required == ours.is_required
        and theirs.has_presence == ours.has_presence
        and theirs.default == ours.default
        and theirs.json_name == ours.json_name
    )


def field_hazards(theirs: Field, ours: Field, *, is_moved: bool) -> Iterator[Hazard]:
    """Yield (rule, name, writer's value, reader's value); `is_moved`: the reader has the writer's name elsewhere."""
    if not (is_moved and theirs.name != ours.name):
        yield from _name_hazards(theirs, ours)
    yield from _shape_hazards(theirs, ours)
    entries = _entry(theirs), _entry(ours)
    if entries[0] is not None and entries[1] is not None:
        for number in (1, 2):
            for rule, _, before, after in _value_hazards(entries[0].by_number[number], entries[1].by_number[number]):
                yield rule, ours.name, before, after
        return
    yield from _value_hazards(theirs, ours)


def _entry(field: Field) -> Message | None:
    return field.message if field.is_map else None


def _name_hazards(theirs: Field, ours: Field) -> Iterator[Hazard]:
    if theirs.name != ours.name:
        if type_label(theirs) == type_label(ours) and theirs.is_repeated == ours.is_repeated:
            rule = "FIELD_RENAMED_JSON_KEPT" if ours.accepts_json_of(theirs) else "FIELD_RENAMED"
            yield rule, ours.name, theirs.name, ours.name
        else:
            before, after = f"{full_label(theirs)} {theirs.name}", f"{full_label(ours)} {ours.name}"
            yield "NUMBER_REUSED", str(ours.number), before, after
    elif theirs.json_name != ours.json_name:
        yield "JSON_NAME_CHANGED", ours.name, theirs.json_name, ours.json_name


def _shape_hazards(theirs: Field, ours: Field) -> Iterator[Hazard]:
    labels = full_label(theirs), full_label(ours)
    if (theirs.kind == "group") != (ours.kind == "group"):
        yield "WIRE_TYPE_CHANGED", ours.name, *labels
    if theirs.is_repeated and not ours.is_repeated and not theirs.is_map and _is_comparable(theirs, ours):
        yield "REPEATED_READ_AS_SINGLE", ours.name, *labels
    if ours.is_required and not theirs.is_required:
        yield "REQUIRED_INTRODUCED", ours.name, *labels
    elif _is_presence_comparable(theirs, ours):
        presence_labels = _presence_label(theirs), _presence_label(ours)
        if theirs.has_presence and not ours.has_presence and not theirs.is_required:
            yield "PRESENCE_LOST", ours.name, *presence_labels
        elif ours.has_presence and not theirs.has_presence and comparable(theirs.default) == comparable(ours.default):
            yield "ZERO_READ_AS_UNSET", ours.name, *presence_labels


def _presence_label(field: Field) -> str:
    """Return a field's type with its label; without a label, its presence comes from its oneof."""
    return full_label(field) if field.oneof is None else f'{full_label(field)} in the oneof "{field.oneof}"'


def _is_presence_comparable(theirs: Field, ours: Field) -> bool:
    """Return whether both are single values with equal encoding, so that only their presence can differ."""
    is_single = not theirs.is_repeated and not ours.is_repeated and theirs.kind in GROUPS
    return is_single and GROUPS[theirs.kind] == GROUPS.get(ours.kind)


def _is_comparable(theirs: Field, ours: Field) -> bool:
    """Return whether the established check accepts the pair apart from its label."""
    return GROUPS.get(theirs.kind) == GROUPS.get(ours.kind) and not (theirs.label and ours.label and _numeric(ours))


def _numeric(field: Field) -> bool:
    return GROUPS.get(field.kind, "text") != "text"


def _value_hazards(theirs: Field, ours: Field) -> Iterator[Hazard]:
    if theirs.message is not None and ours.message is not None:
        yield from _type_hazards(theirs, ours, theirs.message, ours.message)
    if GROUPS.get(theirs.kind) != GROUPS.get(ours.kind) or theirs.kind not in GROUPS:
        return
    if theirs.kind == "bytes" and ours.kind == "string":
        yield "BYTES_READ_AS_STRING", ours.name, "bytes", "string"
    elif theirs.enum is not None and ours.enum is not None:
        yield from _enum_hazards(theirs.enum, ours.enum, ours.name)
    elif is_narrowing(theirs, ours):
        yield "VALUE_NARROWED", ours.name, type_label(theirs), type_label(ours)
    if not theirs.is_repeated and not ours.is_repeated:
        yield from _default_hazards(theirs, ours)


def _type_hazards(theirs: Field, ours: Field, before: Message, after: Message) -> Iterator[Hazard]:
    """Compare types whose names have different meanings; a changed package of the schema itself doesn't count."""
    if is_reinterpreted(before, after):
        yield "KNOWN_TYPE_REINTERPRETED", ours.name, type_label(theirs), type_label(ours)
        return
    is_moved = before.local_name == after.local_name and before.full_name != after.full_name
    if is_moved and (before.source is not None or after.source is not None):
        yield "TYPE_OF_ANOTHER_PACKAGE", ours.name, type_label(theirs), type_label(ours)


def _default_hazards(theirs: Field, ours: Field) -> Iterator[Hazard]:
    if comparable(theirs.default) == comparable(ours.default):
        return
    rule = "DEFAULT_CHANGED" if theirs.has_presence else "ZERO_READ_AS_DEFAULT"
    yield rule, ours.name, default_text(theirs), default_text(ours)


def comparable(value: Any) -> Any:
    """Return a default for comparison: strings as bytes, so that text and bytes with equal content are equal."""
    if value != value:  # noqa: PLR0124 - NaN
        return "nan"
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def default_text(field: Field) -> str:
    """Return a default for people: the name of an enum value, text in quotes."""
    if field.enum is not None:
        return field.enum.by_number.get(field.default, str(field.default))
    if isinstance(field.default, bytes):
        return repr(field.default)[1:]
    return f'"{field.default}"' if isinstance(field.default, str) else str(field.default)


def _enum_hazards(theirs: Enum, ours: Enum, name: str) -> Iterator[Hazard]:
    if theirs is ours or (theirs.numbers == ours.numbers and theirs.is_closed == ours.is_closed):
        return
    if ours.is_closed and not theirs.is_closed:
        yield "ENUM_CLOSED", name, "open", "closed"
    missing = [value for value, number in theirs.numbers.items() if number not in ours.by_number]
    moved = {v: n for v, n in theirs.numbers.items() if v in ours.numbers and ours.numbers[v] != n}
    lost = [value for value in missing if value not in moved]
    if lost:
        yield "CLOSED_ENUM_VALUE_MISSING" if ours.is_closed else "ENUM_VALUE_MISSING", name, lost, None
    if moved:
        yield "ENUM_VALUE_RENUMBERED", name, moved, {value: ours.numbers[value] for value in moved}
    renamed = {
        value: number
        for value, number in theirs.numbers.items()
        if value not in ours.numbers and number in ours.by_number
    }
    if renamed:
        after = {ours.by_number[number]: number for number in renamed.values()}
        yield "ENUM_VALUE_RENAMED", name, renamed, after


def _renumbered(writer: Message, reader: Message, location: str) -> Iterator[Incompatibility]:
    ours_by_name: dict[str, Field] | None = None
    for theirs in writer.fields:
        same = reader.by_number.get(theirs.number)
        if same is not None and same.name == theirs.name:
            continue
        if ours_by_name is None:
            ours_by_name = {field.name: field for field in reader.fields}
        ours = ours_by_name.get(theirs.name)
        if ours is not None:
            anchor = FindingAnchor(
                field_path(reader, ours),
                f"{location}/{theirs.number}",
                SchemaPointer.of(ours),
                SchemaPointer.of(theirs),
            )
            yield finding("FIELD_RENUMBERED", anchor, name=ours.name, writer=theirs.number, reader=ours.number)


def rule_of(theirs: Field, ours: Field, *, is_zero: bool, is_unnamed: bool = False) -> str:
    """Return the rule for a value that changed.

    `is_zero` means that the datum omits the field because it is zero or empty. `is_unnamed` means that it has a number
    without a name in the writer's enum.
    """
    if theirs.number != ours.number:
        return "FIELD_RENUMBERED"
    if theirs.is_map and ours.is_map and theirs.message is not None and ours.message is not None:
        return _rule_of_entries(theirs.message.by_number, ours.message.by_number, is_unnamed=is_unnamed)
    if (theirs.kind == "group") != (ours.kind == "group"):
        return "WIRE_TYPE_CHANGED"
    if theirs.is_map != ours.is_map or (theirs.message is None) != (ours.message is None):
        return "FIELD_KIND_CHANGED"
    if theirs.message is not None and ours.message is not None:
        is_merged = theirs.is_repeated and not ours.is_repeated
        if is_merged:
            return "REPEATED_READ_AS_SINGLE"
        is_other = is_reinterpreted(theirs.message, ours.message)
        return "KNOWN_TYPE_REINTERPRETED" if is_other else "FIELD_NAMED_TYPE_CHANGED"
    if GROUPS[theirs.kind] != GROUPS[ours.kind]:
        return "FIELD_SCALAR_KIND_CHANGED"
    if theirs.is_repeated and not ours.is_repeated:
        is_told = theirs.label and ours.label and GROUPS[ours.kind] != "text"
        return "FIELD_NUMERIC_LABEL_CHANGED" if is_told else "REPEATED_READ_AS_SINGLE"
    if is_zero:
        return "ZERO_READ_AS_DEFAULT"
    return _rule_of_values(theirs, ours, is_unnamed=is_unnamed)


def has_unnamed(field: Field, value: Any) -> bool:
    """Return whether a field's value, or one of its values, is a number without a name in its enum."""
    if field.is_map and field.message is not None:
        inner = field.message.by_number[2]
        return any(has_unnamed(inner, item) for _, item in value)
    if field.enum is None:
        return False
    return any(number not in field.enum.by_number for number in (value if field.is_repeated else (value,)))


def sides_of(rule: str, theirs: Field | None, ours: Field) -> tuple[Any, Any]:
    """Return each side's value for the rule's sentence: numbers, enum values or defaults, otherwise the types."""
    if theirs is None:
        return None, full_label(ours)
    if rule == "FIELD_RENUMBERED":
        return theirs.number, ours.number
    sides = (
        (before, after) for hazard, _, before, after in field_hazards(theirs, ours, is_moved=True) if hazard == rule
    )
    return next(sides, (full_label(theirs), full_label(ours)))


def _rule_of_entries(theirs: dict[int, Field], ours: dict[int, Field], *, is_unnamed: bool) -> str:
    for number in (1, 2):
        rule = rule_of(theirs[number], ours[number], is_zero=False, is_unnamed=is_unnamed)
        if rule not in ("VALUE_NARROWED", "FIELD_NAMED_TYPE_CHANGED") or is_narrowing(theirs[number], ours[number]):
            return rule
    return "FIELD_NAMED_TYPE_CHANGED"


def _rule_of_values(theirs: Field, ours: Field, *, is_unnamed: bool) -> str:
    if theirs.kind == "bytes" and ours.kind == "string":
        return "BYTES_READ_AS_STRING"
    if theirs.enum is not None and ours.enum is not None:
        if is_unnamed:
            return "ENUM_CLOSED"
        missing = set(theirs.enum.by_number) - set(ours.enum.by_number)
        return "CLOSED_ENUM_VALUE_MISSING" if ours.enum.is_closed and missing else "ENUM_VALUE_RENUMBERED"
    return "VALUE_NARROWED"
