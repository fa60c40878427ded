"""Checks of a plan that the registry itself answers: compatibility, references, modes, policies, schema ids. Pure.

A check that doesn't pass says what would fix it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.errors import InvalidSchema, SchemaTooCostly, first_few
from registry.formats import compatibility as levels
from registry.formats.base import ParsedSchema
from registry.formats.report import Report, ReportItem
from registry.promotions.plan.types import (
    ADOPT,
    FAIL,
    GIVEN_ID,
    OTHER_ID,
    PASS,
    REPEAT,
    SKIPPED,
    UNKNOWN_ID,
    WARN,
    Check,
    IncomingVersion,
    PlanStep,
    Target,
    TargetState,
    TargetVersion,
    Verdict,
)
from registry.subjects.comparison.comparison import LENIENT_POLICY, check_fields
from registry.subjects.engine import schema_engine
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.policy.data_contracts import Contract, property_of
from registry.subjects.policy.effective_policy import MIRROR_MODE, NO_POLICY
from registry.subjects.versions.parsed_schemas import parse_schema

_NO_LEVEL = "NONE"


@dataclass(frozen=True)
class CompatibilityResult:
    """The compatibility check, with its report if there was a version to compare with."""

    check: Check
    report: Report | None = None
    breaking: bool = False


def mode(subject: str, state: TargetState, step: PlanStep, *, can_bring_id: bool) -> Check:
    """Check whether the target's mode allows the step to write."""
    name = f"mode of {subject}"
    if step.kind == ADOPT:
        return Check("mode", name, PASS, "Nothing is written, because the version already exists.", subject=subject)
    if not step.writes:
        there = f"The target already has this schema as version {step.target_version}. Nothing is written."
        return Check("mode", name, PASS, there, subject=subject)
    if state.mode == MIRROR_MODE:
        sentence = f"The target is in mode {state.mode}, which also blocks releases."
        return Check("mode", name, FAIL, sentence, "Set the target to READONLY or READWRITE.", subject=subject)
    if state.mode in MODES_WITH_IDS and step.kind == REPEAT:
        sentence = f"The target is in mode {state.mode}, which can't write a repeated version under a new number."
        return Check("mode", name, FAIL, sentence, "Set the target to READONLY or READWRITE.", subject=subject)
    if state.mode in MODES_WITH_IDS and not can_bring_id:
        taken = "has no id" if step.source_id is None else f"has id {step.source_id}, which is already used there"
        sentence = f"The target is in mode {state.mode}, which only accepts versions with their ids. This one {taken}."
        return Check("mode", name, FAIL, sentence, "Set the target to READONLY or READWRITE.", subject=subject)
    sentence = f"The target is in mode {state.mode}. A release can write version {step.target_version}."
    return Check("mode", name, PASS, sentence, subject=subject)


def references(item: IncomingVersion, step: PlanStep, target: Target) -> list[Check]:
    """Check whether the target will have what the step refers to; no check for a schema without references."""
    name = f"references of {item.subject}"
    if item.problem:
        cure = "Register or promote the referenced schemas first, or change the references."
        return [Check("references", name, FAIL, item.problem, cure, subject=item.subject)]
    if not step.references:
        return []
    owned = sorted({subject for subject, _ in item.needs if subject in target.owned}) if step.adds else []
    if owned:
        sentence = f"In the target, {', '.join(owned)} has a strong association, so other schemas can't refer to it."
        cure = "End the strong association in the target, or refer to another subject."
        return [Check("references", name, FAIL, sentence, cure, subject=item.subject)]
    referred = first_few([f"{ref.subject} version {ref.version}" for ref in step.references])
    return [Check("references", name, PASS, f"It refers to {referred} in the target.", subject=item.subject)]


def well_formed(item: IncomingVersion, schema: ParsedSchema, state: TargetState) -> list[Check]:
    """Check whether the target accepts the text as a new schema, which an import into the source may have bypassed.

    No check for a text that it accepts.
    """
    if state.mode in MODES_WITH_IDS or state.settings.validate_new_schemas is False:
        return []
    try:
        parse_schema(item.schema_type, item.text, schema_engine.references_of(schema))
    except (InvalidSchema, SchemaTooCostly) as error:
        cure = "Change the schema, or turn off validation in the target (validateNewSchemas false)."
        sentence = f"The target rejects it as a new schema: {error.message}"
        return [Check("schema", f"text of {item.subject}", FAIL, sentence, cure, subject=item.subject)]
    return []


def status(item: IncomingVersion, step: PlanStep) -> list[Check]:
    """Check whether the version's status allows promoting it; adopting is the way out of quarantine."""
    if not step.adds or not item.version:
        return []
    name = f"status of {item.subject}"
    if not item.status:
        return [Check("status", name, PASS, f"Version {item.version} is active.", subject=item.subject)]
    sentence = f"Version {item.version} of {item.subject} is {item.status}, so it can't be promoted."
    cure = "Change its status on the subject's page, or request another version."
    return [Check("status", name, FAIL, sentence, cure, subject=item.subject)]


