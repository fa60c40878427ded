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
    """The text of an event for readers who may not read its whole registry."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """An event. `to` are people whom it names, `owners` own its subject; `by` is who caused it, if anybody did.

    `elsewhere` are people who are notified about the same change by another event, and not again because of their role.
    `narrow` is the text for those who may not read the whole registry; None: everybody gets the same text.
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
    """A subscription: its person, event type and patterns, and whether they want to be notified or not."""

    user_id: int
    event: str
    registry_pattern: str
    subject_pattern: str
    is_wanted: bool


@dataclass(frozen=True)
class Receiver:
    """A webhook: its number, owner, event types (none: all) and patterns."""

    id: int
    owner_id: int
    events: Collection[str]
    registry_pattern: str
    subject_pattern: str


def fits(event: Event, registry_pattern: str, subject_pattern: str) -> bool:
    """Whether shell patterns match registry and subject of an event; an event without subject matches only `*`."""
    return fnmatchcase(event.registry, registry_pattern) and fnmatchcase(event.subject, subject_pattern)


def may_know(person: Actor | None, event: Event) -> bool:
    """Whether the person may read the event's subject."""
    return person is not None and may(person, "schema.read", registry=event.registry, subject=event.subject)


def is_in_sight(person: Actor | None, event: Event) -> bool:
    """Whether the person may read the event's whole registry, and so everything in its text."""
    return person is not None and may(person, "schema.read", registry=event.registry)


def people_concerned(event: Event, rules: Iterable[SubscriptionRule], people: Mapping[int, Actor]) -> list[int]:
    """The users to notify, sorted by number.

    People whom the event names are always notified. An event for owners goes to them, unless they opted out. Otherwise
    subscribers are notified, and people whom the type concerns by their role, except the one who caused the event; an
    opt-out has precedence over both. Nobody is notified about what they may not read.
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
    """The webhooks to notify: event type and patterns match, and their owner may read the subject."""
    if EVENTS[event.type].for_owners:
        return []
    return [
        receiver.id
        for receiver in receivers
        if (not receiver.events or event.type in receiver.events)
        and fits(event, receiver.registry_pattern, receiver.subject_pattern)
        and may_know(people.get(receiver.owner_id), event)
    ]
