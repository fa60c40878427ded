"""Data that cover a message: every field alone with the values at its limits, the others left out.

What a reader makes of one field doesn't depend on the others, but for members of one oneof, which are also set in
pairs. An open enum is also set to numbers that have no name. So these data show every loss that any datum shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from google.protobuf.message import Message as Datum

from registry.formats.protobuf.codec import Codec
from registry.formats.protobuf.model import Enum, Field, Message
from registry.formats.protobuf.scalars import RANGES

_BIG: Final = 3.4028234663852886e38
_SCALARS: Final[Mapping[str, tuple[Any, ...]]] = {
    "float": (1.5, 0.0, -_BIG, float("inf"), float("nan")),
    "double": (1.5, 0.0, -1.7976931348623157e308, 1e-300, float("-inf"), float("nan")),
    "string": ("a", "", "é€😀", "\x08\x01", "12345678"),
    "bytes": (b"a", b"", b"\xff\xfe", b"\x08\x01", b"\x00\x80"),
    "bool": (True, False),
}


class NoDatum(Exception):
    """No finite datum exists: a required field leads back to its own message."""


class Covering:
    """The covering data of the messages of one schema.

    `named` are numbers that stand for something elsewhere, say in the enums of a reader: an unnamed one is none of them.
    """

    def __init__(self, codec: Codec, named: frozenset[int] = frozenset()) -> None:
        self._codec = codec
        self._named = named
        self._minimal: dict[str, Datum | None] = {}

    def minimal(self, message: Message) -> Datum:
        """The smallest valid datum: required fields alone; raises NoDatum."""
        name = message.full_name
        if name not in self._minimal:
            self._minimal[name] = None  # what is asked for again while it is being made has no end
            datum = self._codec.new(message)
            for field in message.fields:
                if field.is_required:
                    value = next(iter(self.singles(field)))
                    self._codec.put(datum, field, value)
            self._minimal[name] = datum
        found = self._minimal[name]
        if found is None:
            raise NoDatum(f'"{name}" requires itself: it has no finite datum')
        return found

    def copy(self, message: Message) -> Datum:
        """A minimal datum to fill."""
        datum = self._codec.new(message)
        datum.CopyFrom(self.minimal(message))
        return datum

    def singles(self, field: Field) -> Iterator[Any]:
        """Values of one element of a field; the first isn't zero or empty where there is such a value."""
        if field.message is not None:
            yield from self._messages(field.message)
        elif field.enum is not None:
            yield from sorted(field.enum.by_number, key=lambda number: (number == 0, number))
            if not field.enum.is_closed:
                yield from self._unnamed(field.enum)
        elif field.kind in _SCALARS:
            yield from _SCALARS[field.kind]
        else:
            low, high = RANGES[field.kind]
            yield from dict.fromkeys((1, low, high, 0, 2 if low == 0 else -1))

    def _unnamed(self, enum: Enum) -> Iterator[int]:
        """A positive and a negative number that neither the enum nor anybody else has a name for."""
        for numbers in (count(1), count(-1, -1)):
            yield next(number for number in numbers if number not in enum.by_number and number not in self._named)

    def _messages(self, message: Message) -> Iterator[Datum]:
        sample = self.copy(message)
        for field in message.fields:
            if field.message is None and not field.is_repeated:
                self._codec.put(sample, field, next(iter(self.singles(field))))
                yield sample
                break
        yield self.minimal(message)

    def values(self, field: Field) -> Iterator[Any]:
        """What the field is set to, one datum after another: lists of 1 and 2 values where it is repeated.

        Nothing where it holds a message that has no finite datum.
        """
        try:
            yield from self._values(field)
        except NoDatum:
            return

    def _values(self, field: Field) -> Iterator[Any]:
        if field.is_map and field.message is not None:
            yield from self._entries(field.message)
            return
        found = list(self.singles(field))
        if not field.is_repeated:
            yield from found
            return
        if len(found) > 1:
            yield [found[0], found[1]]
            yield [found[1], found[0]]
        else:
            yield [found[0], found[0]]
        for value in found:
            yield [value]

    def _entries(self, entry: Message) -> Iterator[list[tuple[Any, Any]]]:
        keys = list(self.singles(entry.by_number[1]))
        values = list(self.singles(entry.by_number[2]))
        for value in values:
            yield [(keys[0], value)]
        for key in keys[1:]:
            yield [(key, values[0])]
        yield [(key, values[0]) for key in keys[:2]]

    def single_value(self, field: Field, inside: Datum) -> Any:
        """A value of the field that holds this message: in a list or a map where it has to be."""
        if field.is_map and field.message is not None:
            return [(next(iter(self.singles(field.message.by_number[1]))), inside)]
        return [inside] if field.is_repeated else inside
