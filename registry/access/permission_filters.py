"""Permissions as conditions of SQL, for pages, counts and choices; and the name patterns that permissions are made of.

`roles.may` decides; `extent_of` says the same for many rows at once, without a query, since registries are named by their
names. Patterns are those of a shell, checked before they are stored: for rights, ownership, subscriptions, mutes, rules.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from registry.access.roles import ACTIONS, LOOKING, ROLES, Actor, refusal, require
from registry.errors import InvalidInput

#: no row at all
NOTHING: Final = Q(pk__in=())
ALL: Final = "*"
#: what is between brackets and means the same to PostgreSQL, letter by letter: a few letters, digits and ranges of them
_SET: Final = re.compile(r"(!?)((?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_.:])+)(-?)")
_WILD: Final = re.compile(r"[*?\[]")
_PIECE: Final = re.compile(r"(.)-(.)|(.)")


@dataclass(frozen=True)
class ExtentPart:
    """A registry (empty: each one), and the shell patterns that a subject must fit, all of them (none: any subject)."""

    registry: str = ""
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extent:
    """All the parts together; with none of them nothing is allowed anywhere."""

    parts: tuple[ExtentPart, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it is everything, what is of no registry too."""
        return ExtentPart() in self.parts

    @property
    def has_registries(self) -> bool:
        """Whether it has any registry with all that is in it."""
        return any(not part.patterns for part in self.parts)

    def has(self, registry: str) -> bool:
        """Whether it has anything of a registry, were it a few subjects."""
        return any(part.registry in ("", registry) for part in self.parts)

    def has_all_of(self, registry: str) -> bool:
        """Whether it has a registry with all that is in it."""
        return any(part.registry in ("", registry) and not part.patterns for part in self.parts)

    def within(self, registry: str) -> Extent:
        """What it has of a registry; all of it for no name."""
        if not registry:
            return self
        return Extent(
            tuple(ExtentPart(registry, part.patterns) for part in self.parts if part.registry in ("", registry))
        )

    def registries(self, name: str) -> Q:
        """The rows of registries that it has wholly, by the column with the registry's name."""
        return _any(_of(part, name) for part in self.parts if not part.patterns)

    def subjects(self, name: str, subject: str) -> Q:
        """The rows of subjects that it has, by the columns with the registry's name and the subject's qualified one.

        A row about no subject has an empty one, and is there for whoever has the whole registry.
        """
        return _any(_of(part, name) & _fits(part.patterns, subject) for part in self.parts)


def extent_of(by: Actor, action: str) -> Extent:
    """Where somebody may do the action; a token takes away from what its person may."""
    limit = by.limit
    if (by.past and action not in LOOKING) or (limit and not limit.has(action)):
        return Extent(())
    parts: dict[ExtentPart, None] = {}
    for grant in by.grants:
        patterns = [grant.subject_pattern]
        registry = grant.registry
        if limit:
            patterns.append(limit.subject_pattern)
            registry = registry or limit.registry
        if grant.role in ACTIONS[action] and (not limit or limit.registry in ("", registry)):
            parts[ExtentPart(registry, tuple(dict.fromkeys(pattern for pattern in patterns if pattern != ALL)))] = None
    return Extent((ExtentPart(),) if ExtentPart() in parts else tuple(parts))


def require_extent(by: Actor, action: str, *, registry: str = "") -> Extent:
    """What somebody may there, in a registry or (empty) anywhere. Raises NotSignedIn, NotAllowed where it is nothing.

    It says the same of a registry that isn't there.
    """
    extent = extent_of(by, action).within(registry)
    if not extent.parts:
        require(by, action, registry=registry)
    return extent


def refusal_in_any(by: Actor, action: str, *, registry: str = "") -> str:
    """Why somebody may not do the action in any registry as a whole, or in this one; "" where they may.

    For a form or a list of many registries: of each the service asks again.
    """
    extent = extent_of(by, action).within(registry)
    return "" if extent.has_registries else refusal(by, action, registry=registry)


