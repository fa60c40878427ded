"""Data of a schema as dynamic messages: writing, reading and JSON; sample data and a readable example."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message import Message as Datum
from google.protobuf.message_factory import GetMessageClass

from registry.errors import InvalidDatum
from registry.formats.protobuf import model
from registry.formats.protobuf.model import RANGES, Enum, Field, Schema
from registry.formats.protobuf.model import Message as MessageType

_MAX_DATUM = 1024 * 1024


class Codec:
    """A factory, writer and reader of one schema's messages."""

    def __init__(self, schema: Schema) -> None:
        self._pool = schema.pool
        self._classes: dict[str, Any] = {}
        self._extensions: dict[str, Any] = {}

    def new(self, message: model.Message) -> Message:
        """Return an empty datum."""
        name = message.full_name
        if name not in self._classes:
            self._classes[name] = GetMessageClass(self._pool.FindMessageTypeByName(name))
        datum: Message = self._classes[name]()
        return datum

    def read(self, message: model.Message, data: bytes) -> Message:
        """Return the datum in the bytes; raises DecodeError. Doesn't check for missing required fields."""
        datum = self.new(message)
        datum.ParseFromString(data)
        return datum

    def get(self, datum: Message, field: Field) -> Any:
        """Return a field's value, or its default if it isn't set."""
        return datum.Extensions[self._extension(field)] if field.is_extension else getattr(datum, field.name)

    def is_set(self, datum: Message, field: Field) -> bool:
        """Return whether the data has the field: by its presence, or by a value that isn't zero or empty."""
        if field.is_repeated:
            return len(self.get(datum, field)) > 0
        if field.is_extension:
            return bool(datum.HasExtension(self._extension(field)))
        if field.has_presence:
            return bool(datum.HasField(field.name))
        return bool(self.get(datum, field))

    def put(self, datum: Message, field: Field, value: Any) -> None:
        """Set a field: a list for a repeated field, (key, value) pairs for a map."""
        if field.is_map:
            self._put_entries(datum, field, value)
        elif field.is_repeated:
            values = self.get(datum, field)
            if field.message is not None:
                for item in value:
                    values.add().CopyFrom(item)
            else:
                values.extend(value)
        elif field.message is not None:
            holder = self.get(datum, field)
            holder.SetInParent()
            holder.CopyFrom(value)
        elif field.is_extension:
            datum.Extensions[self._extension(field)] = value
        else:
            setattr(datum, field.name, value)

    def _put_entries(self, datum: Message, field: Field, entries: Any) -> None:
        target = self.get(datum, field)
        for key, value in entries:
            if isinstance(value, Message):
                target[key].CopyFrom(value)
            else:
                target[key] = value

    def _extension(self, field: Field) -> Any:
        if field.name not in self._extensions:
            self._extensions[field.name] = self._pool.FindExtensionByName(field.name)
        return self._extensions[field.name]

    def json(self, datum: Message) -> Any:
        """Return a datum in Protobuf's JSON form with the names of the schema."""
        try:
            return json_format.MessageToDict(datum, preserving_proto_field_name=True, descriptor_pool=self._pool)
        except Exception:  # noqa: BLE001 - well-known types reject values out of range, with many error types
            return plain_json(datum)

    def json_with_defaults(self, datum: Message) -> Any:
        """Like `json`, with the values that a program reads for unset fields, except members of oneofs and messages."""
        filled = type(datum)()
        filled.CopyFrom(datum)
        _fill(filled)
        try:
            return json_format.MessageToDict(
                filled,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
                descriptor_pool=self._pool,
            )
        except Exception:  # noqa: BLE001 - as above
            return plain_json(filled)

    def from_json(self, message: model.Message, value: Any) -> Message:
        """Return the datum for a value in the JSON form; raises InvalidDatum."""
        if not isinstance(value, Mapping):
            raise InvalidDatum(f"a record of {message.full_name} is a JSON object with its fields")
        datum = self.new(message)
        try:
            json_format.ParseDict(value, datum, descriptor_pool=self._pool, max_recursion_depth=100)
            if len(datum.SerializeToString()) > _MAX_DATUM:
                raise InvalidDatum(f"the record has more than {_MAX_DATUM:,} bytes")
        except (json_format.ParseError, EncodeError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidDatum(f"the record doesn't match {message.full_name}: {str(error)[:300]}") from None
        return datum


def _fill(datum: Message) -> None:
    """Set every unset field that has a default, in all nested messages too."""
    for field in datum.DESCRIPTOR.fields:
        if field.is_repeated:
            values: Any = getattr(datum, field.name)
            for value in values.values() if isinstance(values, Mapping) else values:
                if isinstance(value, Message):
                    _fill(value)
        elif field.message_type is not None:
            if datum.HasField(field.name):
                _fill(getattr(datum, field.name))
        elif field.has_presence and field.containing_oneof is None and not datum.HasField(field.name):
            setattr(datum, field.name, field.default_value)


def plain_json(value: Any) -> Any:
    """Return any value of a datum as JSON, without the special forms of well-known types."""
    if isinstance(value, Message):
        return {_name(field): _plain_field(field, inside) for field, inside in value.ListFields()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**53) < value < 2**53:
        return str(value)
    return value


def _name(field: Any) -> str:
    return f"[{field.full_name}]" if field.is_extension else field.name


def _plain_field(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {str(key): plain_json(value[key]) for key in value}
    if field.is_repeated:
        return [plain_json(item) for item in value]
    return plain_json(value)


def decode_error(error: DecodeError) -> str:
    """Return the runtime's message in one line."""
    return " ".join(str(error).split())[:300]


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

    `named` are numbers with a name elsewhere, for example in a reader's enums; unnamed sample numbers avoid them.
    """

    def __init__(self, codec: Codec, named: frozenset[int] = frozenset()) -> None:
        self._codec = codec
        self._named = named
        self._minimal: dict[str, Datum | None] = {}

    def minimal(self, message: MessageType) -> Datum:
        """Return the smallest valid datum, with only required fields; raises NoDatum."""
        name = message.full_name
        if name not in self._minimal:
            self._minimal[name] = None  # a request for it while it is being made means infinite recursion
            datum = self._codec.new(message)
            for field in message.fields:
                if field.is_required:
                    value = next(iter(self.singles(field)))
                    self._codec.put(datum, field, value)
            self._minimal[name] = datum
        cached = self._minimal[name]
        if cached is None:
            raise NoDatum(f'"{name}" requires itself, so it has no finite value')
        return cached

    def copy(self, message: MessageType) -> Datum:
        """Return a minimal datum to fill."""
        datum = self._codec.new(message)
        datum.CopyFrom(self.minimal(message))
        return datum

    def singles(self, field: Field) -> Iterator[Any]:
        """Yield values for one element of a field; the first isn't zero or empty if possible."""
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
        """Yield a positive and a negative number without a name in the enum or in `named`."""
        for numbers in (count(1), count(-1, -1)):
            yield next(number for number in numbers if number not in enum.by_number and number not in self._named)

    def _messages(self, message: MessageType) -> Iterator[Datum]:
        sample = self.copy(message)
        for field in message.fields:
            if field.message is None and not field.is_repeated:
                self._codec.put(sample, field, next(iter(self.singles(field))))
                yield sample
                break
        yield self.minimal(message)

    def values(self, field: Field) -> Iterator[Any]:
        """Yield the values to set the field to, one datum each: lists of 1 and 2 values for a repeated field.

        Yields nothing if the field has a message without a finite datum.
        """
        try:
            yield from self._values(field)
        except NoDatum:
            return

    def _values(self, field: Field) -> Iterator[Any]:
        if field.is_map and field.message is not None:
            yield from self._entries(field.message)
            return
        values = list(self.singles(field))
        if not field.is_repeated:
            yield from values
            return
        if len(values) > 1:
            yield [values[0], values[1]]
            yield [values[1], values[0]]
        else:
            yield [values[0], values[0]]
        for value in values:
            yield [value]

    def _entries(self, entry: MessageType) -> Iterator[list[tuple[Any, Any]]]:
        keys = list(self.singles(entry.by_number[1]))
        values = list(self.singles(entry.by_number[2]))
        for value in values:
            yield [(keys[0], value)]
        for key in keys[1:]:
            yield [(key, values[0])]
        yield [(key, values[0]) for key in keys[:2]]

    def single_value(self, field: Field, inside: Datum) -> Any:
        """Return a value of the field that contains this message, in a list or a map if necessary."""
        if field.is_map and field.message is not None:
            return [(next(iter(self.singles(field.message.by_number[1]))), inside)]
        return [inside] if field.is_repeated else inside


MAX_DEPTH: Final = 6
MAX_FIELDS: Final = 2_000
_SAMPLES: Final[Mapping[str, Any]] = {"double": 1.5, "float": 1.5, "bool": True, "bytes": b"example"}


def root_of(schema: Schema) -> MessageType:
    """Return the default message of a record, the first of the file; raises InvalidDatum."""
    root = next(iter(schema.main.messages.values()), None)
    if root is None:
        raise InvalidDatum("the schema has no message, so it has no data")
    return root


def example(schema: Schema) -> Any:
    """Return a datum of the first message in the JSON form; raises InvalidDatum if none can be made."""
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

    def make(self, message: MessageType, depth: int) -> Datum:
        """Return a datum; a message inside itself gets only its minimal value."""
        is_known = message.full_name in self._open or message.full_name.startswith("google.protobuf.")
        if is_known or depth >= MAX_DEPTH:
            return self._covering.copy(message)
        self._open.append(message.full_name)
        try:
            return self._filled(message, depth)
        finally:
            self._open.pop()

    def _filled(self, message: MessageType, depth: int) -> Datum:
        datum = self._codec.new(message)
        oneofs: set[str] = set()
        for field in message.fields:
            if (field.oneof is not None and field.oneof in oneofs) or self._left <= 0:
                if field.is_required:
                    self._codec.put(datum, field, self._value(field, depth))
                continue
            oneofs |= {field.oneof} if field.oneof is not None else set()
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
