"""Fields with the same name in other subjects, and subjects with names similar to a misspelled one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from registry.access.permission_filters import READ
from registry.access.roles import Actor, may
from registry.search.models import NAME, PARENT, TYPE, fold, stored_text, term_digest
from registry.search.selectors.conditions import read_scope_of, rows_of

#: types that are returned, those of the most fields first
MAX_TYPES: Final = 20
#: fields of each type that are returned
MAX_FIELDS: Final = 10
#: fields that are read
MAX_LOOKED_AT: Final = 20_000

#: the number of a Protobuf field, which follows its type and isn't part of it
_NUMBER: Final = re.compile(" = [0-9]+$")

_NAMESAKES: Final = """
WITH named AS (
    SELECT e.registry_id, e.name AS subject, e.version, f.parent_id, f.type_id
    FROM search_searchterm term
    JOIN search_indexedfield f ON f.name_id = term.id
    JOIN search_indexedsubject e ON e.subject_id = f.subject_id
    WHERE term.kind = %(kind)s AND term.digest = %(digest)s AND e.registry_id = ANY(%(registries)s) AND {sight}
    LIMIT %(most)s
), typed AS (
    SELECT named.*, regexp_replace(type.value, %(number)s, '') AS type
    FROM named JOIN search_searchterm type ON type.id = named.type_id AND type.kind = %(type_kind)s
), placed AS (
    SELECT typed.*, count(*) OVER (PARTITION BY type) AS many,
           row_number() OVER (PARTITION BY type ORDER BY subject, registry_id, parent_id) AS place
    FROM typed
    WHERE type <> %(type)s
)
SELECT placed.type, placed.many, placed.registry_id, placed.subject, placed.version, parent.value
FROM placed JOIN search_searchterm parent ON parent.id = placed.parent_id AND parent.kind = %(parent_kind)s
WHERE placed.place <= %(fields)s
ORDER BY placed.many DESC, placed.type, placed.place
LIMIT %(rows)s
"""


@dataclass(frozen=True)
class Namesake:
    """A field of the same name in the latest live version of a subject; `parent` is the path to it."""

    registry: str
    subject: str
    version: int
    parent: str


@dataclass(frozen=True)
class OtherType:
    """A type of fields with the same name elsewhere, how many have it, and some of them."""

    type: str
    many: int
    fields: tuple[Namesake, ...]


def namesakes_of_other_types(name: str, type_: str, *, by: Actor) -> tuple[OtherType, ...]:
    """Return the types other than `type_` of readable fields called `name`, the most frequent first.

    Two queries. Raises NotSignedIn, NotAllowed.
    """
    sight = read_scope_of(by)
    parameters: dict[str, Any] = {
        **sight.parameters,
        "kind": NAME,
        "digest": term_digest(NAME, name),
        "registries": list(sight.registries),
        "type_kind": TYPE,
        "number": _NUMBER.pattern,
        "type": _NUMBER.sub("", stored_text(TYPE, type_)),
        "parent_kind": PARENT,
        "most": MAX_LOOKED_AT,
        "fields": MAX_FIELDS,
        "rows": MAX_TYPES * MAX_FIELDS,
    }
    fields_by_type: dict[str, tuple[int, list[Namesake]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NAMESAKES.format(sight=sight.condition), parameters)
        for type_text, many, registry, subject, version, parent in cursor.fetchall():
            _, fields = fields_by_type.setdefault(type_text, (many, []))
            fields.append(Namesake(sight.registries[registry], subject, version, parent))
    return tuple(
        OtherType(text, many, tuple(fields)) for text, (many, fields) in list(fields_by_type.items())[:MAX_TYPES]
    )


MOST: Final = 5
#: share of trigrams in common; below it `-value` alone makes names similar
LEAST: Final = 0.35
#: characters of a name that is looked up; longer ones aren't typing errors
LONGEST: Final = 200
_NEAREST: Final = """
SELECT e.registry_id, e.name FROM search_indexedsubject e
WHERE {sight} AND e.registry_id = %(here)s AND e.name <> %(name)s AND e.folded_name %% %(folded)s
AND similarity(e.folded_name, %(folded)s) >= {least}
AND EXISTS (SELECT 1 FROM subjects_schemaversion v WHERE v.id = e.version_pk AND v.deleted_at IS NULL)
ORDER BY similarity(e.folded_name, %(folded)s) DESC, e.name LIMIT {most}
"""


def nearest_subjects(registry: int, name: str, *, by: Actor) -> tuple[str, ...]:
    """Return the readable subjects of the registry with names similar to `name`, most similar first.

    The names are qualified. Raises NotSignedIn or NotAllowed if the actor may read nothing.
    """
    sight = read_scope_of(by)
    if registry not in sight.registries or not name or len(name) > LONGEST:
        return ()
    parameters = {**sight.parameters, "here": registry, "name": name, "folded": fold(name)}
    rows = rows_of(_NEAREST.format(sight=sight.condition, least=LEAST, most=MOST), parameters)
    registry_name = sight.registries[registry]
    return tuple(subject for _, subject in rows if may(by, READ, registry=registry_name, subject=subject))
