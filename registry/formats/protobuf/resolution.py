"""Reading a writer's datum with a reader: really written, really read, and compared field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Datum

from registry.errors import InvalidDatum
from registry.formats.base import FieldOutcome, Outcome, Resolution
from registry.formats.protobuf.dynamic_messages import Codec, decode_error, plain_json, root_of
from registry.formats.protobuf.model import Enum, Field, Message, Schema, full_label, is_reinterpreted, type_label


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """One field of the writer in a datum; `ours` is None if the reader lacks it."""

    path: str
    theirs: Field
    ours: Field | None
    written: Any
    read: Any
    is_set: bool
    is_same: bool


class ValueComparison:
    """A comparison of one writer's data with what one reader read."""

    def __init__(self, write: Codec, read: Codec) -> None:
        self._write = write
        self._read = read
        self._counterparts: dict[tuple[int, int], list[tuple[Field, Field | None]]] = {}
        self._by_number: dict[tuple[int, int], dict[int, Field | None]] = {}
        self._enums: dict[tuple[int, int], frozenset[int]] = {}

    def _renumbered(self, theirs: Enum, ours: Enum) -> frozenset[int]:
        key = (id(theirs), id(ours))
        if key not in self._enums:
            self._enums[key] = _renumbered(theirs, ours)
        return self._enums[key]

    def pairs(self, writer: Message, reader: Message) -> list[tuple[Field, Field | None]]:
        """Return the writer's fields and extensions, each with the reader's field."""
        key = (id(writer), id(reader))
        if key not in self._counterparts:
            named = {field.name: field for field in reader.fields}
            counterparts = []
            for theirs in (*writer.fields, *writer.extended.values()):
                ours = reader.numbered(theirs.number)
                if (ours is None or ours.name != theirs.name) and theirs.name in named:
                    ours = named[theirs.name]
                counterparts.append((theirs, ours))
            self._counterparts[key] = counterparts
        return self._counterparts[key]

    def _counterpart(self, writer: Message, reader: Message, theirs: Field) -> Field | None:
        """Return the reader's field for one of the writer's, as in `pairs`."""
        key = (id(writer), id(reader))
        if key not in self._by_number:
            self._by_number[key] = {field.number: ours for field, ours in self.pairs(writer, reader)}
        return self._by_number[key].get(theirs.number)

    def fields(
        self, writer: Message, reader: Message, written: Datum, read: Datum, path: str
    ) -> Iterator[FieldComparison]:
        """Yield every field of the writer's message, set or not."""
        for theirs, ours in self.pairs(writer, reader):
            yield self.field(theirs, ours, written, read, f"{path}.{theirs.shown_name}")

    def field(self, theirs: Field, ours: Field | None, written: Datum, read: Datum, path: str) -> FieldComparison:
        """Compare one field."""
        is_set = self._write.is_set(written, theirs)
        before = self._write.get(written, theirs)
        if ours is None:
            return FieldComparison(path, theirs, ours, before, None, is_set, True)
        after = self._read.get(read, ours)
        is_same = self._is_same(theirs, ours, before, after, is_set=is_set, is_read=self._read.is_set(read, ours))
        return FieldComparison(path, theirs, ours, before, after, is_set, is_same)

    def is_kept(
        self, writer: Message, reader: Message, written: Datum, read: Datum, first: Field | None = None
    ) -> bool:
        """Return whether the reader has every written value that it knows; `first` is compared first, to save work."""
        if first is not None:
            ours = self._counterpart(writer, reader, first)
            if ours is not None and not self.field(first, ours, written, read, "").is_same:
                return False
        return all(self.field(theirs, ours, written, read, "").is_same for theirs, ours in self.pairs(writer, reader))

    def _is_same(self, theirs: Field, ours: Field, before: Any, after: Any, *, is_set: bool, is_read: bool) -> bool:
        if theirs.is_repeated or ours.is_repeated:
            if not is_set and (not theirs.is_repeated or not is_read):
                return not is_read
            return self._same_lists(theirs, ours, before, after, is_read=is_read)
        if is_set or not theirs.has_presence:
            if theirs.message is not None or ours.message is not None:
                return bool(is_read and self._same(theirs, ours, before, after))
            return self._same(theirs, ours, before, after)
        return True

    def _same_lists(self, theirs: Field, ours: Field, before: Any, after: Any, *, is_read: bool) -> bool:
        if theirs.is_map or ours.is_map:
            return self._same_entries(theirs, ours, before, after)
        left = list(before) if theirs.is_repeated else [before]
        if ours.is_repeated:
            right = list(after)
        else:
            # A single field without presence that is zero looks like an unset one.
            right = [after] if is_read or (left and not ours.has_presence and ours.message is None) else []
        return len(left) == len(right) and all(self._same(theirs, ours, a, b) for a, b in zip(left, right, strict=True))

    def _same_entries(self, theirs: Field, ours: Field, before: Any, after: Any) -> bool:
        if theirs.message is None or ours.message is None or not (theirs.is_repeated and ours.is_repeated):
            return False
        left = self._entries(self._write, theirs, before)
        right = self._entries(self._read, ours, after)
        key, value = ((theirs.message.numbered(n), ours.message.numbered(n)) for n in (1, 2))
        if key[0] is None or key[1] is None or value[0] is None or value[1] is None or len(left) != len(right):
            return False
        if theirs.is_map or ours.is_map:
            left.sort(key=_sortable)
            right.sort(key=_sortable)
        return all(
            self._same(key[0], key[1], a[0], b[0]) and self._same(value[0], value[1], a[1], b[1])
            for a, b in zip(left, right, strict=True)
        )

    @staticmethod
    def _entries(codec: Codec, field: Field, values: Any) -> list[tuple[Any, Any]]:
        if field.is_map:
            return [(key, values[key]) for key in values]
        assert field.message is not None  # the caller has checked
        key, value = field.message.numbered(1), field.message.numbered(2)
        if key is None or value is None:
            return []
        return [(codec.get(item, key), codec.get(item, value)) for item in values]

    def _same(self, theirs: Field, ours: Field, before: Any, after: Any) -> bool:
        if theirs.message is not None or ours.message is not None:
            if theirs.message is None or ours.message is None or is_reinterpreted(theirs.message, ours.message):
                return False
            return self.is_kept(theirs.message, ours.message, before, after)
        if theirs.enum is not None and ours.enum is not None:
            return bool(before == after) and before not in self._renumbered(theirs.enum, ours.enum)
        if ours.kind == "string" and isinstance(after, bytes):
            return False  # this runtime returns bytes that aren't UTF-8; others use replacement characters
        return same_scalar(before, after)


