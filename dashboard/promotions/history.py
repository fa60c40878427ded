"""The history of a request: states, audit events, discussions, acknowledgements, and the evidence pack.

The pack is JSON for programs, and one self-contained HTML page for people.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.translation import gettext

from dashboard.components.badges import Acknowledged, RequestState
from dashboard.components.diff import text_diff
from dashboard.components.forms import ServiceForm
from dashboard.components.links import form_text
from dashboard.components.translation import for_everybody
from dashboard.components.translation import gettext_lazy as _
from dashboard.promotions.forms import AcknowledgeForm, ReplyForm, ThreadForm
from dashboard.promotions.plan import steps_of_plan
from dashboard.promotions.presenters import ConsumerRow, StateMark, ThreadRow, TimelineEntry
from dashboard.promotions.request_list import at_utc
from registry.access.roles import Actor, refusal
from registry.audit import time_travel
from registry.audit.selectors import AuditEntry, AuditFilter, list_events
from registry.promotions.checks.consumers import TAKEN_BACK, AffectedClient
from registry.promotions.models import PromotionRequest
from registry.promotions.requests.preconditions import no_speaker
from registry.promotions.reviews.affected_consumers import Consumer, consumers_of
from registry.promotions.selectors import AcknowledgementInfo, RequestInfo, ThreadInfo

STYLE: Final = (Path(__file__).resolve().parent.parent / "styles" / "evidence_pack.css").read_text()
#: the page's own content security policy: only its style, wherever the file is opened
POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'"
)


def as_json(pack: dict[str, Any]) -> str:
    """Return the pack as JSON."""
    return json.dumps(pack, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder)


def as_html(pack: dict[str, Any]) -> str:
    """Return the pack as one HTML page without scripts, links or pictures."""
    with for_everybody():
        return render_to_string(
            "promotions/evidence_pack.html", {"pack": pack, "style": f"<style>{STYLE}</style>", "policy": POLICY}
        )


def consumer_rows(info: RequestInfo, actor: Actor, sent: ServiceForm | None = None) -> tuple[ConsumerRow, ...]:
    """Return the affected clients, those that the reader can acknowledge first; the number of queries is constant."""
    latest: dict[AffectedClient, AcknowledgementInfo] = {}
    for one in info.acknowledgements:
        key = AffectedClient(one.subject, one.client)
        if one.counts or key not in latest or not latest[key].counts:
            latest[key] = one
    rows = [
        _row(number, consumer, latest.get(consumer.hurt), info, actor, sent)
        for number, consumer in enumerate(consumers_of(info))
    ]
    return tuple(sorted(rows, key=_order))


def _order(row: ConsumerRow) -> tuple[bool, bool]:
    return row.form is None or bool(row.refused), row.state is Acknowledged.DONE


def _row(
    number: int,
    consumer: Consumer,
    acknowledgement: AcknowledgementInfo | None,
    info: RequestInfo,
    actor: Actor,
    sent: ServiceForm | None,
) -> ConsumerRow:
    counts = acknowledgement is not None and acknowledgement.counts
    is_planned = info.state in PromotionRequest.PLANNED_STATES and not actor.past
    waits = not counts and is_planned
    is_own = acknowledgement is not None and counts and acknowledgement.person_id == actor.user_id
    return ConsumerRow(
        consumer=consumer,
        does=_does(consumer),
        acknowledgement=acknowledgement,
        state=Acknowledged.DONE if counts else Acknowledged.VOID if acknowledgement else Acknowledged.WAITING,
        form=_acknowledge_form(number, consumer, sent) if waits else None,
        refused=no_speaker(info, consumer, actor) if waits else "",
        is_own=is_own and is_planned,
    )


def _acknowledge_form(number: int, consumer: Consumer, sent: ServiceForm | None) -> AcknowledgeForm:
    if isinstance(sent, AcknowledgeForm):
        hurt = AffectedClient(sent["subject"].value() or "", sent["client"].value() or "")
        if hurt == consumer.hurt:
            return sent
    return AcknowledgeForm(key=number)


def _does(consumer: Consumer) -> str:
    declared = consumer.declared
    if declared is None:
        return gettext("since withdrawn")
    sentences = {
        "reads": gettext("reads version %(number)s"),
        "writes": gettext("writes version %(number)s"),
        "reads and writes": gettext("reads and writes version %(number)s"),
    }
    return sentences[declared.does] % {"number": declared.number}


def acknowledged_entries(info: RequestInfo) -> list[TimelineEntry]:
    """Return the acknowledgements as entries of the request's history."""
    return [
        TimelineEntry(
            sentence=(
                gettext("Acknowledged for %(client)s of %(subject)s")
                if acknowledgement.counts
                else gettext("Acknowledged for %(client)s of %(subject)s (for an earlier plan)")
            )
            % {"client": acknowledgement.client, "subject": acknowledgement.subject},
            at=acknowledgement.at,
            who=acknowledgement.person,
            comment=acknowledgement.note,
        )
        for acknowledgement in info.acknowledgements
    ]


