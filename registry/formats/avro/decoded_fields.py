"""The result of decoding a datum with a reader: the outcome of each field, and the reader's value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from registry.formats.avro.datum import (
    branch_name,
    branch_position,
    change_of_default,
    datum_from_default,
    plain,
    stored,
)
from registry.formats.avro.findings import PairLocation, inside, option_place
from registry.formats.avro.model import Array, AvroType, Enum, Map, Named, Record, RecordField, Union, type_label
from registry.formats.avro.resolution import (
    Edge,
    Pair,
    Reason,
    first_match,
    has_namesakes,
    is_taken_by_order,
    meant_branch,
)
from registry.formats.avro.value_hazards import logical_hazard, meaning, shown
from registry.formats.base import FieldOutcome

_NUMBERS: Final = frozenset({"int", "long", "float", "double"})


@dataclass(frozen=True, slots=True)
class Loss:
    """A changed value: the reason and place of the finding, and the values before and after."""

    reason: Reason
    pair: Pair
    location: PairLocation
    written: Any
    read: Any
    note: str


class UnexpectedReading(Exception):
    """The decoder's value doesn't have the shape that its rules imply."""


def field_sources(reader: Record, writer: Record) -> dict[str, RecordField]:
    """Map each of the reader's fields that a decoder fills from the data to the writer's field."""
    left = dict(reader.by_name)
    by_alias = {alias: field for field in reader.fields for alias in field.aliases}
    sources: dict[str, RecordField] = {}
    for field in writer.fields:
        target = left.get(field.name) or by_alias.get(field.name)
        if target is not None:
            sources[target.name] = field
            left.pop(target.name, None)
    return sources


class Decoder(Protocol):
    """The choices of a decoder for a writer's type: the branch of a union, the source of a field."""

    def branch(
        self, reader: Union, writer: AvroType, around: tuple[Union, int] | None = None
    ) -> tuple[int, AvroType] | None:
        """Return the reader's branch, None if there is none; `around` is (writer's union, position in it)."""

    def sources(self, reader: Record, writer: Record) -> Mapping[str, RecordField]:
        """Map each of the reader's fields that is filled from the data to the writer's field."""

    def is_taken_by_order(self, reader: AvroType, writer: AvroType) -> bool:
        """Return whether the branch depends on the order of branches, although one has the writer's type."""

    def meant(self, reader: Union, writer: Named, around: tuple[Union, int] | None) -> int | None:
        """Return the position of the branch that a named type should be read as; None if any will do."""


class Fastavro:
    """fastavro's choices, which follow the specification.

    If names don't decide which branch is meant, it is the one that the decoder `beside` chooses.
    """

    def __init__(self, beside: Decoder | None = None) -> None:
        self._beside = beside

    def branch(
        self, reader: Union, writer: AvroType, around: tuple[Union, int] | None = None
    ) -> tuple[int, AvroType] | None:
        """Return the first branch that matches."""
        return first_match(reader, writer)

    def sources(self, reader: Record, writer: Record) -> Mapping[str, RecordField]:
        """Match a field by its name before its aliases."""
        return field_sources(reader, writer)

    def is_taken_by_order(self, reader: AvroType, writer: AvroType) -> bool:
        """Return whether a branch of another type precedes the one of the same type."""
        return is_taken_by_order(reader, writer)

    def meant(self, reader: Union, writer: Named, around: tuple[Union, int] | None) -> int | None:
        """Return the branch with the full name or an alias, otherwise the choice of the decoder `beside`."""
        if not has_namesakes(reader, writer):
            return None
        position = meant_branch(reader, writer)
        if position is not None or self._beside is None:
            return position
        match = self._beside.branch(reader, writer, around)
        return None if match is None else match[0]


class Unresolved(Fastavro):
    """fastavro's choices for two equal schemas, between which it resolves nothing."""

    def branch(
        self, reader: Union, writer: AvroType, around: tuple[Union, int] | None = None
    ) -> tuple[int, AvroType] | None:
        """Return the branch of the data."""
        return first_match(reader, writer) if around is None else (around[1], reader.branches[around[1]])

    def is_taken_by_order(self, reader: AvroType, writer: AvroType) -> bool:
        """Return False."""
        return False


