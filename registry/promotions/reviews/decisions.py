"""Review decisions: approve, bulk-approve, request changes, reject. An approval binds to the plan that was read.

A review that requests changes blocks approval until its reviewer decides otherwise or the plan changes: no review of an
earlier plan counts. A bulk approval approves each request separately. It leaves out, with the reason, whatever breaks,
fails, warns, or has changed since it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, may, refusal
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import InvalidInput, NotAllowed, NotSignedIn, SchemadeskError, WrongState
from registry.promotions.checks.context import with_threads
from registry.promotions.environments.locking import fresh
from registry.promotions.events import tell
from registry.promotions.models import PromotionRequest, Review
from registry.promotions.plan.types import FAIL, PASS, SKIPPED, SOURCE_DRIFT, USUAL
from registry.promotions.requests.state_machine import (
    COMPATIBILITY,
    checked_text,
    failing_checks,
    in_words,
    locked_for,
    move,
    override_advice,
    overrides_of,
    person,
    refuse_by_token,
    require_any_permission,
    require_plan_hash,
    subject_of,
    with_current_plan,
)
from registry.promotions.requests.submission import count_reviews
from registry.promotions.reviews.eligibility import (
    AT_APPLYING,
    REVIEW,
    is_breaking,
    needed_for,
    overridden,
    override_text,
    written_subjects,
)
from registry.promotions.reviews.linked_accounts import is_same_person, link_in_words, unconfirmed_reviewers

#: codes of checks that an approver can ignore; a freeze matters when the request is applied
AS_USUAL: Final = USUAL | {"freeze"}
_NOTHING_TO_SAY: Final = frozenset({PASS, SKIPPED})


def why_alone(plan: Mapping[str, Any]) -> str:
    """Return why a request with this stored plan can't be part of a bulk approval, as a sentence; "" if it can."""
    if plan.get("unreadable"):
        return "Its stored plan can't be read. Run its checks again."
    if plan.get("breaking"):
        return "It is a breaking change, so its approval needs a comment. Review it separately."
    if not plan["checks"]:
        return "Its checks were not run. Run them first."
    left = [check for check in plan["checks"] if _matters(check)]
    worst = next((check for check in left if check["verdict"] == FAIL), left[0] if left else None)
    if worst is None:
        return ""
    problem = "A check fails" if worst["verdict"] == FAIL else "A check warns"
    return f"{problem}, so it must be reviewed separately: {worst['sentence']}"


def _matters(check: Mapping[str, Any]) -> bool:
    return check["verdict"] not in _NOTHING_TO_SAY and check.get("code") not in AS_USUAL


#: states in which a request can still be rejected or sent back
REVIEWABLE: Final = frozenset({PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED, PromotionRequest.SCHEDULED})
#: states in which an approval can still override a failing check: a freeze often begins after the approval
APPROVED: Final = REVIEWABLE - {PromotionRequest.IN_REVIEW}


def approve(
    *,
    request_id: int,
    by: Actor,
    plan_hash: str,
    comment: str = "",
    override: str = "",
    typed: str = "",
    only_safe: bool = False,
    resolve: bool = False,
) -> str:
    """Approve the plan that the request shows; returns the state, `approved` once it has all approvals that it needs.

    `plan_hash` is the plan that the approver has read. A breaking plan needs a comment, and so does one whose subject
    has open breaks at the source. `override` is the reason to approve despite failed checks that can be overridden:
    compatibility by somebody who may force versions, the others by any reviewer. `typed` is the subject's name,
    required for a plan that breaks a closed environment. `only_safe` refuses a plan that breaks, fails or warns. `resolve`
    also resolves the open discussions. An approved request accepts a further approval only with an `override` of a failed check, such as a freeze. Raises
    PlanHashRequired without a hash, PlanChanged (and stores the new plan to be read) if it isn't the current plan,
    WrongState, InvalidInput without a required reason, NotAllowed, RemoteUnavailable.
    """
    remark, reason = checked_text(comment, "comment"), checked_text(override, "reason")

    def decide(request: PromotionRequest) -> str:
        require_reviewer(request, by)
        if refused := approval_refusal(by):
            raise NotAllowed(refused)
        if request.state != PromotionRequest.IN_REVIEW and not (reason and request.state in APPROVED):
            raise WrongState(f"Request {request.pk} is {request.state}. Only a request in review can be reviewed.")
        resolved = _resolve_threads(request, by) if resolve else ""
        if only_safe and (alone := why_alone(request.plan)):
            raise WrongState(alone)
        covered = _override(request, by, reason)
        if is_breaking(request) and not (remark or reason):
            raise InvalidInput(
                "This is a breaking change. Enter a comment that explains why it is acceptable.", field="comment"
            )
        if not (remark or reason) and (open_there := _open_at_source(request)):
            raise InvalidInput(f"{open_there} Explain in a comment why it is acceptable.", field="comment")
        _require_typed(request, typed)
        _review(request, by, Review.APPROVE, remark, covered)
        count_reviews(request, by)
        lacking = "" if request.state == PromotionRequest.APPROVED else f" {needed_for(request).missing}"
        tell(request, "promotion.reviewed", f"{by.name} approved it{resolved}. It is {request.state}.{lacking}", by=by)
        return request.state

    _read_target(request_id, by)
    require_plan_hash(request_id, plan_hash)
    return with_current_plan(request_id, by, f"approve request {request_id}", decide, plan_hash)


