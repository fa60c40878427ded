"""Lookup of registries, contexts, subjects and versions by name. Other selectors and services start here."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.conf import settings
from django.db import connection
from django.db.models import F, Field, JSONField, Model, Q, Subquery, TextField, Value
from django.db.models.functions import Concat

from registry.access.actors import TOKEN, TOKEN_WIDTH, actor_from, actor_of_token, token_values
from registry.access.name_patterns import NamePattern, likes_any, name_pattern
from registry.access.roles import Actor
from registry.errors import InvalidName, RegistryNotFound, SubjectNotFound
from registry.subjects.models import Config, Context, Registry, Subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

__all__ = ["Registry", "find_context", "get_registry", "get_registry_and_subject", "get_subject"]


class ResourceName(str):
    """`projects/P/locations/L/schemaRegistries/R` as a service's argument, from an API that checked permissions.

    It is a type of its own because grants match the plain name: a name from a caller never becomes one.
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
        """The name in services and grants: the plain name in the configured project and location."""
        here = (self.project, self.location) == (settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION)
        return self.name if here else ResourceName(self.resource_name)


def resource_of(registry: Registry) -> RegistryResource:
    """Return a registry's row as a resource; one query."""
    names = Context.objects.filter(registry=registry).values_list("name", flat=True)
    return RegistryResource(registry.project, registry.location, registry.name, _sorted(names))


def find_registry(*, project: str, location: str, name: str) -> Registry:
    """Return the registry's row. Raises RegistryNotFound."""
    row = Registry.objects.filter(project=project, location=location, name=name).first()
    if row is None:
        resource_name = RegistryResource(project, location, name).resource_name
        raise RegistryNotFound(f"Registry '{resource_name[:300]}' not found.", registry=resource_name)
    return row


def resolve_alias(registry: Registry, subject: SubjectName) -> SubjectName:
    """Resolve a subject's alias in its config, if it has one; one query."""
    rows = Config.objects.filter(registry=registry, context__name=subject.context, subject_name=subject.subject)
    alias = rows.values_list("alias", flat=True).first()
    return parse_subject(alias, context=subject.context) if alias else subject


def list_resources(*, project: str, location: str) -> list[RegistryResource]:
    """Return the registries of a project and location by name; two queries."""
    rows = Registry.objects.filter(project=project, location=location).prefetch_related("contexts").order_by("name")
    return [
        RegistryResource(row.project, row.location, row.name, _sorted(context.name for context in row.contexts.all()))
        for row in rows
    ]


def list_locations(project: str) -> list[str]:
    """Return a project's locations with registries, plus the configured one in the configured project, sorted."""
    locations = set(Registry.objects.filter(project=project).values_list("location", flat=True))
    if project == settings.DEFAULT_PROJECT:
        locations.add(settings.DEFAULT_LOCATION)
    return sorted(locations)


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({DEFAULT_CONTEXT, *names}))


_Model = TypeVar("_Model", bound=Model)


def columns_of(model: type[Model], alias: str) -> str:
    """Return all columns of a table with that alias, in the order that `row_of` expects."""
    return ", ".join(f'"{alias}"."{column.column}"' for column in _columns(model))


def width_of(model: type[Model]) -> int:
    """Return the number of these columns."""
    return len(_columns(model))


def row_of(model: type[_Model], values: Sequence[Any]) -> _Model:
    """Return the model instance for a row of these columns."""
    columns = _columns(model)
    decoded = [
        json.loads(value) if isinstance(column, JSONField) and value is not None else value
        for column, value in zip(columns, values, strict=True)
    ]
    return model.from_db(connection.alias, [column.attname for column in columns], decoded)


def _columns(model: type[Model]) -> Sequence[Field[Any, Any]]:
    return model._meta.concrete_fields


_NAMED: Final = (
    "FROM subjects_registry r WHERE r.name = %(name)s AND r.project = %(project)s AND r.location = %(location)s"
)
_REGISTRY: Final = f"SELECT {columns_of(Registry, 'r')} {_NAMED}"
_WITH_ALIAS: Final = f"""SELECT {columns_of(Registry, "r")}, (
    SELECT x.alias FROM subjects_config x JOIN subjects_context c ON c.id = x.context_id
    WHERE x.registry_id = r.id AND c.name = %(context)s AND x.subject_name = %(subject)s) {_NAMED}"""  # noqa: S608


def get_registry(name: str | Registry = "", *, project: str = "", location: str = "") -> Registry:
    """Return the registry's row; project, location and name default to the configured ones.

    A ResourceName has all three; a row is returned unchanged. Raises RegistryNotFound.
    """
    if isinstance(name, Registry):
        return name
    row = _read(_REGISTRY, _named(name, project, location))
    if row is None:
        raise registry_not_found(name)
    return row_of(Registry, row)


def get_registries(names: Collection[str]) -> dict[str, Registry]:
    """Return the existing registries of the configured project by name; one query."""
    rows = Registry.objects.filter(
        name__in=set(names), project=settings.DEFAULT_PROJECT, location=settings.DEFAULT_LOCATION
    )
    return {row.name: row for row in rows}


