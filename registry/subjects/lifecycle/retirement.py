"""Deprecating, quarantining and retiring versions, and undoing that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Final

from django.utils import timezone

from registry.access.roles import Actor, require
from registry.access.selectors import owners_of
from registry.audit.context import record
from registry.errors import (
    InvalidInput,
    NotFound,
    OperationNotPermitted,
    SchemadeskError,
    VersionInUse,
    VersionNotFound,
)
from registry.subjects.events import tell_of_status
from registry.subjects.lifecycle import deletion
from registry.subjects.lifecycle.deletion import delete_subject, delete_version
from registry.subjects.models import Registry, SchemaVersion, Subject, VersionStatus
from registry.subjects.policy import change_guard
from registry.subjects.policy.effective_policy import effective_mode
from registry.subjects.registration.locks import lock_policy, retried
from registry.subjects.usage.evidence import Evidence, evidence_of
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.qualified_names import SubjectName
from registry.subjects.versions.versions import StatusInfo, parse_version, status_info, version_row

MAX_MESSAGE: Final = 2000
#: status → the verb for setting it
_VERBS: Final = {
    VersionStatus.DEPRECATED: "deprecate",
    VersionStatus.RETIRED: "retire",
    VersionStatus.QUARANTINED: "quarantine",
}
FROZEN: Final = "READONLY_OVERRIDE"


@retried
def set_version_status(
    *,
    registry: str,
    subject: SubjectName,
    version: int | str,
    status: str,
    message: str,
    by: Actor,
    ends_at: datetime | None = None,
    release: bool = False,
) -> StatusInfo:
    """Deprecate, retire or quarantine a version, which may be soft-deleted; returns the resulting status.

    `message` says why and what to use instead; `ends_at` is the last time for using a deprecated version. Setting the
    same status again changes message and end, but not its start. READONLY doesn't prevent it, because nothing is
    registered. Only applying an approved promotion sets `release`. Raises InvalidInput, NotAllowed, RegistryNotFound,
    SubjectNotFound, VersionNotFound, InvalidVersion, ReleaseRequired, OperationNotPermitted.
    """
    message = _message(status, message)
    _refuse_end(status, ends_at)
    registry_row = get_registry(registry)
    row = _begin(registry_row, subject, version, by, release=release, verb=_VERBS[status], message=message)
    before = status_info(VersionStatus.objects.filter(version=row).first())
    if before is not None and (before.status, before.message, before.ends_at) == (status, message, ends_at):
        return before
    done = _write(row, before, StatusInfo(status, message, ends_at, by.name, timezone.now()))
    _tell(registry_row, subject, row.version, before=before, after=done, by=by)
    return done


def _write(row: SchemaVersion, before: StatusInfo | None, status: StatusInfo) -> StatusInfo:
    """Return the resulting status; an unchanged one keeps its start."""
    if before is None:
        made = VersionStatus(version=row, **asdict(status))
        made.save()
        return replace(status, decided_at=made.decided_at)
    done = replace(status, decided_at=before.decided_at) if before.status == status.status else status
    # Not with `save`, which would set the current time as the start of the status.
    VersionStatus.objects.filter(version=row).update(**asdict(done))
    return done


@retried
def clear_version_status(
    *, registry: str, subject: SubjectName, version: int | str, by: Actor, release: bool = False
) -> StatusInfo:
    """Make a version active again and return its previous status. Raises NotFound if it is active.

    Also raises NotAllowed, RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion, ReleaseRequired and
    OperationNotPermitted.
    """
    registry_row = get_registry(registry)
    row = _begin(registry_row, subject, version, by, release=release, verb="clear the status of")
    before = status_info(VersionStatus.objects.filter(version=row).first())
    if before is None:
        raise NotFound(
            f"Version {row.version} of {subject.qualified} is already active.",
            subject=subject.qualified,
            version=row.version,
        )
    VersionStatus.objects.filter(version=row).delete()
    _tell(registry_row, subject, row.version, before=before, after=None, by=by)
    return before


def leave_quarantine(version_pk: int) -> bool:
    """End the quarantine of an adopted version, inside the transaction and the audit of the applied request."""
    rows = VersionStatus.objects.filter(version=version_pk, status=VersionStatus.QUARANTINED)
    return bool(rows.delete()[0])


def _tell(
    registry: Registry,
    subject: SubjectName,
    version: int,
    *,
    before: StatusInfo | None,
    after: StatusInfo | None,
    by: Actor,
) -> None:
    owners = owners_of(registry.name, subject.qualified).user_ids
    tell_of_status(registry, subject, version, before=before, after=after, by=by, owners=owners)


def _message(status: str, message: str) -> str:
    """Return the message as stored. Raises InvalidInput, also for an unknown status."""
    if status not in VersionStatus.STATUSES:
        names = ", ".join(VersionStatus.STATUSES)
        raise InvalidInput(f"Unknown status {str(status)[:40]!r}. Use one of {names}.", field="status")
    text = message.strip()
    if not text:
        raise InvalidInput("Give a reason in the message, and what to use instead.", field="message")
    if len(text) > MAX_MESSAGE:
        raise InvalidInput(
            f"The message has {len(text)} characters. At most {MAX_MESSAGE} are allowed.", field="message"
        )
    if any(not (char.isprintable() or char in "\r\n\t") for char in text):
        raise InvalidInput("The message contains a character that can't be displayed. Remove it.", field="message")
    return text


def _refuse_end(status: str, ends_at: datetime | None) -> None:
    if ends_at is None:
        return
    if status != VersionStatus.DEPRECATED:
        raise InvalidInput(
            f"Only a deprecated version can have an end date. The status {status} applies immediately.",
            field="ends_at",
        )
    if timezone.is_naive(ends_at):
        raise InvalidInput("The end date needs a time zone, for example 2026-12-31T00:00:00Z.", field="ends_at")
    if ends_at <= timezone.now():
        raise InvalidInput(
            "The end date is in the past. Retire the version, or give a later end date.", field="ends_at"
        )


def _begin(
    registry: Registry,
    subject: SubjectName,
    version: int | str,
    by: Actor,
    *,
    release: bool,
    verb: str,
    message: str = "",
) -> SchemaVersion:
    """Return the version's row, locked, after the permission, the change guard and the mode are checked."""
    number = parse_version(version)
    action = "promotion.apply" if release else "version.status"
    require(by, action, registry=registry.name, subject=subject.qualified)
    lock_policy(registry)
    mode = effective_mode(registry, subject).mode
    if mode == FROZEN and registry.kind != Registry.REMOTE:  # a mirror always has this mode
        raise OperationNotPermitted(
            f"Subject {subject.subject} in context {subject.context} is in mode {FROZEN}: no changes are allowed.",
            mode=mode,
        )
    unlocked_row = version_row(get_subject(registry, subject, deleted=True), number, deleted=number is not None)
    row = SchemaVersion.objects.select_for_update().get(pk=unlocked_row.pk)
    suffix = f": {message}" if message else ""
    record(by=by, why=f"{verb} version {row.version} of {subject.qualified} in {registry.name}{suffix}")
    change_guard.ask(
        "version.status", registry, subject.qualified, by, release=release
    )  # last, because it extends what is recorded
    return row


