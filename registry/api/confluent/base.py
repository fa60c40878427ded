"""What every view of this dialect shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.confluent.errors import handle
from registry.api.confluent.negotiation import PARSERS, RENDERERS
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, check_context, parse_subject
from registry.subjects.selectors.places import Registry, get_registry


class ConfluentView(APIView):
    """Finds the registry, context and subject that the address names; `self.actor` is who calls."""

    door = "confluent"
    schema = None  # the OpenAPI page describes our own API
    authentication_classes = (TokenAuthentication,)
    renderer_classes: Sequence[type[BaseRenderer]] = RENDERERS
    parser_classes = PARSERS
    action = "schema.read"

    registry: Registry
    context: str
    subject: SubjectName | None

    def get_exception_handler(self) -> Any:
        """This dialect's error table."""
        return handle

    @property
    def actor(self) -> Actor:
        """Who calls."""
        return self.request.user  # type: ignore[return-value]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then read the address. Raises NotSignedIn, RegistryNotFound, InvalidName, NotAllowed."""
        super().initial(request, *args, **kwargs)
        self.registry = get_registry(kwargs.get("registry", ""))
        self.context = check_context(kwargs["context"]) if "context" in kwargs else DEFAULT_CONTEXT
        self.subject = parse_subject(kwargs["subject"], context=self.context) if "subject" in kwargs else None
        name = self.subject.qualified if self.subject else ""
        require(self.actor, "schema.read", registry=self.registry.name, subject=name)

    @property
    def named_subject(self) -> SubjectName:
        """The subject of the address, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Nothing here may be kept by a cache that doesn't ask again."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-cache, no-store, must-revalidate"
        return response
