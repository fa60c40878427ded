"""What other apps add to promotions through `registry.hooks`: checks and facts of a plan, and origin findings.

Findings belong to another app, which decides who may read them. A request stores only the number of the finding that it
answers: the finding may be deleted later, and readers without the right learn nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from registry import hooks
from registry.access.roles import Actor
from registry.errors import FindingNotFound
from registry.promotions.checks.source_checks import open_breaks
from registry.promotions.plan.types import SOURCE_DRIFT, Check, Plan, PlanStep
from registry.promotions.requests.infos import RequestInfo
from registry.subjects.models import Registry
from registry.subjects.versions.lookup import get_registry

#: the checks of another app, from the target, the plan's steps and the number of the finding that the request answers,
#: if any; in a constant number of queries
Outlook = Callable[[Registry, Sequence[PlanStep], int | None], Sequence[Check]]
#: what those checks depend on, for registries and subjects (None: all): a text that changes with it, by registry key
#: and qualified subject; in a constant number of queries
Facts = Callable[[Collection[Registry], Collection[str] | None], Mapping[int, Mapping[str, str]]]


@dataclass(frozen=True)
class JobRelease:
    """The next release of a streaming query: its name, and its description by `schemadesk_spark`, as JSON values."""

    query: str
    description: Any


#: another app's checks of such releases in the target; it raises if a query is unknown or a description is invalid
ReleaseChecks = Callable[[Registry, Sequence[JobRelease], Actor], Sequence[Check]]


def checks_of_releases(target: Registry, releases: Sequence[JobRelease], by: Actor) -> tuple[Check, ...]:
    """Return the checks of all apps; a release that is only in part checked has one that neither passes nor fails."""
    return tuple(check for ask in hooks.release_checks for check in ask(target, releases, by)) if releases else ()


@dataclass(frozen=True)
class CheckProvider:
    """Another app's checks, and the facts that they depend on, which tell when stored answers are stale.

    Without `facts` the board treats the checks as ones that never fail, and doesn't watch for changes.
    """

    checks: Outlook
    facts: Facts | None = None


def checks_from_outside(target: Registry, plan: Plan, answers: int | None = None) -> tuple[Check, ...]:
    """Return the checks of all providers for a plan."""
    return tuple(check for provider in hooks.promotion_checks for check in provider.checks(target, plan.steps, answers))


def facts_of(targets: Collection[Registry], subjects: Collection[str] | None = None) -> dict[int, dict[str, str]]:
    """Return registry → subject → all facts that other apps provide."""
    facts_by_registry: dict[int, dict[str, list[str]]] = {}
    for name, provider in hooks.promotion_checks.items():
        for registry, by_subject in provider.facts(targets, subjects).items() if provider.facts else ():
            for subject, fact in by_subject.items():
                facts_by_registry.setdefault(registry, {}).setdefault(subject, []).append(f"{name}: {fact}")
    return {
        registry: {name: "; ".join(facts) for name, facts in by_subject.items()}
        for registry, by_subject in facts_by_registry.items()
    }


#: the largest possible primary key
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
    """Return the existing findings that the actor may read, by number; no query if there is no number."""
    valid = {number for number in numbers if number is not None and 0 < number <= _MAX_NUMBER}
    if not valid:
        return {}
    return {number: finding for lookup in hooks.origin_findings for number, finding in lookup(valid, by).items()}


def require_finding(number: int, by: Actor) -> None:
    """Raise FindingNotFound for a missing finding, and also for one that the actor may not read."""
    if number not in readable_findings([number], by):
        raise FindingNotFound(f"Finding {number} not found. Leave it out.", finding=number)


def origin_of(finding: OriginFinding | None) -> dict[str, Any] | None:
    """Return the origin of a draft or request for the API; None if there is none, or the actor may not read it."""
    return None if finding is None else {"finding": asdict(finding)}


def source_findings(info: RequestInfo, by: Actor) -> list[OriginFinding]:
    """Return the open findings of the subjects that the request's source check names; no query if it names none."""
    subjects = [str(check["subject"]) for check in info.checks if check.get("code") == SOURCE_DRIFT]
    if not subjects or not info.source:
        return []
    numbers = [number for listed in open_breaks(get_registry(info.source), subjects).values() for number in listed]
    findings = readable_findings(numbers, by)
    return [findings[number] for number in numbers if number in findings]
