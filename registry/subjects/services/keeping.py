"""Copies of what is deleted for good: kept in the transaction of the deletion, in one statement, for some days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from registry.access.extent import require_extent
from registry.access.roles import Actor, may, require, system_actor
from registry.audit.services import record
from registry.errors import CopyNotFound
from registry.subjects.models import KeptCopy, Registry, SchemaVersion, Subject
from registry.subjects.selectors.places import get_registry

#: kind of copy → the right that it takes
RIGHTS: Final = {KeptCopy.DELETED: "version.delete_permanently", KeptCopy.SENT: "mode.change"}

#: the lines of versions of an export file, and what else goes with a subject; of owners those whose pattern may name it
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
    'note', (SELECT json_build_object('tags', x.tags, 'doc', x.doc) FROM subjects_subjectnote x WHERE x.subject_id = s.id),
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
    """Keep a copy of versions that are about to be removed, in the caller's transaction; nothing where none is wanted."""
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


def kept(registry: str, number: int, by: Actor) -> tuple[Registry, KeptCopy]:
    """A copy that is kept still, for whoever may bring it back. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    require_any(registry, by)
    place = get_registry(registry)
    row = KeptCopy.objects.filter(registry=place, pk=number, until__gt=timezone.now()).first()
    subject = row.name if row is not None and row.kind == KeptCopy.DELETED else ""
    if row is not None and may(by, RIGHTS[row.kind], registry=place.name, subject=subject):
        return place, row
    require(by, RIGHTS[KeptCopy.DELETED], registry=place.name)  # the same for what isn't theirs and what isn't there
    raise gone(number)


def require_any(registry: str, by: Actor) -> None:
    """That somebody may bring back any copy of the registry, whether it is there or not. Raises NotSignedIn, NotAllowed."""
    if not may(by, RIGHTS[KeptCopy.SENT], registry=registry):
        require_extent(by, RIGHTS[KeptCopy.DELETED], registry=registry)


def gone(number: int) -> CopyNotFound:
    """What is said of a copy that isn't there."""
    return CopyNotFound(
        f"Copy {number} isn't kept: it was brought in or forgotten, or its time is over.", number=number
    )


@transaction.atomic
def forget(*, registry: str, number: int, by: Actor) -> str:
    """Remove a copy now, with all its texts; gives its name. Raises RegistryNotFound, CopyNotFound, NotAllowed."""
    place, row = kept(registry, number, by)
    record(by=by, why=f"forget the copy of {row.name[:200]} in {place.name}")
    if not KeptCopy.objects.filter(pk=row.pk).delete()[0]:
        raise gone(number)
    return row.name


@transaction.atomic
def prune() -> int:
    """Remove some of the copies that are kept no longer; gives how many."""
    old = KeptCopy.objects.filter(until__lte=timezone.now()).order_by("until").values_list("pk", flat=True)[:PRUNED]
    record(by=_PRUNER, why="its time is over")
    return KeptCopy.objects.filter(pk__in=list(old)).delete()[0]
