"""One finding: the sentence, the pointers and the values of both sides, from a reason and the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.formats.avro.codec import Refusal
from registry.formats.avro.examples import example
from registry.formats.avro.model import Enum, Field, Fixed, Named, Record, type_label
from registry.formats.avro.renames import likely_sources
from registry.formats.avro.resolution import Pair, Reason
from registry.formats.avro.rules import RENAMED_IN_READER, RULES
from registry.formats.base import Incompatibility
from registry.formats.rule import Rule


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair stands: `location` as the reference implementation writes it, and the pointers of both sides."""

    location: str
    path: str
    reader_pointer: str
    writer_pointer: str
    reader_source: str | None
    writer_source: str | None


def finding(reason: Reason, pair: Pair, place: Place, causes: tuple[Incompatibility, ...] = ()) -> Incompatibility:
    """A reason in its place, with its sentence, its pointers, its explanation and its cures."""
    rule_id, suffix, field, values = reason
    rule = RULES[rule_id]
    sides = _Sides.of(rule_id, pair, field, values)
    refused = next((value for value in values if isinstance(value, Refusal)), None)
    if refused is not None:
        return _refused(rule, str(values[0]), refused, place)
    path = place.path if field is None else f"{place.path}.{field.name}"
    names = {"reader": sides.reader, "writer": sides.writer, "name": sides.name, "path": path}
    kind = str(values[0]) if rule_id == "FIELD_WITHOUT_DEFAULT" and values else rule.kind
    own_reader, own_writer = _pointers(pair, place, rule_id, field)
    return Incompatibility(
        rule=rule_id,
        kind=kind,
        reader_pointer=own_reader,
        writer_pointer=own_writer,
        path=path,
        before=sides.before,
        after=sides.after,
        message=f"{path}: {rule.sentence.format_map(names)}",
        severity=rule.severity,
        location=(place.location + suffix) or "/",
        detail=_detail(kind, pair, field, sides),
        why=rule.why.format_map(names),
        remedy_in_reader=_cure_in_reader(rule, pair, field, names),
        remedy_in_writer=rule.in_writer.format_map(names),
        reader_source=place.reader_source if own_reader == place.reader_pointer else pair.reader.source,
        writer_source=place.writer_source if own_writer == place.writer_pointer else pair.writer.source,
        causes=causes,
        example=example(rule_id, pair.reader, pair.writer),
    )


def _refused(rule: Rule, side: str, refused: Refusal, place: Place) -> Incompatibility:
    """The finding of a schema that a decoder refuses as a whole: it stands at what is refused, on that side alone."""
    path = ".".join((place.path, *(field.name for field in refused.fields)))
    pointer, source, label = refused.type.pointer, refused.type.source, type_label(refused.type)
    if refused.fields and not pointer:
        pointer = refused.fields[-1].pointer
    names = {"reader": label, "writer": label, "name": side, "path": path}
    is_reader = side == "reader"
    return Incompatibility(
        rule=rule.id,
        kind=rule.kind,
        reader_pointer=pointer if is_reader else place.reader_pointer,
        writer_pointer=place.writer_pointer if is_reader else pointer,
        path=path,
        before=None,
        after=label,
        message=f"{path}: {rule.sentence.format_map(names)}: {refused.error}",
        severity=rule.severity,
        location=place.location or "/",
        why=rule.why,
        remedy_in_reader=rule.in_reader,
        remedy_in_writer=rule.in_writer,
        reader_source=source if is_reader else place.reader_source,
        writer_source=place.writer_source if is_reader else source,
    )


def _cure_in_reader(rule: Rule, pair: Pair, field: Field | None, names: dict[str, str]) -> str:
    """The rule's cure; for a field that the writer seems to have under another name, the alias first."""
    reader, writer = pair.reader, pair.writer
    if rule.id == "FIELD_WITHOUT_DEFAULT" and isinstance(reader, Record) and isinstance(writer, Record) and field:
        source = likely_sources(reader, writer).get(field.name)
        if source is not None:
            return RENAMED_IN_READER.format_map({**names, "old": source.name})
    return rule.in_reader.format_map(names)


