"""Registering a version: the flow that everything else leans on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import IncompatibleSchema, InvalidName, InvalidReference, InvalidSchema, OperationNotPermitted
from registry.formats import FORMATS
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.formats.compatibility import check
from registry.subjects.identity import Identity, identify
from registry.subjects.models import Context, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import history
from registry.subjects.selectors.effective import effective_config, effective_mode
from registry.subjects.selectors.parsed import parse_schema, resolve_references
from registry.subjects.selectors.places import get_registry
from registry.subjects.services.locks import (
    lock_context,
    lock_policy,
    lock_referenced,
    lock_subject,
    retried,
    take_schema_id,
)


@dataclass(frozen=True)
class RegisteredVersion:
    """What a registration gave. `created` is False where the subject had this schema already."""

    version_id: int
    version: int
    schema_id: int
    guid: str
    created: bool


@dataclass(frozen=True)
class _Submission:
    """What is to be registered, parsed before any lock is taken."""

    schema: ParsedSchema
    resolved: tuple[ResolvedReference, ...]
    targets: tuple[SchemaVersion, ...]
    submitted: str
    metadata: dict[str, Any] | None
    rule_set: dict[str, Any] | None

    def canonical(self, *, normalize: bool) -> str:
        """The text to store."""
        return FORMATS[self.schema.schema_type].normalize(self.schema) if normalize else self.schema.canonical

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references with the versions that they came to mean."""
        return tuple(item.reference for item in self.resolved)

    def fingerprint(self, canonical: str) -> str:
        """The fingerprint of the text to store: normalizing changes it where it changes the text."""
        if canonical == self.schema.canonical:
            return self.schema.fingerprint
        return parse_schema(self.schema.schema_type, canonical, self.resolved).fingerprint

    def identity(self, canonical: str) -> Identity:
        """What makes it the same schema as another one, with that text."""
        return identify(self.schema.schema_type, canonical, self.references, self.metadata, self.rule_set)


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
    release: bool = False,
    force: str = "",
) -> RegisteredVersion:
    """Add a version to a subject, or give the one that it has already for this schema.

    `release` is set by an approved promotion alone: it passes READONLY, not READONLY_OVERRIDE. `force` is the
    reason of somebody with the right to pass the level (ORA-1); it stands in the audit.
    Raises NotAllowed, InvalidName, InvalidSchema, InvalidReference, OperationNotPermitted and
    IncompatibleSchema; then nothing has changed and no id is used up.
    """
    if not subject.subject:
        raise InvalidName("The specified subject '' is not valid: a subject needs a name.", name="")
    place = get_registry(registry)
    require(by, "promotion.apply" if release else "version.register", registry=place.name, subject=subject.qualified)
    submission = _prepare(place, subject, text, schema_type, references, metadata, rule_set)
    if force:
        require(by, "version.force", registry=place.name, subject=subject.qualified)
    forced = f", forced: {force}" if force else ""
    record(by=by, why=f"register a version of {subject.qualified} in {place.name}{forced}")
    lock_policy(place)
    _refuse_by_mode(place, subject, release=release)
    config = effective_config(place, subject)
    canonical = submission.canonical(normalize=config.normalize if normalize is None else normalize)
    context = lock_context(place, subject.context)
    row = lock_subject(context, subject.subject)
    held = lock_referenced(submission.targets)
    there = _live_version(row, submission.identity(canonical))
    if there is not None:
        return _registered(there, created=False)
    _refuse_lost_references(submission, held)
    if not force:
        _refuse_incompatible(subject, row, submission.schema, config.level)
    schema = _store_schema(context, submission, canonical)
    return _registered(_add_version(row, schema, submission.submitted, by), created=True)


def submission_identity(
    registry: Registry,
    subject: SubjectName,
    *,
    text: str,
    schema_type: str = "AVRO",
    references: Sequence[Reference] = (),
    normalize: bool | None = None,
    metadata: dict[str, Any] | None = None,
    rule_set: dict[str, Any] | None = None,
) -> str:
    """The identity that a text would be stored under, for look-ups. Raises InvalidSchema, InvalidReference."""
    submission = _prepare(registry, subject, text, schema_type, references, metadata, rule_set)
    wants_normal = effective_config(registry, subject).normalize if normalize is None else normalize
    return submission.identity(submission.canonical(normalize=wants_normal)).digest


