"""What somebody may read, as a condition of SQL: so that counts and pages are of that alone.

`registry.access.roles.may` decides; this says the same of many subjects at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may, may_somewhere, require
from registry.search.models import IndexedSubject
from registry.subjects.models import Registry
from registry.subjects.versions.glob_filters import like

READ: Final = "schema.read"


@dataclass(frozen=True)
class Sight:
    """The registries that are searched, by number, and the condition on `e.registry_id` and `e.name` (qualified).

    `whole`: nothing is out of sight, and the condition is always true.
    """

    registries: Mapping[int, str]
    whole: bool
    condition: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def on(self, registry: str, name: str) -> str:
        """The condition on other columns."""
        return self.condition.replace("e.registry_id", registry).replace("e.name", name)


def require_sight(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed where somebody may read nothing at all."""
    if not may_somewhere(by, READ):
        require(by, READ)


def sight_of(by: Actor) -> Sight:
    """What somebody may search through: subjects of the registries that have pages. Raises NotSignedIn, NotAllowed."""
    require_sight(by)
    rows = list(Registry.objects.order_by("pk").values_list("pk", "name", "project", "location"))
    here = {key: name for key, name, *parent in rows if parent == [settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION]}
    wide = [key for key, name in here.items() if may(by, READ, registry=name)]
    if len(wide) == len(rows):
        return Sight(here, whole=True, condition="TRUE")
    conditions = ["e.registry_id = ANY(%(sight_wide)s)"]
    parameters: dict[str, Any] = {"sight_wide": wide}
    extent = extent_of(by, READ)
    for key, name in here.items():
        if key in wide:
            continue
        for patterns in (part.patterns for part in extent.within(name).parts):
            number = len(conditions)
            parameters[f"sight_{number}"] = key
            parts = [f"e.registry_id = %(sight_{number})s"]
            if any("[" in pattern for pattern in patterns):
                parameters[f"sight_{number}_names"] = _names(by, key, name)
                parts.append(f"e.name = ANY(%(sight_{number}_names)s)")
            else:
                for index, pattern in enumerate(patterns):
                    parameters[f"sight_{number}_{index}"] = like(pattern)
                    parts.append(f"e.name LIKE %(sight_{number}_{index})s")
            conditions.append(f"({' AND '.join(parts)})")
    return Sight(here, whole=False, condition=f"({' OR '.join(conditions)})", parameters=parameters)


def _names(by: Actor, key: int, registry: str) -> list[str]:
    """The names that somebody may read, one by one: PostgreSQL has no pattern for `[a-c]` that is quite the same."""
    names = IndexedSubject.objects.filter(registry_id=key).values_list("name", flat=True)
    return [name for name in names.iterator(chunk_size=5_000) if may(by, READ, registry=registry, subject=name)]
