"""All that a registry of ours holds, as a snapshot."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from registry.formats.base import Reference
from registry.subjects.models import Config, Context, Mode, Registry, SchemaReference, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import OwnConfig, settings_of
from registry.subjects.selectors.fitting import among
from registry.subjects.selectors.notes import notes_of
from registry.subjects.snapshot import NoteRecord, Scope, Snapshot, VersionRecord


def contents_of(registry: Registry, subjects: Collection[SubjectName] | None = None) -> Snapshot:
    """Every version, the soft-deleted ones too, with contexts, configs, modes and notes; seven queries, however much it holds.

    Of `subjects` alone: with their own configs and modes, and with their contexts.
    """
    names = None if subjects is None else frozenset(subjects)
    of_subjects = Q() if names is None else among(names, "subject__")
    rows = SchemaVersion.objects.filter(of_subjects, subject__context__registry=registry).select_related(
        "schema", "subject__context"
    )
    references: dict[int, list[Reference]] = {}
    used = SchemaReference.objects.filter(schema__context__registry=registry).order_by("schema_id", "position")
    if names is not None:
        used = used.filter(schema__in=rows.values("schema"))
    for schema, name, subject, version in used.values_list("schema_id", "name", "subject_name", "target__version"):
        references.setdefault(schema, []).append(Reference(name, subject, version))
    configs = Config.objects.filter(registry=registry).select_related("context")
    modes = Mode.objects.filter(registry=registry).select_related("context")
    contexts = Context.objects.filter(registry=registry)
    if names is not None:
        contexts = contexts.filter(name__in={name.context for name in names})
    return Snapshot(
        versions=tuple(_record(row, tuple(references.get(row.schema_id, ()))) for row in rows),
        contexts=dict(contexts.values_list("name", "next_schema_id")),
        configs={_scope(row): _settings(settings_of(row)) for row in configs if names is None or _scope(row) in names},
        modes={_scope(row): row.mode for row in modes if names is None or _scope(row) in names},
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
