"""Archived copies of permanently deleted versions and of uploaded files: writing, listing, reading and pruning them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from registry.access.name_patterns import name_pattern
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may, require, system_actor
from registry.audit.context import record
from registry.errors import CopyNotFound
from registry.subjects.import_export.export_file import read_snapshot, version_of
from registry.subjects.import_export.snapshot import NoteRecord, Scope, Snapshot
from registry.subjects.models import ArchivedCopy, Registry, SchemaVersion, Subject
from registry.subjects.policy.effective_policy import COLUMNS
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

MOST: Final = 200
_DELETED: Final = "version.delete_permanently"
_SENT: Final = "mode.change"


@dataclass(frozen=True)
class CopyInfo:
    """A copy of a permanently deleted subject (`name`), or an uploaded file that waits for confirmation."""

    number: int
    name: str
    versions: int
    made_at: datetime
    made_by: str
    until: datetime


def deleted_copies(
    registry: Registry, *, by: Actor, subject: str = "", before: int | None = None, limit: int = MOST
) -> list[CopyInfo]:
    """Return the copies of deleted subjects that the person may restore, newest first. Raises NotAllowed.

    One query. `before` is the number of the last copy of the previous page.
    """
    require_extent(by, _DELETED, registry=registry.name)
    rows = ArchivedCopy.objects.visible_to(by, _DELETED)
    if subject:
        rows = rows.filter(name=subject)
    return _listed(rows, registry, before, limit)


def waiting_files(registry: Registry, *, by: Actor, limit: int = 20) -> list[CopyInfo]:
    """Return the files that wait for confirmation, newest first; none if the person may not import. One query."""
    if not may(by, _SENT, registry=registry.name):
        return []
    return _listed(ArchivedCopy.objects.filter(kind=ArchivedCopy.SENT), registry, None, limit)


def _listed(rows: QuerySet[ArchivedCopy], registry: Registry, before: int | None, limit: int) -> list[CopyInfo]:
    copies = rows.filter(registry=registry, until__gt=timezone.now()).order_by("-pk")
    if before is not None:
        copies = copies.filter(pk__lt=before)
    values = copies.values_list("pk", "name", "versions", "made_at", "made_by", "until")[:limit]
    return [CopyInfo(*value) for value in values]


@dataclass(frozen=True)
class Contents:
    """The contents in the shape of a registry's, and who owned the subject when it was deleted."""

    snapshot: Snapshot
    owners: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenCopy:
    """A copy that the person may restore, with its registry; its contents are read once."""

    registry: Registry
    row: ArchivedCopy

    @cached_property
    def contents(self) -> Contents:
        """The contents of the copy."""
        return contents_of_copy(self.row)


def contents_of_copy(row: ArchivedCopy) -> Contents:
    """Return the contents of a copy; those of a file were checked on upload."""
    if row.kind == ArchivedCopy.SENT:
        return Contents(read_snapshot(io.BytesIO(row.content.encode()), row.name))
    value = json.loads(row.content)
    name = parse_subject(row.name)
    note, config, mode = value["note"], value["config"], value["mode"]
    configs: dict[Scope, Mapping[str, Any]] = {name: _settings(config)} if config else {}
    return Contents(
        Snapshot(
            versions=tuple(version_of(_without_nulls(item)) for item in value["versions"]),
            contexts={},
            configs=configs,
            modes={name: mode} if mode else {},
            notes={name: NoteRecord(tuple(note["tags"]), note["doc"])} if note else {},
        ),
        owners=tuple(
            sorted({owner for pattern, owner in value["owners"] or () if name_pattern(pattern).allows(name.qualified)})
        ),
    )


def _without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if part is not None}


def _settings(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[column] for name, column in COLUMNS.items() if row.get(column) is not None}


#: kind of copy → the permission that restoring it needs
RIGHTS: Final = {ArchivedCopy.DELETED: "version.delete_permanently", ArchivedCopy.SENT: "mode.change"}

