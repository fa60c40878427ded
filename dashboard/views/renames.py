"""Deciding of fields that look renamed, from any page that suspects it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.links import subject_url
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput
from registry.promotions.services.renaming import ACTION, decide_rename, undecide_rename
from registry.subjects.names import parse_subject


@require_POST
def decide(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """`decision` is yes, no, or back; the page that asked is shown again."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, ACTION, registry=registry, subject=name.qualified)
    decision = given_text(request.POST, "decision")
    pair = {"from_path": given_text(request.POST, "from"), "to_path": given_text(request.POST, "to")}
    try:
        if decision == "back":
            undecide_rename(registry=registry, subject=name, by=actor, **pair)
            messages.success(request, gettext("The decision is taken back."))
        elif decision in ("yes", "no"):
            why = given_text(request.POST, "why")
            decide_rename(registry=registry, subject=name, by=actor, is_rename=decision == "yes", reason=why, **pair)
            messages.success(request, gettext("The decision is kept, and holds wherever this pair is met."))
        else:
            raise InvalidInput(gettext("Say whether it is a rename."))
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
    return redirect(_back(request) or subject_url(registry, name.qualified))


def _back(request: HttpRequest) -> str:
    """The page that the form names, if it is one of this site."""
    back = request.POST.get("next", "")
    return f"{back}#renames-title" if back and url_has_allowed_host_and_scheme(back, allowed_hosts=None) else ""
