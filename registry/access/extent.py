"""Where somebody may do something, as a condition of SQL: so that pages, counts and choices are of that alone.

`roles.may` decides; this says the same of many rows at once. It needs no query: registries are named by their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from registry.access.roles import ACTIONS, LOOKING, Actor, refusal, require

#: no row at all
NOTHING: Final = Q(pk__in=())
ALL: Final = "*"
#: what is between brackets and means the same to PostgreSQL, letter by letter: a few letters, digits and ranges of them
_SET: Final = re.compile(r"(!?)((?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_.:])+)(-?)")
_WILD: Final = re.compile(r"[*?\[]")
_PIECE: Final = re.compile(r"(.)-(.)|(.)")


@dataclass(frozen=True)
class Part:
    """A registry (empty: each one), and the shell patterns that a subject must fit, all of them (none: any subject)."""

    registry: str = ""
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extent:
    """All the parts together; with none of them nothing is allowed anywhere."""

    parts: tuple[Part, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it is everything, what is of no registry too."""
        return Part() in self.parts

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
        return Extent(tuple(Part(registry, part.patterns) for part in self.parts if part.registry in ("", registry)))

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
    parts: dict[Part, None] = {}
    for grant in by.grants:
        held = [grant.subject_pattern]
        registry = grant.registry
        if limit:
            held.append(limit.subject_pattern)
            registry = registry or limit.registry
        if grant.role in ACTIONS[action] and (not limit or limit.registry in ("", registry)):
            parts[Part(registry, tuple(dict.fromkeys(pattern for pattern in held if pattern != ALL)))] = None
    return Extent((Part(),) if Part() in parts else tuple(parts))


def require_extent(by: Actor, action: str, *, registry: str = "") -> Extent:
    """What somebody may there, in a registry or (empty) anywhere. Raises NotSignedIn, NotAllowed where it is nothing.

    It says the same of a registry that isn't there.
    """
    found = extent_of(by, action).within(registry)
    if not found.parts:
        require(by, action, registry=registry)
    return found


def refusal_in_any(by: Actor, action: str, *, registry: str = "") -> str:
    """Why somebody may not do the action in any registry as a whole, or in this one; "" where they may.

    For a form or a list of many registries: of each the service asks again.
    """
    found = extent_of(by, action).within(registry)
    return "" if found.has_registries else refusal(by, action, registry=registry)


def as_regex(pattern: str) -> str:
    """A shell pattern as a regular expression of PostgreSQL that fits the same texts; none where that isn't certain."""
    found: list[str] = []
    place = 0
    while place < len(pattern):
        sign, place = pattern[place], place + 1
        end = pattern.find("]", place + 1 + (pattern[place : place + 1] == "!")) if sign == "[" else -1
        if sign == "*":
            if not found or found[-1] != ".*":
                found.append(".*")
        elif sign == "?":
            found.append(".")
        elif end < 0:
            found.append(_literal(sign))
        else:
            letters = _letters(pattern[place:end])
            if not letters:
                return "(?!)"
            found.append(letters)
            place = end + 1
    return f"^{''.join(found)}$"


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


def _of(part: Part, name: str) -> Q:
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
    found = list(conditions)
    if not found:
        return NOTHING
    if Q() in found:
        return Q()
    wanted = found[0]
    for condition in found[1:]:
        wanted |= condition
    return wanted
