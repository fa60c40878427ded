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

from dashboard.pages import evidence_pack, promotions_form, promotions_page, promotions_together
from dashboard.pages import promotions as pages
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from dashboard.texts import later, listing
from dashboard.travel import travels
from dashboard.views.parts import render_page
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
from registry.promotions.labels import written_labels
from registry.promotions.services.approving_together import Approval
from registry.promotions.services.current import refuse_strangers

SAID: Final = {
    "draft": later("Kept as your draft."),
    "in review": later("It is in review."),
    "approved": later("Approved. It can be applied now."),
    "scheduled": later("Scheduled."),
    "applying": later("It is being applied; load this page again in a moment."),
    "rejected": later("Turned down."),
    "applied": later("Applied: it is live in the target."),
    "withdrawn": later("Withdrawn."),
    "failed": later("Applying it failed on the way."),
}


@require_safe
@travels
def request_list(request: HttpRequest) -> HttpResponse:
    """All requests, newest first; htmx gets the list alone."""
    refuse_strangers(page_actor(request))
    return render_page(request, "promotions/list.html", pages.request_list(request), {"list": "list"})


@require_http_methods(["GET", "HEAD", "POST"])
def promotion_request(request: HttpRequest) -> HttpResponse:
    """The form that asks for a promotion, with a preview of its plan; sent, it leads to the new request."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to ask for a promotion."))
    problem = None
    if request.method == "POST":
        asked = promotions_form.asked_of(request.POST, selectors.list_environments())
        draft = request.POST.get("draft") == "1"
        try:
            number = services.request_promotion(
                source=asked.source,
                target=asked.target,
                items=asked.items(),
                with_config=asked.with_config,
                reason=asked.reason,
                draft=draft,
                again_of=asked.again_of,
                labels=written_labels(asked.labels),
                by=actor,
            )
        except SchemadeskError as error:
            problem = error
        else:
            said = (
                gettext("Request %(number)s is your draft.")
                if draft
                else gettext("Request %(number)s waits for a reviewer.")
            )
            messages.success(request, said % {"number": number})
            return redirect("ui:promotion", number)
    page = promotions_form.request_form(request, problem)
    return render(request, "promotions/request.html", {"page": page}, status=422 if problem else 200)


@require_safe
def plan(request: HttpRequest) -> HttpResponse:
    """The plan of what the address asks for, as a file."""
    refuse_strangers(page_actor(request))
    return _file(promotions_form.plan_file(request), "application/json", "plan.json")


@require_safe
@travels
def promotion(request: HttpRequest, request_id: int) -> HttpResponse:
    """One request, with everything that the decision needs."""
    page = promotions_page.promotion(request, request_id)
    parts = {"text": "text"} if page.comparison and page.comparison.text else {}
    return render_page(request, "promotions/promotion.html", page, parts)


@require_safe
def evidence_html(request: HttpRequest, request_id: int) -> HttpResponse:
    """The evidence pack as one HTML file."""
    text = evidence_pack.as_html(evidence_pack.pack_of(request_id, page_actor(request)))
    return _file(text, "text/html; charset=utf-8", f"request-{request_id}.html")


@require_safe
def evidence_json(request: HttpRequest, request_id: int) -> HttpResponse:
    """The evidence pack as JSON."""
    text = evidence_pack.as_json(evidence_pack.pack_of(request_id, page_actor(request)))
    return _file(text, "application/json", f"request-{request_id}.json")


def _file(text: str, kind: str, name: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _act(request: HttpRequest, request_id: int, action: Callable[[], str], place: str = "") -> HttpResponse:
    """Do it, say what came of it or why it wasn't done, and show the request again."""
    try:
        messages.success(request, action())
    except (RequestNotFound, ThreadNotFound):
        raise
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        messages.error(request, error.placed)
    return redirect(f"{reverse('ui:promotion', args=[request_id])}{place}")


def _decide(request: HttpRequest, request_id: int, action: Callable[[], str]) -> HttpResponse:
    """The same for what gives the request's state."""
    return _act(request, request_id, lambda: SAID[action()])


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
        return gettext("Your approval is recorded; it needs more than yours.") if state == "in review" else SAID[state]

    return _act(request, request_id, decide)


