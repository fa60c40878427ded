"""Subjects by name, description and tag, and by operators on them or on their fields."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction

from registry.access.permission_filters import READ
from registry.access.roles import Actor, may
from registry.errors import InvalidInput
from registry.search.models import fold, split_lines
from registry.search.query import OF_FIELDS, Query
from registry.search.results import MOST_COUNTED, SUBJECTS, Group, SubjectHit, counted
from registry.search.selectors.conditions import (
    ReadScope,
    Sql,
    begins,
    contains,
    of_subjects,
    rows_of,
    swapped_letters,
    whole_line,
)
from registry.search.selectors.fields import FirstPage, subjects_with_fields

MOST_SIMILAR: Final = 10
#: of a word to a part of a name; PostgreSQL's default, 0.6, forgives one wrong letter only in long words
LEAST_SIMILAR: Final = "0.4"
_COLUMNS: Final = (
    "e.subject_id, e.registry_id, e.name, e.schema_type, e.version, e.field_count, e.doc, e.tags, e.problem"
)
_LIVE: Final = "EXISTS (SELECT 1 FROM subjects_schemaversion v WHERE v.id = e.version_pk AND v.deleted_at IS NULL)"
#: how many match, up to what is sorted, and how many of those begin with the first word
_COUNT: Final = """
SELECT count(*), count(*) FILTER (WHERE begins)
FROM (SELECT {begins} AS begins FROM search_indexedsubject e WHERE {where} LIMIT %(sorted)s) found
"""
#: a part of a page: finds and sorts all matches, and then reads as many as are shown
_SORTED: Final = """
WITH fitting AS MATERIALIZED (
    SELECT e.subject_id, e.name FROM search_indexedsubject e WHERE {where} AND {part}
)
SELECT {number} AS part, {columns} FROM (SELECT * FROM fitting ORDER BY name, subject_id OFFSET 0) fitting
JOIN search_indexedsubject e ON e.subject_id = fitting.subject_id
WHERE {live} AND {after} ORDER BY fitting.name, fitting.subject_id LIMIT %(most)s
"""
#: the same for many matches: reads by name, until there are enough
_WALKED: Final = """
SELECT {number} AS part, {columns} FROM search_indexedsubject e WHERE {where} AND {part} AND {live} AND {after}
ORDER BY e.name, e.subject_id LIMIT %(most)s
"""
#: subjects that are found and then sorted; reading all by name until some match would cost more
MOST_SORTED: Final = 10_000
_CHOSEN: Final = """
SELECT 0, {columns} FROM unnest(%(numbers)s::bigint[]) WITH ORDINALITY AS wanted(subject_id, ord)
JOIN search_indexedsubject e ON e.subject_id = wanted.subject_id
WHERE {where} AND {live} ORDER BY wanted.ord LIMIT %(most)s
"""
#: names that contain some of the words, those with the most first
_CONTAINING: Final = """
SELECT 0, {columns} FROM search_indexedsubject e WHERE {where} AND {live} AND ({any})
ORDER BY {many} DESC, e.name, e.subject_id LIMIT %(most)s
"""
#: names that are similar to a word or have two letters swapped; one query for each, as together they'd read every name
_ALIKE: Final = """
WITH {tables}
SELECT 0, {columns} FROM ({near}) near JOIN search_indexedsubject e ON e.subject_id = near.subject_id
WHERE {live} AND e.subject_id <> ALL(%(but)s::bigint[])
ORDER BY near.likeness DESC, e.name, e.subject_id LIMIT %(most)s
"""
_ALIKE_IN_ONE: Final = """
SELECT e.subject_id, ({likeness})::real AS likeness FROM search_indexedsubject e WHERE {where} AND ({fits})
"""
_PIECE: Final = 200


def find_subjects(
    query: Query, sight: ReadScope, by: Actor, *, limit: int, cursor: str = "", first: FirstPage
) -> Group:
    """Return a page of the matching subjects; if no name matches, those with a similar name."""
    if not query.terms:
        return Group(SUBJECTS)
    if any(query.of(operator) for operator in OF_FIELDS):
        return _with_fields(query, sight, by, limit=limit, cursor=cursor, first=first)
    where = _where(query, sight)
    page = _page(query, where, sight, by, limit=limit, cursor=cursor)
    if page.hits or cursor or not query.plain_words:
        return page
    hits = _similar(query, sight, by)
    return Group(SUBJECTS, hits, total=len(hits))


def _where(query: Query, sight: ReadScope) -> Sql:
    """Return the conditions: readable, operators on subjects, and every word in its name, description or tags."""
    sql = of_subjects(query, sight) or Sql()
    for word in query.plain_words:
        pattern = sql.give(contains(word))
        sql.add(
            f"(e.folded_name LIKE {pattern} OR (e.folded_doc <> '' AND e.folded_doc LIKE {pattern})"
            f" OR (e.folded_tags <> '' AND e.folded_tags LIKE {sql.give(whole_line(word))}))"
        )
    return sql


def _page(query: Query, where: Sql, sight: ReadScope, by: Actor, *, limit: int, cursor: str) -> Group:
    """Return names that begin with the first word, then the others, both by name."""
    parameters: dict[str, Any] = {**where.parameters, "most": limit + 1, "sorted": MOST_SORTED + 1}
    starts = f"e.folded_name LIKE {_give(parameters, begins(query.plain_words[0]))}" if query.plain_words else "TRUE"
    ((count, beginning),) = rows_of(_COUNT.format(where=where.where, begins=starts), parameters)
    # if many match, only some of them were counted
    is_wide = count > MOST_SORTED
    part, after = 0, "TRUE"
    if cursor:
        part, name, number = _cursor_position(cursor)
        after = f"(e.name, e.subject_id) > ({_give(parameters, name)}, {_give(parameters, number)})"
    rows: list[tuple[Any, ...]] = []
    if part == 0 and (beginning or is_wide):
        rows = _part(0, where.where, starts, after, parameters, is_many=is_wide)
    if len(rows) <= limit and query.plain_words and (beginning < count or is_wide):
        rest_parameters = {**parameters, "most": limit + 1 - len(rows)}
        rows += _part(1, where.where, f"NOT {starts}", after if part else "TRUE", rest_parameters, is_many=is_wide)
    total, more = (None, False) if cursor else counted(range(count if len(rows) > limit else len(rows)))
    shown = rows[:limit]
    return Group(
        SUBJECTS,
        _hits(shown, sight, by),
        total=total,
        more=more,
        cursor=_cursor(shown[-1]) if len(rows) > limit else "",
    )


def _part(
    number: int, where: str, part: str, after: str, parameters: dict[str, Any], *, is_many: bool
) -> list[tuple[Any, ...]]:
    sql = _WALKED if is_many else _SORTED
    return rows_of(
        sql.format(number=number, columns=_COLUMNS, where=where, part=part, live=_LIVE, after=after), parameters
    )


def _with_fields(query: Query, sight: ReadScope, by: Actor, *, limit: int, cursor: str, first: FirstPage) -> Group:
    """Return subjects with a field that matches all operators on fields.

    If these are only `doc:` and `tag:`, also return subjects whose own description and tags match.
    """
    numbers, more = subjects_with_fields(query, sight, first)
    if not query.of("field") and not query.of("type"):
        numbers = list(dict.fromkeys([*_with_own_text(query, sight), *numbers]))
    where = _where(query, sight)
    if query.plain_words or where.conditions:
        # of the subjects with matching fields, those that are readable and match the rest, in the same order
        sql = _CHOSEN.format(columns="e.subject_id", where=where.where, live=_LIVE)
        parameters = {**where.parameters, "numbers": numbers, "most": len(numbers)}
        numbers = [number for _, number in rows_of(sql, parameters)]
    start = numbers.index(int(cursor)) + 1 if cursor.isdecimal() and int(cursor) in numbers else 0
    if cursor and not start:
        raise InvalidInput("The cursor is not from a search in this group. Start without a cursor.")
    shown = numbers[start : start + limit]
    total, many = counted(numbers, more)
    return Group(
        SUBJECTS,
        subjects_of(shown, sight, by),
        total=None if cursor else total,
        more=many,
        cursor=str(shown[-1]) if shown and len(numbers) > start + limit else "",
    )


def _with_own_text(query: Query, sight: ReadScope) -> list[int]:
    """Return the subjects whose own description and tags match all of the query's."""
    filters = of_subjects(query, sight) or Sql()
    for value in query.of("doc"):
        filters.add(f"e.folded_doc <> '' AND e.folded_doc LIKE {filters.give(contains(value))}")
    for value in query.of("tag"):
        filters.add(f"e.folded_tags <> '' AND e.folded_tags LIKE {filters.give(whole_line(value))}")
    sql = f"SELECT e.subject_id FROM search_indexedsubject e WHERE {filters.where} ORDER BY e.name LIMIT %(most)s"
    return [number for (number,) in rows_of(sql, {**filters.parameters, "most": MOST_COUNTED + 1})]