def compatibility(
    subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None
) -> CompatibilityResult:
    """Check the schema against every version that the target's level compares with."""
    name = f"compatibility of {subject}"
    history = compared_with(state, metadata)
    if not history:
        sentence = "The target has no version yet, so nothing can break."
        return CompatibilityResult(Check("compatibility", name, PASS, sentence, subject=subject))
    try:
        report = judged = _checked(schema, history, state, state.level)
        if state.level == _NO_LEVEL:
            judged = _checked(schema, history, state, "BACKWARD")
    except SchemaTooCostly as error:
        cure = "Use smaller schemas, or fewer versions in the target."
        return CompatibilityResult(
            Check("compatibility", name, FAIL, error.message, cure, overridable=True, subject=subject)
        )
    return CompatibilityResult(_compatibility_check(name, subject, state, judged), report, not judged.is_compatible)


def _checked(
    schema: ParsedSchema, history: Sequence[tuple[int, ParsedSchema]], state: TargetState, level: str
) -> Report:
    lenient = state.settings.compatibility_policy == LENIENT_POLICY
    return schema_engine.check(schema, history, level, profile=state.profile, lenient=lenient)


def _compatibility_check(name: str, subject: str, state: TargetState, report: Report) -> Check:
    if state.level == _NO_LEVEL and not report.is_compatible:
        sentence = "The target's level is NONE, so nothing is checked. The schema would break BACKWARD."
        return Check("compatibility", name, WARN, sentence, "Set a level in the target.", subject=subject)
    breaks = report.breaks
    if report.is_compatible:
        sentence = f"Compatible with {_versions(report.versions)} in the target under {state.level}"
        if state.level == _NO_LEVEL:
            sentence = "The target's level is NONE. The schema would be compatible with BACKWARD"
        verdict: Verdict = WARN if report.hazards else PASS
        sentence, cure = f"{sentence}{hazards_in_words(report)}", cure_of(report.hazards)
        return Check("compatibility", name, verdict, sentence, cure, subject=subject)
    count = f"{len(breaks)} place{'s' if len(breaks) != 1 else ''}"
    broken = _versions(sorted({item.against_version for item in breaks}, reverse=True))
    sentence = f"Breaks {state.level} in the target in {count}, compared with {broken}."
    if breaks:
        sentence += f" First: {_break_location(breaks[0])}"
    cure = cure_of(breaks) or "Change the schema so that it fits the level."
    return Check("compatibility", name, FAIL, sentence, cure, overridable=True, subject=subject)


def hazards_in_words(report: Report) -> str:
    """Return the end of a sentence about a passing report: what its hazards do to values, or what else to review."""
    changing = [item for item in report.hazards if item.severity == "value loss"]
    shown = changing or report.hazards
    if not shown:
        return "."
    count = len({item.named_path for item in shown})
    places = f"{count} place{'s' if count > 1 else ''}"
    what = f"but values change in {places}" if changing else f"but review {places}"
    return f", {what}. First: {_break_location(shown[0])}"


def cure_of(items: Sequence[ReportItem]) -> str:
    """Return the first remedy, as a sentence; "" if there is none."""
    remedy = next((item.remedy for item in items if item.remedy), "")
    return f"{remedy[:1].upper()}{remedy[1:].rstrip('.')}." if remedy else ""


def _break_location(item: ReportItem) -> str:
    return f"{item.message} at {item.named_path or 'its root'} (version {item.against_version})."


def compared_with(state: TargetState, metadata: Contract | None) -> list[tuple[int, ParsedSchema]]:
    """Return the versions that a new one is compared with: all, or those of its compatibility group."""
    group = state.settings.compatibility_group
    rows: Sequence[TargetVersion] = state.history
    if group:
        rows = [version for version in rows if property_of(version.metadata, group) == property_of(metadata, group)]
    return [(version.version, version.schema) for version in rows if version.schema is not None]


