"""The event types that people and programs can be notified about, and the recipients of an event. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from registry.access.name_patterns import name_pattern
from registry.access.roles import Actor, may

ANY: Final = "*"
TEST: Final = "webhook.test"
DISABLED: Final = "webhook.disabled"
OWNED: Final = "finding.owned"


@dataclass(frozen=True)
class EventType:
    """An event type. `sentence` is the text of an event without its own.

    `concerns` names an action of registry/access/roles.py: everybody who may do it there is notified without a
    subscription; empty: only subscribers and people named by the event. `for_owners`: only the owners of the subject
    are notified, without a subscription, and no webhooks.
    """

    id: str
    title: str
    sentence: str
    concerns: str = ""
    for_owners: bool = False


_ROWS = (
    EventType("version.registered", "Version registered", "A version of {subject} was registered in {registry}."),
    EventType("version.deleted", "Version deleted", "A version of {subject} was deleted in {registry}."),
    EventType("version.deprecated", "Version status changed", "A version of {subject} in {registry} was deprecated."),
    EventType("config.changed", "Compatibility changed", "The compatibility of {subject} changed in {registry}."),
    EventType("mode.changed", "Mode changed", "The mode of {subject} changed in {registry}.", "registry.manage"),
    EventType(
        "promotion.requested",
        "Promotion requested",
        "A promotion of {subject} to {registry} was requested.",
        "promotion.review",
    ),
    EventType("promotion.reviewed", "Promotion reviewed", "The promotion of {subject} to {registry} was reviewed."),
    EventType(
        "promotion.commented", "Promotion commented", "The promotion of {subject} to {registry} has a new comment."
    ),
    EventType(
        "promotion.suggested",
        "Change suggested",
        "A change was suggested in the promotion of {subject} to {registry}.",
    ),
    EventType(
        "promotion.suggestion_taken",
        "Suggestion taken",
        "A suggestion was taken in the promotion of {subject} to {registry}.",
    ),
    EventType("promotion.affects", "Clients affected", "A promotion of {subject} to {registry} affects its clients."),
    EventType(
        "promotion.acknowledged",
        "Promotion acknowledged",
        "The promotion of {subject} to {registry} was acknowledged for its clients.",
    ),
    EventType(
        "promotion.taken_back",
        "Acknowledgement withdrawn",
        "The acknowledgement of the promotion of {subject} to {registry} was withdrawn.",
    ),
    EventType("promotion.voided", "Approval voided", "Approvals of {subject} for {registry} no longer count."),
    EventType("promotion.scheduled", "Promotion scheduled", "The promotion of {subject} to {registry} was scheduled."),
    EventType("promotion.applied", "Promotion applied", "{subject} was promoted to {registry}."),
    EventType(
        "promotion.failed", "Promotion failed", "The promotion of {subject} to {registry} failed.", "promotion.apply"
    ),
    EventType("promotion.withdrawn", "Promotion withdrawn", "The request for {subject} in {registry} was withdrawn."),
    EventType("breakglass.opened", "Break-glass opened", "Break-glass was opened in {registry}.", "registry.manage"),
    EventType(
        "breakglass.used", "Break-glass used", "Break-glass was used on {subject} in {registry}.", "registry.manage"
    ),
    EventType(
        "environment.loosening_requested",
        "Looser rules requested",
        "Looser rules were requested for {registry}.",
        "promotion.review",
    ),
    EventType("environment.loosened", "Rules loosened", "The rules of {registry} were loosened.", "promotion.review"),
    EventType(
        "environment.loosening_declined",
        "Looser rules declined",
        "A request to loosen the rules of {registry} was rejected.",
        "promotion.review",
    ),
    EventType(
        "environment.loosening_withdrawn",
        "Looser rules withdrawn",
        "A request to loosen the rules of {registry} was withdrawn.",
        "promotion.review",
    ),
    EventType("finding.opened", "Finding opened", "Drift was found on {subject} in {registry}.", "finding.decide"),
    EventType(OWNED, "Drift on your subject", "Drift was found on {subject} in {registry}.", for_owners=True),
    EventType("finding.reopened", "Finding reopened", "Drift came back on {subject} in {registry}.", "finding.decide"),
    EventType("finding.resolved", "Finding resolved", "Drift on {subject} in {registry} was resolved."),
    EventType("scan.failed", "Scan failed", "A scan for {registry} failed.", "source.manage"),
    EventType("mirror.failed", "Mirror failed", "The mirror {registry} can't be synced.", "registry.manage"),
    EventType(DISABLED, "Webhook turned off", "A webhook was turned off."),
    EventType(TEST, "Test message", "A test message."),
)
EVENTS: Final[dict[str, EventType]] = {row.id: row for row in _ROWS}
#: the types that a person may subscribe to; a test message goes only to its webhook
SUBSCRIBABLE: Final = tuple(row.id for row in _ROWS if row.id not in (TEST, DISABLED))
#: the types that a webhook may receive
FOR_WEBHOOKS: Final = tuple(row.id for row in _ROWS if row.id != TEST and not row.for_owners)


def sentence_of(event: str, *, registry: str, subject: str) -> str:
    """Return the sentence of an event type. Raises KeyError for an unknown type."""
    return EVENTS[event].sentence.format(subject=subject or "the registry", registry=registry or "the registry")


@dataclass(frozen=True)
class RestrictedText:
    """The text of an event for readers who may not read its whole registry."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """An event. `to` are the people that it names, `owners` own its subject; `by` is the person who caused it, if any.

    `elsewhere` are people who are notified about the same change by another event, and not again because of their role.
    `narrow` is the text for people who may not read the whole registry; None: everybody gets the same text.
    `for_subscribers`: nobody is notified because of their role.
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
    for_subscribers: bool = False


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
    """A webhook: its id, owner, event types (none: all) and patterns."""

    id: int
    owner_id: int
    events: Collection[str]
    registry_pattern: str
    subject_pattern: str


