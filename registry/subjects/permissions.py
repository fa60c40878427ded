"""What an actor may read of a registry, and the names of subjects, sorted and paged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from django.db import connection
from django.db.models import Case, Exists, F, OuterRef, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Collate, Concat

from registry.access.permission_filters import (
    READ,
    WHOLE,
    Extent,
    ExtentPart,
    VisibleQuerySet,
    extent_of,
    require_extent,
)
from registry.access.roles import Actor, may
from registry.errors import SchemaNotFound
from registry.formats.base import Reference
from registry.subjects.models import Context, Registry, Schema, SchemaReference, SchemaVersion, Subject, SubjectActivity
from registry.subjects.policy.effective_policy import OwnConfig
from registry.subjects.versions.one_version import get_schema
from registry.subjects.versions.parsed_schemas import missing_reference
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.versions.versions import (
    SchemaInfo,
    schemas_of_guid,
    statuses_of_schemas,
    versions_of_schema,
)


def list_subjects(
    registry: Registry,
    *,
    context: str | None = None,
    prefix: str = "",
    deleted: bool = False,
    deleted_only: bool = False,
    offset: int = 0,
    limit: int | None = None,
    visible: Visible | None = None,
) -> list[str]:
    """Return sorted qualified names of subjects with a live version; with `deleted` also the soft-deleted ones.

    `context` None means every context. `deleted_only` returns subjects that have only soft-deleted versions. `visible`
    keeps the readable ones. Reads no more than the page of `offset` and `limit`; two queries.
    """
    place, here, order = _place(registry, context)
    if place is not None and (visible is None or visible.is_whole):
        names = _names_in(
            registry, place, prefix, _DELETED if deleted_only else _STORED if deleted else _LIVE, offset, limit
        )
        return names if place == DEFAULT_CONTEXT else [SubjectName(place, name).qualified for name in names]
    rows = Subject.objects.filter(here)
    if prefix:
        rows = rows.filter(name__startswith=prefix)
    is_live = Exists(SubjectActivity.objects.filter(subject=OuterRef("pk")))
    has_versions = Exists(SchemaVersion.objects.filter(subject=OuterRef("pk")))
    rows = rows.filter(has_versions, ~is_live) if deleted_only else rows.filter(has_versions if deleted else is_live)
    if visible is not None:
        rows = visible.narrowed(rows)
    end = None if limit is None else offset + limit
    return [
        SubjectName(*pair).qualified for pair in rows.order_by(order).values_list("context__name", "name")[offset:end]
    ]


_STORED: Final = "EXISTS (SELECT FROM subjects_schemaversion v WHERE v.subject_id = s.id)"
_LIVE: Final = "EXISTS (SELECT FROM subjects_subjectactivity a WHERE a.subject_id = s.id)"
_DELETED: Final = f"{_STORED} AND NOT {_LIVE}"


def _names_in(
    registry: Registry, context: str, prefix: str, condition: str, offset: int, limit: int | None
) -> list[str]:
    """Return a page of the names in a context, in index order, without the ORM, which was slower."""
    values: dict[str, Any] = {"registry": registry.pk, "context": context, "offset": offset, "limit": limit}
    if prefix:
        values["prefix"] = f"{connection.ops.prep_for_like_query(prefix)}%"
        condition += " AND s.name LIKE %(prefix)s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT s.name FROM subjects_subject s WHERE s.context_id = (
                SELECT id FROM subjects_context WHERE registry_id = %(registry)s::bigint AND name = %(context)s::text)
            AND {condition} ORDER BY s.name LIMIT %(limit)s::bigint OFFSET %(offset)s::bigint""",  # noqa: S608
            values,
        )
        return [name for (name,) in cursor.fetchall()]


def by_qualified_name(registry: Registry, context: str | None, path: str = "") -> tuple[Q, Combinable]:
    """Return the condition on rows of the registry and context (None: all), and their order.

    `path` is the lookup path from the rows to the subject. With a single context, as in most registries, an index has
    the order already, and a page of a long list reads only itself; otherwise all names are sorted.
    """
    _, here, order = _place(registry, context, path)
    return here, order


#: at most two contexts: enough to distinguish one from several
_PLACES: Final = """SELECT id, name FROM subjects_context
WHERE registry_id = %(registry)s::bigint AND (%(context)s::text IS NULL OR name = %(context)s::text) LIMIT 2"""