def _pointers(pair: Pair, place: Place, rule_id: str, field: Field | None) -> tuple[str, str]:
    """Where the finding stands on both sides: the use of a type, or the part of its definition that is meant."""
    if field is not None:
        return field.pointer, place.writer_pointer
    part = {"ENUM_SYMBOL_MISSING": "symbols", "ENUM_SYMBOL_DEFAULTED": "symbols", "FIXED_SIZE_CHANGED": "size"}
    if rule_id in part:
        return f"{pair.reader.pointer}/{part[rule_id]}", f"{pair.writer.pointer}/{part[rule_id]}"
    return place.reader_pointer, place.writer_pointer


@dataclass(frozen=True, slots=True)
class _Sides:
    """What a finding says of its two sides: labels for the sentence, JSON values for before and after."""

    reader: str
    writer: str
    name: str
    before: Any
    after: Any

    @classmethod
    def of(cls, rule_id: str, pair: Pair, field: Field | None, values: tuple[object, ...]) -> _Sides:
        reader, writer = type_label(pair.reader), type_label(pair.writer)
        name = field.name if field is not None else ""
        if rule_id == "FIELD_WITHOUT_DEFAULT" and field is not None:
            return cls(reader, writer, name, None, type_label(field.type))
        if rule_id == "DEFAULT_FILLED_DIFFERENTLY" and field is not None:
            return cls(type_label(field.type), writer, name, None, field.default)
        if rule_id == "ALIAS_AMBIGUOUS":
            found = [item.name for item in _fields(values[0])]
            return cls(reader, ", ".join(found), name, found, name)
        if rule_id == "FIELD_ALIASED_TWICE":
            found = [item.name for item in _fields(values[1])]
            return cls(", ".join(found), str(values[0]), name, values[0], found)
        if isinstance(pair.reader, Enum) and isinstance(pair.writer, Enum) and rule_id.startswith("ENUM_"):
            missing = list(values[0]) if isinstance(values[0], list) else []
            shown = ", ".join(missing[:20]) + (" …" if len(missing) > 20 else "")
            default = pair.reader.default or reader
            return cls(default, writer, shown, list(pair.writer.symbols), list(pair.reader.symbols))
        if isinstance(pair.reader, Fixed) and isinstance(pair.writer, Fixed) and rule_id == "FIXED_SIZE_CHANGED":
            return cls(str(pair.reader.size), str(pair.writer.size), name, pair.writer.size, pair.reader.size)
        return cls(reader, writer, name, writer, reader)


def _fields(value: object) -> list[Field]:
    return [item for item in value if isinstance(item, Field)] if isinstance(value, list) else []


def _detail(kind: str, pair: Pair, field: Field | None, sides: _Sides) -> str:
    """The message that the reference implementation gives for its kind."""
    reader, writer = pair.reader, pair.writer
    if kind == "READER_FIELD_MISSING_DEFAULT_VALUE" and field is not None:
        return field.name
    if kind == "TYPE_MISMATCH":
        own = field.type if field is not None else reader
        return f"reader type: {own.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    if kind == "MISSING_UNION_BRANCH":
        return f"reader union lacking writer type: {writer.kind.upper()}"
    if kind == "NAME_MISMATCH" and isinstance(writer, Named):
        return f"expected: {writer.full_name}"
    if kind == "FIXED_SIZE_MISMATCH":
        return f"expected: {sides.writer}, found: {sides.reader}"
    if kind == "MISSING_ENUM_SYMBOLS" and isinstance(reader, Enum) and isinstance(writer, Enum):
        return f"[{', '.join(sorted(writer.symbol_set - reader.symbol_set))}]"
    return ""
