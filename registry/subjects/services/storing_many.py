"""The rows of many versions that come from elsewhere: one statement for each table, however many they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connection

from registry.subjects.models import Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.resolving import Found
from registry.subjects.services.locks import make_subjects, pass_schema_ids
from registry.subjects.services.storing import links_of

# Django's own way would put the time of now into each.
_ADD: Final = """
INSERT INTO subjects_schemaversion
    (subject_id, version, schema_id, submitted, created_at, created_by, door, deleted_at, imported)
SELECT w.subject_id, w.version, w.schema_id, w.submitted, w.created_at, w.created_by, w.door, w.deleted_at, true
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::timestamptz[], %s::text[], %s::text[],
    %s::timestamptz[]) WITH ORDINALITY
    AS w(subject_id, version, schema_id, submitted, created_at, created_by, door, deleted_at, place)
ORDER BY w.place
RETURNING subject_id, version, id
"""


def add_versions(
    registry: Registry,
    subjects: Mapping[SubjectName, Subject],
    versions: Sequence[tuple[SubjectName, SchemaVersion]],
    schemas: Sequence[tuple[SubjectName, Schema, Sequence[Found]]],
) -> None:
    """Store new versions, with the schemas among theirs that are new and what those refer to.

    `subjects` are those that are there, which are locked; the others are made. In the order of everybody: subjects, then
    counters. What a schema refers to may be one of these versions, so that is written last.
    """
    names = dict.fromkeys(name for name, _ in versions)
    there = {**subjects, **make_subjects(registry, [name for name in names if name not in subjects])}
    newest = {there[name].context_id: 0 for name in names}
    for name, schema, _ in schemas:
        schema.context = there[name].context
        newest[schema.context_id] = max(newest[schema.context_id], schema.schema_id)
    pass_schema_ids(newest)
    for _, schema, _ in schemas:
        schema.pk = None
    Schema.objects.bulk_create(schema for _, schema, _ in schemas)
    for name, row in versions:
        row.subject, row.schema = there[name], row.schema
    _insert([row for _, row in versions])
    SchemaReference.objects.bulk_create(link for _, schema, found in schemas for link in links_of(schema, found))


def _insert(rows: Sequence[SchemaVersion]) -> None:
    number = SchemaVersion._meta.get_field("version")
    columns: tuple[list[Any], ...] = (
        [row.subject_id for row in rows],
        [number.get_db_prep_save(row.version, connection) for row in rows],
        [row.schema_id for row in rows],
        [row.submitted for row in rows],
        [row.created_at for row in rows],
        [row.created_by for row in rows],
        [row.door for row in rows],
        [row.deleted_at for row in rows],
    )
    by_place = {(row.subject_id, row.version): row for row in rows}
    with connection.cursor() as cursor:
        cursor.execute(_ADD, columns)
        for subject, version, pk in cursor.fetchall():
            by_place[subject, version].pk = pk
