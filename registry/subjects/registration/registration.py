"""Registering a version: the steps in order, and every reason to refuse one.

Read this first, then `submission` (the input) and `registration_state` (the database reads and writes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from registry.access.roles import Actor, require
from registry.errors import (
    IncompatibleSchema,
    InvalidInput,
    InvalidName,
    InvalidReference,
    InvalidSchema,
    OperationNotPermitted,
    PolicyViolated,
)
from registry.formats import DEFAULT_FORMAT
from registry.formats.assessment import ReservedReport
from registry.formats.base import ParsedSchema, Reference
from registry.formats.compatibility import level_named
from registry.formats.tags import EntityTags
from registry.subjects.associations.rules import owned_subjects
from registry.subjects.comparison.comparison import (
    LENIENT_POLICY,
    History,
    check_fields,
    live_rows,
    of_group,
    parsed_history,
    refusals,
)
from registry.subjects.engine import schema_engine
from registry.subjects.events import announce_version
from registry.subjects.models import MODES_WITH_IDS, Registry, SchemaVersion
from registry.subjects.permissions import Visible, require_references
from registry.subjects.policy import change_guard
from registry.subjects.policy.data_contracts import Contract, read_metadata, read_rule_set, version_in
from registry.subjects.policy.effective_policy import NO_POLICY, config_and_settings
from registry.subjects.registration.locks import MAX_SCHEMA_ID, lock_referenced, retried
from registry.subjects.registration.registration_state import (
    LATEST,
    RegistrationRequest,
    RegistrationState,
    adds_to_contracts,
    ask,
    hold,
    import_version,
    store_version,
)
from registry.subjects.registration.submission import (
    Submission,
    equal_version,
    prepare,
    repeat,
    settings_and_existing_version,
    submission_identity,
    with_tags,
)
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.parsed_schemas import is_parsed, keep_parsed, parse_stored
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo, VersionInfo, info_of_new, joined_status, parse_version

__all__ = ["RegisteredVersion", "register_version", "submission_identity"]


def refuse_by_rules(state: RegistrationState, submission: Submission, request: RegistrationRequest) -> None:
    """Raise IncompatibleSchema or PolicyViolated if the level, the rules for fields or the policy refuse it."""
    previous = state.situation.latest
    versions = _history(state, submission)
    reserved = check_fields(
        submission.schema, state.scope, submission.metadata, previous.schema.metadata if previous else None
    )
    if not request.force:
        _refuse_incompatible(state, submission.schema, versions, reserved)
    _refuse_by_policy(state.subject, submission.schema, versions, state.config.policy, force=bool(request.force))


def _history(state: RegistrationState, submission: Submission) -> History:
    """Return the versions that the level and the policy compare with, ascending; reads no others."""
    latest, group = state.situation.latest, state.scope.compatibility_group
    scope = level_named(state.config.level).scope if state.config.policy == NO_POLICY else "all"
    if scope == "none" or latest is None:
        return []
    if scope == "latest" and not group:
        return parsed_history([latest], refer=state.situation.latest_refers)
    return parsed_history(of_group(live_rows(state.row), group=group, like=submission.metadata))


def refuse_missing_types(submission: Submission) -> None:
    """Raise InvalidSchema for undeclared types, which only an import accepts."""
    missing = submission.schema.missing_types
    if missing:
        raise InvalidSchema(
            f"Could not resolve type: {', '.join(missing)[:300]}: add a reference to the schema that declares it."
        )


def refuse_by_mode(state: RegistrationState, request: RegistrationRequest, *, passes: bool) -> None:
    """Raise OperationNotPermitted if the mode doesn't accept this version; `passes` is the guard's answer."""
    registry, subject, mode = state.registry, state.subject, state.mode
    if registry.kind == Registry.REMOTE:
        raise OperationNotPermitted(f"Registry {registry.name} is a mirror of {registry.url}. Register there instead.")
    allowed_modes = {"READWRITE"} if request.schema_id is None else MODES_WITH_IDS
    if mode in allowed_modes or (passes and request.schema_id is None and mode == change_guard.READONLY):
        return
    required_mode = "import" if request.schema_id is not None else "read-write"
    problem = "in read-only mode" if mode.startswith("READONLY") else f"not in {required_mode} mode"
    raise OperationNotPermitted(f"Subject {subject.subject} in context {subject.context} is {problem}", mode=mode)


def refuse_lost_references(submission: Submission, locked_versions: dict[int, SchemaVersion]) -> None:
    """Raise InvalidReference for a reference whose version isn't among the locked ones."""
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.pk not in locked_versions:
            raise InvalidReference(
                f"Reference {reference.name!r} refers to {reference.subject} version {reference.version}, which was just "
                "deleted."
            )


