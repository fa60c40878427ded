"""Prints descriptors and single declarations as .proto text, the canonical form of a schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)

from registry.formats.protobuf.model import KINDS, MAX_FIELD_NUMBER, Field, Message, Schema
from registry.formats.protobuf.options import Options, quoted

_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
_MAX_ENUM: Final = 2**31 - 1
_GROUP: Final = FieldDescriptorProto.TYPE_GROUP
_VISIBILITY: Final = {SymbolVisibility.VISIBILITY_EXPORT: "export ", SymbolVisibility.VISIBILITY_LOCAL: "local "}

Lines = Iterator[str]
Made = dict[str, tuple[int, DescriptorProto]]


def print_file(proto: FileDescriptorProto, options: Options) -> str:
    """Return the text of a file, with a final newline."""
    return "\n".join(_Printer(proto, options).file()) + "\n"


def import_lines(proto: FileDescriptorProto) -> Lines:
    """Yield the import statements in the order of the descriptor."""
    public, weak = set(proto.public_dependency), set(proto.weak_dependency)
    for position, name in enumerate(proto.dependency):
        kind = "public " if position in public else "weak " if position in weak else ""
        yield f"import {kind}{quoted(name)};"
    for name in proto.option_dependency:
        yield f"import option {quoted(name)};"


class _Printer:
    def __init__(self, proto: FileDescriptorProto, options: Options) -> None:
        self._proto = proto
        self._options = options
        self._syntax = proto.syntax or "proto2"

    def file(self) -> Lines:
        proto = self._proto
        if self._syntax == "editions":
            yield f'edition = "{Edition.Name(proto.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{self._syntax}";'
        if proto.package:
            yield f"package {proto.package};"
        yield from import_lines(proto)
        yield from self._statements(proto.options)
        scope = f".{proto.package}" if proto.package else ""
        yield from self._members(scope, (), (), proto.message_type, proto.extension)
        for enum in proto.enum_type:
            yield from self._enum(enum)
        for service in proto.service:
            yield from self._service(service)

    def _statements(self, options: Any) -> Lines:
        for name, value in self._options.items(options):
            yield f"option {name} = {value};"

    def _members(
        self,
        scope: str,
        fields: Sequence[FieldDescriptorProto],
        oneofs: Sequence[Any],
        messages: Sequence[DescriptorProto],
        extensions: Sequence[FieldDescriptorProto],
    ) -> Lines:
        """Yield the fields, nested messages and extensions of one scope.

        The compiler creates a message for every map and group at the position of its field. To keep their positions
        among the messages, the messages before them are written before the field.
        """
        made = _made_by(scope, (*fields, *extensions), messages)
        indexes = {index for index, _ in made.values()}
        printed = 0

        def messages_before(members: Sequence[FieldDescriptorProto]) -> Lines:
            nonlocal printed
            end = max((made[item.type_name][0] for item in members if item.type_name in made), default=0)
            while printed < end:
                if printed not in indexes:
                    yield from self.message(messages[printed], scope)
                printed += 1

        for oneof, members in groupby(fields, _oneof_of):
            for together in [list(members)] if oneof is not None else [[member] for member in members]:
                yield from messages_before(together)
                inside = [line for member in together for line in self._field(member, scope, made)]
                if oneof is None:
                    yield from inside
                else:
                    options = list(self._statements(oneofs[oneof].options))
                    yield f"oneof {oneofs[oneof].name} {{"
                    yield from _indented([*options, *inside])
                    yield "}"
        for extendee, members in groupby(extensions, lambda item: item.extendee):
            together = list(members)
            yield from messages_before(together)
            yield f"extend {extendee} {{"
            yield from _indented(line for item in together for line in self._field(item, scope, made))
            yield "}"
        for index in range(printed, len(messages)):
            if index not in indexes:
                yield from self.message(messages[index], scope)

    def message(self, message: DescriptorProto, scope: str) -> Lines:
        yield f"{visibility(message)}message {message.name} {{"
        yield from _indented(self._body(message, f"{scope}.{message.name}"))
        yield "}"

    def _body(self, message: DescriptorProto, scope: str) -> Lines:
        yield from self._statements(message.options)
        yield from self._members(scope, message.field, message.oneof_decl, message.nested_type, message.extension)
        for enum in message.enum_type:
            yield from self._enum(enum)
        for span in message.extension_range:
            options = self._bracketed(self._options.items(span.options))
            yield f"extensions {range_text(span.start, span.end - 1, MAX_FIELD_NUMBER)}{options};"
        yield from self._reserved(
            [(span.start, span.end - 1) for span in message.reserved_range], message.reserved_name, MAX_FIELD_NUMBER
        )

    def _reserved(self, ranges: Sequence[tuple[int, int]], names: Sequence[str], maximum: int) -> Lines:
        if ranges:
            yield f"reserved {', '.join(range_text(first, last, maximum) for first, last in ranges)};"
        if names:
            shown = names if self._syntax == "editions" else [quoted(name) for name in names]
            yield f"reserved {', '.join(shown)};"

    def _field(self, field: FieldDescriptorProto, scope: str, made: Made) -> Lines:
        options = self._bracketed(self._field_options(field))
        _, message = made.get(field.type_name, (0, None))
        if message is not None and message.options.map_entry:
            key, value = message.field[0], message.field[1]
            yield f"map<{type_name(key)}, {type_name(value)}> {field.name} = {field.number}{options};"
            return
        label = field_label(field, self._syntax)
        if message is not None and _is_group(field, message):
            yield f"{label}group {message.name} = {field.number}{options} {{"
            yield from _indented(self._body(message, f"{scope}.{message.name}"))
            yield "}"
            return
        yield f"{label}{type_name(field)} {field.name} = {field.number}{options};"

    def _field_options(self, field: FieldDescriptorProto) -> Iterator[tuple[str, str]]:
        if field.HasField("default_value"):
            yield "default", default_value(field.default_value, KINDS[field.type])
        if field.HasField("json_name") and not field.extendee and field.json_name != json_name(field.name):
            yield "json_name", quoted(field.json_name)
        yield from self._options.items(field.options)

    @staticmethod
    def _bracketed(options: Any) -> str:
        shown = ", ".join(f"{name} = {value}" for name, value in options)
        return f" [{shown}]" if shown else ""

    def _enum(self, enum: EnumDescriptorProto) -> Lines:
        yield f"{visibility(enum)}enum {enum.name} {{"
        yield from _indented(self._enum_body(enum))
        yield "}"

    def _enum_body(self, enum: EnumDescriptorProto) -> Lines:
        yield from self._statements(enum.options)
        for value in enum.value:
            yield f"{value.name} = {value.number}{self._bracketed(self._options.items(value.options))};"
        ranges = [(span.start, span.end) for span in enum.reserved_range]
        yield from self._reserved(ranges, enum.reserved_name, _MAX_ENUM)

    def _service(self, service: ServiceDescriptorProto) -> Lines:
        yield f"service {service.name} {{"
        yield from _indented(self._statements(service.options))
        for method in service.method:
            sent = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
            got = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
            options = list(self._statements(method.options))
            yield f"  rpc {method.name} ({sent}) returns ({got}){' {' if options else ';'}"
            if options:
                yield from _indented(_indented(options))
                yield "  }"
        yield "}"


def visibility(part: DescriptorProto | EnumDescriptorProto) -> str:
    """Return `export ` or `local ` if an edition declares it."""
    return _VISIBILITY.get(part.visibility, "")


def json_name(name: str) -> str:
    """Return a field's default JSON name: its name in lowerCamelCase."""
    parts = name.split("_")
    return parts[0] + "".join(part[:1].upper() + part[1:] for part in parts[1:])


