"""Pages of proposals: drafts, and the editor. Checking writes nothing; submitting makes a request, not a version."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages.frame import page_actor
from dashboard.pages.proposals import draft_list, proposal_page
from dashboard.pages.proposals_form import Form, form_of_draft, form_sent, form_started, with_file
from registry.access.roles import Actor
from registry.errors import (
    Conflict,
    FindingNotFound,
    InvalidInput,
    NotAllowed,
    NotFound,
    NotSignedIn,
    SchemadeskError,
    Unavailable,
)
from registry.promotions import selectors, services
from registry.promotions.services.current import refuse_strangers
from registry.promotions.services.drafts import require_author
from registry.subjects.names import parse_subject


@require_safe
def drafts(request: HttpRequest) -> HttpResponse:
    """The reader's drafts, and open proposals."""
    refuse_strangers(page_actor(request))
    return render(request, "proposals/list.html", {"page": draft_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def propose(request: HttpRequest) -> HttpResponse:
    """The editor; sent, it checks the text, keeps it as a draft, or asks for its review."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to propose a schema."))
    if request.method != "POST":
        return _page(request, form_started(request, actor))
    form, do = form_sent(request), request.POST.get("do", "check")
    try:
        form = with_file(request, form)
    except InvalidInput as error:
        return _page(request, form, error=error)
    if do == "check":
        return _page(request, form, check=True)
    try:
        return _saved(request, form, actor) if do == "save" else _submitted(request, form, actor)
    except FindingNotFound as error:
        return _page(request, replace(form, finding=None), error=error)
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        return _page(request, form, error=error)


def _page(
    request: HttpRequest, form: Form, *, check: bool = False, error: SchemadeskError | None = None
) -> HttpResponse:
    page = proposal_page(request, form, check=check, error=error)
    status = 422 if error or (request.method == "POST" and (page.problem or page.syntax)) else 200
    return render(request, "proposals/propose.html", {"page": page}, status=status)


def _saved(request: HttpRequest, form: Form, actor: Actor) -> HttpResponse:
    number = services.save_draft(
        registry=form.registry,
        subject=parse_subject(form.subject),
        text=form.text,
        by=actor,
        schema_type=form.schema_type,
        references=form.references(),
        reason=form.reason,
        origin=form.origin,
        finding=form.finding,
    )
    messages.success(request, gettext("Saved as your draft; nobody else sees it."))
    return redirect("ui:draft", number)


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
    )
    messages.success(request, gettext("Request %(number)s waits for a reviewer.") % {"number": number})
    return redirect("ui:promotion", number)


@require_safe
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """A draft of the reader in the editor; somebody else's isn't there."""
    actor = page_actor(request)
    require_author(actor)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to see your drafts."))
    form = form_of_draft(selectors.get_draft(draft_id, user_id=actor.user_id))
    return _page(request, replace(form, draft=draft_id))


@require_POST
def draft_delete(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Throw a draft away."""
    services.delete_draft(draft_id=draft_id, by=page_actor(request))
    messages.success(request, gettext("The draft is gone."))
    return redirect("ui:proposals")
