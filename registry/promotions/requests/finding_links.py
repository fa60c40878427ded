"""The finding that a proposed schema answers, and open break findings at the source of a request.

Findings belong to another app, which registers in `registry.hooks` and decides who may read them. A request stores only
the number: the finding may be deleted later, and readers without the right learn nothing about it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Final

from registry import hooks
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
    """A finding that led to a draft or a request, for an actor who may read it."""

    id: int
    registry: str
    sentence: str
    severity: str
    state: str


def readable_findings(numbers: Collection[int | None], by: Actor) -> dict[int, OriginFinding]:
    """The existing findings that the actor may read, by number; no query if there is no number."""
    valid = {number for number in numbers if number is not None and 0 < number <= _MAX_NUMBER}
    if not valid:
        return {}
    return {number: finding for lookup in hooks.origin_findings for number, finding in lookup(valid, by).items()}


def require_finding(number: int, by: Actor) -> None:
    """Raise FindingNotFound for a missing finding, and likewise for one that the actor may not read."""
    if number not in readable_findings([number], by):
        raise FindingNotFound(f"Finding {number} not found. Leave it out.", finding=number)


def origin_of(finding: OriginFinding | None) -> dict[str, Any] | None:
    """The origin of a draft or request for the API; None if there is none, or the actor may not read it."""
    return None if finding is None else {"finding": asdict(finding)}


def source_findings(info: RequestInfo, by: Actor) -> list[OriginFinding]:
    """The open findings of the subjects that the request's source check names; no query if it names none."""
    subjects = [str(check["subject"]) for check in info.checks if check.get("code") == SOURCE_DRIFT]
    if not subjects or not info.source:
        return []
    numbers = [number for listed in open_breaks(get_registry(info.source), subjects).values() for number in listed]
    findings = readable_findings(numbers, by)
    return [findings[number] for number in numbers if number in findings]
