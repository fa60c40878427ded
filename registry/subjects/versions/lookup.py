"""From names to rows: registries, contexts, subjects and versions. Other selectors and services start here."""

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
        resource_name = RegistryResource(project, location, name).resource_name
        raise RegistryNotFound(f"Registry '{resource_name[:300]}' not found.", registry=resource_name)
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
    locations = set(Registry.objects.filter(project=project).values_list("location", flat=True))
    if project == settings.DEFAULT_PROJECT:
        locations.add(settings.DEFAULT_LOCATION)
    return sorted(locations)


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({DEFAULT_CONTEXT, *names}))


_Model = TypeVar("_Model", bound=Model)


def columns_of(model: type[Model], alias: str) -> str:
    """All columns of a table that has that alias in the statement, in the order that `row_of` wants."""
    return ", ".join(f'"{alias}"."{column.column}"' for column in _columns(model))


def width_of(model: type[Model]) -> int:
    """How many columns those are."""
    return len(_columns(model))


def row_of(model: type[_Model], values: Sequence[Any]) -> _Model:
    """The instance that such a row stands for."""
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
    """The registry row; project, location and name default to the configured ones, a ResourceName says all three.

    One that the call has read already is given back. Raises RegistryNotFound.
    """
    if isinstance(name, Registry):
        return name
    row = _read(_REGISTRY, _named(name, project, location))
    if row is None:
        raise registry_not_found(name)
    return row_of(Registry, row)


def get_registries(names: Collection[str]) -> dict[str, Registry]:
    """The existing registries of the configured project by name; one query."""
    rows = Registry.objects.filter(
        name__in=set(names), project=settings.DEFAULT_PROJECT, location=settings.DEFAULT_LOCATION
    )
    return {row.name: row for row in rows}


def get_registry_and_subject(name: str, subject: SubjectName) -> tuple[Registry, SubjectName]:
    """The registry, and the subject that a call for this one means there: its config's alias, or itself; one query.

    Raises RegistryNotFound.
    """
    row = _read(_WITH_ALIAS, {**_named(name, "", ""), "context": subject.context, "subject": subject.subject})
    if row is None:
        raise registry_not_found(name)
    *columns, alias = row
    return row_of(Registry, columns), parse_subject(alias, context=subject.context) if alias else subject


#: who has a token, beside what `_WITH_ALIAS` reads
_CALL: Final = f"""SELECT caller.*, place.* FROM (VALUES (1)) AS one
LEFT JOIN LATERAL ({TOKEN}) AS caller ON true LEFT JOIN LATERAL ({_WITH_ALIAS}) AS place ON true"""  # noqa: S608


@dataclass(frozen=True)
class Call:
    """Who calls (None: nobody who may), and the registry (None: there is none) and the subject that the call means."""

    actor: Actor | None
    registry: Registry | None
    subject: SubjectName | None


def read_call(token: str, name: str, subject: SubjectName | None, *, door: str, origin: str) -> Call:
    """What `actor_of_token` and `get_registry_and_subject` give, in one query: every call asks for both."""
    sought = subject or SubjectName("", "")
    values = {**_named(name, "", ""), "context": sought.context, "subject": sought.subject, **token_values(token)}
    row = _read(_CALL, values)
    if row is None:
        return Call(actor_of_token(token, door=door, origin=origin), None, None)
    caller, (*columns, alias) = row[:TOKEN_WIDTH], row[TOKEN_WIDTH:]
    if caller[0] is None or columns[0] is None:
        return Call(None if caller[0] is None else actor_from(caller, door=door, origin=origin), None, None)
    return Call(
        actor=actor_from(caller, door=door, origin=origin),
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
        return None  # PostgreSQL's texts can't hold it, so no registry is called that
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


def registry_not_found(name: str) -> RegistryNotFound:
    """What is said of a registry of the configured project that isn't there."""
    key = name or settings.DEFAULT_REGISTRY
    return RegistryNotFound(f"Registry '{key}' not found.", registry=key)


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
        message = f"Subject '{subject.qualified}' not found."
        raise SubjectNotFound(message, registry=registry.name, subject=subject.qualified)
    return row


def among(names: Collection[SubjectName], at: str) -> Q:
    """The subjects of these names: as many conditions as there are contexts among them."""
    by_context: dict[str, set[str]] = {}
    for name in names:
        by_context.setdefault(name.context, set()).add(name.subject)
    condition = Q(pk__in=())
    for context, subjects in by_context.items():
        condition |= Q(**{f"{at}context__name": context, f"{at}name__in": subjects})
    return condition


def fits(registry: Registry, patterns: Collection[str], at: str) -> Q:
    """Whether one of the patterns fits the qualified name; `at` is how the rows get to the subject."""
    if not patterns:
        return Q(pk__in=())
    if "*" in patterns:
        return ~Q(pk__in=())
    parsed = [name_pattern(pattern) for pattern in sorted(set(patterns))]
    condition = among([name for pattern in parsed for name in _names(pattern)], at)
    wild = [pattern for pattern in parsed if pattern.name is None]
    if not wild:
        return condition
    # by its number: then the contexts needn't be joined to every name
    default = Subquery(Context.objects.filter(registry=registry, name=DEFAULT_CONTEXT).values("pk"))
    condition |= Q(likes_any(F(f"{at}name"), wild), **{f"{at}context": default})
    elsewhere = [pattern for pattern in wild if pattern.like[:1] in (":", "%", "_")]
    if elsewhere:
        qualified = Concat(Value(":"), f"{at}context__name", Value(":"), f"{at}name", output_field=TextField())
        condition |= ~Q(**{f"{at}context": default}) & likes_any(qualified, elsewhere)
    return condition


def _names(pattern: NamePattern) -> Iterable[SubjectName]:
    """The subject that a pattern without wildcards names, none for what can be no name."""
    if pattern.name is None or pattern.is_void:
        return ()
    try:
        name = parse_subject(pattern.name)
    except InvalidName:
        return ()
    return (name,) if name.qualified == pattern.name else ()
