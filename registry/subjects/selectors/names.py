"""Names of subjects, and the order in which lists of subjects and of their versions stand: by qualified name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Case, Exists, F, OuterRef, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Collate, Concat

from registry.subjects.models import Context, Registry, SchemaVersion, Subject, SubjectActivity
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName

if TYPE_CHECKING:
    from registry.subjects.selectors.visible import Visible


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
    here, order = by_qualified_name(registry, context)
    rows = Subject.objects.filter(here)
    if prefix:
        rows = rows.filter(name__startswith=prefix)
    is_live = Exists(SubjectActivity.objects.filter(subject=OuterRef("pk")))
    has_versions = Exists(SchemaVersion.objects.filter(subject=OuterRef("pk")))
    rows = rows.filter(has_versions, ~is_live) if deleted_only else rows.filter(has_versions if deleted else is_live)
    if visible is not None:
        rows = visible.narrowed(rows)
    found = rows.order_by(order).values_list("context__name", "name")
    return [SubjectName(*pair).qualified for pair in found[offset : None if limit is None else offset + limit]]


def by_qualified_name(registry: Registry, context: str | None, path: str = "") -> tuple[Q, Combinable]:
    """The condition on rows that they are of the registry and the context (None: of every one), and their order.

    `path` leads from the rows to the subject. Where only one context is meant, as in most registries, an index has the
    order already, and a page of a long list reads no more than itself; otherwise all names are sorted.
    """
    contexts = Context.objects.filter(registry=registry)
    if context is not None:
        contexts = contexts.filter(name=context)
    found = list(contexts.values_list("pk", flat=True)[:2])
    if len(found) == 1:
        return Q(**{f"{path}context": found[0]}), F(f"{path}name")
    return Q(**{f"{path}context__in": contexts}), qualified_name(path)


def qualified_name(path: str = "") -> Combinable:
    """The name as `SubjectName.qualified` writes it, for sorting by bytes."""
    context, name = f"{path}context__name", F(f"{path}name")
    whole = Case(
        When(**{context: DEFAULT_CONTEXT}, then=name),
        default=Concat(Value(":"), F(context), Value(":"), name),
        output_field=TextField(),
    )
    return Collate(whole, "C")
