"""Edits of a schema's text at the places of its declarations, so that comments and layout stay."""

from __future__ import annotations

from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.positions import Path, columns_of, path_of, span_at


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
        columns = columns_of(self._schema)
        return columns.index(span.line, span.column), columns.index(span.end_line, span.end_column)

    def replace(self, begin: int, end: int, text: str) -> None:
        """Puts a text between two places."""
        self._edits.append((begin, end, text))

    def statement(self, pointer: str, label: str = "", *, without: str = "") -> str:
        """A declaration as it is written, with its comments, behind a label; `without` is the label that it loses."""
        begin, end = self.place(pointer)
        first, last = self._with_comments(begin, end)
        text = self._text[begin:last].removeprefix(without).lstrip() if without else self._text[begin:last]
        line = self._text.rfind("\n", 0, begin) + 1
        margin = self._text[line:begin] if not self._text[line:begin].strip() else ""
        return f"{self._text[first:begin]}{label}{text}".replace(f"\n{margin}", "\n").rstrip("\n")

    def _with_comments(self, begin: int, end: int) -> tuple[int, int]:
        """From the comments on the lines before a declaration to the one behind it, if it has its lines for itself."""
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
        """Takes a declaration away with its comments, and its line if nothing else is on it."""
        begin, end = self._with_comments(*self.place(pointer))
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
            has_comment = any("//" in text for text in lines)  # it would swallow what follows on its line
            between = "\n" if has_comment else " "
            parts = [part.strip() for text in lines for part in text.split("\n")]
            self.replace(brace, brace, between[:has_comment] + between.join(parts) + between)
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
