"""Discussions, labels and acknowledgements of a request. None of them is a decision.

A discussion is anchored to a field of one of the request's subjects, or to the whole request. The contact of an
affected client acknowledges the plan, and may withdraw that until the plan is being applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, may
from registry.access.selectors import approval_refusal
from registry.audit.context import record
from registry.errors import ClientNotFound, InvalidInput, NotAllowed, ThreadNotFound, WrongState
from registry.promotions.checks.consumers import TAKEN_BACK, AffectedClient, with_current_acknowledgements
from registry.promotions.events import tell
from registry.promotions.models import Comment, PromotionRequest, Review, Thread
from registry.promotions.models.requests import clean_labels
from registry.promotions.plan.types import CONFIG, step_from
from registry.promotions.requests.schema_changes import paths_of
from registry.promotions.requests.selectors import get_request
from registry.promotions.requests.state_machine import (
    checked_text,
    locked_for,
    person,
    refuse_by_token,
    require_any_permission,
    require_plan_hash,
    with_current_plan,
)
from registry.promotions.reviews.affected_consumers import Consumer, consumers_of_row
from registry.promotions.reviews.decisions import require_reviewer
from registry.promotions.reviews.eligibility import REVIEW, needed_for, written_subjects
from registry.subjects.versions.qualified_names import SubjectName

MAX_THREADS: Final = 200
#: the most comments of a request, in all its discussions
MAX_COMMENTS: Final = 1000
MAX_PATH: Final = 1024
_EMPTY: Final = "Enter a comment."


def open_thread(*, request_id: int, by: Actor, text: str, subject: str = "", path: str = "") -> int:
    """Start a discussion, which every reader of the request may do; returns its number.

    `subject` is a qualified name of the plan, `path` a field as the diff names it; both empty: the whole request.
    Raises InvalidInput, WrongState for a closed request or too many discussions, NotSignedIn, NotAllowed.
    """
    with transaction.atomic():
        request = _request(request_id, by)
    comment, field = checked_text(text, "comment", needed=_EMPTY), checked_text(path, "field's path", longest=MAX_PATH)
    if field and not subject:
        raise InvalidInput("A field belongs to a subject. Name the subject too.")
    _refuse_unknown_field(request, subject, field)
    return _open(request_id, by, comment, subject, field)


def _refuse_unknown_field(request: PromotionRequest, subject: str, field: str) -> None:
    """Refuse a subject or field that the plan doesn't have; without a lock, because comparing may take a while."""
    if not subject:
        return
    if subject not in _subjects(request):
        raise InvalidInput(f"{subject[:200]} is not part of request {request.pk}.", field="subject")
    if not field:
        return
    steps = [step_from(step) for step in request.plan["steps"] if step["subject"] == subject]
    info = get_request(request.pk)
    paths = frozenset().union(*(paths_of(info, step) for step in steps if step.kind != CONFIG))
    if field in paths:
        return
    near = get_close_matches(field, paths, n=3, cutoff=0.5)
    like = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InvalidInput(
        f"{field[:200]} is not a field of {subject[:200]}, before or after the change.{like} Use a field"
        " path as in the list of changes, or leave it out to discuss the whole subject.",
        field="path",
    )


@transaction.atomic
def _open(request_id: int, by: Actor, comment: str, subject: str, field: str) -> int:
    request = _request(request_id, by)
    if subject and subject not in _subjects(request):  # the plan has changed meanwhile
        raise InvalidInput(f"{subject[:200]} is no longer part of request {request.pk}.", field="subject")
    if request.threads.count() >= MAX_THREADS:
        raise WrongState(
            f"Request {request.pk} has {MAX_THREADS} discussions, which is the maximum. Reply in one of them."
        )
    record(by=by, why=f"comment on request {request.pk}")
    thread = request.threads.create(subject=subject, path=field)
    _add(request, thread, comment, by)
    return thread.pk


@transaction.atomic
def reply(*, thread_id: int, by: Actor, text: str) -> int:
    """Add a comment to a discussion; returns its number.

    Raises InvalidInput, WrongState, ThreadNotFound, NotAllowed.
    """
    request, thread = _thread(thread_id, by)
    comment = checked_text(text, "comment", needed=_EMPTY)
    record(by=by, why=f"comment on request {request.pk}")
    return _add(request, thread, comment, by)


