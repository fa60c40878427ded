"""How many subjects each value of a filter would leave, with all the other filters as they are.

One query: what has rows of its own (levels that are set, standings, findings, requests, tags) is counted from those, and
owners by one look at the names. The formats alone count every subject, from an index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from registry.access.selectors.owners import patterns_by_owner
from registry.search.found import MOST_COUNTED
from registry.search.subject_list import DELETED, DRIFT, PENDING, UNOWNED, SubjectFilter, narrowing_of
from registry.subjects.models import Subject, SubjectActivity
from registry.subjects.selectors.fitting import among, likes_of
from registry.subjects.selectors.narrowing import Narrowing, narrowed, registry_level
from registry.subjects.selectors.places import Registry

#: patterns that are held against every name, and names times patterns; of owners beyond that nothing is counted
MOST_PATTERNS: Final = 40
MOST_LOOKS: Final = 300_000
#: subjects of a registry; in a larger one nothing is counted, as the list would wait for it
MOST_SUBJECTS: Final = 20_000
#: facet → the rows of (facet, value, count), some of which have the same value; {rows} are those that the other filters leave
_PARTS: Final = {
    "format": "SELECT 'format', schema_type, count(*) FROM ({rows}) kept GROUP BY 2",
    "level": """
SELECT 'level', own.compatibility_level, count(*)
FROM subjects_config own
JOIN subjects_subject s ON s.context_id = own.context_id AND s.name = own.subject_name
WHERE own.registry_id = %(place)s AND own.compatibility_level IS NOT NULL
AND s.id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2
UNION ALL
SELECT 'level', wide.compatibility_level, count(*)
FROM subjects_config wide
JOIN subjects_subject s ON s.context_id = wide.context_id
WHERE wide.registry_id = %(place)s AND wide.subject_name IS NULL AND wide.compatibility_level IS NOT NULL
AND NOT EXISTS (
    SELECT FROM subjects_config own WHERE own.registry_id = wide.registry_id AND own.context_id = s.context_id
    AND own.subject_name = s.name AND own.compatibility_level IS NOT NULL)
AND s.id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
    "state": """
SELECT 'state', st.standing, count(DISTINCT v.subject_id)
FROM subjects_versionstanding st
JOIN subjects_schemaversion v ON v.id = st.version_id AND v.deleted_at IS NULL
WHERE v.subject_id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
    "tag": """