def refuse_owned_references(submission: Submission) -> None:
    """Raise OperationNotPermitted, in every mode, for a reference to an owned subject: it is deleted with its owner."""
    owned = owned_subjects({target.subject_id for target in submission.targets}) if submission.targets else set()
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.subject_id in owned:
            raise OperationNotPermitted(
                f"Subject '{reference.subject}' has a strong association and cannot be referenced"
            )


def _refuse_incompatible(
    state: RegistrationState, schema: ParsedSchema, versions: History, reserved: ReservedReport
) -> None:
    config, name = state.config, state.subject.qualified
    lenient = state.scope.compatibility_policy == LENIENT_POLICY
    report = schema_engine.check(schema, versions, config.level, profile=config.profile, lenient=lenient)
    reasons = refusals(report, reserved, state.scope)
    if not reasons:
        return
    message = (
        f'Schema being registered is incompatible with an earlier schema for subject "{name}",'
        f" details: [{', '.join(reasons)}]"
    )
    if report.is_compatible:
        raise PolicyViolated(message, report=reserved, subject=name)
    raise IncompatibleSchema(message, report=report, subject=name)


def _refuse_by_policy(
    subject: SubjectName, schema: ParsedSchema, versions: History, policy: str, *, force: bool
) -> None:
    """Check the rules that apply in addition to the level; what a policy calls an error can't be forced."""
    if policy == NO_POLICY:
        return
    report = schema_engine.check_policy(policy, schema, versions)
    if not report.is_accepted(force=force):
        raise PolicyViolated(
            f"Schema being registered is {report.verdict} under the policy {policy} of subject"
            f' "{subject.qualified}", details: [{", ".join(report.messages())}]',
            report=report,
            subject=subject.qualified,
        )


@dataclass(frozen=True)
class RegisteredVersion:
    """The result of a registration. `created` is False if the subject had this schema already, whatever its status.

    `info` is the whole version, None if it wasn't read.
    """

    version_id: int
    version: int
    schema_id: int
    guid: str
    created: bool
    status: StatusInfo | None = None
    info: VersionInfo | None = field(default=None, compare=False)


@dataclass
class UnseenTexts:
    """Whether texts that were never parsed here are likely new versions: as the last one was.

    A client that adds versions goes on with that, and a fleet that starts repeats what is registered.
    """

    are_new: bool = False


UNSEEN_TEXTS: Final = UnseenTexts()


