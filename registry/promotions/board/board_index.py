"""The index behind the board: which subjects a page has, from stored marks and from what changed since.

A refresh deletes the change notes and then computes the marks, in one transaction. A change that is made meanwhile is
either part of the result or keeps its own note. Readers see the old marks with their notes, or the new marks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db import connection, transaction

from registry.access.permission_filters import Extent, ExtentPart
from registry.promotions.board.readiness_fingerprint import pairs_of
from registry.promotions.models import BoardState, BoardSubject, Environment
from registry.subjects.models import Subject
from registry.subjects.versions.qualified_names import SubjectName

EVERYTHING: Final = Extent((ExtentPart(),))


@dataclass(frozen=True)
class ReadableSubjects:
    """The subjects that an actor may read in some environments: everything in some, matching subjects in the others."""

    environments: Sequence[Environment]
    extent: Extent

    @property
    def is_everything(self) -> bool:
        """Whether the actor may read all of these environments."""
        return all(self.extent.has_all_of(row.registry.name) for row in self.environments)

    @property
    def condition(self) -> str:
        """SQL for whether the actor may read the subject `s` in a registry that isn't fully readable for them."""
        return f"s.id IN ({self._subjects[0]})" if self._subjects[0] else "false"

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the queries."""
        return {
            "n": list(range(len(self.environments))),
            "last": len(self.environments) - 1,
            "registries": [row.registry_id for row in self.environments],
            "open": sorted(row.registry_id for row in self.environments if self.extent.has_all_of(row.registry.name)),
            **self._subjects[1],
        }

    @cached_property
    def _subjects(self) -> tuple[str, dict[str, Any]]:
        """A query for the keys of those subjects, with named parameters; "" if there are none."""
        partly = {row.registry.name for row in self.environments if not self.extent.has_all_of(row.registry.name)}
        parts = tuple(
            part for part in self.extent.parts if part.patterns and (part.registry in partly or not part.registry)
        )
        if not partly or not parts:
            return "", {}
        rows = Subject.objects.covered_by(Extent(parts))
        numbers = rows.filter(context__registry__name__in=partly).order_by().values("pk")
        sql, values = numbers.query.sql_with_params()
        names = [f"readable_{number}" for number in range(len(values))]
        # a percent sign is doubled, because the whole query gets its own parameters later
        return sql.replace("%%", "%%%%") % tuple(f"%({name})s" for name in names), dict(zip(names, values, strict=True))


BEHIND: Final = "behind"
BLOCKED: Final = "blocked"
OTHER_ID: Final = "id differs"
OTHER_CONTENT: Final = "different content"
FILTERS: Final = (BEHIND, BLOCKED, OTHER_ID, OTHER_CONTENT)
#: up to this many changed subjects are read in addition to the marks; beyond that the marks don't help
MAX_CHANGED: Final = 2000
#: bits of `behind`
MAX_PLACES: Final = 62

#: the subjects that the actor may read and searches for, by environment; the parameters come from `ReadableSubjects`
#: and `_pairs`
_HERE: Final = """
WITH place(n, registry) AS (SELECT * FROM unnest(%(n)s::int[], %(registries)s::bigint[])),
named(context, subject) AS (
    SELECT * FROM unnest(%(named_contexts)s::text[], %(named_subjects)s::text[])
), here AS (
    SELECT s.id, place.n, c.name AS context, s.name AS subject
    FROM place
    JOIN subjects_context c ON c.registry_id = place.registry
    JOIN subjects_subject s ON s.context_id = c.id
    WHERE (place.registry = ANY(%(open)s) OR {readable})
    AND s.name ILIKE ALL(%(words)s::text[])
    {narrowed}
)"""
_NARROWED: Final = "AND (c.name, s.name) IN (SELECT context, subject FROM named)"
_OF_HERE: Final = "AND v.subject_id IN (SELECT id FROM here)"
#: those with a live version
_THERE: Final = """
    SELECT context, subject FROM here
    WHERE EXISTS (SELECT FROM subjects_subjectactivity a WHERE a.subject_id = here.id)"""
#: the tables that the filters read; each is built once, and only for the filters that need it
_TABLES: Final = {
    "newest": """newest AS MATERIALIZED (
    SELECT DISTINCT ON (v.subject_id) v.subject_id, v.schema_id
    FROM subjects_schemaversion v
    WHERE v.deleted_at IS NULL {of_here}
    ORDER BY v.subject_id, v.version DESC
)""",
    # the newest that isn't quarantined, which is the one to promote
    "trusted": """trusted AS MATERIALIZED (
    SELECT DISTINCT ON (v.subject_id) v.subject_id, v.schema_id, v.version
    FROM subjects_schemaversion v
    WHERE v.deleted_at IS NULL {of_here} AND v.id NOT IN (
        SELECT st.version_id FROM subjects_versionstanding st WHERE st.standing = 'quarantined')
    ORDER BY v.subject_id, v.version DESC
)""",
    "pairs": """pairs AS (
    SELECT source.n + 1 AS n, source.context, source.subject, source.id AS source_id, target.id AS target_id
    FROM here source
    LEFT JOIN here target ON target.n = source.n + 1 AND target.context = source.context
        AND target.subject = source.subject
    WHERE source.n < %(last)s
)""",
    "ahead": """ahead AS (
    SELECT pairs.n, pairs.context, pairs.subject
    FROM pairs
    JOIN trusted ON trusted.subject_id = pairs.source_id
    JOIN subjects_schema sc ON sc.id = trusted.schema_id
    WHERE NOT EXISTS (
        SELECT 1 FROM subjects_schemaversion x JOIN subjects_schema sx ON sx.id = x.schema_id
        WHERE x.subject_id = pairs.target_id AND x.deleted_at IS NULL AND sx.fingerprint = sc.fingerprint)
    UNION
    -- rolled back: its newest schema is one that the source had before the version to promote, and not since
    SELECT pairs.n, pairs.context, pairs.subject
    FROM pairs
    JOIN trusted ON trusted.subject_id = pairs.source_id
    JOIN newest ON newest.subject_id = pairs.target_id
    JOIN subjects_schema held ON held.id = newest.schema_id
    JOIN subjects_schemaversion v ON v.subject_id = pairs.source_id AND v.deleted_at IS NULL
    JOIN subjects_schema sc ON sc.id = v.schema_id AND sc.fingerprint = held.fingerprint
    GROUP BY 1, 2, 3, trusted.version HAVING max(v.version) < trusted.version
)""",
}
#: the pairs of environments by the position of their target, with the answers "no"
_NO: Final = """
        SELECT pair.n, outlook.context_name, outlook.subject_name
        FROM unnest(%(pair_numbers)s::int[], %(pair_sources)s::bigint[], %(pair_targets)s::bigint[])
            AS pair(n, source_id, target_id)
        JOIN promotions_promotionoutlook outlook ON outlook.source_id = pair.source_id
            AND outlook.target_id = pair.target_id
        WHERE outlook.verdict = 'no'"""
#: filter → the tables that it needs, and the query for the subjects that it keeps
_CHOICES: Final = {
    BEHIND: (("newest", "trusted", "pairs", "ahead"), "SELECT context, subject FROM ahead"),
    BLOCKED: (
        ("newest", "trusted", "pairs", "ahead"),
        f"""
    SELECT ahead.context, ahead.subject FROM ahead
    WHERE ahead.n = ANY(%(frozen)s::int[]) OR (ahead.n, ahead.context, ahead.subject) IN ({_NO})""",  # noqa: S608  of constants
    ),
    OTHER_ID: (
        ("newest", "pairs"),
        """
    SELECT pairs.context, pairs.subject
    FROM pairs
    JOIN newest ON newest.subject_id = pairs.target_id
    JOIN subjects_schema held ON held.id = newest.schema_id
    JOIN subjects_schemaversion v ON v.subject_id = pairs.source_id AND v.deleted_at IS NULL
    JOIN subjects_schema sc ON sc.id = v.schema_id
    WHERE sc.fingerprint = held.fingerprint AND sc.schema_id <> held.schema_id""",
    ),
    OTHER_CONTENT: (
        ("pairs",),
        """
    SELECT pairs.context, pairs.subject
    FROM pairs
    JOIN subjects_schemaversion v ON v.subject_id = pairs.source_id AND v.deleted_at IS NULL
    JOIN subjects_schemaversion w ON w.subject_id = pairs.target_id AND w.deleted_at IS NULL AND w.version = v.version
    JOIN subjects_schema sc ON sc.id = v.schema_id
    JOIN subjects_schema held ON held.id = w.schema_id
    WHERE sc.fingerprint <> held.fingerprint""",
    ),
}
#: filter → the condition on the stored marks
_MARKED: Final = {
    BEHIND: "kept.behind <> 0",
    BLOCKED: f"""(kept.behind & %(frozen_bits)s <> 0 OR (kept.context_name, kept.subject_name) IN (
        SELECT marked.context_name, marked.subject_name
        FROM ({_NO}) refused(n, context, subject)
        JOIN promotions_boardsubject marked ON marked.context_name = refused.context
            AND marked.subject_name = refused.subject
        WHERE marked.behind & (1::bigint << refused.n) <> 0))""",  # noqa: S608  of constants
    OTHER_ID: "kept.id_differs",
    OTHER_CONTENT: "kept.other_content",
}
#: as text, like subject names, so that a page of both is read in the order of the marks' index
_KEPT: Final = """
    SELECT kept.context_name::text AS context, kept.subject_name::text AS subject FROM promotions_boardsubject kept"""
_NAMED_LIKE: Final = "kept.subject_name ILIKE ALL(%(words)s::text[])"
_UNCHANGED: Final = "(kept.context_name, kept.subject_name) NOT IN (SELECT context, subject FROM named)"
_PAGE: Final = """
    SELECT context, subject, (SELECT count(*) FROM chosen) FROM chosen
    WHERE (context COLLATE "C", subject COLLATE "C") > (%(context)s, %(subject)s)
    ORDER BY context COLLATE "C", subject COLLATE "C" LIMIT %(limit)s
