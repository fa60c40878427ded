"""From names to rows; the other selectors and the services of this app start here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.db import connection

from registry.errors import RegistryNotFound, SubjectNotFound
from registry.subjects.models import Context, Registry, Subject
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.rows import columns_of, row_of
from registry.subjects.selectors.resources import ResourceName

__all__ = ["Registry", "find_context", "get_registry", "get_registry_and_subject", "get_subject"]


_NAMED: Final = (
    "FROM subjects_registry r WHERE r.name = %(name)s AND r.project = %(project)s AND r.location = %(location)s"
)
_REGISTRY: Final = f"SELECT {columns_of(Registry, 'r')} {_NAMED}"
_WITH_ALIAS: Final = f"""SELECT {columns_of(Registry, "r")}, (
    SELECT x.alias FROM subjects_config x JOIN subjects_context c ON c.id = x.context_id
    WHERE x.registry_id = r.id AND c.name = %(context)s AND x.subject_name = %(subject)s) {_NAMED}"""  # noqa: S608


def get_registry(name: str | Registry = "", *, project: str = "", location: str = "") -> Registry:
    """The registry row; project, location and name default to the configured ones, a ResourceName says all three.

    One that the call has read already is given back. Raises RegistryNotFound.
    """
    if isinstance(name, Registry):
        return name
    row = _read(_REGISTRY, _named(name, project, location))
    if row is None:
        raise _not_found(name)
    return row_of(Registry, row)


def get_registry_and_subject(name: str, subject: SubjectName) -> tuple[Registry, SubjectName]:
    """The registry, and the subject that a call for this one means there: its config's alias, or itself; one query.

    Raises RegistryNotFound.
    """
    row = _read(_WITH_ALIAS, {**_named(name, "", ""), "context": subject.context, "subject": subject.subject})
    if row is None:
        raise _not_found(name)
    *columns, alias = row
    return row_of(Registry, columns), parse_subject(alias, context=subject.context) if alias else subject


def _named(name: str, project: str, location: str) -> Mapping[str, str]:
    if isinstance(name, ResourceName):
        project, location, name = name.parts
    return {
        "name": name or settings.DEFAULT_REGISTRY,
        "project": project or settings.DEFAULT_PROJECT,
        "location": location or settings.DEFAULT_LOCATION,
    }


def _read(statement: str, values: Mapping[str, str]) -> Sequence[Any] | None:
    if any("\0" in values[part] for part in ("name", "project", "location")):
        return None  # PostgreSQL's texts can't hold it, so no registry is called that
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: Sequence[Any] | None = cursor.fetchone()
    return found


def _not_found(name: str) -> RegistryNotFound:
    wanted = name or settings.DEFAULT_REGISTRY
    return RegistryNotFound(f"Registry '{wanted}' not found.", registry=wanted)


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
