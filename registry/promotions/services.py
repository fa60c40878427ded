"""Requesting, reviewing and applying a promotion. Apply is a step of its own."""

from __future__ import annotations

from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.access.selectors import approval_refusal
from registry.audit.services import record
from registry.errors import InvalidInput, NotAllowed, NotSignedIn, PlanChanged, RequestNotFound, WrongState
from registry.promotions.models import Environment, PromotionRequest, Release, Review
from registry.promotions.plan import FAIL, REGISTER, Plan, Step
from registry.promotions.planning import make_plan
from registry.promotions.selectors import get_environment
from registry.promotions.telling import tell
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors import get_version, stored_version
from registry.subjects.services import register_version
from registry.subjects.services.locks import retry_deadlocks


@transaction.atomic
def ensure_environment(*, registry_id: int, position: int, by: Actor) -> bool:
    """Give a registry its place in the promotion order; False where it has one."""
    require(by, "registry.manage")
    record(by=by, why="make environment")
    _, created = Environment.objects.get_or_create(registry_id=registry_id, defaults={"position": position})
    return created


@transaction.atomic
def request_promotion(
    *, source: str, target: str, subject: SubjectName, version: int | str, by: Actor, reason: str = ""
) -> int:
    """Ask for a version of one environment in a later one; gives the request's number.

    Raises InvalidInput for an order that doesn't fit, WrongState where such a request is open or there
    is nothing to do, SubjectNotFound, VersionNotFound, NotAllowed.
    """
    origin, goal = get_environment(source), get_environment(target)
    require(by, "promotion.request", registry=goal.registry.name, subject=subject.qualified)
    user_id = _person(by)
    if goal.position <= origin.position:
        raise InvalidInput(f"{target} doesn't come after {source} in the promotion order.")
    info = get_version(origin.registry, subject, version)
    plan = make_plan(origin, goal, subject, info.version)
    if not any(step.action == REGISTER for step in plan.steps):
        raise WrongState(f"{target} has {subject.qualified} version {info.version} already.")
    record(by=by, why=reason or f"request {subject.qualified} v{info.version} in {target}")
    try:
        with transaction.atomic():
            request = PromotionRequest.objects.create(
                source=origin,
                target=goal,
                version_id=info.id,
                context_name=subject.context,
                subject_name=subject.subject,
                version_number=info.version,
                fingerprint=info.schema.fingerprint,
                reason=reason,
                plan=plan.to_dict(),
                plan_hash=plan.hash,
                requested_by_id=user_id,
            )
    except IntegrityError as error:
        raise WrongState(f"A request for this schema in {target} is open already.") from error
    tell(request, "promotion.requested", f"{by.name} asks for it.", by=by)
    return request.pk


def approve(*, request_id: int, by: Actor, comment: str = "", plan_hash: str = "") -> str:
    """Approve the plan that the request shows; gives the state, `approved` once enough people have.

    `plan_hash` is the plan that the approver has read. Raises PlanChanged (and keeps the new plan to
    be read) where it isn't what would run now, WrongState, NotAllowed.
    """
    return _decide(request_id, by, Review.APPROVE, comment, plan_hash)


def reject(*, request_id: int, by: Actor, comment: str) -> str:
    """Turn the request down, with a reason. Raises InvalidInput without one, WrongState, NotAllowed."""
    if not comment.strip():
        raise InvalidInput("Say why: the requester needs a reason to repair the schema.")
    return _decide(request_id, by, Review.REJECT, comment, "")


def _decide(request_id: int, by: Actor, verdict: str, comment: str, plan_hash: str) -> str:
    def decide(request: PromotionRequest) -> str:
        _require_reviewer(request, by)
        if verdict == Review.APPROVE and (refused := approval_refusal(by)):
            raise NotAllowed(refused)
        if request.state != PromotionRequest.IN_REVIEW:
            raise WrongState(f"Request {request.pk} is {request.state}; only one in review can be reviewed.")
        if verdict == Review.APPROVE:
            _refuse_failing(request)
        if request.reviews.filter(reviewer_id=by.user_id, plan_hash=request.plan_hash).exists():
            raise WrongState(f"{by.name} has reviewed this plan already.")
        request.reviews.create(reviewer_id=_person(by), verdict=verdict, comment=comment, plan_hash=request.plan_hash)
        _count_reviews(request, verdict)
        tell(request, "promotion.reviewed", f"{by.name} says {verdict}; it is {request.state}.", by=by)
        return request.state

    expected = plan_hash if verdict == Review.APPROVE else None
    return _with_current_plan(request_id, by, f"{verdict} request {request_id}", decide, expected)


def _count_reviews(request: PromotionRequest, verdict: str) -> None:
    approvals = request.reviews.filter(verdict=Review.APPROVE, plan_hash=request.plan_hash).count()
    if verdict == Review.REJECT:
        request.state, request.closed_at = PromotionRequest.REJECTED, timezone.now()
    elif approvals >= request.target.reviews_needed:
        request.state = PromotionRequest.APPROVED
    request.save(update_fields=["state", "closed_at"])


@transaction.atomic
def withdraw(*, request_id: int, by: Actor) -> str:
    """Take a request back, its requester or an administrator; gives the state. Raises WrongState, NotAllowed."""
    request = _locked(request_id)
    if by.user_id != request.requested_by_id:
        require(by, "registry.manage", registry=request.target.registry.name)
    if request.state not in PromotionRequest.OPEN_STATES:
        raise WrongState(f"Request {request.pk} is {request.state} and can't be withdrawn.")
    record(by=by, why=f"withdraw request {request.pk}")
    request.state, request.closed_at = PromotionRequest.WITHDRAWN, timezone.now()
    request.save(update_fields=["state", "closed_at"])
    tell(request, "promotion.withdrawn", f"{by.name} withdrew it.", by=by)
    return request.state


