"""What every view of this dialect shares."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from django.http import HttpResponse
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.confluent.errors import handle
from registry.api.confluent.negotiation import PARSERS, RENDERERS
from registry.api.confluent.requests import refuse_unusable_text
from registry.api.replay import allow_replay
from registry.api.standing import standing_in
from registry.errors import InvalidName
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, check_context, parse_subject
from registry.subjects.selectors.places import Registry, get_registry, get_registry_and_subject
from registry.subjects.selectors.versions import elsewhere
from registry.subjects.selectors.visible import READ, Visible, require_visible

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

    registry: Registry
    context: str
    subject: SubjectName | None
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
        self.subject = self.read_subject(kwargs["subject"]) if "subject" in kwargs else None
        self.find(kwargs.get("registry", ""))
        self.visible = Visible(self.registry, self.actor)
        self.authorize()
        # What is answered here follows from the request and the database; nothing but the token ends by itself.
        allow_replay(request.META, until=self.actor.limit.expires_at if self.actor.limit else None)

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
        told = standing_in(response)
        content = response.content + b"\n" + told.encode() if told else response.content
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        response["ETag"] = tag
        known = [item.strip().removeprefix("W/") for item in self.request.headers.get("If-None-Match", "").split(",")]
        if tag in known or "*" in known:
            response.status_code = 304
            response.content = b""
