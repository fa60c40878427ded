"""How this dialect's values cross the wire: JSON in whatever the caller accepts, and `HttpBody` answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import IO, Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.json_bodies import length_of, refuse_many_values, room_for

MAX_BODY = 8 * 1024 * 1024
JSON = "application/json"
#: enum → its names in the order of their numbers
SCHEMA_TYPES = ("SCHEMA_TYPE_UNSPECIFIED", "AVRO", "JSON", "PROTOBUF")
COMPATIBILITY_TYPES = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODE_TYPES = ("NONE", "READONLY", "READWRITE", "IMPORT")


class BodyTooLong(APIException):
    """A body above the limit."""

    status_code = 413
    default_detail = f"A request's body may have up to {MAX_BODY} bytes."


class AlwaysJson(BaseContentNegotiation):
    """The service answers JSON whatever `Accept` says."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """The parser of the body's media type; a body without one is taken for JSON."""
        media_type = (request.content_type or JSON).partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The one renderer."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or JSON


class JsonParser(BaseParser):
    """JSON, refused with the place where it breaks."""

    media_type = JSON

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """The parsed body, None for one of white space.

        Raises ParseError with line and column, BodyTooLong, InvalidInput.
        """
        with room_for(length_of(parser_context)):
            return self._read(stream)

    def _read(self, stream: IO[bytes]) -> Any:
        body = stream.read(MAX_BODY + 1)
        if len(body) > MAX_BODY:
            raise BodyTooLong
        refuse_many_values(body)
        if not body.strip():
            return None
        try:
            return json.loads(body.decode())
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise ParseError(f"Invalid JSON payload received at {where}: {error.msg}.") from error
        except UnicodeDecodeError as error:
            raise ParseError(f"Invalid JSON payload received: not UTF-8 at byte {error.start}.") from error
        except RecursionError as error:
            raise ParseError("Invalid JSON payload received: it is nested too deeply.") from error
        except ValueError as error:  # a number of thousands of digits
            raise ParseError(f"Invalid JSON payload received: {error}.") from error


class VendorParser(JsonParser):
    """What Confluent's clients call it, whose serializers are pointed at this service too."""

    media_type = "application/vnd.schemaregistry.v1+json"


class PlainVendorParser(JsonParser):
    """The same without a version."""

    media_type = "application/vnd.schemaregistry+json"


PARSERS = (JsonParser, VendorParser, PlainVendorParser)
RENDERERS = (JSONRenderer,)


def enum(request: Request, name: str, names: Sequence[str]) -> str | int:
    """An enum's value: its name, or its number for a caller that asks so by `$alt=json;enum-encoding=int`."""
    system = request.query_params.get("$alt") or request.query_params.get("alt") or ""
    return names.index(name) if "enum-encoding=int" in system else name


def http_body(request: Request, value: Any, *, content_type: str = "") -> HttpResponseBase:
    """An answer of the type google.api.HttpBody: JSON of `value`, or a text as it stands where a type is given.

    Over REST the content is the body itself. The service's Python client can't read that: it parses the body as the
    message HttpBody, so it gets that message, with the content in base64 as proto3's JSON has it.
    """
    content = (value if content_type else json.dumps(value)).encode()
    if "gl-python/" not in request.META.get("HTTP_X_GOOG_API_CLIENT", ""):
        return HttpResponse(content, content_type=content_type or JSON)
    return Response({"contentType": content_type or JSON, "data": base64.b64encode(content).decode()})
