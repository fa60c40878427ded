"""What a promotion would do: pure, so that what the approver reads is what runs.

`plan_promotion` is given the wanted schemas in dependency order and what the target holds now; the
plan's hash covers all of it that matters, so any movement of the target, its level or the schemas
gives another hash, and an approval of the earlier plan no longer counts. The schema id that the
target will give is an expectation, not part of the hash: an unrelated registration moves it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from registry.formats.base import ParsedSchema, Reference
from registry.formats.report import Profile, Report
from registry.subjects import engines
from registry.subjects.selectors.effective import NO_POLICY

REGISTER, ALREADY_THERE = "register", "already there"
PASS, WARN, FAIL = "pass", "warn", "fail"


@dataclass(frozen=True)
class Wanted:
    """A version of the source environment, with its references as they are written there."""

    subject: str
    version: int
    schema: ParsedSchema
    submitted: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class TargetState:
    """What the target holds of a subject now; `history` has its live versions, ascending."""

    level: str
    mode: str
    history: tuple[tuple[int, ParsedSchema], ...] = ()
    next_version: int = 1
    profile: Profile = "confluent"
    policy: str = NO_POLICY


@dataclass(frozen=True)
class Step:
    """One registration at the target, or the statement that it isn't needed."""

    subject: str
    source_version: int
    target_version: int
    action: str
    schema_type: str
    fingerprint: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Check:
    """A condition of the plan; one that fails keeps it from being approved and applied."""

    name: str
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Plan:
    """Steps in dependency order, the checks, and the reports of compatibility by subject."""

    steps: tuple[Step, ...]
    checks: tuple[Check, ...]
    reports: Mapping[str, Report] = field(default_factory=dict)

    @property
    def can_run(self) -> bool:
        """Whether no check fails and there is anything to do."""
        return all(item.verdict != FAIL for item in self.checks) and any(s.action == REGISTER for s in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values, without what is only said for people."""
        return {"steps": [asdict(step) for step in self.steps], "checks": [asdict(item) for item in self.checks]}

    @property
    def hash(self) -> str:
        """SHA-256 of the plan."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def plan_promotion(wanted: Sequence[Wanted], target: Mapping[str, TargetState]) -> Plan:
    """The plan that brings the wanted versions, the last one being the requested one, to the target."""
    steps: list[Step] = []
    checks: list[Check] = []
    reports: dict[str, Report] = {}
    numbers: dict[tuple[str, int], int] = {}
    for item in wanted:
        state = target[item.subject]
        step = _step(item, state, numbers)
        numbers[item.subject, item.version] = step.target_version
        steps.append(step)
        checks.append(_mode_check(item.subject, state, step))
        if step.action == REGISTER:
            report = _report(item, state)
            checks.append(_compatibility_check(item, state, report))
            if report is not None:
                reports[item.subject] = report
            if state.policy != NO_POLICY:
                checks.append(_policy_check(item, state))
    checks.append(_something_to_do(steps))
    return Plan(tuple(steps), tuple(checks), reports)


def _step(item: Wanted, state: TargetState, numbers: Mapping[tuple[str, int], int]) -> Step:
    there = next(
        (number for number, schema in reversed(state.history) if schema.fingerprint == item.schema.fingerprint), None
    )
    references = tuple(Reference(ref.name, ref.subject, numbers[ref.subject, ref.version]) for ref in item.references)
    return Step(
        subject=item.subject,
        source_version=item.version,
        target_version=there or state.next_version,
        action=ALREADY_THERE if there else REGISTER,
        schema_type=item.schema.schema_type,
        fingerprint=item.schema.fingerprint,
        text=item.submitted,
        references=references,
    )


def _mode_check(subject: str, state: TargetState, step: Step) -> Check:
    name = f"mode of {subject}"
    if step.action == ALREADY_THERE:
        return Check(name, PASS, f"The target has this schema as version {step.target_version}; nothing is written.")
    if state.mode in ("READONLY_OVERRIDE", "IMPORT"):
        return Check(name, FAIL, f"The target is in mode {state.mode}, which stops releases too.")
    return Check(name, PASS, f"The target is in mode {state.mode}; a release may write version {step.target_version}.")


def _report(item: Wanted, state: TargetState) -> Report | None:
    if not state.history:
        return None
    return engines.check(item.schema, state.history, state.level, profile=state.profile)


def _compatibility_check(item: Wanted, state: TargetState, report: Report | None) -> Check:
    name = f"compatibility of {item.subject}"
    if report is None:
        return Check(name, PASS, "The target has no version yet: nothing to break.")
    newest = state.history[-1][0]
    if report.is_compatible:
        return Check(name, PASS, f"Holds {state.level} at the target, whose latest version is {newest}.")
    breaks = len(report.breaks)
    return Check(name, FAIL, f"Breaks {state.level} at the target in {breaks} place{'s' if breaks != 1 else ''}.")


def _policy_check(item: Wanted, state: TargetState) -> Check:
    report = engines.check_policy(state.policy, item.schema, state.history)
    said = f"{report.verdict} under {state.policy}"
    details = f": {'; '.join(report.messages())}" if report.items else ""
    return Check(f"policy of {item.subject}", PASS if report.is_accepted() else FAIL, f"It is {said}{details}.")


def _something_to_do(steps: Sequence[Step]) -> Check:
    if any(step.action == REGISTER for step in steps):
        return Check("something to do", PASS, "The target lacks what is promoted.")
    return Check("something to do", FAIL, "The target has all of this already.")
