"""The states of a request and its transitions, under its lock, with the current plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.roles import ADMIN, Actor, Grant, may, may_somewhere, refusal, require
from registry.audit.context import record
from registry.errors import (
    InvalidInput,
    NotAllowed,
    NotSignedIn,
    PlanChanged,
    PlanHashRequired,
    RequestNotFound,
    WrongState,
)
from registry.formats.base import UNSTORABLE
from registry.promotions.checks.consumers import CONSUMERS, AffectedClient, affected_clients, clients_moved
from registry.promotions.events import ask_consumers, tell
from registry.promotions.models import Environment, PromotionRequest, RequestItem, Review
from registry.promotions.plan import builder, target_state
from registry.promotions.plan.types import STALE, STOPPING, Plan
from registry.promotions.reviews.eligibility import needed_for, overridden
from registry.subjects.versions.qualified_names import SubjectName

#: a request's state → the states that it may go to
TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    PromotionRequest.DRAFT: frozenset({PromotionRequest.IN_REVIEW, PromotionRequest.WITHDRAWN}),
    PromotionRequest.IN_REVIEW: frozenset(
        {PromotionRequest.APPROVED, PromotionRequest.REJECTED, PromotionRequest.WITHDRAWN}
    ),
    PromotionRequest.APPROVED: frozenset(
        {
            PromotionRequest.IN_REVIEW,
            PromotionRequest.SCHEDULED,
            PromotionRequest.APPLYING,
            PromotionRequest.APPLIED,
            PromotionRequest.REJECTED,
            PromotionRequest.WITHDRAWN,
        }
    ),
    PromotionRequest.SCHEDULED: frozenset(
        {
            PromotionRequest.IN_REVIEW,
            PromotionRequest.APPROVED,
            PromotionRequest.APPLYING,
            PromotionRequest.APPLIED,
            PromotionRequest.REJECTED,
            PromotionRequest.WITHDRAWN,
        }
    ),
    # back to review or approved only if nothing was written yet
    PromotionRequest.APPLYING: frozenset(
        {PromotionRequest.IN_REVIEW, PromotionRequest.APPROVED, PromotionRequest.APPLIED, PromotionRequest.FAILED}
    ),
    # part of it is written: it is resumed, or given up, which leaves the written part
    PromotionRequest.FAILED: frozenset(
        {PromotionRequest.APPLYING, PromotionRequest.APPLIED, PromotionRequest.WITHDRAWN}
    ),
    PromotionRequest.APPLIED: frozenset(),
    PromotionRequest.REJECTED: frozenset(),
    PromotionRequest.WITHDRAWN: frozenset(),
}
#: in these states its schemas can't be requested again; a draft doesn't count yet
HOLDING: Final = frozenset(PromotionRequest.OPEN_STATES) - {PromotionRequest.DRAFT}
MAX_TEXT: Final = 10_000
ALREADY_REQUESTED: Final = "A request for this schema in {target} is already open."


def locked(request_id: int) -> PromotionRequest:
    """Return the request's row, locked until the transaction ends. Raises RequestNotFound."""
    row = (
        PromotionRequest.objects.select_for_update(of=("self",))
        .select_related("source__registry", "target__registry", "requested_by")
        .filter(pk=request_id)
        .first()
    )
    if row is None:
        raise RequestNotFound(f"Promotion request {request_id} not found.", request=request_id)
    return row


def locked_for(request_id: int, by: Actor) -> PromotionRequest:
    """Return the locked request for an actor who may read it; for others the error is that of a missing request.

    Raises NotSignedIn, NotAllowed, RequestNotFound.
    """
    require_any_permission(by)
    request = locked(request_id)
    if not may_read(request, by):
        raise RequestNotFound(f"Promotion request {request_id} not found.", request=request_id)
    return request


