"""What other apps add to promotions through `registry.hooks`: checks and facts of a plan, open breaks, origin findings.

The source environment is checked for open break findings, which another app provides, and for newer versions. Findings
belong to that app, which decides who may read them. A request stores only the number of the finding that it answers:
the finding may be deleted later, and readers without the right learn nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from registry import hooks
from registry.access.roles import Actor
from registry.errors import FindingNotFound
from registry.promotions.plan.types import (
    NEWER,
    SOURCE_DRIFT,
    WARN,
    Check,
    IncomingVersion,
    Plan,
    PlanStep,
    PromotionSpec,
)
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


def open_breaks(registry: Registry, subjects: Collection[str]) -> dict[str, list[int]]:
    """Return the numbers of the open break findings by subject; subjects without any are left out."""
    breaks: dict[str, list[int]] = {}
    for ask in hooks.open_breaks:
        for subject, numbers in ask(registry, subjects).items():
            breaks.setdefault(subject, []).extend(numbers)
    return breaks


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


_CURE: Final = "Resolve or acknowledge the open findings, or approve the request with a comment that explains why."


def checks_of_source(spec: PromotionSpec, plan: Plan, items: Sequence[IncomingVersion]) -> list[Check]:
    """Return checks per written subject: open break findings at the source, and a newer version there.

    The findings are only counted, because a reader of the request may not be allowed to read the source. An approval
    binds to the first check, so a break that opens later voids it. One query; no checks without a source.
    """
    if spec.source is None or spec.source.pk == spec.target.pk:
        return []
    registry = spec.source.registry
    steps = {step.subject: step for step in plan.steps if step.writes and step.source_version}
    if not steps:
        return []
    breaks = open_breaks(registry, list(steps))
    newest = {item.subject: item.newest for item in items if item.requested}
    checks = []
    for subject, step in steps.items():
        newer = newest.get(subject, 0)
        is_newer = newer > step.source_version
        if subject in breaks:
            count = len(breaks[subject])
            sentence = f"{count} open break finding{'s' if count > 1 else ''} for {subject} in {registry.name}."
            if is_newer:
                sentence += f" Version {newer} there is newer than version {step.source_version} in this request."
            checks.append(
                Check(
                    SOURCE_DRIFT,
                    f"drift of {subject} in the source",
                    WARN,
                    sentence,
                    _CURE,
                    subject=subject,
                    binding=True,
                )
            )
        if is_newer:
            sentence = (
                f"{registry.name} has version {newer} of {subject}. This request promotes version"
                f" {step.source_version}."
            )
            cure = "Request the newest version if you meant that one."
            checks.append(Check(NEWER, f"newest version of {subject}", WARN, sentence, cure, subject=subject))
    return checks


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
