"""Checks of a plan that the registry itself answers: compatibility, references, modes, policies, schema ids. Pure.

A check that doesn't pass says what would fix it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.errors import InvalidSchema, SchemaTooCostly
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
)
from registry.subjects.comparison.comparison import LENIENT_POLICY, check_fields
from registry.subjects.engine import schema_engine
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.policy.data_contracts import Contract, property_of
from registry.subjects.policy.effective_policy import MIRROR_MODE, NO_POLICY
from registry.subjects.versions.parsed_schemas import parse_schema

_NO_LEVEL = "NONE"
#: names in a sentence before "and … more"
_NAMED = 5


@dataclass(frozen=True)
class CompatibilityResult:
    """The compatibility check, with its report if there was a version to compare with."""

    check: Check
    report: Report | None = None
    breaking: bool = False


def mode(subject: str, state: TargetState, step: PlanStep, *, can_bring_id: bool) -> Check:
    """Whether the target's mode allows the step to write."""
    name = f"mode of {subject}"
    if step.kind == ADOPT:
        return Check("mode", name, PASS, "Nothing is written: the version is there.", subject=subject)
    if not step.writes:
        there = f"The target has this schema as version {step.target_version}; nothing is written."
        return Check("mode", name, PASS, there, subject=subject)
    if state.mode == MIRROR_MODE:
        sentence = f"The target is in mode {state.mode}, which stops releases too."
        return Check("mode", name, FAIL, sentence, "Set the target to READONLY or READWRITE.", subject=subject)
    if state.mode in MODES_WITH_IDS and step.kind == REPEAT:
        sentence = (
            f"The target is in mode {state.mode}, which takes versions as they come and can't number a repeated one."
        )
        return Check("mode", name, FAIL, sentence, "Set the target to READONLY or READWRITE.", subject=subject)
    if state.mode in MODES_WITH_IDS and not can_bring_id:
        taken = "has no id to bring" if step.source_id is None else f"brings id {step.source_id}, which is taken there"
        sentence = f"The target is in mode {state.mode}, which takes versions with their ids alone; this one {taken}."
        return Check("mode", name, FAIL, sentence, "Set the target to READONLY or READWRITE.", subject=subject)
    sentence = f"The target is in mode {state.mode}; a release may write version {step.target_version}."
    return Check("mode", name, PASS, sentence, subject=subject)


def references(item: IncomingVersion, step: PlanStep, target: Target) -> list[Check]:
    """Whether the target will have what the step refers to; no check for a schema without references."""
    name = f"references of {item.subject}"
    if item.problem:
        cure = "Register or promote what it refers to first, or change its references."
        return [Check("references", name, FAIL, item.problem, cure, subject=item.subject)]
    if not step.references:
        return []
    owned = sorted({subject for subject, _ in item.needs if subject in target.owned}) if step.adds else []
    if owned:
        sentence = f"At the target {', '.join(owned)} belongs to a resource alone, so nothing may refer to it."
        cure = "End the strong association at the target, or refer to another subject."
        return [Check("references", name, FAIL, sentence, cure, subject=item.subject)]
    listed = _listed([f"{ref.subject} version {ref.version}" for ref in step.references])
    return [Check("references", name, PASS, f"It refers to {listed} of the target.", subject=item.subject)]


def well_formed(item: IncomingVersion, schema: ParsedSchema, state: TargetState) -> list[Check]:
    """Whether the target accepts the text as a new schema, which an import into the source may have bypassed.

    No check for a text that it accepts.
    """
    if state.mode in MODES_WITH_IDS or state.settings.validate_new_schemas is False:
        return []
    try:
        parse_schema(item.schema_type, item.text, schema_engine.references_of(schema))
    except (InvalidSchema, SchemaTooCostly) as error:
        cure = "Change the schema, or let the target take such schemas (validateNewSchemas false)."
        sentence = f"The target doesn't take it as a new schema: {error.message}"
        return [Check("schema", f"text of {item.subject}", FAIL, sentence, cure, subject=item.subject)]
    return []


