"""Applying approved requests, now or on schedule: in one transaction locally, step by step by a worker elsewhere.

The person who applies needs the permission for every subject that is written. The plan is built again from the current
state; if it changed, it is shown and not applied. A scheduled run uses the plan, and the rights of the person who
scheduled it, as they are at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor, may, roles_with, system_actor
from registry.access.selectors import actor_of_user
from registry.audit.context import record
from registry.errors import Forbidden, InvalidInput, NotAllowed, PlanChanged, SchemadeskError, WrongState
from registry.notifications.services import send_on_commit
from registry.promotions.apply import remote
from registry.promotions.apply.local import LEASE, StepFailed, in_words, is_claimed, record_releases, write_here
from registry.promotions.apply.remote import MAX_FAILURE, again, begin_elsewhere, require_apply, written_steps
from registry.promotions.checks.context import FREEZE
from registry.promotions.environments.freezes import first_open
from registry.promotions.environments.locking import fresh, is_remote
from registry.promotions.events import tell
from registry.promotions.models import Environment, PromotionRequest
from registry.promotions.requests.state_machine import (
    COMPATIBILITY,
    failing_checks,
    locked,
    locked_for,
    move,
    overrides_of,
    person,
    refuse_failing,
    require_any_permission,
    with_current_plan,
)
from registry.promotions.reviews.eligibility import overridden, reason_of
from registry.subjects.registration.locks import retry_deadlocks

#: by its name, because services don't import tasks
APPLY_ONE: Final = "registry.promotions.tasks.apply_one"
#: states from which a failed attempt leaves the request approved
BEFORE_WRITING: Final = frozenset({PromotionRequest.APPROVED, PromotionRequest.SCHEDULED})


def apply(*, request_id: int, by: Actor) -> str:
    """Apply an approved request; returns the state.

    A local registry gets everything in one transaction, read back and released: the state is `applied`, or there is an
    error and nothing is written, and the request has the reason. For a remote one the state is `applying`, and a worker
    does the steps.
    Raises PlanChanged (the request is in review again, with the new plan) if the target has changed since the approval,
    WrongState for another state and for a check that fails, such as a freeze; RemoteUnavailable, NotAllowed.
    """
    return apply_from(PromotionRequest.APPROVED, request_id=request_id, by=by)


def apply_from(state: str, *, request_id: int, by: Actor) -> str:
    """Return the same for a request in that state, `approved` or `scheduled`."""
    require_any_permission(by)
    target = _target(request_id, by, state)
    fresh(target)

    def run(request: PromotionRequest) -> str:
        _refuse_other(request, state)
        require_apply(request, by)
        person(by)
        refuse_failing(request)
        force = _force(request)
        if not is_remote(request.target):
            return write_here(request, by, force)
        state_after = begin_elsewhere(request, by)
        wake(request.pk)
        return state_after

    return _run(request_id, by, run)


def _run(request_id: int, by: Actor, run: Callable[[PromotionRequest], str]) -> str:
    """Run it in one transaction; if a step fails, the reason is stored after the rollback."""
    try:
        return retry_deadlocks(with_current_plan)(request_id, by, f"apply request {request_id}", run, None)
    except StepFailed as failure:
        keep_failure(request_id, by, failure.sentence)
        failure.cause.message = failure.sentence
        raise failure.cause from failure
    except SchemadeskError:
        raise  # refused before any step; the caller gets the reason
    except Exception as error:
        keep_failure(request_id, by, f"Unexpected error: {type(error).__name__}. See the log.")
        raise


def keep_failure(request_id: int, by: Actor, sentence: str, *, states: Collection[str] = BEFORE_WRITING) -> str:
    """Store why a request in one of the states wasn't applied, and notify; the request is approved again."""
    with transaction.atomic():
        request = locked(request_id)
        if request.state not in states:
            return request.state
        record(by=by, why=f"apply request {request_id}: it failed")
        values = {"failure": sentence[:MAX_FAILURE], "apply_at": None}
        if request.state == PromotionRequest.APPROVED:
            PromotionRequest.objects.filter(pk=request_id).update(**values)
        else:
            move(request, PromotionRequest.APPROVED, claim_tag="", claim_until=None, **values)
        tell(request, "promotion.failed", sentence, by=by)
        return PromotionRequest.APPROVED


