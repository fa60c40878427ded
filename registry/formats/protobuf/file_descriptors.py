"""Schemas as descriptors: submitted as base64, given to clients without a compiler, and hashed for the fingerprint.

The fingerprint is equal for texts with the same definitions, whatever their order and layout.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import DecodeError, Message

from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats.base import content_fingerprint
from registry.formats.protobuf.compiler import KNOWN_NAMES, MAIN, MAX_BYTES, MAX_STATEMENTS
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.text.statements import EnumStatement, MessageStatement

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTTED: Final = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_MAX_DEPTH: Final = 40


def is_encoded(text: str) -> bool:
    """Return whether a text can only be base64: a .proto text has punctuation that base64 lacks."""
    return _BASE64.fullmatch(text) is not None


def decode(text: str) -> FileDescriptorProto:
    """Return the descriptor in base64; raises InvalidSchema or SchemaTooCostly.

    Names are checked because they will be written into a text, which the compiler must read with the same meaning.
    """
    if len(text) > 2 * MAX_BYTES:
        raise SchemaTooCostly(f"the schema has {len(text):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        proto = FileDescriptorProto.FromString(data)
    except (binascii.Error, DecodeError, ValueError):
        raise InvalidSchema(
            "the schema is neither the text of a .proto file nor the base64 of a FileDescriptorProto"
        ) from None
    if not (proto.message_type or proto.enum_type or proto.service or proto.extension):
        raise InvalidSchema("the base64 is a FileDescriptorProto that declares nothing")
    _check(proto)
    return proto


def _check_text(message: Message) -> None:
    """Raise InvalidSchema for a string that isn't UTF-8; the runtime returns it as bytes."""
    for field, value in message.ListFields():
        for kind, item in _items(field, value):
            if kind.cpp_type == kind.CPPTYPE_MESSAGE:
                _check_text(item)
            elif kind.type == kind.TYPE_STRING and isinstance(item, bytes):
                raise InvalidSchema(f'"{field.name}" in the descriptor isn\'t UTF-8')


def _items(field: FieldDescriptor, value: Any) -> Iterator[tuple[FieldDescriptor, Any]]:
    """Yield each value of a field with its descriptor; for a map, which an option may have, its keys and values."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        for key, item in value.items():
            yield entry["key"], key
            yield entry["value"], item
    else:
        for item in value if field.is_repeated else (value,):
            yield field, item


def _check(proto: FileDescriptorProto) -> None:
    _check_text(proto)
    if proto.package:
        _name(proto.package, _DOTTED)
    count = len(proto.service) + len(proto.extension)
    names = [service.name for service in proto.service]
    for service in proto.service:
        for method in service.method:
            names.append(method.name)
            _name(method.input_type, _DOTTED)
            _name(method.output_type, _DOTTED)
        count += len(service.method)
    stack = [(message, 1) for message in proto.message_type]
    enums = list(proto.enum_type)
    _check_fields(proto)
    while stack:
        message, depth = stack.pop()
        count += 1 + len(message.field) + len(message.extension)
        if depth > _MAX_DEPTH or count > MAX_STATEMENTS:
            raise SchemaTooCostly(
                f"the descriptor has more than {MAX_STATEMENTS:,} declarations, or is nested too deeply"
            )
        names.append(message.name)
        names.extend(oneof.name for oneof in message.oneof_decl)
        _check_fields(message)
        stack.extend((nested, depth + 1) for nested in message.nested_type)
        enums.extend(message.enum_type)
    _check_enums(enums, names)
    for name in names:
        _name(name, _IDENTIFIER)


def _check_fields(holder: FileDescriptorProto | DescriptorProto) -> None:
    fields = [*holder.extension, *(holder.field if isinstance(holder, DescriptorProto) else ())]
    oneofs = len(holder.oneof_decl) if isinstance(holder, DescriptorProto) else 0
    for field in fields:
        _name(field.name, _IDENTIFIER)
        for name in (field.type_name, field.extendee):
            if name:
                _name(name, _DOTTED)
        if field.HasField("oneof_index") and not 0 <= field.oneof_index < oneofs:
            raise InvalidSchema(f'the field "{field.name}" is in a oneof that the descriptor doesn\'t have')
        if field.HasField("default_value") and field.type not in (9, 12):
            _name(field.default_value, re.compile(r"[-+.\w]{1,400}"))
        elif field.HasField("default_value") and field.type == 12:
            _name(field.default_value, re.compile(r"(?:[^\"\\\n]|\\.)*"))


def _check_enums(enums: list[EnumDescriptorProto], names: list[str]) -> None:
    for enum in enums:
        names.append(enum.name)
        names.extend(value.name for value in enum.value)


def _name(name: str, pattern: re.Pattern[str]) -> None:
    if not pattern.fullmatch(name):
        shown = name[:80].encode("unicode_escape").decode("ascii")
        raise InvalidSchema(f"""the descriptor contains "{shown}", which can't be written in a .proto text""")


#: the name of a descriptor in Confluent's registry
_NAME: Final = "default"


def serialized(schema: Schema) -> str:
    """Return the descriptor in base64, without source positions and undeclared options."""
    descriptor = FileDescriptorProto()
    descriptor.CopyFrom(schema.proto)
    descriptor.ClearField("source_code_info")
    descriptor.name = _NAME
    _clear_undeclared_options(descriptor)
    _order(descriptor.message_type, schema.statements.types)
    _clear_derived_json_names(descriptor.message_type, set(_fields_with_json_names(schema.statements.types, "")), "")
    for extension in descriptor.extension:
        extension.ClearField("json_name")
    return base64.b64encode(descriptor.SerializeToString(deterministic=True)).decode("ascii")