@require_http_methods(["GET", "HEAD", "POST"])
def approve_together(request: HttpRequest) -> HttpResponse:
    """The page that lists what was chosen to be approved; sent, it approves each by itself and says what became of it."""
    actor = page_actor(request)
    refuse_strangers(actor)
    if request.method != "POST":
        return render(request, "promotions/together.html", {"page": promotions_together.together_page(request)})
    try:
        plans = promotions_together.plans_of(request.POST.getlist("plan"))
        _tell_approvals(request, services.approve_together(plans=plans, by=actor))
    except InvalidInput as error:
        messages.error(request, error.message)
    return redirect(f"{reverse('ui:promotions')}?{urlencode({'who': 'waiting'})}")


def _tell_approvals(request: HttpRequest, approvals: Sequence[Approval]) -> None:
    """What became of each: those approved in one sentence, each that was left out with its reason."""
    enough = [f"#{each.request}" for each in approvals if each.state == "approved"]
    begun = [f"#{each.request}" for each in approvals if each.state and each.state != "approved"]
    if enough:
        messages.success(request, gettext("Approved, and ready to be applied: %(which)s.") % {"which": listing(enough)})
    if begun:
        said = gettext("Your approval is recorded, and more are needed: %(which)s.")
        messages.success(request, said % {"which": listing(begun)})
    for each in approvals:
        if each.refused:
            said = gettext("#%(number)s is left out: %(reason)s") % {"number": each.request, "reason": each.refused}
            messages.warning(request, said)


@require_POST
def changes(request: HttpRequest, request_id: int) -> HttpResponse:
    """Ask for changes, with what they are."""
    comment, actor = given_text(request.POST, "comment"), page_actor(request)

    def decide() -> str:
        services.request_changes(request_id=request_id, by=actor, comment=comment)
        return gettext("Changes are requested; the requester is told.")

    return _act(request, request_id, decide)


@require_POST
def reject(request: HttpRequest, request_id: int) -> HttpResponse:
    """Turn it down, with a reason."""
    comment, actor = given_text(request.POST, "comment"), page_actor(request)
    return _decide(request, request_id, lambda: services.reject(request_id=request_id, by=actor, comment=comment))


@require_POST
def withdraw(request: HttpRequest, request_id: int) -> HttpResponse:
    """Take it back."""
    return _decide(request, request_id, lambda: services.withdraw(request_id=request_id, by=page_actor(request)))


@require_POST
def again(request: HttpRequest, request_id: int) -> HttpResponse:
    """Ask for the same again, of a kind of request that has no form."""
    actor = page_actor(request)
    try:
        number = services.ask_again(request_id=request_id, by=actor)
    except RequestNotFound:
        raise
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        messages.error(request, error.placed)
        return redirect("ui:promotion", request_id)
    messages.success(request, gettext("Request %(number)s waits for a reviewer.") % {"number": number})
    return redirect("ui:promotion", number)


@require_POST
def submit(request: HttpRequest, request_id: int) -> HttpResponse:
    """Ask for the review of a draft."""
    return _decide(request, request_id, lambda: services.submit(request_id=request_id, by=page_actor(request)))


@require_POST
def recheck(request: HttpRequest, request_id: int) -> HttpResponse:
    """Run the checks again."""

    def run() -> str:
        state = services.recheck(request_id=request_id, by=page_actor(request))
        return gettext("The checks were run again; it is %(state)s.") % {"state": state}

    return _act(request, request_id, run)


@require_POST
def apply(request: HttpRequest, request_id: int) -> HttpResponse:
    """Run the approved plan."""
    return _decide(request, request_id, lambda: services.apply(request_id=request_id, by=page_actor(request)))


@require_POST
def schedule(request: HttpRequest, request_id: int) -> HttpResponse:
    """Have it applied at a time, which is UTC."""

    def run() -> str:
        at = utc_moment(given_text(request.POST, "at"), "at")
        move_on = given_text(request.POST, "move_on") == "1"
        services.schedule(request_id=request_id, by=page_actor(request), at=at, move_on=move_on)
        found = selectors.get_request(request_id).apply_at or at
        said = gettext("It will be applied at %(at)s.") % {"at": pages.at_utc(found)}
        if found == at:
            return said
        return f"{said} {gettext('%(at)s is frozen there.') % {'at': pages.at_utc(at)}}"

    return _act(request, request_id, run)


