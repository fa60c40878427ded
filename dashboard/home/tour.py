"""The tour through what is there: each step finds its page by the reader's own rights, and is passed over without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.frame import page_actor
from dashboard.components.links import subject_url
from dashboard.components.tour import PARAMETER, STEPS
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor
from registry.drift import selectors as drift
from registry.promotions import selectors as promotions
from registry.promotions.models import PromotionRequest
from registry.streams.selectors import list_queries
from registry.subjects.selectors import newest_two_versions

COOKIE: Final = "tour"
ENDED: Final = "ended"
YEAR: Final = 365 * 24 * 3600


def _release(actor: Actor) -> str:
    """Return the page of the newest request in review, else of the newest request."""
    for state in (PromotionRequest.IN_REVIEW, ""):
        if rows := promotions.list_requests(state=state, by=actor, limit=1):
            return reverse("ui:promotion", args=[rows[0].id])
    return ""


def _finding(actor: Actor) -> str:
    rows = drift.list_findings(kind="kafka", by=actor, limit=1) or drift.list_findings(by=actor, limit=1)
    return reverse("ui:finding", args=[rows[0].id]) if rows else ""


def _state(actor: Actor) -> str:
    """Return the page of the worst finding about state, else of a query."""
    if rows := drift.list_findings(kind="state_store", by=actor, limit=1):
        return reverse("ui:finding", args=[rows[0].id])
    queries = list_queries(by=actor, limit=1)
    return reverse("ui:query", args=[queries[0].id]) if queries else ""


def _compare(actor: Actor) -> str:
    found = newest_two_versions(actor)
    if found is None:
        return ""
    registry, name, older, newer = found
    return subject_url(registry, name.qualified, "compare", from_=older, to=newer)


def _map(actor: Actor) -> str:
    """Return the map, if there is a source or a query to draw."""
    drawn = drift.list_sources(by=actor) or list_queries(by=actor, limit=1)
    return reverse("ui:map") if drawn else ""


_PAGES: Final[Mapping[str, Callable[[Actor], str]]] = {
    "release": _release,
    "finding": _finding,
    "state": _state,
    "compare": _compare,
    "map": _map,
}


def is_ended(request: HttpRequest) -> bool:
    """Return whether the reader has ended or declined the tour in this browser."""
    return request.COOKIES.get(COOKIE) == ENDED


@require_safe
def tour(request: HttpRequest, number: int) -> HttpResponse:
    """Open the page of a step, or of the first later one that has a page; without one, end on Home."""
    actor = page_actor(request)
    require_extent(actor, "schema.read")
    for position, step in enumerate(STEPS, 1):
        url = _PAGES[step.key](actor) if position >= number else ""
        if url:
            return redirect(f"{url}{'&' if '?' in url else '?'}{urlencode({PARAMETER: position})}")
    messages.info(
        request, gettext("There is nothing more to show yet. The tour needs a request, a scan or two versions.")
    )
    return redirect("ui:home")


@require_POST
def tour_end(request: HttpRequest) -> HttpResponse:
    """End the tour, or decline it; a link at the foot of every page begins it again."""
    response = redirect("ui:home")
    response.set_cookie(COOKIE, ENDED, max_age=YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    return response
