"""The discussions of a request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.promotions_changes import Changes, place_of
from dashboard.pages.promotions_decision import action
from dashboard.pages.promotions_plan import steps_of_plan
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import Action
from dashboard.presenters.promotions_page import CommentForm, CommentRow, ThreadView
from registry.access.roles import Actor, refusal
from registry.promotions.selectors import RequestInfo, ThreadInfo


def thread_view(
    thread: ThreadInfo, info: RequestInfo, actor: Actor, changes: Changes, url: Callable[..., str]
) -> ThreadView:
    """A discussion, and what the reader may do in it."""
    closed = (
        "" if info.is_open else gettext("The request is %(state)s: its discussions are closed.") % {"state": info.state}
    )
    part = closed or _no_part(thread, info, actor)
    word, name, icon = (
        (gettext("Resolve"), "resolve", "check") if thread.is_open else (gettext("Open again"), "reopen", "undo-2")
    )
    answer = closed or ("" if actor.user_id else gettext("Sign in to take part."))
    return ThreadView(
        number=thread.id,
        subject=thread.subject,
        path=thread.path,
        place_url=place_of(thread, changes, url),
        resolved_by=thread.resolved_by,
        resolved_at=thread.resolved_at,
        comments=tuple(CommentRow(author=said.author, text=said.text, at=said.at) for said in thread.comments),
        answer=_thread_action(info, thread, "answer", gettext("Answer"), answer, "") if info.is_open else None,
        switch=_thread_action(info, thread, name, word, part, icon) if info.is_open else None,
    )


def _thread_action(info: RequestInfo, thread: ThreadInfo, name: str, label: str, reason: str, icon: str) -> Action:
    return Action(
        label=label,
        url=reverse(f"ui:promotion_thread_{name}", args=[info.id, thread.id]),
        method="post",
        allowed=not reason,
        reason=reason,
        icon=icon,
    )


def _no_part(thread: ThreadInfo, info: RequestInfo, actor: Actor) -> str:
    """Why the reader can't resolve the discussion; "" where they can."""
    if actor.user_id in (info.requested_by_id, thread.comments[0].author_id if thread.comments else None):
        return ""
    if actor.user_id in info.needed.named_ids:
        return ""
    lacking = refusal(actor, "promotion.review", registry=info.target, subject=info.subject.qualified)
    return gettext("Whoever began it, the requester or a reviewer resolves it.") if lacking else ""


def comment_form(request: HttpRequest, info: RequestInfo, actor: Actor, url: Callable[..., str]) -> CommentForm | None:
    """The form of a new discussion, of the field that the address names; None for a closed request."""
    if not info.is_open:
        return None
    subject, path = given_text(request.GET, "of"), given_text(request.GET, "about")
    if subject not in {step.subject for step in steps_of_plan(info.plan)}:
        subject, path = "", ""
    reason = "" if actor.user_id else gettext("Sign in to take part in the discussion.")
    form = action(info, "threads", gettext("Open a discussion"), reason, icon="message-square")
    return CommentForm(open=form, subject=subject, path=path, whole_url=f"{url()}#comment")