"""
#: the rows to store: every mark of every subject with a live version
_MARKS: Final = f"""
    SELECT known.context, known.subject, coalesce(behind.bits, 0), id_differs.subject IS NOT NULL,
        other_content.subject IS NOT NULL
    FROM (SELECT DISTINCT context, subject FROM ({_THERE}) there) known
    LEFT JOIN (SELECT context, subject, bit_or(1::bigint << n) AS bits FROM ahead GROUP BY 1, 2) behind
        USING (context, subject)
    LEFT JOIN (SELECT DISTINCT context, subject FROM ({_CHOICES[OTHER_ID][1]}) found) id_differs
        USING (context, subject)
    LEFT JOIN (SELECT DISTINCT context, subject FROM ({_CHOICES[OTHER_CONTENT][1]}) found) other_content
        USING (context, subject)
"""  # noqa: S608  of constants
#: the environments that the marks are for, and the subjects that changed since
_STATE: Final = """
SELECT state.places::text, changed.context_name, changed.subject_name
FROM (SELECT places FROM promotions_boardstate ORDER BY id LIMIT 1) state
LEFT JOIN (SELECT DISTINCT context_name, subject_name FROM promotions_boardchange LIMIT %(most)s) changed ON true
"""
#: A filter compares every version with its counterpart. The planner expects few rows and would use nested loops for
#: tens of thousands: these settings make it hash in memory. The filter `blocked` really has few rows and doesn't need
#: them.
_PLANNED: Final = "SET LOCAL enable_nestloop TO off; SET LOCAL work_mem TO '32MB'"
_PLANNED_AS_EVER: Final = "SET LOCAL enable_nestloop TO DEFAULT; SET LOCAL work_mem TO DEFAULT"


def page_of(
    readable: ReadableSubjects,
    *,
    filters: Collection[str],
    patterns: Sequence[str],
    frozen: Collection[int],
    after: SubjectName,
    limit: int,
) -> tuple[list[SubjectName], int]:
    """Return the names of a page and the number on all pages; `frozen` are environments' keys."""
    parameters = {
        **readable.parameters(),
        **_pairs(readable.environments, frozen),
        "words": list(patterns),
        "context": after.context,
        "subject": after.subject,
        "limit": limit,
    }
    changed = _changed(readable)
    is_live = changed is None
    query = (
        _whole_query(readable, filters)
        if changed is None
        else _query_by_marks(readable, filters, is_changed=bool(changed), is_searched=bool(patterns))
    )
    in_bulk = is_live and bool(filters) and BLOCKED not in filters
    with _planned(in_bulk=in_bulk), connection.cursor() as cursor:
        cursor.execute(query, parameters | _named(changed or ()))
        rows = cursor.fetchall()
    return [SubjectName(context, subject) for context, subject, _ in rows], rows[0][2] if rows else 0