def _resolve_threads(request: PromotionRequest, by: Actor) -> str:
    """Resolve the open discussions, and update their check; returns how many, as the end of a sentence."""
    number = request.threads.filter(resolved_at=None).update(resolved_by_id=person(by), resolved_at=timezone.now())
    if not number:
        return ""
    request.plan = with_threads(request.plan, 0, blocks=request.target.threads_block)
    request.save(update_fields=["plan"])
    return f" and resolved {number} discussion{'s' if number > 1 else ''}"


def _open_at_source(request: PromotionRequest) -> str:
    """Return the sentence about open breaks at the source; "" if there are none."""
    checks = (check for check in request.plan["checks"] if check.get("code") == SOURCE_DRIFT)
    return next((str(check["sentence"]) for check in checks), "")


def _require_typed(request: PromotionRequest, typed: str) -> None:
    """Require the subject's name, typed, to approve what breaks a closed environment. Raises InvalidInput."""
    name = subject_of(request).qualified
    if is_breaking(request) and request.target.is_closed and typed.strip() != name:
        sentence = f"It breaks compatibility in {request.target}. To approve it anyway, type {name}."
        raise InvalidInput(sentence, field="typed")


def _read_target(request_id: int, by: Actor) -> None:
    """Refresh a remote target before an approval; no transaction is open while it is read."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_reviewer(request, by)
    fresh(request.target)


def request_changes(*, request_id: int, by: Actor, comment: str) -> str:
    """Request changes; the request stays in review until they are answered. Returns the state.

    Raises InvalidInput without a comment, WrongState, NotAllowed.
    """
    remark = checked_text(comment, "comment", needed="Enter what should be changed.")

    def decide(request: PromotionRequest) -> None:
        _review(request, by, Review.CHANGES, remark)
        if request.state != PromotionRequest.IN_REVIEW:
            move(request, PromotionRequest.IN_REVIEW, apply_at=None, moved=f"{by.name} requested changes.")

    return _decide(request_id, by, "request changes of", decide)


def reject(*, request_id: int, by: Actor, comment: str) -> str:
    """Reject the request, with a reason. Raises InvalidInput without one, WrongState, NotAllowed."""
    remark = checked_text(comment, "comment", needed="Enter a reason. The requester needs it to fix the schema.")

    def decide(request: PromotionRequest) -> None:
        _review(request, by, Review.REJECT, remark)
        move(request, PromotionRequest.REJECTED, apply_at=None)

    return _decide(request_id, by, "reject", decide)


def _decide(request_id: int, by: Actor, verb: str, decide: Callable[[PromotionRequest], None]) -> str:
    """Make a decision that stops the request, for which the plan need not be current."""
    with transaction.atomic():
        request = locked_for(request_id, by)
        require_reviewer(request, by)
        if request.state not in REVIEWABLE:
            raise WrongState(f"Request {request.pk} is {request.state}, so it can no longer be reviewed.")
        record(by=by, why=f"{verb} request {request_id}")
        decide(request)
        tell(request, "promotion.reviewed", f"{by.name}: {verb} it. It is {request.state}.", by=by)
        return request.state


def _review(request: PromotionRequest, by: Actor, verdict: str, comment: str, override: str = "") -> None:
    """Store the person's one review of this plan; a second one must have another verdict. Raises WrongState."""
    values = {"verdict": verdict, "comment": comment, "override": override}
    row = request.reviews.filter(reviewer_id=by.user_id, plan_hash=request.plan_hash).first()
    if row is None:
        request.reviews.create(reviewer_id=person(by), plan_hash=request.plan_hash, **values)
        return
    if row.verdict == verdict:
        if not (override and request.state in APPROVED):
            raise WrongState(f"{by.name} has already reviewed this plan.")
        values["comment"] = comment or row.comment
    for name, value in values.items():
        setattr(row, name, value)
    row.save(update_fields=list(values))


