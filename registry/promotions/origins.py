"""What a proposed schema answers: a finding of another app, which says who may read it and fills this table at its start.

A request keeps the number alone. The finding may be gone later, and whoever may not read it learns nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from registry.access.roles import Actor
from registry.errors import FindingNotFound

#: the largest number that a row can have
_MAX_NUMBER: Final = 2**63 - 1


@dataclass(frozen=True)
class OriginFinding:
    """A finding that led to a draft or a request, for somebody who may read it."""

    id: int
    registry: str
    sentence: str
    severity: str
    state: str


#: of the findings with these numbers those that the actor may read, by number; in one query
Readable = Callable[[Collection[int], Actor], Mapping[int, OriginFinding]]
#: name → whom to ask
FINDERS: Final[dict[str, Readable]] = {}


def find_origins(name: str, ask: Readable) -> None:
    """Adds one, or replaces the one of that name; called when an app starts."""
    FINDERS[name] = ask


def readable_findings(numbers: Collection[int | None], by: Actor) -> dict[int, OriginFinding]:
    """Those that are there and that the actor may read, by number; no query where no number is given."""
    asked = {number for number in numbers if number is not None and 0 < number <= _MAX_NUMBER}
    if not asked:
        return {}
    return {number: found for ask in FINDERS.values() for number, found in ask(asked, by).items()}


def require_finding(number: int, by: Actor) -> None:
    """Raise FindingNotFound for a finding that isn't there, and in the same words for one that they may not read."""
    if number not in readable_findings([number], by):
        raise FindingNotFound(f"There is no finding {number}; leave it out.", finding=number)


def origin_of(found: OriginFinding | None) -> dict[str, Any] | None:
    """Where something came from, as programs get it; None where it is from nothing, or from what they may not read."""
    return None if found is None else {"finding": asdict(found)}