def _prepare(
    registry: Registry,
    subject: SubjectName,
    text: str,
    schema_type: str,
    references: Sequence[Reference],
    metadata: dict[str, Any] | None,
    rule_set: dict[str, Any] | None,
) -> _Submission:
    if not text.strip():
        raise InvalidSchema("Empty schema")
    found = resolve_references(registry, references, context=subject.context)
    resolved = tuple(reference for reference, _ in found)
    parsed = parse_schema(schema_type, text, resolved)
    return _Submission(
        schema=parsed,
        resolved=resolved,
        targets=tuple(target for _, target in found),
        submitted=text,
        metadata=metadata,
        rule_set=rule_set,
    )


def _refuse_by_mode(registry: Registry, subject: SubjectName, *, release: bool) -> None:
    if registry.kind == Registry.REMOTE:
        raise OperationNotPermitted(f"Registry {registry.name} is a mirror of {registry.url}; register there.")
    mode = effective_mode(registry, subject).mode
    if mode == "READWRITE" or (release and mode == "READONLY"):
        return
    state = "in read-only mode" if mode.startswith("READONLY") else "not in read-write mode"
    raise OperationNotPermitted(f"Subject {subject.subject} in context {subject.context} is {state}", mode=mode)


def _live_version(subject: Subject, identity: Identity) -> SchemaVersion | None:
    return (
        subject.versions.filter(deleted_at=None, schema__identity=identity.digest)
        .select_related("schema")
        .order_by("-version")
        .first()
    )


def _refuse_lost_references(submission: _Submission, held: dict[int, SchemaVersion]) -> None:
    for reference, target in zip(submission.references, submission.targets, strict=True):
        if target.pk not in held:
            raise InvalidReference(
                f"Reference {reference.name!r} names {reference.subject} version {reference.version},"
                " which was deleted just now."
            )


def _refuse_incompatible(subject: SubjectName, row: Subject, schema: ParsedSchema, level: str) -> None:
    report = check(FORMATS[schema.schema_type], schema, history(row), level)
    if not report.is_compatible:
        raise IncompatibleSchema(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject.qualified}",'
            f" details: [{', '.join(report.messages())}]",
            report=report,
            subject=subject.qualified,
        )


def _store_schema(context: Context, submission: _Submission, canonical: str) -> Schema:
    """The context's schema of that identity, or a new one with the next id; two writers agree on the counter's lock."""
    identity = submission.identity(canonical)
    known = Schema.objects.filter(context=context, identity=identity.digest)
    found = known.first()
    if found is not None:
        return found
    Context.objects.select_for_update().get(pk=context.pk)
    found = known.first()
    if found is not None:
        return found
    schema = Schema.objects.create(
        context=context,
        schema_id=take_schema_id(context),
        schema_type=submission.schema.schema_type,
        canonical=canonical,
        identity=identity.digest,
        fingerprint=submission.fingerprint(canonical),
        guid=identity.guid,
        metadata=submission.metadata,
        rule_set=submission.rule_set,
    )
    pairs = zip(submission.references, submission.targets, strict=True)
    SchemaReference.objects.bulk_create(
        SchemaReference(schema=schema, position=position, name=ref.name, subject_name=ref.subject, target=target)
        for position, (ref, target) in enumerate(pairs)
    )
    return schema


def _add_version(subject: Subject, schema: Schema, submitted: str, by: Actor) -> SchemaVersion:
    newest = subject.versions.order_by("-version").values_list("version", flat=True).first() or 0
    return SchemaVersion.objects.create(
        subject=subject, version=newest + 1, schema=schema, submitted=submitted, created_by=by.name, door=by.door
    )


def _registered(row: SchemaVersion, *, created: bool) -> RegisteredVersion:
    return RegisteredVersion(
        version_id=row.pk,
        version=row.version,
        schema_id=row.schema.schema_id,
        guid=str(row.schema.guid),
        created=created,
    )
