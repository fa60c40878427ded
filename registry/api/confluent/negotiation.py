"""Confluent's media types, in and out."""

from __future__ import annotations

import json
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer


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
        """The parsed body. Raises ParseError with line and column."""
        try:
            return json.loads(stream.read())
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8 at byte {error.start}.") from error
        except json.JSONDecodeError as error:
            raise ParseError(
                f"The body is not JSON at line {error.lineno}, column {error.colno}: {error.msg}."
            ) from error
        except RecursionError as error:
            raise ParseError("The body's JSON is nested too deeply.") from error


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
