"""Permissions as SQL conditions, for pages, counts and choices.

`roles.may` decides for one row; `extent_of` gives the same answer for many rows, without a query, since grants name
registries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Self, TypeVar

from django.db.models import Model, Q, QuerySet

from registry.access.name_patterns import ALL, MAX_LENGTH, NOTHING, checked_pattern, name_pattern
from registry.access.roles import ACTIONS, READ_ONLY_ACTIONS, ROLES, Actor, refusal, refuse_unknown_registry, require
from registry.errors import InvalidInput


@dataclass(frozen=True)
class ExtentPart:
    """A registry (empty: all), and the patterns that a subject must all match (none: any subject)."""

    registry: str = ""
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extent:
    """A union of parts; without parts it covers nothing."""

    parts: tuple[ExtentPart, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it covers everything, including rows of no registry."""
        return ExtentPart() in self.parts

    @property
    def has_registries(self) -> bool:
        """Whether it covers any registry completely."""
        return any(not part.patterns for part in self.parts)

    def has(self, registry: str) -> bool:
        """Return whether it covers anything in a registry, even a few subjects."""
        return any(part.registry in ("", registry) for part in self.parts)

    def has_all_of(self, registry: str) -> bool:
        """Return whether it covers a registry completely."""
        return any(part.registry in ("", registry) and not part.patterns for part in self.parts)

    def within(self, registry: str) -> Extent:
        """Return the part within a registry; the whole for an empty name."""
        if not registry:
            return self
        return Extent(
            tuple(ExtentPart(registry, part.patterns) for part in self.parts if part.registry in ("", registry))
        )

    def any_of_registries(self, name: str) -> Q:
        """Return the condition for registries that it covers at least partly, by the column `name` of their names."""
        return _any(_of(part, name) for part in self.parts)

    def registries(self, name: str) -> Q:
        """Return the condition for rows of completely covered registries, by the column `name` of their names."""
        return _any(_of(part, name) for part in self.parts if not part.patterns)

    def subjects(self, name: str, subject: str) -> Q:
        """Return the condition for rows of covered subjects.

        `name` is the column with the registry's name, `subject` the one with the qualified subject. A row with an empty
        subject is covered only with the whole registry.
        """
        return _any(_of(part, name) & _fits(part.patterns, subject) for part in self.parts)


WHOLE: Final = Extent((ExtentPart(),))


def extent_of(by: Actor, action: str) -> Extent:
    """Return where the actor may do the action; a token narrows the rights of its person."""
    limit = by.limit
    if (by.past and action not in READ_ONLY_ACTIONS) or (limit and not limit.has(action)):
        return Extent(())
    parts: dict[ExtentPart, None] = {}
    for grant in by.grants:
        patterns = [grant.subject_pattern]
        registry = grant.registry
        if limit:
            patterns.append(limit.subject_pattern)
            registry = registry or limit.registry
        if any(name_pattern(pattern).is_void for pattern in patterns):
            continue
        if grant.role in ACTIONS[action] and (not limit or limit.registry in ("", registry)):
            parts[ExtentPart(registry, tuple(dict.fromkeys(pattern for pattern in patterns if pattern != ALL)))] = None
    return WHOLE if ExtentPart() in parts else Extent(tuple(parts))


READ: Final = "schema.read"
_Row = TypeVar("_Row", bound=Model)


class VisibleQuerySet(QuerySet[_Row]):
    """A queryset that can be limited to the rows that an actor may see."""

    def visible_to(self, actor: Actor, action: str = READ) -> Self:
        """Return the rows for which the actor may do the action, as `may` decides for one of them."""
        return self.covered_by(extent_of(actor, action))

    def covered_by(self, extent: Extent) -> Self:
        """Return the rows in an extent."""
        raise NotImplementedError


class RegistryScopedQuerySet(VisibleQuerySet[_Row]):
    """Rows without a subject: visible with their whole registry."""

    registry_name: ClassVar[str] = "registry__name"

    def covered_by(self, extent: Extent) -> Self:
        """Return the rows of registries that the extent covers completely."""
        return self.filter(extent.registries(self.registry_name))


class SubjectScopedQuerySet(VisibleQuerySet[_Row]):
    """Rows with the qualified name of their subject; with an empty name, visible with the whole registry."""

    registry_name: ClassVar[str] = "registry__name"
    subject_name: ClassVar[str] = "subject_name"

    def covered_by(self, extent: Extent) -> Self:
        """Return the rows of subjects in the extent."""
        return self.filter(extent.subjects(self.registry_name, self.subject_name))


def require_extent(by: Actor, action: str, *, registry: str = "") -> Extent:
    """Return the actor's extent in a registry, or (empty) anywhere.

    Raises NotSignedIn or NotAllowed if it has no parts.

    The error is the same for a registry that doesn't exist.
    """
    extent = extent_of(by, action).within(registry)
    if not extent.parts:
        require(by, action, registry=registry)
    return extent


def refusal_in_any(by: Actor, action: str, *, registry: str = "") -> str:
    """Return why the actor may not do the action in any whole registry, or in this one; "" if they may.

    For a form or a list of many registries; the service checks each again.
    """
    extent = extent_of(by, action).within(registry)
    return "" if extent.has_registries else refusal(by, action, registry=registry)


def _of(part: ExtentPart, name: str) -> Q:
    return Q(**{name: part.registry}) if part.registry else Q()


def _fits(patterns: tuple[str, ...], subject: str) -> Q:
    fits = ~Q(**{subject: ""}) if patterns else Q()
    for pattern in patterns:
        fits &= name_pattern(pattern).as_q(subject)
    return fits


def _any(conditions: Iterable[Q]) -> Q:
    """Combine conditions with OR; an empty condition is always true."""
    alternatives = list(conditions)
    if not alternatives:
        return NOTHING
    if Q() in alternatives:
        return Q()
    combined = alternatives[0]
    for condition in alternatives[1:]:
        combined |= condition
    return combined


_DEFAULT_CONTEXT_PREFIX: Final = ":.:"


def checked_scope(registry: str, subject_pattern: str, by: Actor) -> tuple[str, str]:
    """Strip and validate a registry and a pattern for the qualified names of its subjects.

    Raises InvalidInput, also for a registry that doesn't exist or that `by` can't see. A context needn't exist: the
    first registration makes it, and a team gets its rights before that.
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
    """Return the role. Raises InvalidInput if it doesn't exist."""
    if role not in ROLES:
        raise InvalidInput(f"Unknown role {role[:40]!r}. The roles are {', '.join(ROLES)}.")
    return role


def describe_scope(registry: str, subject_pattern: str) -> str:
    """Describe the scope of a grant, for the audit and pages."""
    subjects = "all subjects" if subject_pattern == "*" else f"subjects {subject_pattern}"
    return f"{subjects} in {registry or 'all registries'}"
