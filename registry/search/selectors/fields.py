"""Fields by name, place, type, description and tag.

A search first finds the terms that drive it, the best matches first, and then the fields of each by an index; every
other condition is a set of ids in which each field's are looked up. So a page costs as much as it shows, whatever the
size of the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.access.permission_filters import READ
from registry.access.roles import Actor, may
from registry.search.models import DOC, NAME, PARENT, TAGS, TYPE, fold, split_lines
from registry.search.query import Query, Term
from registry.search.results import DOCS, FIELDS, MOST_COUNTED, FieldHit, Group, counted
from registry.search.selectors.conditions import (
    ReadScope,
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

#: terms that are read; beyond, a query is too wide to be counted
MOST_TERMS: Final = 1_000
#: names that are only similar to the query
MOST_SIMILAR: Final = 20
COLUMNS: Final = {NAME: "name_id", TYPE: "type_id", DOC: "doc_id", TAGS: "tags_id"}

_KEYS: Final = """
SELECT n.id, f.subject_id, f.position, n.size, n.ord
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
#: the keys and, if there are more, the subjects of all; in one query, so that the tables before them are built once
_WITH_SUBJECTS: Final = """
WITH {tables}, keys AS MATERIALIZED ({keys}), subjects AS MATERIALIZED (
    SELECT n.id, f.subject_id, n.size, n.ord
    FROM (SELECT * FROM driver ORDER BY ord) n
    CROSS JOIN LATERAL (
        SELECT DISTINCT f.subject_id FROM search_indexedfield f
        WHERE f.{column} = n.id AND {conditions}
        ORDER BY f.subject_id LIMIT %(most)s
    ) f
    WHERE (SELECT count(*) FROM keys) = %(most)s
    ORDER BY n.ord, f.subject_id
    LIMIT %(most_rows)s
)
SELECT id, subject_id, position, size, ord FROM keys
UNION ALL
SELECT id, subject_id, NULL, size, ord FROM subjects
ORDER BY ord, subject_id, position
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
    """A search for fields: the tables before it, the column of its driving term, and the conditions on `f` and `n`."""

    sql: Sql
    tables: list[str]
    column: str = ""

    def terms(self, kind: str, pattern: str) -> str:
        """Add a table of the terms of a kind that match a pattern; return its name."""
        name = f"terms_{len(self.tables)}"
        self.tables.append(
            f"{name} AS MATERIALIZED (SELECT id FROM search_searchterm WHERE kind = '{kind}' AND folded LIKE"
            f" {self.sql.give(pattern)})"
        )
        return name

    def subjects(self, condition: str) -> str:
        """Add a table of subjects; return its name."""
        name = f"subjects_{len(self.tables)}"
        self.tables.append(
            f"{name} AS MATERIALIZED (SELECT e.subject_id AS id FROM search_indexedsubject e WHERE {condition})"
        )
        return name


@dataclass(frozen=True)
class FieldPath:
    """What a name and the path before it must contain; `is_plain`: the subject's name may match instead."""

    name: str
    parent: str = ""
    is_plain: bool = False


#: the first fields of a query: term, subject, position, and how many terms there are
Keys = list[tuple[int, int, int, int]]


class FirstPage:
    """The first fields that match a query, as many as are counted; looked up once for all groups of a search."""

    def __init__(self) -> None:
        self._keys_by_query: dict[Query, Keys] = {}

    def of(self, query: Query, prepared: Search) -> Keys:
        """Return the first fields of a query, in order."""
        if query not in self._keys_by_query:
            self._keys_by_query[query] = _keys(prepared, most=MOST_COUNTED + 1)
        return self._keys_by_query[query]

    def subjects_of(self, query: Query, prepared: Search) -> tuple[list[int], bool]:
        """Return the subjects of a query's fields, in the order of the fields, and whether there may be more."""
        most_rows = 5 * MOST_COUNTED
        parts = {"column": prepared.column, "conditions": prepared.sql.where}
        sql = _WITH_SUBJECTS.format(tables=", ".join(prepared.tables), keys=_KEYS.format(after="", **parts), **parts)
        rows = rows_of(sql, {**prepared.sql.parameters, "most": MOST_COUNTED + 1, "most_rows": most_rows})
        keys = [(term, subject, position, size) for term, subject, position, size, _ in rows if position is not None]
        self._keys_by_query[query] = keys
        bare_rows = sum(1 for row in rows if row[2] is None)
        return list(dict.fromkeys(row[1] for row in rows)), bare_rows == most_rows or _is_wide(keys)


def find_fields(
    query: Query, sight: ReadScope, by: Actor, *, limit: int, cursor: str = "", group: str = FIELDS, first: FirstPage
) -> Group:
    """Return a page of the matching fields; in the group `docs`, those with the words in their description.

    If no name matches, return those with a similar name.
    """
    group_query = _for_docs(query) if group == DOCS else query
    prepared = _prepared(group_query, sight)
    if prepared is None:
        return Group(group)
    keys = _keys(prepared, most=limit + 1, after=numbers_in(cursor, 3)) if cursor else first.of(group_query, prepared)
    page = _page(keys, sight, by, limit=limit, is_first=not cursor, group=group)
    if page.hits or cursor or group == DOCS:
        return page
    similar = _prepared(group_query, sight, similar=True)
    if similar is None:
        return page
    hits = tuple(replace(hit, similar=True) for hit in hits_of(_positions(_keys(similar, most=limit)), sight, by))
    return Group(group, hits, total=len(hits), more=False)


