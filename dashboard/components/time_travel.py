"""Pages as of a moment in the past: `?at=2026-10-01T12:00Z`.

A view marked with `travels` reads inside `as_of`, with an actor who may only read. Every link in a template goes
through `link`, which adds the moment if the target has the mark. The middleware refuses the moment for a page without
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, wraps
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from dashboard.components.frame import page_actor
from dashboard.components.widgets import Travel
from registry.audit.time_travel import as_of, moment, moment_of
from registry.errors import InvalidInput

PARAMETER: Final = "at"
#: paging parameters: another moment has other pages
_PLACES: Final = frozenset({PARAMETER, "after", "before", "cursor", "offset"})
_MOST_HIDDEN: Final = 20
_LONGEST: Final = 1_300
View = Callable[..., HttpResponse]


def travels(view: View) -> View:
    """Mark a view that can show the past, and run it as of the moment in its URL."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        request.travel = travel = _travel(request)  # type: ignore[attr-defined]
        if travel.at is None:
            return view(request, *args, **named)
        past = replace(page_actor(request), past=gettext("You are viewing a past state. Go back to now."))
        request.page_actor = past  # type: ignore[attr-defined]
        with as_of(travel.at):
            return view(request, *args, **named)

    shown.travels = True  # type: ignore[attr-defined]
    return shown


def refuse_to_travel(request: HttpRequest, view: View) -> None:
    """Raise InvalidInput if the URL has a moment but the page can't show the past."""
    if request.method not in ("GET", "HEAD") or PARAMETER not in request.GET or getattr(view, "travels", False):
        return
    raise InvalidInput(gettext("This page has no history. Remove “at” from the address to see its current state."))


def with_moment(address: str) -> str:
    """Return the URL of a link, with this page's moment if the target can show the past."""
    at = moment()
    if at is None or not address:
        return address
    whole, hash_sign, fragment = address.partition("#")
    path, _, query = whole.partition("?")
    if not whole or not _has_past(path) or f"&{PARAMETER}=" in f"&{query}":
        return address
    return f"{path}?{query}{'&' if query else ''}{urlencode({PARAMETER: _text(at)})}{hash_sign}{fragment}"


def moment_field(address: str) -> SafeString:
    """Return a hidden field with this page's moment for a form that sends GET: the browser drops the URL's query."""
    at = moment()
    if at is None or not _has_past(address.partition("#")[0].partition("?")[0]):
        return SafeString("")
    return format_html('<input type="hidden" name="{}" value="{}">', PARAMETER, _text(at))


def _has_past(path: str) -> bool:
    """Return whether the page at a path can show the past; "" is this page."""
    return not path or _leads_to_past(path, settings.ROOT_URLCONF)


@lru_cache(maxsize=1_000)
def _leads_to_past(path: str, urlconf: str) -> bool:
    try:
        return getattr(resolve(path, urlconf).func, "travels", False)
    except Resolver404:
        return False


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def after_it(moment: datetime) -> str:
    """Return a moment to see the result of a change: at least a second later, because its transaction may go on."""
    return f"{(moment.astimezone(UTC) + timedelta(seconds=2)).replace(microsecond=0):%Y-%m-%dT%H:%M:%SZ}"


def url_as_of(url: str, moment: datetime) -> str:
    """Return the URL of the page after a change at that moment; "" if it can't show the past."""
    path, _, query = url.partition("?")
    if not (path and _has_past(path)):
        return ""
    return f"{path}?{query}{'&' if query else ''}{urlencode({PARAMETER: after_it(moment)})}"


def _travel(request: HttpRequest) -> Travel:
    text = request.GET.get(PARAMETER, "")
    at = moment_of(text) if text else None
    hidden = [(name, value) for name in request.GET if name not in _PLACES for value in request.GET.getlist(name)]
    hidden_pairs = tuple((name[:_LONGEST], value[:_LONGEST]) for name, value in hidden[:_MOST_HIDDEN])
    query = urlencode(hidden, errors="replace")
    return Travel(
        at=at,
        moment=f"{at:%Y-%m-%d %H:%M:%S} UTC".replace(":00 UTC", " UTC") if at else "",
        value=f"{at:%Y-%m-%dT%H:%M}" if at else "",
        now_url=f"?{query}" if query else "?",
        hidden=hidden_pairs,
    )
