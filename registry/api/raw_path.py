"""Routing on the raw request target.

Subjects carry any character, `/` included (`a%2Fversions%2F1` is one subject). Django decodes the
path before it routes, so the boundary between segments is lost; this middleware puts the undecoded
path back, and the converters below decode one segment at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, unquote

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

_SAFE = "/:@!$&'()*+,;=-._~"


def raw_path(environ: dict[str, object]) -> str:
    """The path as it stood in the request line, without the query; re-quoted where no server told it."""
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if isinstance(target, str) and target:
        path = target.split("?", 1)[0].split("#", 1)[0]
        if "://" in path:  # absolute form, as a proxy sends it
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        return path or "/"
    decoded = str(environ.get("PATH_INFO", "/")).encode("latin-1", "replace").decode("utf-8", "replace")
    return quote(decoded, safe=_SAFE)


class RawPathMiddleware:
    """Makes Django's resolver see the undecoded path; refuses one that isn't UTF-8 once decoded."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer 400 for a path that no UTF-8 text encodes to, otherwise go on with the raw path."""
        path = raw_path(request.META)
        try:
            unquote(path, errors="strict")
        except UnicodeDecodeError:
            return HttpResponseBadRequest(b'{"error_code":400,"message":"The path is not UTF-8."}', "application/json")
        request.path_info = request.path = path
        return self.get_response(request)


class SegmentConverter:
    """One path segment, percent-decoded; it may hold `/` and any other character."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """Decode one segment."""
        return unquote(value, errors="strict")

    def to_url(self, value: str) -> str:
        """Encode one segment. Django quotes the result once more, so links are made by `dashboard.components.links`."""
        return quote(value, safe="")
