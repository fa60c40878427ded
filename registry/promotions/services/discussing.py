"""Discussions of a request, each anchored to a field of one of its subjects or to the request as a whole."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from django.db import transaction
from django.utils import timezone

from registry.access.roles import Actor, may
from registry.audit.services import record
from registry.errors import InvalidInput, NotAllowed, ThreadNotFound, WrongState
from registry.promotions.eligible import needed_for
from registry.promotions.models import Comment, PromotionRequest, Thread
from registry.promotions.plan import CONFIG, step_from
from registry.promotions.selectors.changes import paths_of
from registry.promotions.selectors.requests import get_request
from registry.promotions.services.current import locked_for, person, refuse_by_token, refuse_strangers, words
from registry.promotions.telling import tell
from registry.subjects.names import SubjectName

MAX_THREADS: Final = 200
#: of a request, in all its discussions
MAX_COMMENTS: Final = 1000
MAX_PATH: Final = 1024
_EMPTY: Final = "Say something: a comment without words helps nobody."


def open_thread(*, request_id: int, by: Actor, text: str, subject: str = "", path: str = "") -> int:
    """Begin a discussion, as whoever may read the request may; gives its number.

    `subject` is a qualified name of the plan, `path` a field there as the diff names it; both empty: of all of it.
    Raises InvalidInput, WrongState for a closed request or too many discussions, NotSignedIn, NotAllowed.
    """
    with transaction.atomic():
        request = _request(request_id, by)
    said, field = words(text, "comment", needed=_EMPTY), words(path, "field's path", longest=MAX_PATH)
    if field and not subject:
        raise InvalidInput("A field is one of a subject: name the subject too.")
    _refuse_place(request, subject, field)
    return _open(request_id, by, said, subject, field)


def _refuse_place(request: PromotionRequest, subject: str, field: str) -> None:
    """Refuse what the plan doesn't have; while nothing is locked, since comparing may take a while."""
    if not subject:
        return
    if subject not in _subjects(request):
        raise InvalidInput(f"{subject[:200]} isn't part of request {request.pk}.", field="subject")
    if not field:
        return
    steps = [step_from(step) for step in request.plan["steps"] if step["subject"] == subject]
    info = get_request(request.pk)
    known = frozenset().union(*(paths_of(info, step) for step in steps if step.kind != CONFIG))
    if field in known:
        return
    near = get_close_matches(field, known, n=3, cutoff=0.5)
    like = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InvalidInput(
        f"{field[:200]} is no field of {subject[:200]}, neither of what is there nor of what would come.{like}"
        " Name one as the changes do, or leave it out to discuss the whole subject.",
        field="path",
    )


@transaction.atomic
def _open(request_id: int, by: Actor, said: str, subject: str, field: str) -> int:
    request = _request(request_id, by)
    if subject and subject not in _subjects(request):  # it was planned anew meanwhile
        raise InvalidInput(f"{subject[:200]} isn't part of request {request.pk} any more.", field="subject")
    if request.threads.count() >= MAX_THREADS:
        raise WrongState(f"Request {request.pk} has {MAX_THREADS} discussions; answer in one of them.")
    record(by=by, why=f"comment on request {request.pk}")
    thread = request.threads.create(subject=subject, path=field)
    _add(request, thread, said, by)
    return thread.pk


@transaction.atomic
def answer(*, thread_id: int, by: Actor, text: str) -> int:
    """Add to a discussion; gives the comment's number. Raises InvalidInput, WrongState, ThreadNotFound, NotAllowed."""
    request, thread = _thread(thread_id, by)
    said = words(text, "comment", needed=_EMPTY)
    record(by=by, why=f"comment on request {request.pk}")
    return _add(request, thread, said, by)


@transaction.atomic
def resolve(*, thread_id: int, by: Actor) -> None:
    """Close a discussion: whoever began it, the requester, or a reviewer. Raises WrongState, NotAllowed."""
    request, thread = _thread(thread_id, by)
    _require_part(request, thread, by)
    if thread.resolved_at is not None:
        raise WrongState("The discussion is resolved already.")
    record(by=by, why=f"resolve a discussion of request {request.pk}")
    thread.resolved_by_id, thread.resolved_at = person(by), timezone.now()
    thread.save(update_fields=["resolved_by", "resolved_at"])


@transaction.atomic
def reopen(*, thread_id: int, by: Actor) -> None:
    """Take a discussion up again; the same people may. Raises WrongState, NotAllowed."""
    request, thread = _thread(thread_id, by)
    _require_part(request, thread, by)
    if thread.resolved_at is None:
        raise WrongState("The discussion isn't resolved.")
    record(by=by, why=f"reopen a discussion of request {request.pk}")
    thread.resolved_by_id, thread.resolved_at = None, None
    thread.save(update_fields=["resolved_by", "resolved_at"])


def _request(request_id: int, by: Actor) -> PromotionRequest:
    """The request, locked, for somebody who may take part: reading is enough, a reading token isn't."""
    request = locked_for(request_id, by)
    person(by)
    registry = request.target.registry.name
    refuse_by_token(by, "promotion.request", registry=registry, subjects=[request_subject(request)])
    if request.state in PromotionRequest.CLOSED_STATES:
        raise WrongState(f"Request {request.pk} is {request.state}; its discussions are closed.")
    return request


def _thread(thread_id: int, by: Actor) -> tuple[PromotionRequest, Thread]:
    refuse_strangers(by)
    thread = Thread.objects.filter(pk=thread_id).first()
    if thread is None:
        raise ThreadNotFound(f"There is no discussion {thread_id}.", thread=thread_id)
    request = _request(thread.request_id, by)
    return request, Thread.objects.get(pk=thread.pk)  # as it is under the request's lock


def _add(request: PromotionRequest, thread: Thread, said: str, by: Actor) -> int:
    if Comment.objects.filter(thread__request=request).count() >= MAX_COMMENTS:
        raise WrongState(f"Request {request.pk} has {MAX_COMMENTS} comments; that is all it takes.")
    comment = Comment.objects.create(thread=thread, author_id=person(by), text=said)
    place = (
        f" on {thread.path} of {thread.subject}" if thread.path else f" on {thread.subject}" if thread.subject else ""
    )
    others = thread.comments.order_by().values_list("author_id", flat=True).distinct()
    if request.state != PromotionRequest.DRAFT:
        tell(request, "promotion.commented", f"{by.name}{place}: {said}", by=by, to=others)
    return comment.pk


def _require_part(request: PromotionRequest, thread: Thread, by: Actor) -> None:
    first = thread.comments.first()
    if by.user_id in (request.requested_by_id, first.author_id if first else None):
        return
    if may(by, "promotion.review", registry=request.target.registry.name, subject=request_subject(request)):
        return
    if by.user_id not in needed_for(request).named_ids:
        raise NotAllowed("A discussion is resolved by whoever began it, by the requester, or by a reviewer.")


def _subjects(request: PromotionRequest) -> set[str]:
    return {str(step["subject"]) for step in request.plan["steps"]}


def request_subject(request: PromotionRequest) -> str:
    """The qualified name of the first subject."""
    return SubjectName(request.context_name, request.subject_name).qualified
