"""Which versions messages carry, as scans saw it: for many at once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from django.db import connection

#: A schema id is one of its source's context, however that is written there; a GUID is one everywhere. Where scans found
#: whose a topic's messages are, those of another subject with the same schema aren't this one's.
_SEEN: Final = """
WITH wanted AS (
    SELECT v.id, s.name, c.name AS context, c.registry_id, sc.schema_id, sc.guid::text AS guid
    FROM subjects_schemaversion v
    JOIN subjects_schema sc ON sc.id = v.schema_id
    JOIN subjects_subject s ON s.id = v.subject_id
    JOIN subjects_context c ON c.id = s.context_id
    WHERE v.id = ANY(%s)
), used AS (
    SELECT wanted.*, u.topic_id, u.side, u.framing, u.last_time
    FROM wanted JOIN drift_schemause u ON u.schema_id = wanted.schema_id AND u.framing = 'id'
    UNION ALL
    SELECT wanted.*, u.topic_id, u.side, u.framing, u.last_time
    FROM wanted JOIN drift_schemause u ON u.framing = 'guid' AND u.mark = wanted.guid
)
SELECT used.id, max(used.last_time)
FROM used
JOIN drift_topic t ON t.id = used.topic_id
JOIN drift_source o ON o.id = t.source_id AND o.registry_id = used.registry_id
WHERE (used.framing = 'guid' OR o.context IN (used.context, ltrim(used.context, '.'), ':' || used.context || ':'))
AND (coalesce(jsonb_array_length(t.subjects -> used.side), 0) = 0 OR jsonb_exists_any(
    t.subjects -> used.side, ARRAY[used.name, ':' || used.context || ':' || used.name]))
GROUP BY used.id"""


def last_seen(versions: Collection[int]) -> dict[int, datetime]:
    """Version's row → when the last message with its id or GUID was written; those that no scan saw aren't in it.

    One query. What Spring's content types name isn't looked at: they have a version's number and no id.
    """
    if not versions:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, [list(versions)])
        return dict(cursor.fetchall())
