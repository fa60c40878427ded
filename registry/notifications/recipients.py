"""The recipients of an event. Pure: no database, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from registry.access.roles import Actor, may
from registry.notifications.events import ANY, EVENTS


@dataclass(frozen=True)
class RestrictedText:
    """How an event is told to those who may not read all of its registry: nothing in it is beyond their sight."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """A change as it is told. `to` are people whom it names, `owners` own its subject; `by` is who did it, if one did.

    `elsewhere` are people who are told of the same change by another event: their role doesn't tell them twice.
    `narrow` is what others than those are told who may read all of the registry; None: everybody is told the same.
    """

    type: str
    registry: str = ""
    subject: str = ""
    text: str = ""
    url: str = ""
    to: Collection[int] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    by: int | None = None
    owners: Collection[int] = ()
    elsewhere: Collection[int] = ()
    narrow: RestrictedText | None = None


@dataclass(frozen=True)
class SubscriptionRule:
    """A subscription: whose, to what, and whether it is wanted."""

    user_id: int
    event: str
    registry_pattern: str
    subject_pattern: str
    is_wanted: bool


@dataclass(frozen=True)
class Receiver:
    """A webhook: its number, its owner, what it is told (no events: all)."""

    id: int
    owner_id: int
    events: Collection[str]
    registry_pattern: str
    subject_pattern: str


def fits(event: Event, registry_pattern: str, subject_pattern: str) -> bool:
    """Whether shell patterns cover the place of an event; what has no subject only `*` covers."""
    return fnmatchcase(event.registry, registry_pattern) and fnmatchcase(event.subject, subject_pattern)


def may_know(person: Actor | None, event: Event) -> bool:
    """Whether somebody may read what the event is about."""
    return person is not None and may(person, "schema.read", registry=event.registry, subject=event.subject)


def is_in_sight(person: Actor | None, event: Event) -> bool:
    """Whether somebody may read all of the event's registry, and so all that it names."""
    return person is not None and may(person, "schema.read", registry=event.registry)


def people_concerned(event: Event, rules: Iterable[SubscriptionRule], people: Mapping[int, Actor]) -> list[int]:
    """Users to tell, in the order of their numbers.

    Those whom the change names are always told. Of what is for owners, they are, unless they don't want it. Others: who subscribed, and whom the event concerns by their role
    unless they made the change; a wish not to be told wins over both. Nobody is told what they may not read.
    """
    fitting = [
        rule
        for rule in rules
        if rule.event in (ANY, event.type) and fits(event, rule.registry_pattern, rule.subject_pattern)
    ]
    action = EVENTS[event.type].concerns
    by_role = {
        number
        for number, person in people.items()
        if action and may(person, action, registry=event.registry, subject=event.subject)
    } - {event.by, *event.elsewhere}
    unwanted = {rule.user_id for rule in fitting if not rule.is_wanted}
    if EVENTS[event.type].for_owners:
        recipients = set(event.owners) - unwanted
        return sorted(number for number in recipients if may_know(people.get(number), event))
    recipients = ({rule.user_id for rule in fitting} | by_role) - unwanted | set(event.to)
    return sorted(number for number in recipients if may_know(people.get(number), event))


def webhooks_concerned(event: Event, receivers: Iterable[Receiver], people: Mapping[int, Actor]) -> list[int]:
    """Webhooks to tell: their events and patterns fit, and their owner may read it."""
    if EVENTS[event.type].for_owners:
        return []
    return [
        receiver.id
        for receiver in receivers
        if (not receiver.events or event.type in receiver.events)
        and fits(event, receiver.registry_pattern, receiver.subject_pattern)
        and may_know(people.get(receiver.owner_id), event)
    ]