def places_of(environments: Sequence[Environment]) -> list[list[int]]:
    """Return the environments in order, as `BoardState.places` stores them."""
    return [[row.pk, row.registry_id] for row in environments]


def mark_rows(environments: Sequence[Environment], names: Sequence[SubjectName] | None) -> tuple[str, dict[str, Any]]:
    """SQL for the current marks of some subjects (None: of all), with its parameters."""
    readable = ReadableSubjects(environments, EVERYTHING)
    parameters = {**readable.parameters(), **_pairs(environments, ()), **_named(names or ()), "words": []}
    return _head(_TABLES, readable, is_narrow=names is not None) + _MARKS, parameters


def _changed(readable: ReadableSubjects) -> list[SubjectName] | None:
    """Return the subjects with stale marks; None if the marks are unusable.

    That is so if the actor can't read everything, the order of environments differs, or too many subjects changed.
    """
    if not readable.is_everything:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"most": MAX_CHANGED + 1})
        rows = cursor.fetchall()
    if not rows or json.loads(rows[0][0]) != places_of(readable.environments):
        return None
    subjects = [SubjectName(context, subject) for _, context, subject in rows if subject is not None]
    return subjects if len(subjects) <= MAX_CHANGED else None


def _named(names: Collection[SubjectName]) -> dict[str, list[str]]:
    return {"named_contexts": [name.context for name in names], "named_subjects": [name.subject for name in names]}


