"""What every view of this dialect shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rest_framework.request import Request
from rest_framework.views import APIView

from registry.access.extent import require_extent
from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.google.errors import handle
from registry.api.google.names import parse_context
from registry.api.google.wire import PARSERS, RENDERERS, AlwaysJson
from registry.errors import InvalidName, RegistryNotFound
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.places import Registry
from registry.subjects.selectors.resources import RegistryResource, find_registry, meant_subject
from registry.subjects.selectors.visible import READ, Visible


class GoogleView(APIView):
    """A call below `/v1/projects/`; `self.actor` is who calls."""

    door = "google"
    schema = None  # the OpenAPI page describes our own API
    authentication_classes = (TokenAuthentication,)
    content_negotiation_class = AlwaysJson
    renderer_classes = RENDERERS
    parser_classes = PARSERS

    def get_exception_handler(self) -> Any:
        """This dialect's error table."""
        return handle

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate; refuse who has no right anywhere before anything is read.

        Raises NotSignedIn, NotAllowed, and InvalidName for an address with U+0000, which PostgreSQL takes in no text.
        """
        super().initial(request, *args, **kwargs)
        if not self.actor.grants:
            require(self.actor, "schema.read")
        for part, name in kwargs.items():
            if "\0" in name:
                raise InvalidName(f"The address has a control character in its {part}.", field=part)

    @property
    def actor(self) -> Actor:
        """Who calls."""
        return self.request.user  # type: ignore[return-value]


class RegistryView(GoogleView):
    """Finds the registry, context and subject that the address names; `self.actor` has the rights that count there."""

    #: whether a subject that is an alias stands for the other one
    follows_alias = True
    #: whether the address is also for who may read some subjects alone; the view answers as far as that goes
    reads_parts = False
    registry: Registry
    resource: RegistryResource
    context: str
    subject: SubjectName | None
    visible: Visible

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then read the address. Raises NotSignedIn, RegistryNotFound, InvalidName, NotAllowed."""
        super().initial(request, *args, **kwargs)
        place = {name: kwargs[name] for name in ("project", "location")}
        self.resource = RegistryResource(**place, name=kwargs["registry"])
        request.user = actor_at(request.user, self.resource)  # type: ignore[arg-type, assignment]
        self.context = parse_context(kwargs["context"]) if "context" in kwargs else DEFAULT_CONTEXT
        self.subject = parse_subject(kwargs["subject"], context=self.context) if kwargs.get("subject") else None
        if not self.reads_parts:
            self._require_name()
        require_extent(self.actor, READ, registry=self.resource.name)
        try:
            self.registry = find_registry(**place, name=kwargs["registry"])
        except RegistryNotFound:
            self._require_name()
            raise
        self.visible = Visible(self.registry, self.actor)
        if self.subject and self.follows_alias:
            self.subject = meant_subject(self.registry, self.subject)
        self.authorize()

    def authorize(self) -> None:
        """Refuse who may not read what the address names; by then it is known. Raises NotSignedIn, NotAllowed."""
        if self.subject is not None or not self.reads_parts:
            self._require_name()

    def _require_name(self) -> None:
        name = self.subject.qualified if self.subject else ""
        require(self.actor, READ, registry=self.resource.name, subject=name)

    @property
    def named_subject(self) -> SubjectName:
        """The subject of the address, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    @property
    def scope(self) -> SubjectName | None:
        """What a config or mode belongs to: a subject, (empty subject) the context of the address, None the registry."""
        if self.subject is None and "context" in self.kwargs:
            return SubjectName(self.context, "")
        return self.subject


def actor_at(actor: Actor, resource: RegistryResource) -> Actor:
    """The actor with the grants that count for a registry.

    A grant names a registry of the configured project and location by its name alone, any other by its resource
    name; services know the name alone, so the grants are told apart here.
    """
    grants = tuple(
        replace(grant, registry=resource.name) if grant.registry else grant
        for grant in actor.grants
        if grant.registry in ("", resource.key)
    )
    limit = actor.limit
    if limit and limit.registry:  # the place of a token is told apart in the same way
        grants = grants if limit.registry == resource.key else ()
        limit = replace(limit, registry=resource.name)
    return replace(actor, grants=grants, limit=limit)
