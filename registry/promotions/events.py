"""Notifications about a promotion request, written in the transaction of the change."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from registry.access.roles import Actor
from registry.access.selectors import owners_of_many
from registry.errors import first_few
from registry.notifications.services import notify
from registry.promotions.checks.consumers import AffectedClient, affected_clients
from registry.promotions.models import PromotionRequest
from registry.promotions.reviews.affected_consumers import consumers_of_row
from registry.promotions.reviews.eligibility import needed_for, written_subjects
from registry.subjects.versions.qualified_names import SubjectName

#: people that one message addresses in addition to those of the event type
MAX_NAMED = 200


def tell(request: PromotionRequest, event: str, sentence: str, *, by: Actor, to: Iterable[int] = ()) -> None:
    """Notify about one event (`promotion.…`) the requester, unless they caused it, and everybody in `to`."""
    subject = SubjectName(request.context_name, request.subject_name).qualified
    named = dict.fromkeys((request.requested_by_id, *to))
    named.pop(by.user_id, None)  # type: ignore[arg-type]  # None matches nobody
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
    """Notify the owners of what the request writes, and the reviewers that rules name, that a review is requested."""
    needed = needed_for(request)
    owners = owners_of_many(request.target.registry.name, written_subjects(request))
    people = {number for owner_set in owners.values() for number in owner_set.user_ids}
    people |= {reviewer.user_id for rule in needed.rules for reviewer in rule.who}
    sentence = f"Requested by {by.name}."
    tell(request, "promotion.requested", f"{sentence} {needed.nobody_can}".strip(), by=by, to=sorted(people))
    ask_consumers(request, by=by)


def ask_consumers(request: PromotionRequest, *, by: Actor, informed: Collection[AffectedClient] = ()) -> None:
    """Ask the contacts of affected clients for an acknowledgement, except for clients in `informed`."""
    if all(consumer in informed for consumer in affected_clients(request.plan["checks"])):
        return
    consumers = [
        consumer for consumer in consumers_of_row(request) if consumer.people and consumer.hurt not in informed
    ]
    if not consumers:
        return
    names = [consumer.hurt.label for consumer in consumers]
    sentence = f"Affected clients: {first_few(names)}. Check the effects and acknowledge them."
    people = {number for consumer in consumers for number in consumer.user_ids}
    tell(request, "promotion.affects", sentence, by=by, to=sorted(people))


def _what(request: PromotionRequest, subject: str) -> str:
    version = f"version {request.version_number}" if request.version_number else "a proposed version"
    more = request.items.count() - 1
    return f"{subject} {version}{f' and {more} more' if more > 0 else ''}"