def _head(tables: Collection[str], readable: ReadableSubjects, *, is_narrow: bool) -> str:
    """Return the common tables; with `is_narrow` only of the named subjects."""
    of_here = _OF_HERE if is_narrow else ""
    needed = "".join(f", {_TABLES[name].format(of_here=of_here)}" for name in _TABLES if name in tables)
    return _HERE.format(readable=readable.condition, narrowed=_NARROWED if is_narrow else "") + needed


def _whole_query(readable: ReadableSubjects, filters: Collection[str]) -> str:
    tables, chosen = _conditions(filters)
    return _head(tables, readable, is_narrow=False) + f", chosen AS MATERIALIZED ({chosen}){_PAGE}"


def _query_by_marks(
    readable: ReadableSubjects, filters: Collection[str], *, is_changed: bool, is_searched: bool
) -> str:
    """Query the marks, and the versions for whatever has changed since the marks were made.

    A page is read in the order of the index, and the rows of all pages are counted. Parts that aren't needed are left
    out.
    """
    marked = [_NAMED_LIKE] * is_searched + [_UNCHANGED] * is_changed + [_MARKED[n] for n in FILTERS if n in filters]
    marks = _KEPT + (f" WHERE {' AND '.join(marked)}" if marked else "")
    once = "MATERIALIZED" if BLOCKED in filters else "NOT MATERIALIZED"
    if not is_changed:
        return f"WITH chosen AS {once} ({marks}){_PAGE}"
    tables, chosen = _conditions(filters)
    live = f"live AS MATERIALIZED ({chosen}), chosen AS {once} ({marks} UNION ALL SELECT context, subject FROM live)"  # noqa: S608  of constants
    return _head(tables, readable, is_narrow=True) + f", {live}{_PAGE}"


