"""Pages as they were at a moment: `?at=2026-10-01T12:00Z`.

A view marked with `travels` reads inside of `as_of`, by somebody who may do nothing but read, and its links to other
such pages carry the moment on. Of a page without the mark the middleware says that it can't be shown as of then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.html import escape
from django.utils.translation import gettext

from dashboard.components.frame import page_actor
from dashboard.components.widgets import Travel
from registry.audit.time_travel import as_of, moment_of
from registry.errors import InvalidInput

PARAMETER: Final = "at"
#: of a list's page: another time has other pages
_PLACES: Final = frozenset({PARAMETER, "after", "before", "cursor", "offset"})
_MOST_HIDDEN: Final = 20
_LONGEST: Final = 1_300
#: pages with the mark, as links name them
_TRAVELLING: Final = r"/ui/(?:audit|environments(?:/[^/\"?#]+)?|promotions(?:/\d+)?|ghosts|fields|registries/[^/\"?#]+/(?:policy|subjects|subjects/[^/\"?#]+/(?:compare|references|report|switch)?))"
_LINK: Final = re.compile(rf'(?<!data-now )\b(href|hx-get)="({_TRAVELLING})((?:\?[^"#]*)?)((?:#[^"]*)?)"')
_FORM: Final = re.compile(rf'<form\b(?=[^>]*\baction="{_TRAVELLING}[?"])(?![^>]*\bmethod="post")[^>]*>')

View = Callable[..., HttpResponse]


def travels(view: View) -> View:
    """Marks a view that shows things as they were, where its address says when."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        request.travel = travel = _travel(request)  # type: ignore[attr-defined]
        if travel.at is None:
            return view(request, *args, **named)
        past = replace(page_actor(request), past=gettext("You are viewing a past state. Go back to now."))
        request.page_actor = past  # type: ignore[attr-defined]
        with as_of(travel.at):
            return carried(view(request, *args, **named), request.GET[PARAMETER])

    shown.travels = True  # type: ignore[attr-defined]
    return shown


def refuse_to_travel(request: HttpRequest, view: View) -> None:
    """Raises InvalidInput where a page is asked for as of a moment and has no past to show."""
    if request.method not in ("GET", "HEAD") or PARAMETER not in request.GET or getattr(view, "travels", False):
        return
    raise InvalidInput(gettext("This page has no history. Remove “at” from the address to see its current state."))


def carried(response: HttpResponse, moment: str) -> HttpResponse:
    """The page with the moment in its links to pages that have a past, and in the forms that lead there."""
    if not response.get("Content-Type", "").startswith("text/html"):
        return response
    pair, value = escape(urlencode({PARAMETER: moment})), escape(moment)

    def link(match: re.Match[str]) -> str:
        attribute, path, query, fragment = match.groups()
        return f'{attribute}="{path}{query}{"&amp;" if query else "?"}{pair}{fragment}"'

    text = _LINK.sub(link, response.content.decode())
    hidden = f'<input type="hidden" name="{PARAMETER}" value="{value}">'
    response.content = _FORM.sub(lambda match: f"{match[0]}{hidden}", text).encode()
    return response


def after_it(moment: datetime) -> str:
    """The moment to ask for to see what a change has left: a second later at least, as its transaction may go on."""
    return f"{(moment.astimezone(UTC) + timedelta(seconds=2)).replace(microsecond=0):%Y-%m-%dT%H:%M:%SZ}"


def then_url(url: str, moment: datetime) -> str:
    """The same page as a change of that moment has left it; "" for a page that has no past."""
    path, _, query = url.partition("?")
    if not re.fullmatch(_TRAVELLING, path):
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