def fits(event: Event, registry_pattern: str, subject_pattern: str) -> bool:
    """Return whether the patterns match an event's registry and subject; an event without subject matches only `*`."""
    return name_pattern(registry_pattern).allows(event.registry) and name_pattern(subject_pattern).allows(event.subject)


def may_read_subject(person: Actor | None, event: Event) -> bool:
    """Return whether the person may read the event's subject."""
    return person is not None and may(person, "schema.read", registry=event.registry, subject=event.subject)


def may_read_registry(person: Actor | None, event: Event) -> bool:
    """Return whether the person may read the event's whole registry, and so everything in its text."""
    return person is not None and may(person, "schema.read", registry=event.registry)


def people_concerned(event: Event, rules: Iterable[SubscriptionRule], people: Mapping[int, Actor]) -> list[int]:
    """Return the ids of the users to notify, sorted.

    People named by the event are always notified. An event for owners goes to them, unless they opted out. Otherwise
    the recipients are subscribers and people concerned by their role, except the one who caused the event; an opt-out
    has precedence over both. Nobody is notified about what they may not read.
    """
    fitting = [
        rule
        for rule in rules
        if rule.event in (ANY, event.type) and fits(event, rule.registry_pattern, rule.subject_pattern)
    ]
    action = "" if event.for_subscribers else EVENTS[event.type].concerns
    by_role = {
        number
        for number, person in people.items()
        if action and may(person, action, registry=event.registry, subject=event.subject)
    } - {event.by, *event.elsewhere}
    unwanted = {rule.user_id for rule in fitting if not rule.is_wanted}
    if EVENTS[event.type].for_owners:
        recipients = set(event.owners) - unwanted
        return sorted(number for number in recipients if may_read_subject(people.get(number), event))
    recipients = ({rule.user_id for rule in fitting} | by_role) - unwanted | set(event.to)
    return sorted(number for number in recipients if may_read_subject(people.get(number), event))


def webhooks_concerned(event: Event, receivers: Iterable[Receiver], people: Mapping[int, Actor]) -> list[int]:
    """Return the ids of the webhooks to notify: event type and patterns match, and the owner may read the subject."""
    if EVENTS[event.type].for_owners:
        return []
    return [
        receiver.id
        for receiver in receivers
        if (not receiver.events or event.type in receiver.events)
        and fits(event, receiver.registry_pattern, receiver.subject_pattern)
        and may_read_subject(people.get(receiver.owner_id), event)
    ]
