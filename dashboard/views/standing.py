"""Deciding of a version on its subject's page: its standing, the adoption of a ghost, the way back to an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.links import subject_url
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_values import end_of_day
from dashboard.pages.sources_words import given_text
from dashboard.pages.subject_life import GOOD
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput
from registry.promotions.services import request_adoption, request_roll_back
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.services.standing import clear_standing, set_standing

ANCHOR: Final = "#standing"


@require_POST
def standing(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Set the standing of the version that the form names, or bring it back into good standing."""
    name, version, actor = parse_subject(subject), given_text(request.POST, "version"), page_actor(request)
    require(actor, "version.standing", registry=registry, subject=name.qualified)
    wanted = given_text(request.POST, "standing")
    try:
        if wanted == GOOD:
            clear_standing(registry=registry, subject=name, version=version, by=actor)
            messages.success(request, gettext("Version %(version)s is in good standing again.") % {"version": version})
        else:
            set_standing(
                registry=registry,
                subject=name,
                version=version,
                standing=wanted,
                message=given_text(request.POST, "message"),
                ends_at=end_of_day(request.POST.get("ends_at", "")),
                by=actor,
            )
            messages.success(
                request,
                gettext("Version %(version)s is %(wanted)s. Readers are told in a header.")
                % {"version": version, "wanted": wanted},
            )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
    back = given_text(request.POST, "next")
    if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        return redirect(back)
    return redirect(_back(registry, name, version))


@require_POST
def adopt(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Ask for the review of a version that came without a request."""
    said = gettext("Request %(number)s asks for the adoption of version %(version)s.")
    return _ask(request, registry, subject, request_adoption, said)


@require_POST
def roll_back(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Ask for an earlier version to be current again."""
    said = gettext("Request %(number)s asks to roll back to version %(version)s.")
    return _ask(request, registry, subject, request_roll_back, said)


def _ask(request: HttpRequest, registry: str, subject: str, service: Callable[..., int], said: str) -> HttpResponse:
    """Make a request about the version of the form, and lead to it; `said` names its number and the version."""
    name, version, actor = parse_subject(subject), given_text(request.POST, "version"), page_actor(request)
    require(actor, "promotion.request", registry=registry, subject=name.qualified)
    try:
        number = service(
            environment=registry,
            subject=name,
            version=version,
            reason=given_text(request.POST, "reason"),
            by=actor,
        )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
        return redirect(_back(registry, name, version))
    messages.success(request, said % {"number": number, "version": version})
    return redirect("ui:promotion", number)


def _back(registry: str, name: SubjectName, version: str) -> str:
    return subject_url(registry, name.qualified, version=version or None) + ANCHOR
