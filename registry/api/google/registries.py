"""Google's API: registries, their contexts, and the locations and operations that its clients ask for."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import NotFound as AddressNotFound
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may
from registry.api.google.base import GoogleView, RegistryView, actor_at
from registry.api.google.errors import AlreadyExists
from registry.api.google.names import context_name
from registry.api.google.requests import REGISTRY, read
from registry.api.google.wire import http_body
from registry.errors import InvalidInput, NotFound
from registry.subjects import selectors
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import find_context
from registry.subjects.selectors.resources import (
    RegistryResource,
    list_locations,
    list_resources,
    resource_of,
)
from registry.subjects.services.registries import delete_registry, ensure_registry


class Registries(GoogleView):
    """`…/schemaRegistries`."""

    def get(self, request: Request, project: str, location: str) -> Response:
        """Those that the caller may read."""
        found = list_resources(project=project, location=location)
        seen = [item for item in found if may(actor_at(self.actor, item), "schema.read", registry=item.name)]
        return Response({"schemaRegistries": [_registry(item) for item in seen]} if seen else {})

    def post(self, request: Request, project: str, location: str) -> Response:
        """Make one; it is there at once, with its default context."""
        body = read(request, REGISTRY)
        if "schemaRegistryId" not in body:
            raise InvalidInput("schemaRegistryId is missing.", field="schemaRegistryId")
        resource = RegistryResource(project, location, body["schemaRegistryId"])
        if not ensure_registry(
            name=resource.name, project=project, location=location, by=actor_at(self.actor, resource)
        ):
            raise AlreadyExists(f"Resource '{resource.resource_name}' already exists.")
        return Response(_registry(resource))


class RegistryByName(RegistryView):
    """`…/schemaRegistries/{registry}`."""

    def get(self, request: Request, **address: Any) -> Response:
        """The registry."""
        return Response(_registry(resource_of(self.registry)))

    def delete(self, request: Request, **address: Any) -> Response:
        """Remove it with all that is in it."""
        delete_registry(
            name=self.resource.name, project=self.resource.project, location=self.resource.location, by=self.actor
        )
        return Response({})


def _registry(resource: RegistryResource) -> dict[str, Any]:
    return {"name": resource.resource_name, "contexts": [context_name(name) for name in resource.contexts]}


class Contexts(RegistryView):
    """`…/contexts`."""

    def get(self, request: Request, **address: Any) -> Any:
        """Their names."""
        return http_body(request, [context_name(name) for name in selectors.list_contexts(self.registry)])


class ContextByName(RegistryView):
    """`…/contexts/{context}`."""

    def get(self, request: Request, **address: Any) -> Response:
        """The context with its live subjects."""
        name = f"{self.resource.resource_name}/contexts/{context_name(self.context)}"
        if find_context(self.registry, self.context) is None:
            raise NotFound(f"Context '{name}' not found.", context=name)
        subjects = [parse_subject(text) for text in selectors.list_subjects(self.registry, context=self.context)]
        return Response({"name": name, "subjects": [subject.subject for subject in subjects]})


class Locations(GoogleView):
    """`/v1/projects/{project}/locations`."""

    def get(self, request: Request, project: str) -> Response:
        """Those with registries, and the server's own."""
        return Response({"locations": [_location(project, name) for name in list_locations(project)]})


class LocationByName(GoogleView):
    """`/v1/projects/{project}/locations/{location}`."""

    def get(self, request: Request, project: str, location: str) -> Response:
        """The location."""
        if location not in list_locations(project):
            raise NotFound(f"Location 'projects/{project[:80]}/locations/{location[:80]}' not found.")
        return Response(_location(project, location))


def _location(project: str, location: str) -> dict[str, str]:
    return {"name": f"projects/{project}/locations/{location}", "locationId": location, "displayName": location}


class Operations(GoogleView):
    """`…/operations`: every call is done when it answers, so there are none."""

    def get(self, request: Request, **address: Any) -> Response:
        """The empty list."""
        return Response({})


class OperationByName(GoogleView):
    """`…/operations/{operation}` and `…/operations/{operation}:cancel`."""

    def get(self, request: Request, project: str, location: str, operation: str) -> Response:
        """Not found."""
        raise NotFound(
            f"Operation 'projects/{project[:80]}/locations/{location[:80]}/operations/{operation[:80]}' not found."
        )

    delete = get

    def post(self, request: Request, project: str, location: str, operation: str) -> Response:
        """Cancel: not found either."""
        if not operation.endswith(":cancel"):
            raise AddressNotFound
        return self.get(request, project, location, operation.removesuffix(":cancel"))


class Nowhere(GoogleView):
    """Any other address below `/v1/projects/`."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Not found, whatever the method and whoever calls."""
        raise AddressNotFound
