"""Applying what was approved: at a registry of ours at once and as a whole, elsewhere step by step by a worker.

Whoever applies needs the right for every subject that is written. The plan is made again from what is there now; one
that moved is shown and isn't run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from celery import current_app
from django.db import transaction
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor, may
from registry.access.selectors import actor_of_user
from registry.audit.services import record
from registry.errors import NotAllowed, SchemadeskError, WrongState
from registry.promotions.models import Environment, PromotionRequest
from registry.promotions.overrides import overridden, reason_of
from registry.promotions.services import applying_elsewhere
from registry.promotions.services.applying_elsewhere import (
    again,
    begin_elsewhere,
    require_apply,
    written_steps,
)
from registry.promotions.services.applying_here import StepFailed, write_here
from registry.promotions.services.claiming import is_held
from registry.promotions.services.current import (
    failing_checks,
    locked,
    locked_for,
    move,
    overrides_of,
    person,
    refuse_failing,
    refuse_strangers,
    with_current_plan,
)
from registry.promotions.services.mirrored import fresh, is_remote
from registry.promotions.services.releasing import in_words, record_releases
from registry.promotions.services.writing_elsewhere import MAX_FAILURE
from registry.promotions.telling import tell
from registry.subjects.services.locks import retry_deadlocks

#: by its name, because services don't import tasks
APPLY_ONE: Final = "registry.promotions.tasks.apply_one"
#: code of the check that only somebody who may force versions passes over
COMPATIBILITY: Final = "compatibility"
#: states from which a failed attempt leaves the request approved
BEFORE_WRITING: Final = frozenset({PromotionRequest.APPROVED, PromotionRequest.SCHEDULED})


def apply(*, request_id: int, by: Actor) -> str:
    """Apply an approved request; gives the state.

    At a registry of ours all of it is written in one transaction, read back and released: `applied`, or an error and
    nothing written, with the reason kept at the request. Elsewhere it is `applying`, and a worker does the steps.
    Raises PlanChanged (the request is in review again, with the new plan) where the target has moved since the approval,
    WrongState for another state and for a check that fails, such as a freeze; RemoteUnavailable, NotAllowed.
    """
    return apply_from(PromotionRequest.APPROVED, request_id=request_id, by=by)


def apply_from(state: str, *, request_id: int, by: Actor) -> str:
    """The same for a request in that state, `approved` or `scheduled`."""
    refuse_strangers(by)
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
        found = begin_elsewhere(request, by)
        wake(request.pk)
        return found

    return _run(request_id, by, run)


def _run(request_id: int, by: Actor, run: Callable[[PromotionRequest], str]) -> str:
    """Run it in one transaction; what a step says when it can't be done is kept after that is undone."""
    try:
        return retry_deadlocks(with_current_plan)(request_id, by, f"apply request {request_id}", run, None)
    except StepFailed as failure:
        keep_failure(request_id, by, failure.sentence)
        failure.cause.message = failure.sentence
        raise failure.cause from failure
    except SchemadeskError:
        raise  # it was refused before a step was done, and whoever asked is told
    except Exception as error:
        keep_failure(request_id, by, f"It failed unexpectedly: {type(error).__name__}. See the log.")
        raise


def keep_failure(request_id: int, by: Actor, sentence: str, *, states: Collection[str] = BEFORE_WRITING) -> str:
    """Keep at a request in one of the states why it wasn't applied, and tell of it; it is approved then."""
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
    """Have a worker take the request up once this transaction is committed; beat does it where the message is lost."""
    transaction.on_commit(lambda: current_app.send_task(APPLY_ONE, (request_id,), retry=False), robust=True)


def resume(*, request_id: int, by: Actor) -> str:
    """Go on with a request that failed on the way, from the step that failed, in this person's name; gives the state.

    A worker compares what is left with what was approved before it writes. Raises WrongState, RemoteUnavailable where
    the remote still doesn't answer, NotAllowed.
    """
    refuse_strangers(by)
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
    """End a request that failed on the way; what is written stays, and is named. Gives the state.

    For each version that was written a release is recorded, since an approved request made it live.
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
        left = f"Written, and staying: {stays}." if stays else "Nothing of it is known to be written."
        state = move(
            request, PromotionRequest.WITHDRAWN, failure=f"{request.failure} Given up by {by.name}. {left}".strip()
        )
        tell(request, "promotion.withdrawn", f"{by.name} gave it up. {left}", by=by)
        return state


def perform(*, request_id: int) -> str:
    """A worker's part: the steps of a request that is being applied elsewhere; gives the state, "" for nothing done."""
    return applying_elsewhere.perform(request_id=request_id)


def _target(request_id: int, by: Actor, state: str) -> Environment:
    """Where the request goes, for somebody who may apply it: asked before anybody elsewhere is called."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_apply(request, by)
        _refuse_other(request, state)
        return request.target


def _refuse_other(request: PromotionRequest, state: str) -> None:
    if request.state == state:
        return
    held = " by a worker" if is_held(request, timezone.now()) else ""
    raise WrongState(
        f"Request {request.pk} is {request.state}{held}; this takes one that is {state}.", state=request.state
    )


def _force(request: PromotionRequest) -> str:
    """The reason with which a registration passes the level, "" where it holds.

    It is of somebody who may force versions there and still may. Raises NotAllowed.
    """
    subjects = [item["subject"] for item in failing_checks(request) if item["code"] == COMPATIBILITY]
    if not subjects:
        return ""
    registry = request.target.registry.name
    for review in overrides_of(request):
        who = actor_of_user(User.objects.get(pk=review.reviewer_id), door="task")
        allowed = all(may(who, "version.force", registry=registry, subject=subject) for subject in subjects)
        if COMPATIBILITY in overridden(review) and allowed:
            return f"request {request.pk}, by {who.name}: {reason_of(review)}"
    raise NotAllowed(
        f"It breaks the level of {', '.join(subjects)}, and nobody who approved in spite of it may force versions there now."
    )
