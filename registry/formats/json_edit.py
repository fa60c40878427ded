"""Small edits of a schema's text that preserve its formatting and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from registry.formats.json_pointer import join, without_comments

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_INDENT: Final = re.compile(r"\n([ \t]*)$")


class NoSuchPlace(Exception):
    """The pointer has no target in the text."""


@dataclass(slots=True)
class Node:
    """The extent of a JSON value in a text; for an object or array also the extents of its members or items.

    `starts` are the starts of the members or items; a member starts at its key.
    """

    start: int
    end: int = 0
    is_object: bool = False
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


class TextEdit:
    """A JSON text, with optional comments, that is edited at pointers; `text` is the current text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def node(self, pointer: str) -> Node:
        """Return the value at a pointer; raises NoSuchPlace."""
        try:
            return _nodes(self.text)[pointer]
        except KeyError:
            raise NoSuchPlace(pointer) from None

    def source(self, pointer: str) -> str:
        """Return the text of a value; raises NoSuchPlace."""
        node = self.node(pointer)
        return self.text[node.start : node.end]

    def has(self, pointer: str) -> bool:
        """Return whether the text has a value there."""
        return pointer in _nodes(self.text)

    def replace(self, pointer: str, source: str) -> None:
        """Replace a value with JSON text; raises NoSuchPlace."""
        node = self.node(pointer)
        self._splice(node.start, node.end, source)

    def set_member(self, pointer: str, key: str, source: str) -> None:
        """Add a member to an object, or replace its value; raises NoSuchPlace."""
        member = join(pointer, key)
        if self.has(member):
            self.replace(member, source)
        else:
            self._insert(pointer, f"{json.dumps(key)}: {source}", len(self.node(pointer).starts), is_object=True)

    def insert_item(self, pointer: str, index: int, source: str) -> None:
        """Insert an item into an array before the given index; raises NoSuchPlace."""
        self._insert(pointer, source, index, is_object=False)

    def append_items(self, pointer: str, sources: Sequence[str]) -> None:
        """Append items to an array, with the last item's formatting; raises NoSuchPlace."""
        node = self.node(pointer)
        separator = self._separator(node, len(node.starts) - 1) if node.starts else " "
        self._insert(pointer, f",{separator}".join(sources), len(node.starts), is_object=False)

    def remove(self, pointer: str, index: int) -> None:
        """Remove an item from an array, or a member from an object; raises NoSuchPlace."""
        node = self.node(pointer)
        if not 0 <= index < len(node.starts):
            raise NoSuchPlace(f"{pointer}/{index}")
        if index + 1 < len(node.starts):
            self._splice(node.starts[index], node.starts[index + 1], "")
        elif index:
            self._splice(node.ends[index - 1], node.ends[index], "")
        else:
            self._splice(node.starts[0], node.ends[0], "")

    def remove_member(self, pointer: str, key: str) -> None:
        """Remove a member from an object; raises NoSuchPlace."""
        keys = self.node(pointer).keys
        if key not in keys:
            raise NoSuchPlace(join(pointer, key))
        self.remove(pointer, keys.index(key))

    def _insert(self, pointer: str, source: str, index: int, *, is_object: bool) -> None:
        node = self.node(pointer)
        if node.is_object != is_object or self.text[node.start] not in "{[":
            raise NoSuchPlace(pointer)
        if not node.starts:
            self._splice(node.start + 1, node.start + 1, source)
        elif index >= len(node.starts):
            separator = self._separator(node, len(node.starts) - 1)
            self._splice(node.ends[-1], node.ends[-1], f",{separator}{source}")
        else:
            separator = self._separator(node, index)
            self._splice(node.starts[index], node.starts[index], f"{source},{separator}")

    def _separator(self, node: Node, index: int) -> str:
        """Return the whitespace between two items: a newline and indentation if the neighbour is on its own line."""
        match = _INDENT.search(self.text, 0, node.starts[index])
        return f"\n{match.group(1)}" if match is not None else " "

    def _splice(self, start: int, end: int, source: str) -> None:
        self.text = self.text[:start] + source + self.text[end:]


@lru_cache(maxsize=8)
def _nodes(text: str) -> Mapping[str, Node]:
    """Return all values of a JSON text by pointer; without recursion. Cached, because one text gets many edits."""
    nodes: dict[str, Node] = {}
    stack: list[tuple[str, Node]] = []
    key: str | None = None
    key_start = 0
    for match in _TOKEN.finditer(without_comments(text)):
        part, start, end = match.group(), match.start(), match.end()
        if part in "]}":
            if not stack:
                break
            _, node = stack.pop()
            node.end = end
            if stack:
                stack[-1][1].ends.append(end)
            continue
        if part in ",:":
            continue
        if stack and stack[-1][1].is_object and key is None:
            key, key_start = str(json.loads(part, strict=False)), start
            continue
        node = Node(start, end, part == "{")
        pointer = _enter(stack[-1], node, key, key_start) if stack else ""
        nodes.setdefault(pointer, node)
        key = None
        if part in "[{":
            stack.append((pointer, node))
        elif stack:
            stack[-1][1].ends.append(end)
    return nodes


def _enter(around: tuple[str, Node], node: Node, key: str | None, key_start: int) -> str:
    """Record a value in its container, and return its pointer."""
    pointer, holder = around
    if key is None:
        holder.starts.append(node.start)
        return join(pointer, len(holder.starts) - 1)
    holder.starts.append(key_start)
    holder.keys.append(key)
    return join(pointer, key)


def json_source(value: Any) -> str:
    """Return a JSON value as one line of text, spaced for people."""
    return json.dumps(value, ensure_ascii=False)
