"""Counts the values at each path, and masks them: what may be shown of a value without the value.

That is the length and character classes of a text, the sign and magnitude of a number, the length of bytes, the year of
a date.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from registry.pipeline.workers.schema_shapes import UNLISTED, Encoding, Shape
from registry.pipeline.workers.value_ranks import MOST_FIELDS, RankedRows, rank_of

SHAPE = 40  # characters of a text's shape
SHOWN = 200  # characters of a revealed value
SAMPLE = 4_000  # characters of a sample
DEEPEST = 20
WIDEST = 50  # items and fields of a sample
# A field name that a person chose. Keys that are data themselves (ids, addresses) count as any key.
NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]{0,63}")
DATA_LIKE = re.compile(r"[0-9]{4}|[0-9a-fA-F]{8}-|[0-9a-fA-F]{16}")
SECONDS = {"date": 86_400, "ms": 0.001, "us": 0.000_001, "ns": 0.000_000_001}
YEAR = 31_556_952  # seconds, on average


def shape(text: str) -> str:
    """Return the classes of a text's characters and its length: `Ada-42` is `Aaa-99 (6)`."""
    classes = []
    for character in text[:SHAPE]:
        if character.isdigit():
            classes.append("9")
        elif character.isalpha():
            classes.append("A" if character.isupper() else "a")
        else:
            classes.append(character if " " <= character <= "~" else "?")
    cut = "…" if len(text) > SHAPE else ""
    return f"{''.join(classes)}{cut} ({len(text)})"


def magnitude(number: Any) -> int:
    """Return a number's sign and order of magnitude as one number with the same sort order; 0 for zero.

    `1e3` to `9.99e3` give 400 + 3, their negatives -403.
    """
    if number == 0:
        return 0
    size = abs(number)
    if isinstance(size, int):
        exponent = min(len(str(size)) - 1, 999) if size < 10**400 else 400
    else:
        exponent = math.floor(math.log10(size)) if size != math.inf else 400
    return (exponent + 400) if number > 0 else -(exponent + 400)


def shown_magnitude(code: int) -> str:
    """Return `0`, `1e3` or `-1e3`: the power of ten that a number reaches."""
    if code == 0:
        return "0"
    return f"{'-' if code < 0 else ''}1e{abs(code) - 400}"


def year_of(number: int, calendar: str) -> int:
    """Return the year of a date or time; within a day of New Year it may be off by one."""
    return 1970 + math.floor(number * SECONDS[calendar] / YEAR)


def masked_key(name: str) -> str:
    """Return a field's name, or `{}` for a key that looks like data."""
    return name if NAME.fullmatch(name) and not DATA_LIKE.search(name) else "{}"


