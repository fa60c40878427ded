"""Deciding that a version shouldn't be used any more, and taking that back.

Nothing stops working by it: look-ups and `latest` give the version as before, because clients depend on them. They are
told in headers, people on pages.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Final

from django.utils import timezone

from registry.access.roles import Actor, require
from registry.access.selectors import owners_of
from registry.audit.services import record
from registry.errors import InvalidInput, NotFound, OperationNotPermitted
from registry.subjects import gate
from registry.subjects.models import Registry, SchemaVersion, VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import effective_mode
from registry.subjects.selectors.places import get_registry, get_subject
from registry.subjects.selectors.standing import Standing, standing_info
from registry.subjects.selectors.versions import parse_version, version_row
from registry.subjects.services.locks import lock_policy, retried
from registry.subjects.telling import tell_of_standing

MAX_MESSAGE: Final = 2000
#: standing → what is done by setting it, in words
_VERBS: Final = {
    VersionStanding.DEPRECATED: "deprecate",
    VersionStanding.RETIRED: "retire",
    VersionStanding.QUARANTINED: "quarantine",
}
FROZEN: Final = "READONLY_OVERRIDE"


@retried
def set_standing(
    *,
    registry: str,
    subject: SubjectName,
    version: int | str,
    standing: str,
    message: str,
    by: Actor,
    ends_at: datetime | None = None,
    release: bool = False,
) -> Standing:
    """Deprecate, retire or quarantine a version, which may be soft-deleted; gives what stands then.

    `message` says why and what to use instead; `ends_at` until when a deprecated one should be used at most. The same
    standing again changes message and end, not since when it is so. The mode READONLY plays no part: nothing is
    registered. `release` is said by the applying of an approved promotion alone.
    Raises InvalidInput, NotAllowed, RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion,
    ReleaseRequired, OperationNotPermitted.
    """
    message = _message(standing, message)
    _refuse_end(standing, ends_at)
    place = get_registry(registry)
    row = _begin(place, subject, version, by, release=release, verb=_VERBS[standing], message=message)
    before = standing_info(VersionStanding.objects.filter(version=row).first())
    if before is not None and (before.standing, before.message, before.ends_at) == (standing, message, ends_at):
        return before
    done = _write(row, before, Standing(standing, message, ends_at, by.name, timezone.now()))
    _tell(place, subject, row.version, before=before, after=done, by=by)
    return done


def _write(row: SchemaVersion, before: Standing | None, wanted: Standing) -> Standing:
    """What stands then: since before where it was called the same already."""
    if before is None:
        made = VersionStanding(version=row, **asdict(wanted))
        made.save()
        return replace(wanted, decided_at=made.decided_at)
    done = replace(wanted, decided_at=before.decided_at) if before.standing == wanted.standing else wanted
    # Not by `save`, which would put the time of this change where clients read since when it is so.
    VersionStanding.objects.filter(version=row).update(**asdict(done))
    return done


@retried
def clear_standing(
    *, registry: str, subject: SubjectName, version: int | str, by: Actor, release: bool = False
) -> Standing:
    """Bring a version back into good standing; gives what stood. Raises NotFound where it is in good standing.

    Raises NotAllowed, RegistryNotFound, SubjectNotFound, VersionNotFound, InvalidVersion, ReleaseRequired and
    OperationNotPermitted too.
    """
    place = get_registry(registry)
    row = _begin(place, subject, version, by, release=release, verb="clear the standing of")
    before = standing_info(VersionStanding.objects.filter(version=row).first())
    if before is None:
        raise NotFound(
            f"Version {row.version} of {subject.qualified} is in good standing.",
            subject=subject.qualified,
            version=row.version,
        )
    VersionStanding.objects.filter(version=row).delete()
    _tell(place, subject, row.version, before=before, after=None, by=by)
    return before


def leave_quarantine(version_pk: int) -> bool:
    """End the quarantine of a version that was adopted, inside the transaction and the audit of the applied request."""
    rows = VersionStanding.objects.filter(version=version_pk, standing=VersionStanding.QUARANTINED)
    return bool(rows.delete()[0])


def _tell(
    place: Registry, subject: SubjectName, version: int, *, before: Standing | None, after: Standing | None, by: Actor
) -> None:
    owners = owners_of(place.name, subject.qualified).user_ids
    tell_of_standing(place, subject, version, before=before, after=after, by=by, owners=owners)


def _message(standing: str, message: str) -> str:
    """The message as it is kept. Raises InvalidInput, for a standing that doesn't exist too."""
    if standing not in VersionStanding.STANDINGS:
        known = ", ".join(VersionStanding.STANDINGS)
        raise InvalidInput(f"There is no standing {str(standing)[:40]!r}; known are {known}.", field="standing")
    text = message.strip()
    if not text:
        raise InvalidInput("Say why in a message, and what to use instead.", field="message")
    if len(text) > MAX_MESSAGE:
        raise InvalidInput(f"The message has {len(text)} characters; {MAX_MESSAGE} are taken.", field="message")
    if any(not (char.isprintable() or char in "\r\n\t") for char in text):
        raise InvalidInput("The message has a character that can't be shown; take it out.", field="message")
    return text


def _refuse_end(standing: str, ends_at: datetime | None) -> None:
    if ends_at is None:
        return
    if standing != VersionStanding.DEPRECATED:
        raise InvalidInput(f"Only a deprecated version has an end; one that is {standing} is so now.", field="ends_at")
    if timezone.is_naive(ends_at):
        raise InvalidInput("The end needs a time zone, as in 2026-12-31T00:00:00Z.", field="ends_at")
    if ends_at <= timezone.now():
        raise InvalidInput("The end lies in the past; retire the version, or give a later end.", field="ends_at")


def _begin(
    place: Registry,
    subject: SubjectName,
    version: int | str,
    by: Actor,
    *,
    release: bool,
    verb: str,
    message: str = "",
) -> SchemaVersion:
    """The version's row, locked, once the right, the gate and the mode let it be changed."""
    number = parse_version(version)
    action = "promotion.apply" if release else "version.standing"
    require(by, action, registry=place.name, subject=subject.qualified)
    lock_policy(place)
    mode = effective_mode(place, subject).mode
    if mode == FROZEN and place.kind != Registry.REMOTE:  # a mirror is always in it, for what the remote holds
        raise OperationNotPermitted(
            f"Subject {subject.subject} in context {subject.context} is in mode {FROZEN}: nothing about it changes.",
            mode=mode,
        )
    found = version_row(get_subject(place, subject, deleted=True), number, deleted=number is not None)
    row = SchemaVersion.objects.select_for_update().get(pk=found.pk)
    said = f": {message}" if message else ""
    record(by=by, why=f"{verb} version {row.version} of {subject.qualified} in {place.name}{said}")
    gate.ask("version.standing", place, subject.qualified, by, release=release)  # last: it adds to what is recorded
    return row
