"""What of a registry an actor may read, and the names of subjects, sorted and page by page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from django.db import connection
from django.db.models import Case, Exists, F, OuterRef, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Collate, Concat

from registry.access.permission_filters import READ, Extent, ExtentPart, VisibleQuerySet, extent_of, require_extent
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
    VersionInfo,
    schemas_of_guid,
    standings_of_schemas,
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
    """Qualified names, sorted: those with a live version; with `deleted` also the soft-deleted ones.

    `context` None means every context. `deleted_only` gives those that have soft-deleted versions and no live one.
    `visible` leaves what may be read. No more is read than the page of them that `offset` and `limit` name; two queries.
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
    """A page of the names in a context, whose index has their order. It is read without the ORM, which took longer."""
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
    """The condition on rows that they are of the registry and the context (None: of every one), and their order.

    `path` leads from the rows to the subject. Where only one context is meant, as in most registries, an index has the
    order already, and a page of a long list reads no more than itself; otherwise all names are sorted.
    """
    _, here, order = _place(registry, context, path)
    return here, order


#: two contexts at most: one alone is told from several
_PLACES: Final = """SELECT id, name FROM subjects_context
WHERE registry_id = %(registry)s::bigint AND (%(context)s::text IS NULL OR name = %(context)s::text) LIMIT 2"""


def _place(registry: Registry, context: str | None, path: str = "") -> tuple[str | None, Q, Combinable]:
    """The name of the only context that is meant, None for several; and what `by_qualified_name` gives."""
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
    """The name as `SubjectName.qualified` writes it, for sorting by bytes."""
    context, name = f"{path}context__name", F(f"{path}name")
    whole = Case(
        When(**{context: DEFAULT_CONTEXT}, then=name),
        default=Concat(Value(":"), F(context), Value(":"), name),
        output_field=TextField(),
    )
    return Collate(whole, "C")


_Rows = TypeVar("_Rows", bound=VisibleQuerySet[Any])


class Visible:
    """What of a registry somebody may read; for whoever may read all of it nothing here takes a query."""

    def __init__(self, registry: Registry, by: Actor) -> None:
        self.registry = registry
        self._by = by
        parts = extent_of(by, READ).within(registry.name).parts
        self._extent = Extent(tuple(ExtentPart(patterns=part.patterns) for part in parts))

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the registry."""
        return self._extent.is_whole

    def has_subject(self, subject: SubjectName) -> bool:
        """Whether the subject is readable by its name, be it there or not."""
        return self.is_whole or may(self._by, READ, registry=self.registry.name, subject=subject.qualified)

    def settings(self, own: OwnConfig, scope: SubjectName | None) -> OwnConfig:
        """What a scope sets, without the aliases of subjects that aren't readable."""
        hidden: dict[str, Any] = dict.fromkeys(self.hidden_aliases(vars(own), scope))
        return replace(own, **hidden)

    def hidden_aliases(self, settings: Mapping[str, Any], scope: SubjectName | None) -> list[str]:
        """The settings of a scope that name a subject which isn't readable."""
        if self.is_whole or scope is None:
            return []
        aliases = {name: settings[name] for name in ("alias", "alias_for_deks") if settings.get(name)}
        named = {name: parse_subject(alias, context=scope.context) for name, alias in aliases.items()}
        return [name for name, subject in named.items() if not self.has_subject(subject)]

    def has_version(self, subject: SubjectName, version: int) -> bool:
        """Whether the version is readable, by its subject or because a readable one refers to it."""
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
        """Whether a readable version has the schema, or refers to it."""
        return self.is_whole or self._leads_to([schema_pk])

    def narrowed(self, rows: _Rows) -> _Rows:
        """The rows of this registry whose subject is readable."""
        return rows.covered_by(self._extent)

    def _leads_to(self, schemas: Iterable[int]) -> bool:
        """Whether a readable version has one of these schemas, or leads to one through references."""
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
    """What somebody may read of a registry. Raises NotSignedIn, NotAllowed where it is nothing."""
    require_extent(by, READ, registry=registry.name)
    return Visible(registry, by)


def visible_schema(visible: Visible, schema_id: int, *, context: str = DEFAULT_CONTEXT) -> SchemaInfo:
    """`get_schema`, as far as it is readable. Raises SchemaNotFound."""
    return _readable(visible, [get_schema(visible.registry, schema_id, context=context)], schema_id)[0]


def visible_schemas_of_guid(visible: Visible, guid: str) -> list[SchemaInfo]:
    """`schemas_of_guid`, as far as they are readable. Raises SchemaNotFound."""
    return _readable(visible, schemas_of_guid(visible.registry, guid), guid[:80])


def visible_versions_of_schema(
    visible: Visible, schema_id: int, *, context: str = DEFAULT_CONTEXT, deleted: bool = False
) -> list[VersionInfo]:
    """`versions_of_schema`, those of readable subjects; none where only a reference leads there. Raises SchemaNotFound."""
    versions = versions_of_schema(visible.registry, schema_id, context=context, deleted=deleted)
    if not visible.is_whole:
        visible_schema(visible, schema_id, context=context)
    return [info for info in versions if visible.has_subject(info.subject)]


def require_references(visible: Visible, references: Sequence[Reference], *, context: str) -> None:
    """Raise InvalidReference for a reference to what isn't readable, as for one to what isn't there.

    Otherwise whoever may register would read any schema by referring to it.
    """
    if visible.is_whole:
        return
    for reference in references:
        subject = parse_subject(reference.subject, context=context)
        if not visible.has_version(subject, reference.version):
            raise missing_reference(reference)


def _readable(visible: Visible, schemas: list[SchemaInfo], name: int | str) -> list[SchemaInfo]:
    """Those that are readable, with what stands of readable versions alone. Raises SchemaNotFound where none is."""
    if visible.is_whole:
        return schemas
    rows = {(info.context, info.schema_id): _row(visible.registry, info) for info in schemas}
    left = [info for info in schemas if visible.has_schema(rows[info.context, info.schema_id])]
    if not left:
        raise SchemaNotFound(f"Schema {name} not found", schema_id=name)
    marked = [rows[info.context, info.schema_id] for info in left if info.standing is not None]
    versions = visible.narrowed(SchemaVersion.objects.all())
    standings = standings_of_schemas(marked, versions) if marked else {}
    return [replace(info, standing=standings.get(rows[info.context, info.schema_id])) for info in left]


def _row(registry: Registry, info: SchemaInfo) -> int:
    """The number of a definition's row."""
    return Schema.objects.values_list("pk", flat=True).get(
        context__registry=registry, context__name=info.context, schema_id=info.schema_id
    )