#: the same objects as the lines of an export file, and what else belongs to a subject; owners are narrowed by the
#: pattern's prefix
_KEEP: Final = """
INSERT INTO subjects_keptcopy (registry_id, kind, name, versions, content, made_at, made_by, until)
SELECT c.registry_id, 'deleted', n.name, cardinality(%(versions)s::bigint[]), json_build_object(
    'versions', (SELECT json_agg(json_strip_nulls(json_build_object(
            'context', c.name, 'subject', s.name, 'version', v.version, 'id', d.schema_id,
            'schemaType', d.schema_type, 'schema', d.canonical, 'submitted', v.submitted,
            'created_at', v.created_at, 'created_by', v.created_by, 'door', v.door, 'deleted_at', v.deleted_at,
            'references', (SELECT json_agg(json_build_object('name', r.name, 'subject', r.subject_name,
                    'version', t.version) ORDER BY r.position)
                FROM subjects_schemareference r JOIN subjects_schemaversion t ON t.id = r.target_id
                WHERE r.schema_id = d.id)))::jsonb
            || jsonb_build_object('metadata', d.metadata, 'ruleSet', d.rule_set) ORDER BY v.version)
        FROM subjects_schemaversion v JOIN subjects_schema d ON d.id = v.schema_id
        WHERE v.id = ANY(%(versions)s::bigint[])),
    'note', (SELECT json_build_object('tags', x.tags, 'doc', x.doc) FROM subjects_subjectnote x
        WHERE x.subject_id = s.id AND (x.tags <> '{}' OR x.doc <> '')),
    'config', (SELECT to_json(x) FROM subjects_config x
        WHERE x.registry_id = c.registry_id AND x.context_id = c.id AND x.subject_name = s.name),
    'mode', (SELECT x.mode FROM subjects_mode x
        WHERE x.registry_id = c.registry_id AND x.context_id = c.id AND x.subject_name = s.name),
    'owners', (SELECT json_agg(json_build_array(o.subject_pattern, coalesce(u.username, g.name)))
        FROM access_ownership o LEFT JOIN access_user u ON u.id = o.user_id LEFT JOIN auth_group g ON g.id = o.group_id
        WHERE o.registry IN ('', p.name) AND starts_with(n.name, substring(o.subject_pattern FROM '^[^*?[]*')))
    )::text, %(now)s, coalesce(nullif(current_setting('schemadesk.actor', true), ''), session_user), %(until)s
FROM subjects_subject s JOIN subjects_context c ON c.id = s.context_id JOIN subjects_registry p ON p.id = c.registry_id
CROSS JOIN LATERAL (SELECT CASE WHEN c.name = '.' THEN s.name ELSE ':' || c.name || ':' || s.name END AS name) n
WHERE s.id = %(subject)s"""
PRUNED: Final = 500
_PRUNER: Final = system_actor("prune")


def keep_deleted(subject: Subject, rows: Sequence[SchemaVersion]) -> None:
    """Keep a copy of versions that are about to be deleted, in the caller's transaction, unless copies are off."""
    if not rows or settings.DELETED_COPY_DAYS <= 0:
        return
    now = timezone.now()
    values: dict[str, Any] = {
        "subject": subject.pk,
        "versions": [row.pk for row in rows],
        "now": now,
        "until": now + timedelta(days=settings.DELETED_COPY_DAYS),
    }
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, values)


def stored_copy(registry: str, number: int, by: Actor) -> tuple[Registry, ArchivedCopy]:
    """Return an unexpired copy that `by` may restore. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    require_any(registry, by)
    registry_row = get_registry(registry)
    row = ArchivedCopy.objects.filter(registry=registry_row, pk=number, until__gt=timezone.now()).first()
    subject = row.name if row is not None and row.kind == ArchivedCopy.DELETED else ""
    if row is not None and may(by, RIGHTS[row.kind], registry=registry_row.name, subject=subject):
        return registry_row, row
    require(
        by, RIGHTS[ArchivedCopy.DELETED], registry=registry_row.name
    )  # the same error for a copy that isn't theirs as for one that doesn't exist
    raise gone(number)


def require_any(registry: str, by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed unless `by` may restore any copy of the registry; the registry may not exist."""
    if not may(by, RIGHTS[ArchivedCopy.SENT], registry=registry):
        require_extent(by, RIGHTS[ArchivedCopy.DELETED], registry=registry)


def gone(number: int) -> CopyNotFound:
    """Return the error for a copy that doesn't exist."""
    return CopyNotFound(f"Copy {number} doesn't exist: it was imported, deleted or has expired.", number=number)


@transaction.atomic
def forget(*, registry: str, number: int, by: Actor) -> str:
    """Delete a copy now, with all its texts, and return its name. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    registry_row, row = stored_copy(registry, number, by)
    record(by=by, why=f"forget the copy of {row.name[:200]} in {registry_row.name}")
    if not ArchivedCopy.objects.filter(pk=row.pk).delete()[0]:
        raise gone(number)
    return row.name


@transaction.atomic
def prune() -> int:
    """Delete some of the expired copies and return how many."""
    old = ArchivedCopy.objects.filter(until__lte=timezone.now()).order_by("until").values_list("pk", flat=True)[:PRUNED]
    record(by=_PRUNER, why="its time is over")
    return ArchivedCopy.objects.filter(pk__in=list(old)).delete()[0]
