"""Discussions and labels of a request. None of them is a decision.

A discussion is anchored to a field of one of the request's subjects, or to the whole request. It may suggest a change
of a proposed text, which the requester takes as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, may, require
from registry.audit.context import record
from registry.errors import InvalidInput, NotAllowed, ThreadNotFound, WrongState
from registry.promotions.events import tell
from registry.promotions.models import Comment, PromotionRequest, Thread
from registry.promotions.models.requests import clean_labels
from registry.promotions.plan.types import CONFIG, step_from
from registry.promotions.requests.schema_changes import paths_of
from registry.promotions.requests.selectors import get_request
from registry.promotions.requests.state_machine import (
    checked_text,
    locked_for,
    person,
    refresh,
    refuse_by_token,
    require_any_permission,
)
from registry.promotions.requests.suggestions import change_text, checked_suggestion, prepared_change
from registry.promotions.reviews.eligibility import REVIEW, needed_for, written_subjects
from registry.subjects.versions.qualified_names import SubjectName

MAX_THREADS: Final = 200
#: the most comments of a request, in all its discussions
MAX_COMMENTS: Final = 1000
MAX_PATH: Final = 1024
_EMPTY: Final = "Enter a comment."
_ACTION: Final = "promotion.request"


def open_thread(
    *, request_id: int, by: Actor, text: str, subject: str = "", path: str = "", suggestion: str = ""
) -> int:
    """Start a discussion, which every reader of the request may do; returns its number.

    `subject` is a qualified name of the plan, `path` a field as the diff names it; both empty: the whole request.
    `suggestion` is the whole proposed text with a change that the requester can take; an unchanged text suggests nothing.
    Raises InvalidInput, WrongState for a closed request or too many discussions, NotSignedIn, NotAllowed, and what a
    registration raises for a suggestion that is no valid schema.
    """
    with transaction.atomic():
        request = _request(request_id, by)
    comment, field = checked_text(text, "comment", needed=_EMPTY), checked_text(path, "field's path", longest=MAX_PATH)
    if field and not subject:
        raise InvalidInput("A field belongs to a subject. Name the subject too.")
    _refuse_unknown_field(request, subject, field)
    changed = checked_suggestion(request, subject, suggestion)
    return _open(request_id, by, comment, Thread(request=request, subject=subject, path=field, **changed))


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
def _open(request_id: int, by: Actor, comment: str, thread: Thread) -> int:
    request = _request(request_id, by)
    if thread.subject and thread.subject not in _subjects(request):  # the plan has changed meanwhile
        raise InvalidInput(f"{thread.subject[:200]} is no longer part of request {request.pk}.", field="subject")
    if request.threads.count() >= MAX_THREADS:
        raise WrongState(
            f"Request {request.pk} has {MAX_THREADS} discussions, which is the maximum. Reply in one of them."
        )
    record(by=by, why=f"{'suggest a change in' if thread.suggestion else 'comment on'} request {request.pk}")
    thread.save()
    _add(request, thread, comment, by, "promotion.suggested" if thread.suggestion else "promotion.commented")
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
    _mark_resolved(thread, by)


def _mark_resolved(thread: Thread, by: Actor) -> None:
    thread.resolved_by_id, thread.resolved_at = person(by), timezone.now()
    thread.save(update_fields=["resolved_by", "resolved_at", "is_taken"])


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


def take_suggestion(*, thread_id: int, by: Actor) -> str:
    """Change the proposed text as a discussion suggests, as the requester; returns the state.

    The plan is made again, so earlier approvals no longer count, and the discussion is resolved. Raises WrongState for
    a request whose text can't change or has changed in the same lines, NotAllowed, ThreadNotFound, and what a
    registration raises for a text that is no valid schema.
    """
    with transaction.atomic():
        request, thread = _suggested(thread_id, by)
    change = prepared_change(request, thread)  # parsed without a lock, because it may take a while
    with transaction.atomic():
        request, thread = _suggested(thread_id, by)
        first = thread.comments.first()
        record(by=by, why=f"take a suggestion in request {request.pk}")
        change_text(request, thread, change)
        cause = f"{by.name} took a suggestion{f' by {first.author}' if first else ''}."
        refresh(request, by, cause=cause)
        thread.is_taken = True
        _mark_resolved(thread, by)
        if request.state != PromotionRequest.DRAFT:
            tell(request, "promotion.suggestion_taken", cause, by=by, to=[first.author_id] if first else [])
        return request.state


def _suggested(thread_id: int, by: Actor) -> tuple[PromotionRequest, Thread]:
    """Return the locked request and the discussion, for a requester who can take its suggestion."""
    request, thread = _thread(thread_id, by)
    if by.user_id != request.requested_by_id:
        raise NotAllowed(f"Only {request.requested_by}, who proposed the text, can take a suggestion.")
    require(by, _ACTION, registry=request.target.registry.name, subject=request_subject(request))
    if not thread.suggestion or thread.is_taken:
        raise WrongState("The suggestion is already taken." if thread.is_taken else "The discussion suggests nothing.")
    if request.state not in (PromotionRequest.DRAFT, *PromotionRequest.PLANNED_STATES):
        raise WrongState(f"Request {request.pk} is {request.state}, so its text can't change.", state=request.state)
    return request, thread


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


def _add(request: PromotionRequest, thread: Thread, text: str, by: Actor, event: str = "promotion.commented") -> int:
    if Comment.objects.filter(thread__request=request).count() >= MAX_COMMENTS:
        raise WrongState(f"Request {request.pk} has {MAX_COMMENTS} comments, which is the maximum.")
    comment = Comment.objects.create(thread=thread, author_id=person(by), text=text)
    anchor = (
        f" on {thread.path} of {thread.subject}" if thread.path else f" on {thread.subject}" if thread.subject else ""
    )
    others = thread.comments.order_by().values_list("author_id", flat=True).distinct()
    if request.state != PromotionRequest.DRAFT:
        tell(request, event, f"{by.name}{anchor}: {text}", by=by, to=others)
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
