"""Declaring the programs that read or write a subject's data: by people once, by programs at each of their starts.

A declaration describes: no client gets another schema by it, so neither modes nor closed environments stop it. It
counts for whoever retires a version or brings one in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import ClientNotFound, InvalidInput, VersionNotFound
from registry.subjects.models import Client, Subject
from registry.subjects.models.clients import MAX_CONTACT, MAX_FIELD, MAX_FIELDS, MAX_NAME
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import get_registry, get_subject
from registry.subjects.selectors.versions import MAX_VERSION
from registry.subjects.services.locks import retried

ACTION: Final = "client.declare"
#: clients of a subject
MOST: Final = 500
#: how often "still there" is written: what reports at each start of many processes writes no more than that
SEEN_AGAIN: Final = timedelta(hours=1)


@retried
def declare_client(
    *,
    registry: str,
    subject: SubjectName,
    name: str,
    by: Actor,
    reads: bool = True,
    writes: bool = False,
    version: int | None = None,
    fields: Iterable[str] = (),
    contact: str = "",
) -> bool:
    """Say what a program does with a subject's data, or that it is still there; whether it is new.

    `version` None: it takes the newest at each start. Raises InvalidInput, NotAllowed, NotSignedIn, RegistryNotFound,
    SubjectNotFound, VersionNotFound for a version that isn't live.
    """
    given = {
        "reads": reads,
        "writes": writes,
        "version": _number(version),
        "fields": _fields(fields),
        "contact": _text(contact, "contact", MAX_CONTACT),
    }
    name = _text(name, "name", MAX_NAME)
    if not name:
        raise InvalidInput(
            "Give the client a name, such as the one that its consumer group or service has.", field="name"
        )
    if not (reads or writes):
        raise InvalidInput("A client reads or writes; say at least one.", field="reads")
    place = get_registry(registry)
    require(by, ACTION, registry=place.name, subject=subject.qualified)
    row = Subject.objects.select_for_update().get(pk=get_subject(place, subject).pk)  # so that the bound holds
    if version is not None and not row.versions.filter(version=version, deleted_at=None).exists():
        raise VersionNotFound(f"Version {version} of {subject.qualified} isn't there.", version=version)
    now = timezone.now()
    there = Client.objects.filter(subject=row, name=name).first()
    record(by=by, why=f"declare client {name} of {subject.qualified} in {place.name}")
    if there is None:
        if Client.objects.filter(subject=row).count() >= MOST:
            raise InvalidInput(f"{subject.qualified} has {MOST} clients; withdraw those that are gone.", field="name")
        Client.objects.create(subject=row, name=name, declared_by=by.name, seen_at=now, **given)
        return True
    _change(there, given, by, now)
    return False


def _change(there: Client, given: Mapping[str, object], by: Actor, now: datetime) -> None:
    """What a client says anew; that it says the same again is written now and then."""
    changed = [field for field, value in given.items() if getattr(there, field) != value]
    if not changed and now - there.seen_at < SEEN_AGAIN:
        return
    for field in changed:
        setattr(there, field, given[field])
    there.seen_at = now
    if changed:
        there.declared_by = by.name
    there.save(update_fields=[*changed, "seen_at", *(["declared_by"] if changed else [])])


@retried
def withdraw_client(*, registry: str, subject: SubjectName, name: str, by: Actor) -> None:
    """A program is gone. Raises ClientNotFound, SubjectNotFound, RegistryNotFound, NotAllowed, NotSignedIn."""
    place = get_registry(registry)
    require(by, ACTION, registry=place.name, subject=subject.qualified)
    row = get_subject(place, subject, deleted=True)
    record(by=by, why=f"withdraw client {name[:MAX_NAME]} of {subject.qualified} in {place.name}")
    done, _ = Client.objects.filter(subject=row, name=name[: MAX_NAME + 1].replace("\0", "")).delete()
    if not done:
        raise ClientNotFound(f"{subject.qualified} has no client called {name[:MAX_NAME]!r}.", name=name[:MAX_NAME])


def _number(version: int | None) -> int | None:
    if version is not None and not 1 <= version <= MAX_VERSION:
        raise InvalidInput(f"The version is {str(version)[:40]}; it takes a number from 1 to 2^31-1.", field="version")
    return version


def _fields(fields: Iterable[str]) -> list[str]:
    """Each path once, in order."""
    found = sorted({_text(path, "fields", MAX_FIELD) for path in fields} - {""})
    if len(found) > MAX_FIELDS:
        raise InvalidInput(f"These are {len(found)} fields; {MAX_FIELDS} are taken.", field="fields")
    return found


def _text(text: str, what: str, most: int) -> str:
    found = " ".join(text.split())
    if len(found) > most:
        raise InvalidInput(f"The {what} has {len(found)} characters; {most} are taken.", field=what)
    if not found.isprintable():
        raise InvalidInput(f"The {what} has a character that can't be shown; take it out.", field=what)
    return found