class Reading:
    """A comparison of a datum with the decoded result; `value` is the result as a datum of the reader.

    `decoder` has the choice of the reader's branches and fields. With `is_general`, the paths of outcomes have neither
    indexes nor map keys, which are data too.
    """

    def __init__(
        self,
        reader: AvroType,
        writer: AvroType,
        written: Any,
        read: Any,
        location: PairLocation,
        *,
        decoder: Decoder | None = None,
        is_general: bool = False,
    ) -> None:
        self._decoder = decoder or Fastavro()
        self._is_general = is_general
        self.fields: list[FieldOutcome] = []
        self.losses: list[Loss] = []
        self._notes: list[str] = []
        self.value = self._value(reader, writer, written, read, location, location.path)
        if not self.fields or self._notes:
            self._tell(location.path, written, self.value, 0)

    def _value(
        self, reader: AvroType, writer: AvroType, written: Any, read: Any, location: PairLocation, path: str
    ) -> Any:
        if isinstance(writer, Union):
            position = branch_position(writer, written[0])
            there = inside(Pair(reader, writer), Edge(_NO_PAIR, branch=position), location)
            branch = writer.branches[position]
            if isinstance(reader, Union):
                return self._in_union(reader, branch, written[1], read, there, path, (writer, position))
            return self._value(reader, branch, written[1], read, there, path)
        if isinstance(reader, Union):
            return self._in_union(reader, writer, written, read, location, path, None)
        pair = Pair(reader, writer)
        if isinstance(reader, Record) and isinstance(writer, Record):
            return self._record(reader, writer, written, _as(dict, read), pair, location, path)
        if isinstance(reader, Array) and isinstance(writer, Array):
            there = inside(pair, Edge(_NO_PAIR), location)
            items = zip(written, _as(list, read), strict=True)
            return [
                self._value(reader.items, writer.items, ours, theirs, there, self._step(path, "[]", index))
                for index, (ours, theirs) in enumerate(items)
            ]
        if isinstance(reader, Map) and isinstance(writer, Map):
            there = inside(pair, Edge(_NO_PAIR), location)
            entries = _as(dict, read)
            return {
                key: self._value(reader.values, writer.values, item, entries[key], there, self._step(path, "{}", key))
                for key, item in written.items()
            }
        return self._leaf(pair, written, read, location)

    def _step(self, path: str, sign: str, item: object) -> str:
        return path + sign if self._is_general else f"{path}{sign[0]}{item}{sign[1]}"

    def _in_union(
        self,
        reader: Union,
        writer: AvroType,
        written: Any,
        read: Any,
        location: PairLocation,
        path: str,
        around: tuple[Union, int] | None,
    ) -> Any:
        match = self._decoder.branch(reader, writer, around)
        if match is None:
            raise UnexpectedReading(f"{path}: no branch of the reader matches")
        position, branch = match
        before = len(self.losses)
        there = option_place(Pair(reader, writer), position, location)
        value = self._value(branch, writer, written, read, there, path)
        meant = self._decoder.meant(reader, writer, around) if isinstance(writer, Named) else None
        if meant is not None and meant != position:
            note = f"{type_label(writer)} is read as {type_label(branch)}, not as {type_label(reader.branches[meant])}"
            misread: Reason = ("UNION_BRANCH_AMBIGUOUS", "", None, ())
            self._notes.append(note)
            self.losses[before:] = [Loss(misread, Pair(reader, writer), location, plain(written), plain(value), note)]
        elif self._decoder.is_taken_by_order(reader, writer) and self._is_changed(branch, writer, before):
            note = self.losses[-1].note if len(self.losses) > before else "a string is read as bytes"
            reason: Reason = ("UNION_BRANCH_ORDER", "", None, ())
            self.losses[before:] = [Loss(reason, Pair(reader, writer), location, plain(written), plain(value), note)]
        return (branch_name(branch), value)

    def _is_changed(self, branch: AvroType, writer: AvroType, before: int) -> bool:
        return len(self.losses) > before or (branch.kind, writer.kind) == ("bytes", "string")

    def _record(
        self,
        reader: Record,
        writer: Record,
        written: Mapping[str, Any],
        read: Mapping[str, Any],
        pair: Pair,
        location: PairLocation,
        path: str,
    ) -> dict[str, Any]:
        sources = self._decoder.sources(reader, writer)
        value = {}
        for field in reader.fields:
            here = f"{path}.{field.name}"
            source = sources.get(field.name)
            if source is None:
                value[field.name] = self._filled(field, writer, written, read[field.name], pair, location, here)
            else:
                value[field.name] = self._kept(
                    field, source, written[source.name], read[field.name], pair, location, here
                )
        taken = {source.name for source in sources.values()}
        for field in writer.fields:
            if field.name not in taken:
                outcome = FieldOutcome(f"{path}.{field.name}", "dropped", plain(written[field.name]), None)
                self.fields.append(outcome)
        return value

    def _kept(
        self,
        field: RecordField,
        source: RecordField,
        written: Any,
        read: Any,
        pair: Pair,
        location: PairLocation,
        path: str,
    ) -> Any:
        field_count, noted = len(self.fields), len(self._notes)
        there = inside(pair, Edge(_NO_PAIR, field, source), location)
        value = self._value(field.type, source.type, written, read, there, path)
        if source.name != field.name:
            self._notes.append(f'written as "{source.name}", read through its alias')
            if field.name in _names(pair.writer):
                reason: Reason = ("ALIAS_AMBIGUOUS", "", field, ([source],))
                note = f'"{field.name}" gets the value of "{source.name}" in the writer schema'
                self.losses.append(Loss(reason, pair, location, plain(written), plain(value), note))
        if len(self.fields) == field_count or len(self._notes) > noted:
            self._tell(path, written, value, noted)
        return value

    def _filled(
        self,
        field: RecordField,
        writer: Record,
        written: Mapping[str, Any],
        read: Any,
        pair: Pair,
        location: PairLocation,
        path: str,
    ) -> Any:
        if not field.has_default:
            raise UnexpectedReading(f"{path}: the field has neither data nor a default")
        value = datum_from_default(field.type, field.default)
        change = change_of_default(field.type, value, read)
        if change:
            filled: Reason = ("DEFAULT_FILLED_DIFFERENTLY", "", field, ())
            self.losses.append(Loss(filled, pair, location, plain(value), plain(read), f"of the default {change}"))
            value = read
        note = (
            f"from the default in the reader schema, of which {change}"
            if change
            else "from the default in the reader schema"
        )
        self.fields.append(FieldOutcome(path, "filled", None, plain(value), note))
        name = next((name for name in (field.name, *field.aliases) if name in writer.by_name), None)
        if name is not None and plain(written[name]) != plain(value):
            fields = [item for item in _fields(pair.reader) if name in (item.name, *item.aliases)]
            reason: Reason = ("FIELD_ALIASED_TWICE", "", field, (name, fields))
            if len(fields) == 1:
                reason = ("FIELD_ALIAS_ACROSS_NAMESPACES", "", field, ())
            note = f'"{field.name}" gets its default, not the value of "{name}" in the writer schema'
            self.losses.append(Loss(reason, pair, location, plain(written[name]), plain(value), note))
        return value

    def _leaf(self, pair: Pair, written: Any, read: Any, location: PairLocation) -> Any:
        value = stored(pair.reader, read)
        note, rule = _change(pair.reader, pair.writer, written, value)
        if note:
            self._notes.append(note)
        if rule:
            reason: Reason = (rule, _SUFFIXES.get(rule, ""), None, _values(rule, pair))
            self.losses.append(Loss(reason, pair, location, plain(written), plain(value), note))
        return value

    def _tell(self, path: str, written: Any, value: Any, noted: int) -> None:
        """Record the outcome of a field as a whole; notes from inside it make it converted."""
        notes = list(dict.fromkeys(self._notes[noted:]))
        del self._notes[noted:]
        note = "; ".join(notes[:5]) + ("; …" if len(notes) > 5 else "")
        self.fields.append(FieldOutcome(path, "converted" if notes else "kept", plain(written), plain(value), note))


