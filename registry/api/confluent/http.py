"""Requests and responses of this dialect: media types, JSON bodies, and one row per error code.

What the framework would determine per request is fixed here: the media types, and that bodies are JSON. Its rules for
choosing a media type apply, but their results are cached per header.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.request import HttpHeaders
from rest_framework import exceptions
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.mediatypes import media_type_matches

from registry import errors
from registry.api.outage import DatabaseAway, WriteRefused, set_retry_after, unavailable_error
from registry.api.request_reading import (
    length_of,
    refuse_constant,
    refuse_many_values,
    refuse_unusable_text,
    room_for,
    unreadable_number,
)
from registry.errors import SchemaTooLarge
from registry.subjects.associations import requests

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


logger = logging.getLogger(__name__)

#: the nearest class in an error's ancestry decides
CODES: dict[type[Exception], int] = {
    errors.SubjectNotFound: 40401,
    errors.VersionNotFound: 40402,
    errors.SchemaNotFound: 40403,
    errors.SubjectSoftDeleted: 40404,
    errors.SubjectNotSoftDeleted: 40405,
    errors.VersionSoftDeleted: 40406,
    errors.VersionNotSoftDeleted: 40407,
    errors.SubjectConfigNotFound: 40408,
    errors.SubjectModeNotFound: 40409,
    requests.AssociationNotFound: 40410,
    errors.RegistryNotFound: 404,
    errors.NotFound: 404,
    errors.InvalidSchema: 42201,
    errors.SchemaTooLarge: 42209,
    errors.InvalidReference: 42201,
    errors.InvalidVersion: 42202,
    errors.InvalidCompatibility: 42203,
    errors.InvalidMode: 42204,
    errors.OperationNotPermitted: 42205,
    errors.ReferenceExists: 42206,
    errors.InvalidName: 42208,
    errors.InvalidRuleSet: 42210,
    errors.ContextNotEmpty: 42211,
    requests.AssociationForResourceExists: 40903,
    requests.AssociationForSubjectExists: 40904,
    requests.StrongAssociationExists: 40905,
    requests.NoActiveVersion: 40907,
    requests.AssociationFrozen: 40908,
    requests.InvalidAssociation: 42212,
    errors.InvalidInput: 422,
    errors.Conflict: 409,
    errors.NotSignedIn: 401,
    errors.Forbidden: 403,
    errors.Unavailable: 50002,
    DatabaseAway: 50001,
    WriteRefused: 50001,
    OperationalError: 50001,
}
#: statuses that aren't the code's first three digits: clients retry a 503, or use another server
STATUSES: dict[type[Exception], int] = {DatabaseAway: 503, WriteRefused: 503}
#: errors of the framework, with Confluent's messages
FRAMEWORK_MESSAGES = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
}


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for any exception; an unexpected one is logged with its traceback, and answered 500."""
    if isinstance(error, exceptions.APIException):
        message = FRAMEWORK_MESSAGES.get(error.status_code, str(error.detail))
        return _error_response(error.status_code, error.status_code, message)
    if isinstance(error, SuspiciousOperation):
        return _error_response(400, 400, "HTTP 400 Bad Request")
    error = unavailable_error(error) or error
    code = code_of(error)
    if code is None:
        logger.error("unforeseen error", exc_info=error)
        return _error_response(500, 500, "Internal Server Error")
    if code == 50001 and not isinstance(error, DatabaseAway):
        logger.error("the database failed", exc_info=error)
        return _error_response(500, code, "Error in the backend data store")
    response = _error_response(status_of(type(error), code), code, describe(error))
    if code == 401:
        response["WWW-Authenticate"] = 'Basic realm="Schemadesk"'
    return set_retry_after(response, error)


def status_of(kind: type[Exception], code: int) -> int:
    """Return the HTTP status of an error with that class and code."""
    return STATUSES.get(kind, int(str(code)[:3]))


def code_of(error: Exception) -> int | None:
    """Return the code of an error, or None if it has no row."""
    if isinstance(error, errors.IncompatibleSchema | errors.PolicyViolated):
        return int(settings.INCOMPATIBLE_ERROR_CODE)
    return next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), None)


def describe(error: Exception) -> str:
    """Return the message, with line and column if the schema has an error."""
    if not isinstance(error, errors.SchemadeskError):
        return str(error)
    return error.placed


def _error_response(status: int, code: int, message: str) -> Response:
    return Response({"error_code": code, "message": message}, status=status)
