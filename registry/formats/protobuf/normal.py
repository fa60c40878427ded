"""The text that `normalize=true` registers, in the layout that Confluent's registry writes.

Imports are sorted, public ones last; fields stand by number, those of oneofs behind the others; values of enums by
number, then name, behind the first one, which is the default; options by name; reserved ranges and names one a line; extensions of one message together. Types
have their full name with a leading dot. The order of messages stays, because it numbers them in records. proto2 is
not said, as it is what no statement means. One thing isn't done as there: numbers in options keep all their digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from registry.formats.protobuf.model import KINDS, MAX_FIELD_NUMBER
from registry.formats.protobuf.options import Options, quoted
from registry.formats.protobuf.printer import (
    default_value,
    field_label,
    import_lines,
    json_name,
    range_text,
    type_name,
    visibility,
)

_MAX_ENUM: Final = 2**31 - 1

Section = list[str]


def normalized_text(proto: FileDescriptorProto, options: Options) -> str:
    """The normal form; the compiler reads the same schema from it."""
    return "\n".join(_Normal(proto, options).file()) + "\n"


class _Normal:
    def __init__(self, proto: FileDescriptorProto, options: Options) -> None:
        self._proto = proto
        self._options = options
        self._syntax = proto.syntax or "proto2"

    def file(self) -> Iterator[str]:
        proto = self._proto
        if self._syntax == "editions":
            yield f'edition = "{Edition.Name(proto.edition).removeprefix("EDITION_")}";'
        elif self._syntax != "proto2":
            yield f'syntax = "{self._syntax}";'
        if proto.package:
            yield f"package {proto.package};"
        scope = f".{proto.package}" if proto.package else ""
        lines = list(import_lines(proto))
        types = [line for message in proto.message_type for line in self._message(message, scope, proto.extension)]
        sections = [
            sorted(line for line in lines if not line.startswith("import public"))
            + sorted(line for line in lines if line.startswith("import public")),
            self._statements(proto.options),
            types + [line for enum in proto.enum_type for line in self._enum(enum)],
            self._extends(proto.extension, scope, proto.message_type),
            [line for service in proto.service for line in self._service(service)],
        ]
        for section in filter(None, sections):
            yield ""
            yield from section

    def _statements(self, options: Any) -> Section:
        return [f"option {name} = {value};" for name, value in _by_name(self._options.items(options))]

    def _block(self, head: str, sections: Iterable[Section]) -> Iterator[str]:
        """Sections with an empty line between, indented; nothing inside stays on one line."""
        filled = [section for section in sections if section]
        if not filled:
            yield f"{head} {{}}"
            return
        yield f"{head} {{"
        for place, section in enumerate(filled):
            if place:
                yield ""
            for line in section:
                yield from (f"  {part}" if part else "" for part in line.split("\n"))
        yield "}"

    def _message(
        self, message: DescriptorProto, scope: str, extensions: Sequence[FieldDescriptorProto] = ()
    ) -> Iterator[str]:
        """A message; one that is an extension's group is written where the extension is."""
        here = f"{scope}.{message.name}"
        if any(_is_group_of(field, here, message) for field in extensions):
            return
        yield from self._block(f"{visibility(message)}message {message.name}", self._body(message, here))

    def _body(self, message: DescriptorProto, here: str) -> list[Section]:
        made = {f"{here}.{nested.name}": nested for nested in message.nested_type}
        plain = [field for field in _by_number(message.field) if _oneof_of(field) is None]
        groups = [field for field in plain if _is_group(field, made)]
        spans = [(span.start, span.end - 1) for span in message.reserved_range]
        taken = {field.type_name for field in message.field if _is_group(field, made)}
        nested = [
            line
            for inner in message.nested_type
            if not inner.options.map_entry and f"{here}.{inner.name}" not in taken
            for line in self._message(inner, here, message.extension)
        ]
        return [
            self._reserved(spans, message.reserved_name, MAX_FIELD_NUMBER),
            self._statements(message.options),
            [line for field in plain if field not in groups for line in self._field(field, made)],
            [line for lines in self._oneofs(message, made) for line in lines],
            [line for field in groups for line in self._field(field, made)],
            self._extension_ranges(message),
            self._extends(message.extension, here, message.nested_type),
            nested + [line for enum in message.enum_type for line in self._enum(enum)],
        ]

    def _extension_ranges(self, message: DescriptorProto) -> Section:
        return [
            f"extensions {range_text(span.start, span.end - 1, MAX_FIELD_NUMBER)}"
            f"{self._bracketed(self._options.items(span.options))};"
            for span in sorted(message.extension_range, key=lambda item: item.start)
        ]

    def _oneofs(self, message: DescriptorProto, made: dict[str, DescriptorProto]) -> Iterator[list[str]]:
        members: dict[int, list[FieldDescriptorProto]] = {}
        for field in _by_number(message.field):
            place = _oneof_of(field)
            if place is not None:
                members.setdefault(place, []).append(field)
        for place, fields in members.items():
            oneof = message.oneof_decl[place]
            lines = [line for field in fields for line in self._field(field, made)]
            yield list(self._block(f"oneof {oneof.name}", [self._statements(oneof.options), lines]))

    def _extends(
        self, fields: Sequence[FieldDescriptorProto], scope: str, messages: Sequence[DescriptorProto]
    ) -> Section:
        made = {f"{scope}.{message.name}": message for message in messages}
        by_extendee: dict[str, list[FieldDescriptorProto]] = {}
        for field in fields:
            by_extendee.setdefault(field.extendee, []).append(field)
        return [
            line
            for extendee, found in by_extendee.items()
            for line in self._block(
                f"extend {extendee}", [[text for field in _by_number(found) for text in self._field(field, made)]]
            )
        ]

    def _field(self, field: FieldDescriptorProto, made: dict[str, DescriptorProto]) -> Iterator[str]:
        options = self._bracketed(self._field_options(field))
        message = made.get(field.type_name)
        if message is not None and message.options.map_entry:
            key, value = (type_name(part) for part in message.field[:2])
            yield f"map<{key}, {value}> {field.name} = {field.number}{options};"
        elif message is not None and _is_group(field, made):
            head = f"{field_label(field, self._syntax)}group {message.name} = {field.number}{options}"
            yield from self._block(head, self._body(message, field.type_name))
        else:
            yield f"{field_label(field, self._syntax)}{type_name(field)} {field.name} = {field.number}{options};"

    def _field_options(self, field: FieldDescriptorProto) -> list[tuple[str, str]]:
        found = self._options.items(field.options)
        if field.HasField("default_value"):
            found.append(("default", default_value(field.default_value, KINDS[field.type])))
        if field.HasField("json_name") and not field.extendee and field.json_name != json_name(field.name):
            found.append(("json_name", quoted(field.json_name)))
        return found

    @staticmethod
    def _bracketed(options: list[tuple[str, str]]) -> str:
        shown = [f"{name} = {value}" for name, value in _by_name(options)]
        if len(shown) < 2:
            return f" [{shown[0]}]" if shown else ""
        return " [\n  " + ",\n  ".join(shown) + "\n]"

    def _reserved(self, ranges: Sequence[tuple[int, int]], names: Sequence[str], maximum: int) -> Section:
        shown = names if self._syntax == "editions" else [quoted(name) for name in names]
        numbers = [range_text(first, last, maximum) for first, last in sorted(ranges)]
        return [f"reserved {item};" for item in (*numbers, *sorted(shown))]

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        values = [*enum.value[:1], *sorted(enum.value[1:], key=lambda value: (value.number, value.name))]
        spans = [(span.start, span.end) for span in enum.reserved_range]
        lines = [
            *self._reserved(spans, enum.reserved_name, _MAX_ENUM),
            *self._statements(enum.options),
            *(f"{v.name} = {v.number}{self._bracketed(self._options.items(v.options))};" for v in values),
        ]
        yield from self._block(f"{visibility(enum)}enum {enum.name}", [lines])

    def _service(self, service: ServiceDescriptorProto) -> Iterator[str]:
        methods = []
        for method in service.method:
            sent = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
            got = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
            options = [f"  {line}" for line in self._statements(method.options)]
            body = " {\n" + "\n".join(options) + "\n}" if options else ""
            methods.append(f"rpc {method.name} ({sent}) returns ({got}){body};")
        yield from self._block(f"service {service.name}", [self._statements(service.options), methods])


def _by_number(fields: Iterable[FieldDescriptorProto]) -> list[FieldDescriptorProto]:
    return sorted(fields, key=lambda field: field.number)


def _by_name(options: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Options by name, custom ones by their full name without the dot; values of one option stay in order."""
    named = [(name.replace("(.", "("), value) for name, value in options]
    return sorted(named, key=lambda item: item[0].strip("()"))


def _oneof_of(field: FieldDescriptorProto) -> int | None:
    return field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None


def _is_group(field: FieldDescriptorProto, made: dict[str, DescriptorProto]) -> bool:
    message = made.get(field.type_name)
    return message is not None and _is_group_of(field, field.type_name, message)


def _is_group_of(field: FieldDescriptorProto, full_name: str, message: DescriptorProto) -> bool:
    is_group = field.type == FieldDescriptorProto.TYPE_GROUP and field.type_name == full_name
    return bool(is_group and field.name == message.name.lower())
