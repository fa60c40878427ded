"""Types, ids, requests, tags and business terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from registry.access.name_patterns import escaped
from registry.access.permission_filters import READ
from registry.access.roles import Actor, may
from registry.promotions.models import PromotionRequest
from registry.search.query import Query, is_id
from registry.search.results import (
    IDS,
    MOST_COUNTED,
    REQUESTS,
    TAGS,
    TERMS,
    TYPES,
    Group,
    IdHit,
    RequestHit,
    TagHit,
    TermHit,
    TypeHit,
    counted,
)
from registry.search.selectors.conditions import ReadScope, Sql, anywhere, contains, numbers_in, rows_of, which_id
from registry.subjects.lifecycle.glossary import list_terms
from registry.subjects.versions.qualified_names import SubjectName

MOST_TYPES: Final = 20
MOST_TAGS: Final = 50

_TYPES: Final = """
SELECT t.value, found.count
FROM (
    SELECT id, value FROM search_searchterm WHERE kind = 't' AND folded LIKE %(word)s
    ORDER BY length(folded), folded COLLATE "C", id LIMIT %(most)s
) t
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT 1 FROM search_indexedfield f WHERE f.type_id = t.id AND {in_sight} LIMIT %(counted)s
    ) few
) found
WHERE found.count > 0
ORDER BY length(t.value), t.value COLLATE "C"
"""
#: the table of readable subjects; used only if some aren't, because it reads every subject
_SEEN: Final = "f.subject_id IN (SELECT e.subject_id FROM search_indexedsubject e WHERE {condition})"

_IDS: Final = """
SELECT e_registry.id, c.name, s.name, v.version, sc.schema_id, sc.guid, v.deleted_at IS NOT NULL, v.id
FROM subjects_schema sc
JOIN subjects_schemaversion v ON v.schema_id = sc.id
JOIN subjects_subject s ON s.id = v.subject_id
JOIN subjects_context c ON c.id = s.context_id
JOIN subjects_registry e_registry ON e_registry.id = c.registry_id
WHERE ({which}) AND {in_sight} AND v.id > %(after)s
ORDER BY v.id LIMIT %(most)s
"""
_QUALIFIED: Final = "CASE c.name WHEN '.' THEN s.name ELSE ':' || c.name || ':' || s.name END"

_REQUESTS: Final = """
SELECT r.id FROM promotions_promotionrequest r
JOIN promotions_environment target ON target.id = r.target_id
WHERE {having}
AND (r.state <> 'draft' OR r.requested_by_id = %(me)s)
AND target.registry_id = ANY(%(registries)s)
AND NOT EXISTS (
    SELECT 1 FROM promotions_requestitem item WHERE item.request_id = r.id AND NOT ({in_sight})
)
AND ({itself_in_sight} OR EXISTS (SELECT 1 FROM promotions_requestitem item WHERE item.request_id = r.id))
AND r.id < %(before)s
ORDER BY r.id DESC LIMIT %(most)s
"""
_ITEM: Final = "CASE item.context_name WHEN '.' THEN item.subject_name ELSE ':' || item.context_name || ':' || item.subject_name END"
_ITSELF: Final = (
    "CASE r.context_name WHEN '.' THEN r.subject_name ELSE ':' || r.context_name || ':' || r.subject_name END"
)

#: (tag lines, subject) of subjects and of fields
_TAGS: Final = """
(SELECT e.tags, e.subject_id FROM search_indexedsubject e WHERE e.folded_tags <> '' AND e.folded_tags LIKE %(word)s AND {subject_in_sight}
 LIMIT %(most)s)
UNION ALL
(SELECT DISTINCT t.value, f.subject_id FROM search_searchterm t
 CROSS JOIN LATERAL (
    SELECT DISTINCT f.subject_id FROM search_indexedfield f WHERE f.tags_id = t.id AND {in_sight} LIMIT %(most)s
 ) f
 WHERE t.kind = 'g' AND t.folded LIKE %(word)s LIMIT %(most)s)
