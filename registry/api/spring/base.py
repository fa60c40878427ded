"""What every view of this dialect shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.spring.errors import Refusal, handle
from registry.api.spring.serializers import check_accept, check_content_type
from registry.subjects.versions.lookup import Registry, get_registry, meant_subject
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

MEDIA_TYPE = "application/json;charset=UTF-8"
METHODS = ("DELETE", "GET", "POST")


class SpringRenderer(JSONRenderer):
    """JSON with the released server's content type."""

    media_type = MEDIA_TYPE
    charset = None


class OneRenderer(BaseContentNegotiation):
    """There is one renderer; `initial` refuses who can't read it."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The one renderer."""
        (renderer,) = renderers
        return renderer, MEDIA_TYPE

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        """None: `requests` reads the body itself."""
        return None


class SpringView(APIView):
    """Finds the registry and subject that the address names; `self.actor` is who calls."""

    door = "spring"
    schema = None  # the OpenAPI page describes our own API
    authentication_classes = (TokenAuthentication,)
    renderer_classes = (SpringRenderer,)
    content_negotiation_class = OneRenderer

    registry: Registry
    subject: SubjectName | None

    def get_exception_handler(self) -> Any:
        """This dialect's error table."""
        return handle

    @property
    def actor(self) -> Actor:
        """Who calls."""
        return self.request.user  # type: ignore[return-value]

    @property
    def mapped(self) -> list[str]:
        """The methods that the address takes."""
        return [method for method in METHODS if hasattr(self, method.lower())]

    @property
    def named_subject(self) -> SubjectName:
        """The subject of the address, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then refuse in the released server's order, then read the address.

        Raises NotSignedIn, Refusal, RegistryNotFound, InvalidName, NotAllowed.
        """
        super().initial(request, *args, **kwargs)
        method = "GET" if request.method == "HEAD" else request.method
        if method != "OPTIONS":
            if method not in self.mapped:
                raise Refusal(405, f"Request method '{request.method}' not supported", allow=self.mapped)
            if method == "POST":
                check_content_type(request)
            if method != "DELETE":
                check_accept(request)
        self.registry = get_registry(kwargs.get("registry", ""))
        self.subject = self.meant(kwargs["subject"]) if "subject" in kwargs else None

    def meant(self, name: str) -> SubjectName:
        """The subject that a name means, behind its alias, as in the other dialects. Raises InvalidName, NotAllowed."""
        name_in_address = parse_subject(name)
        require(self.actor, "schema.read", registry=self.registry.name, subject=name_in_address.qualified)
        subject = meant_subject(self.registry, name_in_address)
        if subject != name_in_address:
            require(self.actor, "schema.read", registry=self.registry.name, subject=subject.qualified)
        return subject

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """The methods that the address takes."""
        methods = [*self.mapped, *(["HEAD"] if "GET" in self.mapped else []), "OPTIONS"]
        return Response(None, headers={"Allow": ",".join(methods)})

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """The header Allow stands where an answer sets it, not everywhere as the framework has it."""
        allow = response.headers.get("Allow")
        response = super().finalize_response(request, response, *args, **kwargs)
        if allow is None:
            response.headers.pop("Allow", None)
        else:
            response["Allow"] = allow
        return response
