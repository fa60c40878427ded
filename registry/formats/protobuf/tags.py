"""Tags of a Protobuf schema: the option `tags` of `confluent.Meta` at messages and fields.

An entity is named by the names of messages without the package, and the field's: `Order.Item.price`. A field of a oneof
may be named through it or without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from registry.errors import InvalidSchema
from registry.formats.protobuf.descriptors import pool_of
from registry.formats.protobuf.known_options import META, meta_files
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.printer import print_file
from registry.formats.tags import FIELD, RECORD, Entity, EntityTags, TagChange

_PACKAGE: Final = "confluent"
_OPTION: Final = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}
#: (full name of a message, name of a field or empty for the message itself) → tags
TagsByName = Mapping[tuple[str, str], tuple[str, ...]]
#: a DescriptorProto or a FieldDescriptorProto
_Part = Any


def tags(schema: Schema) -> tuple[EntityTags, ...]:
    """The tagged messages and fields, a message before its fields, those of oneofs first."""
    options = Options(schema.pool)
    found = []
    for path, message in _messages(schema.proto):
        if own := _tags_of(options, message, _OPTION[RECORD]):
            found.append(EntityTags("sr_record", path, own))
        alone = [field for field in message.field if not _oneof_of(message, field)]
        found += [
            EntityTags("sr_field", f"{path}.{field.name}", own)
            for field in [*(field for field in message.field if field not in alone), *alone]
            if (own := _tags_of(options, field, _OPTION[FIELD]))
        ]
    return tuple(found)


def tags_by_name(schema: Schema) -> TagsByName:
    """The tags of all messages and fields, those of imported files too, by full names."""
    if all(proto.package != _PACKAGE for proto in schema.protos):
        return {}  # nothing declares the options, which most schemas don't import
    options = Options(schema.pool)
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for proto in schema.protos:
        before = f"{proto.package}." if proto.package else ""
        for path, message in _messages(proto):
            for name, part, option in (("", message, RECORD), *((field.name, field, FIELD) for field in message.field)):
                if own := _tags_of(options, part, _OPTION[option]):
                    found[before + path, name] = own
    return found


def with_tags(schema: Schema, changes: Iterable[TagChange]) -> str:
    """The schema's canonical text with changed tags, which imports what declares them.

    Raises InvalidSchema for an entity that isn't there, and where what is called META declares no tags.
    """
    main = FileDescriptorProto()
    main.CopyFrom(schema.proto)
    main.ClearField("source_code_info")
    others = {proto.name: proto for proto in schema.protos[:-1]}
    if META not in main.dependency:
        main.dependency.append(META)
        others = {proto.name: proto for proto in meta_files()} | others
    pool = pool_of((*_in_order(others), main))
    options = Options(pool)
    for change in changes:
        part = _find(main, change.entity)
        name = _OPTION[change.entity[0]]
        try:
            option = pool.FindExtensionByName(name)
        except KeyError:
            raise InvalidSchema(f'"{META}" is a file of its own here, which declares no option {name}') from None
        _set_tags(options, part, option, change.apply(_tags_of(options, part, name)))
    return print_file(main, options)


def has_top_level_field(schema: Schema, name: str) -> bool:
    """Whether a message of the file, not one inside of another, has a field of that name outside of oneofs."""
    return any(
        field.name == name and not _oneof_of(message, field)
        for message in schema.proto.message_type
        for field in message.field
    )


def _in_order(protos: dict[str, FileDescriptorProto]) -> list[FileDescriptorProto]:
    """The files, each after what it imports; without recursion."""
    ordered: dict[str, FileDescriptorProto] = {}
    stack = [(name, False) for name in reversed(protos)]
    opened: set[str] = set()
    while stack:
        name, is_expanded = stack.pop()
        if is_expanded:
            ordered.setdefault(name, protos[name])
        elif name in protos and name not in opened:
            opened.add(name)
            stack.append((name, True))
            stack.extend((inner, False) for inner in reversed(protos[name].dependency))
    return list(ordered.values())


def _messages(proto: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """The messages of the file with their paths, an outer one before those inside of it; no entries of maps."""
    stack = [(message.name, message) for message in reversed(proto.message_type)]
    while stack:
        path, message = stack.pop()
        yield path, message
        stack.extend(
            (f"{path}.{inner.name}", inner) for inner in reversed(message.nested_type) if not inner.options.map_entry
        )


def _find(proto: FileDescriptorProto, entity: Entity) -> _Part:
    kind, path = entity
    names = path.split(".")
    field = names.pop() if kind == FIELD else ""
    message, oneof = _find_message(proto, names, may_end_in_oneof=kind == FIELD)
    if kind == RECORD:
        return message
    for found in message.field:
        if found.name == field and oneof in ("", _oneof_of(message, found)):
            return found
    raise InvalidSchema(f"No matching Field with name '{field[:200]}' found in the schema")


def _find_message(
    proto: FileDescriptorProto, names: list[str], *, may_end_in_oneof: bool
) -> tuple[DescriptorProto, str]:
    """The message of those names, and the name of the oneof that they end in, if they do."""
    inside: Any = proto.message_type
    message: DescriptorProto | None = None
    for position, name in enumerate(names):
        found = next((item for item in inside if item.name == name), None)
        if found is None:
            if message is not None and may_end_in_oneof and position == len(names) - 1:
                return message, name
            raise InvalidSchema(f"No matching Message with name '{name[:200]}' found in the schema")
        message, inside = found, found.nested_type
    if message is None:
        raise InvalidSchema("No matching Message with name '' found in the schema")
    return message, ""


def _oneof_of(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return str(message.oneof_decl[field.oneof_index].name)


def _tags_of(options: Options, part: _Part, name: str) -> tuple[str, ...]:
    if not part.HasField("options"):
        return ()
    for field, value in options.read(part.options).ListFields():
        if field.is_extension and field.full_name == name and _declares_tags(field):
            return tuple(dict.fromkeys(value.tags))
    return ()


def _declares_tags(option: FieldDescriptor) -> bool:
    inner = option.message_type.fields_by_name.get("tags") if option.message_type is not None else None
    return inner is not None and inner.is_repeated and inner.type == FieldDescriptor.TYPE_STRING


def _set_tags(options: Options, part: _Part, option: FieldDescriptor, tags: tuple[str, ...]) -> None:
    if not _declares_tags(option) or option.is_repeated:
        raise InvalidSchema(f"the option {option.full_name} of this schema has no tags")
    read: Any = options.read(part.options)
    meta = read.Extensions[option]
    del meta.tags[:]
    meta.tags.extend(tags)
    if not meta.ByteSize():
        read.ClearExtension(option)
    data = read.SerializePartialToString()
    if data:
        part.options.ParseFromString(data)
    else:
        part.ClearField("options")
