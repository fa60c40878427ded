"""A simulation of Java's decoder: the rules of `GenericDatumReader` in Avro 1.12, without Java.

Java's decoder and fastavro, the two in wide use, resolve schemas differently in three ways. First, Java renames the
writer's types and fields by all aliases of the reader, even if the new name is taken, and fails if two fields then have
one name. Second, it never compares the names of two records outside a union. Third, in a reader's union it prefers the
branch of the same type, with the same full name or, for a record, a matching structure, to one that needs a promotion;
two unions with equal definitions are matched by position.

Source: `Schema`, `Resolver` and `FastReaderBuilder` of org.apache.avro; tests compare this module with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from registry.formats.avro.datum import branch_position, stored
from registry.formats.avro.findings import PairLocation, inside, option_place
from registry.formats.avro.java_defaults import DefaultRefused, java_default
from registry.formats.avro.java_names import JavaStops, RenamedWriter, simple_name
from registry.formats.avro.model import Array, AvroType, Enum, Fixed, Map, Named, Record, RecordField, Union
from registry.formats.avro.resolution import READS, Edge, Pair, Reason, meant_branch, mismatch_rule

MAX_STEPS: Final = 2_000_000
_STEPS_OF_RECORDS: Final = 10
_NO_PAIR: Final = Pair(Union((), "", None), Union((), "", None))


class TooManySteps(Exception):
    """Simulating Java's decoder for the data takes too long."""


