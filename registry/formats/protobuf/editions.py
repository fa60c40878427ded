"""Says in edition 2023 what a file of proto2 or proto3 has from its syntax, so that files of both fit into one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from registry.formats.protobuf.model import KINDS

_NOT_PACKED = frozenset({"string", "bytes", "message", "group"})


def to_edition(file: FileDescriptorProto) -> None:
    """Rewrites a file in place; one that is in an edition already stays as it is."""
    if file.syntax == "editions":
        return
    is_proto3 = file.syntax == "proto3"
    file.syntax = "editions"
    file.edition = Edition.EDITION_2023
    _messages(file.message_type, is_proto3=is_proto3)
    _enums(file.enum_type, is_proto3=is_proto3)
    for field in file.extension:
        _field(field, is_proto3=is_proto3)


def _messages(messages: Iterable[DescriptorProto], *, is_proto3: bool) -> None:
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
        # The oneofs that an `optional` of proto3 makes stand behind all others.
        while message.oneof_decl and len(message.oneof_decl) - 1 not in used:
            del message.oneof_decl[-1]
        _messages((nested for nested in message.nested_type if nested.name not in entries), is_proto3=is_proto3)
        _enums(message.enum_type, is_proto3=is_proto3)


def _enums(enums: Iterable[EnumDescriptorProto], *, is_proto3: bool) -> None:
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