def _for_docs(query: Query) -> Query:
    """Return the query with its words as descriptions."""
    return Query(tuple(Term("doc", term.value) if not term.operator else term for term in query.terms))


def subjects_with_fields(query: Query, sight: ReadScope, first: FirstPage) -> tuple[list[int], bool]:
    """Return the ids of subjects with a field that matches all operators on fields, best first.

    Also return whether there are more.
    """
    field_query = Query(tuple(term for term in query.terms if term.operator))
    prepared = _prepared(field_query, sight)
    if prepared is None:
        return [], False
    return first.subjects_of(field_query, prepared)


def _keys(prepared: Search, *, most: int, after: Sequence[int] = ()) -> Keys:
    """Return the first fields, or those after a term, subject and position."""
    parameters = {**prepared.sql.parameters, "most": most}
    conditions, following = prepared.sql.where, ""
    if after:
        term, subject, position = after
        parameters |= {"after_term": term, "after_subject": subject, "after_position": position}
        conditions += (
            " AND (n.id <> %(after_term)s OR (f.subject_id, f.position) > (%(after_subject)s, %(after_position)s))"
        )
        following = "WHERE n.ord >= (SELECT ord FROM driver WHERE id = %(after_term)s)"
    sql = _KEYS.format(column=prepared.column, conditions=conditions, after=following)
    rows = rows_of(f"WITH {', '.join(prepared.tables)} {sql}", parameters)
    return [(term, subject, position, size) for term, subject, position, size, _ in rows]


def _is_wide(keys: Keys) -> bool:
    """Return whether more terms match than are read."""
    return bool(keys) and keys[0][3] >= MOST_TERMS


def _page(keys: Keys, sight: ReadScope, by: Actor, *, limit: int, is_first: bool, group: str) -> Group:
    shown = keys[:limit]
    total, more = counted(keys, _is_wide(keys))
    return Group(
        group,
        hits_of(_positions(shown), sight, by),
        total=total if is_first else None,
        more=more,
        cursor=".".join(map(str, shown[-1][:3])) if len(keys) > limit else "",
    )


def _positions(keys: Keys) -> list[tuple[int, int]]:
    return [(subject, position) for _, subject, position, _ in keys]


def hits_of(keys: Sequence[tuple[int, int]], sight: ReadScope, by: Actor) -> tuple[FieldHit, ...]:
    """Return the fields at those places, in their order, without those deleted meanwhile or not readable."""
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


def _prepared(query: Query, sight: ReadScope, *, similar: bool = False) -> Search | None:
    """Prepare the search of a query: by names if it has any, else by tag, type or description.

    Return None if it has no conditions on fields.
    """
    field_paths = [split_path(value) for value in query.of("field")] + [
        FieldPath(value, is_plain=True) for value in query.plain_words
    ]
    subject_sql = of_subjects(query, sight)
    search = Search(Sql(parameters=dict(subject_sql.parameters) if subject_sql else {}), [])
    if subject_sql:
        chosen = search.subjects(subject_sql.where)
        search.sql.add(_among("f.subject_id", chosen))
    rest = {TAGS: list(query.of("tag")), TYPE: list(query.of("type")), DOC: list(query.of("doc"))}
    if field_paths:
        search.column = COLUMNS[NAME]
        (_similar_names if similar else _names)(search, field_paths)
    elif similar:
        return None
    else:
        kind = next((kind for kind, values in rest.items() if values), None)
        if kind is None:
            return None
        search.column = COLUMNS[kind]
        # a field has one term of each kind, which must match all values
        _driver(search, kind, rest.pop(kind))
    for kind, values in rest.items():
        for value in values:
            _also(search, kind, value, with_subject=bool(field_paths))
    return search


def _among(column: str, table: str) -> str:
    """Return the condition that an id is in a table.

    IS TRUE keeps it a lookup for each row; a join would sort the table each time.
    """
    return f"(({column} IN (SELECT id FROM {table})) IS TRUE)"


def split_path(value: str) -> FieldPath:
    """Split a path into its last part, the name, and the path before that."""
    parent, dot, name = value.rpartition(".")
    return FieldPath(name, parent) if dot and name and parent else FieldPath(value)


def _driver(search: Search, kind: str, values: Sequence[str]) -> None:
    """Add the table of terms of a kind that match all values, short ones first."""
    fits = " AND ".join(f"folded LIKE {search.sql.give(pattern_of(kind, value))}" for value in values)
    search.tables.append(f"""driver AS MATERIALIZED (
    SELECT id, row_number() OVER () AS ord, count(*) OVER () AS size FROM (
        SELECT id FROM search_searchterm
        WHERE kind = '{kind}' AND {fits}
        ORDER BY length(folded), folded COLLATE "C", id LIMIT {MOST_TERMS}
    ) best
)""")


