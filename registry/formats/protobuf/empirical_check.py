"""The data check of a pair: sample data of the writer, read with the reader and compared; and proof of one finding."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Datum

from registry.formats.base import Answer, Incompatibility, Truth, Witness
from registry.formats.protobuf.compiler import KNOWN_NAMES
from registry.formats.protobuf.dynamic_messages import Codec, Covering, NoDatum, decode_error
from registry.formats.protobuf.findings import FindingAnchor, SchemaPointer, finding, has_unnamed, rule_of, sides_of
from registry.formats.protobuf.model import Field, Message, Oneof, Schema, is_reinterpreted
from registry.formats.protobuf.resolution import ValueComparison
from registry.formats.protobuf.rules import RULES


@dataclass(frozen=True, slots=True)
class FieldStep:
    """A field that leads from one pair of messages to the next."""

    theirs: Field
    ours: Field


@dataclass(frozen=True, slots=True)
class MessagePair:
    """Two messages that are compared, and the path to them from the root of a record."""

    writer: Message
    reader: Message
    root_writer: Message
    root_reader: Message
    steps: tuple[FieldStep, ...] = ()

    @property
    def path(self) -> str:
        """The path for people: `Order.items[]`."""
        parts = [self.root_writer.local_name]
        for step in self.steps:
            suffix = "{}" if step.theirs.is_map else "[]" if step.theirs.is_repeated else ""
            parts.append(step.theirs.shown_name + suffix)
        return ".".join(parts)


def held_message(field: Field) -> Message | None:
    """Return the message in a field, or in the values of a map."""
    if field.is_map and field.message is not None:
        return field.message.by_number[2].message
    return field.message


def is_known(pair: MessagePair) -> bool:
    """Return whether both sides have the same definition from the known types."""
    return (
        pair.writer.source == pair.reader.source
        and pair.writer.source in KNOWN_NAMES
        and (pair.writer.full_name == pair.reader.full_name)
    )


MAX_DATA: Final = 200_000
_WIDE: Final = 500
_END: Final = object()
MAX_FINDINGS: Final = 2_000
MAX_DEPTH: Final = 90
MAX_NAMES: Final = 300
MAX_TOGETHER: Final = 50
_VALUES_TOGETHER: Final = 3


class TooMuchData(Exception):
    """The covering data has more than MAX_DATA values."""


def truth(reader: Schema, writer: Schema) -> Truth:
    """Return the answer with every finding and its witness; `unknown` if there is more covering data than MAX_DATA."""
    run = _Run(reader, writer)
    try:
        findings = tuple(run.findings())
    except TooMuchData:
        return Truth(
            "unknown", tuple(run.found), f"there are more than {MAX_DATA:,} covering values: not all were tested"
        )
    how = f"{run.count:,} values of {run.pairs:,} messages were written and read{run.remark}"
    if run.is_partial:
        how += f"; messages more than {MAX_DEPTH} levels down were left out"
    missing = dict.fromkeys((*reader.missing_types, *writer.missing_types))
    if missing:
        how += f"; nothing declares {', '.join(missing)[:MAX_NAMES]}, so its content isn't checked"
    verdict: Answer = "no" if findings else "unknown" if run.is_partial or missing else "yes"
    return Truth(verdict, findings, how)


class _OneofMember(NamedTuple):
    """A field of the writer that a oneof of the reader recognizes, with values by which it is recognized."""

    field: Field
    values: tuple[Any, ...]

    @property
    def group(self) -> str | int:
        """The group of fields that the writer can't set together."""
        return self.field.oneof or self.field.number


