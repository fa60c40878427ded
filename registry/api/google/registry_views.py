"""Google's API: registries, contexts, locations and operations; compatibility types and modes."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import NotFound as AddressNotFound
from rest_framework.request import Request
from rest_framework.response import Response

from registry.access.roles import may
from registry.api.google.base import AlreadyExists, GoogleView, RegistryView, actor_at
from registry.api.google.serializers import (
    COMPATIBILITY_TYPES,
    CONFIG,
    MODE,
    MODE_TYPES,
    REGISTRY,
    check_subject,
    context_name,
    enum,
    flag,
    http_body,
    read,
)
from registry.errors import InvalidCompatibility, InvalidInput, InvalidMode, NotFound
from registry.subjects import selectors
from registry.subjects.models import MODES_WITH_IDS
from registry.subjects.policy.registries import delete_registry, ensure_registry
from registry.subjects.services import delete_config, delete_mode, set_config, set_mode
from registry.subjects.versions.lookup import (
    RegistryResource,
    find_context,
    list_locations,
    list_resources,
    resource_of,
)
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


class Registries(GoogleView):
    """`…/schemaRegistries`."""

    def get(self, request: Request, project: str, location: str) -> Response:
        """Return the registries that the caller may read."""
        registries = list_resources(project=project, location=location)
        readable = [item for item in registries if may(actor_at(self.actor, item), "schema.read", registry=item.name)]
        return Response({"schemaRegistries": [_registry(item) for item in readable]} if readable else {})

    def post(self, request: Request, project: str, location: str) -> Response:
        """Create a registry with its default context; it exists when the call returns."""
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
        """Return the registry."""
        return Response(_registry(resource_of(self.registry)))

    def delete(self, request: Request, **address: Any) -> Response:
        """Delete the registry with its contents."""
        delete_registry(
            name=self.resource.name, project=self.resource.project, location=self.resource.location, by=self.actor
        )
        return Response({})


def _registry(resource: RegistryResource) -> dict[str, Any]:
    return {"name": resource.resource_name, "contexts": [context_name(name) for name in resource.contexts]}


class Contexts(RegistryView):
    """`…/contexts`."""

    def get(self, request: Request, **address: Any) -> Any:
        """Return the contexts' names."""
        return http_body(request, [context_name(name) for name in selectors.list_contexts(self.registry)])


class ContextByName(RegistryView):
    """`…/contexts/{context}`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the context with its live subjects."""
        name = f"{self.resource.resource_name}/contexts/{context_name(self.context)}"
        if find_context(self.registry, self.context) is None:
            raise NotFound(f"Context '{name}' not found.", context=name)
        subjects = [parse_subject(text) for text in selectors.list_subjects(self.registry, context=self.context)]
        return Response({"name": name, "subjects": [subject.subject for subject in subjects]})


class Locations(GoogleView):
    """`/v1/projects/{project}/locations`."""

    def get(self, request: Request, project: str) -> Response:
        """Return the locations with registries, and the server's own."""
        return Response({"locations": [_location(project, name) for name in list_locations(project)]})


class LocationByName(GoogleView):
    """`/v1/projects/{project}/locations/{location}`."""

    def get(self, request: Request, project: str, location: str) -> Response:
        """Return the location."""
        if location not in list_locations(project):
            raise NotFound(f"Location 'projects/{project[:80]}/locations/{location[:80]}' not found.")
        return Response(_location(project, location))


def _location(project: str, location: str) -> dict[str, str]:
    return {"name": f"projects/{project}/locations/{location}", "locationId": location, "displayName": location}


class Operations(GoogleView):
    """`…/operations`: every call is finished when it answers, so there are no operations."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the empty list."""
        return Response({})


class OperationByName(GoogleView):
    """`…/operations/{operation}` and `…/operations/{operation}:cancel`."""

    def get(self, request: Request, project: str, location: str, operation: str) -> Response:
        """Raise NotFound."""
        raise NotFound(
            f"Operation 'projects/{project[:80]}/locations/{location[:80]}/operations/{operation[:80]}' not found."
        )

    delete = get

    def post(self, request: Request, project: str, location: str, operation: str) -> Response:
        """Raise NotFound for a cancellation too."""
        if not operation.endswith(":cancel"):
            raise AddressNotFound
        return self.get(request, project, location, operation.removesuffix(":cancel"))


