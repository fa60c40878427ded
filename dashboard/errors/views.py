"""Errors as pages: what is wrong, where, and the cure. Programs get the JSON of their API instead.

While the database or Valkey is away, the responses don't use it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import is_valid_path
from django.utils import timezone
from django.utils.translation import gettext
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import ConnectionError as ValkeyError
from redis.exceptions import TimeoutError as ValkeyTimeout

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import listing
from dashboard.components.widgets import Frame, Link, MessagePage, Problem
from dashboard.errors.not_found import nearest, removed_page
from dashboard.request_ids import request_id
from registry.access.roles import ACTIONS, ADMIN, ROLES, Actor, may_somewhere
from registry.access.selectors import admin_names
from registry.api.confluent.http import handle as confluent
from registry.api.google.base import handle as google
from registry.api.outage import RETRY_SECONDS, DatabaseAway, WriteRefused, unavailable_error
from registry.api.product.base import handle as product
from registry.api.product.base import status_of
from registry.api.spring.errors import handle as spring
from registry.errors import InvalidSchema, NotAllowed, NotFound, NotSignedIn, SchemadeskError


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayPage:
    """A page rendered without the database. `again_url` is empty if the request changed something."""

    title: str
    cure: str
    again_url: str = ""
    status: int = 503


PAGES = "/ui/"
#: number of admins to name to somebody who lacks a role
NAMED_ADMINS: Final = 3
VALKEY_AWAY: Final = (BrokerError, ValkeyError, ValkeyTimeout)
Handler = Callable[[Exception, dict[str, Any]], Any]
#: path prefix → handler of its errors; Confluent's dialect has the rest
DIALECTS: Final[tuple[tuple[str, Handler], ...]] = (("/v1/projects/", google), ("/api/v1/", product), ("/", confluent))


def outage_response(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """Return the response to an error caused by an outage of the database or Valkey; None for any other error.

    Below /ui/ it is a page, or a note for a part of a page (shown by static/app.js); elsewhere it is the dialect's
    error.
    """
    away = unavailable_error(error)
    if away is None and not isinstance(error, VALKEY_AWAY):
        return None
    if request.path.startswith(PAGES):
        return _page(request, away)
    return _outage_page(request, away) if away else None  # no API requires Valkey


def _page(request: HttpRequest, away: DatabaseAway | None) -> HttpResponse:
    is_get = request.method in ("GET", "HEAD")
    page = AwayPage(title=_title(away), cure=_cure(away), again_url=request.get_full_path() if is_get else "")
    htmx = getattr(request, "htmx", None)
    name = "errors/away.html" if htmx and not htmx.boosted else "503.html"
    # Not `render`: Django's context processors read the user and the messages from the database.
    response = HttpResponse(render_to_string(name, {"page": page, "request": request}), status=503)
    response["Retry-After"] = str(away.seconds if away else RETRY_SECONDS)
    return response


def _title(away: DatabaseAway | None) -> str:
    if isinstance(away, WriteRefused):
        return gettext("The database can't save anything at the moment")
    return gettext("The database is unavailable") if away else gettext("Valkey, the task queue, is unavailable")


def _cure(away: DatabaseAway | None) -> str:
    again = gettext("Try again in %(n)s seconds.") % {"n": away.seconds if away else RETRY_SECONDS}
    if isinstance(away, WriteRefused):
        sentence = gettext("Nothing was changed. Its disk may be full, or it may be read-only: tell an operator.")
        return f"{sentence} {again}"
    if away and away.is_unknown:
        sentence = gettext(
            "The connection was lost while your change was being saved, so it may or may not be saved. Check"
            " before you try again."
        )
        return f"{sentence} {again}"
    return f"{again} {gettext('Changes saved before are kept.')}"


def _outage_page(request: HttpRequest, away: DatabaseAway) -> HttpResponse:
    dialects = ((f"/{settings.SPRING_PATH}", spring), *DIALECTS)
    handle = next(handle for start, handle in dialects if request.path.startswith(start))
    response = handle(away, {"request": request})
    return JsonResponse(response.data, status=response.status_code, headers={"Retry-After": response["Retry-After"]})


TITLES = {
    400: _("Bad request"),
    403: _("Not allowed"),
    404: _("Not found"),
    409: _("Not possible right now"),
    422: _("Invalid input"),
    503: _("A service is unavailable"),
}


def refusal_page(status: int, message: str) -> str:
    """Return the page for a request refused before any view, such as a body that is too large."""
    return render_to_string("503.html", {"page": AwayPage(title=str(TITLES[400]), cure=message, status=status)})


def error_page(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """Return the page for an error of the product; None for any other, which Django logs and answers with 500.

    Somebody without a session is redirected to sign in and returns afterwards.
    """
    if (away := outage_response(request, error)) is not None:
        return away
    status = status_of(error)
    if status is None or not isinstance(error, SchemadeskError) or not request.path.startswith(PAGES):
        return None
    if isinstance(error, NotSignedIn) and request.method == "GET":
        return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': request.get_full_path()})}")
    if isinstance(error, NotFound) and (removed := removed_page(request)) is not None:
        page = replace(removed, nearest=nearest(request, error))
        return render(request, "errors/removed.html", {"page": page}, status=410)
    where = (
        gettext("line %(line)s, column %(column)s") % {"line": error.line, "column": error.column}
        if isinstance(error, InvalidSchema) and error.line
        else ""
    )
    problem = Problem(what=error.message, where=where, cure=cure_of(error, page_actor(request)))
    return _message(request, 403 if status == 401 else status, problem, nearest(request, error))


def _message(request: HttpRequest, status: int, problem: Problem, links: tuple[Link, ...] = ()) -> HttpResponse:
    title = TITLES.get(status, gettext("Something went wrong"))
    frame, actor = make_frame(request, title=title), page_actor(request)
    # a person without permission to read anything would be refused on the home page too
    home = actor.user_id is None or may_somewhere(actor, "schema.read")
    page = MessagePage(frame=frame, status=status, problem=problem, nearest=links, home=home)
    return render(request, "errors/message.html", {"page": page}, status=status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Show a page below /ui/, JSON elsewhere; redirect a page's URL with a missing or extra trailing slash."""
    other = request.path[:-1] if request.path.endswith("/") else f"{request.path}/"
    if request.method in ("GET", "HEAD") and other.startswith(PAGES) and is_valid_path(other):
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(f"{other}?{query}" if query else other)
    if request.path.startswith(PAGES):
        return _message(request, 404, Problem(what=gettext("There is no page at this address."), where=request.path))
    return JsonResponse({"error_code": 404, "message": "HTTP 404 Not Found"}, status=404)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Show a page below /ui/, JSON elsewhere."""
    if request.path.startswith(PAGES):
        return _message(request, 400, Problem(what=gettext("The server couldn't read this request.")))
    return JsonResponse({"error_code": 400, "message": "HTTP 400 Bad Request"}, status=400)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Show a page below /ui/, JSON elsewhere."""
    if request.path.startswith(PAGES):
        return _message(
            request,
            403,
            Problem(
                what=gettext("You don't have permission to do this."), cure=gettext("Reload the page and try again.")
            ),
        )
    return JsonResponse({"error_code": 403, "message": "HTTP 403 Forbidden"}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer any other error, without the database and selectors.

    Django calls it while it handles the exception, so that an outage can be detected: the session or an error page may
    have used the database.
    """
    if (away := outage_response(request, sys.exc_info()[1])) is not None:
        return away
    if not request.path.startswith(PAGES):
        return JsonResponse({"error_code": 500, "message": "Internal Server Error"}, status=500)
    problem = Problem(
        what=gettext("An unexpected error occurred. The details are in the server's log."),
        cure=gettext("Try again. If it keeps happening, contact the operator of this server."),
    )
    page = MessagePage(
        frame=Frame(title=gettext("Something went wrong"), now=timezone.now()),
        status=500,
        problem=problem,
        request_id=request_id(),
    )
    return render(request, "errors/message.html", {"page": page}, status=500)


def cure_of(error: SchemadeskError, actor: Actor) -> str:
    """Return the cure for a refusal because of a missing role; "" for any other error.

    Admins are named only to people who already have a role.
    """
    action = error.details.get("action")
    if not isinstance(error, NotAllowed) or actor.user_id is None or actor.past or action not in ACTIONS:
        return ""
    if not may_somewhere(actor, "schema.read"):
        return gettext(
            "Your account has no role yet, so you can’t open any page. Ask an admin for a role, then reload this page."
        )
    roles = [role for role in ROLES if role in ACTIONS[action] and role != ADMIN] or [ADMIN]
    values = {"names": listing(name[:40] for name in admin_names(NAMED_ADMINS)), "roles": listing(roles)}
    if not values["names"]:
        return gettext("Ask an admin for one of these roles: %(roles)s.") % values
    return gettext("Ask an admin (%(names)s) for one of these roles: %(roles)s.") % values
