"""Answers while a part is away that nothing can be shown without: none of them asks the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import ConnectionError as ValkeyError
from redis.exceptions import TimeoutError as ValkeyTimeout
from rest_framework.response import Response

from dashboard.presenters.away import AwayPage
from registry.api.confluent.errors import handle as confluent
from registry.api.google.errors import handle as google
from registry.api.outage import RETRY_SECONDS, DatabaseAway, away_of
from registry.api.product.errors import handle as product
from registry.api.spring.errors import handle as spring

PAGES = "/ui/"
VALKEY_AWAY: Final = (BrokerError, ValkeyError, ValkeyTimeout)
Handler = Callable[[Exception, dict[str, Any]], Response | None]
#: the beginning of a path → who answers errors there; Confluent's dialect has what is left
DIALECTS: Final[tuple[tuple[str, Handler], ...]] = (("/v1/projects/", google), ("/api/v1/", product), ("/", confluent))


def away_answer(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """What to answer where an error comes of the database or Valkey being away; None for any other.

    A page below /ui/, a note for a part of one (static/app.js shows it), elsewhere what the dialect says.
    """
    away = away_of(error)
    if away is None and not isinstance(error, VALKEY_AWAY):
        return None
    if request.path.startswith(PAGES):
        return _page(request, away)
    return _told(request, away) if away else None  # no API needs Valkey to answer


def _page(request: HttpRequest, away: DatabaseAway | None) -> HttpResponse:
    is_get = request.method in ("GET", "HEAD")
    page = AwayPage(title=_title(away), cure=_cure(away), again_url=request.get_full_path() if is_get else "")
    htmx = getattr(request, "htmx", None)
    name = "errors/away.html" if htmx and not htmx.boosted else "503.html"
    # Not by `render`: what Django adds to a context asks for the user and the messages, which are in the database.
    response = HttpResponse(render_to_string(name, {"page": page, "request": request}), status=503)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _title(away: DatabaseAway | None) -> str:
    return gettext("The database is away") if away else gettext("Valkey is away, which hands on work")


def _cure(away: DatabaseAway | None) -> str:
    again = gettext("Try again in %(n)s s.") % {"n": RETRY_SECONDS}
    if away and away.is_unknown:
        said = gettext(
            "It went away while the change was being committed, so it may have been made or not. Look first."
        )
        return f"{said} {again}"
    return f"{again} {gettext('What was saved is kept.')}"


def _told(request: HttpRequest, away: DatabaseAway) -> HttpResponse:
    dialects = ((f"/{settings.SPRING_PATH}", spring), *DIALECTS)
    handle = next(handle for start, handle in dialects if request.path.startswith(start))
    told = handle(away, {"request": request})
    assert told is not None
    return JsonResponse(told.data, status=told.status_code, headers={"Retry-After": told["Retry-After"]})
