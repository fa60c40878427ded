"""The steps of a plan at a registry elsewhere: each committed before and after it is done, so that a crash shows.

No transaction of ours reaches there. Before a step writes, the remote is asked whether it has that already; after it, what
is there is read and compared. So a step that was cut off at any point is done again without doing anything twice. One
worker has a request at a time, by a conditional update with a lease, which it renews before every write.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import transaction

from registry.access.egress import EgressPolicy, parse_connection
from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import PlanChanged, RemoteUnavailable, SchemadeskError
from registry.promotions import planning
from registry.promotions.eligible import written_subjects
from registry.promotions.models import ApplyStep, PromotionRequest
from registry.promotions.plan import CONFIG, NONE, REPEAT, Plan, Step, step_from
from registry.promotions.services.claiming import SYNC_LEASE, Claim, ClaimLost, take
from registry.promotions.services.current import asked_subjects, move, refuse_failing
from registry.promotions.services.mirrored import fresh
from registry.promotions.services.releasing import Written, in_words, record_releases
from registry.promotions.services.writing_elsewhere import MAX_FAILURE, Remote, with_numbers
from registry.promotions.telling import tell
from registry.subjects.remote_writes import RemoteWriter

logger = logging.getLogger(__name__)


def perform(*, request_id: int, policy: EgressPolicy | None = None) -> str:
    """Do what is left of a request that is being applied; gives the state that it comes to.

    Empty where there is nothing to do or another worker is at it. What goes wrong is kept with the step and the request.
    """
    claim = take(request_id)
    if claim is None:
        return ""
    try:
        return _perform(claim, policy)
    except ClaimLost:
        logger.warning("request %s was given to another worker", request_id)
        return ""
    except SchemadeskError as error:
        return _fail(claim, error.placed)
    except Exception as error:
        _fail(claim, f"It failed unexpectedly: {type(error).__name__}. See the worker's log.")
        raise


def _perform(claim: Claim, policy: EgressPolicy | None) -> str:
    request = PromotionRequest.objects.select_related("target__registry").get(pk=claim.request_id)
    require_apply(request, claim.by)
    rows = list(request.steps.order_by("position"))
    if any(row.state != ApplyStep.WAITING or row.started_at for row in rows):
        claim.renew(SYNC_LEASE)
        fresh(request.target, policy=policy)
        claim.renew()
        _refuse_what_moved(request, rows)
    place = request.target.registry
    connection = parse_connection(place.url, user=place.user, secret=place.secret)
    with RemoteWriter(connection, policy=policy) as writer:
        remote = Remote(writer, claim, len(rows))
        for row in rows:
            step = step_from(row.step)
            if row.state != ApplyStep.DONE:
                remote.do(row, step)
            claim.numbers[step.subject, step.target_version] = row.version_number or step.target_version
    claim.renew(SYNC_LEASE)
    try:
        fresh(request.target, policy=policy)
    except RemoteUnavailable as error:
        raise RemoteUnavailable(f"All is written, but no release is recorded, for {error.message}") from error
    return _finish(claim)


def require_apply(request: PromotionRequest, by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed unless the person may apply to all that the request asks for and writes."""
    for subject in dict.fromkeys((*asked_subjects(request), *written_subjects(request))):
        require(by, "promotion.apply", registry=request.target.registry.name, subject=subject)


