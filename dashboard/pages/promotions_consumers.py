"""The declared clients that a request hurts: who speaks for each, and who has acknowledged it."""

from __future__ import annotations

from django.utils.translation import gettext

from dashboard.pages.promotions_decision import action
from dashboard.presenters.looks import Acknowledged
from dashboard.presenters.promotions_page import ConsumerRow, TimelineEntry
from registry.access.roles import Actor
from registry.promotions.consumers import Hurt
from registry.promotions.models import PromotionRequest
from registry.promotions.reasons import no_speaker
from registry.promotions.selectors import AcknowledgementInfo, RequestInfo
from registry.promotions.selectors.consumers import Consumer, consumers_of


def consumer_rows(info: RequestInfo, actor: Actor) -> tuple[ConsumerRow, ...]:
    """All of them, what the reader can do first; a constant number of queries, none where no client is hurt."""
    said: dict[Hurt, AcknowledgementInfo] = {}
    for one in info.acknowledgements:
        key = Hurt(one.subject, one.client)
        if one.counts or key not in said or not said[key].counts:
            said[key] = one
    rows = [_row(each, said.get(each.hurt), info, actor) for each in consumers_of(info)]
    return tuple(sorted(rows, key=_order))


def _order(row: ConsumerRow) -> tuple[bool, bool]:
    return not (row.acknowledge and row.acknowledge.allowed), row.state is Acknowledged.DONE


def _row(consumer: Consumer, said: AcknowledgementInfo | None, info: RequestInfo, actor: Actor) -> ConsumerRow:
    counts = said is not None and said.counts
    is_planned = info.state in PromotionRequest.PLANNED_STATES
    waits = not counts and is_planned
    is_own = said is not None and counts and said.person_id == actor.user_id
    return ConsumerRow(
        client=consumer.hurt.client,
        subject=consumer.hurt.subject,
        does=_does(consumer),
        contact=consumer.contact,
        people=tuple(one.username for one in consumer.people),
        state=Acknowledged.DONE if counts else Acknowledged.VOID if said else Acknowledged.WAITING,
        who=said.person if said else "",
        at=said.at if said else None,
        note=said.note if said else "",
        acknowledge=action(
            info, "acknowledge", gettext("Acknowledge"), no_speaker(info, consumer, actor), tone="primary", icon="check"
        )
        if waits
        else None,
        take_back=action(info, "take_back", gettext("Take back"), icon="undo-2") if is_own and is_planned else None,
    )


def _does(consumer: Consumer) -> str:
    declared = consumer.declared
    if declared is None:
        return gettext("withdrawn since")
    words = {
        "reads": gettext("reads version %(number)s"),
        "writes": gettext("writes version %(number)s"),
        "reads and writes": gettext("reads and writes version %(number)s"),
    }
    return words[declared.does] % {"number": declared.number}


def acknowledged_entries(info: RequestInfo) -> list[TimelineEntry]:
    """What was acknowledged, for the request's history."""
    return [
        TimelineEntry(
            sentence=(
                gettext("Acknowledged for %(client)s of %(subject)s")
                if said.counts
                else gettext("Acknowledged for %(client)s of %(subject)s (of an earlier plan)")
            )
            % {"client": said.client, "subject": said.subject},
            at=said.at,
            who=said.person,
            comment=said.note,
        )
        for said in info.acknowledgements
    ]