def require_any_permission(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed for an actor who may read nothing at all, before any lookup."""
    if not may_somewhere(by, "schema.read"):
        require(by, "schema.read")


def may_read(request: PromotionRequest, by: Actor) -> bool:
    """Return whether the actor may read the request: all its subjects at the target; a draft only its requester."""
    if request.state == PromotionRequest.DRAFT and by.user_id != request.requested_by_id:
        return False
    registry = request.target.registry.name
    return all(may(by, "schema.read", registry=registry, subject=name) for name in requested_subjects(request))


def subject_of(request: PromotionRequest) -> SubjectName:
    """Return the request's first subject, which lists show."""
    return SubjectName(request.context_name, request.subject_name)


def requested_subjects(request: PromotionRequest) -> list[str]:
    """Return the qualified names of the requested subjects, in order, without their references."""
    rows = sorted(request.items.all(), key=lambda item: item.position)
    return [SubjectName(row.context_name, row.subject_name).qualified for row in rows] or [
        subject_of(request).qualified
    ]


def person(by: Actor) -> int:
    """Return the actor's user id. Raises NotSignedIn if they have none."""
    if by.user_id is None:
        raise NotSignedIn("Sign in to work with promotions.")
    return by.user_id


def refuse_by_token(by: Actor, action: str, *, registry: str, subjects: Iterable[str]) -> None:
    """Raise NotAllowed if the actor's token doesn't allow this there, whatever the person's roles are."""
    unlimited = replace(by, grants=(Grant(ADMIN),))
    for subject in subjects:
        refused = refusal(unlimited, action, registry=registry, subject=subject)
        if refused:
            raise NotAllowed(refused, action=action)


def checked_text(text: str, what: str, *, needed: str = "", longest: int = MAX_TEXT) -> str:
    """Return the stripped text, checked to be storable. Raises InvalidInput; with `needed` also for an empty text."""
    bare = text.strip()
    if not bare and needed:
        raise InvalidInput(needed)
    if len(bare) > longest:
        raise InvalidInput(f"The {what} has {len(bare)} characters. The maximum is {longest}.")
    if bad := UNSTORABLE.search(bare):
        raise InvalidInput(f"The {what} has a character at position {bad.start() + 1} that can't be stored.")
    return bare


def refuse_unstorable(text: str) -> None:
    """Raise InvalidInput for a schema that the database can't store, with a clearer message than the parsers'."""
    if UNSTORABLE.search(text):
        raise InvalidInput("The schema has a character that can't be stored: NUL, or half of a surrogate pair.")


def move(request: PromotionRequest, state: str, **values: Any) -> str:
    """Move the locked request, and its items, to another state; returns the state. Raises WrongState.

    `values` are further columns to change. From its submission until it is closed a request reserves its schemas: a
    database constraint refuses a second request for the same schema.
    """
    if state not in TRANSITIONS[request.state]:
        raise WrongState(f"Request {request.pk} is {request.state} and can't become {state}.", state=request.state)
    request.state = state
    request.closed_at = timezone.now() if state in PromotionRequest.CLOSED_STATES else None
    for name, value in values.items():
        setattr(request, name, value)
    request.save(update_fields=["state", "closed_at", *values])
    hold(request)
    return state


def hold(request: PromotionRequest) -> None:
    """Let the items reserve their schemas at the target, or release them, by the request's state. Raises WrongState."""
    open_in = request.target_id if request.state in HOLDING else None
    _write_items(request.target, lambda: request.items.exclude(open_in=open_in).update(open_in=open_in))


def save_item(item: RequestItem, target: Environment) -> None:
    """Save another text of an item. Raises WrongState if the same is requested already."""
    _write_items(target, lambda: item.save(update_fields=["text", "fingerprint"]))


def _write_items(target: Environment, write: Callable[[], object]) -> None:
    try:
        with transaction.atomic():
            write()
    except IntegrityError as error:
        raise WrongState(ALREADY_REQUESTED.format(target=target)) from error


def refuse_failing(request: PromotionRequest) -> None:
    """Raise WrongState if a check fails that no approval of this plan overrides; called before applying."""
    passed = {code for review in overrides_of(request) for code in overridden(review)}
    failing = failing_checks(request)
    hard = next((item for item in failing if not item["overridable"] or item["code"] not in passed), None)
    if hard is None:
        return
    raise WrongState(f"{in_words(hard)} {override_advice(hard)}".strip(), checks=failing)


def failing_checks(request: PromotionRequest) -> list[dict[str, Any]]:
    """Return the checks of the stored plan that fail or are stale."""
    return [item for item in request.plan["checks"] if item["verdict"] in STOPPING]


def overrides_of(request: PromotionRequest) -> list[Review]:
    """Return the approvals of the current plan that override failing checks, each with a reason."""
    rows = request.reviews.filter(verdict=Review.APPROVE, plan_hash=request.plan_hash).exclude(override="")
    return list(rows.select_related("reviewer"))


def in_words(check: Mapping[str, Any]) -> str:
    """Return a failing check as a sentence with its cure."""
    cure = check.get("cure")
    problem = "A check is out of date" if check["verdict"] == STALE else "A check fails"
    return f"{problem}: {check['sentence']}{f' {cure}' if cure else ''}"


#: code of the check that only somebody who may force versions can override
COMPATIBILITY: Final = "compatibility"


def override_advice(check: Mapping[str, Any]) -> str:
    """Return who can override a failing check, as a sentence; "" if nobody can or the check's cure says so already."""
    is_said = "override" in (check.get("cure") or "")
    if not check.get("overridable") or is_said:
        return ""
    who = "A person with the admin role" if check.get("code") == COMPATIBILITY else "A reviewer"
    return f"{who} can override it with a reason."


def require_plan_hash(request_id: int, plan_hash: str) -> None:
    """Raise PlanHashRequired for a decision that doesn't name the plan that was read."""
    if not plan_hash:
        sentence = (
            f"Send the plan_hash of the plan that you read, as GET /api/v1/promotions/{request_id} shows it."
            " If the plan has changed since, nothing is decided."
        )
        raise PlanHashRequired(sentence, field="plan_hash", request=request_id)


def with_current_plan(
    request_id: int, by: Actor, why: str, action: Callable[[PromotionRequest], str], expected_hash: str | None
) -> str:
    """Run the action on the locked request if its plan is current; otherwise store the new plan and raise PlanChanged.

    The action sees the current checks in the request's plan. `expected_hash` is the plan that the caller has read, if
    that matters. An approved request whose environment now needs more reviews also goes back to review. Raises
    PlanChanged, WrongState, RequestNotFound.
    """
    moved = lacking = lost = ""
    with transaction.atomic():
        request = locked_for(request_id, by)
        if request.state not in PromotionRequest.PLANNED_STATES:
            raise WrongState(f"Request {request.pk} is {request.state}.", state=request.state)
        record(by=by, why=why)
        read_hash = request.plan_hash
        moved = refresh(request, by)
        if moved and request.reviews.filter(verdict=Review.APPROVE, plan_hash=read_hash).exists():
            lost = " Earlier approvals no longer count."
        if not moved and expected_hash and expected_hash != request.plan_hash:
            raise PlanChanged("The plan has changed since you read it. Read the current plan.")
        lacking = "" if moved else _reviews_lacking(request, by)
        if not moved and not lacking:
            return action(request)
    if lacking:
        raise WrongState(lacking)
    raise PlanChanged(f"{moved}{lost} The new plan is shown.")


def refresh(request: PromotionRequest, by: Actor, cause: str = "") -> str:
    """Build the plan of the locked request again and store it; returns what changed, "" if the hash is the same.

    `cause` says what changed, where that is known. A change voids approvals and acknowledgements: the request is in review again, and their authors are notified.
    """
    plan = builder.make_plan(builder.spec_of(request))
    fresh, old = plan.to_dict(), request.plan
    now = timezone.now()
    if plan.hash == request.plan_hash:
        request.plan, request.planned_at = fresh, now
        request.save(update_fields=["plan", "planned_at"])
        if request.state != PromotionRequest.DRAFT:
            ask_consumers(request, by=by, informed=affected_clients(old["checks"]))
        return ""
    moved = cause or clients_moved(request.target.registry, old, plan, request.planned_at) or what_moved(old, plan)
    approvers = request.reviews.filter(verdict=Review.APPROVE, plan_hash=request.plan_hash)
    acknowledgements = request.acknowledgements.filter(plan_hash=request.plan_hash)
    approver_ids = [
        *approvers.values_list("reviewer_id", flat=True),
        *acknowledgements.values_list("person_id", flat=True),
    ]
    values = {"plan": fresh, "plan_hash": plan.hash, "planned_at": now, "moved": moved, "apply_at": None}
    if request.state in (PromotionRequest.DRAFT, PromotionRequest.IN_REVIEW):
        for name, value in values.items():
            setattr(request, name, value)
        request.save(update_fields=list(values))
    else:
        move(request, PromotionRequest.IN_REVIEW, **values)
    if request.state != PromotionRequest.DRAFT:
        tell(request, "promotion.voided", moved, by=by, to=approver_ids)
        ask_consumers(request, by=by, informed=_acknowledged(request))
    return moved


def _acknowledged(request: PromotionRequest) -> set[AffectedClient]:
    """Return the clients for which the current plan is acknowledged, because a plan may return to an earlier state."""
    rows = request.acknowledgements.filter(plan_hash=request.plan_hash)
    return {AffectedClient(subject, client) for subject, client in rows.values_list("subject", "client")}


def _reviews_lacking(request: PromotionRequest, by: Actor) -> str:
    """Send an approved request back to review if its reviews are no longer enough; returns why, "" if they are."""
    if request.state == PromotionRequest.IN_REVIEW:
        return ""
    needed = needed_for(request)
    if needed.is_met:
        return ""
    lacking = f"It is in review again, because its approvals are no longer enough. {needed.missing}"
    move(request, PromotionRequest.IN_REVIEW, moved=lacking, apply_at=None)
    tell(request, "promotion.voided", lacking, by=by)
    return lacking


def what_moved(old: Mapping[str, Any], new: Plan) -> str:
    """Return the first important difference between a stored plan and the current one, as a sentence."""
    fresh = new.to_dict()
    at_target = target_state.what_moved(old.get("target", {}), fresh["target"]) if old.get("target") else ""
    if at_target:
        return f"The plan has changed. {at_target}."
    # voided acknowledgements are a consequence, not a cause
    before, after = (
        {_key(item): item for item in plan["checks"] if item.get("code") != CONSUMERS} for plan in (old, fresh)
    )
    different = [key for key in after if _outcome_of(before.get(key)) != _outcome_of(after[key])]
    # changed verdicts are more important than changed sentences
    different.sort(key=lambda key: before.get(key, {}).get("verdict") == after[key]["verdict"])
    if different:
        was, now = before.get(different[0]), after[different[0]]
        change = f"was “{was['sentence']}”, is" if was else "is new:"
        return f"The plan has changed: {now['name']} {change} “{now['sentence']}”."
    bound = next((item["name"] for key, item in after.items() if _binds(before.get(key)) != _binds(item)), "")
    if bound:
        return f"The plan has changed: the target's requirements for {bound} are different now."
    gone = next((item["name"] for key, item in before.items() if key not in after), "")
    if gone:
        return f"The plan has changed: {gone} is no longer part of it."
    return f"The plan has changed: {_steps_moved(old['steps'], fresh['steps'])}"


def _key(check: Mapping[str, Any]) -> tuple[str, str]:
    return check.get("code") or check["name"], check.get("subject") or ""


def _binds(check: Mapping[str, Any] | None) -> bool:
    return bool(check and check.get("binding"))


def _outcome_of(check: Mapping[str, Any] | None) -> tuple[str, str] | None:
    return None if check is None else (check["verdict"], check["sentence"])


def _steps_moved(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> str:
    for was, now in zip(old, new, strict=False):
        for name, words_ in (
            ("target_version", "becomes version"),
            ("fingerprint", "is the schema"),
            ("config", "has the config"),
        ):
            if was["subject"] == now["subject"] and was.get(name) != now.get(name):
                return f"{now['subject']} {words_} {now.get(name)}, not {was.get(name)}."
    return "its steps are different now." if len(old) == len(new) else f"it has {len(new)} steps, not {len(old)}."
