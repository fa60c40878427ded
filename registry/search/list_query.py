"""The search operators in a registry's list of subjects, as conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import BooleanField, F, Func, Q

from registry.audit.time_travel import moment
from registry.drift.selectors import open_findings_by_subject
from registry.errors import InvalidInput
from registry.search.models import DOC, NAME, PARENT, TAGS, TYPE
from registry.search.query import OPERATORS, Query, as_guid, as_number, parse_query
from registry.search.selectors.conditions import Sql, TookTooLong, anywhere, contains, in_time, rows_of
from registry.search.selectors.fields import COLUMNS, pattern_of, split_path
from registry.subjects.listing.filters import Condition, numbered, of_level
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.versions.lookup import among
from registry.subjects.versions.qualified_names import parse_subject

#: operators that read the index
OF_THE_INDEX: Final = ("field", "type", "doc", "tag", "ref")
#: limits of the terms that are read, and of the fields and subjects that are found
MOST_TERMS: Final = 20_000
MOST_FIELDS: Final = 25_000
#: the database's time to find those fields
_SECONDS: Final = 1.0
_KINDS: Final = {"type": TYPE, "doc": DOC, "tag": TAGS}
_SUBJECT_COLUMNS: Final = {DOC: "doc", TAGS: "tags"}
_TERMS: Final = "SELECT id FROM search_searchterm WHERE kind = '{kind}' AND folded LIKE {pattern}"
_SUBJECTS: Final = """
SELECT e.subject_id AS id FROM search_indexedsubject e
WHERE e.registry_id = %(registry)s AND e.folded_{column} <> '' AND e.folded_{column} LIKE {pattern}"""
#: as text, which is put into the next statement unchanged
_LISTS: Final = "SELECT {number}, array_agg(id)::text, count(*) FROM (SELECT id FROM ({rows}) every LIMIT {most}) found"
_FITTING: Final = """
WITH fitting AS MATERIALIZED (
    SELECT f.subject_id FROM unnest('{terms}'::int[]) driver(id)
    CROSS JOIN LATERAL (
        SELECT f.subject_id FROM search_indexedfield f WHERE f.{column} = driver.id AND {where} LIMIT {most}
    ) f LIMIT {most}
)
SELECT array_agg(subject_id)::text, (SELECT count(*) FROM fitting) FROM (SELECT DISTINCT subject_id FROM fitting) theirs"""
_HAS_ONE: Final = """
((SELECT true FROM search_indexedfield f WHERE f.subject_id = %(expressions)s AND {where} LIMIT 1) IS TRUE)"""


@dataclass(frozen=True)
class Indexed:
    """The condition, and whether it matches too many fields to count the subjects."""

    condition: Condition
    is_wide: bool = False


@dataclass
class _Lists:
    """Lists of ids of terms and of subjects that are read together; a list is named by its index."""

    sql: Sql
    rows: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def terms(self, kind: str, pattern: str, label: str) -> int:
        """Add the terms of a kind; return the list's index."""
        return self._add(_TERMS.format(kind=kind, pattern=self.sql.give(pattern)), label)

    def subjects(self, column: str, pattern: str, label: str) -> int:
        """Add the subjects whose own text matches; return the list's index."""
        return self._add(_SUBJECTS.format(column=column, pattern=self.sql.give(pattern)), label)

    def _add(self, rows: str, label: str) -> int:
        self.rows.append(rows)
        self.labels.append(label)
        return len(self.rows) - 1

    def read(self) -> list[str]:
        """Return each list in PostgreSQL's notation. Raises InvalidInput if one is too long."""
        parts = [_LISTS.format(number=number, rows=rows, most=MOST_TERMS + 1) for number, rows in enumerate(self.rows)]
        rows = rows_of(" UNION ALL ".join(parts), self.sql.parameters)
        for number, _, count in rows:
            if count > MOST_TERMS:
                raise _too_many(self.labels[number])
        lists = {number: listed or "{}" for number, listed, _ in rows}
        return [lists[number] for number in range(len(self.rows))]


