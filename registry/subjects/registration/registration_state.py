"""The database access of a registration: the locked subject with its effective rules, and the rows that are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from registry.access.roles import Actor
from registry.errors import OperationNotPermitted
from registry.formats.base import Reference, ResolvedReference
from registry.subjects.lifecycle.deletion import refuse_referenced
from registry.subjects.models import Context, Registry, Schema, SchemaReference, SchemaVersion, Subject, VersionStatus
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import EffectiveConfig, OwnConfig
from registry.subjects.registration.locks import (
    MAX_SCHEMA_ID,
    committing,
    held_subject,
    hold_subject,
    is_outermost,
    lock_context,
    lock_ids,
    lock_subject,
    no_schema_id,
    pass_schema_ids,
    pipelined,
    take_schema_id,
)
from registry.subjects.registration.submission import (
    RegistrationFacts,
    Submission,
    read_situation,
    situation_of,
    versions_of,
)
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import MAX_VERSION

LATEST = -1


@dataclass(frozen=True)
class RegistrationRequest:
    """A request's options other than the schema: its id and version, and how to process it."""

    schema_id: int | None
    version: int
    normalize: bool | None
    release: bool
    force: str
    is_tagged: bool = False
    propagate_tags: bool = False

    @property
    def may_be_there(self) -> bool:
        """Whether an existing version can be the answer; changed tags always make a new one."""
        return self.version <= 0 and not self.is_tagged and not self.propagate_tags

    def canonical(self, submission: Submission, config: EffectiveConfig) -> str:
        """Return the text that would be stored under that config."""
        return submission.canonical(normalize=config.normalize if self.normalize is None else self.normalize)


def adds_to_contracts(scope: OwnConfig) -> bool:
    """Return whether the settings add to the metadata or rule sets that are sent."""
    return any((scope.default_metadata, scope.override_metadata, scope.default_rule_set, scope.override_rule_set))


@dataclass(frozen=True)
class RegistrationState:
    """The subject under its locks; `passes` is the change guard's answer, None if it wasn't called.

    The situation was read for a submission whose text to store was `canonical`.
    """

    registry: Registry
    subject: SubjectName
    context: Context
    row: Subject
    situation: RegistrationFacts
    canonical: str
    passes: bool | None

    @property
    def config(self) -> EffectiveConfig:
        """The effective config."""
        return self.situation.config

    @property
    def scope(self) -> OwnConfig:
        """All effective settings."""
        return self.situation.scope

    @property
    def mode(self) -> str:
        """The effective mode."""
        return self.situation.mode

    @property
    def ends_with_version(self) -> bool:
        """Whether the transaction has nothing to do but to add the version of a new schema under an existing subject."""
        is_alone = self.passes is None and not self.situation.is_guarded and not self.situation.has_subscribers
        return is_alone and self.context.next_schema_id < MAX_SCHEMA_ID and is_outermost()

    def versions(self, *, latest: bool = False) -> QuerySet[SchemaVersion]:
        """Return the live versions, newest first, or only the newest."""
        rows = versions_of(self.registry, self.subject)
        return rows.filter(pk__in=rows[:1].values("pk")) if latest else rows

    def following(self) -> int:
        """Return the number of the next version, after all, also soft-deleted ones. Raises OperationNotPermitted."""
        if self.situation.highest >= MAX_VERSION:
            raise OperationNotPermitted("The subject has version 2^31-1, so there is no next one.")
        return self.situation.highest + 1


def hold(
    registry: Registry,
    subject: SubjectName,
    submission: Submission | None,
    canonical: str,
    request: RegistrationRequest,
    *,
    by: Actor,
    why: str,
) -> RegistrationState:
    """Lock the subject, created if new: then the guard is called first. An existing one may have the schema already.

    `canonical` is the text to store, as determined without a lock. The transaction begins, locks and reads in one round
    trip; the situation is read by a statement of its own, which sees what was committed before the lock.
    """
    passes = None
    with connection.cursor() as holding, connection.cursor() as reading:
        with pipelined():
            hold_subject(holding, registry, subject, by=by, why=why)
            read_situation(reading, registry, subject, submission, canonical)
        row = held_subject(holding)
        situation = situation_of(registry, reading)
        if row is None:
            passes = ask(registry, subject, request, by, applies=situation.is_guarded)
            # The context was read by a snapshot from before the lock: it may have been deleted meanwhile.
            row = lock_subject(lock_context(registry, subject.context), subject.subject)
            read_situation(reading, registry, subject, submission, canonical)
            situation = situation_of(registry, reading)
    return RegistrationState(registry, subject, row.context, row, situation, canonical, passes)


def ask(registry: Registry, subject: SubjectName, request: RegistrationRequest, by: Actor, *, applies: bool) -> bool:
    """Call the change guard if one applies, except for a release. Raises ReleaseRequired."""
    return request.release or (applies and change_guard.ask("version.register", registry, subject.qualified, by))