def _place(registry: Registry, context: str | None, path: str = "") -> tuple[str | None, Q, Combinable]:
    """Return the only matching context's name, None for several; and the result of `by_qualified_name`."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACES, {"registry": registry.pk, "context": context})
        places = cursor.fetchall()
    if len(places) == 1:
        ((pk, name),) = places
        return name, Q(**{f"{path}context": pk}), F(f"{path}name")
    contexts = Context.objects.filter(registry=registry)
    if context is not None:
        contexts = contexts.filter(name=context)
    return None, Q(**{f"{path}context__in": contexts}), qualified_name(path)


def qualified_name(path: str = "") -> Combinable:
    """Return the name as `SubjectName.qualified` writes it, for sorting by bytes."""
    context, name = f"{path}context__name", F(f"{path}name")
    whole = Case(
        When(**{context: DEFAULT_CONTEXT}, then=name),
        default=Concat(Value(":"), F(context), Value(":"), name),
        output_field=TextField(),
    )
    return Collate(whole, "C")


_Rows = TypeVar("_Rows", bound=VisibleQuerySet[Any])


class Visible:
    """What an actor may read of a registry; if that is everything, nothing here needs a query."""

    def __init__(self, registry: Registry, by: Actor) -> None:
        self.registry = registry
        self._by = by
        parts = extent_of(by, READ).within(registry.name).parts
        extent = Extent(tuple(ExtentPart(patterns=part.patterns) for part in parts))
        self.extent = WHOLE if extent.is_whole else extent

    @property
    def is_whole(self) -> bool:
        """Whether all of the registry is readable."""
        return self.extent.is_whole

    def has_subject(self, subject: SubjectName) -> bool:
        """Return whether the subject is readable by its name, whether or not it exists."""
        return self.is_whole or may(self._by, READ, registry=self.registry.name, subject=subject.qualified)

    def settings(self, own: OwnConfig, scope: SubjectName | None) -> OwnConfig:
        """Return a scope's own settings, without the aliases of subjects that aren't readable."""
        hidden: dict[str, Any] = dict.fromkeys(self.hidden_aliases(vars(own), scope))
        return replace(own, **hidden)

    def hidden_aliases(self, settings: Mapping[str, Any], scope: SubjectName | None) -> list[str]:
        """Return the scope's settings that name an unreadable subject."""
        if self.is_whole or scope is None:
            return []
        aliases = {name: settings[name] for name in ("alias", "alias_for_deks") if settings.get(name)}
        named = {name: parse_subject(alias, context=scope.context) for name, alias in aliases.items()}
        return [name for name, subject in named.items() if not self.has_subject(subject)]

    def has_version(self, subject: SubjectName, version: int) -> bool:
        """Return whether the version is readable, by its subject or because a readable version refers to it."""
        if self.has_subject(subject):
            return True
        target = {
            "target__subject__context__registry": self.registry,
            "target__subject__context__name": subject.context,
            "target__subject__name": subject.subject,
            "target__version": version,
        }
        return self._leads_to(SchemaReference.objects.filter(**target).values_list("schema", flat=True))

    def has_schema(self, schema_pk: int) -> bool:
        """Return whether a readable version has the schema or refers to it."""
        return self.is_whole or self._leads_to([schema_pk])

    def narrowed(self, rows: _Rows) -> _Rows:
        """Return the rows of this registry whose subject is readable."""
        return rows.covered_by(self.extent)

    def _leads_to(self, schemas: Iterable[int]) -> bool:
        """Return whether a readable version has one of these schemas, or refers to one, directly or transitively."""
        visited: set[int] = set()
        level = set(schemas)
        while level:
            if self.narrowed(SchemaVersion.objects.filter(schema__in=level)).exists():
                return True
            visited |= level
            referring = SchemaReference.objects.filter(target__schema__in=level)
            level = set(referring.values_list("schema", flat=True)) - visited
        return False


def require_visible(registry: Registry, by: Actor) -> Visible:
    """Return what the actor may read of a registry. Raises NotSignedIn or NotAllowed if that is nothing."""
    require_extent(by, READ, registry=registry.name)
    return Visible(registry, by)


def visible_schema(visible: Visible, schema_id: int, *, context: str = DEFAULT_CONTEXT) -> SchemaInfo:
    """Return `get_schema` if it is readable. Raises SchemaNotFound."""
    return _readable(visible, [get_schema(visible.registry, schema_id, context=context)], schema_id)[0]


def visible_schemas_of_guid(visible: Visible, guid: str) -> list[SchemaInfo]:
    """Return the readable ones of `schemas_of_guid`. Raises SchemaNotFound."""
    return _readable(visible, schemas_of_guid(visible.registry, guid), guid[:80])


def visible_versions_of_schema(
    visible: Visible, schema_id: int, *, context: str = DEFAULT_CONTEXT, deleted: bool = False
) -> list[tuple[SubjectName, int]]:
    """Return `versions_of_schema` of readable subjects, not those only reached by references. Raises SchemaNotFound."""
    versions = versions_of_schema(visible.registry, schema_id, context=context, deleted=deleted)
    if not visible.is_whole:
        visible_schema(visible, schema_id, context=context)
    return [(subject, number) for subject, number in versions if visible.has_subject(subject)]


def require_references(visible: Visible, references: Sequence[Reference], *, context: str) -> None:
    """Raise InvalidReference for a reference to an unreadable version, as for one to a missing version.

    Otherwise a person who may register could read any schema by referring to it.
    """
    if visible.is_whole:
        return
    for reference in references:
        subject = parse_subject(reference.subject, context=context)
        if not visible.has_version(subject, reference.version):
            raise missing_reference(reference)


def _readable(visible: Visible, schemas: list[SchemaInfo], name: int | str) -> list[SchemaInfo]:
    """Return the readable ones, with statuses only of readable versions. Raises SchemaNotFound if none is readable."""
    if visible.is_whole:
        return schemas
    rows = {(info.context, info.schema_id): _row(visible.registry, info) for info in schemas}
    left = [info for info in schemas if visible.has_schema(rows[info.context, info.schema_id])]
    if not left:
        raise SchemaNotFound(f"Schema {name} not found", schema_id=name)
    marked = [rows[info.context, info.schema_id] for info in left if info.status is not None]
    versions = visible.narrowed(SchemaVersion.objects.all())
    statuses = statuses_of_schemas(marked, versions) if marked else {}
    return [replace(info, status=statuses.get(rows[info.context, info.schema_id])) for info in left]


def _row(registry: Registry, info: SchemaInfo) -> int:
    """Return the primary key of a definition."""
    return Schema.objects.values_list("pk", flat=True).get(
        context__registry=registry, context__name=info.context, schema_id=info.schema_id
    )