def standing(item: IncomingVersion, step: PlanStep) -> list[Check]:
    """Whether the version may be promoted by its standing; adopting is the way out of quarantine."""
    if not step.adds or not item.version:
        return []
    name = f"standing of {item.subject}"
    if not item.standing:
        return [Check("standing", name, PASS, f"Version {item.version} is in good standing.", subject=item.subject)]
    sentence = f"Version {item.version} of {item.subject} is {item.standing}, and such a version isn't promoted."
    cure = "Take that back where it was decided, or ask for another version."
    return [Check("standing", name, FAIL, sentence, cure, subject=item.subject)]


def compatibility(
    subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None
) -> CompatibilityResult:
    """Whether the schema passes the target's level against every version that the level compares with."""
    name = f"compatibility of {subject}"
    history = compared_with(state, metadata)
    if not history:
        sentence = "The target has no version yet: nothing to break."
        return CompatibilityResult(Check("compatibility", name, PASS, sentence, subject=subject))
    try:
        report = _checked(schema, history, state, state.level)
        breaking = not report.is_compatible
        if state.level == _NO_LEVEL:
            breaking = not _checked(schema, history, state, "BACKWARD").is_compatible
    except SchemaTooCostly as error:
        cure = "Use smaller schemas, or fewer versions at the target."
        return CompatibilityResult(
            Check("compatibility", name, FAIL, error.message, cure, overridable=True, subject=subject)
        )
    return CompatibilityResult(_compatibility_check(name, subject, state, report, breaking=breaking), report, breaking)


def _checked(
    schema: ParsedSchema, history: Sequence[tuple[int, ParsedSchema]], state: TargetState, level: str
) -> Report:
    lenient = state.settings.compatibility_policy == LENIENT_POLICY
    return schema_engine.check(schema, history, level, profile=state.profile, lenient=lenient)


def _compatibility_check(name: str, subject: str, state: TargetState, report: Report, *, breaking: bool) -> Check:
    versions = _versions(report.versions)
    if state.level == _NO_LEVEL and breaking:
        sentence = "The target's level is NONE, so nothing is checked there; it would break BACKWARD."
        return Check("compatibility", name, WARN, sentence, "Set a level at the target.", subject=subject)
    if state.level == _NO_LEVEL:
        return Check(
            "compatibility", name, PASS, "The target's level is NONE; it would hold BACKWARD.", subject=subject
        )
    if report.is_compatible:
        sentence = f"Holds {state.level} at the target against {versions}."
        return Check("compatibility", name, PASS, sentence, subject=subject)
    breaks = report.breaks
    count = f"{len(breaks)} place{'s' if len(breaks) != 1 else ''}"
    broken = _versions(sorted({item.against_version for item in breaks}, reverse=True))
    sentence = f"Breaks {state.level} at the target in {count}, against {broken}."
    if breaks:
        sentence += f" The first: {_break_location(breaks[0])}"
    cure = next((item.remedy for item in breaks if item.remedy), "Change the schema so that it holds the level.")
    return Check("compatibility", name, FAIL, sentence, cure, overridable=True, subject=subject)


def _break_location(item: ReportItem) -> str:
    return f"{item.message} at {item.named_path or 'its root'} (version {item.against_version})."


def compared_with(state: TargetState, metadata: Contract | None) -> list[tuple[int, ParsedSchema]]:
    """The versions that a new one is compared with: all, or those of its compatibility group."""
    group = state.settings.compatibility_group
    rows: Sequence[TargetVersion] = state.history
    if group:
        rows = [version for version in rows if property_of(version.metadata, group) == property_of(metadata, group)]
    return [(version.version, version.schema) for version in rows if version.schema is not None]