#: alternatives: a column, and the list that it must be in
_Any = Sequence[tuple[str, int]]


def indexed_subjects(registry: int, query: Query) -> Indexed:
    """Return the condition of a query that only reads the index; two queries.

    Raises InvalidInput if too much matches.
    """
    lists = _Lists(Sql(parameters={"registry": registry}))
    of_fields = _of_fields(query, lists)
    theirs = [] if query.of("field") or query.of("type") else _subject_texts(query, lists)
    refs = [lists.subjects("refs", anywhere(value), f"ref:{value}") for value in query.of("ref")]
    id_lists = lists.read()

    def where(parts: Sequence[_Any]) -> str:
        fits = (" OR ".join(_in(f"f.{column}", id_lists[number]) for column, number in part) for part in parts)
        return " AND ".join(f"({fit})" for fit in fits) or "TRUE"

    referring = [_listed(id_lists[number]) for number in refs]
    if not of_fields:
        return Indexed(_all_of(referring))
    column, _ = of_fields[0][0]
    terms = _union([id_lists[number] for _, number in of_fields[0]])
    rows = _FITTING.format(terms=terms, column=column, where=where(of_fields[1:]), most=MOST_FIELDS + 1)
    try:
        with in_time(_SECONDS):
            ((subjects, count),) = rows_of(rows, {})
    except TookTooLong:
        raise InvalidInput(
            f"Too many fields match a part of “{query.text[:80]}” to find the full matches in time. Enter a longer "
            "text, or use the search over everything."
        ) from None
    is_wide = count > MOST_FIELDS
    fitting = _has_one(where(of_fields)) if is_wide else _listed(subjects or "{}")
    if theirs:
        saying = _all_of([_listed(id_lists[number]) for number in theirs])
        fitting = _any_of([saying, fitting])
    return Indexed(_all_of([*referring, fitting]), is_wide=is_wide)


def _of_fields(query: Query, lists: _Lists) -> list[_Any]:
    """Return what one field must match; the first part drives the search for fields."""
    parts: list[_Any] = []
    field_paths = [split_path(value) for value in query.of("field")]
    names = [("name_id", lists.terms(NAME, contains(path.name), f"field:{path.name}")) for path in field_paths]
    if field_paths:
        parts.append(names)
    for path, name in zip(field_paths, names, strict=True):
        if path.parent:
            parents = lists.terms(PARENT, anywhere(path.parent), f"field:{path.parent}")
            parts += [[name], [("parent_id", parents)]]
        elif len(field_paths) > 1:
            parts.append([name, ("parent_id", lists.terms(PARENT, contains(path.name), f"field:{path.name}"))])
    for operator in ("tag", "doc", "type"):  # most fields are of few types
        kind = _KINDS[operator]
        for value in query.of(operator):
            pattern, written = pattern_of(kind, value), f"{operator}:{value}"
            part = [(COLUMNS[kind], lists.terms(kind, pattern, written))]
            if field_paths and kind in _SUBJECT_COLUMNS:
                part.append(("subject_id", lists.subjects(_SUBJECT_COLUMNS[kind], pattern, written)))
            parts.append(part)
    return parts


def _subject_texts(query: Query, lists: _Lists) -> list[int]:
    """Return the lists of subjects whose own description or tags match."""
    terms = [(operator, value) for operator in ("doc", "tag") for value in query.of(operator)]
    return [
        lists.subjects(_SUBJECT_COLUMNS[_KINDS[operator]], pattern_of(_KINDS[operator], value), f"{operator}:{value}")
        for operator, value in terms
    ]


def _in(column: str, listed: str) -> str:
    """Return the condition that a column is in a list.

    IS TRUE keeps it a lookup in one table, as in `fields`; PostgreSQL would estimate a plain list element by element.
    """
    return f"({column} IN (SELECT unnest('{listed}'::bigint[]))) IS TRUE"