class Nowhere(GoogleView):
    """Any other path below `/v1/projects/`."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise AddressNotFound for every method and caller."""
        raise AddressNotFound


class PolicyView(RegistryView):
    """A call about the config or mode of the URL's scope."""

    follows_alias = False

    def named_scope(self) -> SubjectName | None:
        """Return the scope to change. Raises InvalidName for a subject that this dialect couldn't create."""
        return check_subject(self.scope) if self.scope and self.scope.subject else self.scope


class Config(PolicyView):
    """`…/config[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the effective config of a registry; a subject's or context's own unless `defaultToGlobal`."""
        if self.scope is None or flag(request, "defaultToGlobal"):
            config = selectors.effective_config(self.registry, self.scope)
            return self._config_response(config.level, config.normalize)
        own = self.visible.settings(selectors.own_config(self.registry, self.scope), self.scope)
        return self._config_response(own.level, own.normalize, own.alias)

    def put(self, request: Request, **address: Any) -> Response:
        """Set the config: missing properties are unset for a subject, and stay unchanged for a registry."""
        body = read(request, CONFIG)
        scope, registry_key = self.named_scope(), self.resource.key
        level, normalize = body.get("compatibility"), body.get("normalize")
        if scope is not None:
            values: dict[str, Any] = {"level": level, "normalize": normalize}
            left_out = [name for name, value in values.items() if value is None]
            own = set_config(registry=registry_key, subject=scope, by=self.actor, unset=left_out, **values)
            own = self.visible.settings(own, scope)
            return self._config_response(own.level, own.normalize, own.alias)
        if level is None and normalize is None:
            raise InvalidCompatibility("compatibility is missing.", field="compatibility")
        set_config(registry=registry_key, subject=None, by=self.actor, level=level, normalize=normalize)
        config = selectors.effective_config(self.registry)
        return self._config_response(config.level, config.normalize)

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset the config, so that it is inherited; returns the old one."""
        old = delete_config(registry=self.resource.key, subject=self.scope, by=self.actor)
        old = self.visible.settings(old, self.scope)
        return self._config_response(old.level, old.normalize, old.alias)

    def _config_response(self, level: str | None, normalize: bool | None, alias: str | None = None) -> Response:
        values: dict[str, Any] = {}
        if level is not None:
            values["compatibility"] = enum(self.request, level, COMPATIBILITY_TYPES)
        if normalize is not None:
            values["normalize"] = normalize
        if alias:
            values["alias"] = alias
        return Response(values)


class Mode(PolicyView):
    """`…/mode[/{subject}]`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the effective mode of a registry; a subject's or context's own unless `defaultToGlobal`."""
        if self.scope is None or flag(request, "defaultToGlobal"):
            return self._mode_response(selectors.effective_mode(self.registry, self.scope).mode)
        return self._mode_response(selectors.own_mode(self.registry, self.scope))

    def put(self, request: Request, **address: Any) -> Response:
        """Set the mode."""
        mode = read(request, MODE).get("mode", MODE_TYPES[0])
        if mode == MODE_TYPES[0]:
            raise InvalidMode(
                "mode is missing or NONE; send READONLY, READWRITE or IMPORT, or delete the mode to inherit it.",
                field="mode",
            )
        registry_key = self.resource.key
        return self._mode_response(
            set_mode(registry=registry_key, subject=self.named_scope(), by=self.actor, mode=mode)
        )

    def delete(self, request: Request, **address: Any) -> Response:
        """Unset the mode, so that it is inherited; returns the old one."""
        return self._mode_response(delete_mode(registry=self.resource.key, subject=self.scope, by=self.actor))

    def _mode_response(self, mode: str) -> Response:
        # READONLY_OVERRIDE and FORWARD don't exist in this dialect; it shows the modes with the same effect.
        shown = mode if mode in MODE_TYPES else ("IMPORT" if mode in MODES_WITH_IDS else "READONLY")
        return Response({"mode": enum(self.request, shown, MODE_TYPES)})
