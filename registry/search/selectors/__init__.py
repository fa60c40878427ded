"""The results of a search, group by group; `search` combines them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from registry.access.roles import Actor
from registry.drift.selectors.messages import frame_of, read_pasted
from registry.errors import InvalidInput, SchemadeskError
from registry.formats import FORMATS
from registry.formats.base import ParsedSchema
from registry.search.models import NAME, StaleSubject, term_digest
from registry.search.query import Query, Term, parse_query
from registry.search.results import (
    DOCS,
    FIELDS,
    GROUPS,
    IDS,
    MAX_LIMIT,
    REQUESTS,
    SUBJECTS,
    TAGS,
    TERMS,
    TYPES,
    Group,
    IdHit,
    Mark,
    Pasted,
    SearchResult,
)
from registry.search.selectors.conditions import ReadScope, Sql, of_subjects, read_scope_of, rows_of
from registry.search.selectors.fields import FirstPage, field_names_like, find_fields
from registry.search.selectors.other_groups import find_ids, find_requests, find_tags, find_terms, find_types
from registry.search.selectors.subjects import find_subjects, numbered_subjects
from registry.subjects.engine import schema_engine

__all__ = ["find_pasted", "looks_pasted", "search", "search_group"]


PREVIEW: Final = 8
MOST_SUGGESTED: Final = 5
_Find = Callable[[Query, ReadScope, Actor, int, str, FirstPage], Group]


def _docs(query: Query, sight: ReadScope, by: Actor, limit: int, cursor: str, first: FirstPage) -> Group:
    if not query.plain_words or query.has_operators:
        return Group(DOCS)
    return find_fields(query, sight, by, limit=limit, cursor=cursor, group=DOCS, first=first)


_FINDERS: Final[Mapping[str, _Find]] = {
    SUBJECTS: lambda query, sight, by, limit, cursor, first: find_subjects(
        query, sight, by, limit=limit, cursor=cursor, first=first
    ),
    FIELDS: lambda query, sight, by, limit, cursor, first: find_fields(
        query, sight, by, limit=limit, cursor=cursor, first=first
    ),
    TYPES: lambda query, sight, by, limit, cursor, _: find_types(query, sight),
    DOCS: _docs,
    IDS: lambda query, sight, by, limit, cursor, _: find_ids(query, sight, by, limit=limit, cursor=cursor),
    REQUESTS: lambda query, sight, by, limit, cursor, _: find_requests(query, sight, by, limit=limit, cursor=cursor),
    TAGS: lambda query, sight, by, limit, cursor, _: find_tags(query, sight),
    TERMS: lambda query, sight, by, limit, cursor, _: find_terms(query, by),
}


def search(text: str, *, by: Actor, limit: int = PREVIEW) -> SearchResult:
    """Search all groups; return the first results of each that the actor may read.

    Raises NotSignedIn, NotAllowed, InvalidInput.
    """
    sight = read_scope_of(by)
    query = parse_query(text)
    if not query.terms:
        return SearchResult(query="", indexing=_is_indexing(sight))
    most = _limit(limit)
    first = FirstPage()
    groups = tuple(_FINDERS[name](query, sight, by, most, "", first) for name in GROUPS)
    result = SearchResult(query=query.text, groups=groups, indexing=_is_indexing(sight))
    if not result.is_empty:
        return result
    field_names = [] if _is_tried(query) else [*query.plain_words, *query.of("field")]
    return SearchResult(
        query=query.text,
        groups=groups,
        suggestions=tuple(field_names_like(field_names, sight, most=MOST_SUGGESTED)) if field_names else (),
        indexing=result.indexing,
    )


def search_group(text: str, group: str, *, by: Actor, cursor: str = "", limit: int = 50) -> Group:
    """Return a page of one group; `cursor` is from the page before. Raises NotSignedIn, NotAllowed, InvalidInput."""
    sight = read_scope_of(by)
    if group not in GROUPS:
        raise InvalidInput(f"{group[:40]!r} is not a group. The groups are {', '.join(GROUPS)}.")
    query = parse_query(text)
    return _FINDERS[group](query, sight, by, _limit(limit), cursor, FirstPage()) if query.terms else Group(group)


def _is_tried(query: Query) -> bool:
    """Return whether the group of fields has already looked for similar names without other conditions."""
    return all(term.operator in ("", "field") and "." not in term.value for term in query.terms)


def _limit(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))


def _is_indexing(sight: ReadScope) -> bool:
    """Return whether subjects wait to be indexed; False for actors who may not read all of them."""
    return sight.whole and StaleSubject.objects.exists()


MAX_PASTED: Final = 1_000_000
MOST_EQUAL: Final = 20
MOST_NEAREST: Final = 10
#: names of a pasted schema that are compared
MOST_NAMES: Final = 500
#: subjects of each name that are candidates for similar ones
MOST_OF_A_NAME: Final = 500
MOST_CANDIDATES: Final = 60

_HEX: Final = re.compile(r"(0[xX])?0(0[0-9A-Fa-f]{8}|1[0-9A-Fa-f]{32})([0-9A-Fa-f]{2})*")
_BASE64: Final = re.compile(r"AA[A-D][A-Za-z0-9+/_-]{5,}={0,2}")

_EQUAL: Final = """
SELECT DISTINCT e.subject_id FROM subjects_schema sc
JOIN subjects_schemaversion v ON v.schema_id = sc.id AND v.deleted_at IS NULL
JOIN search_indexedsubject e ON e.subject_id = v.subject_id
WHERE sc.fingerprint = {fingerprint} AND {where}
ORDER BY e.subject_id LIMIT %(most)s
"""
#: subjects by how many of the names they have; rare names count more
_CANDIDATES: Final = """
WITH names AS MATERIALIZED (
    SELECT id FROM search_searchterm WHERE kind = '{kind}' AND digest = ANY(%(digests)s::uuid[])
), near AS (
    SELECT f.subject_id, sum(1.0 / f.size) AS weight
    FROM names CROSS JOIN LATERAL (
        SELECT few.subject_id, count(*) OVER () AS size FROM (
            SELECT DISTINCT f.subject_id FROM search_indexedfield f
            WHERE f.name_id = names.id AND {in_sight} LIMIT %(of_a_name)s
        ) few
    ) f
    GROUP BY f.subject_id ORDER BY weight DESC, f.subject_id LIMIT %(candidates)s
)
SELECT f.subject_id, count(DISTINCT f.name_id) FILTER (WHERE f.name_id IN (SELECT id FROM names)),
       count(DISTINCT f.name_id)
