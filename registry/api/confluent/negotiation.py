"""Confluent's media types, in and out."""

from __future__ import annotations

import json
import re
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer

from registry.api.confluent.requests import refuse_unusable_text
from registry.api.json_bodies import length_of, refuse_many_values, room_for
from registry.errors import SchemaTooLarge

#: the escapes of what may be no character: bodies without them need no second look
_SUSPECT = re.compile(rb"\\u(0000|[dD][89a-fA-F])")


class V1Renderer(JSONRenderer):
    """The default."""

    media_type = "application/vnd.schemaregistry.v1+json"
    format = ""
    charset = None


class PlainVendorRenderer(V1Renderer):
    """The same without a version."""

    media_type = "application/vnd.schemaregistry+json"


class PlainJsonRenderer(V1Renderer):
    """For clients that ask for plain JSON."""

    media_type = "application/json"


class TextRenderer(BaseRenderer):
    """For the raw text of a schema."""

    media_type = "text/plain"
    format = ""
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """The text, or an error as JSON."""
        return data.encode() if isinstance(data, str) else json.dumps(data).encode()


class BodyParser(BaseParser):
    """JSON, refused with the place where it breaks."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """The parsed body. Raises ParseError with line and column, SchemaTooLarge, InvalidInput."""
        with room_for(length_of(parser_context)):
            return self._read(stream)

    def _read(self, stream: IO[bytes]) -> Any:
        most = int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        data = stream.read(most + 1)
        if len(data) > most:
            raise SchemaTooLarge(f"The body is too large: {most} bytes are taken.")
        refuse_many_values(data)
        try:
            body = json.loads(data, parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8 at byte {error.start}.") from error
        except json.JSONDecodeError as error:
            raise ParseError(
                f"The body is not JSON at line {error.lineno}, column {error.colno}: {error.msg}."
            ) from error
        except ValueError as error:
            raise ParseError(f"The body has a number that can't be read: {error}.") from error
        except RecursionError as error:
            raise ParseError("The body's JSON is nested too deeply.") from error
        if _SUSPECT.search(data):
            _refuse_unusable(body)
        return body


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


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


class V1Parser(BodyParser):
    """The default."""

    media_type = "application/vnd.schemaregistry.v1+json"


class PlainVendorParser(BodyParser):
    """The same without a version."""

    media_type = "application/vnd.schemaregistry+json"


class BytesParser(BodyParser):
    """What some clients call the same."""

    media_type = "application/octet-stream"


RENDERERS = (V1Renderer, PlainVendorRenderer, PlainJsonRenderer)
PARSERS = (V1Parser, PlainVendorParser, BodyParser, BytesParser)
