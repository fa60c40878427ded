"""From names to rows; the other selectors and the services of this app start here."""

from __future__ import annotations

from django.conf import settings

from registry.errors import RegistryNotFound, SubjectNotFound
from registry.subjects.models import Context, Registry, Subject
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName

__all__ = ["Registry", "find_context", "get_registry", "get_subject"]


def get_registry(name: str = "", *, project: str = "", location: str = "") -> Registry:
    """The registry row; project, location and name default to the configured ones. Raises RegistryNotFound."""
    wanted = name or settings.DEFAULT_REGISTRY
    row = Registry.objects.filter(
        name=wanted, project=project or settings.DEFAULT_PROJECT, location=location or settings.DEFAULT_LOCATION
    ).first()
    if row is None:
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
