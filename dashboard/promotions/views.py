"""Pages of promotion requests. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor, render_page
from dashboard.components.time_travel import travels
from dashboard.components.translation import later, listing
from dashboard.promotions import history, request_form
from dashboard.promotions import page as promotions
from dashboard.promotions import request_list as pages
from dashboard.sources.labels import given_text
from registry.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotFound,
    NotSignedIn,
    RequestNotFound,
    SchemadeskError,
    ThreadNotFound,
    Unavailable,
)
from registry.promotions import selectors, services
from registry.promotions.models.requests import written_labels
from registry.promotions.requests.state_machine import refuse_strangers
from registry.promotions.reviews.decisions import Approval

STATE_MESSAGES: Final = {
    "draft": later("Saved as your draft."),
    "in review": later("Submitted for review."),
    "approved": later("Approved. It can be applied now."),
    "scheduled": later("Scheduled."),
    "applying": later("Being applied. Reload this page in a moment."),
    "rejected": later("Rejected."),
    "applied": later("Applied. It is now live in the target."),
    "withdrawn": later("Withdrawn."),
    "failed": later("Failed after it was partly applied."),
}


@require_safe
@travels
def request_list(request: HttpRequest) -> HttpResponse:
    """All requests, newest first; htmx gets the list alone."""
    refuse_strangers(page_actor(request))
    return render_page(request, "promotions/list.html", pages.request_list(request), {"list": "list"})


@require_http_methods(["GET", "HEAD", "POST"])
def promotion_request(request: HttpRequest) -> HttpResponse:
    """The form of a new request with a preview of its plan; when sent, it redirects to the request."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to request a promotion."))
    problem = None
    if request.method == "POST":
        form = request_form.request_input(request.POST, selectors.list_environments())
        draft = request.POST.get("draft") == "1"
        try:
            number = services.request_promotion(
                source=form.source,
                target=form.target,
                items=form.items(),
                with_config=form.with_config,
                reason=form.reason,
                draft=draft,
                again_of=form.again_of,
                labels=written_labels(form.labels),
                by=actor,
            )
        except SchemadeskError as error:
            problem = error
        else:
            message = (
                gettext("Request %(number)s is your draft.")
                if draft
                else gettext("Request %(number)s is waiting for review.")
            )
            messages.success(request, message % {"number": number})
            return redirect("ui:promotion", number)
    page = request_form.request_form(request, problem)
    return render(request, "promotions/request.html", {"page": page}, status=422 if problem else 200)


@require_safe
def plan(request: HttpRequest) -> HttpResponse:
    """The plan for the address's parameters, as a file."""
    refuse_strangers(page_actor(request))
    return _file(request_form.plan_file(request), "application/json", "plan.json")


@require_safe
@travels
def promotion(request: HttpRequest, request_id: int) -> HttpResponse:
    """The page of one request."""
    page = promotions.promotion(request, request_id)
    parts = {"text": "text"} if page.comparison and page.comparison.text else {}
    return render_page(request, "promotions/promotion.html", page, parts)


@require_safe
def evidence_html(request: HttpRequest, request_id: int) -> HttpResponse:
    """The evidence pack as one HTML file."""
    text = history.as_html(history.pack_of(request_id, page_actor(request)))
    return _file(text, "text/html; charset=utf-8", f"request-{request_id}.html")


@require_safe
def evidence_json(request: HttpRequest, request_id: int) -> HttpResponse:
    """The evidence pack as JSON."""
    text = history.as_json(history.pack_of(request_id, page_actor(request)))
    return _file(text, "application/json", f"request-{request_id}.json")


