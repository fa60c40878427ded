"""Soft and permanent deletion, in their order."""

from __future__ import annotations

from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import (
    OperationNotPermitted,
    ReferenceExists,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from registry.subjects import gate
from registry.subjects.association_errors import AssociationForSubjectExists, NoActiveVersion
from registry.subjects.evidence import refuse_in_use
from registry.subjects.models import Config, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.associations import is_in_use
from registry.subjects.selectors.effective import effective_mode
from registry.subjects.selectors.places import get_registry, get_subject
from registry.subjects.selectors.versions import parse_version, version_row
from registry.subjects.services.keeping import keep_deleted
from registry.subjects.services.locks import lock_policy, retried
from registry.subjects.telling import tell_of_deletion


@retried
def delete_subject(
    *, registry: str, subject: SubjectName, by: Actor, permanent: bool = False, force: str = "", tell: bool = True
) -> list[int]:
    """Soft-delete all live versions, or with `permanent` remove the soft-deleted subject; gives the version numbers.

    `force` is the reason of somebody who may remove what is in use. `tell` False: it is a part of what is told of.
    Raises SubjectNotFound, SubjectSoftDeleted, SubjectNotSoftDeleted, ReferenceExists, OperationNotPermitted,
    ReleaseRequired, VersionInUse, and AssociationForSubjectExists for a subject that a resource uses.
    """
    place = _begin(registry, subject, by, permanent=permanent, force=force)
    row = _locked(get_subject(place, subject, deleted=True))
    rows = list(row.versions.select_related("schema").order_by("version"))
    alive = [version for version in rows if version.deleted_at is None]
    if is_in_use(place, subject):
        raise AssociationForSubjectExists(subject.qualified)
    if permanent and alive:
        raise SubjectNotSoftDeleted(
            f"Subject '{subject.qualified}' was not deleted first before being permanently deleted"
        )
    if not permanent and not alive:
        raise SubjectSoftDeleted(
            f"Subject '{subject.qualified}' was soft deleted.Set permanent=true to delete permanently"
        )
    doomed = rows if permanent else alive
    refuse_referenced(subject, doomed, deleted=permanent, within=row)
    if permanent:
        refuse_in_use(place, subject, [version.version for version in doomed], by=by, force=force)
    remove_versions(row, doomed) if permanent else _mark(doomed)
    numbers = [version.version for version in doomed]
    if tell:
        tell_of_deletion(place, subject, versions=numbers, permanent=permanent, by=by)
    return numbers


@retried
def delete_version(
    *,
    registry: str,
    subject: SubjectName,
    version: int | str,
    by: Actor,
    permanent: bool = False,
    force: str = "",
    tell: bool = True,
) -> int:
    """Soft-delete one version, or with `permanent` remove a soft-deleted one; gives its number.

    `force` is the reason of somebody who may remove what is in use. `tell` False: it is a part of what is told of.
    Raises SubjectNotFound, VersionNotFound, InvalidVersion, VersionSoftDeleted, VersionNotSoftDeleted,
    ReferenceExists, OperationNotPermitted, ReleaseRequired, VersionInUse, and NoActiveVersion for the last live one of a
    subject that a resource uses.
    """
    number = parse_version(version)
    place = _begin(registry, subject, by, permanent=permanent, force=force)
    row = _locked(get_subject(place, subject, deleted=True))
    found = version_row(row, number, deleted=number is not None)
    name = f"Subject '{subject.qualified}' Version {found.version}"
    if permanent and found.deleted_at is None:
        raise VersionNotSoftDeleted(f"{name} was not deleted first before being permanently deleted")
    if not permanent and found.deleted_at is not None:
        raise VersionSoftDeleted(f"{name} was soft deleted.Set permanent=true to delete permanently")
    if not permanent and is_in_use(place, subject) and not _others(row, found):
        raise NoActiveVersion(subject.qualified)
    refuse_referenced(subject, [found], deleted=permanent)
    if permanent:
        refuse_in_use(place, subject, [found.version], by=by, force=force)
    remove_versions(row, [found]) if permanent else _mark([found])
    if tell:
        tell_of_deletion(place, subject, versions=[found.version], permanent=permanent, by=by)
    return found.version


def _begin(registry: str, subject: SubjectName, by: Actor, *, permanent: bool, force: str) -> Registry:
    place = get_registry(registry)
    action = "version.delete_permanently" if permanent else "version.delete"
    require(by, action, registry=place.name, subject=subject.qualified)
    reason = f", forced: {force}" if force else ""
    record(by=by, why=f"delete {subject.qualified}{' permanently' if permanent else ''}{reason}")
    lock_policy(place, exclusive=permanent)
    passes = gate.ask(action, place, subject.qualified, by)
    mode = effective_mode(place, subject).mode
    if gate.stops(mode, passes=passes):
        raise OperationNotPermitted(
            f"Subject {subject.subject} in context {subject.context} is in read-only mode", mode=mode
        )
    return place


def _others(subject: Subject, version: SchemaVersion) -> bool:
    """Whether the subject has a live version beside that one."""
    return subject.versions.filter(deleted_at=None).exclude(pk=version.pk).exists()


def _locked(subject: Subject) -> Subject:
    return Subject.objects.select_for_update().get(pk=subject.pk)


def refuse_referenced(
    subject: SubjectName, rows: list[SchemaVersion], *, deleted: bool, within: Subject | None = None
) -> None:
    """Raise ReferenceExists where others refer to the versions.

    A soft delete minds only live referrers; deleting a whole subject doesn't mind its own versions' references.
    """
    for row in rows:
        SchemaVersion.objects.select_for_update().get(pk=row.pk)
        referrers = SchemaVersion.objects.filter(schema__references__target=row)
        if not deleted:
            referrers = referrers.filter(deleted_at=None)
        if within is not None:
            referrers = referrers.exclude(subject=within)
        if referrers.exists():
            raise ReferenceExists(
                "One or more references exist to the schema"
                f" {{magic=1,keytype=SCHEMA,subject={subject.qualified},version={row.version}}}.",
                subject=subject.qualified,
                version=row.version,
            )


def _mark(rows: list[SchemaVersion]) -> None:
    SchemaVersion.objects.filter(pk__in=[row.pk for row in rows]).update(deleted_at=timezone.now())


def remove_versions(subject: Subject, rows: list[SchemaVersion], *, keep_settings: bool = False) -> None:
    """Remove the rows, the schemas that no version has any more, and a subject without versions with its settings.

    A copy of them is kept for some days (registry/subjects/services/keeping.py).
    """
    keep_deleted(subject, rows)
    schemas = [row.schema_id for row in rows]
    orphans = Schema.objects.filter(pk__in=schemas).exclude(
        versions__in=SchemaVersion.objects.exclude(pk__in=[row.pk for row in rows])
    )
    orphan_ids = list(orphans.values_list("pk", flat=True))
    SchemaReference.objects.filter(schema_id__in=orphan_ids).delete()
    SchemaVersion.objects.filter(pk__in=[row.pk for row in rows]).delete()
    Schema.objects.filter(pk__in=orphan_ids).delete()
    if not subject.versions.exists():
        for model in () if keep_settings else (Config, Mode):
            model.objects.filter(context=subject.context_id, subject_name=subject.name).delete()
        subject.delete()
