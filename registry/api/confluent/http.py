"""Requests and responses of this dialect: their media types, JSON bodies in, JSON and text out.

What the framework would determine per request is fixed here: the media types, and that bodies are JSON. Its rules for
choosing a media type apply, but their results are cached per header.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.request import HttpHeaders
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.mediatypes import media_type_matches

from registry.api.request_reading import (
    length_of,
    refuse_constant,
    refuse_many_values,
    refuse_unusable_text,
    room_for,
    unreadable_number,
)
from registry.errors import SchemaTooLarge

#: escapes that may be invalid characters: bodies without them need no second check
_SUSPECT: Final = re.compile(rb"\\u(0000|[dD][89a-fA-F])")
_KEPT: Final = 256  # the longest header whose result is cached, and how many of them
_BYTES: Final = "application/octet-stream"  # some clients send JSON with this type; also a body without a type
_READ: Final = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
    _BYTES,
)


@dataclass(frozen=True)
class MediaType:
    """A media type of responses: JSON, or the raw text of a schema."""

    media_type: str
    is_text: bool = False

    def render(self, data: Any, accepted: str) -> bytes:
        """Return the body; JSON may be indented, as the parameters of the accepted type say."""
        if not self.is_text:
            return _json.render(data, accepted)  # type: ignore[no-any-return]
        return data.encode() if isinstance(data, str) else json.dumps(data).encode()

    @property
    def content_type(self) -> str:
        """The value of the Content-Type header."""
        return f"{self.media_type}; charset=utf-8" if self.is_text else self.media_type


_json: Final = JSONRenderer()
_NO_PARAMETERS: Final = QueryDict()
JSON: Final = (MediaType(_READ[0]), MediaType(_READ[1]), MediaType(_READ[2]))
TEXT: Final = MediaType("text/plain", is_text=True)


def accepted_type(header: str, offered: tuple[MediaType, ...]) -> tuple[MediaType, str]:
    """Return the media type that an `Accept` header selects, and its text in the header. Raises NotAcceptable."""
    return (_accepted if len(header) <= _KEPT else _accepted.__wrapped__)(header, offered)


@lru_cache(maxsize=_KEPT)
def _accepted(header: str, offered: tuple[MediaType, ...]) -> tuple[MediaType, str]:
    request: Any = SimpleNamespace(headers={"accept": header}, query_params={})
    renderers: Any = offered
    chosen: Any = DefaultContentNegotiation().select_renderer(request, renderers)
    return chosen[0], chosen[1]


@lru_cache(maxsize=_KEPT)
def _is_read(content_type: str) -> bool:
    return any(media_type_matches(kind, content_type) for kind in _READ)


class Request:
    """A request, with its body as JSON."""

    def __init__(self, http: HttpRequest) -> None:
        self.http = http
        self.META: dict[str, Any] = http.META
        self.method = http.method or ""

    @property
    def query_params(self) -> QueryDict:
        """The query parameters."""
        return self.http.GET if self.META.get("QUERY_STRING") else _NO_PARAMETERS

    @property
    def headers(self) -> HttpHeaders:
        """The headers, with case-insensitive names."""
        return self.http.headers

    @cached_property
    def data(self) -> Any:
        """The parsed body, {} without one.

        Raises ParseError with line and column, UnsupportedMediaType, SchemaTooLarge, InvalidInput.
        """
        length = length_of({"request": self})
        if not length:
            return {}
        content_type = self.META.get("CONTENT_TYPE") or _BYTES
        if len(content_type) > _KEPT or not _is_read(content_type):
            raise UnsupportedMediaType(content_type)
        with room_for(length):
            most = int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
            data = self.http.read(most + 1)
            if len(data) > most:
                raise SchemaTooLarge(f"The body is too large: at most {most} bytes are allowed.")
            return _parsed(data)


class Response(HttpResponse):
    """A response whose data is rendered when its media type is known.

    A raw one contains a text unchanged, whatever its type: a schema requested as JSON would be quoted otherwise.
    """

    def __init__(
        self, data: Any = None, status: int = 200, headers: dict[str, str] | None = None, *, is_raw: bool = False
    ) -> None:
        super().__init__(status=status, headers=headers)
        self.data = data
        self._is_raw = is_raw

    def fill(self, chosen: MediaType, accepted: str) -> None:
        """Render the body and set its content type; for None there is neither."""
        if self.data is None:
            del self["Content-Type"]
            return
        self.content = (TEXT if self._is_raw else chosen).render(self.data, accepted)
        self["Content-Type"] = chosen.media_type if self._is_raw else chosen.content_type


def _parsed(data: bytes) -> Any:
    refuse_many_values(data)
    try:
        body = json.loads(data, parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        raise ParseError(f"The body is not JSON at line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except ValueError as error:
        raise ParseError(f"The body has a number that can't be read: {unreadable_number(error)}.") from error
    except RecursionError as error:
        raise ParseError("The body's JSON is nested too deeply.") from error
    if _SUSPECT.search(data):
        _refuse_unusable(body)
    return body


def _refuse_unusable(body: Any) -> None:
    left = [("", body)]
    while left:
        where, value = left.pop()
        if isinstance(value, str):
            refuse_unusable_text(value, f"value at {where or '/'}")
        elif isinstance(value, list):
            left += [(f"{where}/{position}", item) for position, item in enumerate(value)]
        elif isinstance(value, dict):
            for name in value:
                refuse_unusable_text(name, f"name of a property at {where or '/'}")
            left += [(f"{where}/{name}", item) for name, item in value.items()]
