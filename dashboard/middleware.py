"""What requests pass on their way to a view, and uploads in memory.

Pages pass all of `MIDDLEWARE`: packing, the Host check, the viewer's zone of time and language, errors as pages. An API's
request leaves it early, as `ApiMiddleware` says.
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
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from registry.errors import InvalidInput
from registry.subjects.import_export.export_file import MAX_SENT

GetResponse = Callable[[HttpRequest], HttpResponse]


class ApiMiddleware:
    """Answers what isn't below /ui/ without the middlewares that follow: programs have no session, form or language.

    Their responses have the same security headers as pages.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self._api = HostCheckMiddleware(_ViewHandler().answer)
        self._headers = _security_headers()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer an API's request, and go on with a page's."""
        if request.path.startswith("/ui/"):
            return self.get_response(request)
        response = self._api(request)
        for name, value in self._headers:
            response.headers.setdefault(name, value)
        return response


class _ViewHandler(BaseHandler):
    """Django's handler with no middleware: it finds the view, and turns its exceptions into responses."""

    _view_middleware: Sequence[Any] = ()
    _template_response_middleware: Sequence[Any] = ()
    _exception_middleware: Sequence[Any] = ()

    def __init__(self) -> None:
        super().__init__()
        self.answer: Any = convert_exception_to_response(self._get_response)  # type: ignore[attr-defined]


def _security_headers() -> list[tuple[str, str]]:
    """What the pages' middlewares say in every response. They always say the same, so they are asked once."""
    names = set(HttpResponse().headers)
    respond = CSPMiddleware(XFrameOptionsMiddleware(SecurityMiddleware(lambda request: HttpResponse())))
    return [(name, value) for name, value in respond(HttpRequest()).headers.items() if name not in names]


class PackedPagesMiddleware(GZipMiddleware):
    """Packs pages for browsers that take them so; a large schema's page is a tenth then. The APIs aren't packed.

    Nobody learns a secret of a page from its length (BREACH): Django lengthens each by some random bytes, and masks the
    forms' tokens anew in each.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Pack what is a page."""
        return super().process_response(request, response) if request.path.startswith("/ui/") else response


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


class ViewerLanguageMiddleware:
    """Shows pages in the language that the viewer's browser asks for, where there is a catalogue of it; else English.

    The APIs always answer in English, and without the headers that tell caches of a choice. The language holds for the
    one request: the thread's next one may be an API's.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Go on in the viewer's language."""
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

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: object, named: object
    ) -> HttpResponse | None:
        """The page that says so where a page is asked for as of a moment and can't be shown so."""
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
        """The page for an error of the product; None for any other, which Django answers with its 500."""
        from dashboard.errors.views import error_page

        return error_page(request, error)


#: addresses whose files may be larger than a schema, by their names
LARGER: Final = {"ui:registry_import": MAX_SENT}


class SmallFileHandler(FileUploadHandler):
    """Keeps as many bytes of a request's files together as a schema may have, or its address takes, and drops the rest.

    A file's `size` says how large it was: one that is larger than what was kept is refused by whoever asked for it.
    """

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        match = getattr(request, "resolver_match", None)
        self._left = LARGER.get(match.view_name if match else "", settings.SCHEMA_MAX_BYTES)
        self._buffer = BytesIO()

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """Begin with another file."""
        super().new_file(*args, **kwargs)
        self._buffer = BytesIO()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Keep what there is still room for."""
        data = raw_data[: self._left]
        self._left -= len(data)
        self._buffer.write(data)

    def file_complete(self, file_size: int) -> InMemoryUploadedFile:
        """The file with its true size."""
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
