"""Data of a schema as dynamic messages of its private pool: made, written, read, and shown as JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from registry.errors import InvalidDatum
from registry.formats.protobuf import model
from registry.formats.protobuf.model import Field, Schema

_MAX_DATUM = 1024 * 1024


class Codec:
    """Makes, writes and reads messages of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._pool = schema.pool
        self._classes: dict[str, Any] = {}
        self._extensions: dict[str, Any] = {}

    def new(self, message: model.Message) -> Message:
        """An empty datum."""
        name = message.full_name
        if name not in self._classes:
            self._classes[name] = GetMessageClass(self._pool.FindMessageTypeByName(name))
        datum: Message = self._classes[name]()
        return datum

    def read(self, message: model.Message, data: bytes) -> Message:
        """The datum in the bytes; raises DecodeError. Missing required fields are for the caller to look at."""
        datum = self.new(message)
        datum.ParseFromString(data)
        return datum

    def get(self, datum: Message, field: Field) -> Any:
        """A field's value, its default where it isn't set."""
        return datum.Extensions[self._extension(field)] if field.is_extension else getattr(datum, field.name)

    def is_set(self, datum: Message, field: Field) -> bool:
        """Whether the data hold the field: by its presence, or by a value that isn't zero or empty."""
        if field.is_repeated:
            return len(self.get(datum, field)) > 0
        if field.is_extension:
            return bool(datum.HasExtension(self._extension(field)))
        if field.has_presence:
            return bool(datum.HasField(field.name))
        return bool(self.get(datum, field))

    def put(self, datum: Message, field: Field, value: Any) -> None:
        """Sets a field: a list for a repeated one, pairs of key and value for a map."""
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
        """A datum in the JSON form of Protobuf with the names of the schema."""
        try:
            return json_format.MessageToDict(datum, preserving_proto_field_name=True, descriptor_pool=self._pool)
        except Exception:  # noqa: BLE001 - well-known types refuse values outside of their range, by many errors
            return plain_json(datum)

    def json_with_defaults(self, datum: Message) -> Any:
        """The same with what a program reads of fields that aren't set, members of oneofs and messages aside."""
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
        """The datum of a value in the JSON form; raises InvalidDatum."""
        if not isinstance(value, Mapping):
            raise InvalidDatum(f"a datum of {message.full_name} is a JSON object of its fields")
        datum = self.new(message)
        try:
            json_format.ParseDict(value, datum, descriptor_pool=self._pool, max_recursion_depth=100)
            if len(datum.SerializeToString()) > _MAX_DATUM:
                raise InvalidDatum(f"the datum has more than {_MAX_DATUM:,} bytes")
        except (json_format.ParseError, EncodeError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidDatum(f"the datum isn't one of {message.full_name}: {str(error)[:300]}") from None
        return datum


def _fill(datum: Message) -> None:
    """Sets what has a default and isn't set, in all messages inside."""
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
    """Any value of a datum as JSON, without the special forms of well-known types."""
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
    """What the runtime says, in one line."""
    return " ".join(str(error).split())[:300]
