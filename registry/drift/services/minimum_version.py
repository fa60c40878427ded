"""Sets, removes and reads the minimum version of a subject that producers may still write.

It rejects nothing: registered versions stay and remain readable. Scans report messages written later with older
versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Max
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.drift.models import MinimumVersion
from registry.errors import InvalidInput, NotFound
from registry.subjects.models import Registry, Subject, VersionStatus
from registry.subjects.registration.locks import retried
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.qualified_names import SubjectName


@dataclass(frozen=True)
class MinimumVersionInfo:
    """The minimum version, its reason, and who set it since when."""

    version: int
    reason: str
    set_by: str
    set_at: datetime


def minimum_version_of(registry: Registry, name: SubjectName) -> MinimumVersionInfo | None:
    """Return a subject's minimum version; None if any version may be written. One query."""
    row = MinimumVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=name.context, subject__name=name.subject
    ).first()
    return None if row is None else MinimumVersionInfo(row.version, row.reason, row.set_by, row.set_at)


ACTION: Final = "version.status"
MAX_REASON: Final = 2_000


@retried
def set_minimum_version(
    *, registry: str, subject: SubjectName, version: int, reason: str, by: Actor
) -> MinimumVersionInfo:
    """Set the minimum version that producers should write from now on. The same version again only changes the reason.

    Raises InvalidInput, NotAllowed, NotSignedIn, RegistryNotFound, SubjectNotFound.
    """
    registry_row = get_registry(registry)
    require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    reason = _reason(reason)
    row = Subject.objects.select_for_update().get(pk=get_subject(registry_row, subject).pk)
    newest = row.versions.filter(deleted_at=None).aggregate(newest=Max("version"))["newest"] or 0
    if not 2 <= version <= newest:
        raise InvalidInput(
            f"The minimum version must be from 2 to {newest}, the newest live version: version 1 would exclude no "
            "version, and a later one would exclude all.",
            field="version",
        )
    if row.versions.filter(version=version, status__status=VersionStatus.QUARANTINED).exists():
        cure = "Take another, or clear its status first."
        raise InvalidInput(f"Version {version} is quarantined, so producers can't move to it. {cure}", field="version")
    there = MinimumVersion.objects.filter(subject=row).first()
    if there is not None and (there.version, there.reason) == (version, reason):
        return MinimumVersionInfo(there.version, there.reason, there.set_by, there.set_at)
    record(by=by, why=f"set the minimum version of {subject.qualified} in {registry_row.name} to {version}: {reason}")
    since = there.set_at if there is not None and there.version == version else timezone.now()
    MinimumVersion.objects.update_or_create(
        subject=row, defaults={"version": version, "reason": reason, "set_by": by.name, "set_at": since}
    )
    return MinimumVersionInfo(version, reason, by.name, since)


@retried
def clear_minimum_version(*, registry: str, subject: SubjectName, by: Actor) -> None:
    """Remove the minimum version. Raises NotFound if none was set, NotAllowed, RegistryNotFound, SubjectNotFound."""
    registry_row = get_registry(registry)
    require(by, ACTION, registry=registry_row.name, subject=subject.qualified)
    row = get_subject(registry_row, subject, deleted=True)
    record(by=by, why=f"remove the minimum version of {subject.qualified} in {registry_row.name}")
    done, _ = MinimumVersion.objects.filter(subject=row).delete()
    if not done:
        raise NotFound(f"{subject.qualified} has no minimum version.", subject=subject.qualified)


def _reason(text: str) -> str:
    reason = text.strip()
    if not reason:
        raise InvalidInput("Say why older versions should no longer be written.", field="reason")
    if len(reason) > MAX_REASON:
        raise InvalidInput(f"The reason has {len(reason)} characters; the maximum is {MAX_REASON}.", field="reason")
    if any(not (char.isprintable() or char in "\r\n\t") for char in reason):
        raise InvalidInput("The reason has a character that can't be displayed. Remove it.", field="reason")
    return reason