def policy(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> list[Check]:
    """The verdict of the target's schema policy; no check if it has none."""
    if state.policy == NO_POLICY:
        return []
    report = schema_engine.check_policy(state.policy, schema, compared_with(state, metadata))
    verdict = f"It is {report.verdict} under {state.policy}"
    details = f": {'; '.join(report.messages())}" if report.items else ""
    name = f"policy of {subject}"
    if report.is_accepted():
        return [Check("policy", name, PASS, f"{verdict}{details}.", subject=subject)]
    can_force = report.is_accepted(force=True)
    cure = f"Change the schema so that {state.policy} takes it, or set another policy at the target."
    return [Check("policy", name, FAIL, f"{verdict}{details}.", cure, overridable=can_force, subject=subject)]


def reserved_fields(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> list[Check]:
    """Whether reserved fields stay reserved and unused, if the target's config requires it."""
    if not state.settings.validate_fields:
        return []
    name, before = f"reserved fields of {subject}", state.history[-1].metadata if state.history else None
    try:
        messages = check_fields(schema, state.settings, metadata, before).messages()
    except InvalidSchema as error:
        messages = [error.message]
    if not messages:
        return [Check("reserved-fields", name, PASS, "Reserved fields stay reserved and unused.", subject=subject)]
    cure = "Keep the reserved fields in the metadata, and use none of them."
    return [Check("reserved-fields", name, FAIL, "; ".join(messages), cure, subject=subject)]


def not_undone(item: IncomingVersion, state: TargetState, step: PlanStep) -> Check:
    """What a roll back does not undo."""
    later = [version.version for version in state.history if version.version > item.version]
    sentence = (
        f"Version {item.version} becomes current again as version {step.target_version}. Not undone: {_versions(later)}"
        " stay registered, and messages and state that were written with them stay as they are."
    )
    return Check("roll-back", f"roll back of {item.subject}", WARN, sentence, subject=item.subject)


def config(subject: str, state: TargetState, changes: Mapping[str, Any]) -> Check:
    """What the promoted config changes at the target, after the versions are registered."""
    name = f"config of {subject}"
    if not changes:
        return Check("config", name, PASS, "The target has these settings already.", subject=subject)
    sentence = f"Sets {', '.join(sorted(changes))} at the target, once the versions are there."
    level = changes.get("level")
    if level and _weakens(state.level, level):
        sentence += f" The level goes from {state.level} to {level}, which promises less."
        cure = f"Leave the config out, or keep {state.level} at the source."
        return Check("config", name, WARN, sentence, cure, subject=subject)
    return Check("config", name, PASS, sentence, subject=subject)


def _weakens(before: str, after: str) -> bool:
    """Whether the new level allows what the old one forbids."""
    old, new = levels.LEVELS[before], levels.LEVELS[after]
    scopes = ("none", "latest", "all")
    return not set(old.directions) <= set(new.directions) or scopes.index(new.scope) < scopes.index(old.scope)


def ids(steps: Sequence[PlanStep]) -> list[Check]:
    """How the target's schema ids compare with the source's, if there is a source."""
    brought = [step for step in steps if step.source_id is not None and step.kind != REPEAT]
    if not brought:
        return []
    other = [step for step in brought if step.id_outlook == OTHER_ID]
    if other:
        mapping = _listed([f"{step.subject}: {step.source_id} → {step.expected_id}" for step in other])
        sentence = f"Ids differ at the target, as far as can be told now ({mapping})."
        cure = "That is as usual. Where messages are copied between environments, bring the ids in mode IMPORT."
        return [Check("ids", "schema ids", WARN, sentence, cure)]
    unknown = [step for step in brought if step.id_outlook == UNKNOWN_ID]
    if unknown:
        sentence = f"The target gives the ids of {_listed([step.subject for step in unknown])} when it is written."
        return [Check("ids", "schema ids", SKIPPED, sentence)]
    is_given = any(step.id_outlook == GIVEN_ID for step in brought)
    sentence = "The ids of the source are kept" + (
        ", given by the import." if is_given else ", as far as can be told now."
    )
    return [Check("ids", "schema ids", PASS, sentence)]


def something_to_do(steps: Sequence[PlanStep]) -> Check:
    """Whether the plan does anything."""
    if any(step.writes for step in steps):
        return Check("something-to-do", "something to do", PASS, "The target lacks what is asked for.")
    sentence = "The target has all of this already."
    return Check("something-to-do", "something to do", FAIL, sentence, "Nothing needs to be done.")


def _versions(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no version"
    return f"version{'s' if len(numbers) > 1 else ''} {_listed([str(number) for number in numbers])}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