@retry_deadlocks
def apply(*, request_id: int, by: Actor) -> str:
    """Run the approved plan in one transaction, read back what was written, and record the release.

    Raises PlanChanged (the request is in review again, with the new plan) where the target has moved
    since the approval, WrongState, NotAllowed.
    """

    def run(request: PromotionRequest) -> str:
        require(by, "promotion.apply", registry=request.target.registry.name, subject=_subject(request).qualified)
        if request.state != PromotionRequest.APPROVED:
            raise WrongState(f"Request {request.pk} is {request.state}; only an approved one can be applied.")
        plan = make_plan(request.source, request.target, _subject(request), request.version_number)
        last = [_run_step(request, step, by) for step in plan.steps][-1]
        _release(request, plan.steps[-1], last, by)
        tell(request, "promotion.applied", f"{by.name} applied it.", by=by)
        return request.state

    return _with_current_plan(request_id, by, f"apply request {request_id}", run, None)


def _run_step(request: PromotionRequest, step: Step, by: Actor) -> int:
    """Register what the step says; gives the schema id. What is read back must be what was approved."""
    registry, subject = request.target.registry, parse_subject(step.subject)
    if step.action == REGISTER:
        register_version(
            registry=registry.name,
            subject=subject,
            text=step.text,
            by=by,
            schema_type=step.schema_type,
            references=step.references,
            normalize=False,  # the text is the one that was approved, as it is
            release=True,
        )
    info, schema = stored_version(registry, subject, step.target_version)
    if schema.fingerprint != step.fingerprint:
        raise PlanChanged(f"{step.subject} version {step.target_version} isn't the schema that was approved.")
    return info.schema.schema_id


def _release(request: PromotionRequest, step: Step, schema_id: int, by: Actor) -> None:
    info = get_version(request.target.registry, _subject(request), step.target_version)
    Release.objects.create(
        environment=request.target,
        request=request,
        version_id=info.id,
        context_name=request.context_name,
        subject_name=request.subject_name,
        version_number=step.target_version,
        schema_id=schema_id,
        fingerprint=step.fingerprint,
        released_by_id=_person(by),
    )
    request.state, request.closed_at = PromotionRequest.APPLIED, timezone.now()
    request.save(update_fields=["state", "closed_at"])


def _with_current_plan(
    request_id: int,
    by: Actor,
    why: str,
    action: Callable[[PromotionRequest], str],
    expected_hash: str | None,
) -> str:
    """Run the action on the locked request if its plan is still what would run; else keep the new plan and say so."""
    with transaction.atomic():
        request = _locked(request_id)
        if request.state not in PromotionRequest.OPEN_STATES:
            raise WrongState(f"Request {request.pk} is {request.state}.")
        record(by=by, why=why)
        plan = make_plan(request.source, request.target, _subject(request), request.version_number)
        moved = plan.hash != request.plan_hash
        if not moved and expected_hash and expected_hash != plan.hash:
            raise PlanChanged("You read an earlier plan of this request; read the one that it shows now.")
        if not moved:
            return action(request)
        sentence = _what_moved(request.plan, plan)
        request.plan, request.plan_hash, request.state = plan.to_dict(), plan.hash, PromotionRequest.IN_REVIEW
        request.save(update_fields=["plan", "plan_hash", "state"])
        tell(request, "promotion.voided", sentence, by=by)
    raise PlanChanged(f"{sentence} Earlier approvals no longer count; the new plan is shown.")


def _what_moved(old: dict[str, list[dict[str, object]]], new: Plan) -> str:
    fresh = new.to_dict()
    before = {str(item["name"]): item["sentence"] for item in old["checks"]}
    for item in fresh["checks"]:
        if before.get(item["name"]) != item["sentence"]:
            return f"The plan has changed: {item['name']} was “{before.get(item['name'], 'absent')}”, is “{item['sentence']}”."
    return "The plan has changed: its steps are others now."


def _refuse_failing(request: PromotionRequest) -> None:
    failing = [item["sentence"] for item in request.plan["checks"] if item["verdict"] == FAIL]
    if failing:
        raise WrongState(f"A check fails: {failing[0]}")


def _require_reviewer(request: PromotionRequest, by: Actor) -> None:
    subject = _subject(request).qualified
    require(by, "promotion.review", registry=request.target.registry.name, subject=subject)
    if by.user_id == request.requested_by_id and not request.target.own_approval_allowed:
        raise NotAllowed(f"{by.name} asked for this; somebody else must review it.")


def _locked(request_id: int) -> PromotionRequest:
    row = (
        PromotionRequest.objects.select_for_update(of=("self",))
        .select_related("source__registry", "target__registry")
        .filter(pk=request_id)
        .first()
    )
    if row is None:
        raise RequestNotFound(f"There is no promotion request {request_id}.", request=request_id)
    return row


def _subject(request: PromotionRequest) -> SubjectName:
    return SubjectName(request.context_name, request.subject_name)


def _person(by: Actor) -> int:
    if by.user_id is None:
        raise NotSignedIn("A promotion needs a person: sign in.")
    return by.user_id
