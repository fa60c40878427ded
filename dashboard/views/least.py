"""Setting the least version of a subject that producers may still write, on its page."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.links import subject_url
from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from registry.access.roles import require
from registry.drift.services.least import ACTION, clear_least_version, set_least_version
from registry.errors import InvalidInput, NotFound, SubjectNotFound
from registry.subjects.names import parse_subject

ANCHOR: Final = "#least"


@require_POST
def least_version(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Set the least version, or (`clear`) let any be written again."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, ACTION, registry=registry, subject=name.qualified)
    try:
        if given_text(request.POST, "clear"):
            clear_least_version(registry=registry, subject=name, by=actor)
            messages.success(request, gettext("Any version may be written again."))
        else:
            number = whole_number(request.POST.get("version", ""), digits=9) or 0
            reason = given_text(request.POST, "reason")
            info = set_least_version(registry=registry, subject=name, version=number, reason=reason, by=actor)
            said = gettext("Scans report who writes an older version than %(version)s from now on.")
            messages.success(request, said % {"version": info.version})
    except SubjectNotFound:
        raise
    except (InvalidInput, NotFound) as error:
        messages.error(request, error.message)
    return redirect(subject_url(registry, name.qualified, tab="settings") + ANCHOR)