@transaction.atomic
def resolve(*, thread_id: int, by: Actor) -> None:
    """Resolve a discussion, as its author, the requester or a reviewer. Raises WrongState, NotAllowed."""
    request, thread = _thread(thread_id, by)
    _require_part(request, thread, by)
    if thread.resolved_at is not None:
        raise WrongState("The discussion is already resolved.")
    record(by=by, why=f"resolve a discussion of request {request.pk}")
    thread.resolved_by_id, thread.resolved_at = person(by), timezone.now()
    thread.save(update_fields=["resolved_by", "resolved_at"])


@transaction.atomic
def reopen(*, thread_id: int, by: Actor) -> None:
    """Reopen a discussion, as the people who can resolve it. Raises WrongState, NotAllowed."""
    request, thread = _thread(thread_id, by)
    _require_part(request, thread, by)
    if thread.resolved_at is None:
        raise WrongState("The discussion is not resolved.")
    record(by=by, why=f"reopen a discussion of request {request.pk}")
    thread.resolved_by_id, thread.resolved_at = None, None
    thread.save(update_fields=["resolved_by", "resolved_at"])


def _request(request_id: int, by: Actor) -> PromotionRequest:
    """Return the request, locked, for an actor who may take part: they need to read it, without a read-only token."""
    request = locked_for(request_id, by)
    person(by)
    registry = request.target.registry.name
    refuse_by_token(by, "promotion.request", registry=registry, subjects=[request_subject(request)])
    if request.state in PromotionRequest.CLOSED_STATES:
        raise WrongState(f"Request {request.pk} is {request.state}, so its discussions are closed.")
    return request


def _thread(thread_id: int, by: Actor) -> tuple[PromotionRequest, Thread]:
    require_any_permission(by)
    thread = Thread.objects.filter(pk=thread_id).first()
    if thread is None:
        raise ThreadNotFound(f"Discussion {thread_id} not found.", thread=thread_id)
    request = _request(thread.request_id, by)
    return request, Thread.objects.get(pk=thread.pk)  # as it is under the request's lock


def _add(request: PromotionRequest, thread: Thread, text: str, by: Actor) -> int:
    if Comment.objects.filter(thread__request=request).count() >= MAX_COMMENTS:
        raise WrongState(f"Request {request.pk} has {MAX_COMMENTS} comments, which is the maximum.")
    comment = Comment.objects.create(thread=thread, author_id=person(by), text=text)
    anchor = (
        f" on {thread.path} of {thread.subject}" if thread.path else f" on {thread.subject}" if thread.subject else ""
    )
    others = thread.comments.order_by().values_list("author_id", flat=True).distinct()
    if request.state != PromotionRequest.DRAFT:
        tell(request, "promotion.commented", f"{by.name}{anchor}: {text}", by=by, to=others)
    return comment.pk


def _require_part(request: PromotionRequest, thread: Thread, by: Actor) -> None:
    first = thread.comments.first()
    if by.user_id in (request.requested_by_id, first.author_id if first else None):
        return
    if may(by, "promotion.review", registry=request.target.registry.name, subject=request_subject(request)):
        return
    if by.user_id not in needed_for(request).named_ids:
        raise NotAllowed("Only the person who started a discussion, the requester or a reviewer can resolve it.")


def _subjects(request: PromotionRequest) -> set[str]:
    return {str(step["subject"]) for step in request.plan["steps"]}


def request_subject(request: PromotionRequest) -> str:
    """Return the qualified name of the first subject."""
    return SubjectName(request.context_name, request.subject_name).qualified


_ACTION: Final = "promotion.request"


@transaction.atomic
def set_labels(*, request_id: int, labels: Iterable[str], by: Actor) -> list[str]:
    """Replace the labels of a request, open or closed; returns the new ones.

    Raises InvalidInput, NotAllowed, NotSignedIn, RequestNotFound.
    """
    request = locked_for(request_id, by)
    _require_labeller(request, by)
    cleaned = clean_labels(labels)
    if cleaned == request.labels:
        return cleaned
    record(by=by, why=f"label request {request_id}: {', '.join(cleaned) or 'none'}")
    request.labels = cleaned
    request.save(update_fields=["labels"])
    return cleaned


def _require_labeller(request: PromotionRequest, by: Actor) -> None:
    user_id, registry, subjects = person(by), request.target.registry.name, written_subjects(request)
    refuse_by_token(by, _ACTION, registry=registry, subjects=subjects)
    if user_id == request.requested_by_id:
        return
    if all(may(by, REVIEW, registry=registry, subject=name) for name in subjects):
        return
    if user_id not in needed_for(request).named_ids:
        raise NotAllowed("Only the requester and reviewers can change the labels.")


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
