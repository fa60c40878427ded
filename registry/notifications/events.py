"""The event types that people and programs can be notified about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ANY: Final = "*"
TEST: Final = "webhook.test"
DISABLED: Final = "webhook.disabled"
OWNED: Final = "finding.owned"


@dataclass(frozen=True)
class EventType:
    """An event type. `sentence` is the text of an event without its own.

    `concerns` names an action of registry/access/roles.py: whoever may do it there is notified without a subscription;
    empty: only subscribers and people whom the event names. `for_owners`: only the owners of the subject are notified,
    without a subscription, and no webhooks.
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
        "promotion.affects",
        "Clients affected",
        "A promotion of {subject} to {registry} affects its clients.",
    ),
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
        "promotion.failed",
        "Promotion failed",
        "The promotion of {subject} to {registry} failed.",
        "promotion.apply",
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
        "A request to loosen the rules of {registry} was rejected or withdrawn.",
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
    """The sentence of an event type. Raises KeyError for an unknown type."""
    return EVENTS[event].sentence.format(subject=subject or "the registry", registry=registry or "the registry")
