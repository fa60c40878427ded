"""What every request passes: the Host check, and errors as pages."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse

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
