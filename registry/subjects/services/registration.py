"""Registering a version: the flow that everything else leans on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import QuerySet

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import (
    IncompatibleSchema,
    InvalidInput,
    InvalidName,
    InvalidReference,
    InvalidSchema,
    OperationNotPermitted,
    PolicyViolated,
)
from registry.formats.base import ParsedSchema, Reference
from registry.formats.compatibility import level_named
from registry.formats.reserved import ReservedReport
from registry.formats.tags import EntityTags
from registry.subjects import engines, gate
from registry.subjects.contracts import Contract, read_metadata, read_rule_set, version_in
from registry.subjects.models import Context, Registry, SchemaVersion, Subject
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
from registry.subjects.selectors.effective import (
    NO_POLICY,
    EffectiveConfig,
    OwnConfig,
    config_and_settings,
    effective_mode,
)
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.standing import Standing, joined_standing
from registry.subjects.selectors.submission import (
    Submission,
    equal_version,
    prepare,
    repeat,
    same_version,
    submission_identity,
    versions_of,
    with_tags,
)
from registry.subjects.selectors.versions import MAX_VERSION, VersionInfo, info_of_new, parse_version
from registry.subjects.services.locks import (
    held_subject,
    lock_context,
    lock_policy,
    lock_referenced,
    lock_subject,
    retried,
)
from registry.subjects.services.storing import add_version, import_version, store_schema
from registry.subjects.telling import tell_of_version

__all__ = ["RegisteredVersion", "register_version", "submission_identity"]
IMPORT = "IMPORT"
LATEST = -1


@dataclass(frozen=True)
class RegisteredVersion:
    """What a registration gave. `created` is False where the subject had this schema already, whatever it is worth.

    `info` is the version as it was made, None where it wasn't.
    """

    version_id: int
    version: int
    schema_id: int
    guid: str
    created: bool
    standing: Standing | None = None
    info: VersionInfo | None = field(default=None, compare=False)


@dataclass(frozen=True)
class _Asked:
    """What a call asks for beside the schema: the id and version that it brings, and who may do what."""

    schema_id: int | None
    version: int
    normalize: bool | None
    release: bool
    force: str
    is_tagged: bool = False
    propagate_tags: bool = False

    @property
    def may_be_there(self) -> bool:
        """Whether a version that is there can answer; one with changed tags is new in any case."""
        return self.version <= 0 and not self.is_tagged and not self.propagate_tags


@retried
def register_version(
    *,
    registry: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = "AVRO",
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
    """Add a version to a subject, or give the one that it has already for this schema, in any mode.

    An empty text repeats the latest version's schema. `metadata` and `rule_set` are the previous version's where they
    are None. `version` is the next one (0), the latest where that has the schema (-1), or the number that the next one
    must have. `schema_id` is for the mode IMPORT, which takes ids and versions as they come, unchecked.
    `release` is set by an approved promotion alone: it passes READONLY, not READONLY_OVERRIDE. `force` is the
    reason of somebody with the right to pass the level (ORA-1); it stands in the audit.
    `tags_to_add` and `tags_to_remove` change the tags inside the text: that is a new version with its number in the
    metadata, as on the established server. `propagate_tags` adds those of the latest version.
    Raises NotAllowed, InvalidName, InvalidSchema, InvalidReference, InvalidRuleSet, InvalidVersion,
    OperationNotPermitted, ReleaseRequired, ReferenceExists, IncompatibleSchema and PolicyViolated; then nothing has
    changed and no id is used up.
    """
    if not subject.subject:
        raise InvalidName("The specified subject '' is not valid: a subject needs a name.", name="")
    place = get_registry(registry)
    require(by, "promotion.apply" if release else "version.register", registry=place.name, subject=subject.qualified)
    asked = _asked(schema_id, version, normalize, release=release, force=force)
    contract = read_metadata(metadata), read_rule_set(rule_set)
    settings = config_and_settings(place, subject)
    is_new = schema_id is None and settings[1].validate_new_schemas is not False
    submission = (
        prepare(place, subject, text, schema_type, references, *contract, is_new=is_new) if text.strip() else None
    )
    asked = replace(asked, propagate_tags=propagate_tags)
    if tags_to_add or tags_to_remove:
        if submission is None:
            raise InvalidSchema("Empty schema")
        submission = with_tags(submission, tags_to_add, tags_to_remove)
        asked = replace(asked, is_tagged=True, version=version or LATEST)
    if force and not release:  # a release's force is the right of whoever approved it in spite of the level
        require(by, "version.force", registry=place.name, subject=subject.qualified)
    there = _known(place, subject, submission, asked, *settings) if submission else None
    if there is not None:
        return _registered(there, created=False)
    forced = f", forced: {force}" if force else ""
    record(by=by, why=f"register a version of {subject.qualified} in {place.name}{forced}")
    return _register(_hold(place, subject, asked, by), submission, contract, asked, by)


def _asked(schema_id: int | None, version: int, normalize: bool | None, *, release: bool, force: str) -> _Asked:
    if schema_id is not None and schema_id < 0:
        schema_id = None
    if schema_id is not None and not 1 <= schema_id <= MAX_VERSION:
        raise InvalidInput(f"The schema id {str(schema_id)[:40]} is not between 1 and 2^31-1.")
    if version > 0:
        parse_version(version)
    return _Asked(schema_id, version, normalize, release, force)


def _known(
    registry: Registry,
    subject: SubjectName,
    submission: Submission,
    asked: _Asked,
    config: EffectiveConfig,
    scope: OwnConfig,
) -> SchemaVersion | None:
    """The version that answers the call as it stands, found without a lock: nothing is written for it."""
    if not asked.may_be_there or _adds_to_contracts(scope):
        return None
    rows = versions_of(registry, subject)
    found = same_version(_asked_for(rows, asked), submission, submission.canonical(normalize=_normal(config, asked)))
    return found if found is None or asked.schema_id in (None, found.schema.schema_id) else None


def _adds_to_contracts(scope: OwnConfig) -> bool:
    return any((scope.default_metadata, scope.override_metadata, scope.default_rule_set, scope.override_rule_set))


def _normal(config: EffectiveConfig, asked: _Asked) -> bool:
    return config.normalize if asked.normalize is None else asked.normalize


def _asked_for(rows: QuerySet[SchemaVersion], asked: _Asked) -> QuerySet[SchemaVersion]:
    """The versions that may answer the call: all, or the latest alone."""
    return rows.filter(pk__in=rows[:1].values("pk")) if asked.version == LATEST else rows


@dataclass(frozen=True)
class _Held:
    """The subject under its locks, with what counts for it; `passes` is what the gate said, None while it isn't asked."""

    registry: Registry
    subject: SubjectName
    context: Context
    row: Subject
    config: EffectiveConfig
    scope: OwnConfig
    mode: str
    passes: bool | None

    def versions(self) -> QuerySet[SchemaVersion]:
        """The live versions, newest first."""
        return versions_of(self.registry, self.subject)