def register_version(
    *,
    registry: str | Registry,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    normalize: bool | None = None,
    metadata: dict[str, Any] | None = None,
    rule_set: dict[str, Any] | None = None,
    schema_id: int | None = None,
    version: int = 0,
    release: bool = False,
    force: str = "",
    tags_to_add: Sequence[EntityTags] = (),
    tags_to_remove: Sequence[EntityTags] = (),
    propagate_tags: bool = False,
) -> RegisteredVersion:
    """Add a version to a subject, or return the existing one with this schema, in any mode.

    An existing one is looked for without a lock first, unless the text is likely new.

    `registry` is its name, or its row if the caller has read it. An empty text repeats the latest version's schema. If
    `metadata` or `rule_set` is None, the previous version's is used. `version` is the next one (0), the latest if it
    has the schema (-1), or the number that the next one must have. `schema_id` is for the modes IMPORT and FORWARD,
    which accept ids and versions unchecked. Only an approved promotion sets `release`: it passes READONLY, but not
    READONLY_OVERRIDE. `force` is the reason to override the level (ORA-1), which needs a permission; the audit records
    it. `tags_to_add` and `tags_to_remove` change the tags in the text: that makes a new version with its number in the
    metadata, as in Confluent. `propagate_tags` adds those of the latest version.

    Raises NotAllowed, InvalidName, InvalidSchema, InvalidReference, InvalidRuleSet, InvalidVersion,
    OperationNotPermitted, ReleaseRequired, ReferenceExists, IncompatibleSchema and PolicyViolated; then nothing has
    changed and no id is used.
    """
    if not subject.subject:
        raise InvalidName("The specified subject '' is not valid: a subject needs a name.", name="")
    registry_row = get_registry(registry)
    require(
        by, "promotion.apply" if release else "version.register", registry=registry_row.name, subject=subject.qualified
    )
    request = _request(schema_id, version, normalize, release=release, force=force)
    if not release:  # the references of a release were checked in its source
        require_references(Visible(registry_row, by), references, context=subject.context)
    contract = read_metadata(metadata), read_rule_set(rule_set)
    submission, is_direct = None, schema_id is None and not release
    is_unseen = is_direct and not references and not is_parsed(schema_type, text)
    if text.strip():
        submission = _prepare(registry_row, subject, text, schema_type, references, *contract, is_new=schema_id is None)
    request = replace(request, propagate_tags=propagate_tags)
    if tags_to_add or tags_to_remove:
        if submission is None:
            raise InvalidSchema("Empty schema")
        submission = with_tags(submission, tags_to_add, tags_to_remove)
        request = replace(request, is_tagged=True, version=version or LATEST)
    if force and not release:  # the force of a release is the permission of its approver, who overrode the level
        require(by, "version.force", registry=registry_row.name, subject=subject.qualified)
    canonical, there = "", None
    if submission and is_unseen and UNSEEN_TEXTS.are_new:
        canonical = submission.canonical(normalize=bool(request.normalize))
    elif submission:
        canonical, there = _registered_before(registry_row, subject, submission, request)
    done = there or _hold_and_register(registry_row, subject, submission, canonical, contract, request, by)
    if is_unseen:
        UNSEEN_TEXTS.are_new = done.created
    return done


@retried
def _hold_and_register(
    registry: Registry,
    subject: SubjectName,
    submission: Submission | None,
    canonical: str,
    contract: tuple[Contract | None, Contract | None],
    request: RegistrationRequest,
    by: Actor,
) -> RegisteredVersion:
    """Write in one transaction: what was read before is read again under the locks."""
    forced = f", forced: {request.force}" if request.force else ""
    why = f"register a version of {subject.qualified} in {registry.name}{forced}"
    state = hold(registry, subject, submission, canonical, request, by=by, why=why)
    return _register(state, submission, contract, request, by)


def _request(
    schema_id: int | None, version: int, normalize: bool | None, *, release: bool, force: str
) -> RegistrationRequest:
    if schema_id is not None and schema_id < 0:
        schema_id = None
    if schema_id is not None and not 1 <= schema_id < MAX_SCHEMA_ID:
        raise InvalidInput(f"The schema id {str(schema_id)[:40]} is not between 1 and 2^31-2.")
    if version > 0:
        parse_version(version)
    return RegistrationRequest(schema_id, version, normalize, release, force)


def _prepare(
    registry: Registry, subject: SubjectName, text: str, schema_type: str, *rest: Any, is_new: bool
) -> Submission:
    """Prepare a submission; if the settings don't validate new schemas, an invalid new one is parsed as an old one."""
    try:
        return prepare(registry, subject, text, schema_type, *rest, is_new=is_new)
    except InvalidSchema:
        if not is_new or config_and_settings(registry, subject)[1].validate_new_schemas is not False:
            raise
    return prepare(registry, subject, text, schema_type, *rest, is_new=False)


def _registered_before(
    registry: Registry, subject: SubjectName, submission: Submission, request: RegistrationRequest
) -> tuple[str, RegisteredVersion | None]:
    """Return the text to store, and the version that already has the schema, if any; without a lock.

    One query, and another if the settings normalize the text.
    """
    likely, latest = submission.canonical(normalize=bool(request.normalize)), request.version == LATEST
    spoken, twin = settings_and_existing_version(registry, subject, submission.identities(likely), latest=latest)
    canonical = request.canonical(submission, spoken.config())
    if not request.may_be_there or adds_to_contracts(spoken.settings()):
        return canonical, None
    if canonical != likely:
        _, twin = settings_and_existing_version(registry, subject, submission.identities(canonical), latest=latest)
    if twin is None or request.schema_id not in (None, twin.schema.schema_id):
        return canonical, None
    schema = twin.schema
    return canonical, RegisteredVersion(twin.id, twin.version, schema.schema_id, schema.guid, False, twin.status, twin)


