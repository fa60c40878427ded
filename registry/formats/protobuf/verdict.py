"""The verdict of Confluent's registry, rule by rule, for all messages of both files and their imports.

Messages are matched by name without the package, fields by number. What Confluent's check ignores (groups, extensions,
services, enums) doesn't break here either; `hazards` and the truth report it. Imported messages are compared if a field
contains them. Based on its public source: `SchemaDiff` of the protobuf provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from registry.formats.base import Incompatibility, Judgement, Truth
from registry.formats.protobuf.findings import (
    FindingAnchor,
    SchemaPointer,
    field_path,
    finding,
    message_hazards,
    plain_finding,
)
from registry.formats.protobuf.model import GROUPS, Field, Message, Oneof, Schema, full_label, type_label

MAX_FINDINGS: Final = 10_000
_NUMERIC: Final = frozenset(GROUPS.values()) - {"text"}

Pair = tuple[Message, Message]


def judge(reader: Schema, writer: Schema) -> Judgement:
    """Return all breaks and hazards of reading the writer's data with the reader."""
    return _Judge(reader, writer).judgement()


@dataclass(slots=True)
class _PairFindings:
    """The findings of one pair of messages, and the fields that lead to pairs of other files."""

    breaks: list[Incompatibility] = field(default_factory=list)
    hazards: list[Incompatibility] = field(default_factory=list)
    met: list[tuple[Field, Field, FindingAnchor, Pair]] = field(default_factory=list)


