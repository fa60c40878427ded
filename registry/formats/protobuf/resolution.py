"""What a reader makes of one datum: really written, really read, and told field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Datum

from registry.errors import InvalidDatum
from registry.formats.base import FieldOutcome, Outcome, Resolution
from registry.formats.protobuf.codec import Codec, decode_error, plain_json
from registry.formats.protobuf.comparison import Comparison, Met
from registry.formats.protobuf.examples import root_of
from registry.formats.protobuf.model import Field, Message, Schema, full_label, type_label

MAX_OUTCOMES: Final = 5_000
MAX_DEPTH: Final = 30


def resolve(reader: Schema, writer: Schema, datum: Any, message: str | None = None) -> Resolution:
    """What the reader makes of a datum of the writer's message (by name, the first one if None).

    Raises InvalidDatum if it isn't a datum of that message.
    """
    root = root_of(writer) if message is None else writer.main.messages.get(message)
    if root is None:
        raise InvalidDatum(f'the schema has no message "{str(message)[:80]}"')
    write, read = Codec(writer), Codec(reader)
    written = write.from_json(root, datum)
    data = written.SerializeToString(deterministic=True)
    shown = write.json(written)
    target = reader.main.messages.get(root.name)
    if target is None:
        return Resolution(shown, data.hex(), error=f'the reader has no message "{root.name}"')
    try:
        got = read.read(target, data)
    except DecodeError as error:
        return Resolution(shown, data.hex(), error=decode_error(error))
    missing = got.FindInitializationErrors()
    if missing:
        return Resolution(shown, data.hex(), error=f"missing required fields: {', '.join(missing)}"[:300])
    outcomes: list[FieldOutcome] = []
    for outcome in _Outcomes(write, read).of(root, target, written, got, root.name, 0):
        outcomes.append(outcome)
        if len(outcomes) == MAX_OUTCOMES:
            break
    return Resolution(shown, data.hex(), read.json(got), tuple(outcomes))


class _Outcomes:
    def __init__(self, write: Codec, read: Codec) -> None:
        self._write = write
        self._read = read
        self._compare = Comparison(write, read)

    def of(
        self, writer: Message, reader: Message, written: Datum, got: Datum, path: str, depth: int
    ) -> Iterator[FieldOutcome]:
        """The outcomes of one message and of those inside of it."""
        if depth > MAX_DEPTH:
            return
        met: set[int] = set()
        for item in self._compare.fields(writer, reader, written, got, path):
            if item.ours is not None:
                met.add(item.ours.number)
            if not item.is_set and (item.theirs.has_presence or item.theirs.is_repeated) and item.is_same:
                if item.ours is not None and _has_default(item.ours):
                    yield self._filled(item.path, item.ours, got, "not set in the datum")
                continue
            yield self._outcome(item)
            yield from self._inside(item, depth)
        for ours in (*reader.fields, *reader.extended.values()):
            is_new = ours.number not in met and writer.numbered(ours.number) is None
            if is_new and (ours.is_repeated or _has_default(ours)):
                yield self._filled(f"{path}.{ours.shown_name}", ours, got, "the writer has no such field")

    def _filled(self, path: str, ours: Field, got: Datum, note: str) -> FieldOutcome:
        return FieldOutcome(path, "filled", None, _json(ours, self._read.get(got, ours)), note)

    def _outcome(self, item: Met) -> FieldOutcome:
        written = _json(item.theirs, item.written)
        if item.ours is None:
            return FieldOutcome(item.path, "dropped", written, None, "the reader keeps it as an unknown field")
        read = _json(item.ours, item.read)
        outcome: Outcome = "kept"
        note = ""
        if not item.is_same:
            outcome = "converted"
            note = "the value changes"
        elif _shape(item.theirs) != _shape(item.ours):
            outcome, note = "converted", f"from {full_label(item.theirs)} to {full_label(item.ours)}"
        elif item.theirs.name != item.ours.name:
            note = f'the reader calls it "{item.ours.name}"'
        return FieldOutcome(item.path, outcome, written, read, note)

    def _inside(self, item: Met, depth: int) -> Iterator[FieldOutcome]:
        theirs, ours = item.theirs, item.ours
        if ours is None or theirs.message is None or ours.message is None or theirs.is_map != ours.is_map:
            return
        if theirs.is_map:
            yield from self._inside_map(item, theirs.message, ours.message, depth)
        elif theirs.is_repeated and ours.is_repeated:
            for place, (left, right) in enumerate(zip(item.written, item.read, strict=False)):
                yield from self.of(theirs.message, ours.message, left, right, f"{item.path}[{place}]", depth + 1)
        elif not theirs.is_repeated and not ours.is_repeated and item.is_set:
            yield from self.of(theirs.message, ours.message, item.written, item.read, item.path, depth + 1)

    def _inside_map(self, item: Met, theirs: Message, ours: Message, depth: int) -> Iterator[FieldOutcome]:
        left, right = theirs.by_number[2].message, ours.by_number[2].message
        if left is None or right is None:
            return
        for key in item.written:
            if type(key) is type(next(iter(item.read), None)) and key in item.read:
                path = f"{item.path}{{{key}}}"
                yield from self.of(left, right, item.written[key], item.read[key], path, depth + 1)


def _shape(field: Field) -> tuple[str, bool]:
    """What a conversion changes: the type of a value, and whether there are several; names of messages don't matter."""
    return "message" if field.message is not None else type_label(field), field.is_repeated


def _has_default(field: Field) -> bool:
    """Whether a program reads a default where the field isn't set; members of a oneof are asked for by their case."""
    return not field.is_repeated and field.message is None and field.oneof is None


def _json(field: Field, value: Any) -> Any:
    """A value of a field as JSON, an enum by its name."""
    if field.is_map and field.message is not None:
        inner = field.message.by_number[2]
        return {str(key): _single(inner, value[key]) for key in value}
    return [_single(field, item) for item in value] if field.is_repeated else _single(field, value)


def _single(field: Field, value: Any) -> Any:
    if field.enum is not None:
        return field.enum.by_number.get(value, value)
    return plain_json(value)
