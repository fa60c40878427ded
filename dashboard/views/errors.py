"""Errors as pages: what is wrong, where, and the cure. Programs get their dialect's JSON instead."""

from __future__ import annotations

import sys
from dataclasses import replace
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import is_valid_path
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.pages.asking import cure_of
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.nearest import nearest
from dashboard.pages.removed import removed_page
from dashboard.presenters.frame import Frame, Link, MessagePage, Problem
from dashboard.texts import later
from dashboard.views.away import PAGES, away_answer
from registry.access.roles import may_somewhere
from registry.api.product.errors import status_of
from registry.errors import InvalidSchema, NotFound, NotSignedIn, SchemadeskError

TITLES = {
    400: later("Bad request"),
    403: later("Not allowed"),
    404: later("Not found"),
    409: later("Not possible as things are"),
    422: later("That can't be used"),
    503: later("A part doesn't answer"),
}


def error_page(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """The page for an error of the product; None for any other, which Django logs and answers with its 500.

    Somebody without a session is sent to sign in and comes back.
    """
    if (away := away_answer(request, error)) is not None:
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
    # whoever may read nothing is refused at home too
    home = actor.user_id is None or may_somewhere(actor, "schema.read")
    page = MessagePage(frame=frame, status=status, problem=problem, nearest=links, home=home)
    return render(request, "errors/message.html", {"page": page}, status=status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """A page below /ui/, JSON elsewhere; a slash too many or too few at the end of a page's address leads to the page."""
    other = request.path[:-1] if request.path.endswith("/") else f"{request.path}/"
    if request.method in ("GET", "HEAD") and other.startswith(PAGES) and is_valid_path(other):
        query = request.META.get("QUERY_STRING", "")
        return HttpResponseRedirect(f"{other}?{query}" if query else other)
    if request.path.startswith(PAGES):
        return _message(request, 404, Problem(what=gettext("There is no page at this address."), where=request.path))
    return JsonResponse({"error_code": 404, "message": "HTTP 404 Not Found"}, status=404)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """A page below /ui/, JSON elsewhere."""
    if request.path.startswith(PAGES):
        return _message(request, 400, Problem(what=gettext("The request can't be understood.")))
    return JsonResponse({"error_code": 400, "message": "HTTP 400 Bad Request"}, status=400)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """A page below /ui/, JSON elsewhere."""
    if request.path.startswith(PAGES):
        return _message(
            request,
            403,
            Problem(what=gettext("This isn't allowed."), cure=gettext("Load the page again and try once more.")),
        )
    return JsonResponse({"error_code": 403, "message": "HTTP 403 Forbidden"}, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """What is left when everything else failed: it asks neither the database nor a selector.

    Django calls it where it caught the error, so that this is known: the session or a page of an error asked a
    database that is away.
    """
    if (away := away_answer(request, sys.exc_info()[1])) is not None:
        return away
    if not request.path.startswith(PAGES):
        return JsonResponse({"error_code": 500, "message": "Internal Server Error"}, status=500)
    problem = Problem(
        what=gettext("An unforeseen error. It is in the server's log."),
        cure=gettext("Try again; if it stays, tell who runs this."),
    )
    page = MessagePage(
        frame=Frame(title=gettext("Something went wrong"), now=timezone.now()), status=500, problem=problem
    )
    return render(request, "errors/message.html", {"page": page}, status=500)
