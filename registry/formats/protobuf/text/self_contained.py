"""One text without references: imports are included, in the syntax of edition 2023 if necessary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from registry.formats.protobuf.compiler import COMPILERS_OWN, MAIN
from registry.formats.protobuf.model import KINDS, Schema
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.text.printer import print_file

_NOT_PACKED = frozenset({"string", "bytes", "message", "group"})


def to_edition(file: FileDescriptorProto) -> None:
    """Rewrite a file in place for edition 2023; a file in an edition stays unchanged."""
    if file.syntax == "editions":
        return
    is_proto3 = file.syntax == "proto3"
    file.syntax = "editions"
    file.edition = Edition.EDITION_2023
    _convert_messages(file.message_type, is_proto3=is_proto3)
    _convert_enums(file.enum_type, is_proto3=is_proto3)
    for field in file.extension:
        _field(field, is_proto3=is_proto3)


def _convert_messages(messages: Iterable[DescriptorProto], *, is_proto3: bool) -> None:
    for message in messages:
        if not is_proto3:
            message.options.features.json_format = FeatureSet.LEGACY_BEST_EFFORT
        entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        for field in message.field:
            entry = entries.get(field.type_name.rpartition(".")[2])
            _field(field, is_proto3=is_proto3, entry=entry)
        for field in message.extension:
            _field(field, is_proto3=is_proto3)
        used = {field.oneof_index for field in message.field if field.HasField("oneof_index")}
        # The oneofs that proto3's `optional` generates come after all others.
        while message.oneof_decl and len(message.oneof_decl) - 1 not in used:
            del message.oneof_decl[-1]
        _convert_messages((nested for nested in message.nested_type if nested.name not in entries), is_proto3=is_proto3)
        _convert_enums(message.enum_type, is_proto3=is_proto3)


def _convert_enums(enums: Iterable[EnumDescriptorProto], *, is_proto3: bool) -> None:
    for enum in enums:
        if not is_proto3:
            enum.options.features.enum_type = FeatureSet.CLOSED
            enum.options.features.json_format = FeatureSet.LEGACY_BEST_EFFORT


def _field(field: FieldDescriptorProto, *, is_proto3: bool, entry: DescriptorProto | None = None) -> None:
    kind = KINDS[field.type]
    kinds = {kind} if entry is None else {KINDS[part.type] for part in entry.field}
    if not is_proto3 and "string" in kinds:
        field.options.features.utf8_validation = FeatureSet.NONE
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        _repeated(field, kind, is_proto3=is_proto3)
    elif field.label == FieldDescriptorProto.LABEL_REQUIRED:
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        field.options.features.field_presence = FeatureSet.LEGACY_REQUIRED
    elif field.proto3_optional:
        field.ClearField("proto3_optional")
        field.ClearField("oneof_index")
    elif is_proto3 and not field.HasField("oneof_index") and kind not in ("message", "group") and not field.extendee:
        field.options.features.field_presence = FeatureSet.IMPLICIT
    if kind == "group":
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.options.features.message_encoding = FeatureSet.DELIMITED


def _repeated(field: Any, kind: str, *, is_proto3: bool) -> None:
    if kind in _NOT_PACKED:
        return
    is_packed = field.options.packed if field.options.HasField("packed") else is_proto3
    field.options.ClearField("packed")
    if not is_packed:
        field.options.features.repeated_field_encoding = FeatureSet.EXPANDED


def self_contained(schema: Schema) -> str:
    """Return the text with the definitions of its imports after its own; Google's well-known types are still imported.

    The schema's messages keep their order and names. Imported types move into the schema's package; a type whose name
    is taken gets its package as a prefix (`shop_v1_Item`). Data stays the same because it has no names. Custom options
    of imported files, and their services, are left out. Files with several syntaxes become one text in edition 2023
    that states the features of each field from its own syntax.
    """
    inlined = [proto for proto in schema.protos[:-1] if proto.name not in COMPILERS_OWN]
    if not inlined:
        return schema.text
    return print_file(_joined(schema, inlined), Options(schema.pool))


def _joined(schema: Schema, inlined: list[FileDescriptorProto]) -> FileDescriptorProto:
    options = Options(schema.pool)
    files = []
    for proto in (schema.proto, *inlined):
        file = FileDescriptorProto()
        file.CopyFrom(proto)
        file.ClearField("source_code_info")
        _drop_options(file, options)
        files.append(file)
    main = files[0]
    if len({(file.syntax, file.edition) for file in files}) > 1:
        for file in files:
            to_edition(file)
    names = _new_names(files)
    imports = [name for file in files for name in file.dependency if name in COMPILERS_OWN]
    for field in ("dependency", "public_dependency", "weak_dependency", "option_dependency"):
        main.ClearField(field)
    main.dependency.extend(dict.fromkeys(imports))
    values = _rename_values(files, names)
    for file in files[1:]:
        for part in (*file.message_type, *file.enum_type):
            full_name = _full(file.package, part.name)
            part.name = names[full_name].rpartition(".")[2]
        main.message_type.extend(file.message_type)
        main.enum_type.extend(file.enum_type)
        main.extension.extend(field for field in file.extension if not field.extendee.startswith(".google.protobuf."))
    for field in _fields(main):
        if (field.type_name, field.default_value) in values:
            field.default_value = values[field.type_name, field.default_value]
    _rename(main, names)
    return main


def _full(package: str, name: str) -> str:
    return f".{package}.{name}" if package else f".{name}"


def _new_names(files: list[FileDescriptorProto]) -> dict[str, str]:
    """Return the new full name of every top-level type of an imported file."""
    main = files[0]
    taken = {part.name for part in (*main.message_type, *main.enum_type, *main.service, *main.extension)}
    taken |= {value.name for enum in main.enum_type for value in enum.value}
    names: dict[str, str] = {}
    for file in files[1:]:
        for part in (*file.message_type, *file.enum_type):
            name = part.name
            if name in taken:
                name = f"{file.package.replace('.', '_')}_{name}".lstrip("_")
            while name in taken:
                name += "_"
            taken.add(name)
            names[_full(file.package, part.name)] = _full(main.package, name)
    return names


def _rename_values(files: list[FileDescriptorProto], names: dict[str, str]) -> dict[tuple[str, str], str]:
    """Rename values of imported enums whose names are taken, because all values of a package share one scope."""
    taken = {name.rpartition(".")[2] for name in names.values()}
    taken |= {part.name for part in (*files[0].message_type, *files[0].enum_type, *files[0].extension)}
    taken |= {value.name for enum in files[0].enum_type for value in enum.value}
    renamed: dict[tuple[str, str], str] = {}
    for file in files[1:]:
        for enum in file.enum_type:
            full_name = _full(file.package, enum.name)
            for value in enum.value:
                name = value.name
                while name in taken:
                    name = f"{enum.name}_{name}"
                taken.add(name)
                if name != value.name:
                    renamed[full_name, value.name] = name
                    value.name = name
        for field in file.extension:
            while field.name in taken:
                field.name += "_"
            taken.add(field.name)
    return renamed


def _rename(main: FileDescriptorProto, names: dict[str, str]) -> None:
    for field in _fields(main):
        field.type_name = _renamed(field.type_name, names)
        field.extendee = _renamed(field.extendee, names)
        for name in ("type_name", "extendee"):
            if not getattr(field, name):
                field.ClearField(name)
    for service in main.service:
        for method in service.method:
            method.input_type = _renamed(method.input_type, names)
            method.output_type = _renamed(method.output_type, names)


def _renamed(full_name: str, names: dict[str, str]) -> str:
    parts = full_name.split(".")
    for end in range(len(parts), 1, -1):
        top = ".".join(parts[:end])
        if top in names:
            return ".".join([names[top], *parts[end:]])
    return full_name


def _messages(messages: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    for message in messages:
        yield message
        yield from _messages(message.nested_type)


def _fields(file: FileDescriptorProto) -> Iterator[Any]:
    yield from file.extension
    for message in _messages(file.message_type):
        yield from message.field
        yield from message.extension


def _enums(file: FileDescriptorProto) -> Iterator[EnumDescriptorProto]:
    yield from file.enum_type
    for message in _messages(file.message_type):
        yield from message.enum_type


def _drop_options(file: FileDescriptorProto, options: Options) -> None:
    """Remove the custom options that other files declare."""
    parts: list[Any] = [file, *file.service, *(method for service in file.service for method in service.method)]
    for message in _messages(file.message_type):
        parts += [message, *message.oneof_decl, *message.extension_range]
    for enum in _enums(file):
        parts += [enum, *enum.value]
    for part in (*parts, *_fields(file)):
        if part.HasField("options"):
            read = options.read(part.options)
            for field, _ in read.ListFields():
                if field.is_extension and field.file.name != MAIN and field.file.name not in COMPILERS_OWN:
                    read.ClearExtension(field)
            part.options.Clear()
            part.options.MergeFromString(read.SerializePartialToString())
            if not part.options.ByteSize():
                part.ClearField("options")