def _indented(lines: Any) -> Lines:
    return (f"  {line}" for line in lines)


def _made_by(scope: str, fields: Iterable[FieldDescriptorProto], messages: Sequence[DescriptorProto]) -> Made:
    """Return the messages that fields declare, as map entries or groups, by type name."""
    named = {f"{scope}.{message.name}": (index, message) for index, message in enumerate(messages)}
    return {
        field.type_name: named[field.type_name]
        for field in fields
        if field.type_name in named
        and (named[field.type_name][1].options.map_entry or _is_group(field, named[field.type_name][1]))
    }


def _is_group(field: FieldDescriptorProto, message: DescriptorProto) -> bool:
    return bool(field.type == _GROUP and field.name == message.name.lower())


def _oneof_of(field: FieldDescriptorProto) -> int | None:
    return field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None


def field_label(field: FieldDescriptorProto, syntax: str) -> str:
    """Return the label in that syntax, with a trailing blank; members of a oneof have none."""
    if field.HasField("oneof_index") and not field.proto3_optional:
        return ""
    if field.label == FieldDescriptorProto.LABEL_REPEATED or syntax == "proto2":
        return f"{_LABELS[field.label]} "
    return "optional " if field.proto3_optional else ""


def default_value(value: str, kind: str) -> str:
    """Return a descriptor's default as text: bytes are escaped already, strings aren't."""
    if kind == "string":
        return quoted(value)
    return f'"{value}"' if kind == "bytes" else value


