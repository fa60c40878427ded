"""What a registration looks at under the lock of its subject, read at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import connection

from registry.subjects.models import Registry, Schema, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.rows import columns_of, row_of, width_of
from registry.subjects.selectors.effective import (
    NAMED,
    SPOKEN,
    EffectiveConfig,
    OwnConfig,
    scope_of,
    spoken_from,
)
from registry.subjects.selectors.submission import ALIKE, MAY_EQUAL, Submission, likeness


@dataclass(frozen=True)
class Situation:
    """The settings that count for a subject, its newest versions, and what is there of a schema that may come.

    `highest` is the highest number of its versions, the soft-deleted ones counted, 0 without any; `latest` the newest
    live version with its schema, and `latest_refers` whether that schema refers to another one. `may_equal` is False
    where `equal_version` would find nothing, `is_known` says whether the context has the very schema already.
    """

    config: EffectiveConfig
    scope: OwnConfig
    mode: str
    highest: int
    latest: SchemaVersion | None
    latest_refers: bool
    may_equal: bool
    is_known: bool


_SITUATION: Final = f"""{NAMED}, {ALIKE}
SELECT {SPOKEN},
    (SELECT max(version) FROM subjects_schemaversion WHERE subject_id = %(subject_id)s::bigint),
    EXISTS (SELECT FROM subjects_schemareference r WHERE r.schema_id = p.schema_id),
    {MAY_EQUAL},
    EXISTS (SELECT FROM alike),
    {columns_of(SchemaVersion, "p")}, {columns_of(Schema, "s")}
FROM (VALUES (1)) AS one
LEFT JOIN LATERAL (
    SELECT v.* FROM subjects_schemaversion v WHERE v.subject_id = %(subject_id)s::bigint AND v.deleted_at IS NULL
    ORDER BY v.version DESC LIMIT 1
) AS p ON true
LEFT JOIN subjects_schema s ON s.id = p.schema_id
"""  # noqa: S608


def situation_of(
    registry: Registry, subject: SubjectName, row: Subject, submission: Submission | None, canonical: str
) -> Situation:
    """The situation of a subject that is there; `canonical` is the text that would be stored of the submission."""
    values = {**scope_of(registry, subject), **likeness(submission, canonical), "subject_id": row.pk}
    with connection.cursor() as cursor:
        cursor.execute(_SITUATION, values)
        configs, modes, highest, latest_refers, may_equal, is_known, *columns = cursor.fetchone()
    spoken = spoken_from(configs, modes)
    return Situation(
        config=spoken.config(),
        scope=spoken.settings(),
        mode=spoken.mode(registry).mode,
        highest=highest or 0,
        latest=_version(columns),
        latest_refers=latest_refers,
        may_equal=may_equal,
        is_known=is_known,
    )


def _version(columns: list[object]) -> SchemaVersion | None:
    width = width_of(SchemaVersion)
    if columns[0] is None:
        return None
    found = row_of(SchemaVersion, columns[:width])
    found.schema = row_of(Schema, columns[width:])
    return found
