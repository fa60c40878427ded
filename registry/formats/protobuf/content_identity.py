"""The content of a schema as one number: equal for texts that define the same, whatever their order and layout."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import Message

from registry.formats.base import content_fingerprint
from registry.formats.protobuf.compiler import KNOWN_NAMES, MAIN
from registry.formats.protobuf.options import Options


def fingerprint(protos: Iterable[FileDescriptorProto], options: Options) -> str:
    """SHA-256 (hexadecimal) of the main file and of all that it imports by path, the known types aside.

    Each file is written once, so that a graph of imports costs no more than its files.
    """
    digests = {proto.name: _digest(proto, options) for proto in protos if proto.name not in KNOWN_NAMES}
    main = digests.pop(MAIN)
    return content_fingerprint(main, sorted(digests.items()))


def _digest(proto: FileDescriptorProto, options: Options) -> str:
    """SHA-256 of the descriptor without name and places: fields and values by number, imports sorted.

    The order of messages stays: it numbers the messages in the header of every record. So does the first value of an
    enum: it is the default.
    """
    file = FileDescriptorProto()
    file.CopyFrom(proto)
    file.ClearField("source_code_info")
    file.ClearField("name")
    _sort_imports(file)
    _move_made(file.message_type, file.extension)
    for message in file.message_type:
        _sort_message(message, options)
    for enum in file.enum_type:
        _sort_enum(enum, options)
    _order(file.extension, lambda field: (field.extendee, field.number))
    for field in file.extension:
        _known_options(field, options)
    _order(file.service, lambda service: service.name)
    for service in file.service:
        _order(service.method, lambda method: method.name)
        for part in (service, *service.method):
            _known_options(part, options)
    _known_options(file, options)
    return hashlib.sha256(file.SerializeToString(deterministic=True)).hexdigest()


def _sort_imports(file: FileDescriptorProto) -> None:
    names = list(file.dependency)
    public = sorted(names[index] for index in file.public_dependency)
    weak = sorted(names[index] for index in file.weak_dependency)
    names.sort()
    file.dependency[:] = names
    file.public_dependency[:] = [names.index(name) for name in public]
    file.weak_dependency[:] = [names.index(name) for name in weak]
    file.option_dependency[:] = sorted(file.option_dependency)


def _sort_message(message: DescriptorProto, options: Options) -> None:
    _sort_oneofs(message)
    _order(message.field, lambda field: field.number)
    _order(message.extension, lambda field: (field.extendee, field.number))
    _order(message.reserved_range, lambda span: span.start)
    _order(message.extension_range, lambda span: span.start)
    message.reserved_name[:] = sorted(message.reserved_name)
    _move_made(message.nested_type, (*message.field, *message.extension))
    for nested in message.nested_type:
        _sort_message(nested, options)
    for enum in message.enum_type:
        _sort_enum(enum, options)
    for part in (*message.field, *message.extension, *message.oneof_decl, *message.extension_range, message):
        _known_options(part, options)


def _move_made(messages: Any, fields: Iterable[FieldDescriptorProto]) -> None:
    """Messages that a map or a group declares stand where their field does; they go last, by name."""
    groups = {field.type_name.rpartition(".")[2] for field in fields if field.type == FieldDescriptorProto.TYPE_GROUP}
    made = {message.name for message in messages if message.options.map_entry or message.name in groups}
    if made:
        indexes = {message.name: index for index, message in enumerate(messages)}

        def key(message: DescriptorProto) -> tuple[bool, str, int]:
            is_made = message.name in made
            return is_made, message.name if is_made else "", indexes[message.name]

        _order(messages, key)


def _sort_oneofs(message: DescriptorProto) -> None:
    if len(message.oneof_decl) < 2:
        return
    first: dict[int, int] = {}
    for field in message.field:
        if field.HasField("oneof_index"):
            first[field.oneof_index] = min(field.number, first.get(field.oneof_index, field.number))
    order = sorted(range(len(message.oneof_decl)), key=lambda index: first.get(index, 0))
    moved = {old: new for new, old in enumerate(order)}
    for field in message.field:
        if field.HasField("oneof_index"):
            field.oneof_index = moved[field.oneof_index]
    _order(message.oneof_decl, lambda oneof: 0, [message.oneof_decl[index] for index in order])


def _sort_enum(enum: EnumDescriptorProto, options: Options) -> None:
    first = enum.value[0].name if enum.value else ""
    _order(enum.value, lambda value: (value.name != first, value.number, value.name))
    _order(enum.reserved_range, lambda span: span.start)
    enum.reserved_name[:] = sorted(enum.reserved_name)
    for part in (*enum.value, enum):
        _known_options(part, options)


def _order(items: Any, key: Any, ordered: list[Any] | None = None) -> None:
    """Sorts a repeated field of messages in place."""
    before = list(items)
    after = sorted(before, key=key) if ordered is None else ordered
    if any(one is not other for one, other in zip(before, after, strict=True)):
        copies = []
        for item in after:
            copy = type(item)()
            copy.CopyFrom(item)
            copies.append(copy)
        del items[:]
        items.extend(copies)


def _known_options(part: Any, options: Options) -> None:
    """Writes custom options in the order of their numbers instead of that of the text."""
    if part.HasField("options"):
        read: Message = options.read(part.options)
        data = read.SerializePartialToString(deterministic=True)
        part.options.Clear()
        part.options.MergeFromString(data)
        if not data:
            part.ClearField("options")  # an empty block behind a method says nothing