def subjects_of(numbers: Sequence[int], sight: ReadScope, by: Actor) -> tuple[SubjectHit, ...]:
    """Return the subjects with those ids, in their order, without those deleted meanwhile or not readable."""
    return tuple(hit for _, hit in numbered_subjects(numbers, sight, by))


def numbered_subjects(numbers: Sequence[int], sight: ReadScope, by: Actor) -> list[tuple[int, SubjectHit]]:
    """Return the same, each with its id."""
    if not numbers:
        return []
    sql = _CHOSEN.format(columns=_COLUMNS, where="TRUE", live=_LIVE)
    rows = rows_of(sql, {"numbers": list(numbers), "most": len(numbers)})
    return [(row[1], hit) for row in rows for hit in _hits([row], sight, by)]


def _similar(query: Query, sight: ReadScope, by: Actor) -> tuple[SubjectHit, ...]:
    """Return names that contain some of several words, and after them those that are similar to one."""
    where = of_subjects(query, sight) or Sql()
    rows = _containing(query.plain_words, where) if len(query.plain_words) > 1 else []
    if len(rows) < MOST_SIMILAR:
        rows += _alike(query.plain_words, where, most=MOST_SIMILAR - len(rows), but=[row[1] for row in rows])
    return _hits(rows, sight, by, similar=True)