DEPRECATE, SOFT, HARD, RESTORE = "deprecate", "soft", "hard", "restore"
CHOICES: Final = (DEPRECATE, SOFT, HARD, RESTORE)
#: choice → the permission that it needs
RIGHTS: Final = {
    DEPRECATE: "version.status",
    SOFT: "version.delete",
    HARD: "version.delete_permanently",
    RESTORE: "version.delete",
}


@dataclass(frozen=True)
class Retired:
    """What was done: the versions, ascending, and their schema ids."""

    choice: str
    versions: tuple[int, ...]
    schema_ids: tuple[int, ...]


@retried
def retire(
    *,
    registry: str,
    subject: SubjectName,
    choice: str,
    by: Actor,
    version: int | None = None,
    confirmed: str = "",
    message: str = "",
    ends_at: datetime | None = None,
    force: str = "",
) -> Retired:
    """Do one step with a version or (None) the whole subject; all or nothing.

    `confirmed` is the subject's name as typed, for deletions. `message` and `ends_at` belong to a deprecation. `force`
    is the reason to permanently delete what is or may be in use, or to restore what breaks the level. Raises
    InvalidInput, VersionInUse, and the errors of set_version_status, delete_version, delete_subject and restoring.
    """
    if choice not in CHOICES:
        raise InvalidInput(f"{choice[:40]!r} is not an action. Use one of {', '.join(CHOICES)}.", field="choice")
    registry_row = get_registry(registry)
    require(by, RIGHTS[choice], registry=registry_row.name, subject=subject.qualified)
    if choice in (SOFT, HARD) and confirmed.strip() != subject.qualified:
        raise InvalidInput(
            f"To confirm the deletion, type the name of the subject: {subject.qualified}", field="confirmed"
        )
    lock_policy(registry_row, exclusive=choice == HARD)
    row = Subject.objects.select_for_update().get(pk=get_subject(registry_row, subject, deleted=True).pk)
    rows = _meant(row, subject, choice, version)
    done = Retired(
        choice, tuple(item.version for item in rows), tuple(sorted({item.schema.schema_id for item in rows}))
    )
    if choice == DEPRECATE:
        for item in rows:
            set_version_status(
                registry=registry_row.name, subject=subject, version=item.version, status="deprecated", message=message,
                ends_at=ends_at, by=by,
            )  # fmt: skip
    elif choice == RESTORE:
        deletion.restore(row, rows, subject, by=by, force=force)
    else:
        if choice == HARD and all(item.deleted_at is not None for item in rows):  # the deletion refuses the others
            _refuse_unknown(evidence_of(registry_row, subject, done.versions), subject, by, registry_row.name, force)
        _delete(registry_row.name, subject, version, by=by, permanent=choice == HARD, force=force)
    return done


