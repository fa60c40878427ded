"""How many subjects each value of a filter would leave, with the other filters unchanged.

Takes two queries. Levels that are set, statuses, findings, requests and tags have rows of their own, which are counted;
for owners, each name is matched with their patterns. Only the formats count every subject, from an index.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from registry.access.name_patterns import name_pattern
from registry.drift.usage.unused_subjects import needed_subjects
from registry.search import subject_list
from registry.search.selectors.conditions import TookTooLong, in_time, rows_of
from registry.subjects.listing.filters import REFERRED, narrowed
from registry.subjects.models import Subject, SubjectActivity
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE, MIRROR_MODE
from registry.subjects.versions.lookup import Registry, among

#: lookups for a page that somebody waits for; each subject takes a fixed number, and one for each pattern
MAX_PATTERN_MATCHES: Final = 300_000
_LOOKS_OF_EACH: Final = 10
#: facet → its query of (facet, value, count), in which a value may repeat; {rows} are what the other filters leave
_PARTS: Final = {
    "format": "SELECT 'format', schema_type, count(*) FROM ({rows}) kept GROUP BY 2",
    "level": """
SELECT 'level', own.compatibility_level, count(*)
FROM subjects_config own
JOIN subjects_subject s ON s.context_id = own.context_id AND s.name = own.subject_name
WHERE own.registry_id = %(registry)s AND own.compatibility_level IS NOT NULL
AND s.id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2
UNION ALL
SELECT 'level', wide.compatibility_level, count(*)
FROM subjects_config wide
JOIN subjects_subject s ON s.context_id = wide.context_id
WHERE wide.registry_id = %(registry)s AND wide.subject_name IS NULL AND wide.compatibility_level IS NOT NULL
AND NOT EXISTS (
    SELECT FROM subjects_config own WHERE own.registry_id = wide.registry_id AND own.context_id = s.context_id
    AND own.subject_name = s.name AND own.compatibility_level IS NOT NULL)
AND s.id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
    "state": """
SELECT 'state', st.standing, count(DISTINCT v.subject_id)
FROM subjects_versionstanding st
JOIN subjects_schemaversion v ON v.id = st.version_id AND v.deleted_at IS NULL
WHERE v.subject_id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
    "mode": """
SELECT 'mode', own.mode, count(*)
FROM subjects_mode own
JOIN subjects_subject s ON s.context_id = own.context_id AND s.name = own.subject_name
WHERE own.registry_id = %(registry)s AND NOT EXISTS (
    SELECT FROM subjects_mode wide WHERE wide.registry_id = own.registry_id AND wide.context_id = own.context_id
    AND wide.subject_name IS NULL AND wide.mode = %(override)s)
AND s.id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2
UNION ALL
SELECT 'mode', wide.mode, count(*)
FROM subjects_mode wide
JOIN subjects_subject s ON s.context_id = wide.context_id
WHERE wide.registry_id = %(registry)s AND wide.subject_name IS NULL AND (wide.mode = %(override)s OR NOT EXISTS (
    SELECT FROM subjects_mode own WHERE own.registry_id = wide.registry_id AND own.context_id = s.context_id
    AND own.subject_name = s.name))
AND s.id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
    "level_from": """
SELECT 'level_from', 'own', count(*)
FROM subjects_config own
JOIN subjects_subject s ON s.context_id = own.context_id AND s.name = own.subject_name
WHERE own.registry_id = %(registry)s AND own.compatibility_level IS NOT NULL
AND s.id IN (SELECT subject_id FROM ({rows}) kept)""",
    "references": f"""
SELECT 'references', 'refers', count(DISTINCT v.subject_id)
FROM subjects_schemareference r
JOIN subjects_schemaversion v ON v.schema_id = r.schema_id AND v.deleted_at IS NULL
WHERE v.subject_id IN (SELECT subject_id FROM ({{rows}}) kept)
UNION ALL
SELECT 'references', 'referred', count(*) FROM ({{rows}}) kept WHERE subject_id IN ({REFERRED})""",  # noqa: S608  of constants
    "tag": """
SELECT 'tag', lower(said.tag), count(DISTINCT note.subject_id)
FROM subjects_subjectnote note CROSS JOIN LATERAL unnest(note.tags) AS said(tag)
WHERE note.subject_id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
}
#: the settings of the registry itself, with their defaults
_WIDE: Final = {"registry's level": DEFAULT_LEVEL, "registry's mode": DEFAULT_MODE}
_SET: Final = """
SELECT 'registry''s level', compatibility_level, 1 FROM subjects_config
WHERE registry_id = %(registry)s AND context_id IS NULL AND compatibility_level IS NOT NULL
UNION ALL SELECT 'registry''s mode', mode, 1 FROM subjects_mode WHERE registry_id = %(registry)s AND context_id IS NULL"""
_WHOLE: Final = "SELECT 'whole', '{of}', count(*) FROM ({rows}) kept"
_UNUSED: Final = """
SELECT 'use', 'unused', count(*) FROM ({rows}) kept WHERE subject_id <> ALL (%(needed)s::bigint[])"""
#: facets in which one value also counts the subjects without rows
_WITH_THE_REST: Final = ("level", "mode", "level_from")
_NAMED: Final = "SELECT 'attention', '{value}', count(*) FROM ({rows}) kept WHERE subject_id IN ({named})"
#: each qualified name is built once, and matched with each pattern once, for all facets
_NAMES: Final = """
SELECT kept.subject_id, CASE
    WHEN s.context_id = (SELECT id FROM subjects_context WHERE registry_id = %(registry)s AND name = '.') THEN s.name
    ELSE ':' || (SELECT c.name FROM subjects_context c WHERE c.id = s.context_id) || ':' || s.name END AS name
