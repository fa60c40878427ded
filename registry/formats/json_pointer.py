"""JSON Pointers, their positions in a text that may have comments, and errors with positions."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NoReturn

from registry.errors import InvalidSchema

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"/]+|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
_NOT_LINE_END = re.compile(r"[^\n\r]")


def escape(token: str) -> str:
    """Return a key as a reference token of a JSON Pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Return the key of a reference token."""
    return token.replace("~1", "/").replace("~0", "~")


def join(pointer: str, *tokens: str | int) -> str:
    """Return the pointer extended by keys and indexes."""
    return pointer + "".join(f"/{escape(str(token))}" for token in tokens)


def parent(pointer: str) -> str:
    """Return the pointer of the enclosing value; the root's parent is the root."""
    return pointer.rpartition("/")[0]


def without_comments(text: str) -> str:
    """Blank `//` and `/* */` comments; every other character keeps its offset and line."""
    if "//" not in text and "/*" not in text:
        return text

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        return token if token[0] == '"' else _NOT_LINE_END.sub(" ", token)

    return _COMMENT_OR_STRING.sub(blank, text)


@dataclass(slots=True)
class _Container:
    """A JSON object or array that is being read."""

    pointer: str
    is_object: bool
    key: str | None = None
    index: int = 0
    keys: set[str] = field(default_factory=set)


class PositionIndex:
    """The start of each value in a JSON text, found in one pass without recursion.

    For a text that isn't JSON, it has the positions before the first error.
    """

    def __init__(self, text: str) -> None:
        self._line_starts = [0, *(match.end() for match in re.finditer(r"\n", text))]
        self._offsets: dict[str, int] = {}
        self.first_duplicate: tuple[str, int] | None = None
        self._read(text)

    def find(self, pointer: str) -> tuple[int, int] | None:
        """Return line and column (from 1) of the value, or of the nearest enclosing value; None in an empty text."""
        while pointer not in self._offsets:
            if not pointer:
                return None
            pointer = parent(pointer)
        return self.line_and_column(self._offsets[pointer])

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1, of a character offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def _read(self, text: str) -> None:
        stack: list[_Container] = []
        for match in _TOKEN.finditer(text):
            token = match.group()
            first = token[0]
            if token.startswith(("//", "/*")) or first == ":":
                continue
            if first in "]}":
                if stack:
                    stack.pop()
            elif first == ",":
                self._next_item(stack)
            elif first == '"' and stack and stack[-1].is_object and stack[-1].key is None:
                self._start_member(stack[-1], token, match.start())
            else:
                pointer = self._note(stack, match.start())
                if first in "[{":
                    stack.append(_Container(pointer, first == "{"))

    @staticmethod
    def _next_item(stack: list[_Container]) -> None:
        if stack:
            stack[-1].key = None
            stack[-1].index += 1

    def _start_member(self, container: _Container, token: str, offset: int) -> None:
        container.key = _key(token)
        if container.key in container.keys and self.first_duplicate is None:
            self.first_duplicate = (container.key, offset)
        container.keys.add(container.key)

    def _note(self, stack: list[_Container], offset: int) -> str:
        if not stack:
            pointer = ""
        else:
            top = stack[-1]
            pointer = join(top.pointer, top.key if top.key is not None else top.index)
        self._offsets.setdefault(pointer, offset)
        return pointer


def _key(token: str) -> str:
    """Return the key of a quoted token, unchanged if its escapes are invalid."""
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]


@lru_cache(maxsize=64)
def position_index(text: str) -> PositionIndex:
    """Return the index of a text; cached, because a report asks for many places of few texts."""
    return PositionIndex(text)


def position(text: str, pointer: str | None) -> tuple[int, int] | None:
    """Return line and column (from 1) of the pointer's target in the text; None if `pointer` is None."""
    return None if pointer is None else position_index(text).find(pointer)


MAX_TEXT_LENGTH: Final = 1_048_576
MAX_DEPTH: Final = 200


class SchemaProblem(Exception):
    """A problem at a pointer; a format's `parse` turns it into InvalidSchema with line and column."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer


class DuplicateKey(Exception):
    """An object has the same key twice; raised by the hooks of a format's decoder."""


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members, as a decoder's hook; raises DuplicateKey."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DuplicateKey
    return members


def refuse_duplicate(text: str, because: str = "") -> NoReturn:
    """Raise InvalidSchema at the first key that is in its object twice."""
    index = position_index(text)
    if index.first_duplicate is None:
        raise InvalidSchema("a key appears twice in one JSON object: remove one of the two")
    key, offset = index.first_duplicate
    line, column = index.line_and_column(offset)
    message = f'the key "{key[:80]}" appears twice in one object, again at line {line}, column {column}: remove one of '
    raise InvalidSchema(f"{message}the two{because}", line=line, column=column)


def invalid(problem: SchemaProblem, text: str) -> InvalidSchema:
    """Return the problem as the error for callers, with line and column."""
    line_and_column = position(text, problem.pointer)
    if line_and_column is None:
        return InvalidSchema(problem.message, pointer=problem.pointer)
    line, column = line_and_column
    return InvalidSchema(problem.message, line=line, column=column, pointer=problem.pointer)


def check_text(text: str, kind: str) -> None:
    """Raise InvalidSchema if the text isn't a string, is too long or is empty; `kind` is like "an Avro schema"."""
    if not isinstance(text, str):
        raise InvalidSchema(f"the schema must be text, not {type(text).__name__}: send it as a JSON string")
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidSchema(
            f"the schema has {len(text):,} characters, the limit is {MAX_TEXT_LENGTH:,}: move shared types into "
            "separate schemas and refer to them"
        )
    if not text.strip():
        raise InvalidSchema(f"the schema is empty: send {kind} as JSON", line=1, column=1)


def decode(text: str, decoder: json.JSONDecoder, refuse_duplicate: Callable[[], NoReturn]) -> Any:
    """Return the JSON value. Decoder errors become InvalidSchema; `refuse_duplicate` raises it for a duplicate key."""
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidSchema(
            f"not JSON: {error.msg.removesuffix(' starting at')}", line=error.lineno, column=error.colno
        ) from None
    except DuplicateKey:
        refuse_duplicate()
    except RecursionError:
        raise InvalidSchema(f"the JSON is nested too deeply: {MAX_DEPTH} levels are allowed") from None
    except ValueError as error:
        raise InvalidSchema(f"not JSON that a schema can contain: {error}") from None
