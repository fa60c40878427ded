"""Subjects by name, description and tag, and by what is asked of them or of their fields."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction

from registry.access.roles import Actor, may
from registry.errors import InvalidInput
from registry.search.found import MOST_COUNTED, SUBJECTS, Group, SubjectHit, counted
from registry.search.query import OF_FIELDS, Query
from registry.search.selectors.conditions import (
    Sql,
    begins,
    contains,
    of_subjects,
    rows_of,
    swapped_letters,
    whole_line,
)
from registry.search.selectors.fields import subjects_with_fields
from registry.search.sight import READ, Sight
from registry.search.texts import fold, split_lines

MOST_SIMILAR: Final = 10
#: of a word to a part of a name; 0.6, as PostgreSQL has it, forgives one wrong letter in long words alone
LEAST_SIMILAR: Final = "0.4"
_COLUMNS: Final = (
    "e.subject_id, e.registry_id, e.name, e.schema_type, e.version, e.field_count, e.doc, e.tags, e.problem"
)
_LIVE: Final = "EXISTS (SELECT 1 FROM subjects_schemaversion v WHERE v.id = e.version_pk AND v.deleted_at IS NULL)"
#: names that begin with the first word, then the others
_PAGE: Final = """
SELECT * FROM (
    (SELECT 0 AS part, {columns} FROM search_indexedsubject e WHERE {where} AND {live} AND {begins} AND {after_0}
     ORDER BY e.name, e.subject_id LIMIT %(most)s)
    UNION ALL
    (SELECT 1 AS part, {columns} FROM search_indexedsubject e WHERE {where} AND {live} AND NOT {begins} AND {after_1}
     ORDER BY e.name, e.subject_id LIMIT %(most)s)
) both_parts
ORDER BY part, name, subject_id LIMIT %(most)s
"""
_COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM search_indexedsubject e WHERE {where} LIMIT %(most)s) found"
_CHOSEN: Final = """
SELECT 0, {columns} FROM unnest(%(numbers)s::bigint[]) WITH ORDINALITY AS wanted(subject_id, ord)
JOIN search_indexedsubject e ON e.subject_id = wanted.subject_id
WHERE {where} AND {live} ORDER BY wanted.ord LIMIT %(most)s
"""
_ALIKE: Final = """
SELECT 0, {columns} FROM search_indexedsubject e WHERE {where} AND {live} AND ({alike})
ORDER BY {likeness} DESC, e.name, e.subject_id LIMIT %(most)s
"""
_PIECE: Final = 200


def find_subjects(query: Query, sight: Sight, by: Actor, *, limit: int, cursor: str = "") -> Group:
    """A page of the subjects that fit; where no name fits, those with a name like it."""
    if not query.terms:
        return Group(SUBJECTS)
    if any(query.of(operator) for operator in OF_FIELDS):
        return _with_fields(query, sight, by, limit=limit, cursor=cursor)
    where = _where(query, sight)
    found = _page(query, where, sight, by, limit=limit, cursor=cursor)
    if found.hits or cursor or not query.words:
        return found
    hits = _similar(query, sight, by)
    return Group(SUBJECTS, hits, total=len(hits))


def _where(query: Query, sight: Sight) -> Sql:
    """What may be seen, fits the questions to subjects, and says every word in its name, description or tags."""
    found = of_subjects(query, sight) or Sql()
    for word in query.words:
        pattern = found.give(contains(word))
        found.add(
            f"(e.folded_name LIKE {pattern} OR (e.folded_doc <> '' AND e.folded_doc LIKE {pattern})"
            f" OR (e.folded_tags <> '' AND e.folded_tags LIKE {found.give(whole_line(word))}))"
        )
    return found


def _page(query: Query, where: Sql, sight: Sight, by: Actor, *, limit: int, cursor: str) -> Group:
    parameters: dict[str, Any] = {**where.parameters, "most": limit + 1}
    starts = f"e.folded_name LIKE {_give(parameters, begins(query.words[0]))}" if query.words else "TRUE"
    after = ["TRUE", "TRUE"]
    if cursor:
        part, name, number = _place(cursor)
        place = f"(e.name, e.subject_id) > ({_give(parameters, name)}, {_give(parameters, number)})"
        after = [place, "TRUE"] if part == 0 else ["FALSE", place]
    rows = rows_of(
        _PAGE.format(
            columns=_COLUMNS, where=where.where, live=_LIVE, begins=starts, after_0=after[0], after_1=after[1]
        ),
        parameters,
    )
    total, more = None, False
    if not cursor:
        count = len(rows)
        if count > limit:
            ((count,),) = rows_of(_COUNT.format(where=where.where), {**parameters, "most": MOST_COUNTED + 1})
        total, more = counted(range(count))
    shown = rows[:limit]
    return Group(
        SUBJECTS,
        _hits(shown, sight, by),
        total=total,
        more=more,
        cursor=_cursor(shown[-1]) if len(rows) > limit else "",
    )


def _with_fields(query: Query, sight: Sight, by: Actor, *, limit: int, cursor: str) -> Group:
    """Those with a field that fits all that is asked of fields; for descriptions and tags alone, those that have them."""
    numbers, more = subjects_with_fields(query, sight)
    if not query.of("field") and not query.of("type"):
        numbers = list(dict.fromkeys([*_saying(query, sight), *numbers]))
    where = _where(query, sight)
    if query.words or where.conditions:
        # of all that fit the fields, those that may be seen and fit the rest, in the same order
        sql = _CHOSEN.format(columns="e.subject_id", where=where.where, live=_LIVE)
        given = {**where.parameters, "numbers": numbers, "most": len(numbers)}
        numbers = [number for _, number in rows_of(sql, given)]
    start = numbers.index(int(cursor)) + 1 if cursor.isdecimal() and int(cursor) in numbers else 0
    if cursor and not start:
        raise InvalidInput("The cursor is none that a search of this group gave: begin without one.")
    shown = numbers[start : start + limit]
    total, many = counted(numbers, more)
    return Group(
        SUBJECTS,
        subjects_of(shown, sight, by),
        total=None if cursor else total,
        more=many,
        cursor=str(shown[-1]) if shown and len(numbers) > start + limit else "",
    )


def _saying(query: Query, sight: Sight) -> list[int]:
    """The subjects that have all of the descriptions and tags themselves."""
    found = of_subjects(query, sight) or Sql()
    for value in query.of("doc"):
        found.add(f"e.folded_doc <> '' AND e.folded_doc LIKE {found.give(contains(value))}")
    for value in query.of("tag"):
        found.add(f"e.folded_tags <> '' AND e.folded_tags LIKE {found.give(whole_line(value))}")
    sql = f"SELECT e.subject_id FROM search_indexedsubject e WHERE {found.where} ORDER BY e.name LIMIT %(most)s"
    return [number for (number,) in rows_of(sql, {**found.parameters, "most": MOST_COUNTED + 1})]


def subjects_of(numbers: Sequence[int], sight: Sight, by: Actor) -> tuple[SubjectHit, ...]:
    """The subjects of those numbers, in their order, but what was deleted meanwhile or can't be seen."""
    return tuple(hit for _, hit in numbered_subjects(numbers, sight, by))


