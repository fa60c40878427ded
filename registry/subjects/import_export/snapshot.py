"""The contents of a registry as plain values that can be moved to another one, and how they are read."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from django.db.models import Q, QuerySet

from registry.errors import InvalidName
from registry.formats.base import Reference
from registry.subjects.lifecycle.notes import notes_of
from registry.subjects.models import Config, Context, Mode, Registry, SchemaReference, SchemaVersion, Subject
from registry.subjects.policy.effective_policy import OwnConfig, settings_of
from registry.subjects.versions.lookup import among
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: (subject, version)
VersionKey = tuple[SubjectName, int]
#: None is the whole registry; an empty subject is a context
Scope = SubjectName | None


@dataclass(frozen=True)
class VersionRecord:
    """A version with its definition. None (and an empty submitted text) is unknown, so it isn't imported."""

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
    channel: str = ""

    @property
    def key(self) -> VersionKey:
        """Subject and number."""
        return self.subject, self.version

    @property
    def title(self) -> str:
        """Subject and version, for people."""
        return f"{self.subject.qualified} version {self.version}"


@dataclass(frozen=True)
class NoteRecord:
    """The note on a subject."""

    tags: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A registry's contents. `configs` has settings by their names in `services.set_config`.

    `notes` has the subjects with a note. Other servers have no notes, so those that exist only here stay.
    """

    versions: tuple[VersionRecord, ...]
    #: context → the lowest schema id that was never assigned; 1 or missing if unknown
    contexts: Mapping[str, int]
    configs: Mapping[Scope, Mapping[str, Any]]
    modes: Mapping[Scope, str]
    notes: Mapping[SubjectName, NoteRecord] = field(default_factory=dict)

    @property
    def by_key(self) -> dict[VersionKey, VersionRecord]:
        """The versions by subject and number."""
        return {record.key: record for record in self.versions}


@dataclass(frozen=True)
class Problem:
    """Something that can't be imported, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def in_order(records: Iterable[VersionRecord]) -> tuple[list[VersionRecord], list[Problem]]:
    """Sort the versions, each after those it refers to, then by name and number; and return those in a cycle.

    A reference to a version that isn't among these doesn't affect the order: the version may exist already.
    """
    rows = {record.key: record for record in records}
    waits = {key: _needs(record) & rows.keys() for key, record in rows.items()}
    waiting: dict[VersionKey, list[VersionKey]] = {}
    for key, needs in waits.items():
        for needed in needs:
            waiting.setdefault(needed, []).append(key)
    left = {key: len(needs) for key, needs in waits.items()}
    ready = [(_sort_key(key), key) for key, count in left.items() if not count]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, key = heapq.heappop(ready)
        ordered.append(rows[key])
        for freed in waiting.get(key, ()):
            left[freed] -= 1
            if not left[freed]:
                heapq.heappush(ready, (_sort_key(freed), freed))
    stuck = sorted((key for key, count in left.items() if count), key=_sort_key)
    return ordered, [Problem(rows[key].title, "its references are circular.") for key in stuck]


def _needs(record: VersionRecord) -> set[VersionKey]:
    keys: set[VersionKey] = set()
    for reference in record.references:
        try:
            keys.add((parse_subject(reference.subject, context=record.subject.context), reference.version))
        except InvalidName:
            continue  # reported when the version is imported
    return keys


def _sort_key(key: VersionKey) -> tuple[str, str, int]:
    return key[0].context, key[0].subject, key[1]


def scope_key(scope: Scope) -> tuple[str, str]:
    """Return a sort key: the registry, then each context before its subjects."""
    return ("", "") if scope is None else (scope.context, scope.subject)


def scope_title(scope: Scope) -> str:
    """Return a scope's name, for people."""
    return "the registry" if scope is None else scope.qualified


def is_same_definition(one: VersionRecord, other: VersionRecord) -> bool:
    """Return whether two versions have the same id and definition, with equal texts."""
    return _definition(one) == _definition(other) and (
        one.text in (other.text, other.submitted) or one.submitted == other.text
    )


def _definition(record: VersionRecord) -> tuple[Any, ...]:
    return (record.schema_id, record.schema_type, record.references, record.metadata or {}, record.rule_set or {})


#: subjects whose versions are read at the same time
CHUNK: Final = 500


