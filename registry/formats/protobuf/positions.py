"""Where in the text a pointer leads to, from the compiler's source information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

from registry.formats.pointer import join
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.texts import Columns

Path = tuple[int, ...]
_PARTS: Final = frozenset({"name", "number", "label", "type", "default", "options", "json_name", "reserved"})


@dataclass(frozen=True, slots=True)
class Span:
    """From where to where, lines and columns from 0; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


def position(schema: Schema, pointer: str) -> tuple[int, int] | None:
    """Line and column from 1 of a pointer in the schema's .proto text, None where it has no such place."""
    span = span_of(schema, pointer)
    if span is None:
        return None
    return span.line + 1, columns_of(schema).character(span.line, span.column) + 1


def columns_of(schema: Schema) -> Columns:
    """The places of the schema's text, measured once."""
    if "columns" not in schema.cache:
        schema.cache["columns"] = Columns(schema.text.removeprefix("\ufeff"))
    columns: Columns = schema.cache["columns"]
    return columns


def span_of(schema: Schema, pointer: str) -> Span | None:
    """The whole declaration that a pointer leads to."""
    if pointer == "":
        return Span(0, 0, 0, 0)
    path = path_of(schema, pointer)
    if path is not None:
        return span_at(schema, path)
    # A part that the text leaves out (the label of proto3, a default) is shown at its declaration.
    holder, _, part = pointer.rpartition("/")
    return span_of(schema, holder) if part in _PARTS and holder else None


def path_of(schema: Schema, pointer: str) -> Path | None:
    """The descriptor's path of a pointer that the text has a place for."""
    paths = _paths(schema).get(pointer, ())
    return next((path for path in paths if span_at(schema, path) is not None), None)


def span_at(schema: Schema, path: Path) -> Span | None:
    """The text of a descriptor's path."""
    if "spans" not in schema.cache:
        schema.cache["spans"] = {tuple(place.path): place.span for place in schema.proto.source_code_info.location}
    span: Sequence[int] | None = schema.cache["spans"].get(path)
    if span is None:
        return None
    line, column = span[0], span[1]
    end_line, end_column = (line, span[2]) if len(span) == 3 else (span[2], span[3])
    shift = schema.column_shift
    return Span(
        line,
        max(0, column - shift) if line == 0 else column,
        end_line,
        max(0, end_column - shift) if end_line == 0 else end_column,
    )


def _paths(schema: Schema) -> dict[str, list[Path]]:
    """The descriptor's paths of a pointer: a type is a scalar's or a name, names and numbers are reserved apart."""
    if "paths" not in schema.cache:
        found: dict[str, list[Path]] = {}
        for pointer, path in _walk(schema.proto):
            found.setdefault(pointer, []).append(path)
        schema.cache["paths"] = found
    paths: dict[str, list[Path]] = schema.cache["paths"]
    return paths


def _walk(proto: FileDescriptorProto) -> Iterator[tuple[str, Path]]:
    yield "/syntax", (12,)
    yield "/syntax", (14,)
    yield "/package", (2,)
    yield "/options", (8,)
    for place, name in enumerate(proto.dependency):
        yield join("/imports", name), (3, place)
    for place, name in enumerate(proto.option_dependency):
        yield join("/imports", name), (15, place)
    yield from _parts(proto.message_type, "", (4,), _message)
    yield from _parts(proto.enum_type, "", (5,), _enum)
    yield from _extensions(proto.extension, "", (7,))
    for place, service in enumerate(proto.service):
        pointer = join("/services", service.name)
        yield pointer, (6, place)
        yield f"{pointer}/options", (6, place, 3)
        for index, method in enumerate(service.method):
            yield join(pointer, "methods", method.name), (6, place, 2, index)


def _parts(parts: Sequence[Any], pointer: str, path: Path, inside: Any) -> Iterator[tuple[str, Path]]:
    for place, part in enumerate(parts):
        yield from inside(part, pointer, (*path, place))


def _extensions(parts: Sequence[Any], pointer: str, path: Path) -> Iterator[tuple[str, Path]]:
    for place, part in enumerate(parts):
        here = join(pointer, "extensions", part.name)
        yield here, (*path, place)
        yield from _field_parts(here, (*path, place))


def _message(proto: DescriptorProto, outside: str, path: Path) -> Iterator[tuple[str, Path]]:
    pointer = join(outside, "messages", proto.name)
    if not proto.options.map_entry:
        yield pointer, path
    yield f"{pointer}/options", (*path, 7)
    yield f"{pointer}/reserved", (*path, 9)
    yield f"{pointer}/reserved", (*path, 10)
    for place, field in enumerate(proto.field):
        here = join(pointer, "fields", field.number)
        yield here, (*path, 2, place)
        yield from _field_parts(here, (*path, 2, place))
    for place, oneof in enumerate(proto.oneof_decl):
        yield join(pointer, "oneofs", oneof.name), (*path, 8, place)
    yield from _parts(proto.nested_type, pointer, (*path, 3), _message)
    yield from _parts(proto.enum_type, pointer, (*path, 4), _enum)
    yield from _extensions(proto.extension, pointer, (*path, 6))


def _field_parts(pointer: str, path: Path) -> Iterator[tuple[str, Path]]:
    yield f"{pointer}/name", (*path, 1)
    yield f"{pointer}/number", (*path, 3)
    yield f"{pointer}/label", (*path, 4)
    yield f"{pointer}/type", (*path, 5)
    yield f"{pointer}/type", (*path, 6)
    yield f"{pointer}/default", (*path, 7)
    yield f"{pointer}/options", (*path, 8)
    yield f"{pointer}/json_name", (*path, 10)


def _enum(proto: EnumDescriptorProto, outside: str, path: Path) -> Iterator[tuple[str, Path]]:
    pointer = join(outside, "enums", proto.name)
    yield pointer, path
    yield f"{pointer}/options", (*path, 3)
    yield f"{pointer}/reserved", (*path, 4)
    yield f"{pointer}/reserved", (*path, 5)
    for place, value in enumerate(proto.value):
        yield join(pointer, "values", value.number), (*path, 2, place)
