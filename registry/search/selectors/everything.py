"""One search over all groups, and a further page of one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from registry.access.roles import Actor
from registry.errors import InvalidInput
from registry.search.found import (
    DOCS,
    FIELDS,
    GROUPS,
    IDS,
    MAX_LIMIT,
    REQUESTS,
    SUBJECTS,
    TAGS,
    TYPES,
    Found,
    Group,
)
from registry.search.models import StaleSubject
from registry.search.query import Query, parse_query
from registry.search.selectors.fields import FirstKeys, field_names_like, find_fields
from registry.search.selectors.others import find_ids, find_requests, find_tags, find_types
from registry.search.selectors.subjects import find_subjects
from registry.search.sight import Sight, sight_of

PREVIEW: Final = 8
MOST_SUGGESTED: Final = 5
_Find = Callable[[Query, Sight, Actor, int, str, FirstKeys], Group]


def _docs(query: Query, sight: Sight, by: Actor, limit: int, cursor: str, first: FirstKeys) -> Group:
    if not query.words or query.has_operators:
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
}


def search(text: str, *, by: Actor, limit: int = PREVIEW) -> Found:
    """What a query finds, the beginning of each group; of what somebody may read alone.

    Raises NotSignedIn, NotAllowed, InvalidInput.
    """
    sight = sight_of(by)
    query = parse_query(text)
    if not query.terms:
        return Found(query="", indexing=_is_indexing(sight))
    most = _limit(limit)
    first = FirstKeys()
    groups = tuple(_FINDERS[name](query, sight, by, most, "", first) for name in GROUPS)
    found = Found(query=query.text, groups=groups, indexing=_is_indexing(sight))
    if not found.is_empty:
        return found
    words = [] if _is_tried(query) else [*query.words, *query.of("field")]
    return Found(
        query=query.text,
        groups=groups,
        suggestions=tuple(field_names_like(words, sight, most=MOST_SUGGESTED)) if words else (),
        indexing=found.indexing,
    )


def search_group(text: str, group: str, *, by: Actor, cursor: str = "", limit: int = 50) -> Group:
    """A page of one group; `cursor` is what the page before gave. Raises NotSignedIn, NotAllowed, InvalidInput."""
    sight = sight_of(by)
    if group not in GROUPS:
        raise InvalidInput(f"{group[:40]!r} is no group: there are {', '.join(GROUPS)}.")
    query = parse_query(text)
    return _FINDERS[group](query, sight, by, _limit(limit), cursor, FirstKeys()) if query.terms else Group(group)


def _is_tried(query: Query) -> bool:
    """Whether the group of fields has looked for names like what is asked already, by nothing else than that."""
    return all(term.operator in ("", "field") and "." not in term.value for term in query.terms)


def _limit(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))


def _is_indexing(sight: Sight) -> bool:
    """Whether subjects wait to be indexed; of whom is nobody's business who can't see them all."""
    return sight.whole and StaleSubject.objects.exists()