def _containing(plain_words: Sequence[str], where: Sql) -> list[tuple[Any, ...]]:
    sql = Sql(parameters=dict(where.parameters))
    fits = [f"e.folded_name LIKE {sql.give(contains(word))}" for word in plain_words]
    many = " + ".join(f"({fit})::int" for fit in fits)
    return rows_of(
        _CONTAINING.format(columns=_COLUMNS, where=where.where, live=_LIVE, any=" OR ".join(fits), many=many),
        {**sql.parameters, "most": MOST_SIMILAR},
    )


def _alike(plain_words: Sequence[str], where: Sql, *, most: int, but: list[int]) -> list[tuple[Any, ...]]:
    sql = Sql(parameters=dict(where.parameters))
    alternatives = [
        (f"word_similarity({placeholder}, e.folded_name)", f"{placeholder} <%% e.folded_name")
        for placeholder in (sql.give(fold(word)) for word in plain_words)
    ]
    swaps = [
        f"e.folded_name LIKE {sql.give(contains(swapped))}" for word in plain_words for swapped in swapped_letters(word)
    ]
    if swaps:
        alternatives.append(("0.9", " OR ".join(swaps)))
    tables = [
        f"alike_{number} AS MATERIALIZED ({_ALIKE_IN_ONE.format(likeness=likeness, where=where.where, fits=fits)})"
        for number, (likeness, fits) in enumerate(alternatives)
    ]
    every = " UNION ALL ".join(f"SELECT * FROM alike_{number}" for number in range(len(tables)))
    query = _ALIKE.format(
        tables=", ".join(tables),
        near=f"SELECT subject_id, max(likeness) AS likeness FROM ({every}) every GROUP BY subject_id",
        columns=_COLUMNS,
        live=_LIVE,
    )
    with transaction.atomic():
        rows_of("SELECT set_config('pg_trgm.word_similarity_threshold', %(least)s, true)", {"least": LEAST_SIMILAR})
        return rows_of(query, {**sql.parameters, "most": most, "but": but})


def _hits(
    rows: Sequence[tuple[Any, ...]], sight: ReadScope, by: Actor, *, similar: bool = False
) -> tuple[SubjectHit, ...]:
    return tuple(
        SubjectHit(
            registry=sight.registries[registry],
            subject=name,
            schema_type=schema_type,
            version=version,
            field_count=fields,
            doc=doc[:_PIECE],
            tags=split_lines(tags),
            problem=problem,
            similar=similar,
        )
        for _, _, registry, name, schema_type, version, fields, doc, tags, problem in rows
        if registry in sight.registries and may(by, READ, registry=sight.registries[registry], subject=name)
    )


def _give(parameters: dict[str, Any], value: Any) -> str:
    name = f"q{len(parameters)}"
    parameters[name] = value
    return f"%({name})s"


def _cursor(row: tuple[Any, ...]) -> str:
    """Encode part, id and name of a row in characters that a URL can contain."""
    part, number, _, name, *_ = row
    return base64.urlsafe_b64encode(f"{part}.{number}.{name}".encode()).decode().rstrip("=")


def _cursor_position(cursor: str) -> tuple[int, str, int]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        part, number, name = text.split(".", 2)
        if "\0" in name:
            raise ValueError("no name holds it")
        return (0 if int(part) == 0 else 1), name, min(int(number), 2**62)
    except (binascii.Error, ValueError, UnicodeDecodeError):
        raise InvalidInput("The cursor is not from a search in this group. Start without a cursor.") from None
