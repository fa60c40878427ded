"""Counting what stands at each path of decoded values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from registry.pipeline.workers.masking import DEEPEST, SHOWN, clean, magnitude, masked_key, shown_magnitude, year_of
from registry.pipeline.workers.shapes import Shape

MOST_PATHS = 500
MOST_VALUES = 100
MOST_KEYS = 100  # names of fields below one path, where they come from the data
REMEMBERED = 512  # values known to have been seen, so that they aren't hashed again
SKETCH = 256  # smallest hashes kept: the number of distinct values is estimated within some 6 %
HASHES = 2**64


class Tree:
    """The paths of the messages of one schema (or of JSON without one) on one side of one topic."""

    def __init__(self, shape: Shape, reveal: bool) -> None:
        self.reveal = reveal
        self.messages = 0
        self.paths: dict[str, Node] = {}
        self.root = Node(self, "", shape, 0)

    def add(self, value: Any) -> None:
        """Count a decoded message."""
        self.messages += 1
        self.root.visit(value, self.messages)

    def rows(self) -> Iterator[dict[str, Any]]:
        """What was counted at each path, as plain JSON."""
        for path, node in self.paths.items():
            yield {"path": path, "messages": self.messages, **node.row()}


class Node:
    """What stands at one path."""

    __slots__ = (
        "children",
        "depth",
        "hashes",
        "kinds",
        "last",
        "last_null",
        "nulls",
        "path",
        "present",
        "ranges",
        "seen",
        "shape",
        "threshold",
        "tree",
        "values",
    )

    def __init__(self, tree: Tree, path: str, shape: Shape, depth: int) -> None:
        self.tree, self.path, self.shape, self.depth = tree, path, shape, depth
        self.children: dict[str, Node | None] = {}
        self.present = self.nulls = self.last = self.last_null = 0
        self.kinds: dict[type, int] = {}
        self.values: dict[str, int] = {}
        self.ranges: dict[type, list[Any]] = {}
        self.seen: set[Any] = set()
        self.hashes: set[int] = set()
        self.threshold = HASHES
        tree.paths[path] = self

    def visit(self, value: Any, message: int) -> None:
        """Count a value of the message of this number, and what lies below it."""
        if self.last != message:
            self.last = message
            self.present += 1
        kind = type(value)
        if kind is float and self.shape.unites_numbers and value.is_integer():
            kind = int
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if value is None:
            if self.last_null != message:
                self.last_null = message
                self.nulls += 1
        elif kind is dict:
            self._visit_fields(value, message)
        elif kind is list:
            self._range(kind, len(value))
            inner = self._below("[]") if value else None
            if inner is not None:
                for item in value:
                    inner.visit(item, message)
        elif kind is bool or self.shape.counted:
            self._count(str(value).lower() if kind is bool else self.shape.symbol(str(value)))
        else:
            self._scalar(kind, value)

    def _visit_fields(self, fields: dict[str, Any], message: int) -> None:
        if self.shape.keyed:
            self._range(dict, len(fields))
            inner = self._below("{}") if fields else None
            if inner is not None:
                for value in fields.values():
                    inner.visit(value, message)
            return
        for name, value in fields.items():
            child = self.children.get(name) or self._child(name)
            if child is not None:
                child.visit(value, message)

    def _child(self, name: str) -> Node | None:
        if self.shape.free:
            shown = masked_key(name) if len(self.children) < MOST_KEYS else "{}"
            if shown != name:
                return self._below("{}")
        return self._below(name)

    def _below(self, step: str) -> Node | None:
        """The node one step down; None where the tree is deep or wide enough."""
        found = self.children.get(step)
        if found is None and self.depth < DEEPEST and len(self.tree.paths) < MOST_PATHS:
            inner = step in ("[]", "{}")
            path = f"{self.path}{step}" if inner or not self.path else f"{self.path}.{step}"
            shape = self.shape.item() if inner else self.shape.child(step)
            found = self.children[step] = Node(self.tree, path, shape, self.depth + 1)
        return found

    def _count(self, value: str) -> None:
        if value in self.values or len(self.values) < MOST_VALUES:
            self.values[value] = self.values.get(value, 0) + 1

    def _scalar(self, kind: type, value: Any) -> None:
        if kind is str or kind is bytes:
            self._range(kind, clean(value[:SHOWN]) if self.tree.reveal and kind is str else len(value))
        elif value == value:  # noqa: PLR0124  not NaN
            self._range(kind, value)
        if value in self.seen:
            return
        if len(self.seen) < REMEMBERED and not (kind in (str, bytes) and len(value) > SHOWN):
            self.seen.add(value)
        written = value if kind is bytes else str(value).encode("utf-8", "surrogatepass")
        hashed = int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "big")
        if hashed < self.threshold:
            self.hashes.add(hashed)
            if len(self.hashes) >= 2 * SKETCH:
                self.hashes = set(sorted(self.hashes)[:SKETCH])
                self.threshold = max(self.hashes)

    def _range(self, kind: type, rank: Any) -> None:
        known = self.ranges.get(kind)
        if known is None:
            self.ranges[kind] = [rank, rank]
        elif rank < known[0]:
            known[0] = rank
        elif rank > known[1]:
            known[1] = rank

    def row(self) -> dict[str, Any]:
        """Counts; `low` and `high` are a sortable rank with the text for people, both masked unless revealed."""
        labels = self.shape.labels
        kinds: dict[str, int] = {}
        for kind, count in self.kinds.items():
            label = labels.get(kind) or Shape.labels.get(kind, "other")
            kinds[label] = kinds.get(label, 0) + count
        row: dict[str, Any] = {"present": self.present, "nulls": self.nulls, "kinds": kinds, "values": self.values}
        if self.hashes:
            row["hashes"] = sorted(self.hashes)[:SKETCH]
        if self.ranges:
            kind = max(self.ranges, key=lambda each: (self.kinds.get(each, 0), each.__name__))
            row["low"], row["high"] = (self._shown(kind, rank) for rank in self.ranges[kind])
        return row

    def _shown(self, kind: type, rank: Any) -> list[Any]:
        if kind is str:
            return [rank, rank] if isinstance(rank, str) else [rank, f"{rank:,} characters"]
        if kind is bytes:
            return [rank, f"{rank:,} bytes"]
        if kind in (list, dict):
            return [rank, f"{rank:,} items"]
        if self.tree.reveal:
            return [float(rank) if abs(rank) < 1e300 else (1e300 if rank > 0 else -1e300), str(rank)[:SHOWN]]
        if self.shape.calendar is not None and kind is int:
            year = year_of(rank, self.shape.calendar)
            return [year, str(year)]
        return [magnitude(rank), shown_magnitude(magnitude(rank))]
