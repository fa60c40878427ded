"""Safe reading of requests, for every dialect: the raw path, JSON bodies within memory limits, numbers.

Subjects can contain any character, including `/` (`a%2Fversions%2F1` is one subject). Django decodes the path before it
routes, so the boundary between segments is lost; a middleware restores the undecoded path, and the converter decodes
one segment at a time.

Eight megabytes of `[{},{},…` become hundreds as Python objects, in each thread that reads one. So a body's values are
counted before it is parsed, and large bodies are read one at a time. JSON has one kind of number, and Python's parser
makes three of it: `1.5` and `1e2` are floats, `1e999` is infinity.
"""

from __future__ import annotations

import io
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final
from urllib.parse import quote, unquote

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.urls import register_converter
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from registry.errors import InvalidInput
from registry.formats.base import UNSTORABLE

_SAFE = "/:@!$&'()*+,;=-._~"
#: bytes; smaller bodies are read without waiting
LARGE: Final = 256 * 1024
MAX_VALUES: Final = 100_000
#: unrolled, so that a string is skipped in one step and not character by character
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
#: an unpaired surrogate; found in one step, not character by character
SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BEGIN_VALUES: Final = (b"{", b"[", b",")
_MAX_DIGITS: Final = 40
_gate = threading.Lock()


def raw_path(environ: dict[str, object]) -> str:
    """Return the path as in the request line, without the query; re-quoted if no server provides it."""
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if isinstance(target, str) and target:
        path = target.split("?", 1)[0].split("#", 1)[0]
        if "://" in path:  # absolute form, as sent to a proxy
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        return path or "/"
    decoded = str(environ.get("PATH_INFO", "/")).encode("latin-1", "replace").decode("utf-8", "replace")
    return quote(decoded, safe=_SAFE)


class RawPathMiddleware:
    """Makes Django's resolver use the undecoded path; refuses one that isn't UTF-8 once decoded."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer 400 for a path that isn't encoded UTF-8, otherwise continue with the raw path."""
        path = raw_path(request.META)
        try:
            unquote(path, errors="strict")
        except UnicodeDecodeError:
            return HttpResponseBadRequest(b'{"error_code":400,"message":"The path is not UTF-8."}', "application/json")
        request.path_info = request.path = path
        return self.get_response(request)


class SegmentConverter:
    """One path segment, percent-decoded; it may contain `/` and any other character."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """Decode one segment."""
        return unquote(value, errors="strict")

    def to_url(self, value: str) -> str:
        """Encode one segment. Django quotes the result again, so `dashboard.components.links` makes links."""
        return quote(value, safe="")


register_converter(SegmentConverter, "segment")


def refuse_unusable_text(text: str, where: str) -> None:
    """Raise InvalidInput for a text that no database can store: with a NUL or an unpaired surrogate."""
    if unusable := UNSTORABLE.search(text):
        raise InvalidInput(f"The {where} contains U+{ord(unusable.group()):04X}, which is not a character.")


@contextmanager
def room_for(length: int) -> Iterator[None]:
    """Wait until no other large body is being read, if this one of that many bytes is large."""
    if length <= LARGE:
        yield
        return
    with _gate:
        yield


def length_of(context: Mapping[str, Any] | None) -> int:
    """Return the Content-Length in a parser's context, 0 if it is missing."""
    request = (context or {}).get("request")
    text = str(request.META.get("CONTENT_LENGTH") or "0") if request is not None else "0"
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def refuse_many_values(data: bytes) -> None:
    """Raise InvalidInput for JSON that would have more than MAX_VALUES values."""
    if len(data) <= LARGE or _values(data) <= MAX_VALUES:
        return
    if _values(_STRING.sub(b"", data)) > MAX_VALUES:
        raise InvalidInput(f"The body has more than {MAX_VALUES:,} values; send them in several calls.")


def _values(data: bytes) -> int:
    """Return an upper bound of the number of values in JSON without strings."""
    return sum(data.count(sign) for sign in _BEGIN_VALUES)


class BoundedJsonParser(JSONParser):  # type: ignore[misc]  # of a library that isn't typed here
    """A parser of JSON for the product's own API, within the same limits. Raises ParseError, InvalidInput."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the parsed body; errors have their place."""
        with room_for(length_of(parser_context)):
            data = stream.read()
            refuse_many_values(data)
            try:
                return super().parse(io.BytesIO(data), media_type, parser_context)
            except RecursionError as error:
                raise ParseError("The body's JSON is nested too deeply.") from error
            except ParseError as error:
                cause = error.__context__
                if isinstance(cause, ValueError) and not isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
                    reason = unreadable_number(cause)
                    raise ParseError(f"The body has a number that can't be read: {reason}.") from error
                raise


def number_words(value: Any) -> str:
    """Describe a JSON number or boolean for an error: its value, or why it isn't a valid integer."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "a number that is too large to be read"
        return f"{value!r}, which isn't written as a whole number"
    text = str(value)
    return text if len(text) <= _MAX_DIGITS else f"a number of {len(text.lstrip('-')):,} digits"


def unreadable_number(error: ValueError) -> str:
    """Return why a JSON number can't be read; the error is Python's, the framework's or `refuse_constant`'s."""
    if "integer string conversion" in str(error):
        return "a whole number has too many digits"
    if "not JSON compliant" in str(error):
        return f"{str(error).rpartition(': ')[2]} is not JSON".replace("'", "")
    return str(error)


def refuse_constant(name: str) -> Any:
    """Raise ValueError for NaN and Infinity, which Python's parser accepts although JSON doesn't have them."""
    raise ValueError(f"{name} is not JSON")
