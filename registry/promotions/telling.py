"""Telling of what becomes of a promotion request, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from registry.access.roles import Actor
from registry.access.selectors import owners_of_many
from registry.notifications.services import notify
from registry.promotions.consumers import Hurt, hurt_by
from registry.promotions.eligible import needed_for, written_subjects
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors.consumers import consumers_of_row
from registry.subjects.names import SubjectName

#: people whom one message names beside those whom an event concerns anyway
MAX_NAMED = 200
#: clients that one names
_NAMED = 5


def tell(request: PromotionRequest, event: str, sentence: str, *, by: Actor, to: Iterable[int] = ()) -> None:
    """Tell of one event (`promotion.…`). The requester is told of what others do, and so are those in `to`."""
    subject = SubjectName(request.context_name, request.subject_name).qualified
    named = dict.fromkeys((request.requested_by_id, *to))
    named.pop(by.user_id, None)  # type: ignore[arg-type]  # nobody's number is None
    notify(
        event=event,
        registry=request.target.registry.name,
        subject=subject,
        text=f"Request {request.pk} ({_what(request, subject)} to {request.target}): {sentence}",
        url=f"/ui/promotions/{request.pk}",
        to=tuple(named)[:MAX_NAMED],
        data={"request": request.pk, "state": request.state, "version": request.version_number, "by": by.name},
        by=by.user_id,
    )


def ask_for_reviews(request: PromotionRequest, *, by: Actor) -> None:
    """Tell those who own what the request writes and those whom the rules name that their review is asked for."""
    needed = needed_for(request)
    owners = owners_of_many(request.target.registry.name, written_subjects(request))
    people = {number for found in owners.values() for number in found.user_ids}
    people |= {reviewer.user_id for rule in needed.rules for reviewer in rule.who}
    sentence = f"{by.name} asks for it."
    tell(request, "promotion.requested", f"{sentence} {needed.nobody_can}".strip(), by=by, to=sorted(people))
    ask_consumers(request, by=by)


def ask_consumers(request: PromotionRequest, *, by: Actor, told: Collection[Hurt] = ()) -> None:
    """Tell those who speak for the clients that the plan hurts, those that were told apart, that it needs their word."""
    if all(each in told for each in hurt_by(request.plan["checks"])):
        return
    found = [each for each in consumers_of_row(request) if each.people and each.hurt not in told]
    if not found:
        return
    names = [each.hurt.words for each in found]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    sentence = f"These don't go on with it: {', '.join(names[:_NAMED])}{more}. Read what they meet, and acknowledge it."
    people = {number for each in found for number in each.user_ids}
    tell(request, "promotion.affects", sentence, by=by, to=sorted(people))


def _what(request: PromotionRequest, subject: str) -> str:
    version = f"version {request.version_number}" if request.version_number else "a proposed version"
    return f"{subject} {version}"