FROM near JOIN search_indexedfield f ON f.subject_id = near.subject_id
GROUP BY f.subject_id
"""


def looks_pasted(text: str) -> bool:
    """Return whether a text looks like a schema or a message rather than a query."""
    return looks_like_schema(text) or looks_like_message(text)


def looks_like_message(text: str) -> bool:
    """Return whether a text is a message in hexadecimal or base64 that begins with a schema id or GUID."""
    compact = "".join(text.split())
    return bool(_HEX.fullmatch(compact.replace("\\x", "")) or _BASE64.fullmatch(compact))


def looks_like_schema(text: str) -> bool:
    """Return whether a text looks like a schema of any format."""
    return any(item.recognizes(text) for item in FORMATS.values())


def find_pasted(text: str, *, by: Actor) -> Pasted:
    """Find what has a pasted schema or the schema of a pasted message.

    Raises NotSignedIn, NotAllowed, InvalidInput if the text is neither.
    """
    sight = read_scope_of(by)
    if len(text) > MAX_PASTED:
        raise InvalidInput(f"The text has {len(text):,} characters. At most {MAX_PASTED:,} are allowed.")
    if "\0" in text:
        raise InvalidInput("The text contains a NUL character. Neither a schema nor a message as text can contain one.")
    if looks_like_message(text):
        return _message(text, sight, by)
    if looks_like_schema(text):
        return _schema(text, sight, by)
    raise InvalidInput(
        f"This is neither a schema ({', '.join(map(str, FORMATS.values()))}) nor a message with a schema id "
        "(hexadecimal or base64). To search for words, use the box above."
    )


# -- messages -----------------------------------------------------------------------------------------------------------


def _message(text: str, sight: ReadScope, by: Actor) -> Pasted:
    """Return the schema id or GUID in a message, and the versions that have its schema."""
    try:
        frame = frame_of(read_pasted(text).data, {}, "value")
    except InvalidInput as error:
        return Pasted("message", problem=error.message)
    if frame.framing not in ("id", "guid"):
        return Pasted("message", problem="The message doesn't start with a schema id (byte 0 and an id, or byte 1 and a GUID).")  # fmt: skip
    mark = Mark("id" if frame.framing == "id" else "guid", frame.mark)
    query = Query((Term("id", frame.mark),))
    hits = find_ids(query, sight, by, limit=MOST_EQUAL).hits if _can_be_an_id(mark) else ()
    return Pasted("message", mark=mark, ids=tuple(hit for hit in hits if isinstance(hit, IdHit)))


def _can_be_an_id(mark: Mark) -> bool:
    return mark.kind == "guid" or 1 <= int(mark.value) < 2**31


# -- schemas ------------------------------------------------------------------------------------------------------------


def _schema(text: str, sight: ReadScope, by: Actor) -> Pasted:
    try:
        parsed = _parsed(text)
        names = list(dict.fromkeys(row.name for row in schema_engine.outline(parsed)))[:MOST_NAMES]
    except SchemadeskError as error:
        return Pasted("schema", problem=error.placed)
    where = of_subjects(Query(()), sight) or Sql()
    equal = _equal(parsed.fingerprint, where)
    near = [row for row in _nearest(names, where, sight) if row[0] not in equal][:MOST_NEAREST]
    hits_by_number = dict(numbered_subjects([number for number, _, _ in near], sight, by))
    return Pasted(
        "schema",
        schema_type=parsed.schema_type,
        fingerprint=parsed.fingerprint,
        fields=len(names),
        equal=tuple(replace(hit, equal=True) for _, hit in numbered_subjects(equal, sight, by)),
        nearest=tuple(
            replace(hits_by_number[number], shared=shared, share=round(share, 3))
            for number, shared, share in near
            if number in hits_by_number
        ),
    )


def _parsed(text: str) -> ParsedSchema:
    """Parse a text in the last registered format that recognizes it. Raises InvalidSchema."""
    names = [name for name, item in FORMATS.items() if item.recognizes(text)]
    return schema_engine.parse(names[-1], text, is_new=False)


def _equal(fingerprint: str, where: Sql) -> list[int]:
    sql = Sql(parameters=dict(where.parameters))
    query = _EQUAL.format(fingerprint=sql.give(fingerprint), where=where.where)
    return [number for (number,) in rows_of(query, {**sql.parameters, "most": MOST_EQUAL})]


def _nearest(names: Sequence[str], where: Sql, sight: ReadScope) -> list[tuple[int, int, float]]:
    """Return subjects, how many of the names each has, and the share of the names of both; nearest first."""
    if not names:
        return []
    in_sight = "TRUE" if sight.whole else f"f.subject_id IN (SELECT e.subject_id FROM search_indexedsubject e WHERE {where.where})"  # fmt: skip
    rows = rows_of(
        _CANDIDATES.format(kind=NAME, in_sight=in_sight),
        {
            **where.parameters,
            "digests": [term_digest(NAME, name) for name in names],
            "of_a_name": MOST_OF_A_NAME,
            "candidates": MOST_CANDIDATES,
        },
    )
    scored = [(number, shared, shared / (len(names) + size - shared)) for number, shared, size in rows]
    return sorted(scored, key=lambda row: (-row[2], row[0]))
