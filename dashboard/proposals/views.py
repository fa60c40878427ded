"""Views of proposals: drafts, and the editor. Checking writes nothing; submitting makes a request, not a version."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor
from dashboard.proposals.forms import ProposalForm, ProposeForm, draft_values, first_values
from dashboard.proposals.page import checked_text, draft_list, proposal_page
from registry.access.roles import Actor
from registry.errors import DraftChanged, NotSignedIn
from registry.promotions import selectors, services
from registry.promotions.requests.drafts import require_author
from registry.promotions.requests.state_machine import require_any_permission


@require_safe
def drafts(request: HttpRequest) -> HttpResponse:
    """Show the reader's drafts and open proposals."""
    require_any_permission(page_actor(request))
    return render(request, "proposals/list.html", {"page": draft_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def propose(request: HttpRequest) -> HttpResponse:
    """Show the editor; on POST, check the text, save it as a draft, or request its review.

    The editor's scripts post too: the response to `live` is only the report of a check.
    """
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to propose a schema."))
    if request.method != "POST":
        return _editor(request, ProposalForm(initial=first_values(request, actor)))
    form, do = ProposalForm.sent(request), request.POST.get("do", "check")
    if do == "live":
        return render(request, "proposals/live.html", {"page": checked_text(request, form, actor)})
    if do == "autosave":
        return _autosaved(form, actor)
    if do == "check" or not form.run(actor):
        return _editor(request, form, check=do == "check")
    messages.success(request, form.message())
    return redirect("ui:promotion" if isinstance(form, ProposeForm) else "ui:draft", form.result)


def _editor(request: HttpRequest, form: ProposalForm, *, check: bool = False) -> HttpResponse:
    page = proposal_page(request, form, check=check)
    return render(request, "proposals/propose.html", {"page": page}, status=422 if form.errors else 200)


def _autosaved(form: ProposalForm, actor: Actor) -> JsonResponse:
    """Save for the editor's script while somebody types; `stop` means that saving would overwrite another text."""
    if not form.run(actor):
        message = gettext("Not saved: %(reason)s") % {"reason": form.problem.what if form.problem else ""}
        stop = isinstance(form.error, DraftChanged)
        return JsonResponse({"said": message, "stop": stop}, status=409 if stop else 422)
    saved = selectors.get_draft(form.result, user_id=actor.user_id or 0)
    time = f"{localtime(saved.changed_at):%H:%M}"
    return JsonResponse(
        {
            "draft_id": form.result,
            "state_read": saved.state,
            "url": reverse("ui:draft", args=[form.result]),
            "said": gettext("Saved %(time)s") % {"time": time},
        }
    )


@require_safe
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Show one of the reader's drafts in the editor; other people's drafts are not found."""
    actor = page_actor(request)
    require_author(actor)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to see your drafts."))
    info = selectors.get_draft(draft_id, user_id=actor.user_id)
    return _editor(request, ProposalForm(initial=draft_values(info)))


@require_POST
def draft_delete(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Delete a draft."""
    services.delete_draft(draft_id=draft_id, by=page_actor(request))
    messages.success(request, gettext("Draft deleted."))
    return redirect("ui:proposals")
