"""Which subjects of a registry anything is known to need, as a list of their numbers: the others are `orphans`."""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

from registry.drift.models import Topic
from registry.drift.orphans import Seen, carried_by
from registry.subjects.models import Registry
from registry.subjects.selectors.narrowing import REFERRED

#: those that a topic has, by their names; those of the ids, GUIDs and types that messages were marked with; those referred to
_NEEDED: Final = f"""
WITH place(id, name) AS (SELECT id, name FROM subjects_context WHERE registry_id = %(registry)s), needed(id) AS (
    SELECT s.id FROM unnest(%(contexts)s::text[], %(names)s::text[]) carried(context, name)
    JOIN place ON place.name = carried.context
    JOIN subjects_subject s ON s.context_id = place.id AND s.name = carried.name
    UNION
    SELECT v.subject_id FROM unnest(%(id_contexts)s::text[], %(ids)s::bigint[]) seen(context, number)
    JOIN place ON place.name = seen.context
    JOIN subjects_schema sc ON sc.context_id = place.id AND sc.schema_id = seen.number
    JOIN subjects_schemaversion v ON v.schema_id = sc.id AND v.deleted_at IS NULL
    UNION
    SELECT v.subject_id FROM subjects_schema sc
    JOIN place ON place.id = sc.context_id
    JOIN subjects_schemaversion v ON v.schema_id = sc.id AND v.deleted_at IS NULL
    WHERE sc.guid::text = ANY (%(guids)s::text[])
    UNION
    SELECT s.id FROM subjects_subject s JOIN place ON place.id = s.context_id WHERE s.name = ANY (%(types)s::text[])
    UNION
    {REFERRED}
)
SELECT array_agg(id)::text FROM needed"""  # noqa: S608  of constants


def needed_subjects(registry: Registry) -> str | None:
    """Their numbers, as PostgreSQL writes a list; None where no topic was looked at, so that nothing is known. Three queries."""
    rows = Topic.objects.filter(source__registry=registry)
    topics = list(rows.values_list("name", "subjects", "source__context", "read_at"))
    if not topics:
        return None
    carried, seen = carried_by(topics), Seen(registry)
    ids = [(context, int(mark)) for context, mark in seen.ids if mark.isdecimal() and len(mark) < 18]
    parts = [kind.split(".") for kind in seen.types]
    given: dict[str, Any] = {
        "registry": registry.pk,
        "contexts": [name.context for name in carried],
        "names": [name.subject for name in carried],
        "id_contexts": [context for context, _ in ids],
        "ids": [number for _, number in ids],
        "guids": list(seen.guids),
        "types": [".".join(words[start:]) for words in parts for start in range(1, len(words))],
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEEDED, given)
        return cursor.fetchone()[0] or "{}"
