"""Acknowledging a plan for a declared client that it hurts: whoever speaks for the client knows, and it may go on.

What was said so may be taken back by whoever said it, for as long as the plan isn't being applied.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from registry.access.roles import Actor
from registry.access.selectors import approval_refusal
from registry.audit.services import record
from registry.errors import ClientNotFound, NotAllowed, WrongState
from registry.promotions.acknowledged import counted_anew
from registry.promotions.consumers import TAKEN_BACK, Hurt
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.selectors.consumers import Consumer, consumers_of_row
from registry.promotions.services.current import (
    locked_for,
    person,
    refuse_by_token,
    require_plan_hash,
    with_current_plan,
    words,
)
from registry.promotions.services.reviewing import require_reviewer
from registry.promotions.telling import tell

MAX_NOTE: Final = 2_000
_ACTION: Final = "promotion.request"


def acknowledge(*, request_id: int, subject: str, client: str, by: Actor, plan_hash: str, note: str = "") -> bool:
    """Acknowledge, for a client, the plan that the request shows; False where somebody has done so already.

    `plan_hash` is the plan that was read. It is for those whom the client's contact names, and where that names nobody
    who could, for whoever may review the request; never for whoever asked for it, unless the target lets them approve.
    Raises PlanHashRequired, PlanChanged (and keeps the new plan to be read) where it isn't what would run now, ClientNotFound for a client
    that the plan doesn't hurt, WrongState, InvalidInput, NotAllowed, NotSignedIn, RequestNotFound.
    """
    said, hurt, is_new = words(note, "note", longest=MAX_NOTE), Hurt(subject, client), [True]

    def run(request: PromotionRequest) -> str:
        _require_speaker(request, by, _consumer(request, hurt))
        key = {"subject": hurt.subject, "client": hurt.client, "plan_hash": request.plan_hash}
        if request.acknowledgements.filter(**key).exists():
            is_new[0] = False
            return request.state
        request.acknowledgements.create(person_id=person(by), note=said, **key)
        _count(request)
        sentence = f"{by.name} acknowledges it for {hurt.words}.{f' {said}' if said else ''}"
        tell(request, "promotion.acknowledged", sentence, by=by)
        return request.state

    with transaction.atomic():
        locked_for(request_id, by)
    require_plan_hash(request_id, plan_hash)
    with_current_plan(request_id, by, f"acknowledge request {request_id} for {hurt.words[:200]}", run, plan_hash)
    return is_new[0]


@transaction.atomic
def take_back(*, request_id: int, subject: str, client: str, by: Actor) -> bool:
    """Take back what one has acknowledged of the request's plan for a client; False where nobody has.

    It is for whoever said it, also where the client's contact names them no longer. The audit keeps that it was said.
    Those whose approval may rest on it are told. Raises WrongState, NotAllowed, NotSignedIn, RequestNotFound.
    """
    request, hurt = locked_for(request_id, by), Hurt(subject, client)
    user_id = person(by)
    refuse_by_token(by, _ACTION, registry=request.target.registry.name, subjects=[subject])
    if request.state not in PromotionRequest.PLANNED_STATES:
        raise WrongState(f"Request {request.pk} is {request.state}.", state=request.state)
    said = request.acknowledgements.filter(subject=subject, client=client, plan_hash=request.plan_hash)
    found = said.select_related("person").first()
    if found is None:
        return False
    if found.person_id != user_id:
        raise NotAllowed(f"It is taken back by whoever acknowledged it: {found.person.get_username()}.")
    record(by=by, why=f"{TAKEN_BACK} request {request_id} for {hurt.words[:200]}")
    found.delete()
    _count(request)
    approvers = request.reviews.filter(verdict=Review.APPROVE, plan_hash=request.plan_hash)
    sentence = f"{by.name} takes back what they acknowledged for {hurt.words}."
    tell(request, "promotion.taken_back", sentence, by=by, to=approvers.values_list("reviewer_id", flat=True))
    return True


def _consumer(request: PromotionRequest, hurt: Hurt) -> Consumer:
    found = next((each for each in consumers_of_row(request) if each.hurt == hurt), None)
    if found is None:
        raise ClientNotFound(
            f"Request {request.pk} hurts no client {hurt.client[:128]!r} of {hurt.subject[:200]!r}.",
            name=hurt.client[:128],
        )
    return found


def _require_speaker(request: PromotionRequest, by: Actor, consumer: Consumer) -> None:
    """Raise NotAllowed or NotSignedIn for whoever doesn't speak for the client."""
    user_id = person(by)
    if not consumer.people:
        require_reviewer(request, by)
    else:
        refuse_by_token(by, _ACTION, registry=request.target.registry.name, subjects=[consumer.hurt.subject])
        if user_id not in consumer.user_ids:
            raise NotAllowed(consumer.speakers)
    if refused := approval_refusal(by):
        raise NotAllowed(refused)


def _count(request: PromotionRequest) -> None:
    """Keep the check as it is with what was said just now; the plan is the same."""
    request.plan = counted_anew(request)
    request.save(update_fields=["plan"])
