"""What the list of subjects was sorted by at a moment: of subjects that changed since it is counted anew."""

from __future__ import annotations

from typing import Final

from registry.audit.past import DERIVED, MOMENT

_CHANGES: Final = f"""
    FROM public.audit_auditevent e
    WHERE e."table" = 'subjects_schemaversion' AND e.operation <> 'INSERT' AND e.at > {MOMENT}"""
_SUBJECT: Final = "(e.before ->> 'subject_id')"
ACTIVITY: Final = f"""
SELECT a.subject_id, a.registry_id, a.live_versions, a.changed_at, a.schema_type FROM public.subjects_subjectactivity a
WHERE a.changed_at <= {MOMENT} AND NOT EXISTS (SELECT {_CHANGES} AND {_SUBJECT} = a.subject_id::text)
UNION ALL
SELECT v.subject_id, c.registry_id, count(*)::integer, max(v.created_at),
    (array_agg(sc.schema_type ORDER BY v.version DESC))[1]
FROM past.subjects_schemaversion v
JOIN past.subjects_schema sc ON sc.id = v.schema_id
JOIN past.subjects_subject s ON s.id = v.subject_id
JOIN past.subjects_context c ON c.id = s.context_id
WHERE v.deleted_at IS NULL AND v.subject_id IN (
    SELECT a.subject_id FROM public.subjects_subjectactivity a WHERE a.changed_at > {MOMENT}
    UNION SELECT {_SUBJECT}::bigint {_CHANGES})
GROUP BY v.subject_id, c.registry_id"""  # noqa: S608  of constants


def declare() -> None:
    """Tell the views of the past how it is worked out."""
    DERIVED["subjects_subjectactivity"] = ACTIVITY