def wake(request_id: int) -> None:
    """Have a worker process the request once this transaction is committed; beat does it if the message is lost."""
    send_on_commit(APPLY_ONE, request_id)


def resume(*, request_id: int, by: Actor) -> str:
    """Continue a request that failed while it was applied, from the failed step, in this person's name.

    Returns the state. Before it writes, a worker compares the remaining steps with what was approved. Raises
    WrongState, RemoteUnavailable if the remote still doesn't answer, NotAllowed.
    """
    require_any_permission(by)
    fresh(_target(request_id, by, PromotionRequest.FAILED))
    with transaction.atomic():
        request = locked_for(request_id, by)
        _refuse_other(request, PromotionRequest.FAILED)
        require_apply(request, by)
        person(by)
        record(by=by, why=f"resume request {request_id}")
        state = again(request, by)
        wake(request_id)
        return state


def give_up(*, request_id: int, by: Actor) -> str:
    """End a request that failed while it was applied; what was written stays, and is named. Returns the state.

    Each written version gets a release, because an approved request made it live.
    Raises WrongState, NotAllowed.
    """
    with transaction.atomic():
        request = locked_for(request_id, by)
        _refuse_other(request, PromotionRequest.FAILED)
        require_apply(request, by)
        record(by=by, why=f"give up request {request_id}")
        done = [(step, written) for step, written in written_steps(request) if step.writes]
        record_releases(request, done, by, only_if_there=False)
        stays = ", ".join(in_words(step) for step, _ in done)
        left = f"Already written and kept: {stays}." if stays else "No step is known to be written."
        state = move(
            request, PromotionRequest.WITHDRAWN, failure=f"{request.failure} Given up by {by.name}. {left}".strip()
        )
        tell(request, "promotion.withdrawn", f"{by.name} gave up the request. {left}", by=by)
        return state


def perform(*, request_id: int) -> str:
    """Do the remaining steps of a request at a remote registry, in a worker; returns the state, "" if none are left."""
    return remote.perform(request_id=request_id)


def _target(request_id: int, by: Actor, state: str) -> Environment:
    """Return the target of the request, for an actor who may apply it; checked before the remote is called."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_apply(request, by)
        _refuse_other(request, state)
        return request.target


def _refuse_other(request: PromotionRequest, state: str) -> None:
    if request.state == state:
        return
    holder = " by a worker" if is_claimed(request, timezone.now()) else ""
    raise WrongState(
        f"Request {request.pk} is {request.state}{holder}. It must be {state} for this.", state=request.state
    )


def _force(request: PromotionRequest) -> str:
    """Return the reason with which a registration overrides the level, "" if the level holds.

    Its author must still have the right to force versions there. Raises NotAllowed.
    """
    subjects = [item["subject"] for item in failing_checks(request) if item["code"] == COMPATIBILITY]
    if not subjects:
        return ""
    registry = request.target.registry.name
    for review in overrides_of(request):
        who = actor_of_user(User.objects.get(pk=review.reviewer_id), channel="task")
        allowed = all(may(who, "version.force", registry=registry, subject=subject) for subject in subjects)
        if COMPATIBILITY in overridden(review) and allowed:
            return f"request {request.pk}, by {who.name}: {reason_of(review)}"
    raise NotAllowed(
        f"It breaks the compatibility level of {', '.join(subjects)}, and none of its approvers has"
        " permission to force versions there now."
    )


FARTHEST: Final = timedelta(days=90)
_SCHEDULER: Final = system_actor("schedule")


def schedule(*, request_id: int, by: Actor, at: datetime, move_on: bool = False) -> str:
    """Schedule an approved request, or change its time; returns the state.

    A time at which the target is frozen is refused, or with `move_on` moved to the first open time after it, unless an
    approval overrides freezes.
    Raises InvalidInput for a time without a zone, in the past or more than 90 days away; WrongState for a frozen time
    too, NotAllowed.
    """
    _refuse_time(at)
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_apply(request, by)
        if request.state not in BEFORE_WRITING:
            raise WrongState(f"Request {request.pk} is {request.state}. Only an approved request can be scheduled.")
        at = _open_time(request, at, move_on=move_on)
        record(by=by, why=f"schedule request {request.pk} for {at.isoformat()}")
        values = {"apply_at": at, "applied_by_id": person(by), "failure": "", "claim_tag": "", "claim_until": None}
        if request.state == PromotionRequest.SCHEDULED:
            for name, value in values.items():
                setattr(request, name, value)
            request.save(update_fields=list(values))
        else:
            move(request, PromotionRequest.SCHEDULED, **values)
        tell(request, "promotion.scheduled", f"{by.name} scheduled it for {at:%Y-%m-%d %H:%M %Z}.", by=by)
        return request.state


def unschedule(*, request_id: int, by: Actor) -> str:
    """Cancel the schedule of a request, which stays approved; its requester may do so too. Returns the state.

    Raises WrongState, NotAllowed.
    """
    with transaction.atomic():
        request = locked_for(request_id, by)
        if by.user_id is None or by.user_id != request.requested_by_id:
            require_apply(request, by)
        if request.state != PromotionRequest.SCHEDULED:
            raise WrongState(f"Request {request.pk} is {request.state}. It is not scheduled.")
        record(by=by, why=f"unschedule request {request.pk}")
        return move(
            request, PromotionRequest.APPROVED, apply_at=None, applied_by_id=None, claim_tag="", claim_until=None
        )


def claim_due() -> list[int]:
    """Return the requests for workers: scheduled ones that are due, and those whose worker is gone.

    A scheduled request goes to one caller at a time; workers claim the others.
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
    """Apply one request if it is due, and do its remote steps, in a worker; returns the state."""
    row = PromotionRequest.objects.select_related("applied_by").filter(pk=request_id).first()
    if row is None:
        return ""
    state = row.state
    if state == PromotionRequest.SCHEDULED and row.apply_at is not None and row.apply_at <= timezone.now():
        state = _apply_scheduled(row)
    return perform(request_id=request_id) if state == PromotionRequest.APPLYING else state