def as_regex(pattern: str) -> str:
    """A shell pattern as a regular expression of PostgreSQL that fits the same texts; none where that isn't certain."""
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        sign, position = pattern[position], position + 1
        end = pattern.find("]", position + 1 + (pattern[position : position + 1] == "!")) if sign == "[" else -1
        if sign == "*":
            if not parts or parts[-1] != ".*":
                parts.append(".*")
        elif sign == "?":
            parts.append(".")
        elif end < 0:
            parts.append(_literal(sign))
        else:
            letters = _letters(pattern[position:end])
            if not letters:
                return "(?!)"
            parts.append(letters)
            position = end + 1
    return f"^{''.join(parts)}$"


def _letters(inside: str) -> str:
    """What is between brackets, each letter by itself: what a range has depends on the order of letters."""
    if len(inside) == 1:
        return _literal(inside)
    match = _SET.fullmatch(inside)
    if match is None:
        return ""
    letters: list[str] = []
    for first, last, single in _PIECE.findall(match[2]):
        if first > last:
            return ""
        letters += [single] if single else [chr(code) for code in range(ord(first), ord(last) + 1)]
    return f"[{'^' if match[1] else ''}{''.join(map(_literal, [*letters, *match[3]]))}]"


def _literal(sign: str) -> str:
    return sign if sign.isalnum() or not sign.isascii() or sign == "_" else f"\\{sign}"


def _of(part: ExtentPart, name: str) -> Q:
    return Q(**{name: part.registry}) if part.registry else Q()


def _fits(patterns: tuple[str, ...], subject: str) -> Q:
    fits = ~Q(**{subject: ""}) if patterns else Q()
    for pattern in patterns:
        fits &= _fit(pattern, subject)
    return fits


def _fit(pattern: str, subject: str) -> Q:
    """One pattern; most are a name or its beginning, which an index may tell."""
    if not _WILD.search(pattern):
        return Q(**{subject: pattern})
    if pattern[-1] == "*" and not _WILD.search(pattern[:-1]):
        return Q(**{f"{subject}__startswith": pattern[:-1]})
    return Q(**{f"{subject}__regex": as_regex(pattern)})


def _any(conditions: Iterable[Q]) -> Q:
    """One of the conditions; an empty one is always true, so that it stands for all."""
    alternatives = list(conditions)
    if not alternatives:
        return NOTHING
    if Q() in alternatives:
        return Q()
    combined = alternatives[0]
    for condition in alternatives[1:]:
        combined |= condition
    return combined


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
    position = 0
    while (start := pattern.find("[", position)) >= 0:
        first = start + 1 + pattern.startswith(("!", "^"), start + 1)
        end = pattern.find("]", first + 1)
        if end < 0:
            return f"has a '[' at position {start + 1} that isn't closed"
        for low, high in _RANGE.findall(pattern[first:end]):
            if low > high:
                return f"has the empty range {low}-{high}"
        position = end + 1
    return ""


def pattern_of(name: str) -> str:
    """A pattern that fits a name as it is: signs that a pattern can't have become '?', which fits them too."""
    return "".join(
        "?" if sign.isspace() or not sign.isprintable() or sign in _NO_WILDCARDS else sign for sign in glob.escape(name)
    )


def checked_place(registry: str, subject_pattern: str) -> tuple[str, str]:
    """Registry and pattern without blanks around them. Raises InvalidInput.

    The pattern is one of a shell (`orders-*`, `?`, `[ab]`) and is held against the qualified name of the subject.
    """
    registry = registry.strip()
    if len(registry) > MAX_LENGTH or not registry.isprintable():
        raise InvalidInput(f"The registry has at most {MAX_LENGTH} characters, and none that doesn't show.")
    return registry, checked_pattern(subject_pattern, "subject")


def checked_role(role: str) -> str:
    """The role. Raises InvalidInput for one that doesn't exist."""
    if role not in ROLES:
        raise InvalidInput(f"There is no role {role[:40]!r}; the roles are {', '.join(ROLES)}.")
    return role


def place_words(registry: str, subject_pattern: str) -> str:
    """A place as the audit and the pages say it."""
    subjects = "all subjects" if subject_pattern == "*" else f"subjects {subject_pattern}"
    return f"{subjects} in {registry or 'all registries'}"