def _register(
    state: RegistrationState,
    submission: Submission | None,
    contract: tuple[Contract | None, Contract | None],
    request: RegistrationRequest,
    by: Actor,
) -> RegisteredVersion:
    """Register under the subject's locks; `submission` is None for an empty text."""
    targets = lock_referenced(submission.targets) if submission else {}
    there = _as_it_stands(state, submission, request) if submission else None
    if there is not None:
        return _registered(there, created=False)
    passes = state.passes
    if passes is None:
        passes = ask(state.registry, state.subject, request, by, applies=state.situation.is_guarded)
    refuse_by_mode(state, request, passes=passes)
    previous, following = state.situation.latest, state.following()
    repeated = submission is None
    if submission is None:
        if previous is None:
            raise InvalidSchema("Empty schema")
        submission = replace(
            repeat(state.registry, state.subject, previous.schema), metadata=contract[0], rule_set=contract[1]
        )
        targets = lock_referenced(submission.targets)
    refuse_lost_references(submission, targets)
    refuse_owned_references(submission)
    if state.mode in MODES_WITH_IDS:
        done, created = import_version(state.context, state.row, submission, request.schema_id, request.version, by)
        return _registered(done, created=created)
    refuse_missing_types(submission)
    if request.propagate_tags and previous is not None:
        submission = _with_tags_of(previous, submission)
    whole = submission.with_contract(state.scope, previous.schema if previous else None)
    if request.version or version_in(whole.metadata) is not None:
        whole = whole.numbered(following)
    canonical = request.canonical(whole, state.config)
    was_looked_at = whole == submission and not repeated and canonical == state.canonical
    if request.version == 0 and (not was_looked_at or adds_to_contracts(state.scope)):
        there = equal_version(state.versions(), whole, canonical)
        if there is not None:
            return _registered(there, created=False)
    is_known = state.situation.is_known if was_looked_at else None
    return _add(state, whole, canonical, following, request, by, is_known=is_known)


def _with_tags_of(previous: SchemaVersion, submission: Submission) -> Submission:
    tags = schema_engine.tags(parse_stored([previous.schema])[0])
    return with_tags(submission, tags, ()) if tags else submission


def _as_it_stands(
    state: RegistrationState, submission: Submission, request: RegistrationRequest
) -> SchemaVersion | None:
    """Return the version that has the schema exactly as it was sent."""
    if not request.may_be_there or adds_to_contracts(state.scope):
        return None
    canonical = request.canonical(submission, state.config)
    if canonical == state.canonical and not state.situation.may_equal:
        return None
    twin = equal_version(state.versions(latest=request.version == LATEST), submission, canonical)
    return twin if twin is None or request.schema_id in (None, twin.schema.schema_id) else None


def _add(
    state: RegistrationState,
    submission: Submission,
    canonical: str,
    number: int,
    request: RegistrationRequest,
    by: Actor,
    *,
    is_known: bool | None,
) -> RegisteredVersion:
    """Add a new version with that number, if the rules permit it."""
    refuse_by_rules(state, submission, request)
    if request.version > 0 and request.version != number:
        raise InvalidSchema("Version is not one more than previous version")
    row = store_version(state, submission, canonical, number, by, is_known=is_known)
    keep_parsed(row.schema, submission.schema)
    if state.situation.has_subscribers:
        schema_id = row.schema.schema_id
        announce_version(state.registry, state.subject, version=number, schema_id=schema_id, by=by, force=request.force)
    return replace(_registered(row, created=True), info=info_of_new(row, submission.references))


def _registered(row: SchemaVersion, *, created: bool) -> RegisteredVersion:
    return RegisteredVersion(
        version_id=row.pk,
        version=row.version,
        schema_id=row.schema.schema_id,
        guid=str(row.schema.guid),
        created=created,
        status=None if created else joined_status(row),
    )