def _order(messages: Any, types: Sequence[MessageStatement | EnumStatement]) -> None:
    """Sort messages in the order of the text, undeclared ones last; likewise nested messages."""
    declared = [item for item in types if isinstance(item, MessageStatement)]
    indexes = {item.name: index for index, item in enumerate(declared)}
    messages.sort(key=lambda message: indexes.get(message.name, len(indexes)))
    inside = {item.name: item.types for item in declared}
    for message in messages:
        _order(message.nested_type, inside.get(message.name, ()))


def _fields_with_json_names(types: Iterable[MessageStatement | EnumStatement], scope: str) -> Iterator[str]:
    for item in types:
        if isinstance(item, MessageStatement):
            inside = f"{scope}{item.name}."
            yield from (f"{inside}{field.name}" for field in item.all_fields() if field.json_name is not None)
            yield from _fields_with_json_names([*item.types, *(group.message for group in item.all_groups())], inside)


def _clear_derived_json_names(messages: Any, declared: set[str], scope: str) -> None:
    for message in messages:
        inside = f"{scope}{message.name}."
        for field in (*message.field, *message.extension):
            if f"{inside}{field.name}" not in declared:
                field.ClearField("json_name")
        _clear_derived_json_names(message.nested_type, declared, inside)


def _clear_undeclared_options(message: Any) -> None:
    """Remove undeclared options, which clients can't use."""
    for field, value in message.ListFields():
        if field.name == "options":
            value.ClearField("uninterpreted_option")
        elif field.message_type is not None:
            for item in value if field.is_repeated else (value,):
                _clear_undeclared_options(item)


def descriptor_set(protos: Sequence[Any]) -> str:
    """Return a FileDescriptorSet of the descriptors in their order, without source information, in base64.

    The set has one field (number 1, length-delimited), repeated for each file; see Protobuf's encoding guide.
    """
    parts = []
    for proto in protos:
        bare = type(proto)()
        bare.CopyFrom(proto)
        bare.ClearField("source_code_info")
        body = bare.SerializeToString(deterministic=True)
        parts.append(b"\x0a" + _varint(len(body)) + body)
    return base64.b64encode(b"".join(parts)).decode("ascii")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def fingerprint(protos: Iterable[FileDescriptorProto], options: Options) -> str:
    """Return the SHA-256 (hexadecimal) of the main file and of its imports by path, except known types.

    Each file is hashed once, so a graph of imports costs no more than its files.
    """
    digests = {proto.name: _digest(proto, options) for proto in protos if proto.name not in KNOWN_NAMES}
    main = digests.pop(MAIN)
    return content_fingerprint(main, sorted(digests.items()))


def _digest(proto: FileDescriptorProto, options: Options) -> str:
    """Return the SHA-256 of the descriptor without name and positions: fields and values by number, imports sorted.

    The order of messages stays, because it numbers the messages in the header of every record. So does the first value
    of an enum, because it is the default.
    """
    file = FileDescriptorProto()
    file.CopyFrom(proto)
    file.ClearField("source_code_info")
    file.ClearField("name")
    _sort_imports(file)
    _move_generated_messages(file.message_type, file.extension)
    for message in file.message_type:
        _sort_message(message, options)
    for enum in file.enum_type:
        _sort_enum(enum, options)
    _sort(file.extension, lambda field: (field.extendee, field.number))
    for field in file.extension:
        _known_options(field, options)
    _sort(file.service, lambda service: service.name)
    for service in file.service:
        _sort(service.method, lambda method: method.name)
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
    _sort(message.field, lambda field: field.number)
    _sort(message.extension, lambda field: (field.extendee, field.number))
    _sort(message.reserved_range, lambda span: span.start)
    _sort(message.extension_range, lambda span: span.start)
    message.reserved_name[:] = sorted(message.reserved_name)
    _move_generated_messages(message.nested_type, (*message.field, *message.extension))
    for nested in message.nested_type:
        _sort_message(nested, options)
    for enum in message.enum_type:
        _sort_enum(enum, options)
    for part in (*message.field, *message.extension, *message.oneof_decl, *message.extension_range, message):
        _known_options(part, options)


def _move_generated_messages(messages: Any, fields: Iterable[FieldDescriptorProto]) -> None:
    """Move messages that a map or a group declares to the end, by name; the text has them at their field."""
    groups = {field.type_name.rpartition(".")[2] for field in fields if field.type == FieldDescriptorProto.TYPE_GROUP}
    made = {message.name for message in messages if message.options.map_entry or message.name in groups}
    if made:
        indexes = {message.name: index for index, message in enumerate(messages)}

        def key(message: DescriptorProto) -> tuple[bool, str, int]:
            is_made = message.name in made
            return is_made, message.name if is_made else "", indexes[message.name]

        _sort(messages, key)


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
    _sort(message.oneof_decl, lambda oneof: 0, [message.oneof_decl[index] for index in order])


def _sort_enum(enum: EnumDescriptorProto, options: Options) -> None:
    first = enum.value[0].name if enum.value else ""
    _sort(enum.value, lambda value: (value.name != first, value.number, value.name))
    _sort(enum.reserved_range, lambda span: span.start)
    enum.reserved_name[:] = sorted(enum.reserved_name)
    for part in (*enum.value, enum):
        _known_options(part, options)


def _sort(items: Any, key: Any, ordered: list[Any] | None = None) -> None:
    """Sort a repeated field of messages in place."""
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
    """Write custom options in the order of their numbers, not of the text."""
    if part.HasField("options"):
        read: Message = options.read(part.options)
        data = read.SerializePartialToString(deterministic=True)
        part.options.Clear()
        part.options.MergeFromString(data)
        if not data:
            part.ClearField("options")  # an empty block after a method has no meaning
