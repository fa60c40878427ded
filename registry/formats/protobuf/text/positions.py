"""The places of pointers in the text, and edits at these places that preserve comments and layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

from registry.formats.json_pointer import join
from registry.formats.protobuf.compiler import Columns
from registry.formats.protobuf.model import Schema

Path = tuple[int, ...]
_PARTS: Final = frozenset({"name", "number", "label", "type", "default", "options", "json_name", "reserved"})


@dataclass(frozen=True, slots=True)
class Span:
    """A range of text with lines and columns from 0; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


def position(schema: Schema, pointer: str) -> tuple[int, int] | None:
    """Return line and column, from 1, of a pointer in the schema's .proto text; None if there is no such place."""
    span = span_of(schema, pointer)
    if span is None:
        return None
    return span.line + 1, columns_of(schema).character(span.line, span.column) + 1


def columns_of(schema: Schema) -> Columns:
    """Return the columns of the schema's text; cached."""
    if "columns" not in schema.cache:
        schema.cache["columns"] = Columns(schema.text.removeprefix("\ufeff"))
    columns: Columns = schema.cache["columns"]
    return columns


def span_of(schema: Schema, pointer: str) -> Span | None:
    """Return the whole declaration at a pointer."""
    if pointer == "":
        return Span(0, 0, 0, 0)
    path = path_of(schema, pointer)
    if path is not None:
        return span_at(schema, path)
    # A part that the text omits (the label of proto3, a default) is shown at its declaration.
    holder, _, part = pointer.rpartition("/")
    return span_of(schema, holder) if part in _PARTS and holder else None


def path_of(schema: Schema, pointer: str) -> Path | None:
    """Return the descriptor's path for a pointer that has a place in the text."""
    paths = _paths(schema).get(pointer, ())
    return next((path for path in paths if span_at(schema, path) is not None), None)


def span_at(schema: Schema, path: Path) -> Span | None:
    """Return the span of a descriptor's path."""
    if "spans" not in schema.cache:
        schema.cache["spans"] = {
            tuple(location.path): location.span for location in schema.proto.source_code_info.location
        }
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
    """Return the descriptor's paths of each pointer: scalar and named types, and reserved numbers and names, differ."""
    if "paths" not in schema.cache:
        by_pointer: dict[str, list[Path]] = {}
        for pointer, path in _walk(schema.proto):
            by_pointer.setdefault(pointer, []).append(path)
        schema.cache["paths"] = by_pointer
    paths: dict[str, list[Path]] = schema.cache["paths"]
    return paths


def _walk(proto: FileDescriptorProto) -> Iterator[tuple[str, Path]]:
    yield "/syntax", (12,)
    yield "/syntax", (14,)
    yield "/package", (2,)
    yield "/options", (8,)
    for number, name in enumerate(proto.dependency):
        yield join("/imports", name), (3, number)
    for number, name in enumerate(proto.option_dependency):
        yield join("/imports", name), (15, number)
    yield from _parts(proto.message_type, "", (4,), _message)
    yield from _parts(proto.enum_type, "", (5,), _enum)
    yield from _extensions(proto.extension, "", (7,))
    for number, service in enumerate(proto.service):
        pointer = join("/services", service.name)
        yield pointer, (6, number)
        yield f"{pointer}/options", (6, number, 3)
        for index, method in enumerate(service.method):
            yield join(pointer, "methods", method.name), (6, number, 2, index)


def _parts(parts: Sequence[Any], pointer: str, path: Path, inside: Any) -> Iterator[tuple[str, Path]]:
    for index, part in enumerate(parts):
        yield from inside(part, pointer, (*path, index))


def _extensions(parts: Sequence[Any], pointer: str, path: Path) -> Iterator[tuple[str, Path]]:
    for index, part in enumerate(parts):
        here = join(pointer, "extensions", part.name)
        yield here, (*path, index)
        yield from _field_parts(here, (*path, index))


