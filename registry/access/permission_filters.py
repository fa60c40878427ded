"""Permissions as SQL conditions, for pages, counts and choices; and the name patterns that permissions consist of.

`roles.may` decides; `extent_of` says the same for many rows at once, without a query, since grants name registries. Shell
patterns are validated before they are stored: for rights, ownership, subscriptions, mutes, rules.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from registry.access.rights_changes import refuse_unknown_registry
from registry.access.roles import ACTIONS, LOOKING, ROLES, Actor, refusal, require
from registry.errors import InvalidInput

#: no row at all
NOTHING: Final = Q(pk__in=())
ALL: Final = "*"
#: bracket contents that mean the same to PostgreSQL: letters, digits and ranges of them
_SET: Final = re.compile(r"(!?)((?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_.:])+)(-?)")
_WILD: Final = re.compile(r"[*?\[]")
_PIECE: Final = re.compile(r"(.)-(.)|(.)")


@dataclass(frozen=True)
class ExtentPart:
    """A registry (empty: every one), and the shell patterns that a subject must all match (none: any subject)."""

    registry: str = ""
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extent:
    """The union of its parts; without parts nothing is allowed."""

    parts: tuple[ExtentPart, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it covers everything, including what belongs to no registry."""
        return ExtentPart() in self.parts

    @property
    def has_registries(self) -> bool:
        """Whether it covers any registry completely."""
        return any(not part.patterns for part in self.parts)

    def has(self, registry: str) -> bool:
        """Whether it covers anything of a registry, even a few subjects."""
        return any(part.registry in ("", registry) for part in self.parts)

    def has_all_of(self, registry: str) -> bool:
        """Whether it covers a registry completely."""
        return any(part.registry in ("", registry) and not part.patterns for part in self.parts)

    def within(self, registry: str) -> Extent:
        """The part within a registry; the whole for an empty name."""
        if not registry:
            return self
        return Extent(
            tuple(ExtentPart(registry, part.patterns) for part in self.parts if part.registry in ("", registry))
        )

    def registries(self, name: str) -> Q:
        """The condition for rows of completely covered registries; `name` is the column with the registry's name."""
        return _any(_of(part, name) for part in self.parts if not part.patterns)

    def subjects(self, name: str, subject: str) -> Q:
        """The condition for rows of covered subjects, by the columns with the registry's name and the qualified subject.

        A row without a subject has an empty one, and is covered only with the whole registry.
        """
        return _any(_of(part, name) & _fits(part.patterns, subject) for part in self.parts)


def extent_of(by: Actor, action: str) -> Extent:
    """Where the actor may do the action; a token narrows the rights of its person."""
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
    """The actor's extent in a registry or (empty) anywhere. Raises NotSignedIn, NotAllowed if there is none.

    The error is the same for a registry that doesn't exist.
    """
    extent = extent_of(by, action).within(registry)
    if not extent.parts:
        require(by, action, registry=registry)
    return extent


def refusal_in_any(by: Actor, action: str, *, registry: str = "") -> str:
    """Why the actor may not do the action in any whole registry, or in this one; "" if they may.

    For a form or a list of many registries; the service checks each again.
    """
    extent = extent_of(by, action).within(registry)
    return "" if extent.has_registries else refusal(by, action, registry=registry)


def as_regex(pattern: str) -> str:
    """A shell pattern as a PostgreSQL regular expression that matches the same texts, or nothing if that isn't certain."""
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
    """Bracket contents as single letters, because the contents of a range depend on the collation."""
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
    """The condition of one pattern; most are a name or a prefix, for which an index can be used."""
    if not _WILD.search(pattern):
        return Q(**{subject: pattern})
    if pattern[-1] == "*" and not _WILD.search(pattern[:-1]):
        return Q(**{f"{subject}__startswith": pattern[:-1]})
    return Q(**{f"{subject}__regex": as_regex(pattern)})


def _any(conditions: Iterable[Q]) -> Q:
    """The disjunction of the conditions; an empty condition is always true."""
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
#: characters that people mistake for a wildcard or a list, and that only match themselves
_NO_WILDCARDS: Final = {"%": "'*' matches any text", ",": "enter one pattern, and add the others separately"}
_RANGE: Final = re.compile(r"(.)-(.)", re.DOTALL)
_DEFAULT_CONTEXT_PREFIX: Final = ":.:"


