"""The text before the compiler sees it: limits that keep its work small, and the statement of the syntax.

The compiler needs quadratic time for some texts (ranges of `reserved`, fields of one name), and it holds the
interpreter while it works. So the number of statements and of items is bounded before; what is counted errs high.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

from registry.errors import InvalidSchema, SchemaTooCostly

MAX_BYTES: Final = 1024 * 1024
MAX_ALL_BYTES: Final = 4 * 1024 * 1024
MAX_STATEMENTS: Final = 10_000
MAX_ALL_STATEMENTS: Final = 30_000
MAX_ITEMS: Final = 8_000
MAX_IMPORTS: Final = 1_000
MAX_DEPTH: Final = 64
MAX_PARTS: Final = 100
PROTO2: Final = 'syntax = "proto2"; '

_SKIPPED: Final = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?", re.DOTALL)
_IMPORT: Final = re.compile(r"\bimport\b")
_NAME: Final = re.compile(r"[\w.]+")
_BRACES: Final = re.compile(r"[{}<>\[\]]")
_SYNTAX: Final = re.compile(r"\s*(?:;\s*)*(?:syntax|edition)\s*=")
_LINE: Final = re.compile("\n")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def checked(text: str, name: str | None = None) -> int:
    """How many statements a text has; raises SchemaTooCostly beyond the limits, InvalidSchema for what is no text.

    `name` is the import path of a reference, None for the schema itself.
    """
    place = f'the reference "{name}"' if name is not None else "the schema"
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidSchema(f"{place} holds half of a surrogate pair, which is no character") from None
    if size > MAX_BYTES:
        raise SchemaTooCostly(f"{place} has {size:,} bytes; at most {MAX_BYTES:,} are read")
    control = _CONTROL.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        column = control.start() - text.rfind("\n", 0, control.start())
        message = f"{place} holds the control character U+{ord(control.group()):04X}: remove it"
        raise InvalidSchema(message, line=None if name else line, column=None if name else column)
    code = _SKIPPED.sub(" ", text)
    statements = code.count(";") + code.count("{")
    _limit(place, "statements", statements, MAX_STATEMENTS)
    _limit(place, "values and options", code.count("="), 2 * MAX_STATEMENTS)
    _limit(place, "list items", code.count(","), MAX_ITEMS)
    _limit(place, "imports", len(_IMPORT.findall(code)), MAX_IMPORTS)
    _limit(place, "parts in one name", 1 + max((word.count(".") for word in _NAME.findall(code)), default=0), MAX_PARTS)
    _limit_depth(place, code)
    return statements


def _limit(place: str, what: str, count: int, limit: int) -> None:
    if count > limit:
        raise SchemaTooCostly(f"{place} has {count:,} {what}; at most {limit:,} are read: split it into several files")


def _limit_depth(place: str, code: str) -> None:
    depth = 0
    for match in _BRACES.finditer(code):
        depth += 1 if match.group() in "{<[" else -1
        if depth > MAX_DEPTH:
            raise SchemaTooCostly(f"{place} is nested deeper than {MAX_DEPTH} levels")


def with_syntax(text: str) -> tuple[str, int]:
    """The text with a statement of its syntax, and by how many columns its first line has moved.

    A text without one is proto2; said so, the compiler doesn't write a warning to the server's log.
    """
    text = text.removeprefix("\ufeff")
    if _SYNTAX.match(_SKIPPED.sub(" ", text)):
        return text, 0
    return PROTO2 + text, len(PROTO2)


class Columns:
    """Where the characters of a text are that the compiler names by line and column, both from 0.

    It counts columns in bytes of UTF-8, and a tab up to the next 8. A line is measured once, whatever is asked of it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in _LINE.finditer(text))]
        self._measured: dict[int, list[int]] = {}

    def index(self, line: int, column: int) -> int:
        """The index of a character in the text; the end of the text for a line behind it."""
        if line >= len(self._lines):
            return len(self._text)
        return self._lines[line] + self.character(line, column)

    def character(self, line: int, column: int) -> int:
        """The column in characters; the end of the line for a column behind it."""
        if line >= len(self._lines):
            return 0
        return bisect_left(self._columns(line), column)

    def _columns(self, line: int) -> list[int]:
        """The compiler's column of each character of a line."""
        if line not in self._measured:
            begin = self._lines[line]
            end = self._lines[line + 1] - 1 if line + 1 < len(self._lines) else len(self._text)
            columns, column = [], 0
            for sign in self._text[begin:end]:
                columns.append(column)
                column += 8 - column % 8 if sign == "\t" else len(sign.encode("utf-8"))
            self._measured[line] = columns
        return self._measured[line]
