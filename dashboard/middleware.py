"""The middlewares, and uploads in memory.

Pages pass through all of `MIDDLEWARE`: compression, the Host check, the viewer's time zone and language, error pages.
API requests skip most of it by `ApiMiddleware`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any, Final
from zoneinfo import ZoneInfo

from csp.middleware import CSPMiddleware
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.files.uploadedfile import InMemoryUploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.core.handlers.base import BaseHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.gzip import GZipMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch, URLResolver, get_resolver
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from registry.errors import InvalidInput
from registry.subjects.import_export.export_file import MAX_SENT

LONGEST_KNOWN: Final = 200  # characters of a path
GetResponse = Callable[[HttpRequest], HttpResponse]


class ApiMiddleware:
    """Answers requests outside /ui/ without the following middlewares: programs have no session, form or language.

    Their responses have the same security headers as pages.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self._api = HostCheckMiddleware(_ViewHandler().answer)
        self._headers = {
            request().is_secure(): _security_headers(request()) for request in (HttpRequest, _HttpsRequest)
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer an API request, and pass on a page's."""
        if request.path.startswith("/ui/"):
            return self.get_response(request)
        response = self._api(request)
        for name, value in self._headers[request.is_secure()]:
            response.headers.setdefault(name, value)
        return response


class _ViewHandler(BaseHandler):
    """Django's handler without middlewares: it resolves the view, and converts its exceptions to responses."""

    _view_middleware: Sequence[Any] = ()
    _template_response_middleware: Sequence[Any] = ()
    _exception_middleware: Sequence[Any] = ()

    def __init__(self) -> None:
        super().__init__()
        self.answer: Any = convert_exception_to_response(self._get_response)  # type: ignore[attr-defined]

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        """Resolve the path; the latest short ones are known."""
        resolve = _resolved if len(request.path_info) <= LONGEST_KNOWN else _resolved.__wrapped__
        request.resolver_match = resolve(get_resolver(), request.path_info)
        return request.resolver_match


@lru_cache(maxsize=4_096)
def _resolved(resolver: URLResolver, path: str) -> ResolverMatch:
    return resolver.resolve(path)


class _HttpsRequest(HttpRequest):
    def _get_scheme(self) -> str:
        return "https"


def _security_headers(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the headers that the pages' security middlewares add; only the scheme makes a difference."""
    names = set(HttpResponse().headers)
    respond = CSPMiddleware(XFrameOptionsMiddleware(SecurityMiddleware(lambda request: HttpResponse())))
    return [(name, value) for name, value in respond(request).headers.items() if name not in names]


class PackedPagesMiddleware(GZipMiddleware):
    """Compresses pages, which makes a large schema's page ten times smaller; APIs aren't compressed.

    BREACH isn't possible: Django adds random bytes to each response, and masks form tokens differently in each.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress the response if it is a page."""
        return super().process_response(request, response) if request.path.startswith("/ui/") else response


class PrivatePagesMiddleware:
    """Lets no browser and no proxy keep a page: another person at the same computer must not see it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class HostCheckMiddleware:
    """Answers 400 for an unknown Host header, on every URL and before any lookup."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Check the header, then pass on the request."""
        try:
            request.get_host()
        except DisallowedHost:
            message = "This server doesn't answer to that Host header; add it to SCHEMADESK_HOSTS."
            return JsonResponse({"error_code": 400, "message": message}, status=400)
        return self.get_response(request)


class ViewerZoneMiddleware:
    """Shows times on pages in the time zone from the browser's cookie (see static/app.js).

    Without JavaScript or with an unknown zone, they are in UTC; the APIs always use UTC.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request in the viewer's time zone."""
        if not request.path.startswith("/ui/"):
            return self.get_response(request)
        with timezone.override(zone_named(request.COOKIES.get("zone", ""))):
            return self.get_response(request)


class ViewerLanguageMiddleware:
    """Shows pages in a language that the browser accepts, if it has a catalogue; else in English.

    The APIs always answer in English, and without headers that make caches vary. The language is reset after each
    request, because the thread's next one may be an API's.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request in the viewer's language."""
        if not request.path.startswith("/ui/"):
            return self.get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language):
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language",))
        return response


@lru_cache(maxsize=64)
def zone_named(name: str) -> ZoneInfo:
    """Return the time zone with that name; UTC if it is unknown."""
    try:
        return ZoneInfo(name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}", name) else "UTC")
    except (OSError, ValueError, LookupError):  # a folder of zones, an invalid file, an unknown name
        return ZoneInfo("UTC")


class ErrorPageMiddleware:
    """Converts a page's domain error to a page that says what is wrong and what to do."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on the request."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: object, named: object
    ) -> HttpResponse | None:
        """Return an error page if the URL has a moment but the page can't show the past."""
        from dashboard.components.time_travel import refuse_to_travel
        from dashboard.errors.views import error_page

        if not request.path.startswith("/ui/"):
            return None
        try:
            refuse_to_travel(request, view)
        except InvalidInput as error:
            return error_page(request, error)
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the page for an error of the product; None for any other, which Django answers with 500."""
        from dashboard.errors.views import error_page

        return error_page(request, error)


#: URL names that accept larger files than a schema → maximum bytes
LARGER: Final = {"ui:registry_import": MAX_SENT}


class SmallFileHandler(FileUploadHandler):
    """Keeps at most as many bytes of a request's files as a schema or its URL allows, and drops the rest.

    A file's `size` is its original size, so that the view can refuse a truncated one.
    """

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        match = getattr(request, "resolver_match", None)
        self._left = LARGER.get(match.view_name if match else "", settings.SCHEMA_MAX_BYTES)
        self._buffer = BytesIO()

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Start another file."""
        super().new_file(*args, **kwargs)
        self._buffer = BytesIO()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Keep the bytes within the limit."""
        data = raw_data[: self._left]
        self._left -= len(data)
        self._buffer.write(data)

    def file_complete(self, file_size: int) -> InMemoryUploadedFile:
        """Return the file with its original size."""
        self._buffer.seek(0)
        return InMemoryUploadedFile(
            file=self._buffer,
            field_name=self.field_name,
            name=self.file_name,
            content_type=self.content_type,
            size=file_size,
            charset=self.charset,
            content_type_extra=self.content_type_extra,
        )
