"""Shell patterns of names, checked before they are stored: for rights, ownership, subscriptions, mutes and rules. Pure."""

from __future__ import annotations

import glob
import re
from typing import Final

from registry.errors import InvalidInput

MAX_LENGTH: Final = 255
MAX_STARS: Final = 10
#: signs that somebody means as a wildcard or a list, and that fit nothing but themselves
_NO_WILDCARDS: Final = {"%": "'*' stands for any text", ",": "write one pattern, and add the others one by one"}
_RANGE: Final = re.compile(r"(.)-(.)", re.DOTALL)


def checked_pattern(text: str, what: str, *, longest: int = MAX_LENGTH, field: str = "") -> str:
    """A pattern without blanks around it; an empty one means all. `what` names it in the error, such as `subject`.

    `*` stands for any text, `?` for one character, `[ab]` for one of them. What can't fit a name, or not as its writer
    means it, is refused: a pattern that fits nothing looks like a right and is none. Raises InvalidInput.
    """
    pattern = text.strip() or "*"
    problem = _problem(pattern, longest)
    if problem:
        shown = pattern[:60].encode("unicode_escape").decode()
        raise InvalidInput(
            f"The {what} pattern '{shown}' {problem}. A pattern is a name such as orders-value, or part of one with "
            "'*', '?' and '[ab]', such as orders-*.",
            field=field or f"{what}_pattern",
        )
    return pattern


def _problem(pattern: str, longest: int) -> str:
    if len(pattern) > longest:
        return f"has {len(pattern)} characters, and {longest} are allowed"
    if pattern.count("*") > MAX_STARS:
        return f"has {pattern.count('*')} '*', and at most ten are allowed"
    for position, sign in enumerate(pattern, start=1):
        if sign.isspace():
            return f"has a blank at position {position}: '?' stands for one character"
        if not sign.isprintable():
            return f"has a character at position {position} that doesn't show"
        if sign in _NO_WILDCARDS:
            return f"has {sign!r} at position {position}: {_NO_WILDCARDS[sign]}, '?' for one character"
    return _brackets(pattern)


def _brackets(pattern: str) -> str:
    """What is wrong with the brackets: one that isn't closed, or a range that is empty."""
    place = 0
    while (start := pattern.find("[", place)) >= 0:
        first = start + 1 + pattern.startswith(("!", "^"), start + 1)
        end = pattern.find("]", first + 1)
        if end < 0:
            return f"has a '[' at position {start + 1} that isn't closed"
        for low, high in _RANGE.findall(pattern[first:end]):
            if low > high:
                return f"has the empty range {low}-{high}"
        place = end + 1
    return ""


def pattern_of(name: str) -> str:
    """A pattern that fits a name as it is: signs that a pattern can't have become '?', which fits them too."""
    return "".join(
        "?" if sign.isspace() or not sign.isprintable() or sign in _NO_WILDCARDS else sign for sign in glob.escape(name)
    )
