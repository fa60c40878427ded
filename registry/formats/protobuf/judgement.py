"""The verdict as Confluent's registry gives it, rule by rule, over all messages of both files and what they import.

Messages meet by their name without the package, fields by their number. What the established check doesn't look at
(groups, extensions, services, enums) doesn't break here either; `hazards` and the truth tell it. Imported messages
are compared where a field holds them. Facts learnt from its public source: `SchemaDiff` of the protobuf provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from registry.formats.base import Incompatibility, Judgement
from registry.formats.protobuf.hazards import message_hazards
from registry.formats.protobuf.model import Field, Message, Oneof, Schema, full_label, type_label
from registry.formats.protobuf.scalars import GROUPS
from registry.formats.protobuf.sides import Place, Side, field_path, finding, plain_finding

MAX_FINDINGS: Final = 10_000
_NUMERIC: Final = frozenset(GROUPS.values()) - {"text"}

Pair = tuple[Message, Message]


def judge(reader: Schema, writer: Schema) -> Judgement:
    """All breaks and hazards of reading the writer's data with the reader."""
    return _Judge(reader, writer).judgement()


@dataclass(slots=True)
class _Compared:
    """What one pair of messages says, and through which fields it meets pairs of other files."""

    breaks: list[Incompatibility] = field(default_factory=list)
    hazards: list[Incompatibility] = field(default_factory=list)
    met: list[tuple[Field, Field, Place, Pair]] = field(default_factory=list)


