"""Review decisions: approve, approve several at once, request changes, reject. An approval binds to the plan that was read.

A review that requests changes keeps the request from being approved until its reviewer says otherwise or the plan
changes: no review of an earlier plan counts. A bulk approval approves each request by itself and leaves out, with the
reason, what breaks, fails, warns, or has moved since it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from registry.access.roles import Actor, may, refusal
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import InvalidInput, NotAllowed, NotSignedIn, SchemadeskError, WrongState
from registry.promotions.environments.services import fresh
from registry.promotions.events import tell
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.plan.types import FAIL, PASS, SKIPPED, SOURCE_DRIFT, WEIGHTLESS
from registry.promotions.requests.state_machine import (
    failing_checks,
    in_words,
    locked_for,
    move,
    overrides_of,
    person,
    refuse_by_token,
    refuse_strangers,
    require_plan_hash,
    subject_of,
    with_current_plan,
    words,
)
from registry.promotions.requests.submission import count_reviews
from registry.promotions.reviews.eligibility import (
    AT_APPLYING,
    REVIEW,
    is_breaking,
    needed_for,
    override_text,
    written_subjects,
)
from registry.promotions.reviews.linked_accounts import is_same_person

#: codes of checks that take no thought of an approver: ids differ as a rule, a freeze is asked when it is applied, and
#: advice weighs nothing
AS_USUAL: Final = frozenset({"ids", "freeze"}) | WEIGHTLESS
_NOTHING_TO_SAY: Final = frozenset({PASS, SKIPPED})


def why_alone(plan: Mapping[str, Any]) -> str:
    """Why a request with this stored plan is read and approved by itself, as a sentence; "" for one that is safe."""
    if plan.get("unreadable"):
        return "Its stored plan can't be read: run its checks again."
    if plan.get("breaking"):
        return "It breaks what is there, so that its approval takes a comment: read it by itself."
    if not plan["checks"]:
        return "No check was run of it: run its checks first."
    left = [check for check in plan["checks"] if _matters(check)]
    worst = next((check for check in left if check["verdict"] == FAIL), left[0] if left else None)
    if worst is None:
        return ""
    problem = "A check fails" if worst["verdict"] == FAIL else "A check warns"
    return f"{problem}, so that it is read by itself: {worst['sentence']}"


def _matters(check: Mapping[str, Any]) -> bool:
    return check["verdict"] not in _NOTHING_TO_SAY and check.get("code") not in AS_USUAL


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
    remark, reason = words(comment, "comment"), words(override, "reason")

    def decide(request: PromotionRequest) -> str:
        require_reviewer(request, by)
        if refused := approval_refusal(by):
            raise NotAllowed(refused)
        if request.state != PromotionRequest.IN_REVIEW:
            raise WrongState(f"Request {request.pk} is {request.state}; only one in review can be reviewed.")
        if only_safe and (alone := why_alone(request.plan)):
            raise WrongState(alone)
        covered = _override(request, by, reason)
        if is_breaking(request) and not (remark or reason):
            raise InvalidInput("This breaks what is there: say why it may.", field="comment")
        if not (remark or reason) and (open_there := _open_at_source(request)):
            raise InvalidInput(f"{open_there} Say in a comment why it may come all the same.", field="comment")
        _require_typed(request, typed)
        _review(request, by, Review.APPROVE, remark, covered)
        count_reviews(request, by)
        lacking = "" if request.state == PromotionRequest.APPROVED else f" {needed_for(request).missing}"
        tell(request, "promotion.reviewed", f"{by.name} says approve; it is {request.state}.{lacking}", by=by)
        return request.state

    _read_target(request_id, by)
    require_plan_hash(request_id, plan_hash)
    return with_current_plan(request_id, by, f"approve request {request_id}", decide, plan_hash)


def _open_at_source(request: PromotionRequest) -> str:
    """That breaks are open where it comes from, as a sentence; "" where none are."""
    checks = (check for check in request.plan["checks"] if check.get("code") == SOURCE_DRIFT)
    return next((str(check["sentence"]) for check in checks), "")


def _require_typed(request: PromotionRequest, typed: str) -> None:
    """What breaks a closed environment isn't approved by a click: its approver writes the subject's name."""
    name = subject_of(request).qualified
    if is_breaking(request) and request.target.is_closed and typed.strip() != name:
        sentence = f"It breaks what {request.target} has: type {name} to approve it all the same."
        raise InvalidInput(sentence, field="typed")


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
    remark = words(comment, "comment", needed="Say what should be different.")

    def decide(request: PromotionRequest) -> None:
        _review(request, by, Review.CHANGES, remark)
        if request.state != PromotionRequest.IN_REVIEW:
            move(request, PromotionRequest.IN_REVIEW, apply_at=None, moved=f"{by.name} asks for changes.")

    return _decide(request_id, by, "ask for changes of", decide)


def reject(*, request_id: int, by: Actor, comment: str) -> str:
    """Turn the request down, with a reason. Raises InvalidInput without one, WrongState, NotAllowed."""
    remark = words(comment, "comment", needed="Say why: the requester needs a reason to repair the schema.")

    def decide(request: PromotionRequest) -> None:
        _review(request, by, Review.REJECT, remark)
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


#: approvals of one confirmation, each of which makes its plan again
MOST_TOGETHER: Final = 50


@dataclass(frozen=True)
class Approval:
    """What became of one of them: its state, or why it was left out."""

    request: int
    state: str = ""
    refused: str = ""


def approve_together(*, plans: Sequence[tuple[int, str]], by: Actor) -> list[Approval]:
    """Approve each of these (number, hash of the plan that was read) that is safe; each once, in the order given.

    Said a second time it has no second effect: what this person has approved already is left out. Raises NotSignedIn,
    NotAllowed for somebody who may read nothing, InvalidInput for none and for too many.
    """
    refuse_strangers(by)
    person(by)
    hashes = dict(plans)
    if not hashes:
        raise InvalidInput("Choose requests first.")
    if len(hashes) > MOST_TOGETHER:
        raise InvalidInput(f"{len(hashes)} requests are too many at once; choose up to {MOST_TOGETHER}.")
    return [_approved(number, plan_hash, by) for number, plan_hash in hashes.items()]


def _approved(number: int, plan_hash: str, by: Actor) -> Approval:
    """One of them, in transactions of its own."""
    try:
        return Approval(number, state=approve(request_id=number, by=by, plan_hash=plan_hash, only_safe=True))
    except NotSignedIn:
        raise
    except SchemadeskError as error:
        return Approval(number, refused=error.placed)
