"""All that a registry of ours holds, as a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Final

from django.db.models import Q, QuerySet

from registry.formats.base import Reference
from registry.subjects.models import Config, Context, Mode, Registry, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import OwnConfig, settings_of
from registry.subjects.selectors.fitting import among
from registry.subjects.selectors.notes import notes_of
from registry.subjects.snapshot import NoteRecord, Scope, Snapshot, VersionRecord

#: subjects whose versions are read at once
CHUNK: Final = 500


def contents_of(
    registry: Registry, subjects: Collection[SubjectName] | None = None, *, places: bool = False
) -> Snapshot:
    """Every version, the soft-deleted ones too, with contexts, configs, modes and notes; seven queries, however much it holds.

    Of `subjects` alone: with their own configs and modes, and with their contexts; with `places` also what the registry
    and its contexts set.
    """
    names = None if subjects is None else frozenset(subjects)
    of_subjects = Q() if names is None else among(names, "subject__")
    rows = SchemaVersion.objects.filter(of_subjects, subject__context__registry=registry)
    of = Q(schema__context__registry=registry) if names is None else Q(schema__in=rows.values("schema"))
    return replace(_around(registry, names, places=places), versions=tuple(_records(rows, of)))


def contents_in_pieces(registry: Registry) -> tuple[Snapshot, Iterator[VersionRecord]]:
    """The same of a whole registry, the versions apart and in the order of an export, some hundred subjects in memory.

    Both are of one moment in a transaction where every statement sees the same.
    """
    return _around(registry, None), _in_order(registry)


def _in_order(registry: Registry) -> Iterator[VersionRecord]:
    for context in sorted(Context.objects.filter(registry=registry), key=lambda row: row.name):
        last = ""
        while names := list(_names_after(context, last)):
            rows = SchemaVersion.objects.filter(subject__context=context, subject__name__in=names)
            found = _records(rows, Q(schema__in=rows.values("schema")))
            yield from sorted(found, key=lambda row: (row.subject.subject, row.version))
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


def _around(registry: Registry, names: frozenset[SubjectName] | None, *, places: bool = False) -> Snapshot:
    """All but the versions."""
    configs = Config.objects.filter(registry=registry).select_related("context")
    modes = Mode.objects.filter(registry=registry).select_related("context")
    contexts = Context.objects.filter(registry=registry)
    if names is not None:
        contexts = contexts.filter(name__in={name.context for name in names})

    def is_meant(scope: Scope) -> bool:
        return names is None or scope in names or (places and (scope is None or not scope.subject))

    return Snapshot(
        versions=(),
        contexts=dict(contexts.values_list("name", "next_schema_id")),
        configs={scope: _settings(settings_of(row)) for row in configs if is_meant(scope := _scope(row))},
        modes={scope: row.mode for row in modes if is_meant(scope := _scope(row))},
        notes={subject: NoteRecord(note.tags, note.doc) for subject, note in notes_of(registry, names).items()},
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
        door=row.door,
    )


def _scope(row: Config | Mode) -> Scope:
    return None if row.context is None else SubjectName(row.context.name, row.subject_name or "")


def _settings(settings: OwnConfig) -> dict[str, object]:
    return {name: value for name, value in vars(settings).items() if value is not None}
