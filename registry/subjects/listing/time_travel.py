"""The list of subjects as of a moment: the activity of subjects that changed since is counted again."""

from __future__ import annotations

from typing import Final

from registry.audit.history_views import DERIVED, MOMENT, DerivedTable, by_then

_CHANGES: Final = """
    FROM public.audit_auditevent e
    WHERE e."table" = 'subjects_schemaversion' AND e.operation <> 'INSERT' AND e.at > {moment}"""
_OLD: Final = f"SELECT (e.before ->> 'subject_id')::bigint {_CHANGES.format(moment=MOMENT)}"
_COLUMNS: Final = "subject_id, registry_id, live_versions, changed_at, schema_type"
ACTIVITY: Final = f"""
SELECT {_COLUMNS} FROM (
    SELECT {_COLUMNS}, true AS "is of now" FROM public.subjects_subjectactivity
    UNION ALL
    SELECT {_COLUMNS}, false FROM (
        WITH counted AS MATERIALIZED (
            SELECT changed.subject_id, place.registry_id, live.live_versions, live.changed_at, newest.schema_type
            FROM (
                SELECT a.subject_id FROM public.subjects_subjectactivity a WHERE a.changed_at > {MOMENT} UNION {_OLD}
            ) changed
            CROSS JOIN LATERAL (
                SELECT count(*)::integer AS live_versions, max(v.created_at) AS changed_at,
                    (array_agg(v.schema_id ORDER BY v.version DESC))[1] AS newest
                FROM past.subjects_schemaversion v
                WHERE v.subject_id = changed.subject_id AND v.deleted_at IS NULL HAVING count(*) > 0
            ) live
            CROSS JOIN LATERAL (
                SELECT sc.schema_type FROM past.subjects_schema sc WHERE sc.id = live.newest OFFSET 0
            ) newest
            CROSS JOIN LATERAL (
                SELECT c.registry_id FROM past.subjects_subject s JOIN past.subjects_context c ON c.id = s.context_id
                WHERE s.id = changed.subject_id OFFSET 0
            ) place
        ) SELECT * FROM counted
    ) before
) both_of_them
WHERE NOT "is of now" OR ({by_then("changed_at")} AND CASE WHEN subject_id IN ({_OLD}) THEN 1 ELSE 0 END <> 1)"""  # noqa: S608
UNCHANGED: Final = f"""NOT EXISTS (SELECT {_CHANGES.format(moment="$1")})
    AND NOT EXISTS (SELECT FROM public.subjects_subjectactivity WHERE changed_at > $1)"""  # noqa: S608


def declare() -> None:
    """Tell the views of the past how it is worked out."""
    DERIVED["subjects_subjectactivity"] = DerivedTable(query=ACTIVITY, unchanged=UNCHANGED)