def same_scalar(before: Any, after: Any) -> bool:
    """Return whether two values are the same to a program: numbers by value, text by bytes."""
    if isinstance(before, str | bytes) or isinstance(after, str | bytes):
        return bool(_bytes(before) == _bytes(after))
    return bool(before == after or (before != before and after != after))  # noqa: PLR0124 - NaN


def _bytes(value: Any) -> Any:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _renumbered(theirs: Enum, ours: Enum) -> frozenset[int]:
    """Return the writer's numbers whose names have only other numbers in the reader's enum."""
    if theirs is ours or theirs.numbers == ours.numbers:
        return frozenset()
    names_by_number: dict[int, list[str]] = {}
    for name, number in theirs.numbers.items():
        if name in ours.numbers:
            names_by_number.setdefault(number, []).append(name)
    return frozenset(n for n, names in names_by_number.items() if all(ours.numbers[name] != n for name in names))


def _sortable(entry: tuple[Any, Any]) -> tuple[bool, Any]:
    key = entry[0]
    return isinstance(key, str | bytes), _bytes(key)


MAX_OUTCOMES: Final = 5_000
MAX_DEPTH: Final = 30


def resolve(reader: Schema, writer: Schema, datum: Any, message: str | None = None) -> Resolution:
    """Read a datum of the writer's message (by name, the first one if None) with the reader.

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
    return _resolved(_Outcomes(write, read), root, target, written, data, shown)


class BodyReader:
    """A reader of one writer's bytes with one reader schema."""

    def __init__(self, reader: Schema, writer: Schema) -> None:
        self._write = Codec(writer)
        self._outcomes = _Outcomes(self._write, Codec(reader), is_general=True)
        self._targets = {message.local_name: message for message in _all_messages(reader)}

    def resolve(self, data: bytes, message: Message) -> Resolution:
        """Read a writer's message with the reader; paths have neither indexes nor map keys.

        Raises InvalidDatum if the bytes aren't valid for the writer.
        """
        written = read_message(self._write, message, data)
        # A message keeps its name below the package, so a changed package doesn't matter.
        target = self._targets.get(message.local_name)
        if target is None:
            return Resolution(None, "", error=f'the reader has no message "{message.local_name}"')
        return _resolved(self._outcomes, message, target, written, data, None)


def read_message(codec: Codec, message: Message, data: bytes) -> Datum:
    """Return the datum in the bytes. Raises InvalidDatum."""
    try:
        datum = codec.read(message, data)
    except DecodeError as error:
        raise InvalidDatum(f"{message.name}: {decode_error(error)}", path=message.name) from None
    missing = datum.FindInitializationErrors()
    if missing:
        raise InvalidDatum(f"{message.name}: required fields are missing: {', '.join(missing)}"[:300])
    return datum


def _all_messages(schema: Schema) -> Iterator[Message]:
    """Yield the messages of the schema's own file, including nested ones."""
    stack = list(schema.main.messages.values())
    while stack:
        message = stack.pop()
        yield message
        stack.extend(message.messages.values())