class JavaDecoder:
    """Java's decoder for one reader and one writer; also gives Reading the branches and fields that it chooses.

    `refusal` is an error before any datum is read; None if there is none.
    """

    def __init__(self, reader: AvroType, writer: AvroType) -> None:
        self._steps_left = MAX_STEPS
        self._sources: dict[tuple[int, int], dict[str, RecordField]] = {}
        self._equal: dict[tuple[int, int], bool] = {}
        self._missing: dict[tuple[int, int], list[str]] = {}
        self._positions: dict[int, dict[tuple[str, str], int]] = {}
        self._names = RenamedWriter(reader, writer)
        self.refusal = self._names.refusal

    def sources(self, reader: Record, writer: Record) -> Mapping[str, RecordField]:
        """Map each of the reader's fields that is filled from the data to the writer's field."""
        key = (id(reader), id(writer))
        if key not in self._sources:
            names = dict(zip(self._names.fields_of(writer), writer.fields, strict=True))
            self._sources[key] = {name: field for name, field in names.items() if name in reader.by_name}
        return self._sources[key]

    def branch(
        self, reader: Union, writer: AvroType, around: tuple[Union, int] | None = None
    ) -> tuple[int, AvroType] | None:
        """Return the reader's branch for a type, or None; `around` is (writer's union, position in it)."""
        if around is not None and self._is_equivalent(around[0], reader):
            return around[1], reader.branches[around[1]]
        name = self._names.name_of(writer) if isinstance(writer, Named) else ""
        same = self._branches(reader).get((writer.kind, name))
        if same is not None:
            return same, reader.branches[same]
        fits: int | None = None
        for position, branch in enumerate(reader.branches):
            self._step()
            if isinstance(branch, Record) and isinstance(writer, Record) and self._fits(branch, writer):
                fits = position if fits is None or branch.simple == simple_name(name) else fits
        if fits is not None:
            return fits, reader.branches[fits]
        promoted = (
            (position, branch)
            for position, branch in enumerate(reader.branches)
            if branch.kind != writer.kind and writer.kind in READS.get(branch.kind, ())
        )
        return next(promoted, None)

    def _branches(self, reader: Union) -> Mapping[tuple[str, str], int]:
        """Return the first position of each kind and full name; only named types have a name."""
        if id(reader) not in self._positions:
            positions: dict[tuple[str, str], int] = {}
            for position, branch in enumerate(reader.branches):
                positions.setdefault((branch.kind, branch.full_name if isinstance(branch, Named) else ""), position)
            self._positions[id(reader)] = positions
        return self._positions[id(reader)]

    def is_taken_by_order(self, reader: AvroType, writer: AvroType) -> bool:
        """Return False: a branch of the same type is preferred at any position."""
        return False

    def meant(self, reader: Union, writer: Named, around: tuple[Union, int] | None) -> int | None:
        """Return the branch with the full name or an alias."""
        return meant_branch(reader, writer)

    def decode(self, reader: AvroType, writer: AvroType, datum: Any, location: PairLocation) -> Any:
        """Return the reader's value, without branch names; raises JavaStops or TooManySteps."""
        self._step()
        if self.refusal is not None:
            raise self.refusal
        if isinstance(writer, Union):
            position = branch_position(writer, datum[0])
            there = inside(Pair(reader, writer), Edge(_NO_PAIR, branch=position), location)
            branch = writer.branches[position]
            if isinstance(reader, Union):
                return self._in_union(reader, branch, datum[1], there, (writer, position))
            return self.decode(reader, branch, datum[1], there)
        if isinstance(reader, Union):
            return self._in_union(reader, writer, datum, location, None)
        reason = self._error(reader, writer)
        if reason is not None:
            raise _stops(reason, Pair(reader, writer), location)
        return self._value(reader, writer, datum, location)

    def _in_union(
        self, reader: Union, writer: AvroType, datum: Any, location: PairLocation, around: tuple[Union, int] | None
    ) -> Any:
        match = self.branch(reader, writer, around)
        if match is None:
            raise _stops(("UNION_BRANCH_MISSING", "", None, ()), Pair(reader, writer), location)
        return self.decode(match[1], writer, datum, option_place(Pair(reader, writer), match[0], location))

    def _value(self, reader: AvroType, writer: AvroType, datum: Any, location: PairLocation) -> Any:
        """Return the value for two types that have no error between them."""
        pair = Pair(reader, writer)
        if isinstance(reader, Record) and isinstance(writer, Record):
            sources = self.sources(reader, writer)
            value = {}
            for field in reader.fields:
                source = sources.get(field.name)
                if source is None:
                    try:
                        value[field.name] = java_default(field)
                    except DefaultRefused:
                        raise _stops(("NOT_DECODED", "", field, ()), pair, location) from None
                else:
                    there = inside(pair, Edge(_NO_PAIR, field, source), location)
                    value[field.name] = self.decode(field.type, source.type, datum[source.name], there)
            return value
        if isinstance(reader, Array) and isinstance(writer, Array):
            there = inside(pair, Edge(_NO_PAIR), location)
            return [self.decode(reader.items, writer.items, item, there) for item in datum]
        if isinstance(reader, Map) and isinstance(writer, Map):
            there = inside(pair, Edge(_NO_PAIR), location)
            return {key: self.decode(reader.values, writer.values, item, there) for key, item in datum.items()}
        if isinstance(reader, Enum) and isinstance(writer, Enum):
            if datum in reader.symbol_set:
                return datum
            if reader.default is None:
                key = (id(reader), id(writer))
                missing = self._missing.get(key) or sorted(writer.symbol_set - reader.symbol_set)
                self._missing[key] = missing
                raise _stops(("ENUM_SYMBOL_MISSING", "/symbols", None, (missing,)), pair, location)
            return reader.default
        if reader.kind == "string" and isinstance(datum, bytes):
            return datum.decode("utf-8", "replace")  # Java doesn't check the bytes of a string
        if reader.kind == "bytes" and isinstance(datum, str):
            return datum.encode("utf-8")
        return stored(reader, float(datum) if reader.kind in ("float", "double") else datum)

    def _error(self, reader: AvroType, writer: AvroType) -> Reason | None:
        """Return the error for two types that aren't unions, whatever the datum."""
        if reader.kind != writer.kind:
            is_read = writer.kind in READS.get(reader.kind, ())
            return None if is_read else (mismatch_rule(reader, writer), "", None, ())
        if isinstance(reader, Record) and isinstance(writer, Record):
            sources = self.sources(reader, writer)
            missing = next((item for item in reader.fields if item.name not in sources and not item.has_default), None)
            if missing is None:
                return None
            rule = "FIELD_WITHOUT_DEFAULT"
            if any(name in writer.by_name for name in (missing.name, *missing.aliases)):
                rule = "FIELD_ALIAS_ACROSS_NAMESPACES"
            return rule, f"/fields/{missing.position}", missing, ()
        if isinstance(reader, (Enum, Fixed)) and isinstance(writer, Named):
            if simple_name(self._names.name_of(writer)) != reader.simple:
                return "NAME_CHANGED", "/name", None, ()
            if isinstance(reader, Fixed) and isinstance(writer, Fixed) and reader.size != writer.size:
                return "FIXED_SIZE_CHANGED", "/size", None, ()
        return None

    def _fits(self, reader: Record, writer: Record) -> bool:
        """Return whether a record can be read as another, judging by the record and its fields alone."""
        self._step(_STEPS_OF_RECORDS)
        if self._error(reader, writer) is not None:
            return False
        return not any(
            self._is_error(reader.by_name[name].type, source.type)
            for name, source in self.sources(reader, writer).items()
        )

    def _is_error(self, reader: AvroType, writer: AvroType) -> bool:
        if isinstance(writer, Union):
            return False
        if isinstance(reader, Union):
            return self.branch(reader, writer) is None
        return self._error(reader, writer) is not None

    def _is_equivalent(self, writer: AvroType, reader: AvroType) -> bool:
        """Return whether two unions are matched by position because their definitions are equal by simple names."""
        self._step()
        if writer.kind != reader.kind:
            return False
        if isinstance(writer, Named) and isinstance(reader, Named):
            if simple_name(self._names.name_of(writer)) != reader.simple:
                return False
            if isinstance(writer, Record) and isinstance(reader, Record):
                return self._are_equivalent_records(writer, reader)
            if isinstance(writer, Enum) and isinstance(reader, Enum):
                return writer.symbols == reader.symbols
            return not isinstance(writer, Fixed) or not isinstance(reader, Fixed) or writer.size == reader.size
        if isinstance(writer, Array) and isinstance(reader, Array):
            return self._is_equivalent(writer.items, reader.items)
        if isinstance(writer, Map) and isinstance(reader, Map):
            return self._is_equivalent(writer.values, reader.values)
        if isinstance(writer, Union) and isinstance(reader, Union):
            return len(writer.branches) == len(reader.branches) and all(
                self._is_equivalent(ours, theirs) for ours, theirs in zip(writer.branches, reader.branches, strict=True)
            )
        return True

    def _are_equivalent_records(self, writer: Record, reader: Record) -> bool:
        key = (id(writer), id(reader))
        if key not in self._equal:
            self._equal[key] = True  # assumed until disproved, so that recursion ends
            names = tuple(field.name for field in reader.fields)
            self._equal[key] = self._names.fields_of(writer) == names and all(
                self._is_equivalent(ours.type, theirs.type)
                for ours, theirs in zip(writer.fields, reader.fields, strict=True)
            )
        return self._equal[key]

    def _step(self, count: int = 1) -> None:
        self._steps_left -= count
        if self._steps_left < 0:
            raise TooManySteps("simulating Java's decoder takes too long")


def _stops(reason: Reason, pair: Pair, location: PairLocation) -> JavaStops:
    names = [type_.full_name if isinstance(type_, Named) else type_.kind for type_ in (pair.writer, pair.reader)]
    message = f"AvroTypeException: Found {names[0]}, expecting {names[1]}"
    if reason[2] is not None:
        message += f", missing required field {reason[2].name}"
    if reason[0] == "ENUM_SYMBOL_MISSING":
        message = f"AvroTypeException: No match for a symbol of {names[0]} in {names[1]}"
    return JavaStops(message, reason, pair, location)
