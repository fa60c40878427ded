"""All that a registry of ours holds, as a snapshot."""

from __future__ import annotations

from registry.formats.base import Reference
from registry.subjects.models import Config, Context, Mode, Registry, SchemaReference, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import OwnConfig, settings_of
from registry.subjects.selectors.notes import notes_of
from registry.subjects.snapshot import NoteRecord, Scope, Snapshot, VersionRecord


def contents_of(registry: Registry) -> Snapshot:
    """Every version, the soft-deleted ones too, with contexts, configs, modes and notes; seven queries, however much it holds."""
    references: dict[int, list[Reference]] = {}
    used = SchemaReference.objects.filter(schema__context__registry=registry).order_by("schema_id", "position")
    for schema, name, subject, version in used.values_list("schema_id", "name", "subject_name", "target__version"):
        references.setdefault(schema, []).append(Reference(name, subject, version))
    rows = SchemaVersion.objects.filter(subject__context__registry=registry).select_related(
        "schema", "subject__context"
    )
    return Snapshot(
        versions=tuple(_record(row, tuple(references.get(row.schema_id, ()))) for row in rows),
        contexts=dict(Context.objects.filter(registry=registry).values_list("name", "next_schema_id")),
        configs={
            _scope(row): _settings(settings_of(row))
            for row in Config.objects.filter(registry=registry).select_related("context")
        },
        modes={_scope(row): row.mode for row in Mode.objects.filter(registry=registry).select_related("context")},
        notes={subject: NoteRecord(note.tags, note.doc) for subject, note in notes_of(registry).items()},
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