SELECT 'tag', lower(said.tag), count(*)
FROM subjects_subjectnote note CROSS JOIN LATERAL unnest(note.tags) AS said(tag)
WHERE note.subject_id IN (SELECT subject_id FROM ({rows}) kept) GROUP BY 2""",
}
_WHOLE: Final = "SELECT 'whole', '{of}', count(*) FROM ({rows}) kept"
_NAMED: Final = "SELECT 'attention', '{value}', count(*) FROM ({rows}) kept WHERE subject_id IN ({named})"
#: the qualified name of each is made once and held against each pattern once, before anything is counted
_OWNERS: Final = """
SELECT told.* FROM (
    SELECT ARRAY[{columns}] AS numbers FROM (
        SELECT {told} FROM (
            SELECT CASE WHEN s.context_id = (SELECT id FROM subjects_context WHERE registry_id = %(place)s AND name = '.')
                THEN s.name
                ELSE ':' || (SELECT c.name FROM subjects_context c WHERE c.id = s.context_id) || ':' || s.name END AS name
            FROM ({rows}) kept JOIN subjects_subject s ON s.id = kept.subject_id OFFSET 0
        ) named OFFSET 0
    ) held
) counted CROSS JOIN LATERAL unnest(%(facets)s::text[], %(values)s::text[], counted.numbers) AS told"""
_NOTHING: Final = "SELECT NULL::bigint AS subject_id, NULL::text AS schema_type WHERE false"


@dataclass(frozen=True)
class Facets:
    """How many all the filters leave, None where that wasn't counted; and facet → value → how many that would leave.

    A value that isn't named leaves none, but an owner, and those without one, weren't counted then.

    With `unowned_beyond` those without an owner were counted no further than MOST_COUNTED.
    """

    total: int | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unowned_beyond: bool = False


def facet_counts(place: Registry, chosen: SubjectFilter) -> Facets:
    """The counts of every facet, and of what all the filters leave.

    Of soft-deleted subjects nothing is counted, as they are another list, and in a registry of more than MOST_SUBJECTS.
    Raises InvalidInput for a value that is none.
    """
    if chosen.state == DELETED:
        return Facets()
    size = SubjectActivity.objects.filter(registry_id=place.pk).order_by()[: MOST_SUBJECTS + 1].count()
    if size > MOST_SUBJECTS:
        return Facets()
    facets = _Facets(place, chosen, size)
    found: dict[str, Counter[str]] = {
        name: Counter() for name in ("whole", "format", "level", "state", "attention", "tag", "owner")
    }
    for facet, value, number in facets.read():
        found[facet][value] += number
    counts = {name: numbers for name, numbers in found.items() if name != "whole"}
    total = found["whole"]["all"] if chosen.format else counts["format"].total()
    whole = found["whole"]["level"] if chosen.level else total
    counts["level"][registry_level(place)] += whole - counts["level"].total()
    if facets.knows_unowned:
        counts["attention"].setdefault(UNOWNED, 0)
    beyond = facets.is_bounded and counts["attention"][UNOWNED] > MOST_COUNTED
    if beyond:
        counts["attention"][UNOWNED] = MOST_COUNTED
    return Facets(total, counts, beyond)


class _Facets:
    """The facets of one list. Each leaves out its own filter; so the rows are those of all filters for most."""

    def __init__(self, place: Registry, chosen: SubjectFilter, size: int) -> None:
        """`size` is how many subjects the registry has."""
        self.place, self.chosen, self.size = place, chosen, size
        self.given = narrowing_of(place, chosen)
        self.parameters: dict[str, Any] = {"place": place.pk}
        self.tables: dict[str, str] = {}
        self.is_bounded = False
        self.knows_unowned = True

    def read(self) -> list[tuple[str, str, int]]:
        """The rows of all facets; one query."""
        parts = [sql.replace("{rows}", self._rows(facet)) for facet, sql in _PARTS.items()]
        if self.chosen.level:
            parts.append(_WHOLE.format(of="level", rows=self._rows("level")))
        if self.chosen.format:
            parts.append(_WHOLE.format(of="all", rows=self._rows("")))
        parts += [*self._named(), *self._by_names()]
        tables = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in self.tables.items())
        sql = f"{f'WITH {tables} ' if tables else ''}{' UNION ALL '.join(parts)}"
        with connection.cursor() as cursor:
            cursor.execute(sql, self.parameters)
            return list(cursor.fetchall())

    def _by_names(self) -> Iterable[str]:
        """Owners, and those without one: each name is held against each pattern once."""
        likes: dict[str, list[str]] = {}
        is_whole = True
        owned = patterns_by_owner(self.place.name)
        most = self._most_patterns()
        for (kind, name), patterns in owned.items():
            found = likes_of(patterns)
            if found is None or sum(map(len, likes.values())) + len(found) > most:
                is_whole = False
            else:
                likes[f"{kind}:{name}"] = found
        can_tell = is_whole and not self.chosen.owner and not self.chosen.attention
        if likes:
            yield self._owners(likes, can_tell=can_tell)
        self.is_bounded = not likes or not can_tell
        # in a large registry it takes as many looks to find out that few are without an owner
        self.knows_unowned = not self.is_bounded or most == MOST_PATTERNS or not owned
        if self.is_bounded and self.knows_unowned:
            nobodys = narrowing_of(self.place, SubjectFilter(attention=UNOWNED)).unowned
            rows = narrowed(self._left("attention"), self.place, Narrowing(unowned=nobodys), at="subject__")
            sql = self._named_sql("unowned", rows.values("subject_id", "schema_type")[: MOST_COUNTED + 1])
            yield f"SELECT 'attention', '{UNOWNED}', count(*) FROM ({sql}) kept"  # noqa: S608  Django's own

    def _most_patterns(self) -> int:
        """How many patterns may be held against every name: fewer in a large registry, where each is dear."""
        return min(MOST_PATTERNS, MOST_LOOKS // max(1, self.size))

    def _owners(self, likes: Mapping[str, Sequence[str]], *, can_tell: bool) -> str:
        told, columns = [], []
        for number, found in enumerate(likes.values()):
            keys = [f"like_{number}_{place}" for place in range(len(found))]
            self.parameters.update(zip(keys, found, strict=True))
            told.append(f"({' OR '.join(f'name LIKE %({key})s' for key in keys)}) AS owner_{number}")
            columns.append(f"count(*) FILTER (WHERE owner_{number})")
        labels = [("owner", owner) for owner in likes]
        if can_tell:
            anybody = " OR ".join(f"owner_{number}" for number in range(len(likes)))
            columns.append(f"count(*) FILTER (WHERE NOT ({anybody}))")
            labels.append(("attention", UNOWNED))
        self.parameters["facets"], self.parameters["values"] = map(list, zip(*labels, strict=True))
        return _OWNERS.format(told=", ".join(told), columns=", ".join(columns), rows=self._rows("owner"))

    def _left(self, facet: str) -> QuerySet[SubjectActivity]:
        """What the filters beside the facet's own leave."""
        without: dict[str, dict[str, Any]] = {
            "format": {"schema_type": ""}, "level": {"level": ""}, "state": {"standing": ""}, "tag": {"tag": ""},
            "owner": {"owned": None}, "attention": {"unowned": None, "among": None}, "": {},
        }  # fmt: skip
        given = replace(self.given, **without[facet])
        rows = SubjectActivity.objects.filter(registry_id=self.place.pk)
        return narrowed(rows, self.place, given, at="subject__").order_by()

    def _rows(self, facet: str) -> str:
        """The same as SQL: a table that is made once for all facets that leave the same, or nothing but the registry's."""
        if self.chosen == SubjectFilter(sort=self.chosen.sort):
            return "SELECT subject_id, schema_type FROM subjects_subjectactivity WHERE registry_id = %(place)s"
        table = f"left_{facet}" if facet and getattr(self.chosen, facet) else "left_all"
        if table not in self.tables:
            self.tables[table] = self._named_sql(table, self._left(facet).values("subject_id", "schema_type"))
        return f"SELECT subject_id, schema_type FROM {table}"  # noqa: S608  of constants

    def _named(self) -> Iterable[str]:
        rows = self._rows("attention")
        for value in (DRIFT, PENDING):
            names = narrowing_of(self.place, SubjectFilter(attention=value)).among or ()
            subjects = Subject.objects.filter(among(names, ""), context__registry=self.place).values("pk")
            yield _NAMED.format(value=value, rows=rows, named=self._named_sql(value, subjects))

    def _named_sql(self, name: str, rows: QuerySet[Any, Any]) -> str:
        """A query of Django's with its parameters among ours."""
        try:
            sql, given = rows.query.sql_with_params()
        except EmptyResultSet:
            return _NOTHING if "subject_id" in rows.query.values_select else "SELECT NULL::bigint WHERE false"
        keys = [f"{name}_{number}" for number in range(len(given))]
        self.parameters.update(zip(keys, given, strict=True))
        return sql % tuple(f"%({key})s" for key in keys)