class _Run:
    def __init__(self, reader: Schema, writer: Schema) -> None:
        self._reader = reader
        self._writer = writer
        self._write = Codec(writer)
        self._read = Codec(reader)
        named = frozenset(number for enum in reader.enums.values() for number in enum.by_number)
        self._covering = Covering(self._write, named)
        self._compare = ValueComparison(self._write, self._read)
        self._requires: dict[str, tuple[Field, ...]] = {}
        self._told: set[tuple[str, str, str]] = set()
        self.found: list[Incompatibility] = []
        self.count = 0
        self._cost = 0
        self.pairs = 0
        self.remark = ""
        self.is_partial = False

    def findings(self) -> list[Incompatibility]:
        """Return all findings; raises TooMuchData."""
        visited: set[tuple[int, int]] = set()
        roots = list(self._roots(self._writer.main.messages, self._reader.main.messages, is_top=True))
        # Top-level messages come first, so that a nested one is a root only if no field of a record leads to it.
        todo = deque(pair for pair in roots if "." not in pair.writer.local_name)
        rest = deque(pair for pair in roots if "." in pair.writer.local_name)
        while todo or rest:
            pair = (todo or rest).popleft()
            key = (id(pair.writer), id(pair.reader))
            if key in visited or is_known(pair):
                continue
            visited.add(key)
            self.pairs += 1
            try:
                for incompatibility in self._pair(pair):
                    self._tell(incompatibility)
            except NoDatum as none:
                self.remark = f"; {none}"
                continue
            if len(pair.steps) < MAX_DEPTH:
                todo.extend(self._inside(pair))
            elif any(field.message is not None for field in pair.writer.fields):
                self.is_partial = True
        return self.found

    def _tell(self, incompatibility: Incompatibility) -> None:
        key = (incompatibility.rule, incompatibility.writer_pointer or "", incompatibility.reader_pointer or "")
        if key not in self._told and len(self.found) < MAX_FINDINGS:
            self._told.add(key)
            self.found.append(incompatibility)

    def _roots(self, writer: dict[str, Message], reader: dict[str, Message], *, is_top: bool) -> Iterator[MessagePair]:
        for name, theirs in writer.items():
            ours = reader.get(name)
            if theirs.is_map_entry:
                continue
            if ours is not None and not ours.is_map_entry:
                yield MessagePair(theirs, ours, theirs, ours)
                yield from self._roots(theirs.messages, ours.messages, is_top=False)
            elif is_top:
                self._lost_root(theirs)

    def _lost_root(self, message: Message) -> None:
        try:
            datum = self._covering.minimal(message)
        except NoDatum:
            return
        error = f'the reader has no message "{message.local_name}"'
        witness = Witness(True, self._write.json(datum), datum.SerializeToString(deterministic=True).hex(), error)
        anchor = FindingAnchor(
            message.local_name, f"#/{message.local_name}", SchemaPointer(""), SchemaPointer.of(message)
        )
        name = message.local_name
        self._tell(finding("MESSAGE_REMOVED", anchor, name=name, writer=message.name, reader=None, witness=witness))

    def _inside(self, pair: MessagePair) -> Iterator[MessagePair]:
        """Yield the pairs that message fields with equal numbers lead to."""
        for theirs, ours in self._compare.pairs(pair.writer, pair.reader):
            if ours is None or theirs.number != ours.number or theirs.is_map != ours.is_map:
                continue
            step = (*pair.steps, FieldStep(theirs, ours))
            messages = held_message(theirs), held_message(ours)
            if messages[0] is not None and messages[1] is not None:
                yield MessagePair(messages[0], messages[1], pair.root_writer, pair.root_reader, step)

    def _pair(self, pair: MessagePair) -> Iterator[Incompatibility]:
        yield from self._required(pair)
        met = [(theirs, ours) for theirs, ours in self._compare.pairs(pair.writer, pair.reader) if ours is not None]
        suspects = self._suspects(pair, met)
        for theirs, ours in met:
            if theirs.number in suspects:
                yield from self._field(pair, theirs, ours)
        for oneof in pair.reader.oneofs.values():
            yield from self._oneof(pair, oneof)

    def _required(self, pair: MessagePair) -> Iterator[Incompatibility]:
        datum = self._covering.minimal(pair.writer)
        read = self._try(pair, datum)
        if isinstance(read, str):
            return
        for name in read.FindInitializationErrors():
            ours = next((field for field in pair.reader.fields if field.name == name), None)
            if ours is None:
                continue  # nested: reported for the message that lacks it
            theirs = pair.writer.numbered(ours.number)
            rule = "REQUIRED_FIELD_ADDED" if theirs is None else "REQUIRED_INTRODUCED"
            witness = self._witness(pair, datum)
            if witness is not None:
                yield self._finding(rule, pair, theirs, ours, witness)

    def _suspects(self, pair: MessagePair, met: list[tuple[Field, Field]]) -> set[int]:
        """Return the numbers of fields whose values change when all are set together, value by value.

        A value that is right together with others is right alone, because fields are read one by one. Members of oneofs
        can't be set together, and fields with another number could be mistaken for each other, so these are always
        tried alone.
        """
        alone = {theirs.number for theirs, ours in met if theirs.oneof is not None or theirs.number != ours.number}
        together = [(theirs, ours, self._covering.values(theirs)) for theirs, ours in met if theirs.number not in alone]
        suspects = alone | self._differing(pair, [(theirs, ours, None) for theirs, ours, _ in together])
        while together:
            filled = [(theirs, ours, next(values, _END)) for theirs, ours, values in together]
            rest = [(item, value) for item, (_, _, value) in zip(together, filled, strict=True) if value is not _END]
            together = [item for item, _ in rest if item[0].number not in suspects]
            suspects |= self._differing(pair, [(item[0], item[1], value) for item, value in rest])
        return suspects

    def _differing(self, pair: MessagePair, filled: list[tuple[Field, Field, Any]]) -> set[int]:
        """Return the fields of a set (None: left out) whose values change; an error is narrowed down."""
        numbers: set[int] = set()
        todo = [filled] if filled else []
        while todo:
            part = todo.pop()
            datum = self._covering.copy(pair.writer)
            for theirs, _, value in part:
                if value is not None:
                    self._write.put(datum, theirs, value)
            read = self._try(pair, datum, len(part))
            if not isinstance(read, str):
                compared = (self._compare.field(theirs, ours, datum, read, "") for theirs, ours, _ in part)
                numbers |= {item.theirs.number for item in compared if not item.is_same}
            elif len(part) == 1:
                numbers.add(part[0][0].number)
            else:
                middle = len(part) // 2
                todo += [part[:middle], part[middle:]]
        return numbers

    def _field(self, pair: MessagePair, theirs: Field, ours: Field) -> Iterator[Incompatibility]:
        rules: set[str] = set()
        for value in self._covering.values(theirs):
            yield from self._tried(pair, theirs, ours, value, rules)
        if not theirs.has_presence and not theirs.is_repeated:
            yield from self._tried(pair, theirs, ours, None, rules)

    def _tried(
        self, pair: MessagePair, theirs: Field, ours: Field, value: Any, rules: set[str]
    ) -> Iterator[Incompatibility]:
        """Yield the findings for the field alone with a value (None: left out)."""
        datum = self._covering.copy(pair.writer)
        if value is not None:
            self._write.put(datum, theirs, value)
        read = self._try_last(pair, datum, theirs, value) if ours.oneof is not None else self._try(pair, datum)
        if not isinstance(read, str):
            met = self._compare.field(theirs, ours, datum, read, "")
            if met.is_same or _is_told_inside(theirs, ours, met.written, read=met.read):
                return
        is_unnamed = value is not None and has_unnamed(theirs, value)
        rule = rule_of(theirs, ours, is_zero=not self._write.is_set(datum, theirs), is_unnamed=is_unnamed)
        if rule in rules:
            return
        witness = self._witness(pair, datum, theirs)
        if witness is not None:
            rules.add(rule)
            yield self._finding(rule, pair, theirs, ours, witness)

    def _oneof(self, pair: MessagePair, oneof: Oneof) -> Iterator[Incompatibility]:
        """Yield a finding if the writer can set two fields together that are members of one oneof for the reader."""
        members = [field for number in oneof.numbers if (field := pair.writer.numbered(number)) is not None]
        if len({field.oneof or field.number for field in members}) < 2:
            return
        takers = [taker for field in members if (taker := self._taker(pair, field)).values]
        plain = [taker for taker in takers if taker.field.oneof is None]
        # Members of other oneofs come last, so that findings about plain fields are shown by plain fields.
        takers.sort(key=lambda taker: taker.field.oneof is not None)
        together = ((first, second) for first, second in combinations(takers, 2) if first.group != second.group)
        tried = (self._both_set_witness(pair, first, second) for first, second in islice(together, MAX_TOGETHER))
        witness = next((proof for proof in tried if proof is not None), None)
        if witness is not None:
            rule = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(plain) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            anchor = FindingAnchor(
                f"{pair.path}.{oneof.name}",
                "",
                SchemaPointer(oneof.pointer, pair.reader.source),
                SchemaPointer.of(pair.writer),
            )
            names = [taker.field.shown_name for taker in (plain if len(plain) > 1 else takers)]
            yield finding(
                rule, anchor, name=oneof.name, writer=None, reader=names, severity="value loss", witness=witness
            )

    def _taker(self, pair: MessagePair, field: Field) -> _OneofMember:
        """Return the field with its first values that the reader finds in its own field if they come last."""
        ours = pair.reader.by_number[field.number]
        datum = self._covering.minimal(pair.writer)

        def is_taken(value: Any) -> bool:
            read = self._try_last(pair, datum, field, value)
            return not isinstance(read, str) and self._read.is_set(read, ours)

        return _OneofMember(field, tuple(islice(filter(is_taken, self._covering.values(field)), _VALUES_TOGETHER)))

    def _alone(self, pair: MessagePair, field: Field, value: Any) -> bytes:
        datum = self._write.new(pair.writer)
        self._write.put(datum, field, value)
        data: bytes = datum.SerializePartialToString(deterministic=True)
        return data

    def _both_set_witness(self, pair: MessagePair, first: _OneofMember, second: _OneofMember) -> Witness | None:
        """Prove that one of two set fields is lost, with the usual or another order of fields; None if neither is."""
        for one, other in product(first.values, second.values):
            datum = self._covering.copy(pair.writer)
            self._write.put(datum, first.field, one)
            self._write.put(datum, second.field, other)
            parts = [self._alone(pair, first.field, one), self._alone(pair, second.field, other)]
            rest = self._required_but(pair, first.field, second.field)
            usual = datum.SerializeToString(deterministic=True)
            for data in (usual, b"".join([rest, *parts]), b"".join([rest, *reversed(parts)])):
                if self._is_lost(pair, datum, data, first.field, second.field):
                    witness = self._witness(pair, datum, written=data)
                    if witness is not None:
                        return witness
        return None

    def _required_but(self, pair: MessagePair, *left_out: Field) -> bytes:
        datum, minimal = self._write.new(pair.writer), self._covering.minimal(pair.writer)
        for field in self._required_of(pair.writer):
            if field not in left_out:
                self._write.put(datum, field, self._write.get(minimal, field))
        data: bytes = datum.SerializePartialToString(deterministic=True)
        return data

    def _required_of(self, message: Message) -> tuple[Field, ...]:
        name = message.full_name
        if name not in self._requires:
            self._requires[name] = tuple(field for field in message.fields if field.is_required)
        return self._requires[name]

    def _is_lost(self, pair: MessagePair, datum: Datum, data: bytes, *fields: Field) -> bool:
        self._spend(pair, len(fields))
        read = self._read_bytes(pair, data)
        if isinstance(read, str):
            return False
        met = (self._compare.field(field, pair.reader.by_number[field.number], datum, read, "") for field in fields)
        return any(not item.is_same for item in met)

    def _try(self, pair: MessagePair, datum: Datum, values: int = 1) -> Datum | str:
        """Read a datum of one pair with the reader, or return its error; `values` is the number of fields set."""
        self._spend(pair, values)
        return self._read_bytes(pair, datum.SerializeToString())

    def _try_last(self, pair: MessagePair, datum: Datum, field: Field, value: Any) -> Datum | str:
        """Like `_try`, with the field last, so that no other member of the reader's oneof replaces it."""
        self._spend(pair, 1)
        last = b"" if value is None else self._alone(pair, field, value)
        rest = self._required_but(pair, field) if value is not None else datum.SerializeToString()
        return self._read_bytes(pair, rest + last)

    def _spend(self, pair: MessagePair, values: int) -> None:
        self.count += values
        # Writing visits every field of a message, set or not: a datum of a very wide message costs as much as many.
        self._cost += values + len(pair.writer.fields) // _WIDE
        if self._cost > MAX_DATA:
            raise TooMuchData

    def _read_bytes(self, pair: MessagePair, data: bytes) -> Datum | str:
        try:
            return self._read.read(pair.reader, data)
        except DecodeError as error:
            return decode_error(error)

    def _witness(
        self, pair: MessagePair, datum: Datum, suspect: Field | None = None, *, written: bytes | None = None
    ) -> Witness | None:
        """Write and read the datum inside a whole record: it is proof only if the whole record shows the change.

        `suspect` is the field that probably shows it, which is checked first. `written` is the datum with its fields in
        another order.
        """
        inside, holders = datum, [pair.root_writer, *(held_message(step.theirs) for step in pair.steps)]
        for step, holder in zip(reversed(pair.steps), reversed(holders[:-1]), strict=True):
            assert holder is not None  # steps lead through messages
            outside = self._covering.copy(holder)
            self._write.put(outside, step.theirs, self._covering.single_value(step.theirs, inside))
            inside = outside
        data = inside.SerializeToString(deterministic=True)
        if written is not None:
            # Another order of the same fields has the same length, so no enclosing length changes.
            data = data.replace(datum.SerializeToString(deterministic=True), written, 1)
            again = self._write.read(pair.root_writer, data)
            if again.SerializeToString(deterministic=True) != inside.SerializeToString(deterministic=True):
                return None
        shown, encoded = self._write.json(inside), data.hex()
        try:
            read = self._read.read(pair.root_reader, data)
        except DecodeError as error:
            return Witness(True, shown, encoded, decode_error(error))
        missing = read.FindInitializationErrors()
        if missing:
            return Witness(True, shown, encoded, f"missing required fields: {', '.join(missing)}"[:300])
        first = pair.steps[0].theirs if pair.steps else suspect
        if self._compare.is_kept(pair.root_writer, pair.root_reader, inside, read, first):
            return None
        got = self._read.json(read)
        if got == shown:  # the difference is omitted on both sides: a zero on one, a default on the other
            shown, got = self._write.json_with_defaults(inside), self._read.json_with_defaults(read)
        return Witness(True, shown, encoded, read=got)

    def _finding(
        self, rule: str, pair: MessagePair, theirs: Field | None, ours: Field, witness: Witness
    ) -> Incompatibility:
        anchor = FindingAnchor(
            f"{pair.path}.{ours.shown_name}",
            f"#/{pair.writer.local_name.replace('.', '/')}/{(theirs or ours).number}",
            SchemaPointer.of(ours),
            SchemaPointer.of(theirs) if theirs is not None else SchemaPointer.of(pair.writer),
        )
        before, after = sides_of(rule, theirs, ours)
        return finding(
            rule,
            anchor,
            name=ours.shown_name,
            writer=before,
            reader=after,
            severity="break" if witness.error else "value loss",
            witness=witness,
        )