def _refuse_what_moved(request: PromotionRequest, rows: Sequence[ApplyStep]) -> None:
    """What is left of a request that was interrupted has to be what was approved: the remote may have moved meanwhile.

    Raises PlanChanged, WrongState for a check that fails by now, NotFound for what isn't there any more.
    """
    left = [row for row in rows if row.state != ApplyStep.DONE]
    if not left:
        return
    plan = planning.make_plan(planning.wish_of(request))
    now = {(step.kind == CONFIG, step.subject, step.fingerprint): step for step in plan.steps}
    numbers = {
        (row.step["subject"], row.step["target_version"]): row.version_number for row in rows if row.version_number
    }
    for row in left:
        was = step_from(row.step)
        if row.started_at and was.kind == REPEAT:
            continue  # once written it looks like a repetition that is still to come; its number tells them apart
        step = now.get((was.kind == CONFIG, was.subject, was.fingerprint))
        if step is None and was.kind == CONFIG:
            continue  # what the subject has set already is no step
        if step is not None and (step.kind == NONE or _is_same(with_numbers(was, numbers), step)):
            continue
        raise PlanChanged(
            f"What is left of it is no longer what was approved: {in_words(was)}. Give it up and ask for it again."
        )
    _refuse_by_checks(request, plan, {step.subject for step in (step_from(row.step) for row in left) if step.writes})


def _refuse_by_checks(request: PromotionRequest, plan: Plan, subjects: set[str]) -> None:
    """The checks as they are now, of what is left; that nothing is left to do is none of them."""
    checks = [
        item.to_dict()
        for item in plan.checks
        if item.code != "something-to-do" and (not item.subject or item.subject in subjects)
    ]
    request.plan = {**request.plan, "checks": checks}
    refuse_failing(request)


def _is_same(was: Step, now: Step) -> bool:
    names = ("kind", "target_version", "fingerprint", "references", "config", "metadata", "rule_set")
    return all(getattr(was, name) == getattr(now, name) for name in names)


def written_steps(request: PromotionRequest) -> list[tuple[Step, Written]]:
    """The steps of a request that are done, with what they left."""
    return [
        (step_from(row.step), Written(row.version_number or 0, row.schema_id or 0, row.said))
        for row in request.steps.filter(state=ApplyStep.DONE).order_by("position")
    ]


def _finish(claim: Claim) -> str:
    """All is written and mirrored: the releases are recorded and the request is closed."""
    with transaction.atomic():
        request = claim.locked()
        record(by=claim.by, why=f"apply request {request.pk}")
        try:
            record_releases(request, written_steps(request), claim.by)
        except LookupError as error:
            raise RemoteUnavailable(
                f"All is written, but the mirror of {request.target} has no {error}, so no release is recorded."
                " Resume it once the mirror has it."
            ) from error
        state = move(request, PromotionRequest.APPLIED, claim_tag="", claim_until=None, apply_at=None, failure="")
        tell(request, "promotion.applied", f"{claim.by.name} applied it.", by=claim.by)
        return state


def _fail(claim: Claim, sentence: str) -> str:
    """Keep why it can't go on, with the request; steps that are done stay done."""
    try:
        with transaction.atomic():
            request = claim.locked()
            record(by=claim.by, why=f"apply request {request.pk}: it failed")
            written = sum(step.writes for step, _ in written_steps(request))
            part = f"{written} of its steps are written and stay" if written else "nothing of it is known to be written"
            said = f"{sentence} Until then {part}."[:MAX_FAILURE]
            state = move(request, PromotionRequest.FAILED, claim_tag="", claim_until=None, failure=said)
            tell(request, "promotion.failed", said, by=claim.by)
            return state
    except ClaimLost:
        logger.warning("request %s was given to another worker", claim.request_id)
        return ""


def begin_elsewhere(request: PromotionRequest, by: Actor) -> str:
    """Take the locked request into the state `applying`, with its steps waiting for a worker; gives the state."""
    for position, step in enumerate(request.plan["steps"]):
        ApplyStep.objects.create(request=request, position=position, step=step)
    return move(
        request,
        PromotionRequest.APPLYING,
        applied_by_id=by.user_id,
        apply_at=None,
        claim_tag="",
        claim_until=None,
        failure="",
    )


def again(request: PromotionRequest, by: Actor) -> str:
    """Let workers take the locked request up again, for this person; gives the state."""
    request.steps.filter(state=ApplyStep.FAILED).update(state=ApplyStep.WAITING)
    return move(
        request, PromotionRequest.APPLYING, applied_by_id=by.user_id, claim_tag="", claim_until=None, failure=""
    )
