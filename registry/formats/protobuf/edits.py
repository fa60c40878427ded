"""Edits of a schema's text at the places of its declarations, so that comments and layout stay."""

from __future__ import annotations

from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.positions import Path, path_of, span_at
from registry.formats.protobuf.texts import character, line_begin


class NoPlace(Exception):
    """The text has no such place, or it is in another file."""


class Editor:
    """Collects edits of one text; `text` applies them all."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._text = schema.text.removeprefix("\ufeff")
        self._edits: list[tuple[int, int, str]] = []

    def place(self, pointer: str, *inside: int) -> tuple[int, int]:
        """Begin and end of what a pointer leads to, or of a part of it; raises NoPlace."""
        path = path_of(self._schema, pointer)
        return self.at((*path, *inside) if path is not None else (-1,))

    def at(self, path: Path) -> tuple[int, int]:
        """Begin and end of a descriptor's path; raises NoPlace."""
        span = span_at(self._schema, path)
        if span is None:
            raise NoPlace
        return self._index(span.line, span.column), self._index(span.end_line, span.end_column)

    def _index(self, line: int, column: int) -> int:
        return line_begin(self._text, line) + character(self._text, line, column)

    def replace(self, begin: int, end: int, text: str) -> None:
        """Puts a text between two places."""
        self._edits.append((begin, end, text))

    def delete(self, pointer: str) -> None:
        """Takes a declaration away, with its line if nothing else is on it."""
        begin, end = self.place(pointer)
        line_begin = self._text.rfind("\n", 0, begin) + 1
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end + 1
        if not self._text[line_begin:begin].strip() and not self._text[end:line_end].strip():
            begin, end = line_begin, line_end
        self.replace(begin, end, "")

    def insert(self, pointer: str, *lines: str) -> None:
        """Adds declarations before the closing brace of what a pointer leads to; "" is the file."""
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
            self.replace(brace, brace, " ".join(part.strip() for text in lines for part in text.split("\n")) + " ")
            return
        indent = self._text[line:brace] + "  "
        added = "".join(f"{indent}{part}\n" for text in lines for part in text.split("\n"))
        self.replace(line, line, added)

    def text(self) -> str:
        """The text with all edits; raises NoPlace if two of them overlap."""
        text = self._text
        last = len(text) + 1
        for begin, end, new in sorted(self._edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            if end > last:
                raise NoPlace
            text = text[:begin] + new + text[end:]
            last = begin
        return text
