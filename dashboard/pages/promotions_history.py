"""The way of a request: its states with who took it there and when, and all that happened, from the audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext

from dashboard.pages.promotions import at_utc
from dashboard.pages.promotions_consumers import acknowledged_entries
from dashboard.presenters.looks import RequestState
from dashboard.presenters.promotions_page import StateMark, TimelineEntry
from dashboard.texts import later
from registry.audit import past
from registry.audit.selectors import AuditEntry, AuditFilter, list_events
from registry.promotions.consumers import TAKEN_BACK
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import RequestInfo

MAX_EVENTS: Final = 200
_TABLE: Final = PromotionRequest._meta.db_table
_DRAFT, _REVIEW, _APPROVED = PromotionRequest.DRAFT, PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED
_SCHEDULED, _APPLYING, _APPLIED = PromotionRequest.SCHEDULED, PromotionRequest.APPLYING, PromotionRequest.APPLIED
_ENDED_BADLY: Final = (PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN, PromotionRequest.FAILED)
_SAID: Final = {
    _DRAFT: later("Kept as a draft"),
    _REVIEW: later("In review"),
    _APPROVED: later("Approved: it has the approvals that it needs"),
    _SCHEDULED: later("Scheduled"),
    _APPLYING: later("Being applied"),
    _APPLIED: later("Applied"),
    PromotionRequest.REJECTED: later("Rejected"),
    PromotionRequest.WITHDRAWN: later("Withdrawn"),
    PromotionRequest.FAILED: later("Applying it failed on the way"),
}
_REVIEWED: Final = {"approve": later("Approval"), "changes": later("Changes requested"), "reject": later("Turned down")}
_WAITS: Final = {
    _DRAFT: later("Waits to be submitted"),
    _REVIEW: later("Waits for review"),
    _APPROVED: later("Waits to be applied"),
    _SCHEDULED: later("Waits for its time"),
    _APPLYING: later("Is being applied"),
    PromotionRequest.FAILED: later("Waits for somebody to go on or give up"),
}


@dataclass(frozen=True)
class Moved:
    """A change of state."""

    state: str
    at: datetime
    who: str


def events_of(request_id: int) -> list[AuditEntry]:
    """What the audit has of the request's own row, oldest first, up to the moment that is looked at; one query."""
    chosen = AuditFilter(table=_TABLE, row_id=str(request_id), until=past.moment())
    found = list_events(chosen=chosen, limit=MAX_EVENTS)
    return found[::-1]


def states_of(info: RequestInfo, events: Sequence[AuditEntry]) -> tuple[StateMark, ...]:
    """The states on the request's way: those that it had, the present one, and those that are still to come."""
    last: dict[str, Moved] = {}
    for event in events:
        if "state" in event.after:
            last[event.after["state"]] = Moved(event.after["state"], event.at, event.actor)
    usual = [_REVIEW, _APPROVED, _APPLYING, _APPLIED]
    if _DRAFT in last or info.state == _DRAFT:
        usual.insert(0, _DRAFT)
    if info.state == _SCHEDULED or (info.state == _APPLIED and _SCHEDULED in last):
        usual.insert(usual.index(_APPLYING), _SCHEDULED)
    if info.state in _ENDED_BADLY:
        reached = [state for state in usual if state in last and last[state].at <= last_at(info, last)]
        return (*(_mark(state, "done", last) for state in reached), _mark(info.state, "bad", last))
    if info.state == _APPLIED and _APPLYING not in last:
        usual.remove(_APPLYING)  # a registry of ours takes it all at once
    here = usual.index(info.state)
    return tuple(
        _mark(state, "done" if number < here or info.state == _APPLIED else "now" if number == here else "", last)
        for number, state in enumerate(usual)
    )


def last_at(info: RequestInfo, last: dict[str, Moved]) -> datetime:
    """When the request came into its present state; when it was made, where the audit has nothing of it."""
    return last[info.state].at if info.state in last else info.requested_at


def _mark(state: str, mood: str, last: dict[str, Moved]) -> StateMark:
    moved = last.get(state) if mood else None
    return StateMark(
        state=RequestState.of(state), mood=mood, at=moved.at if moved else None, who=moved.who if moved else ""
    )


def timeline(info: RequestInfo, events: Sequence[AuditEntry]) -> tuple[TimelineEntry, ...]:
    """All that happened, oldest first, and what it waits for."""
    entries = [entry for event in events if (entry := _entry(info, event))]
    if not entries:
        entries = [TimelineEntry(sentence=gettext("Asked for"), at=info.requested_at, who=info.requested_by)]
    entries += [
        TimelineEntry(
            sentence=_REVIEWED[review.verdict]
            if review.counts
            else gettext("%(said)s (of an earlier plan)") % {"said": _REVIEWED[review.verdict]},
            at=review.at,
            who=review.reviewer,
            comment=review.comment or review.override,
            mood="bad" if review.verdict != "approve" else "done",
        )
        for review in info.reviews
    ]
    entries += acknowledged_entries(info)
    entries.sort(key=lambda entry: entry.at or info.requested_at)
    if info.state in _WAITS:
        until = f", {at_utc(info.apply_at)}" if info.state == _SCHEDULED and info.apply_at else ""
        entries.append(TimelineEntry(sentence=f"{_WAITS[info.state]}{until}", mood="now"))
    return tuple(entries)


def _entry(info: RequestInfo, event: AuditEntry) -> TimelineEntry | None:
    """An event as people read it; None for one that says nothing new, as a claim of a worker."""
    if event.operation == "INSERT":
        draft = event.after.get("state") == _DRAFT
        return TimelineEntry(
            sentence=gettext("Begun as a draft") if draft else gettext("Asked for"),
            at=event.at,
            who=event.actor,
            comment=info.reason,
        )
    moved = str(event.after.get("moved") or "")
    state = event.after.get("state")
    if moved:
        return TimelineEntry(
            sentence=gettext("The plan moved: earlier approvals are void")
            if not state or state == _REVIEW
            else _SAID[state],
            at=event.at,
            who=event.actor,
            comment=moved,
            mood="bad",
        )
    if state:
        bad = state in _ENDED_BADLY
        comment = str(event.after.get("failure") or "") if bad else ""
        return TimelineEntry(
            sentence=_SAID[state], at=event.at, who=event.actor, comment=comment, mood="bad" if bad else "done"
        )
    if event.after.get("failure"):
        return TimelineEntry(
            sentence=gettext("An attempt to apply it failed"),
            at=event.at,
            who=event.actor,
            comment=event.after["failure"],
            mood="bad",
        )
    if event.why.startswith(TAKEN_BACK):
        return TimelineEntry(
            sentence=gettext("An acknowledgement was taken back"), at=event.at, who=event.actor, comment=event.why
        )
    return None
