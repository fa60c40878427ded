"""Pages of proposals: drafts, and the editor. Checking writes nothing; submitting makes a request, not a version."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor
from dashboard.proposals.forms import Form, form_of_draft, form_sent, form_started, with_file
from dashboard.proposals.page import draft_list, proposal_page
from dashboard.proposals.proposal_result import live_part
from registry.access.roles import Actor
from registry.errors import (
    Conflict,
    DraftChanged,
    FindingNotFound,
    InvalidInput,
    NotAllowed,
    NotFound,
    NotSignedIn,
    SchemadeskError,
    Unavailable,
)
from registry.promotions import selectors, services
from registry.promotions.requests.drafts import require_author
from registry.promotions.requests.state_machine import refuse_strangers
from registry.subjects.versions.qualified_names import parse_subject


@require_safe
def drafts(request: HttpRequest) -> HttpResponse:
    """The reader's drafts and open proposals."""
    refuse_strangers(page_actor(request))
    return render(request, "proposals/list.html", {"page": draft_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def propose(request: HttpRequest) -> HttpResponse:
    """The editor; when sent, it checks the text, saves it as a draft, or requests its review.

    Its scripts send it too: the response to `live` is only the report of a check.
    """
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to propose a schema."))
    if request.method != "POST":
        return _page(request, form_started(request, actor))
    form, do = form_sent(request), request.POST.get("do", "check")
    if do == "live":
        return render(request, "proposals/live.html", {"page": live_part(request, form, actor)})
    try:
        form = with_file(request, form)
    except InvalidInput as error:
        return _page(request, form, error=error)
    if do == "autosave":
        return _autosaved(form, actor)
    if do == "check":
        return _page(request, form, check=True)
    try:
        return _saved(request, form, actor) if do == "save" else _submitted(request, form, actor)
    except DraftChanged as error:  # saving again overwrites it, since the page has said so
        return _page(request, replace(form, draft_state=str(error.details["seen"])), error=error)
    except FindingNotFound as error:
        return _page(request, replace(form, finding=None), error=error)
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        return _page(request, form, error=error)


def _page(
    request: HttpRequest, form: Form, *, check: bool = False, error: SchemadeskError | None = None
) -> HttpResponse:
    page = proposal_page(request, form, check=check, error=error)
    failed = page.problem or (page.report and (page.report.problem or page.report.syntax))
    status = 422 if error or (request.method == "POST" and failed) else 200
    return render(request, "proposals/propose.html", {"page": page}, status=status)


def _saved(request: HttpRequest, form: Form, actor: Actor) -> HttpResponse:
    number = _saved_number(form, actor)
    messages.success(request, gettext("Draft saved. Only you can see it."))
    return redirect("ui:draft", number)


def _autosaved(form: Form, actor: Actor) -> JsonResponse:
    """Save from the editor's script while somebody writes; `stop` means that saving would overwrite another text."""
    try:
        number = _saved_number(form, actor)
    except SchemadeskError as error:
        message = gettext("Not saved: %(reason)s") % {"reason": error.message}
        stop = isinstance(error, DraftChanged)
        return JsonResponse({"said": message, "stop": stop}, status=409 if stop else 422)
    saved = selectors.get_draft(number, user_id=actor.user_id or 0)
    at = localtime(saved.changed_at)
    return JsonResponse(
        {
            "draft": number,
            "seen": saved.state,
            "url": reverse("ui:draft", args=[number]),
            "said": gettext("Saved %(time)s") % {"time": f"{at:%H:%M}"},
        }
    )


def _saved_number(form: Form, actor: Actor) -> int:
    """Save the draft and return its number; if its subject or target was changed, it resubmits nothing."""
    try:
        return _keep(form, actor)
    except InvalidInput as error:
        if error.details.get("field") != "again_of":
            raise
        return _keep(replace(form, again_of=None), actor)


def _keep(form: Form, actor: Actor) -> int:
    return services.save_draft(
        registry=form.registry,
        subject=parse_subject(form.subject),
        text=form.text,
        by=actor,
        schema_type=form.schema_type,
        references=form.references(),
        reason=form.reason,
        origin=form.origin,
        finding=form.finding,
        again_of=form.again_of,
        state_read=form.draft_state,
    )


def _submitted(request: HttpRequest, form: Form, actor: Actor) -> HttpResponse:
    number = services.propose_version(
        target=form.registry,
        subject=parse_subject(form.subject),
        text=form.text,
        by=actor,
        schema_type=form.schema_type,
        references=form.references(),
        reason=form.reason if "reason" in request.POST else None,
        draft_id=form.draft,
        finding=form.finding,
        again_of=form.again_of,
    )
    messages.success(request, gettext("Request %(number)s is waiting for review.") % {"number": number})
    return redirect("ui:promotion", number)


@require_safe
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """A draft of the reader in the editor; other people's drafts are not found."""
    actor = page_actor(request)
    require_author(actor)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to see your drafts."))
    form = form_of_draft(selectors.get_draft(draft_id, user_id=actor.user_id))
    return _page(request, replace(form, draft=draft_id))


@require_POST
def draft_delete(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Delete a draft."""
    services.delete_draft(draft_id=draft_id, by=page_actor(request))
    messages.success(request, gettext("Draft deleted."))
    return redirect("ui:proposals")
