"""Checks of the source environment: open break findings, which another app provides, and newer versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from registry import hooks
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import (
    NEWER,
    SOURCE_DRIFT,
    WARN,
    WRITING,
    Check,
    IncomingVersion,
    Plan,
    PromotionSpec,
)
from registry.subjects.models import Registry

_CURE: Final = "Resolve or acknowledge the open findings, or approve the request with a comment that explains why."
#: request → subject → the number of its open break findings at the source
SourceBreaks = Mapping[int, Mapping[str, int]]


def open_breaks(registry: Registry, subjects: Collection[str]) -> dict[str, list[int]]:
    """Return the numbers of the open break findings by subject; subjects without any are left out."""
    breaks: dict[str, list[int]] = {}
    for ask in hooks.open_breaks:
        for subject, numbers in ask(registry, subjects).items():
            breaks.setdefault(subject, []).extend(numbers)
    return breaks


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
        if subject in breaks:
            checks.append(_break_check(registry.name, subject, len(breaks[subject])))
        if (newer := newest.get(subject, 0)) > step.source_version:
            sentence = (
                f"{registry.name} has version {newer} of {subject}. This request promotes version"
                f" {step.source_version}."
            )
            cure = "Request the newest version if you meant that one."
            checks.append(Check(NEWER, f"newest version of {subject}", WARN, sentence, cure, subject=subject))
    return checks


def _break_check(registry: str, subject: str, count: int) -> Check:
    sentence = f"{count} open break finding{'s' if count > 1 else ''} for {subject} in {registry}."
    name = f"drift of {subject} in the source"
    return Check(SOURCE_DRIFT, name, WARN, sentence, _CURE, subject=subject, binding=True)


def source_breaks(requests: Iterable[PromotionRequest]) -> SourceBreaks:
    """Return the open break findings at the sources of open requests; one query for each source environment."""
    rows = [row for row in requests if row.source is not None]
    subjects: dict[Registry, set[str]] = {}
    for row in rows:
        if row.source is not None:
            subjects.setdefault(row.source.registry, set()).update(_promoted(row.plan))
    found = {registry.pk: open_breaks(registry, names) for registry, names in subjects.items() if names}
    breaks: dict[int, dict[str, int]] = {}
    for row in rows:
        numbers = found.get(row.source.registry_id, {}) if row.source else {}
        breaks[row.pk] = {name: len(numbers[name]) for name in _promoted(row.plan) if name in numbers}
    return breaks


def _promoted(plan: Mapping[str, Any]) -> list[str]:
    """Return the subjects that a stored plan writes from the source."""
    steps = (step for step in plan["steps"] if step.get("source_version") and step.get("kind") in WRITING)
    return [str(step["subject"]) for step in steps]


def with_source_breaks(plan: Mapping[str, Any], registry: str, breaks: Mapping[str, int]) -> dict[str, Any]:
    """Return a stored plan with the current checks of open breaks, so that no request looks better than its source."""
    checks = [check for check in plan["checks"] if check.get("code") != SOURCE_DRIFT]
    current = [_break_check(registry, subject, count).to_dict() for subject, count in breaks.items()]
    return {**plan, "checks": [*checks, *current]}