FROM ({rows}) kept JOIN subjects_subject s ON s.id = kept.subject_id"""
_OWNED: Final = """
SELECT DISTINCT named.subject_id, told.owner FROM {names} named
JOIN unnest(%(likes)s::text[], %(liked)s::int[]) AS told(pattern, owner) ON named.name LIKE told.pattern"""
_OWNERS: Final = """
SELECT 'owner', (%(owners)s::text[])[owner], count(*) FROM {owned} GROUP BY owner"""
_UNOWNED: Final = """
SELECT 'attention', '{value}', (SELECT count(*) FROM {names}) - (SELECT count(DISTINCT subject_id) FROM {owned})"""
_NOTHING: Final = "SELECT NULL::bigint AS subject_id, NULL::text AS schema_type WHERE false"


@dataclass(frozen=True)
class Facets:
    """The number of subjects that all filters leave (None: not counted), and facet → value → number.

    A missing facet wasn't counted, nor was a missing value of `attention`; a missing value of another facet leaves
    none.
    """

    total: int | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether everything was counted."""
        return "owner" in self.counts


def are_quick(registry: Registry, patterns: int) -> bool:
    """Return whether a page has the time to count the registry's subjects, with this number of owners' patterns."""
    most = MAX_PATTERN_MATCHES // (_LOOKS_OF_EACH + patterns)
    return SubjectActivity.objects.filter(registry_id=registry.pk).order_by()[: most + 1].count() <= most


def facet_counts(
    registry: Registry,
    chosen: subject_list.SubjectFilter,
    *,
    signs: subject_list.HealthData | None = None,
    seconds: float | None = None,
) -> Facets:
    """Count every facet, and what all the filters leave, but nothing that takes longer than `seconds`.

    `signs` are those of the registry, if they were read already. Soft-deleted subjects aren't counted, as they are
    another list. Raises InvalidInput for an invalid value.
    """
    if chosen.state == subject_list.DELETED:
        return Facets()
    usual, owners = _read(_Facets(registry, chosen, signs or subject_list.read_health(registry)), seconds)
    if usual is None:
        return Facets()
    counts = _by_facet(("whole", "use", "attention", *_WIDE, *_PARTS), usual)
    whole = counts.pop("whole")
    level, mode = (next(iter(counts.pop(name)), default) for name, default in _WIDE.items())
    total = whole["all"] if chosen.format else counts["format"].total()
    rest = {name: (whole[name] if getattr(chosen, name) else total) - counts[name].total() for name in _WITH_THE_REST}
    counts["level"][level] += rest["level"]
    counts["level_from"][subject_list.INHERITED] = rest["level_from"]
    if registry.kind == Registry.REMOTE or mode == MIRROR_MODE:
        counts["mode"] = Counter({MIRROR_MODE: rest["mode"] + counts["mode"].total()})
    else:
        counts["mode"][mode] += rest["mode"]
    if owners is not None:
        named = _by_facet(("owner", "attention"), owners)
        counts["owner"] = named["owner"]
        # no subject of a chosen owner is without one
        counts["attention"][subject_list.UNOWNED] = named["attention"][subject_list.UNOWNED]
    return Facets(total, counts)


