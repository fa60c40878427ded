"""Reviews: approve, ask for changes, reject. An approval binds to the plan that was read.

A review that asks for changes keeps the request from being approved until its reviewer says otherwise, or the plan is
another one: then it doesn't count any more, as no review of an earlier plan does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db import transaction

from registry.access.roles import Actor, may, refusal
from registry.access.selectors import approval_refusal
from registry.audit.services import record
from registry.errors import InvalidInput, NotAllowed, WrongState
from registry.promotions.eligible import REVIEW, is_breaking, needed_for, written_subjects
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.overrides import AT_APPLYING, override_text
from registry.promotions.persons import is_same_person
from registry.promotions.plan import SOURCE_DRIFT
from registry.promotions.services.current import (
    failing_checks,
    in_words,
    locked_for,
    move,
    overrides_of,
    person,
    refuse_by_token,
    require_plan_hash,
    subject_of,
    with_current_plan,
    words,
)
from registry.promotions.services.mirrored import fresh
from registry.promotions.services.requesting import count_reviews
from registry.promotions.telling import tell
from registry.promotions.together import why_alone

#: what may still be turned down or sent back
REVIEWABLE: Final = frozenset({PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED, PromotionRequest.SCHEDULED})


def approve(
    *,
    request_id: int,
    by: Actor,
    plan_hash: str,
    comment: str = "",
    override: str = "",
    typed: str = "",
    only_safe: bool = False,
) -> str:
    """Approve the plan that the request shows; gives the state, `approved` once it has all that it needs.

    `plan_hash` is the plan that the approver has read. A breaking plan takes a comment, and so does one whose subject has open breaks at the source. `override` is the reason to
    approve in spite of checks that fail and may be overridden: those of compatibility by somebody who may force
    versions, the others by any reviewer. `typed` is the subject's name, which a plan that breaks a closed environment
    takes. `only_safe` leaves a plan that breaks, fails or warns to be read by itself.
    Raises PlanHashRequired without a hash, PlanChanged (and keeps the new plan to be read) where it isn't what
    would run now, WrongState, InvalidInput without a reason that is needed, NotAllowed, RemoteUnavailable.
    """
    said, reason = words(comment, "comment"), words(override, "reason")

    def decide(request: PromotionRequest) -> str:
        require_reviewer(request, by)
        if refused := approval_refusal(by):
            raise NotAllowed(refused)
        if request.state != PromotionRequest.IN_REVIEW:
            raise WrongState(f"Request {request.pk} is {request.state}; only one in review can be reviewed.")
        if only_safe and (alone := why_alone(request.plan)):
            raise WrongState(alone)
        covered = _override(request, by, reason)
        if is_breaking(request) and not (said or reason):
            raise InvalidInput("This breaks what is there: say why it may.", field="comment")
        if not (said or reason) and (open_there := _open_at_source(request)):
            raise InvalidInput(f"{open_there} Say in a comment why it may come all the same.", field="comment")
        _require_typed(request, typed)
        _review(request, by, Review.APPROVE, said, covered)
        count_reviews(request, by)
        lacking = "" if request.state == PromotionRequest.APPROVED else f" {needed_for(request).missing}"
        tell(request, "promotion.reviewed", f"{by.name} says approve; it is {request.state}.{lacking}", by=by)
        return request.state

    _read_target(request_id, by)
    require_plan_hash(request_id, plan_hash)
    return with_current_plan(request_id, by, f"approve request {request_id}", decide, plan_hash)


def _open_at_source(request: PromotionRequest) -> str:
    """That breaks are open where it comes from, as a sentence; "" where none are."""
    found = (check for check in request.plan["checks"] if check.get("code") == SOURCE_DRIFT)
    return next((str(check["sentence"]) for check in found), "")


def _require_typed(request: PromotionRequest, typed: str) -> None:
    """What breaks a closed environment isn't approved by a click: its approver writes the subject's name."""
    name = subject_of(request).qualified
    if is_breaking(request) and request.target.is_closed and typed.strip() != name:
        said = f"It breaks what {request.target} has: type {name} to approve it all the same."
        raise InvalidInput(said, field="typed")


def _read_target(request_id: int, by: Actor) -> None:
    """An approval goes by what a remote target holds now; no transaction is open while it is read."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_reviewer(request, by)
    fresh(request.target)


