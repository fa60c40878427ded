"""A schema's descriptor as clients without a compiler ask for it, in the established server's order of messages.

Clients number messages by their place in the descriptor. So messages stand as the text declares them, entries of maps
that it writes out among them, and those that a `map<…>` makes behind. A JSON name is there if the text gives it: a
descriptor with the names that a compiler derives would be another schema to the server that it is sent to.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.statements import EnumStatement, MessageStatement

#: the name that the established server gives a descriptor
_NAME: Final = "default"


def serialized(schema: Schema) -> str:
    """The descriptor in base64, without places in the text and without options that nothing declares."""
    descriptor = FileDescriptorProto()
    descriptor.CopyFrom(schema.proto)
    descriptor.ClearField("source_code_info")
    descriptor.name = _NAME
    _forget_undeclared(descriptor)
    _order(descriptor.message_type, schema.statements.types)
    _forget_derived_names(descriptor.message_type, set(_fields_with_json_names(schema.statements.types, "")), "")
    for extension in descriptor.extension:
        extension.ClearField("json_name")
    return base64.b64encode(descriptor.SerializeToString(deterministic=True)).decode("ascii")


def _order(messages: Any, types: Sequence[MessageStatement | EnumStatement]) -> None:
    """Puts messages into the order of the text, those that it doesn't declare behind; and so inside of each."""
    declared = [item for item in types if isinstance(item, MessageStatement)]
    places = {item.name: place for place, item in enumerate(declared)}
    messages.sort(key=lambda message: places.get(message.name, len(places)))
    inside = {item.name: item.types for item in declared}
    for message in messages:
        _order(message.nested_type, inside.get(message.name, ()))


def _fields_with_json_names(types: Iterable[MessageStatement | EnumStatement], scope: str) -> Iterator[str]:
    for item in types:
        if isinstance(item, MessageStatement):
            inside = f"{scope}{item.name}."
            yield from (f"{inside}{field.name}" for field in item.all_fields() if field.json_name is not None)
            yield from _fields_with_json_names([*item.types, *(group.message for group in item.all_groups())], inside)


def _forget_derived_names(messages: Any, declared: set[str], scope: str) -> None:
    for message in messages:
        inside = f"{scope}{message.name}."
        for field in (*message.field, *message.extension):
            if f"{inside}{field.name}" not in declared:
                field.ClearField("json_name")
        _forget_derived_names(message.nested_type, declared, inside)


def _forget_undeclared(message: Any) -> None:
    """Removes options that nothing declares, as a client could make nothing of them."""
    for field, value in message.ListFields():
        if field.name == "options":
            value.ClearField("uninterpreted_option")
        elif field.message_type is not None:
            for item in value if field.is_repeated else (value,):
                _forget_undeclared(item)