def _file(text: str, kind: str, name: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _act(request: HttpRequest, request_id: int, action: Callable[[], str], anchor: str = "") -> HttpResponse:
    """Run the action, report its result or error, and show the request again."""
    try:
        messages.success(request, action())
    except (RequestNotFound, ThreadNotFound):
        raise
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        messages.error(request, error.placed)
    return redirect(f"{reverse('ui:promotion', args=[request_id])}{anchor}")


def _decide(request: HttpRequest, request_id: int, action: Callable[[], str]) -> HttpResponse:
    """The same for an action that returns the request's state."""
    return _act(request, request_id, lambda: STATE_MESSAGES[action()])


@require_POST
def approve(request: HttpRequest, request_id: int) -> HttpResponse:
    """Approve the plan that the page showed."""
    actor = page_actor(request)

    def decide() -> str:
        state = services.approve(
            request_id=request_id,
            by=actor,
            comment=given_text(request.POST, "comment"),
            plan_hash=given_text(request.POST, "plan_hash"),
            override=given_text(request.POST, "override"),
            typed=given_text(request.POST, "typed"),
        )
        return (
            gettext("Your approval is recorded. More approvals are needed.")
            if state == "in review"
            else STATE_MESSAGES[state]
        )

    return _act(request, request_id, decide)


@require_http_methods(["GET", "HEAD", "POST"])
def approve_together(request: HttpRequest) -> HttpResponse:
    """The bulk approval page; when sent, it approves each request by itself and reports the results."""
    actor = page_actor(request)
    refuse_strangers(actor)
    if request.method != "POST":
        return render(request, "promotions/together.html", {"page": pages.bulk_approval_page(request)})
    try:
        plans = pages.plans_of(request.POST.getlist("plan"))
        _tell_approvals(request, services.approve_together(plans=plans, by=actor))
    except InvalidInput as error:
        messages.error(request, error.message)
    return redirect(f"{reverse('ui:promotions')}?{urlencode({'who': 'waiting'})}")


def _tell_approvals(request: HttpRequest, approvals: Sequence[Approval]) -> None:
    """Report the results: approved requests in one sentence, each that was left out with its reason."""
    enough = [f"#{approval.request}" for approval in approvals if approval.state == "approved"]
    begun = [f"#{approval.request}" for approval in approvals if approval.state and approval.state != "approved"]
    if enough:
        messages.success(request, gettext("Approved and ready to apply: %(which)s.") % {"which": listing(enough)})
    if begun:
        message = gettext("Your approval is recorded. More approvals are needed: %(which)s.")
        messages.success(request, message % {"which": listing(begun)})
    for approval in approvals:
        if approval.refused:
            message = gettext("#%(number)s is left out: %(reason)s") % {
                "number": approval.request,
                "reason": approval.refused,
            }
            messages.warning(request, message)


@require_POST
def changes(request: HttpRequest, request_id: int) -> HttpResponse:
    """Request changes, with a comment."""
    comment, actor = given_text(request.POST, "comment"), page_actor(request)

    def decide() -> str:
        services.request_changes(request_id=request_id, by=actor, comment=comment)
        return gettext("Changes requested. The requester is notified.")

    return _act(request, request_id, decide)


@require_POST
def reject(request: HttpRequest, request_id: int) -> HttpResponse:
    """Reject the request, with a reason."""
    comment, actor = given_text(request.POST, "comment"), page_actor(request)
    return _decide(request, request_id, lambda: services.reject(request_id=request_id, by=actor, comment=comment))


@require_POST
def withdraw(request: HttpRequest, request_id: int) -> HttpResponse:
    """Withdraw the request."""
    return _decide(request, request_id, lambda: services.withdraw(request_id=request_id, by=page_actor(request)))


@require_POST
def again(request: HttpRequest, request_id: int) -> HttpResponse:
    """Resubmit a request of a kind that has no form."""
    actor = page_actor(request)
    try:
        number = services.ask_again(request_id=request_id, by=actor)
    except RequestNotFound:
        raise
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        messages.error(request, error.placed)
        return redirect("ui:promotion", request_id)
    messages.success(request, gettext("Request %(number)s is waiting for review.") % {"number": number})
    return redirect("ui:promotion", number)


@require_POST
def submit(request: HttpRequest, request_id: int) -> HttpResponse:
    """Submit a draft for review."""
    return _decide(request, request_id, lambda: services.submit(request_id=request_id, by=page_actor(request)))


@require_POST
def recheck(request: HttpRequest, request_id: int) -> HttpResponse:
    """Run the checks again."""

    def run() -> str:
        state = services.recheck(request_id=request_id, by=page_actor(request))
        return gettext("The checks were run again. The request is %(state)s.") % {"state": state}

    return _act(request, request_id, run)


@require_POST
def apply(request: HttpRequest, request_id: int) -> HttpResponse:
    """Run the approved plan."""
    return _decide(request, request_id, lambda: services.apply(request_id=request_id, by=page_actor(request)))


@require_POST
def schedule(request: HttpRequest, request_id: int) -> HttpResponse:
    """Schedule the request for a time in UTC."""

    def run() -> str:
        at = utc_moment(given_text(request.POST, "at"), "at")
        move_on = given_text(request.POST, "move_on") == "1"
        services.schedule(request_id=request_id, by=page_actor(request), at=at, move_on=move_on)
        apply_at = selectors.get_request(request_id).apply_at or at
        message = gettext("It will be applied at %(at)s.") % {"at": pages.at_utc(apply_at)}
        if apply_at == at:
            return message
        return f"{message} {gettext('%(at)s is frozen there.') % {'at': pages.at_utc(at)}}"

    return _act(request, request_id, run)


def utc_moment(text: str, field: str) -> datetime:
    """A moment as a form gives it, in UTC. Raises InvalidInput."""
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput(
            gettext("%(text)s is not a valid time. Enter it like 2026-12-31T18:00, in UTC.")
            % {"text": repr(text[:40])},
            field=field,
        )
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


@require_POST
def unschedule(request: HttpRequest, request_id: int) -> HttpResponse:
    """Cancel the schedule."""

    def run() -> str:
        services.unschedule(request_id=request_id, by=page_actor(request))
        return gettext("Schedule cancelled. The request must be applied by hand.")

    return _act(request, request_id, run)


@require_POST
def resume(request: HttpRequest, request_id: int) -> HttpResponse:
    """Resume a request that failed while it was applied."""
    return _decide(request, request_id, lambda: services.resume(request_id=request_id, by=page_actor(request)))


@require_POST
def give_up(request: HttpRequest, request_id: int) -> HttpResponse:
    """Give up a failed request; what was written stays."""

    def run() -> str:
        services.give_up(request_id=request_id, by=page_actor(request))
        return gettext("Given up. Completed steps are kept.")

    return _act(request, request_id, run)


@require_POST
def labels(request: HttpRequest, request_id: int) -> HttpResponse:
    """Replace the labels with a comma-separated list."""

    def run() -> str:
        written = written_labels(given_text(request.POST, "labels"))
        services.set_labels(request_id=request_id, by=page_actor(request), labels=written)
        return gettext("Labels saved.")

    return _act(request, request_id, run, "#labels")


@require_POST
def acknowledge(request: HttpRequest, request_id: int) -> HttpResponse:
    """Acknowledge the request for an affected client."""

    def run() -> str:
        is_new = services.acknowledge(
            request_id=request_id,
            by=page_actor(request),
            subject=given_text(request.POST, "subject"),
            client=given_text(request.POST, "client"),
            note=given_text(request.POST, "note"),
            plan_hash=given_text(request.POST, "plan_hash"),
        )
        return gettext("Acknowledged.") if is_new else gettext("Already acknowledged.")

    return _act(request, request_id, run, "#consumers")


@require_POST
def take_back(request: HttpRequest, request_id: int) -> HttpResponse:
    """Withdraw an acknowledgement for a client."""

    def run() -> str:
        is_done = services.take_back(
            request_id=request_id,
            by=page_actor(request),
            subject=given_text(request.POST, "subject"),
            client=given_text(request.POST, "client"),
        )
        return gettext("Acknowledgement withdrawn.") if is_done else gettext("Not acknowledged.")

    return _act(request, request_id, run, "#consumers")


@require_POST
def threads(request: HttpRequest, request_id: int) -> HttpResponse:
    """Start a discussion about a field, a subject or the whole request."""

    def run() -> str:
        services.open_thread(
            request_id=request_id,
            by=page_actor(request),
            text=given_text(request.POST, "text"),
            subject=given_text(request.POST, "subject"),
            path=given_text(request.POST, "path"),
        )
        return gettext("Discussion started.")

    subject = given_text(request.POST, "subject")
    shown = f"?{urlencode({'item': subject})}" if subject else ""
    return _act(request, request_id, run, f"{shown}#discussion")


@require_POST
def thread_answer(request: HttpRequest, request_id: int, thread_id: int) -> HttpResponse:
    """Add a comment to a discussion."""

    def run() -> str:
        services.reply(thread_id=thread_id, by=page_actor(request), text=given_text(request.POST, "text"))
        return gettext("Reply sent.")

    return _act(request, request_id, run, f"#thread-{thread_id}")


@require_POST
def thread_resolve(request: HttpRequest, request_id: int, thread_id: int) -> HttpResponse:
    """Resolve a discussion."""

    def run() -> str:
        services.resolve(thread_id=thread_id, by=page_actor(request))
        return gettext("Discussion resolved.")

    return _act(request, request_id, run, f"#thread-{thread_id}")


@require_POST
def thread_reopen(request: HttpRequest, request_id: int, thread_id: int) -> HttpResponse:
    """Take a discussion up again."""

    def run() -> str:
        services.reopen(thread_id=thread_id, by=page_actor(request))
        return gettext("Discussion reopened.")

    return _act(request, request_id, run, f"#thread-{thread_id}")
