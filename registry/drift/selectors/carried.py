"""What carries the subjects of a page: topics, streaming queries, and when a message of theirs was last seen."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection

from registry.drift.models import SIDES
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName


@dataclass(frozen=True)
class Carried:
    """How many topics a subject's messages are in, how many queries read it, and when the newest message seen was made."""

    topics: int = 0
    queries: int = 0
    last_seen: datetime | None = None


NOTHING: Final = Carried()

# A topic carries the subjects that scans found in its messages, and those that are called like it; a name that a source
# writes without a context is of the source's own.
_CARRIED: Final = """
WITH page(context, name, qualified) AS (
    SELECT * FROM unnest(%(contexts)s::text[], %(names)s::text[], %(qualified)s::text[])
), looked_at(topic, name, subjects, prefix) AS (
    SELECT t.id, t.name, CASE jsonb_typeof(t.subjects) WHEN 'object' THEN t.subjects ELSE '{}' END,
        CASE trim(BOTH ':' FROM source.context) WHEN '' THEN '' WHEN '.' THEN ''
            ELSE ':.' || ltrim(trim(BOTH ':' FROM source.context), '.') || ':' END
    FROM drift_topic t JOIN drift_source source ON source.id = t.source_id
    WHERE source.registry_id = %(registry)s AND t.gone_at IS NULL
), carried AS (
    SELECT topic, side, prefix || name || '-' || side AS qualified FROM looked_at CROSS JOIN unnest(%(sides)s::text[]) side
    UNION
    SELECT topic, side.key, CASE WHEN named.name LIKE ':.%%' THEN named.name ELSE prefix || named.name END
    FROM looked_at CROSS JOIN LATERAL jsonb_each(subjects) side
    CROSS JOIN LATERAL jsonb_array_elements_text(
        CASE jsonb_typeof(side.value) WHEN 'array' THEN side.value ELSE '[]' END) named(name)
), topics AS (
    SELECT page.qualified, count(DISTINCT carried.topic) AS number, max(used.last_time) AS last_seen
    FROM page JOIN carried USING (qualified)
    LEFT JOIN LATERAL (
        SELECT max(u.last_time) AS last_time FROM drift_schemause u
        WHERE u.topic_id = carried.topic AND u.side = carried.side AND u.schema_id IN (
            SELECT sc.schema_id FROM subjects_context c
            JOIN subjects_subject s ON s.context_id = c.id AND s.name = page.name
            JOIN subjects_schemaversion v ON v.subject_id = s.id
            JOIN subjects_schema sc ON sc.id = v.schema_id
            WHERE c.registry_id = %(registry)s AND c.name = page.context)
    ) used ON true
    GROUP BY page.qualified
), queries AS (
    SELECT page.qualified, count(DISTINCT query.id) AS number
    FROM page JOIN streams_queryinput input ON input.subject = page.name AND input.context = page.context
    JOIN streams_streamquery query ON query.id = input.query_id AND query.registry_id = %(registry)s
    GROUP BY page.qualified
)
SELECT page.qualified, coalesce(topics.number, 0), coalesce(queries.number, 0), topics.last_seen
FROM page LEFT JOIN topics USING (qualified) LEFT JOIN queries USING (qualified)
WHERE topics.number > 0 OR queries.number > 0
"""


def carried_of(registry: Registry, subjects: Collection[SubjectName]) -> dict[str, Carried]:
    """What carries each of the subjects, by its qualified name, those of which nothing is known left out; one query."""
    if not subjects:
        return {}
    given: dict[str, Any] = {
        "registry": registry.pk,
        "contexts": [name.context for name in subjects],
        "names": [name.subject for name in subjects],
        "qualified": [name.qualified for name in subjects],
        "sides": list(SIDES),
    }
    with connection.cursor() as cursor:
        cursor.execute(_CARRIED, given)
        return {name: Carried(topics, queries, seen) for name, topics, queries, seen in cursor.fetchall()}