@retried
def restore_each(
    *, registry: str, subject: SubjectName, versions: Sequence[int], by: Actor
) -> dict[int, SchemadeskError]:
    """Restore the versions that `by` may restore and that can be, ascending; returns the errors of the others."""
    numbers = sorted(versions)
    try:
        registry_row = get_registry(registry)
        require(by, RIGHTS[RESTORE], registry=registry_row.name, subject=subject.qualified)
        lock_policy(registry_row)
        row = Subject.objects.select_for_update().get(pk=get_subject(registry_row, subject, deleted=True).pk)
        rows = {row.version: row for row in _meant(row, subject, RESTORE, None)}
    except SchemadeskError as error:
        return dict.fromkeys(numbers, error)
    lost = {
        number: InvalidInput(f"There is nothing to restore for version {number} of {subject.qualified}.")
        for number in numbers
        if number not in rows
    }
    return lost | deletion.restore_each(row, [rows[number] for number in numbers if number in rows], subject, by=by)


def _meant(subject: Subject, name: SubjectName, choice: str, version: int | None) -> list[SchemaVersion]:
    """Return the versions that the step changes. Raises VersionNotFound, InvalidInput if there are none."""
    rows = list(subject.versions.select_related("schema").order_by("version"))
    if version is not None:
        rows = [row for row in rows if row.version == version]
        if not rows:
            raise VersionNotFound(f"Version {version} of {name.qualified} not found.", version=version)
    if choice in (DEPRECATE, SOFT):
        chosen = [row for row in rows if row.deleted_at is None]
    else:
        chosen = [row for row in rows if row.deleted_at is not None] if choice == RESTORE else rows
    if not chosen and choice != SOFT:  # the deletion reports what is deleted already
        raise InvalidInput(f"There is nothing to {choice} for {name.qualified}: {_what_is(rows)}.", field="choice")
    return chosen


def _what_is(rows: Sequence[SchemaVersion]) -> str:
    return (
        "all versions are soft-deleted"
        if all(row.deleted_at is not None for row in rows)
        else "no versions are deleted"
    )


def _refuse_unknown(
    evidence: dict[int, tuple[Evidence, ...]], subject: SubjectName, by: Actor, registry: str, force: str
) -> None:
    """Refuse a permanent deletion without a reason unless the versions are known to be unused. Raises VersionInUse."""
    doubts = [item for items in evidence.values() for item in items if item.in_use != "no"]
    if not doubts:
        return
    if force.strip():
        require(by, "version.force", registry=registry, subject=subject.qualified)
        return
    worst = next((item for item in doubts if item.in_use == "yes"), doubts[0])
    state = "is in use" if worst.in_use == "yes" else "may be in use"
    raise VersionInUse(
        f"{subject.qualified} {state}: {worst.sentence} Wait, have its topics scanned, or give a reason to delete "
        "it anyway (in the API: `force`).",
        subject=subject.qualified,
        versions=sorted(number for number, items in evidence.items() if any(item.in_use != "no" for item in items)),
        reasons=[item.sentence for item in doubts],
    )


def _delete(
    registry: str, subject: SubjectName, version: int | None, *, by: Actor, permanent: bool, force: str
) -> None:
    if version is None:
        delete_subject(registry=registry, subject=subject, by=by, permanent=permanent, force=force)
    else:
        delete_version(registry=registry, subject=subject, version=version, by=by, permanent=permanent, force=force)