def request_changes(*, request_id: int, by: Actor, comment: str) -> str:
    """Say what has to be different; the request is in review until this is answered. Gives the state.

    Raises InvalidInput without a comment, WrongState, NotAllowed.
    """
    said = words(comment, "comment", needed="Say what should be different.")

    def decide(request: PromotionRequest) -> None:
        _review(request, by, Review.CHANGES, said)
        if request.state != PromotionRequest.IN_REVIEW:
            move(request, PromotionRequest.IN_REVIEW, apply_at=None, moved=f"{by.name} asks for changes.")

    return _decide(request_id, by, "ask for changes of", decide)


def reject(*, request_id: int, by: Actor, comment: str) -> str:
    """Turn the request down, with a reason. Raises InvalidInput without one, WrongState, NotAllowed."""
    said = words(comment, "comment", needed="Say why: the requester needs a reason to repair the schema.")

    def decide(request: PromotionRequest) -> None:
        _review(request, by, Review.REJECT, said)
        move(request, PromotionRequest.REJECTED, apply_at=None)

    return _decide(request_id, by, "reject", decide)


def _decide(request_id: int, by: Actor, verb: str, decide: Callable[[PromotionRequest], None]) -> str:
    """What doesn't depend on the plan's being current: it stops something."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_reviewer(request, by)
        if request.state not in REVIEWABLE:
            raise WrongState(f"Request {request.pk} is {request.state}; it isn't reviewed any more.")
        record(by=by, why=f"{verb} request {request_id}")
        decide(request)
        tell(request, "promotion.reviewed", f"{by.name}: {verb} it; it is {request.state}.", by=by)
        return request.state


def _review(request: PromotionRequest, by: Actor, verdict: str, comment: str, override: str = "") -> None:
    """One review of a person of this plan: a second one says something else, or nothing new, which is refused."""
    values = {"verdict": verdict, "comment": comment, "override": override}
    row = request.reviews.filter(reviewer_id=by.user_id, plan_hash=request.plan_hash).first()
    if row is None:
        request.reviews.create(reviewer_id=person(by), plan_hash=request.plan_hash, **values)
        return
    if row.verdict == verdict:
        raise WrongState(f"{by.name} has reviewed this plan already.")
    for name, value in values.items():
        setattr(row, name, value)
    row.save(update_fields=list(values))


def _override(request: PromotionRequest, by: Actor, reason: str) -> str:
    """The override as it is kept: the reason and the codes that it passes over; "" where nothing has to be passed.

    A freeze stands in the way of applying alone. Raises WrongState, InvalidInput, NotAllowed.
    """
    failing = failing_checks(request)
    blocking = [item for item in failing if item["code"] not in AT_APPLYING]
    hard = next((item for item in blocking if not item["overridable"]), None)
    if hard is not None:
        raise WrongState(in_words(hard), checks=blocking)
    if not reason:
        if blocking and not overrides_of(request):
            raise WrongState(
                f"{in_words(blocking[0])} It can be approved in spite of it, with a reason.", checks=blocking
            )
        return ""
    passed = [item for item in failing if item["overridable"]]
    if not passed:
        raise InvalidInput("No check fails that could be overridden; say it in the comment.")
    for item in passed:
        _require_right_to_pass(request, by, item["code"], item["subject"])
    return override_text(reason, (str(item["code"]) for item in passed))


def _require_right_to_pass(request: PromotionRequest, by: Actor, code: str, subject: str) -> None:
    if code != "compatibility":
        return
    registry = request.target.registry.name
    for name in [subject] if subject else written_subjects(request):
        if not may(by, "version.force", registry=registry, subject=name):
            refused = refusal(by, "version.force", registry=registry, subject=name)
            raise NotAllowed(f"A break of {name}'s level is overridden by an administrator: {refused}")


def require_reviewer(request: PromotionRequest, by: Actor) -> None:
    """Raise NotAllowed or NotSignedIn for whoever isn't a reviewer of this request, or asked for it."""
    registry, subjects = request.target.registry.name, written_subjects(request)
    refused = next(filter(None, (refusal(by, REVIEW, registry=registry, subject=name) for name in subjects)), "")
    user_id = person(by)
    if refused:
        refuse_by_token(by, REVIEW, registry=registry, subjects=subjects)
        if user_id not in needed_for(request).named_ids:
            raise NotAllowed(refused, action=REVIEW)
    if request.target.own_approval_allowed:
        return
    if user_id == request.requested_by_id:
        raise NotAllowed(f"{by.name} asked for this; somebody else must review it.")
    if is_same_person(user_id, request.requested_by_id):
        raise NotAllowed(
            f"{by.name} has the address of mail of {request.requested_by}, who asked for this, or is stated to be the"
            " same person; an account of somebody else must review it."
        )
