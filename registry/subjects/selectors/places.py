"""From names to rows; the other selectors and the services of this app start here."""

from __future__ import annotations

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from registry.errors import RegistryNotFound, SubjectNotFound
from registry.subjects.models import Config, Context, Registry, Subject
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.resources import ResourceName

__all__ = ["Registry", "find_context", "get_registry", "get_registry_and_subject", "get_subject"]


def get_registry(name: str = "", *, project: str = "", location: str = "") -> Registry:
    """The registry row; project, location and name default to the configured ones, a ResourceName says all three.

    Raises RegistryNotFound.
    """
    return _found(_named(name, project, location).first(), name)


def get_registry_and_subject(name: str, subject: SubjectName) -> tuple[Registry, SubjectName]:
    """The registry, and the subject that a call for this one means there: its config's alias, or itself; one query.

    Raises RegistryNotFound.
    """
    config = Config.objects.filter(registry=OuterRef("pk"), context__name=subject.context, subject_name=subject.subject)
    row = _found(_named(name, "", "").annotate(alias=Subquery(config.values("alias")[:1])).first(), name)
    alias = row.alias  # type: ignore[attr-defined]  # annotated
    return row, parse_subject(alias, context=subject.context) if alias else subject


def _named(name: str, project: str, location: str) -> QuerySet[Registry]:
    if isinstance(name, ResourceName):
        project, location, name = name.parts
    if "\0" in name + project + location:
        return Registry.objects.none()  # PostgreSQL's texts can't hold it, so no registry is called that
    return Registry.objects.filter(
        name=name or settings.DEFAULT_REGISTRY,
        project=project or settings.DEFAULT_PROJECT,
        location=location or settings.DEFAULT_LOCATION,
    )


def _found(row: Registry | None, name: str) -> Registry:
    if row is None:
        wanted = name or settings.DEFAULT_REGISTRY
        raise RegistryNotFound(f"Registry '{wanted}' not found.", registry=wanted)
    return row


def find_context(registry: Registry, name: str = DEFAULT_CONTEXT) -> Context | None:
    """The context row, or None where nothing was ever put into it."""
    return Context.objects.filter(registry=registry, name=name).first()


def get_subject(registry: Registry, subject: SubjectName, *, deleted: bool = False) -> Subject:
    """The subject row, which has a live version (with `deleted`: any version). Raises SubjectNotFound."""
    rows = Subject.objects.filter(context__registry=registry, context__name=subject.context, name=subject.subject)
    rows = (
        rows.filter(versions__isnull=False)
        if deleted
        else rows.filter(versions__deleted_at=None, versions__isnull=False)
    )
    row = rows.select_related("context").first()
    if row is None:
        raise SubjectNotFound(f"Subject '{subject.qualified}' not found.", subject=subject.qualified)
    return row
