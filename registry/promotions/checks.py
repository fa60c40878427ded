"""The checks of a plan that the registry itself answers: pure. Each says what would change it where it doesn't pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.errors import InvalidSchema, SchemaTooCostly
from registry.formats import compatibility as levels
from registry.formats.base import ParsedSchema
from registry.formats.report import Report, ReportItem
from registry.promotions.plan import (
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
    Held,
    Step,
    Target,
    TargetState,
    Wanted,
)
from registry.subjects import engines
from registry.subjects.contracts import Contract, property_of
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.selectors.comparison import LENIENT_POLICY, check_fields
from registry.subjects.selectors.effective import MIRROR_MODE, NO_POLICY
from registry.subjects.selectors.parsed import parse_schema

_NO_LEVEL = "NONE"
#: what is named in a sentence before "and … more"
_NAMED = 5


@dataclass(frozen=True)
class Judged:
    """The check of compatibility, with its report where there was anything to compare with."""

    check: Check
    report: Report | None = None
    breaking: bool = False


def mode(subject: str, state: TargetState, step: Step, *, can_bring_id: bool) -> Check:
    """Whether the target's mode lets the step write."""
    name = f"mode of {subject}"
    if step.kind == ADOPT:
        return Check("mode", name, PASS, "Nothing is written: the version is there.", subject=subject)
    if not step.writes:
        there = f"The target has this schema as version {step.target_version}; nothing is written."
        return Check("mode", name, PASS, there, subject=subject)
    if state.mode == MIRROR_MODE:
        said = f"The target is in mode {state.mode}, which stops releases too."
        return Check("mode", name, FAIL, said, "Set the target to READONLY or READWRITE.", subject=subject)
    if state.mode in MODES_WITH_IDS and step.kind == REPEAT:
        said = f"The target is in mode {state.mode}, which takes versions as they come and can't number a repeated one."
        return Check("mode", name, FAIL, said, "Set the target to READONLY or READWRITE.", subject=subject)
    if state.mode in MODES_WITH_IDS and not can_bring_id:
        taken = "has no id to bring" if step.source_id is None else f"brings id {step.source_id}, which is taken there"
        said = f"The target is in mode {state.mode}, which takes versions with their ids alone; this one {taken}."
        return Check("mode", name, FAIL, said, "Set the target to READONLY or READWRITE.", subject=subject)
    said = f"The target is in mode {state.mode}; a release may write version {step.target_version}."
    return Check("mode", name, PASS, said, subject=subject)


def references(item: Wanted, step: Step, target: Target) -> list[Check]:
    """Whether what the step refers to is at the target by then; no check for a schema that refers to nothing."""
    name = f"references of {item.subject}"
    if item.problem:
        cure = "Register or promote what it refers to first, or change its references."
        return [Check("references", name, FAIL, item.problem, cure, subject=item.subject)]
    if not step.references:
        return []
    owned = sorted({subject for subject, _ in item.needs if subject in target.owned}) if step.adds else []
    if owned:
        said = f"At the target {', '.join(owned)} belongs to a resource alone, so nothing may refer to it."
        cure = "End the strong association at the target, or refer to another subject."
        return [Check("references", name, FAIL, said, cure, subject=item.subject)]
    listed = _listed([f"{ref.subject} version {ref.version}" for ref in step.references])
    return [Check("references", name, PASS, f"It refers to {listed} of the target.", subject=item.subject)]


def well_formed(item: Wanted, schema: ParsedSchema, state: TargetState) -> list[Check]:
    """Whether the target takes the text as a new one: an import may have brought the source what it wouldn't take.

    No check for a text that it takes.
    """
    if state.mode in MODES_WITH_IDS or state.settings.validate_new_schemas is False:
        return []
    try:
        parse_schema(item.schema_type, item.text, engines.references_of(schema))
    except (InvalidSchema, SchemaTooCostly) as error:
        cure = "Change the schema, or let the target take such schemas (validateNewSchemas false)."
        said = f"The target doesn't take it as a new schema: {error.message}"
        return [Check("schema", f"text of {item.subject}", FAIL, said, cure, subject=item.subject)]
    return []


