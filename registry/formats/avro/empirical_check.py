"""The data check of a pair: sample data encoded with the writer and decoded with the reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from registry.formats.avro.datum import (
    Codec,
    branch_name,
    codec,
    datum_to_json,
    plain,
    plain_error,
    refusal,
    skips_resolution,
)
from registry.formats.avro.decoded_fields import Fastavro, Reading, UnexpectedReading, Unresolved, field_sources
from registry.formats.avro.findings import PairLocation, finding, findings_of, inside, option_place, root_path
from registry.formats.avro.java_decoder import JavaDecoder, TooManySteps
from registry.formats.avro.java_names import JavaStops
from registry.formats.avro.model import AvroSchema, AvroType, Record, Union
from registry.formats.avro.resolution import Edge, Pair, Reason, Resolution, first_match, is_taken_by_order
from registry.formats.avro.sample_data import MAX_DEPTH, Coverage, TooMuchData, reader_with_only_this_problem, record_of
from registry.formats.base import Incompatibility, Judgement, Witness

# The most types, fields and bytes that all encoding and decoding may visit: about 1 to 2 seconds.
MAX_WORK: Final = 1_500_000
# Making a codec visits every type and field several times.
_WORK_OF_CODEC: Final = 8
_MAX_SHOWN_FIELDS: Final = 200

FASTAVRO: Final = "fastavro"
JAVA: Final = "Java"

_BY_ORDER: Final[Reason] = ("UNION_BRANCH_ORDER", "", None, ())

Key = tuple[str, str | None, str | None, str | None, str | None]


class _CodecRefused(Exception):
    """fastavro rejects a part of a schema that it accepts as a whole."""


class Examination:
    """The evidence for one pair of schemas, gathered by the constructor and not changed afterwards.

    `found` has each break and loss with its witness, in the order found. `inner` has those inside a union's branches
    that are causes of the union's own. `disagreements` has those for which fastavro depends on the order of a union's
    branches, and `java` those of data that fastavro keeps and Java's decoder doesn't. `decoders` names the affected
    decoders of each. `is_kept` says for each decoder whether it reads all data unchanged, `is_refused` whether fastavro
    rejects one of the schemas as a whole. `hindrance` says why not all data was checked.
    """

    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self.found: dict[Key, Incompatibility] = {}
        self.inner: dict[Key, Incompatibility] = {}
        self.disagreements: dict[Key, Incompatibility] = {}
        self.java: dict[Key, Incompatibility] = {}
        self.decoders: dict[Key, set[str]] = {}
        self.is_kept = {FASTAVRO: True, JAVA: True}
        self.is_refused = False
        self.hindrance = ""
        self.count = 0
        resolution = Resolution(reader.root, writer.root)
        self.judgement: Judgement = findings_of(resolution)
        self._known = {key_of(item): item for item in _with_causes(self.judgement)}
        self._codecs: dict[int, Codec] = {}
        self._kept: list[AvroType] = []
        self._seen: dict[tuple[int, str, bytes], bool] = {}
        self._work_left = MAX_WORK
        # Findings that the current datum breaks, then those of each part checked before, and of each part being checked
        # now.
        self._told_now: set[Key] = set()
        self._told_by_part: dict[tuple[int, str, bytes], set[Key]] = {}
        self._telling: list[set[Key]] = []
        self._findings: dict[tuple[int, int, PairLocation, str, str | None], Incompatibility] = {}
        self._alone: dict[tuple[int, str, str | None], AvroType | None] = {}
        self._open: list[Pair] = []
        self._java = JavaDecoder(reader.root, writer.root)
        self._is_resolved = not skips_resolution(reader, writer)
        self._fastavro = Fastavro(self._java) if self._is_resolved else Unresolved(self._java)
        # For each part of the current datum that is being checked: whether Java's decoder keeps it.
        self._java_keeps: list[bool] = []
        self._is_changed_now = False
        self._gather(resolution.root, reader, writer)

    def _gather(self, root: Pair, reader: AvroSchema, writer: AvroSchema) -> None:
        location = PairLocation("", root_path(root.reader), "", "", None, None)
        try:
            self._codecs[id(reader.root)], self._codecs[id(writer.root)] = codec(reader), codec(writer)
        except Exception as error:  # noqa: BLE001 - fastavro rejects schemas with errors of many types
            self.hindrance = f"fastavro rejects one of the schemas: {plain_error(error)}"
            return
        try:
            coverage = Coverage(writer.root)
            if coverage.is_empty:
                self.hindrance = "the writer schema has no finite value"
            for datum in coverage.data():
                self.count += 1
                self._look_at(root, location, datum)
                if self.count == 1:
                    first = datum
            if self.count:
                self._note_refusals(root, location, {"reader": reader, "writer": writer}, first)
            if coverage.is_cut:
                self.hindrance = f"the data ends at {MAX_DEPTH} levels, but the schema is nested more deeply"
        except (TooMuchData, TooManySteps, _CodecRefused) as limit:
            self.hindrance = str(limit)
        except RecursionError:
            self.hindrance = "the covering data is nested too deeply"

    def _note_refusals(self, root: Pair, location: PairLocation, sides: Mapping[str, AvroSchema], datum: Any) -> None:
        """Record where fastavro rejects a schema for its attributes; with that schema no datum is readable."""
        for side, schema in sides.items():
            refused = refusal(schema)
            if refused is None:
                continue
            refusal_finding = finding(("SCHEMA_REFUSED", "", None, (side, refused)), root, location)
            witness = Witness(True, datum_to_json(datum), self._codec(root.writer).encode(datum).hex(), refused.error)
            self.found[key_of(refusal_finding)] = replace(refusal_finding, witness=witness)
            self.decoders[key_of(refusal_finding)] = {FASTAVRO}
            self.is_kept[FASTAVRO], self.is_refused = False, True

    def _look_at(self, root: Pair, location: PairLocation, datum: Any) -> None:
        """Record the result of each decoder for a datum of the whole schema."""
        self._told_now.clear()
        self._is_changed_now = False
        by_java = self._by_java(root, location, datum)
        self._java_keeps.append(not by_java)
        is_read = self._examine(root, location, datum, is_inner=False)
        self._java_keeps.pop()
        if not is_read:
            self._widen(root, datum)
        self.is_kept[FASTAVRO] &= is_read and not self._is_changed_now
        self.is_kept[JAVA] &= not by_java
        if is_read and not self._is_changed_now:
            for item in by_java:
                key = key_of(item)
                self.decoders.setdefault(key, set()).add(JAVA)
                self.java.setdefault(key, item)

    def _by_java(self, pair: Pair, location: PairLocation, datum: Any) -> list[Incompatibility]:
        """Return what fails or changes in Java's decoder, each with its witness; empty if it keeps the datum."""
        try:
            value = self._java.decode(pair.reader, pair.writer, datum, location)
            reading = Reading(pair.reader, pair.writer, datum, value, location, decoder=self._java)
        except JavaStops as stop:
            java_finding = self._finding(stop.reason, stop.pair, stop.location)
            witness = Witness(True, datum_to_json(datum), self._codec(pair.writer).encode(datum).hex(), str(stop))
            return [replace(self._known.get(key_of(java_finding), java_finding), severity="break", witness=witness)]
        if not reading.losses:
            return []
        encoded, read = self._codec(pair.writer).encode(datum).hex(), datum_to_json(reading.value)
        return [
            replace(
                finding(loss.reason, loss.pair, loss.location),
                severity="value loss",
                example=loss.note,
                witness=Witness(True, datum_to_json(datum), encoded, read=read, reason=loss.note),
            )
            for loss in reading.losses
        ]

    def _examine(self, pair: Pair, location: PairLocation, datum: Any, *, is_inner: bool) -> bool:
        """Return whether fastavro decodes the datum; record breaks and changes, and whether Java's decoder has them."""
        self._java_keeps.append(self._java_keeps[-1] or not self._by_java(pair, location, datum))
        try:
            return self._examine_by_fastavro(pair, location, datum, is_inner=is_inner)
        finally:
            self._java_keeps.pop()

    def _examine_by_fastavro(self, pair: Pair, location: PairLocation, datum: Any, *, is_inner: bool) -> bool:
        write, read = self._codec(pair.writer), self._codec(pair.reader)
        encoded = write.encode(datum)
        self._spend(write.weight + read.weight + len(encoded))
        key = (id(pair), location.location, encoded)
        if key in self._seen:
            for part_key in self._told_by_part.get(key, ()):
                self._tell(part_key)
            return self._seen[key]
        self._seen[key] = False
        try:
            value = write.decode(encoded, read if self._is_resolved else None)
        except Exception as error:  # noqa: BLE001 - any failure of the decoder is the proof
            witness = Witness(True, datum_to_json(datum), encoded.hex(), plain_error(error), path=_part_path(location))
            self._telling.append(set())
            self._locate(pair, location, datum, encoded, witness, is_inner)
            self._told_by_part[key] = self._telling.pop()
            return False
        self._seen[key] = True
        self._compare(pair, location, datum, value, encoded, is_inner)
        return True

    def _spend(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise TooMuchData("the search for breaking changes was stopped because the schemas are too large")

    def _tell(self, key: Key) -> None:
        """Record that the current datum shows the finding."""
        self._told_now.add(key)
        for keys in self._telling:
            keys.add(key)

    def _widen(self, root: Pair, datum: Any) -> None:
        """Use the whole datum as witness for what breaks in it: the only finding, or the one that fails first."""
        parts = {key: part for key in self._told_now if (part := self.found[key].witness) is not None and part.path}
        is_large = isinstance(datum, dict) and len(datum) > _MAX_SHOWN_FIELDS
        if not parts or (is_large and len(self._told_now) > 1):
            return
        write, read = self._codec(root.writer), self._codec(root.reader)
        encoded = write.encode(datum)
        self._spend(write.weight + read.weight + len(encoded))
        try:
            write.decode(encoded, read)
        except Exception as error:  # noqa: BLE001 - any failure of the decoder is the proof
            whole = Witness(True, datum_to_json(datum), encoded.hex(), plain_error(error))
            for key, part in parts.items():
                if len(self._told_now) == 1 or part.error == whole.error:
                    self.found[key] = replace(self.found[key], witness=whole)

    def _compare(
        self, pair: Pair, location: PairLocation, datum: Any, value: Any, encoded: bytes, is_inner: bool
    ) -> None:
        try:
            reading = Reading(pair.reader, pair.writer, datum, value, location, decoder=self._fastavro)
        except UnexpectedReading as odd:
            path = _part_path(location)
            witness = Witness(True, datum_to_json(datum), encoded.hex(), reason=str(odd), read=plain(value), path=path)
            self._is_changed_now = True
            loss_finding = replace(self._finding(("NOT_DECODED", "", None, ()), pair, location), severity="value loss")
            self._note(loss_finding, witness, is_inner)
            return
        self._is_changed_now = self._is_changed_now or bool(reading.losses)
        for loss in reading.losses:
            read = datum_to_json(reading.value)
            witness = Witness(
                True, datum_to_json(datum), encoded.hex(), read=read, reason=loss.note, path=_part_path(location)
            )
            loss_finding = replace(
                finding(loss.reason, loss.pair, loss.location), severity="value loss", example=loss.note
            )
            self._note(loss_finding, witness, is_inner)

    def _locate(
        self, pair: Pair, location: PairLocation, datum: Any, encoded: bytes, witness: Witness, is_inner: bool
    ) -> None:
        """Find what breaks in a datum: the parts that break on their own, and the reasons of the pair itself."""
        if is_taken_by_order(pair.reader, pair.writer):
            self._note(self._finding(_BY_ORDER, pair, location), witness, is_inner)
            return
        union = self._finding(("UNION_BRANCH_MISSING", "", None, ()), pair, location)
        has_union_finding = pair.options is not None and pair.is_broken and key_of(union) in self._known
        if has_union_finding:
            self._note(union, witness, is_inner)
        parts = list(_parts(pair, location, datum))
        if any(part in self._open for part, _, _ in parts) and pair.options is not None and not has_union_finding:
            return  # it breaks only because the enclosing record does, and is reported there
        self._open.append(pair)
        results = [
            self._examine(part, there, item, is_inner=is_inner or has_union_finding) for part, there, item in parts
        ]
        self._open.pop()
        has_finding = has_union_finding or not all(results)
        for reason in pair.reasons:
            proof = self._proof(reason, pair, datum, encoded, witness, location)
            if proof is not None:
                self._note(self._finding(reason, pair, location), proof, is_inner)
                has_finding = True
        if not has_finding:
            by_order = _by_order(pair, location, datum)
            if by_order is not None:
                # On its own the part is read with its own schema, which is equal on both sides and needs no choice.
                self._note(finding(_BY_ORDER, *by_order), witness, is_inner)
                return
            # Only the data shows this break. The pair's hazard, if there is one, says why.
            rule = next((hazard for hazard in pair.hazards), ("NOT_DECODED", "", None, ()))
            self._note(replace(self._finding(rule, pair, location), severity="break"), witness, is_inner)

    def _proof(
        self, reason: Reason, pair: Pair, datum: Any, encoded: bytes, witness: Witness, location: PairLocation
    ) -> Witness | None:
        """Return the proof of a reader that has only this problem; None if it decodes the datum."""
        rule, _, field, _ = reason
        key = (id(pair), rule, None if field is None else field.name)
        if key not in self._alone:
            self._alone[key] = reader_with_only_this_problem(reason, pair)
        reader = self._alone[key]
        if reader is None:
            return witness
        write, alone, path = self._codec(pair.writer), self._codec(reader), _part_path(location)
        if isinstance(pair.writer, Record) and reason[0] == "FIELD_WITHOUT_DEFAULT" and len(datum) > _MAX_SHOWN_FIELDS:
            # Leave out the fields of a large record that the reader skips.
            write, datum, encoded, path = self._codec(record_of((), pair.writer)), {}, b"", location.path
        self._spend(write.weight + alone.weight + len(encoded))
        try:
            write.decode(encoded, alone)
        except Exception as error:  # noqa: BLE001 - any failure of the decoder is the proof
            return Witness(True, datum_to_json(datum), encoded.hex(), plain_error(error), path=path)
        return None

    def _finding(self, reason: Reason, pair: Pair, location: PairLocation) -> Incompatibility:
        """Like `finding`, but cached, because every symbol of an enum ends up here."""
        rule, _, field, _ = reason
        key = (id(pair.reader), id(pair.writer), location, rule, None if field is None else field.name)
        if key not in self._findings:
            self._findings[key] = finding(reason, pair, location)
        return self._findings[key]

    def _note(self, data_finding: Incompatibility, witness: Witness, is_inner: bool) -> None:
        """Keep the first witness of each finding; a finding of the rules keeps their wording."""
        key = key_of(data_finding)
        self.decoders.setdefault(key, set()).update({FASTAVRO} if self._java_keeps[-1] else {FASTAVRO, JAVA})
        store = self.inner if is_inner else self.found
        if data_finding.rule == _BY_ORDER[0]:
            store = self.disagreements
        if key not in store:
            rule_finding = self._known.get(key)
            example = data_finding.example if rule_finding is None else rule_finding.example or data_finding.example
            store[key] = replace(
                rule_finding or data_finding, severity=data_finding.severity, example=example, witness=witness
            )
        if store is self.found and witness.error:
            self._tell(key)

    def _codec(self, type_: AvroType) -> Codec:
        if id(type_) not in self._codecs:
            self._kept.append(type_)
            try:
                made = self._codecs[id(type_)] = Codec(AvroSchema(type_, {}, frozenset(), ()))
            except Exception as error:
                raise _CodecRefused(f"fastavro rejects a part of the schemas: {plain_error(error)}") from error
            self._spend(_WORK_OF_CODEC * made.weight)
        return self._codecs[id(type_)]


@lru_cache(maxsize=16)
def examination(reader: AvroSchema, writer: AvroSchema) -> Examination:
    """Return the examination of a pair; cached, because a report asks for many witnesses of one pair."""
    return Examination(reader, writer)


def key_of(item: Incompatibility) -> Key:
    """Return the identity of a finding; a named type that is used twice breaks in one place."""
    return item.rule, item.reader_pointer, item.writer_pointer, item.reader_source, item.writer_source


def _part_path(location: PairLocation) -> str:
    """Return the path of a part whose datum is encoded alone; empty for the whole schema."""
    return location.path if location.location else ""


def _with_causes(judgement: Judgement) -> Iterator[Incompatibility]:
    todo = [*judgement.hazards, *judgement.breaks][::-1]
    while todo:
        item = todo.pop()
        yield item
        todo.extend(item.causes)


def _parts(pair: Pair, location: PairLocation, datum: Any) -> Iterable[tuple[Pair, PairLocation, Any]]:
    """Yield the pairs directly inside one that a decoder visits for the datum, each with its part of the datum."""
    if isinstance(pair.writer, Union):
        name, inner = datum
        for edge in pair.edges:
            if edge.branch is not None and branch_name(pair.writer.branches[edge.branch]) == name:
                yield edge.pair, inside(pair, edge, location), inner
    elif isinstance(pair.reader, Union):
        taken = first_match(pair.reader, pair.writer)
        for position, option in zip(pair.positions, pair.options or (), strict=True):
            if taken is not None and position == taken[0]:
                yield option, option_place(pair, position, location), datum
    else:
        yield from _equal_unions(pair, location, datum)
        for edge in pair.edges:
            there = inside(pair, edge, location)
            if edge.writer_field is not None:
                yield edge.pair, there, datum[edge.writer_field.name]
            else:
                for item in datum.values() if isinstance(datum, dict) else datum:
                    yield edge.pair, there, item


def _equal_unions(pair: Pair, location: PairLocation, datum: Any) -> Iterator[tuple[Pair, PairLocation, Any]]:
    """Yield fields whose type is the same union on both sides, for which a resolution has nothing to compare."""
    if isinstance(pair.reader, Record) and isinstance(pair.writer, Record):
        resolved_fields = {edge.reader_field for edge in pair.edges}
        for name, source in field_sources(pair.reader, pair.writer).items():
            field = pair.reader.by_name[name]
            if isinstance(field.type, Union) and field not in resolved_fields:
                part = Resolution(field.type, source.type).root
                yield part, inside(pair, Edge(part, field, source), location), datum[source.name]


def _by_order(pair: Pair, location: PairLocation, datum: Any) -> tuple[Pair, PairLocation] | None:
    """Return the first union inside for which the decoder's choice depends on the order of branches."""
    todo = [(pair, location, datum)]
    while todo:
        current, here, part = todo.pop()
        if is_taken_by_order(current.reader, current.writer):
            return current, here
        todo.extend(_parts(current, here, part))
    return None
