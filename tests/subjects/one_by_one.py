"""Bringing versions and restoring them one by one, as plainly as can be: what doing it at once must come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from registry.access.roles import Actor
from registry.errors import InvalidInput, OperationNotPermitted, SchemadeskError
from registry.subjects.models import Registry, SchemaVersion, Subject
from registry.subjects.names import SubjectName, check_context, parse_subject
from registry.subjects.selectors.parsed import parse_schema, resolve_references
from registry.subjects.selectors.submission import Submission, refuse_too_large
from registry.subjects.services.incoming import hold
from registry.subjects.services.incoming_versions import Brought
from registry.subjects.services.locks import lock_context, lock_subject
from registry.subjects.services.retiring import RESTORE, retire
from registry.subjects.services.storing import schema_with_id
from registry.subjects.snapshot import Problem, VersionRecord


def bring_one_by_one(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> Brought:
    """Each in a savepoint of its own."""
    hold(registry, by=by, why=why)
    done = Brought()
    for item in records:
        try:
            with transaction.atomic():
                done += _bring(registry, _subject(registry, item), item, by)
        except SchemadeskError as error:
            done += Brought(problems=(Problem(item.title, error.message),))
        except (IntegrityError, DataError) as error:
            reason = str(error).partition("\n")[0][:200]
            done += Brought(problems=(Problem(item.title, f"the database refuses it: {reason}"),))
    return done


def restore_one_by_one(*, registry: str, subject: SubjectName, versions: Sequence[int], by: Actor) -> dict[int, str]:
    """Each as a person would; gives what hinders the others."""
    errors = {}
    for version in sorted(versions):
        try:
            with transaction.atomic():
                retire(registry=registry, subject=subject, choice=RESTORE, version=version, by=by)
        except SchemadeskError as error:
            errors[version] = error.message
    return errors


def _subject(registry: Registry, item: VersionRecord) -> Subject:
    check_context(item.subject.context)
    if parse_subject(item.subject.qualified) != item.subject:
        raise InvalidInput("its name would mean another subject.")
    return lock_subject(lock_context(registry, item.subject.context), item.subject.subject)


def _bring(registry: Registry, subject: Subject, item: VersionRecord, by: Actor) -> Brought:
    submission = _submission(registry, item)
    there = next((row for row in subject.versions.select_related("schema") if row.version == item.version), None)
    if there is not None:
        return _settle(there, item, submission)
    try:
        schema = schema_with_id(subject.context, submission, item.schema_id)
    except OperationNotPermitted as error:
        raise OperationNotPermitted(f"schema id {item.schema_id} stands for {_holder(subject, item)} here.") from error
    row = SchemaVersion.objects.create(
        subject=subject,
        version=item.version,
        schema=schema,
        submitted=submission.submitted,
        created_by=item.created_by or by.name,
        door=item.door or by.door,
        deleted_at=(item.deleted_at or timezone.now()) if item.deleted else None,
        imported=True,
    )
    if item.created_at:
        SchemaVersion.objects.filter(pk=row.pk).update(created_at=item.created_at)
    return Brought(added=1)


def _submission(registry: Registry, item: VersionRecord) -> Submission:
    refuse_too_large(item.text)
    found = resolve_references(registry, item.references, context=item.subject.context, deleted=True)
    resolved = tuple(reference for reference, _ in found)
    schema = parse_schema(item.schema_type, item.text, resolved, is_new=False)
    if item.submitted:
        schema = replace(schema, canonical=item.text)
    targets = tuple(target for _, target in found)
    return Submission(schema, resolved, targets, item.submitted or item.text, item.metadata, item.rule_set)


def _settle(there: SchemaVersion, item: VersionRecord, submission: Submission) -> Brought:
    if there.schema.schema_id != item.schema_id:
        raise OperationNotPermitted(f"here it has schema id {there.schema.schema_id}, there {item.schema_id}.")
    if there.schema.identity != submission.identity(submission.canonical(normalize=False)).digest:
        raise OperationNotPermitted(f"here it is another schema under the same id {item.schema_id}.")
    if (there.deleted_at is not None) == item.deleted:
        return Brought(same=1)
    deleted_at = (item.deleted_at or timezone.now()) if item.deleted else None
    SchemaVersion.objects.filter(pk=there.pk).update(deleted_at=deleted_at, imported=True)
    return Brought(changed=1)


def _holder(subject: Subject, item: VersionRecord) -> str:
    rows = SchemaVersion.objects.filter(schema__context=subject.context, schema__schema_id=item.schema_id)
    first = rows.order_by("subject__name", "version").values_list("subject__name", "version").first()
    return f"another schema ({first[0]} version {first[1]})" if first else "another schema"