def standing(item: Wanted, step: Step) -> list[Check]:
    """A version that shouldn't be used any more isn't brought anywhere; adopting is how one leaves quarantine."""
    if not step.adds or not item.version:
        return []
    name = f"standing of {item.subject}"
    if not item.standing:
        return [Check("standing", name, PASS, f"Version {item.version} is in good standing.", subject=item.subject)]
    said = f"Version {item.version} of {item.subject} is {item.standing}, and such a version isn't promoted."
    cure = "Take that back where it was decided, or ask for another version."
    return [Check("standing", name, FAIL, said, cure, subject=item.subject)]


def compatibility(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> Judged:
    """Whether the schema holds the target's level against every version that the level names."""
    name = f"compatibility of {subject}"
    history = compared_with(state, metadata)
    if not history:
        said = "The target has no version yet: nothing to break."
        return Judged(Check("compatibility", name, PASS, said, subject=subject))
    try:
        report = _checked(schema, history, state, state.level)
        breaking = not report.is_compatible
        if state.level == _NO_LEVEL:
            breaking = not _checked(schema, history, state, "BACKWARD").is_compatible
    except SchemaTooCostly as error:
        cure = "Use smaller schemas, or fewer versions at the target."
        return Judged(Check("compatibility", name, FAIL, error.message, cure, overridable=True, subject=subject))
    return Judged(_compatibility_check(name, subject, state, report, breaking=breaking), report, breaking)


def _checked(
    schema: ParsedSchema, history: Sequence[tuple[int, ParsedSchema]], state: TargetState, level: str
) -> Report:
    lenient = state.settings.compatibility_policy == LENIENT_POLICY
    return engines.check(schema, history, level, profile=state.profile, lenient=lenient)


def _compatibility_check(name: str, subject: str, state: TargetState, report: Report, *, breaking: bool) -> Check:
    versions = _versions(report.versions)
    if state.level == _NO_LEVEL and breaking:
        said = "The target's level is NONE, so nothing is checked there; it would break BACKWARD."
        return Check("compatibility", name, WARN, said, "Set a level at the target.", subject=subject)
    if state.level == _NO_LEVEL:
        return Check(
            "compatibility", name, PASS, "The target's level is NONE; it would hold BACKWARD.", subject=subject
        )
    if report.is_compatible:
        said = f"Holds {state.level} at the target against {versions}."
        return Check("compatibility", name, PASS, said, subject=subject)
    found = report.breaks
    places = f"{len(found)} place{'s' if len(found) != 1 else ''}"
    broken = _versions(sorted({item.against_version for item in found}, reverse=True))
    said = f"Breaks {state.level} at the target in {places}, against {broken}."
    if found:
        said += f" The first: {_place(found[0])}"
    cure = next((item.remedy for item in found if item.remedy), "Change the schema so that it holds the level.")
    return Check("compatibility", name, FAIL, said, cure, overridable=True, subject=subject)


def _place(item: ReportItem) -> str:
    return f"{item.message} at {item.named_path or 'its root'} (version {item.against_version})."


def compared_with(state: TargetState, metadata: Contract | None) -> list[tuple[int, ParsedSchema]]:
    """The versions that a new one is held against: all, or those of its compatibility group."""
    group = state.settings.compatibility_group
    rows: Sequence[Held] = state.history
    if group:
        rows = [held for held in rows if property_of(held.metadata, group) == property_of(metadata, group)]
    return [(held.version, held.schema) for held in rows if held.schema is not None]


def policy(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> list[Check]:
    """What the rules beside the level say; no check where there are none."""
    if state.policy == NO_POLICY:
        return []
    report = engines.check_policy(state.policy, schema, compared_with(state, metadata))
    said = f"It is {report.verdict} under {state.policy}"
    details = f": {'; '.join(report.messages())}" if report.items else ""
    name = f"policy of {subject}"
    if report.is_accepted():
        return [Check("policy", name, PASS, f"{said}{details}.", subject=subject)]
    can_force = report.is_accepted(force=True)
    cure = f"Change the schema so that {state.policy} takes it, or set another policy at the target."
    return [Check("policy", name, FAIL, f"{said}{details}.", cure, overridable=can_force, subject=subject)]


def reserved_fields(subject: str, schema: ParsedSchema, state: TargetState, metadata: Contract | None) -> list[Check]:
    """Whether reserved fields stay reserved and unused, where the target's config asks for that."""
    if not state.settings.validate_fields:
        return []
    name, before = f"reserved fields of {subject}", state.history[-1].metadata if state.history else None
    try:
        found = check_fields(schema, state.settings, metadata, before).messages()
    except InvalidSchema as error:
        found = [error.message]
    if not found:
        return [Check("reserved-fields", name, PASS, "Reserved fields stay reserved and unused.", subject=subject)]
    cure = "Keep the reserved fields in the metadata, and use none of them."
    return [Check("reserved-fields", name, FAIL, "; ".join(found), cure, subject=subject)]


def not_undone(item: Wanted, state: TargetState, step: Step) -> Check:
    """What a roll back leaves as it is."""
    later = [held.version for held in state.history if held.version > item.version]
    said = (
        f"Version {item.version} becomes current again as version {step.target_version}. Not undone: {_versions(later)}"
        " stay registered, and messages and state that were written with them stay as they are."
    )
    return Check("roll-back", f"roll back of {item.subject}", WARN, said, subject=item.subject)


def config(subject: str, state: TargetState, changes: Mapping[str, Any]) -> Check:
    """What the config that comes along changes at the target, after the versions are there."""
    name = f"config of {subject}"
    if not changes:
        return Check("config", name, PASS, "The target has these settings already.", subject=subject)
    said = f"Sets {', '.join(sorted(changes))} at the target, once the versions are there."
    level = changes.get("level")
    if level and _weakens(state.level, level):
        said += f" The level goes from {state.level} to {level}, which promises less."
        cure = f"Leave the config out, or keep {state.level} at the source."
        return Check("config", name, WARN, said, cure, subject=subject)
    return Check("config", name, PASS, said, subject=subject)


def _weakens(before: str, after: str) -> bool:
    """Whether the new level lets pass what the old one stops."""
    old, new = levels.LEVELS[before], levels.LEVELS[after]
    scopes = ("none", "latest", "all")
    return not set(old.directions) <= set(new.directions) or scopes.index(new.scope) < scopes.index(old.scope)


def ids(steps: Sequence[Step]) -> list[Check]:
    """How the schema ids of the target stand to the source's, where there is a source."""
    brought = [step for step in steps if step.source_id is not None and step.kind != REPEAT]
    if not brought:
        return []
    other = [step for step in brought if step.id_outlook == OTHER_ID]
    if other:
        mapping = _listed([f"{step.subject}: {step.source_id} → {step.expected_id}" for step in other])
        said = f"Ids differ at the target, as far as can be told now ({mapping})."
        cure = "That is as usual. Where messages are copied between environments, bring the ids in mode IMPORT."
        return [Check("ids", "schema ids", WARN, said, cure)]
    unknown = [step for step in brought if step.id_outlook == UNKNOWN_ID]
    if unknown:
        said = f"The target gives the ids of {_listed([step.subject for step in unknown])} when it is written."
        return [Check("ids", "schema ids", SKIPPED, said)]
    given = any(step.id_outlook == GIVEN_ID for step in brought)
    said = "The ids of the source are kept" + (", given by the import." if given else ", as far as can be told now.")
    return [Check("ids", "schema ids", PASS, said)]


def something_to_do(steps: Sequence[Step]) -> Check:
    """Whether the plan does anything."""
    if any(step.writes for step in steps):
        return Check("something-to-do", "something to do", PASS, "The target lacks what is asked for.")
    said = "The target has all of this already."
    return Check("something-to-do", "something to do", FAIL, said, "Nothing needs to be done.")


def _versions(numbers: Sequence[int]) -> str:
    if not numbers:
        return "no version"
    return f"version{'s' if len(numbers) > 1 else ''} {_listed([str(number) for number in numbers])}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