#: a version of the context's schema with an identity, or of a new one with the next id
_ADD: Final = f"""
WITH known AS MATERIALIZED (
    SELECT id, schema_id FROM subjects_schema
    WHERE identity = ANY(%(identities)s) AND context_id + 0 = %(context)s::bigint
    ORDER BY identity = %(identity)s DESC, schema_id LIMIT 1
), taken AS (
    UPDATE subjects_context SET next_schema_id = next_schema_id + 1
    WHERE id = %(context)s::bigint AND next_schema_id < {MAX_SCHEMA_ID} AND NOT EXISTS (SELECT FROM known) RETURNING next_schema_id - 1 AS schema_id
), made AS (
    INSERT INTO subjects_schema (context_id, schema_id, schema_type, canonical, identity, fingerprint, guid, metadata,
        rule_set, imported, created_at)
    SELECT %(context)s::bigint, schema_id, %(schema_type)s, %(canonical)s, %(identity)s, %(fingerprint)s,
        %(guid)s::uuid, %(metadata)s::jsonb, %(rule_set)s::jsonb, false, %(now)s::timestamptz
    FROM taken RETURNING id, schema_id
), {{referring}}used AS (
    SELECT id, schema_id, false AS is_known FROM made{{or_known}}
), added AS (
    INSERT INTO subjects_schemaversion (subject_id, version, schema_id, submitted, created_at, created_by, door,
        imported)
    SELECT %(subject)s::bigint, %(version)s::integer, id, %(submitted)s, %(now)s::timestamptz, %(by)s, %(door)s, false
    FROM used RETURNING id
)
SELECT added.id, used.id, used.schema_id, used.is_known FROM added CROSS JOIN used
"""  # noqa: S608
_REFERRING: Final = """referring AS (
    INSERT INTO subjects_schemareference (schema_id, position, name, subject_name, target_id)
    SELECT made.id, r.position - 1, r.name, r.subject_name, r.target FROM made CROSS JOIN unnest(
        %(names)s::text[], %(subject_names)s::text[], %(targets)s::bigint[]
    ) WITH ORDINALITY AS r(name, subject_name, target, position)
), """
_OR_KNOWN: Final = " UNION ALL SELECT id, schema_id, true FROM known"


@cache
def _add(*, refers: bool, is_new: bool) -> str:
    """Return the statement; without references, their table's triggers aren't called. A new schema must be unknown."""
    return _ADD.format(referring=_REFERRING if refers else "", or_known="" if is_new else _OR_KNOWN)


def store_version(
    state: RegistrationState, submission: Submission, canonical: str, number: int, by: Actor, *, is_known: bool | None
) -> SchemaVersion:
    """Store a new version of the context's schema with that identity, which gets the next id if it is new.

    `is_known` says whether the context had the schema when the subject was locked; None if that isn't known.

    Two writers are serialized by the counter's lock. If the context is known to have the schema, the lock isn't needed:
    schemas are deleted under the exclusive policy lock, or when an import replaces their last version; then the commit
    fails and is tried again. Earlier soft-deleted versions with the schema are deleted as in `add_version`.

    A new schema is committed in the same round trip if nothing else is to be done: then the lock lasts no longer than
    the commit. If another writer stored it meanwhile, that fails, and is tried again with what is known by then.
    """
    context, subject = state.context, state.row
    schema = schema_of(submission, canonical, context)
    now = timezone.now()
    values = {
        **{name: getattr(schema, name) for name in ("schema_type", "canonical", "identity", "fingerprint", "guid")},
        "identities": submission.identities(canonical),
        "context": context.pk,
        "metadata": _json(schema.metadata),
        "rule_set": _json(schema.rule_set),
        "names": [reference.name for reference in submission.references],
        "subject_names": [reference.subject for reference in submission.references],
        "targets": [target.pk for target in submission.targets],
        "subject": subject.pk,
        "version": number,
        "submitted": submission.submitted,
        "by": by.name,
        "door": by.channel,
        "now": now,
    }
    is_last = is_known is False and state.ends_with_version
    statement = _add(refers=bool(submission.references), is_new=is_last)
    with connection.cursor() as cursor:
        with committing(subject.name) if is_last else pipelined():
            if not is_known:
                lock_ids(context, cursor)
            cursor.execute(statement, values)
        stored = cursor.fetchone()
    if stored is None:
        raise no_schema_id(context)
    version_id, schema.pk, schema.schema_id, was_known = stored
    if was_known:
        _remove_deleted(subject, schema, number)
    return SchemaVersion(
        pk=version_id,
        subject=subject,
        version=number,
        schema=schema,
        submitted=submission.submitted,
        created_at=now,
        created_by=by.name,
        channel=by.channel,
    )


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def store_schema(context: Context, submission: Submission, canonical: str) -> Schema:
    """Return the context's schema with that identity; a new one gets the next id.

    Two writers are serialized by the counter's lock.
    """
    equals = Schema.objects.filter(context=context, identity__in=submission.identities(canonical)).order_by("schema_id")
    row = equals.first()
    if row is None:
        lock_ids(context)
        row = equals.first()
    if row is None:
        return _create_schema(context, submission, canonical, take_schema_id(context), imported=False)
    row.context = context
    return row


