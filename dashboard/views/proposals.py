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

from dashboard.pages.frame import page_actor
from dashboard.pages.proposals import draft_list, proposal_page
from dashboard.pages.proposals_form import Form, form_of_draft, form_sent, form_started, with_file
from dashboard.pages.proposals_told import live_part
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
    """The editor; sent, it checks the text, keeps it as a draft, or asks for its review.

    Its scripts send it too: `live` is answered with what a check comes to, and nothing around it.
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
    except DraftChanged as error:  # saving again puts this text in its place, now that it was said
        return _page(request, replace(form, seen=str(error.details["seen"])), error=error)
    except FindingNotFound as error:
        return _page(request, replace(form, finding=None), error=error)
    except (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable) as error:
        return _page(request, form, error=error)


def _page(
    request: HttpRequest, form: Form, *, check: bool = False, error: SchemadeskError | None = None
) -> HttpResponse:
    page = proposal_page(request, form, check=check, error=error)
    failed = page.problem or (page.told and (page.told.problem or page.told.syntax))
    status = 422 if error or (request.method == "POST" and failed) else 200
    return render(request, "proposals/propose.html", {"page": page}, status=status)


def _saved(request: HttpRequest, form: Form, actor: Actor) -> HttpResponse:
    number = _kept(form, actor)
    messages.success(request, gettext("Saved as your draft; nobody else sees it."))
    return redirect("ui:draft", number)


def _autosaved(form: Form, actor: Actor) -> JsonResponse:
    """What the editor's script keeps while somebody writes; `stop` says that going on would overwrite another text."""
    try:
        number = _kept(form, actor)
    except SchemadeskError as error:
        said = gettext("Not saved: %(reason)s") % {"reason": error.message}
        stop = isinstance(error, DraftChanged)
        return JsonResponse({"said": said, "stop": stop}, status=409 if stop else 422)
    kept = selectors.get_draft(number, user_id=actor.user_id or 0)
    at = localtime(kept.changed_at)
    return JsonResponse(
        {
            "draft": number,
            "seen": kept.state,
            "url": reverse("ui:draft", args=[number]),
            "said": gettext("Saved %(time)s") % {"time": f"{at:%H:%M}"},
        }
    )


def _kept(form: Form, actor: Actor) -> int:
    """The draft's number. One whose subject or target was changed while it was written asks for nothing again."""
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
        seen=form.seen,
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