def numbered_subjects(numbers: Sequence[int], sight: Sight, by: Actor) -> list[tuple[int, SubjectHit]]:
    """The same, each with its number."""
    if not numbers:
        return []
    sql = _CHOSEN.format(columns=_COLUMNS, where="TRUE", live=_LIVE)
    rows = rows_of(sql, {"numbers": list(numbers), "most": len(numbers)})
    return [(row[1], hit) for row in rows for hit in _hits([row], sight, by)]


def _similar(query: Query, sight: Sight, by: Actor) -> tuple[SubjectHit, ...]:
    where = of_subjects(query, sight) or Sql()
    alike, likeness = [], []
    for word in query.words:
        given = where.give(fold(word))
        alike.append(f"{given} <%% e.folded_name")
        likeness.append(f"word_similarity({given}, e.folded_name)")
        for swapped in swapped_letters(word):
            fits = f"e.folded_name LIKE {where.give(contains(swapped))}"
            alike.append(fits)
            likeness.append(f"({fits})::int * 0.9")
    sql = _ALIKE.format(
        columns=_COLUMNS, where=where.where, live=_LIVE, alike=" OR ".join(alike),
        likeness=f"greatest({', '.join(likeness)})",
    )  # fmt: skip
    with transaction.atomic():
        rows_of("SELECT set_config('pg_trgm.word_similarity_threshold', %(least)s, true)", {"least": LEAST_SIMILAR})
        rows = rows_of(sql, {**where.parameters, "most": MOST_SIMILAR})
    return _hits(rows, sight, by, similar=True)


def _hits(rows: Sequence[tuple[Any, ...]], sight: Sight, by: Actor, *, similar: bool = False) -> tuple[SubjectHit, ...]:
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
    """Part, number and name of a row, in signs that an address can hold."""
    part, number, _, name, *_ = row
    return base64.urlsafe_b64encode(f"{part}.{number}.{name}".encode()).decode().rstrip("=")


def _place(cursor: str) -> tuple[int, str, int]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        part, number, name = text.split(".", 2)
        if "\0" in name:
            raise ValueError("no name holds it")
        return (0 if int(part) == 0 else 1), name, min(int(number), 2**62)
    except (binascii.Error, ValueError, UnicodeDecodeError):
        raise InvalidInput("The cursor is none that a search of this group gave: begin without one.") from None