def _by_facet(facets: Iterable[str], rows: Iterable[tuple[str, str, int]]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {name: Counter() for name in facets}
    for facet, value, number in rows:
        counts[facet][value] += number
    return counts


def _read(facets: _Facets, seconds: float | None) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the rows; None if the database would take longer."""
    began, query, usual = time.monotonic(), facets.usual(), None
    if seconds is None:
        return rows_of(*query), rows_of(*facets.by_names())
    try:
        with in_time(seconds) as limit:
            usual = rows_of(*query)
            limit(seconds - (time.monotonic() - began))
            return usual, rows_of(*facets.by_names())
    except TookTooLong:
        return usual, None


class _Facets:
    """The facets of one list. Each leaves out its own filter, so for most the rows are those of all filters."""

    def __init__(self, registry: Registry, chosen: subject_list.SubjectFilter, signs: subject_list.HealthData) -> None:
        self.registry, self.chosen, self.signs = registry, chosen, signs
        self.narrowing = subject_list.narrowing_of(registry, chosen, signs=signs)
        self.parameters: dict[str, Any] = {"registry": registry.pk, "override": MIRROR_MODE}
        self.tables: dict[str, str] = {}

    def usual(self) -> tuple[str, Mapping[str, Any]]:
        """Return the query of all facets except those from owners' patterns, with its parameters."""
        parts = [sql.replace("{rows}", self._rows(facet)) for facet, sql in _PARTS.items()]
        needed = needed_subjects(self.registry)
        if needed is not None:
            self.parameters["needed"] = needed
            parts.append(_UNUSED.format(rows=self._rows("use")))
        chosen = [facet for facet in _WITH_THE_REST if getattr(self.chosen, facet)]
        parts += [_WHOLE.format(of=facet, rows=self._rows(facet)) for facet in chosen]
        if self.chosen.format:
            parts.append(_WHOLE.format(of="all", rows=self._rows("")))
        return self._query([*parts, _SET, *self._named()])

    def by_names(self) -> tuple[str, Mapping[str, Any]]:
        """Return the query of owners, and of subjects without one, with its parameters."""
        self.tables = {}
        owners = self.signs.owners
        owned = {owner: owners.patterns_of(*owner) for owner in owners.names}
        self.parameters["owners"] = [f"{kind}:{name}" for kind, name in owned]
        numbered = [(name_pattern(text), number) for number, texts in enumerate(owned.values(), 1) for text in texts]
        likes = [(pattern.like, number) for pattern, number in numbered if not pattern.is_void]
        self.parameters["likes"], self.parameters["liked"] = _columns(likes)
        parts = [_OWNERS.format(owned=self._owned("owner")[1])]
        if not self.chosen.owner:
            names, owned_there = self._owned("attention")
            parts.append(_UNOWNED.format(value=subject_list.UNOWNED, names=names, owned=owned_there))
        return self._query(parts)

    def _owned(self, facet: str) -> tuple[str, str]:
        """Return the tables of the names of the facet's rows, and of their owners."""
        rows = self._rows(facet)
        table = facet if getattr(self.chosen, facet) else "all"
        names, owned = f"names_{table}", f"owned_{table}"
        self.tables.setdefault(names, _NAMES.format(rows=rows))
        self.tables.setdefault(owned, _OWNED.format(names=names))
        return names, owned

    def _query(self, parts: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        tables = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in self.tables.items())
        return f"{f'WITH {tables} ' if tables else ''}{' UNION ALL '.join(parts)}", self.parameters

    def _left(self, facet: str) -> QuerySet[SubjectActivity]:
        """Return what the filters other than the facet's own leave."""
        without: dict[str, dict[str, Any]] = {
            "format": {"schema_type": ""}, "level": {"level": ""}, "state": {"status": ""}, "tag": {"tag": ""},
            "owner": {"owned": None}, "attention": {"unowned": None, "among": None}, "": {},
        }  # fmt: skip
        also = {name: condition for name, condition in self.narrowing.also.items() if name != facet}
        narrowing = replace(self.narrowing, **without.get(facet, {"also": also}))
        rows = SubjectActivity.objects.filter(registry_id=self.registry.pk)
        return narrowed(rows, self.registry, narrowing, at="subject__").order_by()

    def _rows(self, facet: str) -> str:
        """Return the same as SQL: one table for all facets that leave the same, or the registry's without filters."""
        if self.chosen == subject_list.SubjectFilter(sort=self.chosen.sort):
            return "SELECT subject_id, schema_type FROM subjects_subjectactivity WHERE registry_id = %(registry)s"
        table = f"left_{facet}" if facet and getattr(self.chosen, facet) else "left_all"
        if table not in self.tables:
            self.tables[table] = self._named_sql(table, self._left(facet).values("subject_id", "schema_type"))
        return f"SELECT subject_id, schema_type FROM {table}"  # noqa: S608  of constants

    def _named(self) -> Iterable[str]:
        rows = self._rows("attention")
        for value in (subject_list.DRIFT, subject_list.PENDING):
            names = self.signs.subjects_that_need(value) or ()
            subjects = Subject.objects.filter(among(names, ""), context__registry=self.registry).values("pk")
            yield _NAMED.format(value=value, rows=rows, named=self._named_sql(value, subjects))

    def _named_sql(self, name: str, rows: QuerySet[Any, Any]) -> str:
        """Return a query of Django's as SQL, with its parameters among ours."""
        try:
            sql, values = rows.query.sql_with_params()
        except EmptyResultSet:
            return _NOTHING if "subject_id" in rows.query.values_select else "SELECT NULL::bigint WHERE false"
        keys = [f"{name}_{number}" for number in range(len(values))]
        self.parameters.update(zip(keys, values, strict=True))
        return sql % tuple(f"%({key})s" for key in keys)


def _columns(rows: Sequence[tuple[Any, int]]) -> tuple[list[Any], list[int]]:
    return [row[0] for row in rows], [row[1] for row in rows]
