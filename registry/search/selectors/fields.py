"""Fields by name, place, type, description and tag.

The terms that drive a search are found first, the best fitting first, and the fields of each by an index; what else is
asked is a set of numbers that each field's are looked up in. So a page costs as much as it shows, whatever there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.access.roles import Actor, may
from registry.search.found import DOCS, FIELDS, MOST_COUNTED, FieldHit, Group, counted
from registry.search.models import DOC, NAME, PARENT, TAGS, TYPE
from registry.search.query import Query, Term
from registry.search.selectors.conditions import (
    Sql,
    anywhere,
    begins,
    contains,
    numbers_in,
    of_subjects,
    rows_of,
    swapped_letters,
    whole_line,
)
from registry.search.sight import READ, Sight
from registry.search.texts import fold, split_lines

#: terms that are gone through; beyond, a query is too wide to be counted
MOST_TERMS: Final = 1_000
#: names that are only like what was asked for
MOST_SIMILAR: Final = 20
COLUMNS: Final = {NAME: "name_id", TYPE: "type_id", DOC: "doc_id", TAGS: "tags_id"}

_KEYS: Final = """
WITH {tables}
SELECT n.id, f.subject_id, f.position, n.size
FROM (SELECT * FROM driver ORDER BY ord) n
CROSS JOIN LATERAL (
    SELECT f.subject_id, f.position FROM search_indexedfield f
    WHERE f.{column} = n.id AND {conditions}
    ORDER BY f.subject_id, f.position LIMIT %(most)s
) f
{after}
ORDER BY n.ord, f.subject_id, f.position
LIMIT %(most)s
"""
_SUBJECT_KEYS: Final = """
WITH {tables}
SELECT f.subject_id, n.size
FROM (SELECT * FROM driver ORDER BY ord) n
CROSS JOIN LATERAL (
    SELECT DISTINCT f.subject_id FROM search_indexedfield f
    WHERE f.{column} = n.id AND {conditions}
    ORDER BY f.subject_id LIMIT %(most)s
) f
ORDER BY n.ord, f.subject_id
LIMIT %(most_rows)s
"""
_HITS: Final = """
SELECT e.registry_id, e.name, e.version, f.position, name.value, parent.value, type.value, doc.value, tags.value
FROM unnest(%(subjects)s::bigint[], %(positions)s::int[]) WITH ORDINALITY AS wanted(subject_id, position, ord)
JOIN search_indexedfield f ON f.subject_id = wanted.subject_id AND f.position = wanted.position
JOIN search_indexedsubject e ON e.subject_id = f.subject_id
JOIN subjects_schemaversion v ON v.id = e.version_pk AND v.deleted_at IS NULL
JOIN search_searchterm name ON name.id = f.name_id
JOIN search_searchterm parent ON parent.id = f.parent_id
JOIN search_searchterm type ON type.id = f.type_id
LEFT JOIN search_searchterm doc ON doc.id = f.doc_id
LEFT JOIN search_searchterm tags ON tags.id = f.tags_id
ORDER BY wanted.ord
"""


@dataclass
class Search:
    """A search for fields: the tables before it, the column of its driver, and the conditions on `f` and `n`."""

    sql: Sql
    tables: list[str]
    column: str = ""

    def terms(self, kind: str, pattern: str) -> str:
        """A table of the terms of a kind that fit a pattern; gives its name."""
        name = f"terms_{len(self.tables)}"
        self.tables.append(
            f"{name} AS MATERIALIZED (SELECT id FROM search_searchterm WHERE kind = '{kind}' AND folded LIKE"
            f" {self.sql.give(pattern)})"
        )
        return name

    def subjects(self, condition: str) -> str:
        """A table of subjects; gives its name."""
        name = f"subjects_{len(self.tables)}"
        self.tables.append(
            f"{name} AS MATERIALIZED (SELECT e.subject_id FROM search_indexedsubject e WHERE {condition})"
        )
        return name


@dataclass(frozen=True)
class _Word:
    """What a name must contain, and what the path before it; `is_plain`: the subject's name will do too."""

    name: str
    parent: str = ""
    is_plain: bool = False


def find_fields(query: Query, sight: Sight, by: Actor, *, limit: int, cursor: str = "", group: str = FIELDS) -> Group:
    """A page of the fields that fit; of the group `docs` those that have the words in their description.

    Where no name fits, those with a name like it.
    """
    wanted = _for_docs(query) if group == DOCS else query
    prepared = _prepared(wanted, sight)
    if prepared is None:
        return Group(group)
    found = _page(prepared, sight, by, limit=limit, cursor=cursor, group=group)
    if found.hits or cursor or group == DOCS:
        return found
    similar = _prepared(wanted, sight, similar=True)
    if similar is None:
        return found
    near = _page(similar, sight, by, limit=limit, cursor="", group=group)
    hits = tuple(replace(hit, similar=True) for hit in near.hits if isinstance(hit, FieldHit))
    return Group(group, hits, total=len(hits), more=False)