"""


def find_types(query: Query, sight: ReadScope, *, limit: int = MOST_TYPES) -> Group:
    """Return the types that contain a word, up to one page, and how many fields have each."""
    if len(query.plain_words) != 1 or query.has_operators:
        return Group(TYPES)
    parameters = {
        **sight.parameters,
        "word": contains(query.plain_words[0]),
        "most": limit,
        "counted": MOST_COUNTED + 1,
    }
    rows = rows_of(_TYPES.format(in_sight=_in_sight(sight)), parameters)
    hits = tuple(TypeHit(value, min(count, MOST_COUNTED), count > MOST_COUNTED) for value, count in rows)
    return Group(TYPES, hits, total=len(hits), more=len(hits) == limit)


def _in_sight(sight: ReadScope) -> str:
    return "TRUE" if sight.whole else _SEEN.format(condition=sight.condition)


def find_ids(query: Query, sight: ReadScope, by: Actor, *, limit: int, cursor: str = "") -> Group:
    """Return the versions whose schema has one of the ids, GUIDs or fingerprints, soft-deleted ones too."""
    identifiers = [*query.of("id"), *(word for word in query.plain_words if is_id(word))]
    if not identifiers or (query.has_operators and not query.of("id")):
        return Group(IDS)
    (after,) = numbers_in(cursor, 1) if cursor else (0,)
    sql = Sql(parameters=dict(sight.parameters))
    which = " OR ".join(f"({which_id(value.lower(), sql)})" for value in identifiers)
    most = limit + 1 if cursor else MOST_COUNTED + 1
    in_sight = sight.on("c.registry_id", f"({_QUALIFIED})")
    rows = rows_of(_IDS.format(which=which, in_sight=in_sight), {**sql.parameters, "after": after, "most": most})
    shown = rows[:limit]
    total, more = counted(rows)
    return Group(
        IDS,
        _id_hits(shown, sight, by),
        total=None if cursor else total,
        more=more,
        cursor=str(shown[-1][-1]) if len(rows) > limit else "",
    )


def _id_hits(rows: Sequence[tuple[Any, ...]], sight: ReadScope, by: Actor) -> tuple[IdHit, ...]:
    hits = []
    for registry, context, name, version, schema_id, guid, deleted, _ in rows:
        subject = SubjectName(context, name).qualified
        if registry in sight.registries and may(by, READ, registry=sight.registries[registry], subject=subject):
            hits.append(IdHit(sight.registries[registry], subject, version, schema_id, str(guid), context, deleted))
    return tuple(hits)


def find_requests(query: Query, sight: ReadScope, by: Actor, *, limit: int, cursor: str = "") -> Group:
    """Return promotion requests by id, or with every word in a subject's name, the reason or a label; newest first."""
    if not query.plain_words or query.has_operators:
        return Group(REQUESTS)
    (before,) = numbers_in(cursor, 1) if cursor else (2**62,)
    sql = Sql(parameters=dict(sight.parameters))
    for word in query.plain_words:
        pattern = sql.give(f"%{escaped(word)}%")
        fits = (
            f"r.subject_name ILIKE {pattern} OR r.reason ILIKE {pattern} OR EXISTS (SELECT 1 FROM promotions_requestitem"
            f" named WHERE named.request_id = r.id AND named.subject_name ILIKE {pattern})"
        )
        fits += f" OR r.labels @> ARRAY[{sql.give(word.lower())}]::varchar[]"
        number = word.removeprefix("#")
        if number.isascii() and number.isdecimal() and len(number) <= 18:
            fits += f" OR r.id = {sql.give(int(number))}"
        sql.add(f"({fits})")
    parameters = {
        **sql.parameters, "me": by.user_id or 0, "registries": list(sight.registries), "before": before,
        "most": limit + 1 if cursor else MOST_COUNTED + 1,
    }  # fmt: skip
    rows = rows_of(
        _REQUESTS.format(
            having=sql.where,
            in_sight=sight.on("target.registry_id", f"({_ITEM})"),
            itself_in_sight=sight.on("target.registry_id", f"({_ITSELF})"),
        ),
        parameters,
    )
    numbers = [number for (number,) in rows]
    shown = numbers[:limit]
    total, more = counted(numbers)
    return Group(
        REQUESTS,
        _request_hits(shown),
        total=None if cursor else total,
        more=more,
        cursor=str(shown[-1]) if len(numbers) > limit else "",
    )


def _request_hits(numbers: Sequence[int]) -> tuple[RequestHit, ...]:
    rows = PromotionRequest.objects.filter(pk__in=numbers).select_related("target__registry").order_by("-pk")
    return tuple(
        RequestHit(
            id=row.pk,
            kind=row.kind,
            subject=SubjectName(row.context_name, row.subject_name).qualified,
            version=row.version_number,
            target=row.target.registry.name,
            state=row.state,
            reason=row.reason[:200],
        )
        for row in rows.defer("plan", "config")
    )


def find_tags(query: Query, sight: ReadScope, *, limit: int = MOST_TAGS) -> Group:
    """Return the tags that contain a word, of subjects and of fields, and how many subjects have each."""
    if len(query.plain_words) != 1 or query.has_operators:
        return Group(TAGS)
    word = query.plain_words[0].casefold()
    parameters = {**sight.parameters, "word": anywhere(query.plain_words[0]), "most": MOST_COUNTED + 1}
    rows = rows_of(_TAGS.format(in_sight=_in_sight(sight), subject_in_sight=sight.condition), parameters)
    subjects: dict[str, set[int]] = {}
    for lines, subject in rows:
        for tag in lines.split("\n"):
            if word in tag.casefold() and tag:
                subjects.setdefault(tag, set()).add(subject)
    ordered = sorted(subjects, key=lambda tag: (tag.casefold() != word, -len(subjects[tag]), tag))
    is_cut = len(rows) > MOST_COUNTED
    hits = tuple(TagHit(tag, min(len(subjects[tag]), MOST_COUNTED), is_cut) for tag in ordered[:limit])
    return Group(TAGS, hits, total=len(ordered), more=is_cut)


def find_terms(query: Query, by: Actor, *, limit: int = MOST_TAGS) -> Group:
    """Return the business terms whose name, meaning or owner has all of the words."""
    if not query.plain_words or query.has_operators:
        return Group(TERMS)
    terms, total = list_terms(by=by, text=" ".join(query.plain_words), limit=limit)
    hits = tuple(TermHit(term.name, term.doc, term.owner, number) for term, number in terms)
    return Group(TERMS, hits, total=total)
