"""Subjects whose names are like one that isn't there."""

from __future__ import annotations

from typing import Final

from registry.access.roles import Actor, may
from registry.search.selectors.conditions import rows_of
from registry.search.sight import READ, sight_of
from registry.search.texts import fold

MOST: Final = 5
#: of trigrams in common; below it `-value` alone makes names alike
LEAST: Final = 0.35
#: names of more characters aren't sought: what is like them is no slip of the keyboard
LONGEST: Final = 200
_NEAREST: Final = """
SELECT e.registry_id, e.name FROM search_indexedsubject e
WHERE {sight} AND e.registry_id = %(here)s AND e.name <> %(name)s AND e.folded_name %% %(folded)s
AND similarity(e.folded_name, %(folded)s) >= {least}
AND EXISTS (SELECT 1 FROM subjects_schemaversion v WHERE v.id = e.version_pk AND v.deleted_at IS NULL)
ORDER BY similarity(e.folded_name, %(folded)s) DESC, e.name LIMIT {most}
"""


def nearest_subjects(registry: int, name: str, *, by: Actor) -> tuple[str, ...]:
    """Qualified names of the registry that are like `name`, the likest first; those that somebody may read alone.

    Raises NotSignedIn, NotAllowed for whoever may read nothing.
    """
    sight = sight_of(by)
    if registry not in sight.registries or not name or len(name) > LONGEST:
        return ()
    given = {**sight.parameters, "here": registry, "name": name, "folded": fold(name)}
    rows = rows_of(_NEAREST.format(sight=sight.condition, least=LEAST, most=MOST), given)
    place = sight.registries[registry]
    return tuple(found for _, found in rows if may(by, READ, registry=place, subject=found))
