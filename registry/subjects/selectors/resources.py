"""Registries by project, location and name, as resource names have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from registry.errors import RegistryNotFound
from registry.subjects.models import Config, Context, Registry
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject


class ResourceName(str):
    """`projects/P/locations/L/schemaRegistries/R` as a service's argument, from a door that checked the rights there.

    It has a type of its own because grants go by the name alone: a name that a caller sends never becomes one.
    """

    __slots__ = ()

    @property
    def parts(self) -> tuple[str, str, str]:
        """Project, location and name."""
        _, project, _, location, _, name = self.split("/")
        return project, location, name


@dataclass(frozen=True)
class RegistryResource:
    """A registry with the names of its contexts, `.` first."""

    project: str
    location: str
    name: str
    contexts: tuple[str, ...] = (DEFAULT_CONTEXT,)

    @property
    def resource_name(self) -> str:
        """`projects/P/locations/L/schemaRegistries/R`."""
        return f"projects/{self.project}/locations/{self.location}/schemaRegistries/{self.name}"

    @property
    def key(self) -> str:
        """What services and grants call it: the name alone in the configured project and location."""
        here = (self.project, self.location) == (settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION)
        return self.name if here else ResourceName(self.resource_name)


def resource_of(registry: Registry) -> RegistryResource:
    """A registry's row as a resource; one query."""
    names = Context.objects.filter(registry=registry).values_list("name", flat=True)
    return RegistryResource(registry.project, registry.location, registry.name, _sorted(names))


def find_registry(*, project: str, location: str, name: str) -> Registry:
    """The registry's row. Raises RegistryNotFound."""
    row = Registry.objects.filter(project=project, location=location, name=name).first()
    if row is None:
        wanted = RegistryResource(project, location, name).resource_name
        raise RegistryNotFound(f"Registry '{wanted[:300]}' not found.", registry=wanted)
    return row


def meant_subject(registry: Registry, subject: SubjectName) -> SubjectName:
    """The subject that a call for this one means: its config's alias, or itself; one query."""
    rows = Config.objects.filter(registry=registry, context__name=subject.context, subject_name=subject.subject)
    alias = rows.values_list("alias", flat=True).first()
    return parse_subject(alias, context=subject.context) if alias else subject


def list_resources(*, project: str, location: str) -> list[RegistryResource]:
    """The registries of a project and location by name; two queries."""
    rows = Registry.objects.filter(project=project, location=location).prefetch_related("contexts").order_by("name")
    return [
        RegistryResource(row.project, row.location, row.name, _sorted(context.name for context in row.contexts.all()))
        for row in rows
    ]


def list_locations(project: str) -> list[str]:
    """The locations of a project that have registries, and the configured one in the configured project, sorted."""
    found = set(Registry.objects.filter(project=project).values_list("location", flat=True))
    if project == settings.DEFAULT_PROJECT:
        found.add(settings.DEFAULT_LOCATION)
    return sorted(found)


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({DEFAULT_CONTEXT, *names}))