def _union(lists: Sequence[str]) -> str:
    """Merge lists, in the order of the indexes that they are looked up in, which is quicker."""
    numbers = {number for listed in lists for number in listed.strip("{}").split(",") if number}
    return f"{{{','.join(sorted(numbers, key=int))}}}"


def _listed(numbers: str) -> Condition:
    return lambda at: numbered(numbers, at)


def _has_one(where: str) -> Condition:
    template = _HAS_ONE.format(where=where)
    return lambda at: Q(Func(F(at.removesuffix("__") or "pk"), template=template, output_field=BooleanField()))


def _all_of(conditions: Sequence[Condition]) -> Condition:
    def every(at: str) -> Q:
        combined = Q()
        for condition in conditions:
            combined &= condition(at)
        return combined

    return every


def _any_of(conditions: Sequence[Condition]) -> Condition:
    def some(at: str) -> Q:
        combined = Q()
        for condition in conditions:
            combined |= condition(at)
        return combined

    return some


def _too_many(word: str) -> InvalidInput:
    return InvalidInput(
        f"More than {MOST_TERMS:,} names match {word[:80]}, which is too many to filter by. Enter a longer text, "
        "or use the search over everything."
    )


_OPERATORS: Final = re.compile(rf'(?:^|[\s"])(?:{"|".join(OPERATORS)}):', re.IGNORECASE)


@dataclass(frozen=True)
class ListQuery:
    """A parsed text: words of the name, and conditions.

    `is_wide`: so many fields match that each listed subject's own fields are checked; then the matches aren't counted.
    """

    name_part: str
    conditions: tuple[Condition, ...] = ()
    is_indexed: bool = False
    is_wide: bool = False


def has_operators(text: str) -> bool:
    """Return whether a text has operators; else it is a part of a name, whatever characters it has."""
    return bool(_OPERATORS.search(text))


def list_query_of(registry: Registry, text: str) -> ListQuery:
    """Translate a text into conditions on the subjects of a registry; two queries if it reads the index.

    Raises InvalidInput for what can't be parsed or answered.
    """
    if not has_operators(text):
        return ListQuery(text)
    query = parse_query(text)
    indexed = _indexed(registry, query)
    conditions = [
        _OF_SUBJECTS[term.operator](registry, term.value) for term in query.terms if term.operator in _OF_SUBJECTS
    ]
    if indexed:
        conditions.append(indexed.condition)
    return ListQuery(
        " ".join(query.plain_words),
        tuple(conditions),
        is_indexed=bool(indexed),
        is_wide=bool(indexed and indexed.is_wide),
    )


def _indexed(registry: Registry, query: Query) -> Indexed | None:
    index_query = Query(tuple(term for term in query.terms if term.operator in OF_THE_INDEX))
    if not index_query.terms:
        return None
    if moment() is not None:
        raise InvalidInput(
            f"{index_query.terms[0].operator}: uses the search index, which has no past states. Remove it, or return to the "
            "present."
        )
    return indexed_subjects(registry.pk, index_query)


def _of_id(registry: Registry, value: str) -> Condition:
    live = SchemaVersion.objects.filter(deleted_at=None, subject__context__registry=registry)
    if (number := as_number(value)) is not None:
        live = live.filter(schema__schema_id=number, schema__context__registry=registry)
    elif (guid := as_guid(value)) is not None:
        live = live.filter(schema__guid=guid)
    else:
        live = live.filter(schema__fingerprint=value)
    return lambda at: Q(**{f"{at.removesuffix('__') or 'pk'}__in": live.values("subject")})


def _of_drift(registry: Registry, value: str) -> Condition:
    names = [parse_subject(name) for name in open_findings_by_subject(registry.name)]
    return lambda at: among(names, at) if value == "yes" else ~among(names, at)


def _of_level(registry: Registry, value: str) -> Condition:
    return lambda at: of_level(registry, value, at)


_OF_SUBJECTS: Final[dict[str, Callable[[Registry, str], Condition]]] = {
    "id": _of_id,
    "drift": _of_drift,
    "compat": _of_level,
}