class _Judge:
    def __init__(self, reader: Schema, writer: Schema) -> None:
        self._reader = reader
        self._writer = writer
        self._done: dict[tuple[int, int], _PairFindings] = {}
        self._count = 0

    def judgement(self) -> Judgement:
        own = _PairFindings()
        reader, writer = self._reader.main, self._writer.main
        if reader.package != writer.package:
            anchor = FindingAnchor(
                reader.package or "(no package)", "#/", SchemaPointer(_package(reader)), SchemaPointer(_package(writer))
            )
            own.breaks.append(plain_finding("PACKAGE_CHANGED", anchor, "package", writer.package, reader.package))
        self._types(own, writer.messages, reader.messages, "#", SchemaPointer(""))
        imported = self._imported(own)
        broken = _broken(imported)
        results = [own, *imported.values()]
        self._tell_broken(results, broken)
        breaks = [item for result in results for item in result.breaks]
        hazards = [*self._not_checked(), *(item for result in results for item in result.hazards)]
        return Judgement(tuple(breaks[:MAX_FINDINGS]), tuple(hazards[:MAX_FINDINGS]))

    def _not_checked(self) -> Iterator[Incompatibility]:
        """Yield a finding for each type that nothing declares, on either side."""
        for name in dict.fromkeys((*self._writer.missing_types, *self._reader.missing_types)):
            sides = (name if name in schema.missing_types else None for schema in (self._writer, self._reader))
            anchor = FindingAnchor(name, "#/", SchemaPointer(""), SchemaPointer(""))
            yield plain_finding("TYPE_NOT_CHECKED", anchor, name, *sides)

    def _imported(self, own: _PairFindings) -> dict[tuple[int, int], _PairFindings]:
        """Return the findings of all pairs of messages in other files that fields lead to, each compared once."""
        todo = [pair for *_, pair in own.met]
        while todo:
            writer, reader = todo.pop()
            key = (id(writer), id(reader))
            if key not in self._done:
                result = self._done[key] = _PairFindings()
                self._messages(result, writer, reader, f"#/{writer.local_name.replace('.', '/')}")
                todo.extend(pair for *_, pair in result.met)
        return self._done

    @staticmethod
    def _tell_broken(results: list[_PairFindings], broken: set[tuple[int, int]]) -> None:
        for result in results:
            for theirs, ours, anchor, (writer, reader) in result.met:
                if (id(writer), id(reader)) in broken:
                    values = {"writer": type_label(theirs), "reader": type_label(ours)}
                    result.breaks.append(plain_finding("REFERENCED_TYPE_CHANGED", anchor, ours.shown_name, **values))

    def _types(
        self,
        result: _PairFindings,
        writer: dict[str, Message],
        reader: dict[str, Message],
        location: str,
        outside: SchemaPointer,
    ) -> None:
        for name, theirs in writer.items():
            if theirs.is_map_entry:
                continue
            ours = reader.get(name)
            here = f"{location}/{name}"
            if theirs.is_group:
                # Confluent's check ignores the content of groups.
                if ours is not None and ours.is_group:
                    result.hazards.extend(message_hazards(theirs, ours, here))
            elif ours is None or ours.is_map_entry or ours.is_group:
                anchor = FindingAnchor(theirs.local_name, here, outside, SchemaPointer.of(theirs))
                result.breaks.append(
                    finding("MESSAGE_REMOVED", anchor, name=theirs.local_name, writer=name, reader=None)
                )
            else:
                self._messages(result, theirs, ours, here)

    def _messages(self, result: _PairFindings, writer: Message, reader: Message, location: str) -> None:
        if self._count <= MAX_FINDINGS:
            before = len(result.breaks)
            self._oneofs(result, writer, reader, location)
            self._fields(result, writer, reader, location)
            result.hazards.extend(message_hazards(writer, reader, location))
            self._count += len(result.breaks) - before
        self._types(result, writer.messages, reader.messages, location, SchemaPointer.of(reader))

    def _oneofs(self, result: _PairFindings, writer: Message, reader: Message, location: str) -> None:
        """Check members of the reader's oneofs that the writer may set together, and removed members.

        Members of one oneof of the writer excluded each other before; each plain field counts separately.
        """
        for name, oneof in reader.oneofs.items():
            numbers = (number for number in oneof.numbers if reader.by_number[number].kind != "group")
            theirs = [writer.by_number[number] for number in numbers if number in writer.by_number]
            plain = [item for item in theirs if item.oneof is None and item.kind != "group"]
            groups = {item.oneof for item in theirs if item.oneof is not None}
            if len(plain) + len(groups) > 1:
                rule = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(plain) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
                anchor = _oneof_anchor(writer, reader, oneof, f"{location}/{name}")
                names = [item.name for item in (plain if len(plain) > 1 else theirs)]
                result.breaks.append(plain_finding(rule, anchor, name, None, names))
        for name, oneof in writer.oneofs.items():
            gone = [number for number in oneof.numbers if number not in reader.by_number]
            # A oneof that is removed as a whole is compatible; one with another name isn't removed.
            if name in reader.oneofs or len(gone) < len(oneof.numbers):
                for number in gone:
                    self._lost_member(result, writer, reader, name, number, location)

    @staticmethod
    def _lost_member(
        result: _PairFindings, writer: Message, reader: Message, oneof: str, number: int, location: str
    ) -> None:
        member = writer.by_number[number]
        if member.kind != "group":
            ours = reader.oneofs.get(oneof)
            side = SchemaPointer(ours.pointer, reader.source) if ours is not None else SchemaPointer.of(reader)
            anchor = FindingAnchor(
                field_path(writer, member), f"{location}/{oneof}/{number}", side, SchemaPointer.of(member)
            )
            result.breaks.append(plain_finding("ONEOF_FIELD_REMOVED", anchor, member.name, type_label(member), None))

    def _fields(self, result: _PairFindings, writer: Message, reader: Message, location: str) -> None:
        for theirs in writer.fields:
            ours = reader.by_number.get(theirs.number)
            if ours is not None:
                # Equal fields, which are most, need no place.
                if not _is_alike(theirs, ours):
                    self._field(result, theirs, ours, _field_anchor(writer, reader, theirs, ours, location))
            elif theirs.label == "required" and theirs.kind != "group":
                anchor = _field_anchor(writer, reader, theirs, None, location)
                values = {"writer": full_label(theirs), "reader": None}
                result.breaks.append(plain_finding("REQUIRED_FIELD_REMOVED", anchor, theirs.name, **values))
        for ours in reader.fields:
            if ours.label == "required" and ours.number not in writer.by_number and ours.kind != "group":
                anchor = _field_anchor(writer, reader, None, ours, location)
                values = {"writer": None, "reader": full_label(ours)}
                result.breaks.append(plain_finding("REQUIRED_FIELD_ADDED", anchor, ours.name, **values))

    def _field(self, result: _PairFindings, theirs: Field, ours: Field, anchor: FindingAnchor) -> None:
        for rule in self._rules(result, theirs, ours, anchor):
            shown = full_label if rule == "FIELD_NUMERIC_LABEL_CHANGED" else type_label
            values = {"writer": shown(theirs), "reader": shown(ours)}
            result.breaks.append(plain_finding(rule, anchor, ours.shown_name, **values))

    def _rules(self, result: _PairFindings, theirs: Field, ours: Field, anchor: FindingAnchor) -> Iterator[str]:
        if theirs.kind == "group" or ours.kind == "group":
            return
        kind = _kind(theirs)
        if kind != _kind(ours):
            yield "FIELD_KIND_CHANGED"
        elif kind == "map" and theirs.message is not None and ours.message is not None:
            for number in (1, 2):
                key = theirs.message.by_number[number], ours.message.by_number[number]
                yield from (rule for rule in self._rules(result, *key, anchor) if "LABEL" not in rule)
        elif kind == "message":
            if theirs.message is None or ours.message is None:
                return
            if theirs.message.local_name != ours.message.local_name:
                yield "FIELD_NAMED_TYPE_CHANGED"
            elif theirs.message.source is not None or ours.message.source is not None:
                result.met.append((theirs, ours, anchor, (theirs.message, ours.message)))
        elif GROUPS[theirs.kind] != GROUPS[ours.kind]:
            yield "FIELD_SCALAR_KIND_CHANGED"
        elif theirs.label and ours.label and theirs.label != ours.label and GROUPS[ours.kind] in _NUMERIC:
            yield "FIELD_NUMERIC_LABEL_CHANGED"


