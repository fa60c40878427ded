"""The statements of a file that was submitted as a descriptor, with the parts that Confluent's registry keeps.

Types have their full names, map entries are messages, and each reserved range and name has its own statement. Only the
options of the tables, in that order, and the server's own are kept. Groups stay groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

from registry.formats.protobuf.model import KINDS
from registry.formats.protobuf.options import Options
from registry.formats.protobuf.text.printer import visibility
from registry.formats.protobuf.text.statements import (
    EnumStatement,
    EnumValue,
    Extend,
    FieldStatement,
    FileStatements,
    Group,
    Import,
    MessageStatement,
    OneofStatement,
    Option,
    OptionKind,
    Primitive,
    Range,
    ReservedNames,
    Rpc,
    ServiceStatement,
    StringValue,
)

_FILE: Final = [
    "java_package",
    "java_outer_classname",
    "java_multiple_files",
    "java_generate_equals_and_hash",
    "java_string_check_utf8",
    "optimize_for",
    "go_package",
    "cc_generic_services",
    "java_generic_services",
    "py_generic_services",
    "deprecated",
    "cc_enable_arenas",
    "objc_class_prefix",
    "csharp_namespace",
    "swift_prefix",
    "php_class_prefix",
    "php_namespace",
    "php_metadata_namespace",
    "ruby_package",
    "features",
]
_MESSAGE: Final = ["no_standard_descriptor_accessor", "deprecated", "map_entry", "features", "message_set_wire_format"]
_FIELD: Final = [
    "ctype",
    "packed",
    "jstype",
    "deprecated",
    "debug_redact",
    "retention",
    "targets",
    "edition_defaults",
    "features",
    "feature_support",
]
_ENUM: Final = ["allow_alias", "deprecated", "features"]
_VALUE: Final = ["deprecated", "debug_redact", "features", "feature_support"]
_SERVICE: Final = ["deprecated", "features"]
_METHOD: Final = ["deprecated", "idempotency_level", "features"]
_RANGE: Final = ["declaration", "features", "verification"]
_OWN: Final = "confluent."
#: parameters that the server writes value first
_VALUE_FIRST: Final = frozenset({"precision", "scale"})
_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}


def statements_of(proto: FileDescriptorProto, options: Options) -> FileStatements:
    """Return the statements of a file."""
    return _Describer(proto, options).file()


class _Describer:
    def __init__(self, proto: FileDescriptorProto, options: Options) -> None:
        self._proto = proto
        self._options = options

    def file(self) -> FileStatements:
        proto = self._proto
        public, weak = set(proto.public_dependency), set(proto.weak_dependency)
        scope = f".{proto.package}" if proto.package else ""
        extends, taken = self._extends(proto.extension, scope, proto.message_type)
        return FileStatements(
            syntax=proto.syntax if proto.syntax in ("proto2", "proto3") else None,
            edition=Edition.Name(proto.edition).removeprefix("EDITION_") if proto.syntax == "editions" else None,
            package=proto.package or None,
            imports=[
                Import(name, "public" if index in public else "weak" if index in weak else "")
                for index, name in enumerate(proto.dependency)
            ]
            + [Import(name, "option") for name in proto.option_dependency],
            types=[
                *(self._message(item, scope) for item in proto.message_type if item.name not in taken),
                *(self._enum(item) for item in proto.enum_type),
            ],
            services=[self._service(item) for item in proto.service],
            extends=extends,
            options=self._of(proto.options, _FILE),
        )

    def _message(self, proto: DescriptorProto, scope: str) -> MessageStatement:
        here = f"{scope}.{proto.name}"
        fields = [field for field in proto.field if not _is_member(field)]
        plain, groups, taken = self._fields(fields, here, proto.nested_type)
        extends, extending = self._extends(proto.extension, here, proto.nested_type)
        oneofs = []
        for index, oneof in enumerate(proto.oneof_decl):
            members = [field for field in proto.field if _is_member(field) and field.oneof_index == index]
            own, own_groups, more = self._fields(members, here, proto.nested_type)
            taken |= more
            if members:
                oneofs.append(OneofStatement(oneof.name, own, own_groups, self._of(oneof.options, ("features",))))
        taken |= extending
        return MessageStatement(
            proto.name,
            visibility(proto).strip(),
            fields=plain,
            oneofs=oneofs,
            groups=groups,
            types=[
                *(self._message(item, here) for item in proto.nested_type if item.name not in taken),
                *(self._enum(item) for item in proto.enum_type),
            ],
            extensions=[
                ReservedNames([_span(item.start, item.end - 1)], self._of(item.options, _RANGE))
                for item in proto.extension_range
            ],
            reserved=self._reserved([(item.start, item.end - 1) for item in proto.reserved_range], proto.reserved_name),
            extends=extends,
            options=self._of(proto.options, _MESSAGE),
        )

    def _fields(
        self, protos: Iterable[FieldDescriptorProto], scope: str, messages: Sequence[DescriptorProto]
    ) -> tuple[list[FieldStatement], list[Group], set[str]]:
        """Return the fields, the groups among them, and the names of the messages that those declare."""
        made = {f"{scope}.{message.name}": message for message in messages}
        fields, groups, taken = [], [], set()
        for proto in protos:
            message = made.get(proto.type_name)
            is_group = proto.type == FieldDescriptorProto.TYPE_GROUP
            if is_group and message is not None and proto.name == message.name.lower():
                body = self._message(message, scope)
                groups.append(Group(self._label(proto), proto.number, body, self._of(proto.options, _FIELD)))
                taken.add(message.name)
            else:
                fields.append(self._field(proto))
        return fields, groups, taken

    def _field(self, proto: FieldDescriptorProto) -> FieldStatement:
        field = FieldStatement(
            self._label(proto),
            proto.type_name or KINDS[proto.type],
            proto.name,
            proto.number,
            options=self._of(proto.options, _FIELD),
        )
        if proto.HasField("json_name"):
            field.json_name = Option("json_name", "string", _string(proto.json_name))
        if proto.HasField("default_value") and self._proto.syntax != "proto3":
            is_text = KINDS[proto.type] in ("string", "bytes")
            value = _default(proto) if is_text else proto.default_value
            field.default = Option("default", "string" if is_text else "number", value)
        return field

    def _label(self, proto: FieldDescriptorProto) -> str:
        if _is_member(proto):
            return ""
        if proto.label == FieldDescriptorProto.LABEL_REPEATED:
            return "repeated"
        if proto.proto3_optional:
            return "optional"
        return "" if self._proto.syntax in ("proto3", "editions") else _LABELS[proto.label]

    def _extends(
        self, protos: Iterable[FieldDescriptorProto], scope: str, messages: Sequence[DescriptorProto]
    ) -> tuple[list[Extend], set[str]]:
        by_extendee: dict[str, list[FieldDescriptorProto]] = {}
        for proto in protos:
            by_extendee.setdefault(proto.extendee, []).append(proto)
        extends, taken = [], set()
        for name, members in by_extendee.items():
            fields, groups, own = self._fields(members, scope, messages)
            extends.append(Extend(name, fields, groups))
            taken |= own
        return extends, taken

    def _enum(self, proto: EnumDescriptorProto) -> EnumStatement:
        return EnumStatement(
            proto.name,
            visibility(proto).strip(),
            values=[EnumValue(item.name, item.number, self._of(item.options, _VALUE)) for item in proto.value],
            reserved=self._reserved([(item.start, item.end) for item in proto.reserved_range], proto.reserved_name),
            options=self._of(proto.options, _ENUM),
        )

    def _reserved(self, spans: Iterable[tuple[int, int]], names: Iterable[str]) -> list[ReservedNames]:
        is_edition = self._proto.syntax == "editions"
        return [
            *(ReservedNames([_span(first, last)]) for first, last in spans),
            *(ReservedNames([name if is_edition else _string(name)]) for name in names),
        ]

    def _service(self, proto: ServiceDescriptorProto) -> ServiceStatement:
        rpcs = [
            Rpc(
                item.name,
                item.input_type,
                item.output_type,
                item.client_streaming,
                item.server_streaming,
                self._of(item.options, _METHOD),
            )
            for item in proto.method
        ]
        return ServiceStatement(proto.name, rpcs, self._of(proto.options, _SERVICE))

    # -- options -------------------------------------------------------------------------------------------------------

    def _of(self, options: Message, names: Sequence[str]) -> list[Option]:
        if not options.ByteSize():
            return []
        fields = self._options.read(options).ListFields()
        named = {field.name: (field, value) for field, value in fields if not field.is_extension}
        statements = [option for name in names if name in named for option in _options_of(*named[name])]
        own = [(field, value) for field, value in fields if field.is_extension and _is_own(field)]
        return statements + [Option(field.full_name, "map", _meta(value), is_custom=True) for field, value in own]


def _is_own(field: FieldDescriptor) -> bool:
    return bool(field.full_name.startswith(_OWN) and field.message_type is not None)


def _options_of(field: FieldDescriptor, value: Any) -> list[Option]:
    return [_option_of(field, item) for item in (value if field.is_repeated else (value,))]


def _option_of(field: FieldDescriptor, value: Any) -> Option:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return Option(field.name, "map", _map(value))
    kind, text = _scalar(field, value)
    return Option(field.name, kind, text)


def _scalar(field: FieldDescriptor, value: Any) -> tuple[OptionKind, Any]:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        enum_value = field.enum_type.values_by_number.get(value)
        return "enum", enum_value.name if enum_value is not None else str(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "boolean", "true" if value else "false"
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return "string", _string(value)
    return "number", str(value)


def _map(message: Message) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.is_extension:
            continue
        items = [_inside(field, item) for item in (value if field.is_repeated else (value,))]
        values[field.name] = items if field.is_repeated else items[0]
    return values


def _inside(field: FieldDescriptor, value: Any) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _map(value)
    kind, text = _scalar(field, value)
    return text if kind == "string" else Primitive(kind, text)


def _meta(message: Any) -> dict[str, Any]:
    """Return the server's own option: its text, parameters and tags, then the rest."""
    values: dict[str, Any] = {}
    fields = {field.name: (field, value) for field, value in message.ListFields()}
    if "doc" in fields:
        values["doc"] = _string(message.doc)
    if "params" in fields:
        values["params"] = [_parameter(name, message.params[name]) for name in sorted(message.params)]
    if "tags" in fields:
        values["tags"] = [_string(tag) for tag in message.tags]
    others = {name: value for name, value in _map_but(fields, ("doc", "params", "tags")).items() if value}
    return {**values, **others}


def _map_but(fields: dict[str, tuple[FieldDescriptor, Any]], names: Sequence[str]) -> dict[str, Any]:
    return {
        name: [_inside(field, item) for item in value] if field.is_repeated else _inside(field, value)
        for name, (field, value) in fields.items()
        if name not in names
    }


def _parameter(name: str, value: str) -> dict[str, Any]:
    pairs = [("key", _string(name)), ("value", _string(value))]
    return dict(reversed(pairs) if name in _VALUE_FIRST else pairs)


def _is_member(field: FieldDescriptorProto) -> bool:
    return field.HasField("oneof_index") and not field.proto3_optional


def _span(first: int, last: int) -> int | Range:
    return first if first == last else Range(first, last)


def _string(text: str) -> StringValue:
    return StringValue(text, "")


def _default(proto: FieldDescriptorProto) -> StringValue:
    """Return a default of text or bytes; bytes are escaped already, so they are their own source."""
    if KINDS[proto.type] == "bytes":
        text = proto.default_value
        return StringValue(text, f'"{text}"', is_exact="\\" not in text)
    return _string(proto.default_value)