def utc_moment(text: str, field: str) -> datetime:
    """A moment as a form gives it, in UTC. Raises InvalidInput."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise InvalidInput(
            gettext("%(text)s is no time: write it like 2026-12-31T18:00, in UTC.") % {"text": repr(text[:40])},
            field=field,
        )
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


@require_POST
def unschedule(request: HttpRequest, request_id: int) -> HttpResponse:
    """Leave it to be applied by hand."""

    def run() -> str:
        services.unschedule(request_id=request_id, by=page_actor(request))
        return gettext("It isn’t scheduled any more; somebody has to apply it.")

    return _act(request, request_id, run)


@require_POST
def resume(request: HttpRequest, request_id: int) -> HttpResponse:
    """Go on with what is left."""
    return _decide(request, request_id, lambda: services.resume(request_id=request_id, by=page_actor(request)))


@require_POST
def give_up(request: HttpRequest, request_id: int) -> HttpResponse:
    """End it; what was written stays."""

    def run() -> str:
        services.give_up(request_id=request_id, by=page_actor(request))
        return gettext("Given up; what was written stays.")

    return _act(request, request_id, run)


@require_POST
def labels(request: HttpRequest, request_id: int) -> HttpResponse:
    """Replace the labels by those that are written, with commas between them."""

    def run() -> str:
        written = written_labels(given_text(request.POST, "labels"))
        services.set_labels(request_id=request_id, by=page_actor(request), labels=written)
        return gettext("The labels are saved.")

    return _act(request, request_id, run, "#labels")


@require_POST
def acknowledge(request: HttpRequest, request_id: int) -> HttpResponse:
    """Say, for a client that doesn't go on, that its people know and that it may come."""

    def run() -> str:
        is_new = services.acknowledge(
            request_id=request_id,
            by=page_actor(request),
            subject=given_text(request.POST, "subject"),
            client=given_text(request.POST, "client"),
            note=given_text(request.POST, "note"),
            plan_hash=given_text(request.POST, "plan_hash"),
        )
        return gettext("Acknowledged.") if is_new else gettext("It was acknowledged already.")

    return _act(request, request_id, run, "#consumers")


@require_POST
def take_back(request: HttpRequest, request_id: int) -> HttpResponse:
    """Take back what one has acknowledged for a client."""

    def run() -> str:
        is_done = services.take_back(
            request_id=request_id,
            by=page_actor(request),
            subject=given_text(request.POST, "subject"),
            client=given_text(request.POST, "client"),
        )
        return gettext("Taken back: it isn’t acknowledged any more.") if is_done else gettext("It isn’t acknowledged.")

    return _act(request, request_id, run, "#consumers")


@require_POST
def threads(request: HttpRequest, request_id: int) -> HttpResponse:
    """Begin a discussion, of a field or of all of it."""

    def run() -> str:
        services.open_thread(
            request_id=request_id,
            by=page_actor(request),
            text=given_text(request.POST, "text"),
            subject=given_text(request.POST, "subject"),
            path=given_text(request.POST, "path"),
        )
        return gettext("The discussion is open.")

    subject = given_text(request.POST, "subject")
    shown = f"?{urlencode({'item': subject})}" if subject else ""
    return _act(request, request_id, run, f"{shown}#discussion")


@require_POST
def thread_answer(request: HttpRequest, request_id: int, thread_id: int) -> HttpResponse:
    """Add to a discussion."""

    def run() -> str:
        services.answer(thread_id=thread_id, by=page_actor(request), text=given_text(request.POST, "text"))
        return gettext("Answered.")

    return _act(request, request_id, run, f"#thread-{thread_id}")


@require_POST
def thread_resolve(request: HttpRequest, request_id: int, thread_id: int) -> HttpResponse:
    """Close a discussion."""

    def run() -> str:
        services.resolve(thread_id=thread_id, by=page_actor(request))
        return gettext("Resolved.")

    return _act(request, request_id, run, f"#thread-{thread_id}")


@require_POST
def thread_reopen(request: HttpRequest, request_id: int, thread_id: int) -> HttpResponse:
    """Take a discussion up again."""

    def run() -> str:
        services.reopen(thread_id=thread_id, by=page_actor(request))
        return gettext("Open again.")

    return _act(request, request_id, run, f"#thread-{thread_id}")
