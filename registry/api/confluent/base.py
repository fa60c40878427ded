"""The base of this dialect's views, and Confluent's media types, in and out."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any

from django.conf import settings
from django.http import HttpResponse
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.access.permission_filters import READ
from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.confluent.errors import handle
from registry.api.confluent.serializers import SchemaBody, refuse_unusable_text, schema_body
from registry.api.request_reading import length_of, refuse_constant, refuse_many_values, room_for, unreadable_number
from registry.api.response_marks import allow_replay, depend_on, standing_in
from registry.errors import InvalidName, SchemaTooLarge
from registry.subjects.permissions import Visible, require_visible
from registry.subjects.versions.lookup import Registry, get_registry, get_registry_and_subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, check_context, parse_subject
from registry.subjects.versions.versions import elsewhere

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
            raise SchemaTooLarge(f"The body is too large: at most {most} bytes are allowed.")
        refuse_many_values(data)
        try:
            body = json.loads(data, parse_constant=refuse_constant)
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8 at byte {error.start}.") from error
        except json.JSONDecodeError as error:
            raise ParseError(
                f"The body is not JSON at line {error.lineno}, column {error.colno}: {error.msg}."
            ) from error
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


HEADERS = {"Cache-Control": "no-cache, no-store, must-revalidate", "X-XSS-Protection": "1; mode=block"}


class ConfluentView(APIView):
    """Finds the registry, context and subject that the address names; `self.actor` is who calls."""

    door = "confluent"
    schema = None  # the OpenAPI page describes our own API
    authentication_classes = (TokenAuthentication,)
    renderer_classes: Sequence[type[BaseRenderer]] = RENDERERS
    parser_classes = PARSERS
    http_method_names = ["get", "post", "put", "delete", "head"]
    #: an answer that stays as it is carries an ETag, and a client that has it gets 304
    has_etag = False
    #: whether the address is also for who may read some subjects alone; the view answers as far as that goes
    reads_parts = False
    #: whether registrations under other names than the subject's leave what a GET reads as it is
    reads_its_subject = False

    registry: Registry
    context: str
    subject: SubjectName | None
    #: the subject of the address, and the one that its alias names
    subjects: tuple[SubjectName, ...]
    visible: Visible

    def get_exception_handler(self) -> Any:
        """This dialect's error table."""
        return handle

    @property
    def actor(self) -> Actor:
        """Who calls."""
        return self.request.user  # type: ignore[return-value]

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
        """A body of no type is read as bytes, which are JSON here."""
        if not request.META.get("CONTENT_TYPE"):
            request.META["CONTENT_TYPE"] = "application/octet-stream"
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then read the address.

        Raises NotSignedIn, RegistryNotFound, InvalidName, InvalidInput, NotAllowed.
        """
        super().initial(request, *args, **kwargs)
        for name, values in request.query_params.lists():
            for text in (name, *values):
                refuse_unusable_text(text, f"parameter {name[:40]!r}")
        self.context = check_context(kwargs["context"]) if "context" in kwargs else DEFAULT_CONTEXT
        self.subject = given = self.read_subject(kwargs["subject"]) if "subject" in kwargs else None
        self.find(kwargs.get("registry", ""))
        self.subjects = tuple(name for name in (given, self.subject) if name is not None)
        self.visible = Visible(self.registry, self.actor)
        self.authorize()
        # What is answered here follows from the request and the database; nothing but the token ends by itself.
        allow_replay(request.META, until=self.actor.limit.expires_at if self.actor.limit else None)
        if self.reads_its_subject and request.method != "POST":
            depend_on(request.META, self.subjects)

    def authorize(self) -> None:
        """Refuse who may not read the subject of the address, or the registry. Raises NotSignedIn, NotAllowed."""
        if self.reads_parts and self.subject is None:
            require_visible(self.registry, self.actor)
            return
        name = self.subject.qualified if self.subject else ""
        require(self.actor, READ, registry=self.registry.name, subject=name)

    def read_subject(self, text: str) -> SubjectName | None:
        """The subject that the address names, which has a name of its own. Raises InvalidName."""
        subject = parse_subject(text, context=self.context)
        if not subject.subject:
            raise InvalidName(f"The specified subject '{text}' is not a valid.", name=text)
        return subject

    def find(self, registry: str) -> None:
        """Find the registry, and in place of the subject the one that its alias names. Raises RegistryNotFound."""
        if self.subject is None:
            self.registry = get_registry(registry)
        else:
            self.registry, self.subject = get_registry_and_subject(registry, self.subject)

    @property
    def named_subject(self) -> SubjectName:
        """The subject of the address, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    def schema_body(self) -> SchemaBody:
        """The schema that was sent; a reference may be to the newest version of another subject. Raises InvalidInput, InvalidRuleSet."""
        body = schema_body(self.request)
        if not body.references:
            depend_on(self.request.META, self.subjects)
        return body

    @property
    def names_no_context(self) -> bool:
        """Whether the address leaves the context open: then other contexts are looked into as well."""
        return "context" not in self.kwargs and not str(self.kwargs.get("subject", "")).startswith(":.")

    def and_elsewhere(self, subject: SubjectName) -> Iterator[SubjectName]:
        """The subject, and then, if nothing names its context, those of the same name in the other contexts."""
        yield subject
        if self.names_no_context:
            for name in elsewhere(self.registry, subject):
                if self.visible.has_subject(name):
                    yield name

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Nothing here may be kept by a cache that doesn't ask again."""
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in HEADERS.items():
            response[name] = value
        if self.has_etag and response.status_code == 200:
            response.add_post_render_callback(self._tag)
        return response

    def _tag(self, response: HttpResponse) -> None:
        """Put an ETag on the answer, and answer 304 to a client that has it."""
        standing = standing_in(response)
        content = response.content + b"\n" + standing.encode() if standing else response.content
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        response["ETag"] = tag
        client_tags = [
            item.strip().removeprefix("W/") for item in self.request.headers.get("If-None-Match", "").split(",")
        ]
        if tag in client_tags or "*" in client_tags:
            response.status_code = 304
            response.content = b""