def _resolved(
    outcomes_of: _Outcomes, root: Message, target: Message, written: Datum, data: bytes, shown: Any
) -> Resolution:
    try:
        got = outcomes_of.read.read(target, data)
    except DecodeError as error:
        return Resolution(shown, data.hex(), error=decode_error(error))
    missing = got.FindInitializationErrors()
    if missing:
        return Resolution(shown, data.hex(), error=f"missing required fields: {', '.join(missing)}"[:300])
    outcomes = tuple(islice(outcomes_of.of(root, target, written, got, root.name, 0), MAX_OUTCOMES))
    return Resolution(shown, data.hex(), outcomes_of.read.json(got), outcomes)


class _Outcomes:
    def __init__(self, write: Codec, read: Codec, *, is_general: bool = False) -> None:
        self.read = read
        self._is_general = is_general
        self._compare = ValueComparison(write, read)

    def of(
        self, writer: Message, reader: Message, written: Datum, got: Datum, path: str, depth: int
    ) -> Iterator[FieldOutcome]:
        """Yield the outcomes of one message and its nested messages."""
        if depth > MAX_DEPTH:
            return
        met: set[int] = set()
        for item in self._compare.fields(writer, reader, written, got, path):
            if item.ours is not None:
                met.add(item.ours.number)
            if not item.is_set and (item.theirs.has_presence or item.theirs.is_repeated) and item.is_same:
                if item.ours is not None and _has_default(item.ours):
                    yield self._filled(item.path, item.ours, got, "not set in the record")
                continue
            yield self._outcome(item)
            yield from self._inside(item, depth)
        for ours in (*reader.fields, *reader.extended.values()):
            is_new = ours.number not in met and writer.numbered(ours.number) is None
            if is_new and (ours.is_repeated or _has_default(ours)):
                yield self._filled(f"{path}.{ours.shown_name}", ours, got, "not in the writer schema")

    def _step(self, path: str, sign: str, item: object) -> str:
        return path + sign if self._is_general else f"{path}{sign[0]}{item}{sign[1]}"

    def _filled(self, path: str, ours: Field, got: Datum, note: str) -> FieldOutcome:
        return FieldOutcome(path, "filled", None, _json(ours, self.read.get(got, ours)), note)

    def _outcome(self, item: FieldComparison) -> FieldOutcome:
        written = _json(item.theirs, item.written)
        if item.ours is None:
            return FieldOutcome(item.path, "dropped", written, None, "kept as an unknown field")
        read = _json(item.ours, item.read)
        outcome: Outcome = "kept"
        note = ""
        if not item.is_same:
            outcome = "converted"
            note = "the value changes"
        elif _shape(item.theirs) != _shape(item.ours):
            outcome, note = "converted", f"from {full_label(item.theirs)} to {full_label(item.ours)}"
        elif item.theirs.name != item.ours.name:
            note = f'named "{item.ours.name}" in the reader schema'
        return FieldOutcome(item.path, outcome, written, read, note)

    def _inside(self, item: FieldComparison, depth: int) -> Iterator[FieldOutcome]:
        theirs, ours = item.theirs, item.ours
        if ours is None or theirs.message is None or ours.message is None or theirs.is_map != ours.is_map:
            return
        if theirs.is_map:
            yield from self._inside_map(item, theirs.message, ours.message, depth)
        elif theirs.is_repeated and ours.is_repeated:
            for index, (left, right) in enumerate(zip(item.written, item.read, strict=False)):
                yield from self.of(
                    theirs.message, ours.message, left, right, self._step(item.path, "[]", index), depth + 1
                )
        elif not theirs.is_repeated and not ours.is_repeated and item.is_set:
            yield from self.of(theirs.message, ours.message, item.written, item.read, item.path, depth + 1)

    def _inside_map(self, item: FieldComparison, theirs: Message, ours: Message, depth: int) -> Iterator[FieldOutcome]:
        left, right = theirs.by_number[2].message, ours.by_number[2].message
        if left is None or right is None:
            return
        for key in item.written:
            if type(key) is type(next(iter(item.read), None)) and key in item.read:
                path = self._step(item.path, "{}", key)
                yield from self.of(left, right, item.written[key], item.read[key], path, depth + 1)


def _shape(field: Field) -> tuple[str, bool]:
    """Return what a conversion changes: a value's type, and whether there are several; message names don't matter."""
    return "message" if field.message is not None else type_label(field), field.is_repeated


def _has_default(field: Field) -> bool:
    """Return whether a program reads a default for the unset field; a member of a oneof has none."""
    return not field.is_repeated and field.message is None and field.oneof is None


def _json(field: Field, value: Any) -> Any:
    """Return a field's value as JSON, an enum value by name."""
    if field.is_map and field.message is not None:
        inner = field.message.by_number[2]
        return {str(key): _single(inner, value[key]) for key in value}
    return [_single(field, item) for item in value] if field.is_repeated else _single(field, value)


def _single(field: Field, value: Any) -> Any:
    if field.enum is not None:
        return field.enum.by_number.get(value, value)
    return plain_json(value)