def _message(proto: DescriptorProto, outside: str, path: Path) -> Iterator[tuple[str, Path]]:
    pointer = join(outside, "messages", proto.name)
    if not proto.options.map_entry:
        yield pointer, path
    yield f"{pointer}/options", (*path, 7)
    yield f"{pointer}/reserved", (*path, 9)
    yield f"{pointer}/reserved", (*path, 10)
    for index, field in enumerate(proto.field):
        here = join(pointer, "fields", field.number)
        yield here, (*path, 2, index)
        yield from _field_parts(here, (*path, 2, index))
    for index, oneof in enumerate(proto.oneof_decl):
        yield join(pointer, "oneofs", oneof.name), (*path, 8, index)
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
    for index, value in enumerate(proto.value):
        yield join(pointer, "values", value.number), (*path, 2, index)


class NoPlace(Exception):
    """The text has no such place, or it is in another file."""


class Editor:
    """A collection of edits of one text; `text` applies them all."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._text = schema.text.removeprefix("\ufeff")
        self._edits: list[tuple[int, int, str]] = []

    def place(self, pointer: str, *inside: int) -> tuple[int, int]:
        """Return start and end of a pointer's target, or of a part of it; raises NoPlace."""
        path = path_of(self._schema, pointer)
        return self.at((*path, *inside) if path is not None else (-1,))

    def at(self, path: Path) -> tuple[int, int]:
        """Return start and end of a descriptor's path; raises NoPlace."""
        span = span_at(self._schema, path)
        if span is None:
            raise NoPlace
        columns = columns_of(self._schema)
        return columns.index(span.line, span.column), columns.index(span.end_line, span.end_column)

    def replace(self, begin: int, end: int, text: str) -> None:
        """Replace the text between two places."""
        self._edits.append((begin, end, text))

    def statement(self, pointer: str, label: str = "", *, without: str = "") -> str:
        """Return a declaration as written, with its comments and a new label; `without` is the label to remove."""
        begin, end = self.place(pointer)
        first, last = self._with_comments(begin, end)
        text = self._text[begin:last].removeprefix(without).lstrip() if without else self._text[begin:last]
        line = self._text.rfind("\n", 0, begin) + 1
        margin = self._text[line:begin] if not self._text[line:begin].strip() else ""
        return f"{self._text[first:begin]}{label}{text}".replace(f"\n{margin}", "\n").rstrip("\n")

    def _with_comments(self, begin: int, end: int) -> tuple[int, int]:
        """Extend a declaration on its own lines to include the comments before it and after it on its last line."""
        line = self._text.rfind("\n", 0, begin) + 1
        if self._text[line:begin].strip():
            return begin, end
        first = begin
        while line > 0:
            above = self._text.rfind("\n", 0, line - 1) + 1
            comment = self._text[above : line - 1]
            if not comment.strip().startswith("//"):
                break
            first, line = above + len(comment) - len(comment.lstrip()), above
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end
        return first, line_end if self._text[end:line_end].strip().startswith("//") else end

    def delete(self, pointer: str) -> None:
        """Delete a declaration with its comments, and its line if that has nothing else."""
        begin, end = self._with_comments(*self.place(pointer))
        line_begin = self._text.rfind("\n", 0, begin) + 1
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end + 1
        if not self._text[line_begin:begin].strip() and not self._text[end:line_end].strip():
            begin, end = line_begin, line_end
        self.replace(begin, end, "")

    def insert(self, pointer: str, *lines: str) -> None:
        """Insert declarations before the closing brace of a pointer's target; "" is the file."""
        if pointer == "":
            ending = "" if self._text.endswith("\n") or not self._text else "\n"
            self.replace(len(self._text), len(self._text), ending + "\n".join(lines) + "\n")
            return
        begin, end = self.place(pointer)
        brace = self._text.rfind("}", begin, end)
        if brace < 0:
            raise NoPlace
        line = self._text.rfind("\n", 0, brace) + 1
        if self._text[line:brace].strip():
            has_comment = any("//" in text for text in lines)  # it would hide what follows on its line
            between = "\n" if has_comment else " "
            parts = [part.strip() for text in lines for part in text.split("\n")]
            self.replace(brace, brace, between[:has_comment] + between.join(parts) + between)
            return
        indent = self._text[line:brace] + "  "
        added = "".join(f"{indent}{part}\n" for text in lines for part in text.split("\n"))
        self.replace(line, line, added)

    def text(self) -> str:
        """Return the text with all edits; raises NoPlace if two of them overlap."""
        text = self._text
        last = len(text) + 1
        for begin, end, new in sorted(self._edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            if end > last:
                raise NoPlace
            text = text[:begin] + new + text[end:]
            last = begin
        return text
