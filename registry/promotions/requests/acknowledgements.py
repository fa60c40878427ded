"""Acknowledgements: the contact of an affected client confirms the plan, and may withdraw that until it is being applied."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from registry.access.roles import Actor
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import ClientNotFound, NotAllowed, WrongState
from registry.promotions.checks.consumers import TAKEN_BACK, AffectedClient, with_current_acknowledgements
from registry.promotions.events import tell
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.requests.state_machine import (
    checked_text,
    locked_for,
    person,
    refuse_by_token,
    require_plan_hash,
    with_current_plan,
)
from registry.promotions.reviews.affected_consumers import Consumer, consumers_of_row
from registry.promotions.reviews.decisions import require_reviewer

_ACTION: Final = "promotion.request"
MAX_NOTE: Final = 2_000


def acknowledge(*, request_id: int, subject: str, client: str, by: Actor, plan_hash: str, note: str = "") -> bool:
    """Acknowledge the request's plan for an affected client; returns False if somebody has done so already.

    `plan_hash` is the plan that was read. The people in the client's contact may acknowledge; if it names nobody who
    could, anybody who may review the request. The requester may not, unless the target allows own approvals. Raises
    PlanHashRequired, PlanChanged (and stores the new plan) if the plan isn't current, ClientNotFound for a client that
    the plan doesn't break, WrongState, InvalidInput, NotAllowed, NotSignedIn, RequestNotFound.
    """
    remark, hurt, is_new = checked_text(note, "note", longest=MAX_NOTE), AffectedClient(subject, client), [True]

    def run(request: PromotionRequest) -> str:
        _require_speaker(request, by, _consumer(request, hurt))
        key = {"subject": hurt.subject, "client": hurt.client, "plan_hash": request.plan_hash}
        if request.acknowledgements.filter(**key).exists():
            is_new[0] = False
            return request.state
        request.acknowledgements.create(person_id=person(by), note=remark, **key)
        _count(request)
        sentence = f"{by.name} acknowledged it for {hurt.label}.{f' {remark}' if remark else ''}"
        tell(request, "promotion.acknowledged", sentence, by=by)
        return request.state

    with transaction.atomic():
        locked_for(request_id, by)
    require_plan_hash(request_id, plan_hash)
    with_current_plan(request_id, by, f"acknowledge request {request_id} for {hurt.label[:200]}", run, plan_hash)
    return is_new[0]


@transaction.atomic
def withdraw_acknowledgement(*, request_id: int, subject: str, client: str, by: Actor) -> bool:
    """Withdraw one's own acknowledgement of the request's plan for a client; returns False if there is none.

    Its author may withdraw it even if the client's contact no longer names them. The audit keeps both. Approvers are
    notified, because their approval may rely on it. Raises WrongState, NotAllowed, NotSignedIn, RequestNotFound.
    """
    request, hurt = locked_for(request_id, by), AffectedClient(subject, client)
    user_id = person(by)
    refuse_by_token(by, _ACTION, registry=request.target.registry.name, subjects=[subject])
    if request.state not in PromotionRequest.PLANNED_STATES:
        raise WrongState(f"Request {request.pk} is {request.state}.", state=request.state)
    acknowledgements = request.acknowledgements.filter(subject=subject, client=client, plan_hash=request.plan_hash)
    acknowledgement = acknowledgements.select_related("person").first()
    if acknowledgement is None:
        return False
    if acknowledgement.person_id != user_id:
        raise NotAllowed(
            f"Only {acknowledgement.person.get_username()}, who acknowledged it, can withdraw the acknowledgement."
        )
    record(by=by, why=f"{TAKEN_BACK} request {request_id} for {hurt.label[:200]}")
    acknowledgement.delete()
    _count(request)
    approvers = request.reviews.filter(verdict=Review.APPROVE, plan_hash=request.plan_hash)
    sentence = f"{by.name} withdrew the acknowledgement for {hurt.label}."
    tell(request, "promotion.taken_back", sentence, by=by, to=approvers.values_list("reviewer_id", flat=True))
    return True


def _consumer(request: PromotionRequest, hurt: AffectedClient) -> Consumer:
    consumer = next((candidate for candidate in consumers_of_row(request) if candidate.hurt == hurt), None)
    if consumer is None:
        raise ClientNotFound(
            f"Request {request.pk} doesn't affect a client {hurt.client[:128]!r} of {hurt.subject[:200]!r}.",
            name=hurt.client[:128],
        )
    return consumer


def _require_speaker(request: PromotionRequest, by: Actor, consumer: Consumer) -> None:
    """Raise NotAllowed or NotSignedIn unless the actor may acknowledge for the client."""
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
    """Store the updated check of acknowledgements; the rest of the plan stays the same."""
    request.plan = with_current_acknowledgements(request)
    request.save(update_fields=["plan"])
