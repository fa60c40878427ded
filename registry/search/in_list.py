"""The operators of the search in the box of a registry's list: which of its subjects they leave.

What is asked of fields, descriptions, tags and references is looked up in the index of the search; levels, findings and ids
are asked of what they are made of, so that they are right at once, and as of any moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from registry.audit.past import moment
from registry.drift.selectors import open_findings_by_subject
from registry.errors import InvalidInput
from registry.search.query import OPERATORS, Query, as_guid, as_number, parse_query
from registry.search.selectors.subjects_by_fields import OF_THE_INDEX, Indexed, indexed_subjects
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import parse_subject
from registry.subjects.selectors.fitting import among
from registry.subjects.selectors.narrowing import Condition, of_level

_OPERATORS: Final = re.compile(rf'(?:^|[\s"])(?:{"|".join(OPERATORS)}):', re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """What a text asks: words that the name has, and conditions.

    `is_wide`: so many fields fit that each subject of the list is asked for its own; how many fit at all isn't counted then.
    """

    words: str
    conditions: tuple[Condition, ...] = ()
    is_indexed: bool = False
    is_wide: bool = False


def has_operators(text: str) -> bool:
    """Whether a text is one of the search's language; else it is a part of a name, whatever signs it has."""
    return bool(_OPERATORS.search(text))


def asked_of(place: Registry, text: str) -> Asked:
    """What a text asks of the subjects of a registry; two queries of the index where it is asked.

    Raises InvalidInput for what can't be read or answered.
    """
    if not has_operators(text):
        return Asked(text)
    query = parse_query(text)
    indexed = _indexed(place, query)
    conditions = [
        _OF_SUBJECTS[term.operator](place, term.value) for term in query.terms if term.operator in _OF_SUBJECTS
    ]
    if indexed:
        conditions.append(indexed.condition)
    return Asked(
        " ".join(query.words), tuple(conditions), is_indexed=bool(indexed), is_wide=bool(indexed and indexed.is_wide)
    )


def _indexed(place: Registry, query: Query) -> Indexed | None:
    asked = Query(tuple(term for term in query.terms if term.operator in OF_THE_INDEX))
    if not asked.terms:
        return None
    if moment() is not None:
        raise InvalidInput(
            f"{asked.terms[0].operator}: is looked up in the index of the search, which knows nothing of the past: leave it"
            " out, or go back to now."
        )
    return indexed_subjects(place.pk, asked)


def _of_id(place: Registry, value: str) -> Condition:
    live = SchemaVersion.objects.filter(deleted_at=None, subject__context__registry=place)
    if (number := as_number(value)) is not None:
        live = live.filter(schema__schema_id=number, schema__context__registry=place)
    elif (guid := as_guid(value)) is not None:
        live = live.filter(schema__guid=guid)
    else:
        live = live.filter(schema__fingerprint=value)
    return lambda at: Q(**{f"{at.removesuffix('__') or 'pk'}__in": live.values("subject")})


def _of_drift(place: Registry, value: str) -> Condition:
    names = [parse_subject(name) for name in open_findings_by_subject(place.name)]
    return lambda at: among(names, at) if value == "yes" else ~among(names, at)


def _of_level(place: Registry, value: str) -> Condition:
    return lambda at: of_level(place, value, at)


_OF_SUBJECTS: Final[dict[str, Callable[[Registry, str], Condition]]] = {
    "id": _of_id,
    "drift": _of_drift,
    "compat": _of_level,
}