def checked_pattern(text: str, what: str, *, longest: int = MAX_LENGTH, field: str = "") -> str:
    """The stripped and validated pattern; an empty one means all. `what` names it in the error, such as `subject`.

    `*` matches any text, `?` one character, `[ab]` one of these. A pattern that can't match a name, or not as its writer
    expects, is refused: a pattern that matches nothing looks like a right and is none. Raises InvalidInput.
    """
    pattern = text.strip() or "*"
    problem = _problem(pattern, longest)
    if problem:
        shown = pattern[:60].encode("unicode_escape").decode()
        raise InvalidInput(
            f"The {what} pattern '{shown}' {problem}. A pattern is a name such as orders-value, or a partial"
            " name with '*', '?' and '[ab]', such as orders-*.",
            field=field or f"{what}_pattern",
        )
    return pattern


def _problem(pattern: str, longest: int) -> str:
    if len(pattern) > longest:
        return f"has {len(pattern)} characters, but at most {longest} are allowed"
    if pattern.count("*") > MAX_STARS:
        return f"has {pattern.count('*')} '*', but at most ten are allowed"
    for position, sign in enumerate(pattern, start=1):
        if sign.isspace():
            return f"has a space at position {position}; use '?' to match one character"
        if not sign.isprintable():
            return f"has an invisible character at position {position}"
        if sign in _NO_WILDCARDS:
            return f"has {sign!r} at position {position}: {_NO_WILDCARDS[sign]}, '?' for one character"
    return _brackets(pattern)


def _brackets(pattern: str) -> str:
    """What is wrong with the brackets: one isn't closed, or a range is empty."""
    position = 0
    while (start := pattern.find("[", position)) >= 0:
        first = start + 1 + pattern.startswith(("!", "^"), start + 1)
        end = pattern.find("]", first + 1)
        if end < 0:
            return f"has an unclosed '[' at position {start + 1}"
        for low, high in _RANGE.findall(pattern[first:end]):
            if low > high:
                return f"has the empty range {low}-{high}"
        position = end + 1
    return ""


def pattern_of(name: str) -> str:
    """A pattern that matches a name literally; characters that a pattern can't contain become '?'."""
    return "".join(
        "?" if sign.isspace() or not sign.isprintable() or sign in _NO_WILDCARDS else sign for sign in glob.escape(name)
    )


def checked_place(registry: str, subject_pattern: str, by: Actor) -> tuple[str, str]:
    """Registry and pattern, stripped and validated.

    Raises InvalidInput, also for a registry that doesn't exist or that `by` may not know of. A context needn't exist: the
    first registration makes it, and a team gets its rights before that. The shell pattern (`orders-*`, `?`, `[ab]`) is
    matched against the qualified name of the subject.
    """
    registry = registry.strip()
    if len(registry) > MAX_LENGTH or not registry.isprintable():
        raise InvalidInput(f"The registry name can have at most {MAX_LENGTH} characters and no invisible ones.")
    pattern = checked_pattern(subject_pattern, "subject")
    if pattern.startswith(_DEFAULT_CONTEXT_PREFIX):
        raise InvalidInput(
            f"The subject pattern {pattern[:60]!r} fits no subject: names in the default context have no prefix. Leave "
            f"'{_DEFAULT_CONTEXT_PREFIX}' out.",
            field="subject_pattern",
        )
    refuse_unknown_registry(registry, by)
    return registry, pattern


def checked_role(role: str) -> str:
    """The role. Raises InvalidInput for one that doesn't exist."""
    if role not in ROLES:
        raise InvalidInput(f"Unknown role {role[:40]!r}. The roles are {', '.join(ROLES)}.")
    return role


def place_words(registry: str, subject_pattern: str) -> str:
    """The scope of a grant in words, for the audit and pages."""
    subjects = "all subjects" if subject_pattern == "*" else f"subjects {subject_pattern}"
    return f"{subjects} in {registry or 'all registries'}"
