"""Strings that a pattern matches, built from the pattern's syntax tree; nothing is ever matched here.

Python's parser reads the pattern, as ECMA's syntax and its own agree on what schemas use; where they don't, there is
no string, and the caller tries others. What is built is checked by the validator afterwards.
"""

from __future__ import annotations

import random
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any, Final

MAX_PATTERN: Final = 1_000
_MAX_LENGTH: Final = 2_000
_MAX_REPEAT: Final = 200
_ANY: Final = "abcxyzABC019 _-"
_CATEGORIES: Final = {
    constants.CATEGORY_DIGIT: "0123456789",
    constants.CATEGORY_WORD: "abzAZ09_",
    constants.CATEGORY_SPACE: " \t",
    constants.CATEGORY_NOT_DIGIT: "ab _-",
    constants.CATEGORY_NOT_WORD: " -.!",
    constants.CATEGORY_NOT_SPACE: "ab09-",
}


class _TooLong(Exception):
    """The string got longer than is useful."""


def matching_strings(pattern: str, seed: int, count: int = 4) -> list[str]:
    """A few strings that the pattern is likely to match; empty for a pattern that isn't understood."""
    if len(pattern) > MAX_PATTERN:
        return []
    try:
        tree = parser.parse(pattern)
        found = [_Builder(random.Random(seed + number), is_short=number == 0).text(tree) for number in range(count)]  # noqa: S311 - no secret
    except (ValueError, OverflowError, RecursionError, _TooLong, re_error):
        return []
    return list(dict.fromkeys(found))


re_error: Final[type[Exception]] = parser.error


class _Builder:
    """Builds one string; a short one repeats as little as possible."""

    def __init__(self, chance: random.Random, *, is_short: bool) -> None:
        self._chance = chance
        self._is_short = is_short
        self._groups: dict[int, str] = {}
        self._length = 0

    def text(self, tree: Any) -> str:
        """The string of a sequence of nodes."""
        return "".join(self._node(kind, value) for kind, value in tree)

    def _node(self, kind: Any, value: Any) -> str:
        text = self._built(kind, value)
        self._length += 1
        if self._length > _MAX_LENGTH or len(text) > _MAX_LENGTH:
            raise _TooLong
        return text

    def _built(self, kind: Any, value: Any) -> str:
        if kind is constants.LITERAL:
            return chr(value)
        if kind is constants.NOT_LITERAL:
            return self._pick([char for char in _ANY if ord(char) != value])
        if kind is constants.ANY:
            return self._pick(list(_ANY))
        if kind is constants.IN:
            return self._pick(_members(value))
        if kind is constants.BRANCH:
            return self.text(self._chance.choice(value[1]))
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            return self._repeated(*value)
        if kind is constants.SUBPATTERN:
            text = self.text(value[-1])
            if value[0] is not None:
                self._groups[value[0]] = text
            return text
        if kind is constants.GROUPREF:
            return self._groups.get(value, "")
        if kind is constants.ATOMIC_GROUP:
            return self.text(value)
        return ""

    def _repeated(self, least: int, most: Any, tree: Any) -> str:
        limit = min(int(most), least + (0 if self._is_short else 3), _MAX_REPEAT)
        if least > _MAX_REPEAT * 5:
            raise _TooLong
        times = self._chance.randint(least, max(limit, least))
        return "".join(self.text(tree) for _ in range(times))

    def _pick(self, characters: list[str]) -> str:
        if not characters:
            raise _TooLong
        return self._chance.choice(characters)


def _members(items: Any) -> list[str]:
    """Characters of a class, a few of each range."""
    is_negated = bool(items) and items[0][0] is constants.NEGATE
    found: list[str] = []
    for kind, value in items:
        if kind is constants.LITERAL:
            found.append(chr(value))
        elif kind is constants.RANGE:
            low, high = value
            found.extend(chr(code) for code in {low, (low + high) // 2, high})
        elif kind is constants.CATEGORY:
            found.extend(_CATEGORIES.get(value, ""))
    found = [char for char in found if not "\ud800" <= char <= "\udfff"]
    if not is_negated:
        return found
    barred = _Barred(items)
    return [char for char in _ANY + "éß." if char not in barred]


class _Barred:
    """The characters that a negated class names."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __contains__(self, char: str) -> bool:
        for kind, value in self._items:
            if kind is constants.LITERAL and ord(char) == value:
                return True
            if kind is constants.RANGE and value[0] <= ord(char) <= value[1]:
                return True
            if kind is constants.CATEGORY and char in _CATEGORIES.get(value, ""):
                return True
        return False