def _for_docs(query: Query) -> Query:
    """The same with its words as descriptions."""
    return Query(tuple(Term("doc", term.value) if not term.operator else term for term in query.terms))


def subjects_with_fields(query: Query, sight: Sight) -> tuple[list[int], bool]:
    """The numbers of the subjects that have a field that fits all that is asked of fields, best first, and if there are more."""
    asked = Query(tuple(term for term in query.terms if term.operator))
    prepared = _prepared(asked, sight)
    if prepared is None:
        return [], False
    most_rows = 5 * MOST_COUNTED
    parameters = {**prepared.sql.parameters, "most": MOST_COUNTED + 1, "most_rows": most_rows}
    sql = _SUBJECT_KEYS.format(tables=", ".join(prepared.tables), column=prepared.column, conditions=prepared.sql.where)
    rows = rows_of(sql, parameters)
    more = len(rows) == most_rows or any(size >= MOST_TERMS for _, size in rows[:1])
    return list(dict.fromkeys(subject for subject, _ in rows)), more


def _page(prepared: Search, sight: Sight, by: Actor, *, limit: int, cursor: str, group: str) -> Group:
    most = limit + 1 if cursor else MOST_COUNTED + 1
    after, parameters = "", {**prepared.sql.parameters, "most": most}
    conditions = prepared.sql.where
    if cursor:
        term, subject, position = numbers_in(cursor, 3)
        parameters |= {"after_term": term, "after_subject": subject, "after_position": position}
        conditions += (
            " AND (n.id <> %(after_term)s OR (f.subject_id, f.position) > (%(after_subject)s, %(after_position)s))"
        )
        after = "WHERE n.ord >= (SELECT ord FROM driver WHERE id = %(after_term)s)"
    keys = rows_of(
        _KEYS.format(tables=", ".join(prepared.tables), column=prepared.column, conditions=conditions, after=after),
        parameters,
    )
    shown = keys[:limit]
    total, more = counted(keys, bool(keys) and keys[0][3] >= MOST_TERMS)
    return Group(
        group,
        hits_of([(subject, position) for _, subject, position, _ in shown], sight, by),
        total=None if cursor else total,
        more=more,
        cursor=".".join(map(str, shown[-1][:3])) if len(keys) > limit else "",
    )


def hits_of(keys: Sequence[tuple[int, int]], sight: Sight, by: Actor) -> tuple[FieldHit, ...]:
    """The fields at those places, in their order, but what was deleted meanwhile."""
    if not keys:
        return ()
    rows = rows_of(
        _HITS, {"subjects": [subject for subject, _ in keys], "positions": [position for _, position in keys]}
    )
    return tuple(
        FieldHit(
            registry=sight.registries[registry],
            subject=subject,
            version=version,
            position=position,
            name=name,
            path=f"{parent}.{name}" if parent else name,
            type=type_,
            doc=doc or "",
            tags=split_lines(tags or ""),
        )
        for registry, subject, version, position, name, parent, type_, doc, tags in rows
        if registry in sight.registries and may(by, READ, registry=sight.registries[registry], subject=subject)
    )


# -- the conditions -------------------------------------------------------------------------------------------------


def _prepared(query: Query, sight: Sight, *, similar: bool = False) -> Search | None:
    """The search that a query is, by names where it has any, else by tag, type or description; None where it asks nothing."""
    words = [_split(value) for value in query.of("field")] + [_Word(value, is_plain=True) for value in query.words]
    asked = of_subjects(query, sight)
    search = Search(Sql(parameters=dict(asked.parameters) if asked else {}), [])
    if asked:
        chosen = search.subjects(asked.where)
        search.sql.add(f"f.subject_id IN (SELECT subject_id FROM {chosen})")
    rest = {TAGS: list(query.of("tag")), TYPE: list(query.of("type")), DOC: list(query.of("doc"))}
    if words:
        search.column = COLUMNS[NAME]
        (_similar_names if similar else _names)(search, words)
    elif similar:
        return None
    else:
        kind = next((kind for kind, values in rest.items() if values), None)
        if kind is None:
            return None
        search.column = COLUMNS[kind]
        _driver(search, kind, rest[kind].pop(0))
    for kind, values in rest.items():
        for value in values:
            _also(search, kind, value, with_subject=bool(words))
    return search


def _split(value: str) -> _Word:
    """A path's last part is the name, what is before it the path to it."""
    parent, dot, name = value.rpartition(".")
    return _Word(name, parent) if dot and name and parent else _Word(value)