def _broken(imported: dict[tuple[int, int], _PairFindings]) -> set[tuple[int, int]]:
    """Return the pairs that break, directly or through a pair that they contain; recursion ends in a fixpoint."""
    holders: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for key, result in imported.items():
        for *_, (writer, reader) in result.met:
            holders.setdefault((id(writer), id(reader)), []).append(key)
    broken = {key for key, result in imported.items() if result.breaks}
    todo = list(broken)
    while todo:
        for holder in holders.get(todo.pop(), ()):
            if holder not in broken:
                broken.add(holder)
                todo.append(holder)
    return broken


def _is_alike(theirs: Field, ours: Field) -> bool:
    return theirs.kind == ours.kind and theirs.label == ours.label and theirs.message is None and ours.message is None


def _kind(field: Field) -> str:
    """Return one of the three kinds of Confluent's check; an enum is a scalar."""
    if field.is_map:
        return "map"
    return "message" if field.kind == "message" else "scalar"


def _field_anchor(
    writer: Message, reader: Message, theirs: Field | None, ours: Field | None, location: str
) -> FindingAnchor:
    """Return the place of a field; members of a oneof are placed inside it, as in Confluent's check."""
    named = ours or theirs
    number = named.number if named is not None else 0
    holder = reader if ours is not None else writer
    inside = f"/{ours.oneof}" if ours is not None and ours.oneof is not None else ""
    return FindingAnchor(
        field_path(holder, named) if named is not None else holder.local_name,
        f"{location}{inside}/{number}",
        SchemaPointer.of(ours) if ours is not None else SchemaPointer.of(reader),
        SchemaPointer.of(theirs) if theirs is not None else SchemaPointer.of(writer),
    )


def _oneof_anchor(writer: Message, reader: Message, oneof: Oneof, location: str) -> FindingAnchor:
    theirs = writer.oneofs.get(oneof.name)
    writer_side = SchemaPointer(theirs.pointer, writer.source) if theirs is not None else SchemaPointer.of(writer)
    return FindingAnchor(
        f"{reader.local_name}.{oneof.name}", location, SchemaPointer(oneof.pointer, reader.source), writer_side
    )


def _package(file: object) -> str:
    return "/package" if getattr(file, "package", "") else ""


# Breaks of Confluent's check that remain changes of meaning although all values survive.
_OF_MEANING: Final = frozenset({"PACKAGE_CHANGED", "FIELD_NAMED_TYPE_CHANGED", "ONEOF_FIELD_REMOVED"})


def warnings(reader: Schema, writer: Schema, truth: Truth) -> tuple[Incompatibility, ...]:
    """Return the warnings of a pair; breaks are left out if the data shows more at the same place."""
    judgement = judge(reader, writer)
    shown = {_position_key(item) for item in truth.findings}
    breaks = (item for item in judgement.breaks if item.rule in _OF_MEANING and _position_key(item) not in shown)
    hazards = (item for item in judgement.hazards if item.severity == "warning")
    return (*(replace(item, severity="warning") for item in breaks), *hazards)


def _position_key(item: Incompatibility) -> tuple[str | None, ...]:
    return item.reader_pointer, item.reader_source, item.writer_pointer, item.writer_source