def contents_of(
    registry: Registry, subjects: Collection[SubjectName] | None = None, *, outer_scopes: bool = False
) -> Snapshot:
    """Return all versions, also soft-deleted ones, with contexts, configs, modes and notes; always seven queries.

    With `subjects`, only those, with their own configs and modes, and their contexts; with `outer_scopes` also the
    settings of the registry and its contexts.
    """
    names = None if subjects is None else frozenset(subjects)
    of_subjects = Q() if names is None else among(names, "subject__")
    rows = SchemaVersion.objects.filter(of_subjects, subject__context__registry=registry)
    of = Q(schema__context__registry=registry) if names is None else Q(schema__in=rows.values("schema"))
    return replace(_around(registry, names, outer_scopes=outer_scopes), versions=tuple(_records(rows, of)))


def contents_in_pieces(registry: Registry) -> tuple[Snapshot, Iterator[VersionRecord]]:
    """Return a whole registry, its versions separately in export order, with some hundred subjects in memory.

    Both are as of one moment if the transaction is REPEATABLE READ.
    """
    return _around(registry, None), _in_order(registry)


def _in_order(registry: Registry) -> Iterator[VersionRecord]:
    for context in sorted(Context.objects.filter(registry=registry), key=lambda row: row.name):
        last = ""
        while names := list(_names_after(context, last)):
            rows = SchemaVersion.objects.filter(subject__context=context, subject__name__in=names)
            records = _records(rows, Q(schema__in=rows.values("schema")))
            yield from sorted(records, key=lambda row: (row.subject.subject, row.version))
            last = names[-1]


def _names_after(context: Context, last: str) -> QuerySet[Subject, str]:
    rows = Subject.objects.filter(context=context, name__gt=last)
    return rows.order_by("name").values_list("name", flat=True)[:CHUNK]


def _records(rows: QuerySet[SchemaVersion], referring: Q) -> Iterator[VersionRecord]:
    used = SchemaReference.objects.filter(referring).order_by("schema_id", "position")
    listed = used.values_list("schema_id", "name", "subject_name", "target__version")
    references = {
        schema: tuple(Reference(name, subject, version) for _, name, subject, version in group)
        for schema, group in groupby(listed, key=lambda row: row[0])
    }
    for row in rows.select_related("schema", "subject__context"):
        yield _record(row, references.get(row.schema_id, ()))


def _around(registry: Registry, names: frozenset[SubjectName] | None, *, outer_scopes: bool = False) -> Snapshot:
    """Return everything except the versions."""
    configs = Config.objects.filter(registry=registry).select_related("context")
    modes = Mode.objects.filter(registry=registry).select_related("context")
    contexts = Context.objects.filter(registry=registry)
    if names is not None:
        contexts = contexts.filter(name__in={name.context for name in names})

    def is_meant(scope: Scope) -> bool:
        return names is None or scope in names or (outer_scopes and (scope is None or not scope.subject))

    return Snapshot(
        versions=(),
        contexts=dict(contexts.values_list("name", "next_schema_id")),
        configs={scope: _settings(settings_of(row)) for row in configs if is_meant(scope := _scope(row))},
        modes={scope: row.mode for row in modes if is_meant(scope := _scope(row))},
        notes={
            subject: NoteRecord(note.tags, note.doc)
            for subject, note in notes_of(registry, names).items()
            if note.is_described
        },
    )


def _record(row: SchemaVersion, references: tuple[Reference, ...]) -> VersionRecord:
    return VersionRecord(
        subject=SubjectName(row.subject.context.name, row.subject.name),
        version=row.version,
        schema_id=row.schema.schema_id,
        schema_type=row.schema.schema_type,
        text=row.schema.canonical,
        references=references,
        metadata=row.schema.metadata,
        rule_set=row.schema.rule_set,
        deleted=row.deleted_at is not None,
        deleted_at=row.deleted_at,
        submitted=row.submitted,
        created_at=row.created_at,
        created_by=row.created_by,
        channel=row.channel,
    )


def _scope(row: Config | Mode) -> Scope:
    return None if row.context is None else SubjectName(row.context.name, row.subject_name or "")


def _settings(settings: OwnConfig) -> dict[str, object]:
    return {name: value for name, value in vars(settings).items() if value is not None}