class _Judge:
    def __init__(self, reader: Schema, writer: Schema) -> None:
        self._reader = reader
        self._writer = writer
        self._done: dict[tuple[int, int], _Compared] = {}
        self._count = 0

    def judgement(self) -> Judgement:
        own = _Compared()
        reader, writer = self._reader.main, self._writer.main
        if reader.package != writer.package:
            place = Place(reader.package or "(no package)", "#/", Side(_package(reader)), Side(_package(writer)))
            own.breaks.append(plain_finding("PACKAGE_CHANGED", place, "package", writer.package, reader.package))
        self._types(own, writer.messages, reader.messages, "#", Side(""))
        imported = self._imported(own)
        broken = _broken(imported)
        results = [own, *imported.values()]
        self._tell_broken(results, broken)
        breaks = [item for result in results for item in result.breaks]
        hazards = [*self._not_checked(), *(item for result in results for item in result.hazards)]
        return Judgement(tuple(breaks[:MAX_FINDINGS]), tuple(hazards[:MAX_FINDINGS]))

    def _not_checked(self) -> Iterator[Incompatibility]:
        """The types that nothing declares, on either side."""
        for name in dict.fromkeys((*self._writer.missing_types, *self._reader.missing_types)):
            sides = (name if name in schema.missing_types else None for schema in (self._writer, self._reader))
            place = Place(name, "#/", Side(""), Side(""))
            yield plain_finding("TYPE_NOT_CHECKED", place, name, *sides)

    def _imported(self, own: _Compared) -> dict[tuple[int, int], _Compared]:
        """Every pair of messages of other files that fields lead to, each compared once."""
        todo = [pair for *_, pair in own.met]
        while todo:
            writer, reader = todo.pop()
            key = (id(writer), id(reader))
            if key not in self._done:
                result = self._done[key] = _Compared()
                self._messages(result, writer, reader, f"#/{writer.local_name.replace('.', '/')}")
                todo.extend(pair for *_, pair in result.met)
        return self._done

    @staticmethod
    def _tell_broken(results: list[_Compared], broken: set[tuple[int, int]]) -> None:
        for result in results:
            for theirs, ours, place, (writer, reader) in result.met:
                if (id(writer), id(reader)) in broken:
                    values = {"writer": type_label(theirs), "reader": type_label(ours)}
                    result.breaks.append(plain_finding("REFERENCED_TYPE_CHANGED", place, ours.shown_name, **values))

    def _types(
        self, found: _Compared, writer: dict[str, Message], reader: dict[str, Message], location: str, outside: Side
    ) -> None:
        for name, theirs in writer.items():
            if theirs.is_map_entry:
                continue
            ours = reader.get(name)
            here = f"{location}/{name}"
            if theirs.is_group:
                # The established check doesn't look into groups.
                if ours is not None and ours.is_group:
                    found.hazards.extend(message_hazards(theirs, ours, here))
            elif ours is None or ours.is_map_entry or ours.is_group:
                place = Place(theirs.local_name, here, outside, Side.of(theirs))
                found.breaks.append(finding("MESSAGE_REMOVED", place, name=theirs.local_name, writer=name, reader=None))
            else:
                self._messages(found, theirs, ours, here)

    def _messages(self, found: _Compared, writer: Message, reader: Message, location: str) -> None:
        if self._count <= MAX_FINDINGS:
            before = len(found.breaks)
            self._oneofs(found, writer, reader, location)
            self._fields(found, writer, reader, location)
            found.hazards.extend(message_hazards(writer, reader, location))
            self._count += len(found.breaks) - before
        self._types(found, writer.messages, reader.messages, location, Side.of(reader))

    def _oneofs(self, found: _Compared, writer: Message, reader: Message, location: str) -> None:
        """Members of the reader's oneofs that the writer may set together, and members that are gone.

        What came from one oneof of the writer excluded each other before; each plain field stands for itself.
        """
        for name, oneof in reader.oneofs.items():
            numbers = (number for number in oneof.numbers if reader.by_number[number].kind != "group")
            theirs = [writer.by_number[number] for number in numbers if number in writer.by_number]
            plain = [item for item in theirs if item.oneof is None and item.kind != "group"]
            groups = {item.oneof for item in theirs if item.oneof is not None}
            if len(plain) + len(groups) > 1:
                rule = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(plain) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
                place = _oneof_place(writer, reader, oneof, f"{location}/{name}")
                names = [item.name for item in (plain if len(plain) > 1 else theirs)]
                found.breaks.append(plain_finding(rule, place, name, None, names))
        for name, oneof in writer.oneofs.items():
            gone = [number for number in oneof.numbers if number not in reader.by_number]
            # A oneof that is gone as a whole is compatible; one that lives on under another name isn't gone.
            if name in reader.oneofs or len(gone) < len(oneof.numbers):
                for number in gone:
                    self._lost_member(found, writer, reader, name, number, location)

    @staticmethod
    def _lost_member(
        found: _Compared, writer: Message, reader: Message, oneof: str, number: int, location: str
    ) -> None:
        member = writer.by_number[number]
        if member.kind != "group":
            ours = reader.oneofs.get(oneof)
            side = Side(ours.pointer, reader.source) if ours is not None else Side.of(reader)
            place = Place(field_path(writer, member), f"{location}/{oneof}/{number}", side, Side.of(member))
            found.breaks.append(plain_finding("ONEOF_FIELD_REMOVED", place, member.name, type_label(member), None))

    def _fields(self, found: _Compared, writer: Message, reader: Message, location: str) -> None:
        for theirs in writer.fields:
            ours = reader.by_number.get(theirs.number)
            if ours is not None:
                # What is equal needs no place; most fields are.
                if not _is_alike(theirs, ours):
                    self._field(found, theirs, ours, _field_place(writer, reader, theirs, ours, location))
            elif theirs.label == "required" and theirs.kind != "group":
                place = _field_place(writer, reader, theirs, None, location)
                values = {"writer": full_label(theirs), "reader": None}
                found.breaks.append(plain_finding("REQUIRED_FIELD_REMOVED", place, theirs.name, **values))
        for ours in reader.fields:
            if ours.label == "required" and ours.number not in writer.by_number and ours.kind != "group":
                place = _field_place(writer, reader, None, ours, location)
                values = {"writer": None, "reader": full_label(ours)}
                found.breaks.append(plain_finding("REQUIRED_FIELD_ADDED", place, ours.name, **values))

    def _field(self, found: _Compared, theirs: Field, ours: Field, place: Place) -> None:
        for rule in self._rules(found, theirs, ours, place):
            shown = full_label if rule == "FIELD_NUMERIC_LABEL_CHANGED" else type_label
            values = {"writer": shown(theirs), "reader": shown(ours)}
            found.breaks.append(plain_finding(rule, place, ours.shown_name, **values))

    def _rules(self, found: _Compared, theirs: Field, ours: Field, place: Place) -> Iterator[str]:
        if theirs.kind == "group" or ours.kind == "group":
            return
        kind = _kind(theirs)
        if kind != _kind(ours):
            yield "FIELD_KIND_CHANGED"
        elif kind == "map" and theirs.message is not None and ours.message is not None:
            for number in (1, 2):
                key = theirs.message.by_number[number], ours.message.by_number[number]
                yield from (rule for rule in self._rules(found, *key, place) if "LABEL" not in rule)
        elif kind == "message":
            if theirs.message is None or ours.message is None:
                return
            if theirs.message.local_name != ours.message.local_name:
                yield "FIELD_NAMED_TYPE_CHANGED"
            elif theirs.message.source is not None or ours.message.source is not None:
                found.met.append((theirs, ours, place, (theirs.message, ours.message)))
        elif GROUPS[theirs.kind] != GROUPS[ours.kind]:
            yield "FIELD_SCALAR_KIND_CHANGED"
        elif theirs.label and ours.label and theirs.label != ours.label and GROUPS[ours.kind] in _NUMERIC:
            yield "FIELD_NUMERIC_LABEL_CHANGED"


def _broken(imported: dict[tuple[int, int], _Compared]) -> set[tuple[int, int]]:
    """The pairs that break, by themselves or through a pair that they hold; recursion ends in a fixpoint."""
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
    """The three kinds of the established check; an enum is a scalar."""
    if field.is_map:
        return "map"
    return "message" if field.kind == "message" else "scalar"


def _field_place(writer: Message, reader: Message, theirs: Field | None, ours: Field | None, location: str) -> Place:
    """Members of a oneof of the reader are placed inside of it, as the established check does."""
    named = ours or theirs
    number = named.number if named is not None else 0
    holder = reader if ours is not None else writer
    inside = f"/{ours.oneof}" if ours is not None and ours.oneof is not None else ""
    return Place(
        field_path(holder, named) if named is not None else holder.local_name,
        f"{location}{inside}/{number}",
        Side.of(ours) if ours is not None else Side.of(reader),
        Side.of(theirs) if theirs is not None else Side.of(writer),
    )


def _oneof_place(writer: Message, reader: Message, oneof: Oneof, location: str) -> Place:
    theirs = writer.oneofs.get(oneof.name)
    writer_side = Side(theirs.pointer, writer.source) if theirs is not None else Side.of(writer)
    return Place(f"{reader.local_name}.{oneof.name}", location, Side(oneof.pointer, reader.source), writer_side)


def _package(file: object) -> str:
    return "/package" if getattr(file, "package", "") else ""
