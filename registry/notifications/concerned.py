"""Whom a happening concerns. Pure: no database, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from registry.access.roles import Actor, may
from registry.notifications.events import ANY, EVENTS


@dataclass(frozen=True)
class Narrow:
    """How a happening is told to those who may not read all of its registry: nothing in it is beyond their sight."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Happening:
    """A change as it is told. `to` are people whom it names, `owners` own its subject; `by` is who did it, if one did.

    `elsewhere` are people who are told of the same change by another happening: their role doesn't tell them twice.
    `narrow` is what others than those are told who may read all of the registry; None: everybody is told the same.
    """

    event: str
    registry: str = ""
    subject: str = ""
    text: str = ""
    url: str = ""
    to: Collection[int] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    by: int | None = None
    owners: Collection[int] = ()
    elsewhere: Collection[int] = ()
    narrow: Narrow | None = None


@dataclass(frozen=True)
class Wish:
    """A subscription: whose, to what, and whether it is wanted."""

    user_id: int
    event: str
    registry_pattern: str
    subject_pattern: str
    wanted: bool


@dataclass(frozen=True)
class Receiver:
    """A webhook: its number, its owner, what it is told (no events: all)."""

    id: int
    owner_id: int
    events: Collection[str]
    registry_pattern: str
    subject_pattern: str


def fits(happening: Happening, registry_pattern: str, subject_pattern: str) -> bool:
    """Whether shell patterns cover the place of a happening; what has no subject only `*` covers."""
    return fnmatchcase(happening.registry, registry_pattern) and fnmatchcase(happening.subject, subject_pattern)


def may_know(person: Actor | None, happening: Happening) -> bool:
    """Whether somebody may read what the happening is about."""
    return person is not None and may(person, "schema.read", registry=happening.registry, subject=happening.subject)


def is_in_sight(person: Actor | None, happening: Happening) -> bool:
    """Whether somebody may read all of the happening's registry, and so all that it names."""
    return person is not None and may(person, "schema.read", registry=happening.registry)


def people_concerned(happening: Happening, wishes: Iterable[Wish], people: Mapping[int, Actor]) -> list[int]:
    """Users to tell, in the order of their numbers.

    Those whom the change names are always told. Of what is for owners, they are, unless they don't want it. Others: who subscribed, and whom the event concerns by their role
    unless they made the change; a wish not to be told wins over both. Nobody is told what they may not read.
    """
    fitting = [
        wish
        for wish in wishes
        if wish.event in (ANY, happening.event) and fits(happening, wish.registry_pattern, wish.subject_pattern)
    ]
    action = EVENTS[happening.event].concerns
    by_role = {
        number
        for number, person in people.items()
        if action and may(person, action, registry=happening.registry, subject=happening.subject)
    } - {happening.by, *happening.elsewhere}
    unwanted = {wish.user_id for wish in fitting if not wish.wanted}
    if EVENTS[happening.event].for_owners:
        told = set(happening.owners) - unwanted
        return sorted(number for number in told if may_know(people.get(number), happening))
    told = ({wish.user_id for wish in fitting} | by_role) - unwanted | set(happening.to)
    return sorted(number for number in told if may_know(people.get(number), happening))


def webhooks_concerned(happening: Happening, receivers: Iterable[Receiver], people: Mapping[int, Actor]) -> list[int]:
    """Webhooks to tell: their events and patterns fit, and their owner may read it."""
    if EVENTS[happening.event].for_owners:
        return []
    return [
        receiver.id
        for receiver in receivers
        if (not receiver.events or happening.event in receiver.events)
        and fits(happening, receiver.registry_pattern, receiver.subject_pattern)
        and may_know(people.get(receiver.owner_id), happening)
    ]