def _conditions(filters: Collection[str]) -> tuple[set[str], str]:
    """Return the tables that the filters need, and the query for (context, subject) of rows that match all filters."""
    choices = [_CHOICES[name] for name in FILTERS if name in filters]
    queries = [query for _, query in choices] or [_THERE]
    chosen = " INTERSECT ".join(queries) if len(queries) > 1 else f"{queries[0]} GROUP BY 1, 2"
    return {name for tables, _ in choices for name in tables}, chosen


def _pairs(environments: Sequence[Environment], frozen: Collection[int]) -> Mapping[str, Any]:
    """Return the other parameters of the filters: the pairs, by the position of their target."""
    pairs = pairs_of(environments)
    numbers = [number for number, row in enumerate(environments) if row.pk in frozen]
    return {
        "frozen": numbers,
        "frozen_bits": sum(1 << number for number in numbers if number <= MAX_PLACES),
        "pair_numbers": list(range(1, len(environments))),
        "pair_sources": [pair.source.pk for pair in pairs],
        "pair_targets": [pair.target.pk for pair in pairs],
    }


@contextmanager
def _planned(*, in_bulk: bool) -> Iterator[None]:
    """Set how PostgreSQL plans in the block; after an error the rollback restores the settings."""
    if not in_bulk:
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_PLANNED)
        yield
        cursor.execute(_PLANNED_AS_EVER)


_TAKE_NOTES = "DELETE FROM promotions_boardchange RETURNING context_name, subject_name"
_KEEP = "INSERT INTO promotions_boardsubject (context_name, subject_name, behind, id_differs, other_content)"
_FORGET = """
DELETE FROM promotions_boardsubject kept
USING unnest(%(contexts)s::text[], %(subjects)s::text[]) AS named(context, subject)
WHERE kept.context_name = named.context AND kept.subject_name = named.subject
"""


def refresh_marks() -> int:
    """Compute the marks of the subjects that changed since the last run, and return how many.

    A concurrent second run does nothing.
    """
    BoardState.objects.get_or_create(pk=1)
    with transaction.atomic():
        state = BoardState.objects.select_for_update(skip_locked=True).filter(pk=1).first()
        environments = list(Environment.objects.order_by("position"))
        if state is None or len(environments) > MAX_PLACES:
            return 0
        names = _taken_notes()
        order = places_of(environments)
        if state.places == order and len(names) <= MAX_CHANGED:
            return _store(environments, names) if names else 0
        state.places = order
        state.save(update_fields=["places"])
        return _store(environments, None)


def _taken_notes() -> list[SubjectName]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_NOTES)
        return list({SubjectName(context, subject) for context, subject in cursor.fetchall()})


def _store(environments: Sequence[Environment], names: Sequence[SubjectName] | None) -> int:
    query, parameters = mark_rows(environments, names)
    with connection.cursor() as cursor:
        if names is None:
            BoardSubject.objects.all().delete()
        else:
            contexts, subjects = [name.context for name in names], [name.subject for name in names]
            cursor.execute(_FORGET, {"contexts": contexts, "subjects": subjects})
        cursor.execute(f"{_KEEP}{query}", parameters)
        return cursor.rowcount if names is None else len(names)