MAX_EVENTS: Final = 200
_TABLE: Final = PromotionRequest._meta.db_table
_DRAFT, _REVIEW, _APPROVED = PromotionRequest.DRAFT, PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED
_SCHEDULED, _APPLYING, _APPLIED = PromotionRequest.SCHEDULED, PromotionRequest.APPLYING, PromotionRequest.APPLIED
_ENDED_BADLY: Final = (PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN, PromotionRequest.FAILED)
_STATE_SENTENCES: Final = {
    _DRAFT: _("Saved as a draft"),
    _REVIEW: _("In review"),
    _APPROVED: _("Approved: it has all approvals"),
    _SCHEDULED: _("Scheduled"),
    _APPLYING: _("Being applied"),
    _APPLIED: _("Applied"),
    PromotionRequest.REJECTED: _("Rejected"),
    PromotionRequest.WITHDRAWN: _("Withdrawn"),
    PromotionRequest.FAILED: _("Failed after it was partly applied"),
}
_REVIEWED: Final = {"approve": _("Approval"), "changes": _("Changes requested"), "reject": _("Rejected")}
_WAITS: Final = {
    _DRAFT: _("Waiting to be submitted"),
    _REVIEW: _("Waiting for review"),
    _APPROVED: _("Waiting to be applied"),
    _SCHEDULED: _("Waiting for the scheduled time"),
    _APPLYING: _("Is being applied"),
    PromotionRequest.FAILED: _("Waiting to be resumed or given up"),
}


@dataclass(frozen=True)
class StateTransition:
    """A change of state."""

    state: str
    at: datetime
    who: str


def events_of(request_id: int) -> list[AuditEntry]:
    """Return the audit events of the request's row, oldest first, until the displayed moment; one query."""
    chosen = AuditFilter(table=_TABLE, row_id=str(request_id), until=time_travel.moment())
    newest_first = list_events(chosen=chosen, limit=MAX_EVENTS)
    return newest_first[::-1]


def states_of(info: RequestInfo, events: Sequence[AuditEntry]) -> tuple[StateMark, ...]:
    """Return the states of the request: past, present and expected ones."""
    last: dict[str, StateTransition] = {}
    for event in events:
        if "state" in event.after:
            last[event.after["state"]] = StateTransition(event.after["state"], event.at, event.actor)
    usual = [_REVIEW, _APPROVED, _APPLYING, _APPLIED]
    if _DRAFT in last or info.state == _DRAFT:
        usual.insert(0, _DRAFT)
    if info.state == _SCHEDULED or (info.state == _APPLIED and _SCHEDULED in last):
        usual.insert(usual.index(_APPLYING), _SCHEDULED)
    if info.state in _ENDED_BADLY:
        reached = [state for state in usual if state in last and last[state].at <= last_at(info, last)]
        return (*(_mark(state, "done", last) for state in reached), _mark(info.state, "bad", last))
    if info.state == _APPLIED and _APPLYING not in last:
        usual.remove(_APPLYING)  # a local registry applies it in one transaction
    here = usual.index(info.state)
    return tuple(
        _mark(state, "done" if number < here or info.state == _APPLIED else "now" if number == here else "", last)
        for number, state in enumerate(usual)
    )


def last_at(info: RequestInfo, last: dict[str, StateTransition]) -> datetime:
    """Return when the request entered its present state; its creation if no event was recorded."""
    return last[info.state].at if info.state in last else info.requested_at


