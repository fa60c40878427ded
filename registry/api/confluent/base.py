"""The base class of this dialect's views."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from django.http import HttpRequest, HttpResponse
from django.views import View
from rest_framework.exceptions import MethodNotAllowed

from registry.access.permission_filters import READ
from registry.access.roles import Actor, require
from registry.api.authentication import authenticate, authenticate_at
from registry.api.confluent.http import JSON, MediaType, Request, Response, accepted_type, handle
from registry.api.confluent.serializers import SchemaBody, schema_body
from registry.api.request_reading import refuse_unusable_text
from registry.api.response_marks import allow_replay, depend_on, status_header_text
from registry.errors import InvalidName, SchemadeskError
from registry.subjects.permissions import Visible, require_visible
from registry.subjects.versions.lookup import Registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, check_context, parse_subject
from registry.subjects.versions.versions import elsewhere

HEADERS: Final = {"Cache-Control": "no-cache, no-store, must-revalidate", "X-XSS-Protection": "1; mode=block"}


class ConfluentView(View):
    """Reads the registry, context and subject from the URL; `self.actor` is the caller.

    It doesn't use Django REST framework, whose overhead was larger than most reads.
    """

    channel: ClassVar[str] = "confluent"
    http_method_names = ["get", "post", "put", "delete", "head"]
    media_types: ClassVar[tuple[MediaType, ...]] = JSON
    #: whether an answer has an ETag, so that a client that has it gets 304
    has_etag = False
    #: whether callers who can read only some subjects may call it; the view answers with what they may read
    reads_parts = False
    #: whether registrations under other subject names don't affect the result of a GET
    reads_its_subject = False

    request: Request  # type: ignore[assignment]  # of this dialect
    actor: Actor
    registry: Registry
    context: str
    subject: SubjectName | None
    #: the subject in the URL, and the subject that its alias names
    subjects: tuple[SubjectName, ...]
    visible: Visible

    #: the methods that it supports, as in the header
    allowed: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        names = (name for name in cls.http_method_names if hasattr(cls, "get" if name == "head" else name))
        cls.allowed = ", ".join(name.upper() for name in names)

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponse]:
        """Return the view function. No call authenticates by cookie, so none needs CSRF protection."""
        view: Callable[..., HttpResponse] = super().as_view(**initkwargs)  # type: ignore[assignment]
        view.csrf_exempt = True  # type: ignore[attr-defined]
        return view

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """Answer a request; errors are answered by this dialect's table."""
        self.request = Request(request)
        chosen = self.media_types[0], self.media_types[0].media_type
        try:
            chosen = accepted_type(self.request.META.get("HTTP_ACCEPT") or "*/*", self.media_types)
            self.initial(self.request, **kwargs)
            response = self._handler()(self.request, **kwargs)
        except Exception as error:  # noqa: BLE001 - the table has a row for unexpected errors
            response = handle(error, {})
        response.fill(*chosen)
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers["Allow"] = self.allowed
        response.headers["Vary"] = "Accept"
        if self.has_etag and response.status_code == 200:
            self._tag(response)
        return response

    def _handler(self) -> Callable[..., Response]:
        name = self.request.method.lower()
        handler: Callable[..., Response] | None = getattr(self, name, None) if name in self.http_method_names else None
        if handler is None:
            raise MethodNotAllowed(self.request.method)
        return handler

    def initial(self, request: Request, **kwargs: Any) -> None:
        """Authenticate, then read the URL.

        Raises NotSignedIn, RegistryNotFound, InvalidName, InvalidInput, NotAllowed.
        """
        try:
            self.read_address(**kwargs)
        except SchemadeskError:
            authenticate(
                request.META, channel=self.channel
            )  # first, so that an unauthenticated caller gets only that error
            raise
        given = self.subject
        registry, sought = kwargs.get("registry", ""), self.sought()
        self.actor, self.registry, found = authenticate_at(request.META, registry, sought, channel=self.channel)
        if found is not None:
            self.take(found)
        self.subjects = tuple(name for name in (given, self.subject) if name is not None)
        self.visible = Visible(self.registry, self.actor)
        self.authorize()
        # The answer depends only on the request and the database; of these, only the token can expire by itself.
        allow_replay(request.META, until=self.actor.limit.expires_at if self.actor.limit else None)
        if self.reads_its_subject and request.method != "POST":
            depend_on(request.META, self.subjects)

    def read_address(self, **kwargs: Any) -> None:
        """Read the URL and its parameters. Raises InvalidName, InvalidInput."""
        for name, values in self.request.query_params.lists():
            for text in (name, *values):
                refuse_unusable_text(text, f"parameter {name[:40]!r}")
        self.context = check_context(kwargs["context"]) if "context" in kwargs else DEFAULT_CONTEXT
        self.subject = self.read_subject(kwargs["subject"]) if "subject" in kwargs else None

    def authorize(self) -> None:
        """Refuse callers who may not read the URL's subject and the one that its alias names, or the registry.

        Otherwise an answer would reveal that an alias exists. Raises NotSignedIn, NotAllowed.
        """
        if self.reads_parts and self.subject is None:
            if not self.visible.extent.parts:
                require_visible(self.registry, self.actor)
            return
        for name in [subject.qualified for subject in self.subjects] or [""]:
            require(self.actor, READ, registry=self.registry.name, subject=name)

    def read_subject(self, text: str) -> SubjectName | None:
        """Return the subject in the URL, which must not be empty. Raises InvalidName."""
        subject = parse_subject(text, context=self.context)
        if not subject.subject:
            raise InvalidName(f"The specified subject '{text}' is not a valid.", name=text)
        return subject

    def sought(self) -> SubjectName | None:
        """Return the subject whose alias is followed."""
        return self.subject

    def take(self, subject: SubjectName) -> None:
        """Continue with that subject's alias, or with the subject itself."""
        self.subject = subject

    @property
    def named_subject(self) -> SubjectName:
        """The subject in the URL, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    def schema_body(self) -> SchemaBody:
        """Return the schema in the body. Raises InvalidInput, InvalidRuleSet.

        A reference may be to the newest version of another subject, so the answer may depend on other subjects.
        """
        body = schema_body(self.request)
        if not body.references:
            depend_on(self.request.META, self.subjects)
        return body

    @property
    def names_no_context(self) -> bool:
        """Whether the URL has no context: then other contexts are searched too."""
        return "context" not in self.kwargs and not str(self.kwargs.get("subject", "")).startswith(":.")

    def and_elsewhere(self, subject: SubjectName) -> Iterator[SubjectName]:
        """Yield the subject, and if nothing names its context, the subjects with its name in the other contexts."""
        yield subject
        if self.names_no_context:
            for name in elsewhere(self.registry, subject):
                if self.visible.has_subject(name):
                    yield name

    def _tag(self, response: Response) -> None:
        """Add an ETag to the answer, and answer 304 to a client that has it."""
        status = status_header_text(response)
        content = response.content + b"\n" + status.encode() if status else response.content
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        response["ETag"] = tag
        client_tags = [
            item.strip().removeprefix("W/") for item in self.request.META.get("HTTP_IF_NONE_MATCH", "").split(",")
        ]
        if tag in client_tags or "*" in client_tags:
            response.status_code = 304
            response.content = b""
