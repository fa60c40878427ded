"""A readable datum of a schema: every field set, of a oneof the first, repeated ones once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import Message as Datum

from registry.errors import InvalidDatum
from registry.formats.protobuf.codec import Codec
from registry.formats.protobuf.covering import Covering, NoDatum
from registry.formats.protobuf.model import Field, Message, Schema

MAX_DEPTH: Final = 6
MAX_FIELDS: Final = 2_000
_SAMPLES: Final[Mapping[str, Any]] = {"double": 1.5, "float": 1.5, "bool": True, "bytes": b"example"}


def root_of(schema: Schema) -> Message:
    """The message that a record holds where nothing says which: the first of the file; raises InvalidDatum."""
    root = next(iter(schema.main.messages.values()), None)
    if root is None:
        raise InvalidDatum("the schema has no message, so it has no data")
    return root


def example(schema: Schema) -> Any:
    """A datum of the first message in the JSON form; raises InvalidDatum where none can be made."""
    codec = Codec(schema)
    try:
        datum = _Maker(codec).make(root_of(schema), 0)
    except NoDatum as none:
        raise InvalidDatum(str(none)) from None
    return codec.json(datum)


class _Maker:
    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._covering = Covering(codec)
        self._left = MAX_FIELDS
        self._open: list[str] = []

    def make(self, message: Message, depth: int) -> Datum:
        """A datum; of a message inside of itself the least that it can be, which shows enough of it."""
        is_known = message.full_name in self._open or message.full_name.startswith("google.protobuf.")
        if is_known or depth >= MAX_DEPTH:
            return self._covering.copy(message)
        self._open.append(message.full_name)
        try:
            return self._filled(message, depth)
        finally:
            self._open.pop()

    def _filled(self, message: Message, depth: int) -> Datum:
        datum = self._codec.new(message)
        seen: set[str] = set()
        for field in message.fields:
            if (field.oneof is not None and field.oneof in seen) or self._left <= 0:
                if field.is_required:
                    self._codec.put(datum, field, self._value(field, depth))
                continue
            seen |= {field.oneof} if field.oneof is not None else set()
            self._left -= 1
            self._codec.put(datum, field, self._value(field, depth))
        return datum

    def _value(self, field: Field, depth: int) -> Any:
        if field.is_map and field.message is not None:
            entry = field.message.by_number
            return [(self._single(entry[1], depth), self._single(entry[2], depth))]
        value = self._single(field, depth)
        return [value] if field.is_repeated else value

    def _single(self, field: Field, depth: int) -> Any:
        if field.message is not None:
            return self.make(field.message, depth + 1)
        if field.enum is not None:
            return next(iter(field.enum.by_number))
        if field.kind == "string":
            return field.name if field.name != "key" else "example"
        return _SAMPLES.get(field.kind, 1)