def policy(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> list[Check]:
    """Return the verdict of the target's schema policy; no check if it has none."""
    if state.policy == NO_POLICY:
        return []
    report = schema_engine.check_policy(state.policy, schema, compared_with(state, metadata))
    verdict = f"It is {report.verdict} under {state.policy}"
    details = f": {'; '.join(report.messages())}" if report.items else ""
    name = f"policy of {subject}"
    if report.is_accepted():
        return [Check("policy", name, PASS, f"{verdict}{details}.", subject=subject)]
    can_force = report.is_accepted(force=True)
    cure = f"Change the schema so that {state.policy} allows it, or set another policy in the target."
    return [Check("policy", name, FAIL, f"{verdict}{details}.", cure, overridable=can_force, subject=subject)]


def reserved_fields(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> list[Check]:
    """Check whether reserved fields stay reserved and unused, if the target's config requires it."""
    if not state.settings.validate_fields:
        return []
    name, before = f"reserved fields of {subject}", state.history[-1].metadata if state.history else None
    try:
        messages = check_fields(schema, state.settings, metadata, before).messages()
    except InvalidSchema as error:
        messages = [error.message]
    if not messages:
        return [
            Check("reserved-fields", name, PASS, "Reserved fields are still reserved and not used.", subject=subject)
        ]
    cure = "Keep the reserved fields in the metadata, and don't use any of them."
    return [Check("reserved-fields", name, FAIL, "; ".join(messages), cure, subject=subject)]


def not_undone(item: IncomingVersion, state: TargetState, step: PlanStep) -> Check:
    """Return the check that says what a rollback doesn't undo."""
    later = [version.version for version in state.history if version.version > item.version]
    sentence = (
        f"Version {item.version} becomes current again as version {step.target_version}. Not undone:"
        f" {_versions(later)} {'stay' if len(later) > 1 else 'stays'} registered, and messages and state written with"
        f" {'them' if len(later) > 1 else 'it'} are not changed."
    )
    return Check("roll-back", f"rollback of {item.subject}", WARN, sentence, subject=item.subject)


def config(subject: str, state: TargetState, changes: Mapping[str, Any]) -> Check:
    """Check what the promoted config changes at the target, after the versions are registered."""
    name = f"config of {subject}"
    if not changes:
        return Check("config", name, PASS, "The target already has these settings.", subject=subject)
    sentence = f"Sets {', '.join(sorted(changes))} in the target after the versions are written."
    level = changes.get("level")
    if level and _weakens(state.level, level):
        sentence += f" The level changes from {state.level} to {level}, which is weaker."
        cure = f"Leave out the settings, or set {state.level} in the source."
        return Check("config", name, WARN, sentence, cure, subject=subject)
    return Check("config", name, PASS, sentence, subject=subject)


def _weakens(before: str, after: str) -> bool:
    """Return whether the new level allows what the old one forbids."""
    old, new = levels.LEVELS[before], levels.LEVELS[after]
    scopes = ("none", "latest", "all")
    return not set(old.directions) <= set(new.directions) or scopes.index(new.scope) < scopes.index(old.scope)


_ON_APPLY: Final = "They are assigned when the request is applied."


def ids(steps: Sequence[PlanStep]) -> list[Check]:
    """Check how the target's schema ids compare with the source's, if there is a source."""
    brought = [step for step in steps if step.source_id is not None and step.kind != REPEAT]
    if not brought:
        return []
    other = [step for step in brought if step.id_outlook == OTHER_ID]
    if other:
        mapping = first_few([f"{step.subject}: {step.source_id} → {step.expected_id}" for step in other])
        sentence = f"Schema ids are expected to differ in the target ({mapping}). {_ON_APPLY}"
        cure = "This is normal. If messages are copied between environments, promote the ids in mode IMPORT."
        return [Check("ids", "schema ids", WARN, sentence, cure)]
    unknown = [step for step in brought if step.id_outlook == UNKNOWN_ID]
    if unknown:
        sentence = f"The target assigns the ids of {first_few([step.subject for step in unknown])} when it writes them."
        return [Check("ids", "schema ids", SKIPPED, sentence)]
    is_given = any(step.id_outlook == GIVEN_ID for step in brought)
    kept = "The schema ids of the source"
    sentence = f"{kept} are kept, set by the import." if is_given else f"{kept} are expected in the target. {_ON_APPLY}"
    return [Check("ids", "schema ids", PASS, sentence)]


def something_to_do(steps: Sequence[PlanStep], newest: Mapping[str, int]) -> Check:
    """Check whether the plan does anything; `newest` has the newest version of each subject at the target."""
    if any(step.writes for step in steps):
        return Check("something-to-do", "changes to apply", PASS, "Not yet in the target.")
    sentence = "The target already has everything in this request."
    older = next((step for step in steps if step.asked and 0 < step.target_version < newest.get(step.subject, 0)), None)
    if older is None:
        return Check("something-to-do", "changes to apply", FAIL, sentence, "No promotion is needed.")
    sentence = f"{sentence} It has {older.subject} as version {older.target_version}, which isn't its newest."
    cure = f"If it should be current again, request a rollback to version {older.target_version}."
    return Check("something-to-do", "changes to apply", FAIL, sentence, cure)


def _versions(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no version"
    return f"version{'s' if len(numbers) > 1 else ''} {first_few([str(number) for number in numbers])}"