def _is_told_inside(theirs: Field, ours: Field, written: object, *, read: object) -> bool:
    """Return whether a loss is inside the messages of both fields, and is reported there."""
    if theirs.number != ours.number or theirs.is_map != ours.is_map or theirs.is_repeated != ours.is_repeated:
        return False
    messages = held_message(theirs), held_message(ours)
    if (
        messages[0] is None
        or messages[1] is None
        or theirs.kind != ours.kind
        or is_reinterpreted(messages[0], messages[1])
    ):
        return False
    if not theirs.is_repeated:
        return True
    if theirs.is_map:
        return bool(set(written) == set(read))  # type: ignore[call-overload]
    return len(written) == len(read)  # type: ignore[arg-type]


# Reported for a oneof as a whole: the data shows it in the same oneof of the reader.
_ONEOFS: Final = frozenset({"MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF"})


def find_witness(truth: Truth, reported: Incompatibility | None) -> Witness:
    """Return the witness of a finding, or (None) of any break; one that isn't found says why."""
    if reported is None:
        first = next((item.witness for item in truth.findings if item.witness is not None), None)
        return first or Witness(False, reason=f"the reader gets all data unchanged: {truth.how}")
    proofs = [item for item in truth.findings if item.witness is not None and _is_same(item, reported)]
    proofs.sort(key=lambda item: item.rule != reported.rule)
    if proofs and proofs[0].witness is not None:
        return proofs[0].witness
    if truth.answer == "unknown":
        return Witness(False, reason=truth.how)
    rule = RULES.get(reported.rule)
    reason = rule.no_proof if rule is not None and rule.no_proof else "the data doesn't show it: no value changes"
    return Witness(False, reason=f"{reason}; {truth.how}")


def _is_same(observed: Incompatibility, reported: Incompatibility) -> bool:
    """Return whether the data shows what a finding says, at the same place or inside it."""
    same_writer = (observed.writer_pointer, observed.writer_source) == (reported.writer_pointer, reported.writer_source)
    same_reader = (observed.reader_pointer, observed.reader_source) == (reported.reader_pointer, reported.reader_source)
    if reported.rule == "REFERENCED_TYPE_CHANGED":
        steps = [step.rstrip("[]{}") for step in observed.path.split(".")[:-1]]
        return observed.writer_source is not None and reported.path.rpartition(".")[2] in steps
    if reported.rule in _ONEOFS:
        return observed.rule in _ONEOFS and same_reader
    if reported.rule == "MESSAGE_REMOVED":
        return observed.rule == reported.rule and same_writer
    return same_writer and (same_reader or observed.rule == "FIELD_RENUMBERED")