def get_registry_and_subject(name: str, subject: SubjectName) -> tuple[Registry, SubjectName]:
    """Return the registry, and the subject with its config's alias resolved; one query.

    Raises RegistryNotFound.
    """
    row = _read(_WITH_ALIAS, {**_named(name, "", ""), "context": subject.context, "subject": subject.subject})
    if row is None:
        raise registry_not_found(name)
    *columns, alias = row
    return row_of(Registry, columns), parse_subject(alias, context=subject.context) if alias else subject


#: the owner of a token, together with what `_WITH_ALIAS` reads
_CALL: Final = f"""SELECT caller.*, place.* FROM (VALUES (1)) AS one
LEFT JOIN LATERAL ({TOKEN}) AS caller ON true LEFT JOIN LATERAL ({_WITH_ALIAS}) AS place ON true"""  # noqa: S608


@dataclass(frozen=True)
class Call:
    """The caller (None: nobody with access), the registry (None: not found) and the subject, its alias resolved."""

    actor: Actor | None
    registry: Registry | None
    subject: SubjectName | None


def read_call(token: str, name: str, subject: SubjectName | None, *, channel: str, origin: str) -> Call:
    """Combine `actor_of_token` and `get_registry_and_subject` in one query, because every call needs both."""
    sought = subject or SubjectName("", "")
    values = {**_named(name, "", ""), "context": sought.context, "subject": sought.subject, **token_values(token)}
    row = _read(_CALL, values)
    if row is None:
        return Call(actor_of_token(token, channel=channel, origin=origin), None, None)
    caller, (*columns, alias) = row[:TOKEN_WIDTH], row[TOKEN_WIDTH:]
    if caller[0] is None or columns[0] is None:
        return Call(None if caller[0] is None else actor_from(caller, channel=channel, origin=origin), None, None)
    return Call(
        actor=actor_from(caller, channel=channel, origin=origin),
        registry=row_of(Registry, columns),
        subject=parse_subject(alias, context=sought.context) if alias else subject,
    )


def _named(name: str, project: str, location: str) -> Mapping[str, str]:
    if isinstance(name, ResourceName):
        project, location, name = name.parts
    return {
        "name": name or settings.DEFAULT_REGISTRY,
        "project": project or settings.DEFAULT_PROJECT,
        "location": location or settings.DEFAULT_LOCATION,
    }


def _read(statement: str, values: Mapping[str, Any]) -> Sequence[Any] | None:
    if any("\0" in values[part] for part in ("name", "project", "location")):
        return None  # PostgreSQL can't store it, so no registry has that name
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


def registry_not_found(name: str) -> RegistryNotFound:
    """Return the error for an unknown registry of the configured project."""
    key = name or settings.DEFAULT_REGISTRY
    return RegistryNotFound(f"Registry '{key}' not found.", registry=key)


def find_context(registry: Registry, name: str = DEFAULT_CONTEXT) -> Context | None:
    """Return the context's row, or None if nothing was ever added to it."""
    return Context.objects.filter(registry=registry, name=name).first()


def get_subject(registry: Registry, subject: SubjectName, *, deleted: bool = False) -> Subject:
    """Return the subject's row if it has a live version (with `deleted`: any version). Raises SubjectNotFound."""
    rows = Subject.objects.filter(context__registry=registry, context__name=subject.context, name=subject.subject)
    rows = (
        rows.filter(versions__isnull=False)
        if deleted
        else rows.filter(versions__deleted_at=None, versions__isnull=False)
    )
    row = rows.select_related("context").first()
    if row is None:
        message = f"Subject '{subject.qualified}' not found."
        raise SubjectNotFound(message, registry=registry.name, subject=subject.qualified)
    return row


def among(names: Collection[SubjectName], at: str) -> Q:
    """Return the condition for these subjects, with one part per context."""
    by_context: dict[str, set[str]] = {}
    for name in names:
        by_context.setdefault(name.context, set()).add(name.subject)
    condition = Q(pk__in=())
    for context, subjects in by_context.items():
        condition |= Q(**{f"{at}context__name": context, f"{at}name__in": subjects})
    return condition


def fits(registry: Registry, patterns: Collection[str], at: str) -> Q:
    """Return the condition that a pattern matches the qualified name; `at` is the lookup path to the subject."""
    if not patterns:
        return Q(pk__in=())
    if "*" in patterns:
        return ~Q(pk__in=())
    parsed = [name_pattern(pattern) for pattern in sorted(set(patterns))]
    condition = among([name for pattern in parsed for name in _names(pattern)], at)
    wild = [pattern for pattern in parsed if pattern.name is None]
    if not wild:
        return condition
    # by primary key, so that contexts needn't be joined to every name
    default = Subquery(Context.objects.filter(registry=registry, name=DEFAULT_CONTEXT).values("pk"))
    condition |= Q(likes_any(F(f"{at}name"), wild), **{f"{at}context": default})
    elsewhere = [pattern for pattern in wild if pattern.like[:1] in (":", "%", "_")]
    if elsewhere:
        qualified = Concat(Value(":"), f"{at}context__name", Value(":"), f"{at}name", output_field=TextField())
        condition |= ~Q(**{f"{at}context": default}) & likes_any(qualified, elsewhere)
    return condition


def _names(pattern: NamePattern) -> Iterable[SubjectName]:
    """Return the subject of a pattern without wildcards; none if it isn't a valid name."""
    if pattern.name is None or pattern.is_void:
        return ()
    try:
        name = parse_subject(pattern.name)
    except InvalidName:
        return ()
    return (name,) if name.qualified == pattern.name else ()
