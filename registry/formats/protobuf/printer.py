"""Prints a descriptor as the text of a .proto file: the canonical form of a schema.

The text doesn't depend on white space, comments, or on how names were written; declarations stay in their order, and
the compiler makes the same descriptor of it again. Types are written with their full name and a leading dot.
"""

from __future__ import annotations

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

from registry.formats.protobuf.model import KINDS, MAX_FIELD_NUMBER
from registry.formats.protobuf.options import Options, quoted

_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
_MAX_ENUM: Final = 2**31 - 1
_GROUP: Final = FieldDescriptorProto.TYPE_GROUP
_VISIBILITY: Final = {SymbolVisibility.VISIBILITY_EXPORT: "export ", SymbolVisibility.VISIBILITY_LOCAL: "local "}

Lines = Iterator[str]
Made = dict[str, tuple[int, DescriptorProto]]


def print_file(proto: FileDescriptorProto, options: Options) -> str:
    """The text of a file, with a line feed at its end."""
    return "\n".join(_Printer(proto, options).file()) + "\n"


def import_lines(proto: FileDescriptorProto) -> Lines:
    """The import statements in the order of the descriptor."""
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
        """Fields, nested messages and extensions of one scope.

        The compiler makes a message of every map and group where its field stands; so that these keep their place
        among the messages, the messages before them are written before their field.
        """
        made = _made_by(scope, (*fields, *extensions), messages)
        places = {place for place, _ in made.values()}
        printed = 0

        def messages_before(members: Sequence[FieldDescriptorProto]) -> Lines:
            nonlocal printed
            end = max((made[item.type_name][0] for item in members if item.type_name in made), default=0)
            while printed < end:
                if printed not in places:
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
        for place in range(printed, len(messages)):
            if place not in places:
                yield from self.message(messages[place], scope)

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
    """`export` or `local` with a blank behind, where an edition says so."""
    return _VISIBILITY.get(part.visibility, "")


def json_name(name: str) -> str:
    """The JSON name that a field has by itself: lowerCamelCase of its name."""
    parts = name.split("_")
    return parts[0] + "".join(part[:1].upper() + part[1:] for part in parts[1:])


def _indented(lines: Any) -> Lines:
    return (f"  {line}" for line in lines)


def _made_by(scope: str, fields: Iterable[FieldDescriptorProto], messages: Sequence[DescriptorProto]) -> Made:
    """The messages that the text of a field declares, as the entry of a map or as a group, by their type name."""
    named = {f"{scope}.{message.name}": (place, message) for place, message in enumerate(messages)}
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
    """The label as the text of that syntax says it, with a blank behind; members of a oneof have none."""
    if field.HasField("oneof_index") and not field.proto3_optional:
        return ""
    if field.label == FieldDescriptorProto.LABEL_REPEATED or syntax == "proto2":
        return f"{_LABELS[field.label]} "
    return "optional " if field.proto3_optional else ""


def default_value(value: str, kind: str) -> str:
    """A default of a descriptor as the text writes it: bytes come with their escapes, strings without."""
    if kind == "string":
        return quoted(value)
    return f'"{value}"' if kind == "bytes" else value


def type_name(field: FieldDescriptorProto) -> str:
    """The type as the text writes it: a full name with its dot, or a scalar."""
    return field.type_name or KINDS[field.type]


def range_text(first: int, last: int, maximum: int) -> str:
    """A range with its inclusive end as the text writes it."""
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= maximum else last}"


def print_message(file: FileDescriptorProto, message: DescriptorProto, full_name: str, options: Options) -> list[str]:
    """The lines of one message of a file, as `print_file` writes it."""
    scope = full_name.rpartition(".")[0]
    return list(_Printer(file, options).message(message, f".{scope}" if scope else ""))