def _mark(state: str, mood: str, last: dict[str, StateTransition]) -> StateMark:
    moved = last.get(state) if mood else None
    return StateMark(
        state=RequestState.of(state), mood=mood, at=moved.at if moved else None, who=moved.who if moved else ""
    )


def timeline(info: RequestInfo, events: Sequence[AuditEntry]) -> tuple[TimelineEntry, ...]:
    """Return the history, oldest first, and what the request waits for."""
    entries = [entry for event in events if (entry := _entry(info, event))]
    if not entries:
        entries = [TimelineEntry(sentence=gettext("Requested"), at=info.requested_at, who=info.requested_by)]
    entries += [
        TimelineEntry(
            sentence=_REVIEWED[review.verdict]
            if review.counts
            else gettext("%(said)s (for an earlier plan)") % {"said": _REVIEWED[review.verdict]},
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
    """Return the entry for an event; None for an uninteresting one, such as a worker's claim."""
    state, moved, failure = (event.after.get(name) or "" for name in ("state", "moved", "failure"))
    mood = "bad"
    if event.operation == "INSERT":
        sentence = gettext("Created as a draft") if state == _DRAFT else gettext("Requested")
        comment, mood = info.reason, "done"
    elif moved:
        replanned = gettext("The plan changed, so earlier approvals no longer count")
        sentence, comment = replanned if state in ("", _REVIEW) else _STATE_SENTENCES[state], moved
    elif state in _ENDED_BADLY:
        sentence, comment = _STATE_SENTENCES[state], failure
    elif state:
        sentence, comment, mood = _STATE_SENTENCES[state], "", "done"
    elif failure:
        sentence, comment = gettext("An attempt to apply it failed"), failure
    elif event.why.startswith(TAKEN_BACK):
        sentence, comment, mood = gettext("An acknowledgement was withdrawn"), event.why, "done"
    else:
        return None
    return TimelineEntry(sentence=sentence, at=event.at, who=event.actor, comment=str(comment), mood=mood)


def thread_row(
    thread: ThreadInfo, info: RequestInfo, actor: Actor, place_url: str, sent: ServiceForm | None = None
) -> ThreadRow:
    """Return a discussion with the reader's actions; `sent` is a refused reply to it."""
    row = ThreadRow(
        info=thread,
        place_url=place_url,
        change=text_diff(thread.suggested_on, thread.suggestion) if thread.suggestion else None,
    )
    if not info.is_open or actor.past:
        return row
    return replace(
        row,
        can_take=bool(thread.suggestion) and not thread.is_taken and actor.user_id == info.requested_by_id,
        reply=sent if isinstance(sent, ReplyForm) else ReplyForm(key=thread.id),
        switch_refused=_no_part(thread, info, actor),
    )


def _no_part(thread: ThreadInfo, info: RequestInfo, actor: Actor) -> str:
    """Say why the reader can't resolve the discussion; "" if they can."""
    if actor.user_id in (info.requested_by_id, thread.comments[0].author_id if thread.comments else None):
        return ""
    if actor.user_id in info.needed.named_ids:
        return ""
    lacking = refusal(actor, "promotion.review", registry=info.target, subject=info.subject.qualified)
    return gettext("The person who started it, the requester or a reviewer can resolve it.") if lacking else ""


def thread_form(
    request: HttpRequest, info: RequestInfo, actor: Actor, sent: ServiceForm | None = None
) -> tuple[ThreadForm | None, str]:
    """Return the form of a new discussion about the field in the URL, and why the reader may not start one.

    The form is None for a closed request.
    """
    if not info.is_open:
        return None, ""
    subject, path = form_text(request.GET, "of"), form_text(request.GET, "about")
    if subject not in {step.subject for step in steps_of_plan(info.plan)}:
        subject, path = "", ""
    form = sent if isinstance(sent, ThreadForm) else ThreadForm(initial={"subject": subject, "path": path})
    if form["path"].value():
        form.fields["text"].label = gettext("Comment on this field")
    elif form["subject"].value():
        form.fields["text"].label = gettext("Comment on this schema")
    form.offer(info.items[0] if info.kind == PromotionRequest.PROPOSE and info.items else None)
    return form, "" if actor.user_id else gettext("Sign in to take part in the discussion.")
