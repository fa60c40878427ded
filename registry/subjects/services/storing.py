"""The rows of a registration: a schema with its id, a version with its number, and what an import brings of both."""

from __future__ import annotations

from registry.access.roles import Actor
from registry.errors import OperationNotPermitted
from registry.subjects.models import Context, Schema, SchemaReference, SchemaVersion, Subject, VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.submission import Submission
from registry.subjects.services.deletion import refuse_referenced
from registry.subjects.services.locks import lock_ids, pass_schema_id, take_schema_id


def store_schema(context: Context, submission: Submission, canonical: str) -> tuple[Schema, bool]:
    """The context's schema of that identity, and whether it was known; a new one gets the next id.

    Two writers agree on the counter's lock.
    """
    known = Schema.objects.filter(context=context, identity=submission.identity(canonical).digest).order_by("schema_id")
    found = known.first()
    if found is None:
        lock_ids(context)
        found = known.first()
    if found is None:
        return _create_schema(context, submission, canonical, take_schema_id(context), imported=False), False
    found.context = context
    return found, True


def add_version(
    subject: Subject,
    schema: Schema,
    number: int,
    submitted: str,
    by: Actor,
    *,
    known: bool = True,
    imported: bool = False,
) -> SchemaVersion:
    """A new version. Soft-deleted ones below it of the same schema go, unless something refers to them.

    `known` is False for a schema that was new a moment ago, so that no version can have it. An `imported` version may be
    of a schema that is live under another number.
    """
    if known:
        gone = subject.versions.filter(schema=schema, version__lt=number, referrers__isnull=True)
        gone.exclude(deleted_at=None).delete()
    return SchemaVersion.objects.create(
        subject=subject,
        version=number,
        schema=schema,
        submitted=submitted,
        created_by=by.name,
        door=by.door,
        imported=imported,
    )


def import_version(
    context: Context, subject: Subject, submission: Submission, schema_id: int | None, number: int, by: Actor
) -> tuple[SchemaVersion, bool]:
    """The version with the id and number that it brings (0 or -1: the next), and whether anything was written.

    A version of that number that is there already gives way, if nothing refers to it. One schema may be several live
    versions: that's how it may be where it comes from. Without a number the version that has the schema is given.
    Raises OperationNotPermitted for an id that stands for another schema; ReferenceExists.
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
    """The context's schema of that id, made where it is new; for None as `store_schema`.

    Raises OperationNotPermitted for an id that stands for another schema.
    """
    canonical = submission.canonical(normalize=False)
    if schema_id is None:
        return store_schema(context, submission, canonical)[0]
    lock_ids(context)
    identity = submission.identity(canonical).digest
    found = Schema.objects.filter(context=context, schema_id=schema_id).first()
    if found is None:
        pass_schema_id(context, schema_id)
        return _create_schema(context, submission, canonical, schema_id, imported=True)
    if found.identity != identity:
        raise OperationNotPermitted(
            f"Overwrite new schema with id {schema_id} in context {context.name} is not permitted.", schema_id=schema_id
        )
    return found


def _replace(
    context: Context, subject: Subject, row: SchemaVersion, schema: Schema, submitted: str, by: Actor
) -> SchemaVersion:
    if row.schema_id != schema.pk:
        refuse_referenced(SubjectName(context.name, subject.name), [row], deleted=True)
    before = row.schema_id
    if before != schema.pk:  # what was decided of the other text says nothing of this one
        VersionStanding.objects.filter(version=row).delete()
    row.schema, row.submitted, row.created_by, row.door, row.deleted_at = schema, submitted, by.name, by.door, None
    row.imported = True
    row.save()
    Schema.objects.filter(pk=before, versions__isnull=True).delete()
    return row


def _create_schema(
    context: Context, submission: Submission, canonical: str, schema_id: int, *, imported: bool
) -> Schema:
    identity = submission.identity(canonical)
    schema = Schema.objects.create(
        context=context,
        schema_id=schema_id,
        schema_type=submission.schema.schema_type,
        canonical=canonical,
        identity=identity.digest,
        fingerprint=submission.fingerprint(canonical),
        guid=identity.guid,
        metadata=submission.metadata or None,
        rule_set=submission.rule_set or None,
        imported=imported,
    )
    pairs = zip(submission.references, submission.targets, strict=True)
    SchemaReference.objects.bulk_create(
        SchemaReference(schema=schema, position=position, name=ref.name, subject_name=ref.subject, target=target)
        for position, (ref, target) in enumerate(pairs)
    )
    return schema