def _driver(search: Search, kind: str, value: str) -> None:
    give = search.sql.give
    search.tables.append(f"""driver AS MATERIALIZED (
    SELECT id, row_number() OVER () AS ord, count(*) OVER () AS size FROM (
        SELECT id FROM search_searchterm
        WHERE kind = '{kind}' AND folded LIKE {give(pattern_of(kind, value))}
        ORDER BY length(folded), folded COLLATE "C", id LIMIT {MOST_TERMS}
    ) best
)""")


def pattern_of(kind: str, value: str) -> str:
    """What the terms of a kind must be like: a tag is a whole line, of the others a part will do."""
    return whole_line(value) if kind == TAGS else contains(value)


def _names(search: Search, words: Sequence[_Word]) -> None:
    """The names that contain a word, those with all of them first, then whole ones, beginnings, short ones."""
    give = search.sql.give
    fits = [f"folded LIKE {give(contains(word.name))}" for word in words]
    flags = ", ".join(f"({fit}) AS m{number}" for number, fit in enumerate(fits))
    first = words[0].name
    search.tables.append(f"""driver AS MATERIALIZED (
    SELECT *, row_number() OVER () AS ord, count(*) OVER () AS size FROM (
        SELECT id, {flags} FROM search_searchterm
        WHERE kind = '{NAME}' AND ({" OR ".join(fits)})
        ORDER BY ({" AND ".join(fits)}) DESC, folded = {give(fold(first))} DESC,
                 folded LIKE {give(begins(first))} DESC, length(folded), folded COLLATE "C", id LIMIT {MOST_TERMS}
    ) best
)""")
    for number, word in enumerate(words):
        if word.parent:
            parents = search.terms(PARENT, anywhere(word.parent))
            search.sql.add(f"n.m{number} AND f.parent_id IN (SELECT id FROM {parents})")
        elif len(words) > 1:
            parents = search.terms(PARENT, contains(word.name))
            elsewhere = f"f.parent_id IN (SELECT id FROM {parents})"
            if word.is_plain:
                named = search.subjects(f"e.folded_name LIKE {give(contains(word.name))}")
                elsewhere += f" OR f.subject_id IN (SELECT subject_id FROM {named})"
            search.sql.add(f"(n.m{number} OR {elsewhere})")


def _similar_names(search: Search, words: Sequence[_Word]) -> None:
    """The names that are like a word by their trigrams, or but for two letters that changed places; the likest first."""
    give = search.sql.give
    swaps = [f"folded LIKE {give(contains(swapped))}" for word in words for swapped in swapped_letters(word.name)]
    alike = [f"folded %% {give(fold(word.name))}" for word in words]
    likeness = ", ".join(f"similarity(folded, {give(fold(word.name))})" for word in words)
    changed = f"CASE WHEN {' OR '.join(swaps)} THEN 0.9 ELSE 0 END" if swaps else "0"
    search.tables.append(f"""driver AS MATERIALIZED (
    SELECT id, row_number() OVER () AS ord, 0 AS size FROM (
        SELECT id, greatest({changed}, {likeness}) AS likeness FROM search_searchterm
        WHERE kind = '{NAME}' AND ({" OR ".join(alike + swaps)})
        ORDER BY likeness DESC, length(folded), folded COLLATE "C", id LIMIT {MOST_SIMILAR}
    ) best
)""")


def _also(search: Search, kind: str, value: str, *, with_subject: bool) -> None:
    """A condition beside the driver; where that is a name, a description or tag of the subject will do too."""
    terms = search.terms(kind, pattern_of(kind, value))
    condition = f"f.{COLUMNS[kind]} IN (SELECT id FROM {terms})"
    column = {DOC: "doc", TAGS: "tags"}.get(kind)
    if with_subject and column:
        pattern = search.sql.give(pattern_of(kind, value))
        said = search.subjects(f"e.folded_{column} <> '' AND e.folded_{column} LIKE {pattern}")
        condition = f"({condition} OR f.subject_id IN (SELECT subject_id FROM {said}))"
    search.sql.add(condition)


def field_names_like(words: Sequence[str], sight: Sight, *, most: int) -> list[str]:
    """Names of fields that are like a word and that somebody may read; the likest first."""
    query = Query(tuple(Term("", word) for word in words))
    prepared = _prepared(query, sight, similar=True)
    if prepared is None:
        return []
    sql = """
WITH {tables}
SELECT name.value FROM (SELECT * FROM driver ORDER BY ord) n JOIN search_searchterm name ON name.id = n.id
WHERE EXISTS (SELECT 1 FROM search_indexedfield f WHERE f.{column} = n.id AND {conditions})
ORDER BY n.ord LIMIT %(most)s
""".format(tables=", ".join(prepared.tables), column=prepared.column, conditions=prepared.sql.where)
    values: Any = rows_of(sql, {**prepared.sql.parameters, "most": most})
    return [value for (value,) in values]
