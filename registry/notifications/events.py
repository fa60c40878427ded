"""What people and programs can be told of: one row an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ANY: Final = "*"
TEST: Final = "webhook.test"
DISABLED: Final = "webhook.disabled"
OWNED: Final = "finding.owned"


@dataclass(frozen=True)
class Event:
    """An event. `sentence` is said where the change has no sentence of its own.

    `concerns` names an action of registry/access/roles.py: whoever may do it there is told without a subscription;
    empty: nobody but subscribers and those whom the change names. `for_owners`: the owners of the subject alone are told,
    without a subscription, and no webhook.
    """

    id: str
    title: str
    sentence: str
    concerns: str = ""
    for_owners: bool = False


_ROWS = (
    Event("version.registered", "Version registered", "A version of {subject} was registered in {registry}."),
    Event("version.deleted", "Version deleted", "A version of {subject} was deleted in {registry}."),
    Event(
        "version.deprecated", "Standing of a version changed", "A version of {subject} in {registry} was deprecated."
    ),
    Event("config.changed", "Compatibility changed", "The compatibility of {subject} changed in {registry}."),
    Event("mode.changed", "Mode changed", "The mode of {subject} changed in {registry}.", "registry.manage"),
    Event(
        "promotion.requested",
        "Promotion requested",
        "{subject} should be promoted to {registry}.",
        "promotion.review",
    ),
    Event("promotion.reviewed", "Promotion reviewed", "The promotion of {subject} to {registry} was reviewed."),
    Event("promotion.commented", "Promotion commented", "The promotion of {subject} to {registry} is discussed."),
    Event(
        "promotion.affects",
        "Declared clients don’t go on",
        "A promotion of {subject} to {registry} affects clients of it.",
    ),
    Event(
        "promotion.acknowledged", "Promotion acknowledged", "Clients of {subject} know of its promotion to {registry}."
    ),
    Event(
        "promotion.taken_back",
        "Acknowledgement taken back",
        "What clients of {subject} said of its promotion to {registry} was taken back.",
    ),
    Event("promotion.voided", "Approval voided", "Approvals of {subject} for {registry} no longer count."),
    Event("promotion.scheduled", "Promotion scheduled", "The promotion of {subject} to {registry} has a time."),
    Event("promotion.applied", "Promotion applied", "{subject} was promoted to {registry}."),
    Event(
        "promotion.failed",
        "Promotion failed",
        "The promotion of {subject} to {registry} failed.",
        "promotion.apply",
    ),
    Event("promotion.withdrawn", "Promotion withdrawn", "The request for {subject} in {registry} was withdrawn."),
    Event("breakglass.opened", "Break-glass opened", "Break-glass was opened in {registry}.", "registry.manage"),
    Event("breakglass.used", "Break-glass used", "Break-glass was used on {subject} in {registry}.", "registry.manage"),
    Event(
        "environment.loosening_requested",
        "Looser rules requested",
        "Looser rules were requested for {registry}.",
        "promotion.review",
    ),
    Event("environment.loosened", "Rules loosened", "The rules of {registry} were loosened.", "promotion.review"),
    Event(
        "environment.loosening_declined",
        "Looser rules declined",
        "A request to loosen the rules of {registry} was turned down or withdrawn.",
        "promotion.review",
    ),
    Event("finding.opened", "Finding opened", "Drift was found on {subject} in {registry}.", "finding.decide"),
    Event(OWNED, "Drift on what you own", "Drift was found on {subject} in {registry}.", for_owners=True),
    Event("finding.reopened", "Finding reopened", "Drift came back on {subject} in {registry}.", "finding.decide"),
    Event("finding.resolved", "Finding resolved", "Drift on {subject} in {registry} is over."),
    Event("scan.failed", "Scan failed", "A scan for {registry} failed.", "source.manage"),
    Event("mirror.failed", "Mirror failed", "The mirror {registry} can't be read.", "registry.manage"),
    Event(DISABLED, "Webhook switched off", "A webhook was switched off."),
    Event(TEST, "Test message", "A test message."),
)
EVENTS: Final[dict[str, Event]] = {row.id: row for row in _ROWS}
#: what a person may subscribe to: a test message goes to its webhook alone
SUBSCRIBABLE: Final = tuple(row.id for row in _ROWS if row.id not in (TEST, DISABLED))
#: what a webhook may be told
FOR_WEBHOOKS: Final = tuple(row.id for row in _ROWS if row.id != TEST and not row.for_owners)


def sentence_of(event: str, *, registry: str, subject: str) -> str:
    """The event's own sentence. Raises KeyError for an event that the table doesn't have."""
    return EVENTS[event].sentence.format(subject=subject or "the registry", registry=registry or "the registry")