def pattern_of(kind: str, value: str) -> str:
    """Return the pattern for terms of a kind: a tag must be a whole line, the others must contain the value."""
    return whole_line(value) if kind == TAGS else contains(value)


def _names(search: Search, field_paths: Sequence[FieldPath]) -> None:
    """Add the table of names that contain a word: with all words first, then whole ones, beginnings, short ones.

    A name without one of the words is left out if nothing else can match that word for it.
    """
    give = search.sql.give
    fits = [f"folded LIKE {give(contains(path.name))}" for path in field_paths]
    flags = ", ".join(f"({fit}) AS m{number}" for number, fit in enumerate(fits))
    every = f"({' OR '.join(fits)})"
    for number, fit in enumerate(fits):
        elsewhere = [f"EXISTS (SELECT FROM {table})" for table in _elsewhere(search, field_paths, number)]
        if len(field_paths) > 1:
            every += f" AND ({' OR '.join([fit, *elsewhere])})"
    first = field_paths[0].name
    search.tables.append(f"""driver AS MATERIALIZED (
    SELECT *, row_number() OVER () AS ord, count(*) OVER () AS size FROM (
        SELECT id, {flags} FROM search_searchterm
        WHERE kind = '{NAME}' AND {every}
        ORDER BY ({" AND ".join(fits)}) DESC, folded = {give(fold(first))} DESC,
                 folded LIKE {give(begins(first))} DESC, length(folded), folded COLLATE "C", id LIMIT {MOST_TERMS}
    ) best
)""")


def _elsewhere(search: Search, field_paths: Sequence[FieldPath], number: int) -> list[str]:
    """Add a word's condition on fields; return the tables of what may match the word instead of the name."""
    path = field_paths[number]
    if path.parent:
        parents = search.terms(PARENT, anywhere(path.parent))
        search.sql.add(f"n.m{number} AND {_among('f.parent_id', parents)}")
        return []
    if len(field_paths) == 1:
        return []
    parents = search.terms(PARENT, contains(path.name))
    if not path.is_plain:
        search.sql.add(f"(n.m{number} OR {_among('f.parent_id', parents)})")
        return [parents]
    named = search.subjects(f"e.folded_name LIKE {search.sql.give(contains(path.name))}")
    search.sql.add(f"(n.m{number} OR {_among('f.parent_id', parents)} OR {_among('f.subject_id', named)})")
    return [parents, named]


def _similar_names(search: Search, field_paths: Sequence[FieldPath]) -> None:
    """Add the table of names similar to a word by trigrams, or with two letters swapped; most similar first.

    Each word is a query of its own: together they would compare every similar name with all words.
    """
    give = search.sql.give
    alternatives = [
        (f"similarity(folded, {placeholder})", f"folded %% {placeholder}")
        for placeholder in (give(fold(path.name)) for path in field_paths)
    ]
    swaps = [f"folded LIKE {give(contains(swapped))}" for path in field_paths for swapped in swapped_letters(path.name)]
    if swaps:
        alternatives.append(("0.9", " OR ".join(swaps)))
    tables = []
    for likeness, fits in alternatives:
        tables.append(f"alike_{len(search.tables)}")
        search.tables.append(
            f"{tables[-1]} AS MATERIALIZED (SELECT id, folded, ({likeness})::real AS likeness FROM search_searchterm"
            f" WHERE kind = '{NAME}' AND ({fits}))"
        )
    search.tables.append(f"""driver AS MATERIALIZED (
    SELECT id, row_number() OVER () AS ord, 0 AS size FROM (
        SELECT id, folded, max(likeness) AS likeness FROM ({" UNION ALL ".join(f"SELECT * FROM {table}" for table in tables)}) every
        GROUP BY id, folded
        ORDER BY likeness DESC, length(folded), folded COLLATE "C", id LIMIT {MOST_SIMILAR}
    ) best
)""")


def _also(search: Search, kind: str, value: str, *, with_subject: bool) -> None:
    """Add a condition beside the driving term.

    If that is a name, the description or a tag of the subject may match instead.
    """
    terms = search.terms(kind, pattern_of(kind, value))
    condition = _among(f"f.{COLUMNS[kind]}", terms)
    column = {DOC: "doc", TAGS: "tags"}.get(kind)
    if with_subject and column:
        pattern = search.sql.give(pattern_of(kind, value))
        subject_table = search.subjects(f"e.folded_{column} <> '' AND e.folded_{column} LIKE {pattern}")
        condition = f"({condition} OR {_among('f.subject_id', subject_table)})"
    search.sql.add(condition)


def field_names_like(names: Sequence[str], sight: ReadScope, *, most: int) -> list[str]:
    """Return names of readable fields that are similar to a word, most similar first."""
    query = Query(tuple(Term("", word) for word in names))
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
