"""Applying at a time that somebody sets: in that person's name, with the rights and the plan as they are then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor, system_actor
from registry.access.selectors import actor_of_user
from registry.audit.services import record
from registry.errors import InvalidInput, PlanChanged, SchemadeskError, WrongState
from registry.promotions.freezes import first_open
from registry.promotions.models import PromotionRequest
from registry.promotions.overrides import overridden
from registry.promotions.services import applying
from registry.promotions.services.applying_elsewhere import require_apply
from registry.promotions.services.claiming import LEASE
from registry.promotions.services.current import locked_for, move, overrides_of, person
from registry.promotions.telling import tell

FARTHEST: Final = timedelta(days=90)
#: code of the check that an approval may pass over
FREEZE: Final = "freeze"
_SCHEDULER: Final = system_actor("schedule")


def schedule(*, request_id: int, by: Actor, at: datetime, move_on: bool = False) -> str:
    """Have an approved request applied at a time, or at another one; gives the state.

    At a time at which the target is frozen it is refused, or with `move_on` set for the first open time after it; unless
    an approval passes over freezes.
    Raises InvalidInput for a time without a zone, in the past or more than 90 days away; WrongState for a frozen time
    too, NotAllowed.
    """
    _refuse_time(at)
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_apply(request, by)
        if request.state not in applying.BEFORE_WRITING:
            raise WrongState(f"Request {request.pk} is {request.state}; only an approved one is scheduled.")
        at = _open_time(request, at, move_on=move_on)
        record(by=by, why=f"schedule request {request.pk} for {at.isoformat()}")
        values = {
            "apply_at": at,
            "applied_by_id": person(by),
            "failure": "",
            "claim_tag": "",
            "claim_until": None,
        }
        if request.state == PromotionRequest.SCHEDULED:
            for name, value in values.items():
                setattr(request, name, value)
            request.save(update_fields=list(values))
        else:
            move(request, PromotionRequest.SCHEDULED, **values)
        tell(request, "promotion.scheduled", f"{by.name} has it applied at {at:%Y-%m-%d %H:%M %Z}.", by=by)
        return request.state


def unschedule(*, request_id: int, by: Actor) -> str:
    """Leave an approved request to be applied by hand; its requester may, too. Gives the state.

    Raises WrongState, NotAllowed.
    """
    with transaction.atomic():
        request = locked_for(request_id, by)
        if by.user_id is None or by.user_id != request.requested_by_id:
            require_apply(request, by)
        if request.state != PromotionRequest.SCHEDULED:
            raise WrongState(f"Request {request.pk} is {request.state}; it isn't scheduled.")
        record(by=by, why=f"unschedule request {request.pk}")
        return move(
            request, PromotionRequest.APPROVED, apply_at=None, applied_by_id=None, claim_tag="", claim_until=None
        )


def claim_due() -> list[int]:
    """The requests that a worker should take up: scheduled ones whose time has come, and those whose worker is gone.

    A scheduled one is given to one caller at a time; the others are claimed by their worker.
    """
    now = timezone.now()
    free = Q(claim_until=None) | Q(claim_until__lt=now)
    with transaction.atomic():
        due = PromotionRequest.objects.filter(free, state=PromotionRequest.SCHEDULED, apply_at__lte=now)
        numbers = list(due.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True))
        if numbers:
            record(by=_SCHEDULER, why="a scheduled request is due")
            PromotionRequest.objects.filter(pk__in=numbers).update(claim_until=now + LEASE)
    lost = PromotionRequest.objects.filter(free, state=PromotionRequest.APPLYING).order_by("pk")
    return sorted({*numbers, *lost.values_list("pk", flat=True)})


def apply_due(*, request_id: int) -> str:
    """A worker's part for one request: apply it if its time has come, and do its steps elsewhere; gives the state."""
    row = PromotionRequest.objects.select_related("applied_by").filter(pk=request_id).first()
    if row is None:
        return ""
    state = row.state
    if state == PromotionRequest.SCHEDULED and row.apply_at is not None and row.apply_at <= timezone.now():
        state = _apply_scheduled(row)
    return applying.perform(request_id=request_id) if state == PromotionRequest.APPLYING else state


def _apply_scheduled(row: PromotionRequest) -> str:
    """As the person who scheduled it, with the rights of now. What stops it is kept at the request, and told."""
    by = actor_of_user(row.applied_by, door="task") if row.applied_by else _SCHEDULER
    try:
        return applying.apply_from(PromotionRequest.SCHEDULED, request_id=row.pk, by=by)
    except PlanChanged:
        return PromotionRequest.IN_REVIEW  # that is kept and told by whoever found it
    except SchemadeskError as error:
        said = f"It was scheduled, and wasn't applied: {error.placed}"
        return applying.keep_failure(row.pk, by, said, states={PromotionRequest.SCHEDULED})


def _open_time(request: PromotionRequest, at: datetime, *, move_on: bool) -> datetime:
    """The time, or the first open one after it. Raises WrongState."""
    holding, free = first_open(request.target, at)
    if holding is None or any(FREEZE in overridden(review) for review in overrides_of(request)):
        return at
    frozen = f"{request.target} is frozen at {at:%Y-%m-%d %H:%M %Z}, until {free:%Y-%m-%d %H:%M} UTC: {holding.reason}."
    if free > timezone.now() + FARTHEST:
        raise WrongState(f"{frozen} There is no open time within {FARTHEST.days} days.")
    if not move_on:
        raise WrongState(f"{frozen} Schedule it for then or later, or have it moved there.", open_at=free.isoformat())
    return free


def _refuse_time(at: datetime) -> None:
    if timezone.is_naive(at):
        raise InvalidInput("The time has no zone: add one, such as +00:00.")
    now = timezone.now()
    if at <= now:
        raise InvalidInput(f"{at.isoformat()} is over; give a time to come.")
    if at > now + FARTHEST:
        raise InvalidInput(
            f"{at.isoformat()} is more than {FARTHEST.days} days away; what was approved is old by then."
        )
