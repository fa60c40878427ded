"""What was seen at each path, as a tree; and what a proposal tells of itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from registry.observations import FieldProfile

ITEMS: Final = "[]"
KEYED: Final = "{}"
#: kinds of JSON values; data of other kinds was held to a schema when it was decoded
KINDS: Final = ("array", "boolean", "integer", "number", "object", "string")
DEEPEST: Final = 20
SHOWN_NAME: Final = 80


@dataclass
class Seen:
    """What stands at a path: kinds of values, whether null does, and what lies below.

    `share` is of the messages that have the path; below a list or keys it tells nothing.
    """

    path: str
    kinds: frozenset[str] = frozenset()
    nullable: bool = False
    share: float = 0.0
    below: dict[str, Seen] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Seen]:
        """The fields of an object by name, without items and keys that are data."""
        return {name: each for name, each in self.below.items() if name not in (ITEMS, KEYED)}


def tree_of(fields: Iterable[FieldProfile]) -> Seen:
    """The paths as a tree; one hangs on the longest path that it begins with, since names may have dots."""
    root = Seen("", kinds=frozenset({"object"}))
    by_path = {"": root}
    for each in sorted(fields, key=lambda each: (len(each.path), each.path)):
        if not each.path:
            root.kinds = _kinds(each)
            continue
        node = Seen(
            each.path, _kinds(each), bool(each.nulls or each.kinds.get("null")), each.present / max(1, each.messages)
        )
        parent, step = _parent(each.path, by_path)
        by_path[parent].below[step] = node
        by_path[each.path] = node
    for node in by_path.values():
        node.below = dict(sorted(node.below.items()))
        if node.path:
            node.kinds |= _implied(node)
    if set(root.below) == {ITEMS}:
        root.kinds = frozenset({"array"})
    return root


def _kinds(each: FieldProfile) -> frozenset[str]:
    kinds = {kind for kind, number in each.kinds.items() if number and kind in KINDS}
    return frozenset(kinds - {"integer"} if "number" in kinds else kinds)


def _implied(node: Seen) -> frozenset[str]:
    """What a value must have been to have something below it, where its own kind wasn't counted."""
    held = {"array"} if ITEMS in node.below else set()
    return frozenset(held | ({"object"} if node.below.keys() - {ITEMS} else set()))


def _parent(path: str, known: dict[str, Seen]) -> tuple[str, str]:
    for step in (ITEMS, KEYED):
        if path.endswith(step) and path[: -len(step)] in known:
            return path[: -len(step)], step
    cut = path.rfind(".")
    while cut > 0:
        if path[:cut] in known and path[cut + 1 :]:
            return path[:cut], path[cut + 1 :]
        cut = path.rfind(".", 0, cut)
    return "", path


@dataclass
class Notes:
    """What a proposal adds and leaves out, and on how many messages it rests."""

    messages: int
    added: list[str] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, seen: Seen) -> None:
        """A path that the proposal declares."""
        self.added.append(seen.path)
        self.shares[seen.path] = seen.share

    def leave_out(self, path: str, reason: str) -> None:
        """A path that it doesn't, and why."""
        self.left_out.setdefault(path, reason)

    def words(self, most: int) -> str:
        """The notes in sentences."""
        named = [f"{_short(path)} (in {self.shares[path]:.0%})" for path in self.added[:most]]
        more = f" and {len(self.added) - most} more" if len(self.added) > most else ""
        counted = f"{self.messages:,} message{'' if self.messages == 1 else 's'}"
        said = f"Proposed from {counted}: added {', '.join(named)}{more}, all optional."
        return f"{said} {self.left_out_words()}" if self.left_out else said

    def left_out_words(self) -> str:
        """What was left out, in a sentence."""
        listed = [f"{_short(path)} ({reason})" for path, reason in list(self.left_out.items())[:5]]
        more = f" and {len(self.left_out) - 5} more" if len(self.left_out) > 5 else ""
        return f"Left out: {', '.join(listed)}{more}."


def _short(path: str) -> str:
    return path if len(path) <= SHOWN_NAME else f"{path[: SHOWN_NAME - 1]}…"