_NO_PAIR: Final = Pair(Union((), "", None), Union((), "", None))
_SUFFIXES: Final = {"ENUM_SYMBOL_DEFAULTED": "/symbols"}


def _change(reader: AvroType, writer: AvroType, written: Any, read: Any) -> tuple[str, str]:
    """Describe the change of a value, and name the rule of the loss; both are empty if nothing changed."""
    if isinstance(reader, Enum):
        return ("", "") if written == read else (f"{written} is read as the default {read}", "ENUM_SYMBOL_DEFAULTED")
    if writer.kind in _NUMBERS and reader.kind != writer.kind:
        if read != written and not math.isnan(read):
            digits = f"{read:.0f}" if isinstance(read, float) else str(read)
            return f"{written} is read as {digits}", "WIDENING_LOSES_PRECISION"
        note, rule = _logical_change(reader, writer, written, read)
        return (note, rule) if rule else (f"widened from {writer.kind} to {reader.kind}", "")
    if isinstance(read, str) and isinstance(written, bytes) and read.encode("utf-8", "replace") != written:
        return "bytes that aren't UTF-8 are read as replacement characters", "BYTES_READ_AS_STRING"
    note, rule = _logical_change(reader, writer, written, read)
    if not rule and reader.kind != writer.kind:
        return f"{writer.kind} read as {reader.kind}", ""
    return note, rule


def _logical_change(reader: AvroType, writer: AvroType, written: Any, read: Any) -> tuple[str, str]:
    rule = logical_hazard(reader, writer)
    if rule is None:
        return "", ""
    if rule == "LOGICAL_TYPE_REINTERPRETED" and meaning(reader, read) != meaning(writer, written):
        kind = writer.logical or writer.kind
        return f"{shown(writer, written)} ({kind}) is read as {shown(reader, read)} ({reader.logical})", rule
    return f"{writer.logical or writer.kind} read as {reader.logical or reader.kind}", ""


def _values(rule: str, pair: Pair) -> tuple[object, ...]:
    """Return the values of the rule's finding besides its place."""
    if isinstance(pair.reader, Enum) and isinstance(pair.writer, Enum) and rule == "ENUM_SYMBOL_DEFAULTED":
        return (sorted(pair.writer.symbol_set - pair.reader.symbol_set),)
    return ()


def _names(type_: AvroType) -> Mapping[str, RecordField]:
    return type_.by_name if isinstance(type_, Record) else {}


def _fields(type_: AvroType) -> tuple[RecordField, ...]:
    return type_.fields if isinstance(type_, Record) else ()


def _as(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise UnexpectedReading(f"the decoder returned {type(value).__name__} where {kind.__name__} is expected")
    return value
