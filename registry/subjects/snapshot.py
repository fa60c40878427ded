"""All that a registry holds, as values that can be carried from one to another. Pure.

A remote registry and an export file are read into the same values as our own tables, so moving in, mirroring and
restoring compare and bring the same things.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.errors import InvalidName
from registry.formats.base import Reference
from registry.subjects.names import SubjectName, parse_subject

#: (subject, version)
Place = tuple[SubjectName, int]
#: None is the whole registry, an empty subject a context
Scope = SubjectName | None


@dataclass(frozen=True)
class VersionRecord:
    """A version with its definition. What is None (and an empty submitted text) isn't known, so it isn't brought."""

    subject: SubjectName
    version: int
    schema_id: int
    schema_type: str
    text: str = field(repr=False)
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None
    deleted: bool = False
    deleted_at: datetime | None = None
    submitted: str = field(default="", repr=False)
    created_at: datetime | None = None
    created_by: str = ""
    door: str = ""

    @property
    def place(self) -> Place:
        """Where it is."""
        return self.subject, self.version

    @property
    def title(self) -> str:
        """Subject and version, for people."""
        return f"{self.subject.qualified} version {self.version}"


@dataclass(frozen=True)
class NoteRecord:
    """What is written about a subject."""

    tags: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A registry's contents. `configs` holds settings by their names in `services.set_config`.

    `notes` has the subjects that somebody described; other servers know no notes, so those that are here alone stay.
    """

    versions: tuple[VersionRecord, ...]
    #: context → the lowest schema id that was never given; 1 or absent where that isn't known
    contexts: Mapping[str, int]
    configs: Mapping[Scope, Mapping[str, Any]]
    modes: Mapping[Scope, str]
    notes: Mapping[SubjectName, NoteRecord] = field(default_factory=dict)

    @property
    def by_place(self) -> dict[Place, VersionRecord]:
        """The versions by subject and number."""
        return {record.place: record for record in self.versions}


@dataclass(frozen=True)
class Problem:
    """Something that can't be brought, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def in_order(records: Iterable[VersionRecord]) -> tuple[list[VersionRecord], list[Problem]]:
    """The versions, each after those that it refers to, else by name and number; and those that are in a circle.

    What refers to a version that isn't among these has no place to wait for: it may be there already.
    """
    rows = {record.place: record for record in records}
    waits = {place: _needs(record) & rows.keys() for place, record in rows.items()}
    waiting: dict[Place, list[Place]] = {}
    for place, needs in waits.items():
        for needed in needs:
            waiting.setdefault(needed, []).append(place)
    left = {place: len(needs) for place, needs in waits.items()}
    ready = [(_key(place), place) for place, count in left.items() if not count]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, place = heapq.heappop(ready)
        ordered.append(rows[place])
        for freed in waiting.get(place, ()):
            left[freed] -= 1
            if not left[freed]:
                heapq.heappush(ready, (_key(freed), freed))
    stuck = sorted((place for place, count in left.items() if count), key=_key)
    return ordered, [Problem(rows[place].title, "its references lead in a circle.") for place in stuck]


def _needs(record: VersionRecord) -> set[Place]:
    found: set[Place] = set()
    for reference in record.references:
        try:
            found.add((parse_subject(reference.subject, context=record.subject.context), reference.version))
        except InvalidName:
            continue  # said when the version is brought
    return found


def _key(place: Place) -> tuple[str, str, int]:
    return place[0].context, place[0].subject, place[1]


def scope_key(scope: Scope) -> tuple[str, str]:
    """The order of scopes: the registry, then each context before its subjects."""
    return ("", "") if scope is None else (scope.context, scope.subject)


def scope_title(scope: Scope) -> str:
    """A scope's name, for people."""
    return "the registry" if scope is None else scope.qualified


def is_same_definition(one: VersionRecord, other: VersionRecord) -> bool:
    """Whether two versions have the same id and say the same in the same letters."""
    return _said(one) == _said(other) and (one.text in (other.text, other.submitted) or one.submitted == other.text)


def _said(record: VersionRecord) -> tuple[Any, ...]:
    return (
        record.schema_id,
        record.schema_type,
        record.references,
        record.metadata or {},
        record.rule_set or {},
    )