def add_version(
    subject: Subject, schema: Schema, number: int, submitted: str, by: Actor, *, imported: bool = False
) -> SchemaVersion:
    """Add a version. Deletes earlier soft-deleted versions with the same schema, unless something refers to them.

    An `imported` version may have a schema that is live under another number.
    """
    _remove_deleted(subject, schema, number)
    return SchemaVersion.objects.create(
        subject=subject,
        version=number,
        schema=schema,
        submitted=submitted,
        created_by=by.name,
        channel=by.channel,
        imported=imported,
    )


def _remove_deleted(subject: Subject, schema: Schema, below: int) -> None:
    gone = subject.versions.filter(schema=schema, version__lt=below, referrers__isnull=True)
    gone.exclude(deleted_at=None).delete()


def import_version(
    context: Context, subject: Subject, submission: Submission, schema_id: int | None, number: int, by: Actor
) -> tuple[SchemaVersion, bool]:
    """Import the version with its id and number (0 or -1: the next), and return whether anything was written.

    An existing version with that number is replaced if nothing refers to it. One schema may have several live versions,
    because it may have them in the source. Without a number, the version that has the schema is returned. Raises
    OperationNotPermitted if the id belongs to another schema; ReferenceExists.
    """
    rows = list(subject.versions.select_for_update().order_by("-version"))  # before the counter, which is locked last
    schema = schema_with_id(context, submission, schema_id)
    twin = next((row for row in rows if row.schema_id == schema.pk and row.deleted_at is None), None)
    if number == 0 and twin is not None:
        return twin, False
    if number <= 0:
        number = rows[0].version + 1 if rows else 1
    there = next((row for row in rows if row.version == number), None)
    if there is not None and there.schema_id == schema.pk and there.deleted_at is None:
        return there, False
    if there is None:
        return add_version(subject, schema, number, submission.submitted, by, imported=True), True
    return _replace(context, subject, there, schema, submission.submitted, by), True


def schema_with_id(context: Context, submission: Submission, schema_id: int | None) -> Schema:
    """Return the context's schema with that id, created if new; for None as `store_schema`.

    Raises OperationNotPermitted if the id belongs to another schema.
    """
    canonical = submission.canonical(normalize=False)
    if schema_id is None:
        return store_schema(context, submission, canonical)
    lock_ids(context)
    identities = submission.identities(canonical)
    row = Schema.objects.filter(context=context, schema_id=schema_id).first()
    if row is None:
        pass_schema_ids({context.pk: schema_id})
        return _create_schema(context, submission, canonical, schema_id, imported=True)
    if row.identity not in identities:
        raise OperationNotPermitted(
            f"Overwrite new schema with id {schema_id} in context {context.name} is not permitted.", schema_id=schema_id
        )
    return row


def _replace(
    context: Context, subject: Subject, row: SchemaVersion, schema: Schema, submitted: str, by: Actor
) -> SchemaVersion:
    if row.schema_id != schema.pk:
        refuse_referenced(SubjectName(context.name, subject.name), [row], deleted=True)
    before = row.schema_id
    if before != schema.pk:  # the status of the other text doesn't apply to this one
        VersionStatus.objects.filter(version=row).delete()
    row.schema, row.submitted, row.deleted_at = schema, submitted, None
    row.created_by, row.channel = by.name, by.channel
    row.imported = True
    row.save()
    Schema.objects.filter(pk=before, versions__isnull=True).delete()
    return row


def _create_schema(
    context: Context, submission: Submission, canonical: str, schema_id: int, *, imported: bool
) -> Schema:
    schema = schema_of(submission, canonical, context)
    schema.schema_id, schema.imported = schema_id, imported
    schema.save(force_insert=True)
    SchemaReference.objects.bulk_create(links_of(schema, zip(submission.references, submission.targets, strict=True)))
    return schema


def links_of(
    schema: Schema, references: Iterable[tuple[Reference | ResolvedReference, SchemaVersion]]
) -> Iterator[SchemaReference]:
    """Yield a stored schema's references as rows; `references` have the versions that they point to."""
    for position, (to, target) in enumerate(references):
        yield SchemaReference(schema=schema, position=position, name=to.name, subject_name=to.subject, target=target)


def schema_of(submission: Submission, canonical: str, context: Context | None = None) -> Schema:
    """Return the schema that would be stored, without its id."""
    identity = submission.identity(canonical)
    return Schema(
        context=context,
        schema_type=submission.schema.schema_type,
        canonical=canonical,
        identity=identity.digest,
        fingerprint=submission.fingerprint(canonical),
        guid=identity.guid,
        metadata=submission.metadata or None,
        rule_set=submission.rule_set or None,
    )
