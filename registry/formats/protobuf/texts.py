"""The text before the compiler sees it: limits that keep its work small, and the statement of the syntax.

The compiler needs quadratic time for some texts (ranges of `reserved`, fields of one name), and it holds the
interpreter while it works. So the number of statements and of items is bounded before; what is counted errs high.
"""

from __future__ import annotations

import re
from typing import Final

from registry.errors import InvalidSchema, SchemaTooCostly

MAX_BYTES: Final = 1024 * 1024
MAX_ALL_BYTES: Final = 4 * 1024 * 1024
MAX_STATEMENTS: Final = 10_000
MAX_ALL_STATEMENTS: Final = 30_000
MAX_ITEMS: Final = 8_000
MAX_IMPORTS: Final = 1_000
MAX_DEPTH: Final = 64
PROTO2: Final = 'syntax = "proto2"; '

_SKIPPED: Final = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?", re.DOTALL)
_IMPORT: Final = re.compile(r"\bimport\b")
_BRACES: Final = re.compile(r"[{}<>\[\]]")
_SYNTAX: Final = re.compile(r"\s*(?:;\s*)*(?:syntax|edition)\s*=")
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


def line_begin(text: str, line: int) -> int:
    """The index of a line's first character, lines from 0; the end of the text for a line behind it."""
    begin = 0
    for _ in range(line):
        begin = text.find("\n", begin) + 1
        if begin == 0:
            return len(text)
    return begin


def character(text: str, line: int, column: int) -> int:
    """The column in characters of a column as the compiler counts it: in bytes of UTF-8, a tab up to the next 8."""
    begin = line_begin(text, line)
    seen = 0
    for index in range(begin, len(text)):
        if seen >= column or text[index] == "\n":
            return index - begin
        seen += 8 - seen % 8 if text[index] == "\t" else len(text[index].encode("utf-8"))
    return len(text) - begin