def _hold(registry: Registry, subject: SubjectName, asked: _Asked, by: Actor) -> _Held:
    """The subject, made where it is new: then the gate is asked first. One that is there may have the schema already."""
    lock_policy(registry)
    config, scope = config_and_settings(registry, subject)
    mode = effective_mode(registry, subject).mode
    row, passes = held_subject(registry, subject.context, subject.subject), None
    if row is None:
        passes = _ask(registry, subject, asked, by)
        row = lock_subject(lock_context(registry, subject.context), subject.subject)
    return _Held(registry, subject, row.context, row, config, scope, mode, passes)


def _ask(registry: Registry, subject: SubjectName, asked: _Asked, by: Actor) -> bool:
    return gate.ask("version.register", registry, subject.qualified, by, release=asked.release)


def _register(
    held: _Held,
    submission: Submission | None,
    contract: tuple[Contract | None, Contract | None],
    asked: _Asked,
    by: Actor,
) -> RegisteredVersion:
    """The registration under the locks of its subject; `submission` is None for an empty text."""
    targets = lock_referenced(submission.targets) if submission else {}
    there = _as_it_stands(held, submission, asked) if submission else None
    if there is not None:
        return _registered(there, created=False)
    passes = held.passes
    if passes is None:
        passes = _ask(held.registry, held.subject, asked, by)
    _refuse_by_mode(held, asked, passes=passes)
    previous, following = _latest(held.row)
    repeated = submission is None
    if submission is None:
        if previous is None:
            raise InvalidSchema("Empty schema")
        submission = replace(
            repeat(held.registry, held.subject, previous.schema), metadata=contract[0], rule_set=contract[1]
        )
        targets = lock_referenced(submission.targets)
    _refuse_lost_references(submission, targets)
    _refuse_owned_references(submission)
    if held.mode == IMPORT:
        done, created = import_version(held.context, held.row, submission, asked.schema_id, asked.version, by)
        return _registered(done, created=created)
    if asked.propagate_tags and previous is not None:
        submission = _with_tags_of(previous, submission)
    whole = submission.with_contract(held.scope, previous.schema if previous else None)
    if asked.version or version_in(whole.metadata) is not None:
        whole = whole.numbered(following)
    was_looked_for = whole == submission and not repeated and not _adds_to_contracts(held.scope)
    if asked.version == 0 and not was_looked_for:
        canonical = whole.canonical(normalize=_normal(held.config, asked))
        there = equal_version(held.versions(), whole, canonical)
        if there is not None:
            return _registered(there, created=False)
    return _add(held, whole, previous, following, asked, by)


