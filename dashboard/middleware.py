"""What every request passes: the Host check, the viewer's zone of time, and errors as pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from zoneinfo import ZoneInfo

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

GetResponse = Callable[[HttpRequest], HttpResponse]


class HostCheckMiddleware:
    """Answers 400 for a Host header that isn't ours, on every address and before anything is looked up."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Check, then go on."""
        try:
            request.get_host()
        except DisallowedHost:
            message = "This server doesn't answer to that Host header; add it to SCHEMADESK_HOSTS."
            return JsonResponse({"error_code": 400, "message": message}, status=400)
        return self.get_response(request)


class ViewerZoneMiddleware:
    """Shows the times of pages in the zone that the viewer's browser has told by a cookie (see static/app.js).

    Without JavaScript, or where the cookie names no zone, they are in UTC; the APIs always are.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Go on in the viewer's zone."""
        if not request.path.startswith("/ui/"):
            return self.get_response(request)
        with timezone.override(zone_named(request.COOKIES.get("zone", ""))):
            return self.get_response(request)


@lru_cache(maxsize=64)
def zone_named(name: str) -> ZoneInfo:
    """The zone of that name; UTC where there is none, or the machine doesn't know it."""
    try:
        return ZoneInfo(name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", name) else "UTC")
    except (OSError, ValueError, LookupError):  # a folder of zones, a file that is none, a name of none
        return ZoneInfo("UTC")


class ErrorPageMiddleware:
    """Turns a domain error that a page raised into a page that says what is wrong and what to do."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Go on."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The page for an error of the product; None for any other, which Django answers with its 500."""
        from dashboard.views.errors import error_page

        return error_page(request, error)
