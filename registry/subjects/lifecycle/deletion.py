"""Soft deletion, then permanent deletion; and restoring where the rules for a new version permit it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import (
    InvalidInput,
    InvalidReference,
    OperationNotPermitted,
    ReferenceExists,
    SchemadeskError,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from registry.formats.base import ParsedSchema
from registry.subjects.archive.archive import keep_deleted
from registry.subjects.associations.requests import AssociationForSubjectExists, NoActiveVersion
from registry.subjects.associations.rules import is_in_use
from registry.subjects.comparison.comparison import LENIENT_POLICY, live_rows, of_group, parsed_history
from registry.subjects.engine import schema_engine
from registry.subjects.events import tell_of_deletion, tell_of_restoring
from registry.subjects.models import Config, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import EffectiveConfig, OwnConfig, config_and_settings, effective_mode
from registry.subjects.registration.locks import lock_policy, lock_referenced, retried
from registry.subjects.usage.evidence import refuse_in_use
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.parsed_schemas import parser_of
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import parse_version, version_row


@retried
def delete_subject(
    *, registry: str, subject: SubjectName, by: Actor, permanent: bool = False, force: str = "", tell: bool = True
) -> list[int]:
    """Soft-delete all live versions, or with `permanent` delete the soft-deleted subject; returns the version numbers.

    `force` is the reason to delete versions in use, which needs a permission. `tell` False: the caller announces it.
    Raises SubjectNotFound, SubjectSoftDeleted, SubjectNotSoftDeleted, ReferenceExists, OperationNotPermitted,
    ReleaseRequired, VersionInUse, and AssociationForSubjectExists for a subject that a resource uses.
    """
    registry_row = _begin_deletion(registry, subject, by, permanent=permanent, force=force)
    row = _locked(get_subject(registry_row, subject, deleted=True))
    rows = list(row.versions.select_related("schema").order_by("version"))
    alive = [version for version in rows if version.deleted_at is None]
    if is_in_use(registry_row, subject):
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
        refuse_in_use(registry_row, subject, [version.version for version in doomed], by=by, force=force)
    remove_versions(row, doomed) if permanent else _mark(doomed)
    numbers = [version.version for version in doomed]
    if tell:
        tell_of_deletion(registry_row, subject, versions=numbers, permanent=permanent, by=by)
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
    """Soft-delete one version, or with `permanent` delete a soft-deleted one; returns its number.

    `force` is the reason to delete a version in use, which needs a permission. `tell` False: the caller announces it.
    Raises SubjectNotFound, VersionNotFound, InvalidVersion, VersionSoftDeleted, VersionNotSoftDeleted, ReferenceExists,
    OperationNotPermitted, ReleaseRequired, VersionInUse, and NoActiveVersion for the last live one of a subject that a
    resource uses.
    """
    number = parse_version(version)
    registry_row = _begin_deletion(registry, subject, by, permanent=permanent, force=force)
    row = _locked(get_subject(registry_row, subject, deleted=True))
    stored_version = version_row(row, number, deleted=number is not None)
    name = f"Subject '{subject.qualified}' Version {stored_version.version}"
    if permanent and stored_version.deleted_at is None:
        raise VersionNotSoftDeleted(f"{name} was not deleted first before being permanently deleted")
    if not permanent and stored_version.deleted_at is not None:
        raise VersionSoftDeleted(f"{name} was soft deleted.Set permanent=true to delete permanently")
    if not permanent and is_in_use(registry_row, subject) and not _others(row, stored_version):
        raise NoActiveVersion(subject.qualified)
    refuse_referenced(subject, [stored_version], deleted=permanent)
    if permanent:
        refuse_in_use(registry_row, subject, [stored_version.version], by=by, force=force)
    remove_versions(row, [stored_version]) if permanent else _mark([stored_version])
    if tell:
        tell_of_deletion(registry_row, subject, versions=[stored_version.version], permanent=permanent, by=by)
    return stored_version.version


def _begin_deletion(registry: str, subject: SubjectName, by: Actor, *, permanent: bool, force: str) -> Registry:
    registry_row = get_registry(registry)
    action = "version.delete_permanently" if permanent else "version.delete"
    require(by, action, registry=registry_row.name, subject=subject.qualified)
    reason = f", forced: {force}" if force else ""
    record(by=by, why=f"delete {subject.qualified}{' permanently' if permanent else ''}{reason}")
    lock_policy(registry_row, exclusive=permanent)
    passes = change_guard.ask(action, registry_row, subject.qualified, by)
    mode = effective_mode(registry_row, subject).mode
    if change_guard.stops(mode, passes=passes):
        raise OperationNotPermitted(
            f"Subject {subject.subject} in context {subject.context} is in read-only mode", mode=mode
        )
    return registry_row


def _others(subject: Subject, version: SchemaVersion) -> bool:
    """Return whether the subject has another live version."""
    return subject.versions.filter(deleted_at=None).exclude(pk=version.pk).exists()


def _locked(subject: Subject) -> Subject:
    return Subject.objects.select_for_update().get(pk=subject.pk)


def refuse_referenced(
    subject: SubjectName, rows: list[SchemaVersion], *, deleted: bool, within: Subject | None = None
) -> None:
    """Raise ReferenceExists if other versions refer to these.

    A soft delete considers only live referrers; deleting a whole subject ignores references between its own versions.
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
    """Delete the rows, their schemas that no other version has, and a subject without versions with its settings.

    A copy of them is kept for some days (registry/subjects/archive/archive.py).
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


@retried
def remove_version(*, registry: str, subject: SubjectName, version: int, by: Actor) -> None:
    """Delete a live version permanently; its number may be reused, its id may not.

    Raises NotSignedIn, NotAllowed, SubjectNotFound, VersionNotFound, VersionSoftDeleted, ReferenceExists and
    OperationNotPermitted; then nothing has changed.
    """
    _begin_removal(registry, subject, by)
    delete_version(registry=registry, subject=subject, version=version, by=by, tell=False)
    delete_version(registry=registry, subject=subject, version=version, by=by, permanent=True)


@retried
def remove_subject(*, registry: str, subject: SubjectName, by: Actor) -> list[int]:
    """Delete a subject with all its versions permanently and return their numbers, none if it has no live version.

    Raises NotSignedIn, NotAllowed, ReferenceExists and OperationNotPermitted; then nothing has changed.
    """
    _begin_removal(registry, subject, by)
    try:
        delete_subject(registry=registry, subject=subject, by=by, tell=False)
    except (SubjectNotFound, SubjectSoftDeleted):
        return []
    return delete_subject(registry=registry, subject=subject, by=by, permanent=True)


def _begin_removal(registry: str, subject: SubjectName, by: Actor) -> None:
    """Check the permission and take the exclusive lock now: upgrading a shared one may deadlock."""
    registry_row = get_registry(registry)
    require(by, "version.delete_permanently", registry=registry_row.name, subject=subject.qualified)
    lock_policy(registry_row, exclusive=True)


def restore(subject: Subject, rows: Sequence[SchemaVersion], name: SubjectName, *, by: Actor, force: str) -> None:
    """Restore soft-deleted versions, with their numbers and ids, if the rules for a new version permit it.

    They are also compared with versions that were registered since. Raises OperationNotPermitted, ReleaseRequired,
    InvalidReference, InvalidInput, NotAllowed.
    """
    registry = subject.context.registry
    _begin_undeletion(registry, name, by, force)
    live = dict(subject.versions.filter(deleted_at=None).order_by("version").values_list("schema_id", "version"))
    for row in rows:
        _refuse_twice(row, live)
    _refuse_lost(rows)
    if force.strip():
        require(by, "version.force", registry=registry.name, subject=name.qualified)
    SchemaVersion.objects.filter(pk__in=[row.pk for row in rows]).update(deleted_at=None)
    if not force.strip():
        _refuse_broken(subject, name, {row.version for row in rows})
    tell_of_restoring(registry, name, versions=[row.version for row in rows], by=by)


def _begin_undeletion(registry: Registry, name: SubjectName, by: Actor, force: str = "") -> None:
    """Record the reason. Raises ReleaseRequired, OperationNotPermitted."""
    forced = f", forced: {force}" if force else ""
    record(by=by, why=f"restore {name.qualified} in {registry.name}{forced}")
    passes = change_guard.ask("version.delete", registry, name.qualified, by)
    mode = effective_mode(registry, name).mode
    if change_guard.stops(mode, passes=passes):
        raise OperationNotPermitted(f"{name.qualified} is in mode {mode}: no changes are allowed.", mode=mode)


def _refuse_twice(row: SchemaVersion, live: Mapping[int, int]) -> None:
    """Refuse a schema that was registered again since; `live` has the only live version that a schema may have."""
    if row.schema_id in live:
        raise InvalidInput(
            f"Version {row.version} has the same schema as version {live[row.schema_id]}, which is live. Nothing is "
            "lost.",
            field="version",
        )


def _refuse_lost(rows: Sequence[SchemaVersion]) -> None:
    """Refuse versions with missing references; lock the existing ones."""
    links = _links(rows)
    coming = {row.pk for row in rows}
    locked_targets = lock_referenced([link.target for link in links if link.target_id not in coming])
    _refuse_missing(links, coming | locked_targets.keys())


def _links(rows: Sequence[SchemaVersion]) -> list[SchemaReference]:
    schemas = {row.schema_id for row in rows}
    return list(SchemaReference.objects.filter(schema__in=schemas).select_related("target__subject__context"))


def _refuse_missing(links: Sequence[SchemaReference], there: Collection[int]) -> None:
    lost = next((link.target for link in links if link.target_id not in there), None)
    if lost is not None:
        name = SubjectName(lost.subject.context.name, lost.subject.name).qualified
        raise InvalidReference(
            f"It refers to version {lost.version} of {name}, which is deleted. Restore that version first."
        )


def _refuse_broken(subject: Subject, name: SubjectName, restored: set[int]) -> None:
    """Check the level between the restored versions and the others, as if each were new. Raises InvalidInput."""
    rows = live_rows(subject)
    settings = config_and_settings(subject.context.registry, name)
    _refuse_breaks(rows, dict(parsed_history(rows)), settings, restored)


def _refuse_breaks(
    rows: list[SchemaVersion],
    schemas: Mapping[int, ParsedSchema],
    settings: tuple[EffectiveConfig, OwnConfig],
    restored: set[int],
) -> None:
    """Check live versions in memory, ascending; those below all restored versions are unaffected."""
    config, scope = settings
    lenient = scope.compatibility_policy == LENIENT_POLICY
    first = next(position for position, row in enumerate(rows) if row.version in restored)
    for position, row in enumerate(rows[first:], start=first):
        before = of_group(rows[:position], group=scope.compatibility_group, like=row.schema.metadata)
        history = [(other.version, schemas[other.version]) for other in before]
        if not history or (row.version not in restored and restored.isdisjoint(other.version for other in before)):
            continue
        report = schema_engine.check(
            schemas[row.version], history, config.level, profile=config.profile, lenient=lenient
        )
        broken = [item for item in report.breaks if row.version in restored or item.against_version in restored]
        if broken:
            raise InvalidInput(
                f"If restored, version {row.version} would not be compatible under {config.level} with version "
                f"{broken[0].against_version}: {broken[0].message} Register a compatible schema instead, or force it with "
                "a reason.",
                field="version",
            )


# -- each version separately -------------------------------------------------------------------------------------------


def restore_each(
    subject: Subject, rows: Sequence[SchemaVersion], name: SubjectName, *, by: Actor
) -> dict[int, SchemadeskError]:
    """Restore the soft-deleted versions that can be restored, ascending, one after the other; announce it once.

    Returns the errors of the others by number. What they need is read once for all of them.
    """
    errors: dict[int, SchemadeskError] = {}
    try:
        with transaction.atomic():
            _begin_undeletion(subject.context.registry, name, by)
            done = _Restoring(subject, rows, name)
            for row in rows:
                try:
                    done.add(row)
                except SchemadeskError as error:
                    errors[row.version] = error
            if len(errors) == len(rows):
                transaction.set_rollback(True)  # nothing was recorded either
                return errors
            coming = [row for row in rows if row.version not in errors]
            SchemaVersion.objects.filter(pk__in=[row.pk for row in coming]).update(deleted_at=None)
            tell_of_restoring(subject.context.registry, name, versions=[row.version for row in coming], by=by)
    except SchemadeskError as error:
        return {row.version: error for row in rows}
    return errors


class _Restoring:
    """The live versions of a subject, to which restored ones are added."""

    def __init__(self, subject: Subject, rows: Sequence[SchemaVersion], name: SubjectName) -> None:
        self._live = live_rows(subject)
        self._numbers = {row.schema_id: row.version for row in self._live}
        self._settings = config_and_settings(subject.context.registry, name)
        self._parse = parser_of([row.schema for row in (*self._live, *rows)])
        self._schemas = {row.version: self._parse(row.schema) for row in self._live}
        links = _links(rows)
        self._links: dict[int, list[SchemaReference]] = {}
        for link in links:
            self._links.setdefault(link.schema_id, []).append(link)
        self._there = set(lock_referenced([link.target for link in links]))

    def add(self, row: SchemaVersion) -> None:
        """Add a version to the live ones. Raises InvalidInput, InvalidReference, and the errors of parsing."""
        _refuse_twice(row, self._numbers)
        _refuse_missing(self._links.get(row.schema_id, ()), self._there | {row.pk})
        schemas = {**self._schemas, row.version: self._parse(row.schema)}
        live = sorted([*self._live, row], key=lambda item: item.version)
        _refuse_breaks(live, schemas, self._settings, {row.version})
        self._live, self._schemas = live, schemas
        self._numbers[row.schema_id] = row.version
        self._there.add(row.pk)
