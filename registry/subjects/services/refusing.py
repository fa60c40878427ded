"""What a registration is refused for, once its subject is held."""

from __future__ import annotations

from registry.errors import IncompatibleSchema, InvalidReference, InvalidSchema, OperationNotPermitted, PolicyViolated
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import level_named
from registry.formats.reserved import ReservedReport
from registry.subjects import engines, gate
from registry.subjects.models import MODES_WITH_IDS, Registry, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.associations import owned_subjects
from registry.subjects.selectors.comparison import (
    LENIENT_POLICY,
    History,
    check_fields,
    live_rows,
    of_group,
    parsed_history,
    refusals,
)
from registry.subjects.selectors.effective import NO_POLICY
from registry.subjects.selectors.submission import Submission
from registry.subjects.services.holding import Asked, Held


def refuse_by_rules(held: Held, submission: Submission, asked: Asked) -> None:
    """Raise IncompatibleSchema or PolicyViolated for what the level, the fields' rules or the policy refuse."""
    previous = held.situation.latest
    versions = _history(held, submission)
    reserved = check_fields(
        submission.schema, held.scope, submission.metadata, previous.schema.metadata if previous else None
    )
    if not asked.force:
        _refuse_incompatible(held, submission.schema, versions, reserved)
    _refuse_by_policy(held.subject, submission.schema, versions, held.config.policy, force=bool(asked.force))


def _history(held: Held, submission: Submission) -> History:
    """The versions that the level and the policy look at, ascending; no more than that is read."""
    latest, group = held.situation.latest, held.scope.compatibility_group
    scope = level_named(held.config.level).scope if held.config.policy == NO_POLICY else "all"
    if scope == "none" or latest is None:
        return []
    if scope == "latest" and not group:
        return parsed_history([latest], refer=held.situation.latest_refers)
    return parsed_history(of_group(live_rows(held.row), group=group, like=submission.metadata))


def refuse_missing_types(submission: Submission) -> None:
    """Raise InvalidSchema for types that nothing declares, which an import alone may bring."""
    missing = submission.schema.missing_types
    if missing:
        raise InvalidSchema(
            f"Could not resolve type: {', '.join(missing)[:300]}: add a reference to the schema that declares it."
        )


def refuse_by_mode(held: Held, asked: Asked, *, passes: bool) -> None:
    """Raise OperationNotPermitted where the mode takes no version, or none with an id; `passes` is what the gate said."""
    registry, subject, mode = held.registry, held.subject, held.mode
    if registry.kind == Registry.REMOTE:
        raise OperationNotPermitted(f"Registry {registry.name} is a mirror of {registry.url}; register there.")
    wanted = {"READWRITE"} if asked.schema_id is None else MODES_WITH_IDS
    if mode in wanted or (passes and asked.schema_id is None and mode == gate.READONLY):
        return
    state = "import" if asked.schema_id is not None else "read-write"
    said = "in read-only mode" if mode.startswith("READONLY") else f"not in {state} mode"
    raise OperationNotPermitted(f"Subject {subject.subject} in context {subject.context} is {said}", mode=mode)


def refuse_lost_references(submission: Submission, held: dict[int, SchemaVersion]) -> None:
    """Raise InvalidReference for a reference whose version is not among those that are held."""
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.pk not in held:
            raise InvalidReference(
                f"Reference {reference.name!r} names {reference.subject} version {reference.version},"
                " which was deleted just now."
            )


def refuse_owned_references(submission: Submission) -> None:
    """Raise OperationNotPermitted for a reference to what a resource owns: that goes with it. It is so in every mode."""
    owned = owned_subjects({target.subject_id for target in submission.targets}) if submission.targets else set()
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.subject_id in owned:
            raise OperationNotPermitted(
                f"Subject '{reference.subject}' has a strong association and cannot be referenced"
            )


def _refuse_incompatible(held: Held, schema: ParsedSchema, versions: History, reserved: ReservedReport) -> None:
    config, name = held.config, held.subject.qualified
    lenient = held.scope.compatibility_policy == LENIENT_POLICY
    report = engines.check(schema, versions, config.level, profile=config.profile, lenient=lenient)
    found = refusals(report, reserved, held.scope)
    if not found:
        return
    said = (
        f'Schema being registered is incompatible with an earlier schema for subject "{name}",'
        f" details: [{', '.join(found)}]"
    )
    if report.is_compatible:
        raise PolicyViolated(said, report=reserved, subject=name)
    raise IncompatibleSchema(said, report=report, subject=name)


def _refuse_by_policy(
    subject: SubjectName, schema: ParsedSchema, versions: History, policy: str, *, force: bool
) -> None:
    """The rules that hold beside the level; what a policy calls an error isn't forced either."""
    if policy == NO_POLICY:
        return
    report = engines.check_policy(policy, schema, versions)
    if not report.is_accepted(force=force):
        raise PolicyViolated(
            f"Schema being registered is {report.verdict} under the policy {policy} of subject"
            f' "{subject.qualified}", details: [{", ".join(report.messages())}]',
            report=report,
            subject=subject.qualified,
        )