def _override(request: PromotionRequest, by: Actor, reason: str) -> str:
    """Return the override as it is stored: the reason and the overridden codes; "" if there is nothing to override.

    A freeze only prevents applying. Raises WrongState, InvalidInput, NotAllowed.
    """
    failing = failing_checks(request)
    blocking = [item for item in failing if item["code"] not in AT_APPLYING]
    hard = next((item for item in blocking if not item["overridable"]), None)
    if hard is not None:
        raise WrongState(in_words(hard), checks=blocking)
    if not reason:
        if blocking and not overrides_of(request):
            advice = override_advice(blocking[0])
            raise WrongState(f"{in_words(blocking[0])} {advice}".strip(), checks=blocking)
        return ""
    others = [review for review in overrides_of(request) if review.reviewer_id != by.user_id]
    done = {code for review in others for code in overridden(review)} if request.state in APPROVED else set()
    passed = [item for item in failing if item["overridable"] and item["code"] not in done]
    if not passed:
        raise InvalidInput("No failing check can be overridden. Use the comment instead.")
    for item in passed:
        _require_right_to_pass(request, by, item)
    return override_text(reason, (str(item["code"]) for item in passed))


def _require_right_to_pass(request: PromotionRequest, by: Actor, check: Mapping[str, Any]) -> None:
    if check["code"] != COMPATIBILITY:
        return
    registry, subject = request.target.registry.name, check["subject"]
    for name in [subject] if subject else written_subjects(request):
        if not may(by, "version.force", registry=registry, subject=name):
            refused = refusal(by, "version.force", registry=registry, subject=name)
            raise NotAllowed(f"{in_words(check)} {override_advice(check)} {refused}")


def require_reviewer(request: PromotionRequest, by: Actor) -> None:
    """Raise NotAllowed or NotSignedIn unless the actor is a reviewer of this request, and not its requester."""
    registry, subjects = request.target.registry.name, written_subjects(request)
    refused = next(filter(None, (refusal(by, REVIEW, registry=registry, subject=name) for name in subjects)), "")
    user_id = person(by)
    if refused:
        refuse_by_token(by, REVIEW, registry=registry, subjects=subjects)
        needed = needed_for(request)
        if user_id not in needed.named_ids | needed.unconfirmed.keys():
            raise NotAllowed(refused, action=REVIEW)
    if request.target.is_closed and (account := unconfirmed_reviewers(registry).get(user_id)):
        raise NotAllowed(account.refusal(by.name, registry))
    if request.target.own_approval_allowed:
        return
    if user_id == request.requested_by_id:
        raise NotAllowed(f"{by.name} requested this, so another person must review it.")
    if is_same_person(user_id, request.requested_by_id, is_closed=request.target.is_closed):
        raise NotAllowed(
            f"{by.name} counts as the same person as the requester {request.requested_by}."
            f" {link_in_words(user_id, request.requested_by_id)} Another person must review it."
        )


#: the most requests of one bulk approval; each builds its plan again
MOST_TOGETHER: Final = 50


@dataclass(frozen=True)
class Approval:
    """The result for one request: its state, or why it was left out."""

    request: int
    state: str = ""
    refused: str = ""


def approve_together(*, plans: Sequence[tuple[int, str]], by: Actor) -> list[Approval]:
    """Approve each of these (number, hash of the plan that was read) that is safe, once each and in order.

    A repeated call has no second effect: what this person has approved already is left out. Raises NotSignedIn,
    NotAllowed for an actor who may read nothing, InvalidInput for no requests and for too many.
    """
    require_any_permission(by)
    person(by)
    hashes = dict(plans)
    if not hashes:
        raise InvalidInput("Select requests first.")
    if len(hashes) > MOST_TOGETHER:
        raise InvalidInput(f"{len(hashes)} requests are too many at once. Select up to {MOST_TOGETHER}.")
    return [_approved(number, plan_hash, by) for number, plan_hash in hashes.items()]


def _approved(number: int, plan_hash: str, by: Actor) -> Approval:
    """Approve one request, in its own transactions."""
    try:
        return Approval(number, state=approve(request_id=number, by=by, plan_hash=plan_hash, only_safe=True))
    except NotSignedIn:
        raise
    except SchemadeskError as error:
        return Approval(number, refused=error.placed)