def _with_tags_of(previous: SchemaVersion, submission: Submission) -> Submission:
    tags = engines.tags(parse_stored([previous.schema])[0])
    return with_tags(submission, tags, ()) if tags else submission


def _as_it_stands(held: _Held, submission: Submission, asked: _Asked) -> SchemaVersion | None:
    """The version that has the schema just as it was sent."""
    if not asked.may_be_there or _adds_to_contracts(held.scope):
        return None
    canonical = submission.canonical(normalize=_normal(held.config, asked))
    found = equal_version(_asked_for(held.versions(), asked), submission, canonical)
    return found if found is None or asked.schema_id in (None, found.schema.schema_id) else None


def _add(
    held: _Held, submission: Submission, previous: SchemaVersion | None, number: int, asked: _Asked, by: Actor
) -> RegisteredVersion:
    """A new version of that number, if the rules let it."""
    canonical = submission.canonical(normalize=_normal(held.config, asked))
    _refuse_by_rules(held, submission, previous, asked)
    if asked.version > 0 and asked.version != number:
        raise InvalidSchema("Version is not one more than previous version")
    schema, known = store_schema(held.context, submission, canonical)
    row = add_version(held.row, schema, number, submission.submitted, by, known=known)
    tell_of_version(held.registry, held.subject, version=number, schema_id=schema.schema_id, by=by, force=asked.force)
    return replace(_registered(row, created=True), info=info_of_new(row, submission.references))


def _latest(subject: Subject) -> tuple[SchemaVersion | None, int]:
    """The latest live version, and the number of the next one, which counts the soft-deleted ones too."""
    rows = subject.versions.select_related("schema").order_by("-version")
    newest = rows.first()
    if newest is None:
        return None, 1
    if newest.version >= MAX_VERSION:
        raise OperationNotPermitted("The subject has version 2^31-1, so there is no next one.")
    return (newest if newest.deleted_at is None else rows.filter(deleted_at=None).first()), newest.version + 1


def _refuse_by_rules(held: _Held, submission: Submission, previous: SchemaVersion | None, asked: _Asked) -> None:
    rows = _history(held, previous)
    versions = parsed_history(of_group(rows, group=held.scope.compatibility_group, like=submission.metadata))
    reserved = check_fields(
        submission.schema, held.scope, submission.metadata, previous.schema.metadata if previous else None
    )
    if not asked.force:
        _refuse_incompatible(held, submission.schema, versions, reserved)
    _refuse_by_policy(held.subject, submission.schema, versions, held.config.policy, force=bool(asked.force))


def _history(held: _Held, previous: SchemaVersion | None) -> list[SchemaVersion]:
    """The versions that the level and the policy look at, ascending; no more than that is read."""
    scope = level_named(held.config.level).scope if held.config.policy == NO_POLICY else "all"
    if scope == "none" or previous is None:
        return []
    return [previous] if scope == "latest" and not held.scope.compatibility_group else live_rows(held.row)


def _refuse_by_mode(held: _Held, asked: _Asked, *, passes: bool) -> None:
    registry, subject, mode = held.registry, held.subject, held.mode
    if registry.kind == Registry.REMOTE:
        raise OperationNotPermitted(f"Registry {registry.name} is a mirror of {registry.url}; register there.")
    wanted = "READWRITE" if asked.schema_id is None else IMPORT
    if mode == wanted or (passes and asked.schema_id is None and mode == gate.READONLY):
        return
    state = "import" if asked.schema_id is not None else "read-write"
    said = "in read-only mode" if mode.startswith("READONLY") else f"not in {state} mode"
    raise OperationNotPermitted(f"Subject {subject.subject} in context {subject.context} is {said}", mode=mode)


def _refuse_lost_references(submission: Submission, held: dict[int, SchemaVersion]) -> None:
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.pk not in held:
            raise InvalidReference(
                f"Reference {reference.name!r} names {reference.subject} version {reference.version},"
                " which was deleted just now."
            )


def _refuse_owned_references(submission: Submission) -> None:
    """What a resource owns goes with it, so nothing may refer to it; in no mode."""
    owned = owned_subjects({target.subject_id for target in submission.targets}) if submission.targets else set()
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.subject_id in owned:
            raise OperationNotPermitted(
                f"Subject '{reference.subject}' has a strong association and cannot be referenced"
            )


def _refuse_incompatible(held: _Held, schema: ParsedSchema, versions: History, reserved: ReservedReport) -> None:
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


def _registered(row: SchemaVersion, *, created: bool) -> RegisteredVersion:
    return RegisteredVersion(
        version_id=row.pk,
        version=row.version,
        schema_id=row.schema.schema_id,
        guid=str(row.schema.guid),
        created=created,
        standing=None if created else joined_standing(row),
    )