def type_name(field: FieldDescriptorProto) -> str:
    """Return the type as text: a full name with its leading dot, or a scalar."""
    return field.type_name or KINDS[field.type]


def range_text(first: int, last: int, maximum: int) -> str:
    """Return a range with its inclusive end as text."""
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= maximum else last}"


def print_message(file: FileDescriptorProto, message: DescriptorProto, full_name: str, options: Options) -> list[str]:
    """Return the lines of one message of a file, as in `print_file`."""
    scope = full_name.rpartition(".")[0]
    return list(_Printer(file, options).message(message, f".{scope}" if scope else ""))


def message_text(schema: Schema, message: Message, target: Schema) -> str:
    """Return a message's complete declaration for another schema."""
    descriptor = next(proto for name, proto in _described(schema) if name == message.full_name)
    lines = print_message(schema.proto, descriptor, message.full_name, Options(schema.pool))
    return _moved("\n".join(lines), schema, target)


def _described(schema: Schema) -> list[tuple[str, DescriptorProto]]:
    package = schema.main.package
    todo = [(f"{package}.{proto.name}" if package else proto.name, proto) for proto in schema.proto.message_type]
    descriptors = []
    while todo:
        name, proto = todo.pop()
        descriptors.append((name, proto))
        todo.extend((f"{name}.{nested.name}", nested) for nested in proto.nested_type)
    return descriptors


def field_text(schema: Schema, field: Field, target: Schema, *, is_member: bool = False) -> str:
    """Return a field's declaration for another schema."""
    return f"{label_and_type(field, schema, target, is_member=is_member)} {field.name} = {field.number};"


def label_and_type(field: Field, schema: Schema, target: Schema, *, is_member: bool) -> str:
    """Return the text before a field's name, in the syntax and package of another schema."""
    text = _moved(_type(field), schema, target)
    return text if is_member or field.is_map else f"{_label(field, target)}{text}"


def label_outside(theirs: Field, schema: Schema) -> str:
    """Return the label, with a trailing blank, of a field that leaves a oneof, to match the other side."""
    if schema.main.syntax == "proto2":
        return "required " if theirs.is_required else "optional "
    return "optional " if schema.main.syntax == "proto3" and theirs.label in ("optional", "required") else ""


def _type(field: Field) -> str:
    if field.is_map and field.message is not None:
        return f"map<{field.message.by_number[1].kind}, {_type(field.message.by_number[2])}>"
    return f".{field.type_name}" if field.type_name else field.kind


def _label(field: Field, target: Schema) -> str:
    if field.is_repeated:
        return "repeated "
    if target.main.syntax == "proto2":
        return "required " if field.is_required else "optional "
    is_optional = target.main.syntax == "proto3" and field.has_presence and field.message is None
    return "optional " if is_optional and field.oneof is None else ""


def _moved(text: str, schema: Schema, target: Schema) -> str:
    """Replace full names of one package with those of another."""
    before, after = schema.main.package, target.main.package
    if before == after:
        return text
    if before:
        return re.sub(rf"(?<![\w.])\.{re.escape(before)}\.", f".{after}." if after else ".", text)
    own = "|".join(re.escape(name) for name in (*schema.main.messages, *schema.main.enums))
    return re.sub(rf"(?<![\w.])\.({own})\b", rf".{after}.\1", text) if own else text