def _apply_scheduled(row: PromotionRequest) -> str:
    """Apply as the person who scheduled it, with their current rights; a failure is stored and notified."""
    by = actor_of_user(row.applied_by, channel="task") if row.applied_by else _SCHEDULER
    try:
        return apply_from(PromotionRequest.SCHEDULED, request_id=row.pk, by=by)
    except PlanChanged:
        return PromotionRequest.IN_REVIEW  # stored and notified already
    except SchemadeskError as error:
        failure = f"The scheduled request was not applied{_lacking(row, by) or f': {error.placed}'}"
        return keep_failure(row.pk, by, failure, states={PromotionRequest.SCHEDULED})


def _lacking(row: PromotionRequest, by: Actor) -> str:
    """Return why the person who scheduled it can't apply it any more, naming them for others; "" if they can."""
    try:
        require_apply(row, by)
    except Forbidden:
        why = f"this needs the {roles_with('promotion.apply')} role in {row.target}."
        if row.applied_by and not row.applied_by.is_active:
            why = "the account is deactivated."
        return f", because {by.name} can no longer apply it: {why}"
    return ""


def _open_time(request: PromotionRequest, at: datetime, *, move_on: bool) -> datetime:
    """Return the time, or the first open one after it. Raises WrongState."""
    holding, free = first_open(request.target, at)
    if holding is None or any(FREEZE in overridden(review) for review in overrides_of(request)):
        return at
    frozen = f"{request.target} is frozen at {at:%Y-%m-%d %H:%M %Z}, until {free:%Y-%m-%d %H:%M} UTC: {holding.reason}."
    if free > timezone.now() + FARTHEST:
        raise WrongState(f"{frozen} No time without a freeze was found in the next {FARTHEST.days} days.")
    if not move_on:
        raise WrongState(
            f"{frozen} Schedule it for then or later, or let it move to that time.", open_at=free.isoformat()
        )
    return free


def _refuse_time(at: datetime) -> None:
    if timezone.is_naive(at):
        raise InvalidInput("The time has no time zone. Add one, such as +00:00.")
    now = timezone.now()
    if at <= now:
        raise InvalidInput(f"{at.isoformat()} is in the past. Choose a future time.")
    if at > now + FARTHEST:
        raise InvalidInput(
            f"{at.isoformat()} is more than {FARTHEST.days} days away, which is too far ahead for an"
            " approval. Choose an earlier time."
        )
