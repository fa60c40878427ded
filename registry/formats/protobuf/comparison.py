"""What became of a datum: the writer's message against what the reader made of its bytes, field by field.

Fields meet by number. Where the reader has the writer's name under another number, that field is meant: a value that
isn't found there is lost for everybody who asks by name. A value that the reader doesn't know is no loss: it stays
among the unknown fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message as Datum

from registry.formats.protobuf.codec import Codec
from registry.formats.protobuf.model import Enum, Field, Message
from registry.formats.protobuf.well_known import is_reinterpreted


@dataclass(frozen=True, slots=True)
class Met:
    """One field of the writer in a datum: `ours` is None if the reader has no such field."""

    path: str
    theirs: Field
    ours: Field | None
    written: Any
    read: Any
    is_set: bool
    is_same: bool


class Comparison:
    """Compares data of one writer with what one reader read."""

    def __init__(self, write: Codec, read: Codec) -> None:
        self._write = write
        self._read = read
        self._counterparts: dict[tuple[int, int], list[tuple[Field, Field | None]]] = {}
        self._enums: dict[tuple[int, int], frozenset[int]] = {}

    def _renumbered(self, theirs: Enum, ours: Enum) -> frozenset[int]:
        key = (id(theirs), id(ours))
        if key not in self._enums:
            self._enums[key] = _renumbered(theirs, ours)
        return self._enums[key]

    def pairs(self, writer: Message, reader: Message) -> list[tuple[Field, Field | None]]:
        """The writer's fields and extensions with the reader's."""
        key = (id(writer), id(reader))
        if key not in self._counterparts:
            named = {field.name: field for field in reader.fields}
            found = []
            for theirs in (*writer.fields, *writer.extended.values()):
                ours = reader.numbered(theirs.number)
                if (ours is None or ours.name != theirs.name) and theirs.name in named:
                    ours = named[theirs.name]
                found.append((theirs, ours))
            self._counterparts[key] = found
        return self._counterparts[key]

    def fields(self, writer: Message, reader: Message, written: Datum, read: Datum, path: str) -> Iterator[Met]:
        """Every field of the writer's message, set or not."""
        for theirs, ours in self.pairs(writer, reader):
            yield self.field(theirs, ours, written, read, f"{path}.{theirs.shown_name}")

    def field(self, theirs: Field, ours: Field | None, written: Datum, read: Datum, path: str) -> Met:
        """One field."""
        is_set = self._write.is_set(written, theirs)
        before = self._write.get(written, theirs)
        if ours is None:
            return Met(path, theirs, ours, before, None, is_set, True)
        after = self._read.get(read, ours)
        is_same = self._is_same(theirs, ours, before, after, is_set=is_set, is_read=self._read.is_set(read, ours))
        return Met(path, theirs, ours, before, after, is_set, is_same)

    def is_kept(
        self, writer: Message, reader: Message, written: Datum, read: Datum, first: Field | None = None
    ) -> bool:
        """Whether the reader has all that was written and that it knows; a field to look at first spares the others."""
        if first is not None:
            ours = reader.numbered(first.number)
            met = [(first, ours)] if ours is not None and ours.name == first.name else []
            if any(not self.field(theirs, ours, written, read, "").is_same for theirs, ours in met):
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
            # A single field without presence that holds zero looks like one that isn't set.
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
        assert field.message is not None  # the caller has looked
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
            return False  # what this runtime gives where the bytes are no text; others put replacement characters
        return same_scalar(before, after)


def same_scalar(before: Any, after: Any) -> bool:
    """Whether two values are the same to a program: a number by its value, a text by its bytes."""
    if isinstance(before, str | bytes) or isinstance(after, str | bytes):
        return bool(_bytes(before) == _bytes(after))
    return bool(before == after or (before != before and after != after))  # noqa: PLR0124 - NaN


def _bytes(value: Any) -> Any:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _renumbered(theirs: Enum, ours: Enum) -> frozenset[int]:
    """The writer's numbers whose names the reader knows under other numbers alone."""
    if theirs is ours or theirs.numbers == ours.numbers:
        return frozenset()
    known: dict[int, list[str]] = {}
    for name, number in theirs.numbers.items():
        if name in ours.numbers:
            known.setdefault(number, []).append(name)
    return frozenset(n for n, names in known.items() if all(ours.numbers[name] != n for name in names))


def _sortable(entry: tuple[Any, Any]) -> tuple[bool, Any]:
    key = entry[0]
    return isinstance(key, str | bytes), _bytes(key)