def clean(text: str) -> str:
    """Return a text that can be stored: lone surrogates and zero characters are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def sample_text(value: Any, reveal: bool) -> str:
    """Return a decoded value as JSON for people, masked unless `reveal`, and truncated."""
    text = clean(json.dumps(_plain(value) if reveal else masked(value), ensure_ascii=False, default=str))
    return text if len(text) <= SAMPLE else f"{text[:SAMPLE]}…"


def masked(value: Any, depth: int = 0) -> Any:
    """Mask a decoded value; only its form remains."""
    if value is None or isinstance(value, bool | Encoding):
        return value
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {
            str(name) if isinstance(inner, Encoding) else masked_key(str(name)): masked(inner, depth + 1)
            for name, inner in list(value.items())[:WIDEST]
        }
    if isinstance(value, (list, tuple)):
        return [masked(inner, depth + 1) for inner in value[:WIDEST]]
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    if isinstance(value, (int, float)):
        return shown_magnitude(magnitude(value)) if value == value else "NaN"  # noqa: PLR0124
    return shape(str(value))


def _plain(value: Any, depth: int = 0) -> Any:
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return value


MOST_PATHS = 500
MOST_VALUES = 100
LIMITS = {"fields": MOST_PATHS, "depth": DEEPEST, "symbols": MOST_VALUES}
MOST_PLACES = 2_000  # ranges of offsets of one schema's messages, in all fields
MOST_KEYS = 100  # per path, for field names that come from the data
REMEMBERED = 512  # values that were seen, so that they aren't hashed again
SKETCH = 512  # smallest hashes kept: the number of distinct values is estimated within about 4 %
HASHES = 2**64


class Tree:
    """The paths of the messages of one schema (or of JSON without one) on one side of one topic."""

    def __init__(self, shape: Shape, reveal: bool) -> None:
        self.reveal = reveal
        self.messages = 0
        self.place: tuple[int, int] | None = None
        self.firsts = 0  # how often a message was the first with a field or a kind, or the first without a field
        self.left_out: dict[str, int] = {}  # messages in which a limit left something out, by limit
        self._left_out_of: dict[str, int] = {}  # the last such message, by limit
        self.paths: dict[str, Node] = {}
        self.places_left = MOST_PLACES
        self.ranked = RankedRows()
        self.row: dict[str, int] | None = None  # the ranks of this message's values, if it is one of the ranked rows
        self.root = Node(self, "", shape, 0)

    def add(self, value: Any, place: tuple[int, int]) -> None:
        """Count a decoded message at this (partition, offset)."""
        self.messages += 1
        self.place = place
        self.row = self.ranked.start(place)
        self.root.visit(value, self.messages)

    def leave_out(self, limit: str) -> None:
        """Record that something in this message isn't counted."""
        if self._left_out_of.get(limit) != self.messages:
            self._left_out_of[limit] = self.messages
            self.left_out[limit] = self.left_out.get(limit, 0) + 1

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the counts at each path, as plain JSON."""
        for path, node in self.paths.items():
            yield {"path": path, "messages": self.messages, **node.row()}


class Node:
    """The counts at one path."""

    __slots__ = (
        "absent",
        "always",
        "children",
        "depth",
        "distinct_values",
        "first_of_kind",
        "hashes",
        "is_late",
        "is_single",
        "kinds",
        "last",
        "last_null",
        "nulls",
        "path",
        "places",
        "present",
        "ranges",
        "shape",
        "threshold",
        "tree",
        "undeclared",
        "usual_kind",
        "values",
    )

    def __init__(self, tree: Tree, path: str, shape: Shape, depth: int) -> None:
        self.tree, self.path, self.shape, self.depth = tree, path, shape, depth
        self.is_single = "[]" not in path and "{}" not in path
        self.children: dict[str, Node | None] = {}
        self.present = self.nulls = self.last = self.last_null = 0
        self.kinds: dict[type, int] = {}
        self.values: dict[str, int] = {}
        self.ranges: dict[type, list[Any]] = {}
        # the first message with a field or value here that the schema doesn't declare
        self.undeclared: tuple[int, int] | None = None
        # the first message with a value of each kind, and the first whose parent object lacks this field
        self.first_of_kind: dict[type, tuple[int, int]] = {}
        self.absent: tuple[int, int] | None = None
        self.always: set[str] = set()  # fields that every object here has had so far, or whose absences are listed
        self.is_late = False  # earlier objects of JSON lacked this field
        self.usual_kind: type | None = None  # the first one
        # partition, first and last offset of messages, by what is unusual in them: see observations.FieldProfile
        self.places: dict[str | type, list[list[int]]] = {}
        self.distinct_values: set[Any] = set()
        self.hashes: set[int] = set()
        self.threshold = HASHES
        tree.paths[path] = self

    def visit(self, value: Any, message: int) -> None:
        """Count a value of the message with this number, and everything below it."""
        if self.last != message:
            self.last = message
            self.present += 1
            if self.shape.undeclared or self.is_late:
                self.undeclared = self.undeclared or (self.tree.place if self.shape.undeclared else None)
                self._list_place("present")
        kind = type(value)
        if kind is float and self.shape.unites_numbers and value.is_integer():
            kind = int
        count = self.kinds.get(kind, 0)
        if not count and self.tree.place is not None:
            self.first_of_kind[kind] = self.tree.place
            self.tree.firsts += 1
        self.kinds[kind] = count + 1
        if self.usual_kind is None:
            self.usual_kind = kind
        elif kind is not self.usual_kind and self.shape.free:
            self._list_place(kind)
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
        if not fields.keys() >= self.always:
            for name in self.always.difference(fields):
                child = self.children[name]
                if child is None or not child._miss(is_listed=self.shape.free):
                    self.always.discard(name)
        for name, value in fields.items():
            child = self.children.get(name) or self._child(name)
            if child is not None:
                child.visit(value, message)

    def _miss(self, *, is_listed: bool) -> bool:
        """Record an object without this field; return whether to record the next one too."""
        if self.absent is None:
            self.absent = self.tree.place
            self.tree.firsts += 1
        return is_listed and self._list_place("absent")

    def _list_place(self, what: str | type) -> bool:
        """List the message; return False if there is no room left."""
        partition, offset = self.tree.place or (0, 0)
        ranges = self.places.setdefault(what, [])
        if ranges and ranges[-1][0] == partition and offset - 1 <= ranges[-1][2] <= offset:
            ranges[-1][2] = offset
        elif self.tree.places_left:
            self.tree.places_left -= 1
            ranges.append([partition, offset, offset])
        else:
            return False
        return True

    def _child(self, name: str) -> Node | None:
        if self.shape.free:
            shown = masked_key(name) if len(self.children) < MOST_KEYS else "{}"
            if shown != name:
                return self._below("{}")
        return self._below(name)

    def _below(self, step: str) -> Node | None:
        """Return the node one step down; None if the tree is too deep or too wide."""
        child = self.children.get(step)
        if child is not None:
            return child
        limit = "depth" if self.depth >= DEEPEST else "fields" if len(self.tree.paths) >= MOST_PATHS else ""
        if limit:
            self.tree.leave_out(limit)
        else:
            inner = step in ("[]", "{}")
            path = f"{self.path}{step}" if inner or not self.path else f"{self.path}.{step}"
            shape = self.shape.item() if inner else self.shape.child(step)
            child = self.children[step] = Node(self.tree, path, shape, self.depth + 1)
            if not inner and self.kinds[dict] > 1:
                child.absent = self.first_of_kind.get(dict)  # earlier objects lacked this field
                child.is_late = self.shape.free
            elif not inner:
                self.always.add(step)
        return child

    def _count(self, value: str) -> None:
        if value in UNLISTED:
            if self.undeclared is None:
                self.undeclared = self.tree.place
                self.tree.firsts += 1
            self._list_place("unlisted")
        if value not in self.values and value not in UNLISTED and len(self.values) >= MOST_VALUES:
            self.tree.leave_out("symbols")
        else:
            self.values[value] = self.values.get(value, 0) + 1

    def _scalar(self, kind: type, value: Any) -> None:
        row = self.tree.row
        if row is not None and self.is_single and len(row) < MOST_FIELDS and (rank := rank_of(value)) is not None:
            row[self.path] = rank
        if kind is str or kind is bytes:
            self._range(kind, clean(value[:SHOWN]) if self.tree.reveal and kind is str else len(value))
        elif value == value:  # noqa: PLR0124  not NaN
            self._range(kind, value)
        if value in self.distinct_values:
            return
        if len(self.distinct_values) < REMEMBERED and not (kind in (str, bytes) and len(value) > SHOWN):
            self.distinct_values.add(value)
        written = value if kind is bytes else str(value).encode("utf-8", "surrogatepass")
        hashed = int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "big")
        if hashed < self.threshold:
            self.hashes.add(hashed)
            if len(self.hashes) >= 2 * SKETCH:
                self.hashes = set(sorted(self.hashes)[:SKETCH])
                self.threshold = max(self.hashes)

    def _range(self, kind: type, rank: Any) -> None:
        bounds = self.ranges.get(kind)
        if bounds is None:
            self.ranges[kind] = [rank, rank]
        elif rank < bounds[0]:
            bounds[0] = rank
        elif rank > bounds[1]:
            bounds[1] = rank

    def row(self) -> dict[str, Any]:
        """Return the counts; `low` and `high` are a sort rank and the text for people, both masked unless revealed."""
        labels = self.shape.labels
        kinds: dict[str, int] = {}
        for kind, count in self.kinds.items():
            label = labels.get(kind) or Shape.labels.get(kind, "other")
            kinds[label] = kinds.get(label, 0) + count
        row: dict[str, Any] = {"present": self.present, "nulls": self.nulls, "kinds": kinds, "values": self.values}
        if self.shape.declared:
            row["declared"] = self.shape.declared
        if self.undeclared is not None:
            row["undeclared"] = list(self.undeclared)
        if self.absent is not None:
            row["absent"] = list(self.absent)
        firsts = sorted(self.first_of_kind.items(), key=lambda item: item[1], reverse=True)
        row["first_of_kind"] = {labels.get(kind) or Shape.labels.get(kind, "other"): place for kind, place in firsts}
        if self.places:
            row["places"] = {
                what if isinstance(what, str) else labels.get(what) or Shape.labels.get(what, "other"): ranges
                for what, ranges in self.places.items()
            }
        if self.hashes:
            row["hashes"] = sorted(self.hashes)[:SKETCH]
        if self.ranges:
            kind = max(self.ranges, key=lambda value_type: (self.kinds.get(value_type, 0), value_type.__name__))
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
