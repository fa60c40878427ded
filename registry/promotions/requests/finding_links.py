"""The finding that a proposed schema answers, and open break findings at the source of a request.

Findings belong to another app, which registers here when it starts and says who may read them. A request stores the
number alone: the finding may be gone later, and whoever may not read it learns nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from registry.access.roles import Actor
from registry.errors import FindingNotFound
from registry.promotions.checks.check_plugins import open_breaks
from registry.promotions.plan.types import SOURCE_DRIFT
from registry.promotions.requests.infos import RequestInfo
from registry.subjects.versions.lookup import get_registry

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
FindingLookup = Callable[[Collection[int], Actor], Mapping[int, OriginFinding]]
#: name → whom to ask
FINDERS: Final[dict[str, FindingLookup]] = {}


def find_origins(name: str, ask: FindingLookup) -> None:
    """Adds one, or replaces the one of that name; called when an app starts."""
    FINDERS[name] = ask


def readable_findings(numbers: Collection[int | None], by: Actor) -> dict[int, OriginFinding]:
    """Those that are there and that the actor may read, by number; no query where no number is given."""
    valid = {number for number in numbers if number is not None and 0 < number <= _MAX_NUMBER}
    if not valid:
        return {}
    return {number: finding for ask in FINDERS.values() for number, finding in ask(valid, by).items()}


def require_finding(number: int, by: Actor) -> None:
    """Raise FindingNotFound for a finding that isn't there, and in the same words for one that they may not read."""
    if number not in readable_findings([number], by):
        raise FindingNotFound(f"There is no finding {number}; leave it out.", finding=number)


def origin_of(finding: OriginFinding | None) -> dict[str, Any] | None:
    """Where something came from, as programs get it; None where it is from nothing, or from what they may not read."""
    return None if finding is None else {"finding": asdict(finding)}


def source_findings(info: RequestInfo, by: Actor) -> list[OriginFinding]:
    """Those that are open now of the subjects that the request's checks name; no query where they name none."""
    subjects = [str(check["subject"]) for check in info.checks if check.get("code") == SOURCE_DRIFT]
    if not subjects or not info.source:
        return []
    numbers = [number for listed in open_breaks(get_registry(info.source), subjects).values() for number in listed]
    findings = readable_findings(numbers, by)
    return [findings[number] for number in numbers if number in findings]
