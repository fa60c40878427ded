"""The list of subjects by name, with a live version or with none left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate

from registry.errors import InvalidInput
from registry.subjects.models import Context, Registry, SchemaVersion, Subject, SubjectActivity
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.listing import SubjectRow, SubjectRows, counted, rows_of
from registry.subjects.selectors.narrowing import Narrowing, narrowed

_CURSOR: Final = re.compile(r"(?P<skipped>[0-9]{1,9})~(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True)
class _Place:
    """Where a row stands: its name, and how many were before it when the page was made."""

    name: SubjectName
    skipped: int

    @classmethod
    def of(cls, cursor: str) -> Self:
        """The place that a cursor names. Raises InvalidInput, InvalidName."""
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise InvalidInput("The cursor is none that the list of subjects by name gave: begin without one.")
        return cls(parse_subject(found["name"]), int(found["skipped"]))

    @property
    def cursor(self) -> str:
        """The place as text, for the address of a page."""
        return f"{self.skipped}~{self.name.qualified}"


def subject_rows_by_name(
    registry: Registry,
    given: Narrowing,
    *,
    deleted: bool = False,
    after: str = "",
    before: str = "",
    limit: int = 50,
    total: int | None = None,
    is_counted: bool = True,
) -> SubjectRows:
    """A page of the subject list by name, the default context first; a constant number of queries.

    `total` is for who has counted already; without `is_counted` nobody does.

    `deleted` are the subjects of which nothing but soft-deleted versions is left. `after` and `before` are cursors of
    another page. Raises InvalidInput, InvalidName for a cursor that is none.
    """
    rows = narrowed(_subjects(registry, deleted=deleted), registry, given, at="", deleted=deleted)
    edge = _Place.of(before or after) if before or after else None
    page = _read(rows, registry, edge.name if edge else None, limit=limit + 1, backwards=bool(before))
    is_whole = len(page) <= limit
    if before:
        is_first, is_last, page = is_whole, False, page[:limit][::-1]
        skipped = 0 if is_first or edge is None else max(1, edge.skipped - len(page))
    else:
        is_first, is_last, page = edge is None, is_whole, page[:limit]
        skipped = edge.skipped + 1 if edge else 0
    return SubjectRows(
        rows=_lines(registry, page, deleted=deleted),
        total=counted(rows, total, len(page), skipped, is_whole=is_first and is_last, is_counted=is_counted),
        skipped=skipped,
        before="" if is_first or not page else _Place(_name(page[0]), skipped).cursor,
        after="" if is_last or not page else _Place(_name(page[-1]), skipped + len(page) - 1).cursor,
    )


def _subjects(registry: Registry, *, deleted: bool) -> QuerySet[Subject]:
    rows = Subject.objects.filter(
        context__in=list(Context.objects.filter(registry=registry).values_list("pk", flat=True))
    )
    if not deleted:
        return rows.filter(activity__registry_id=registry.pk)
    return rows.filter(activity=None).filter(Exists(SchemaVersion.objects.filter(subject=OuterRef("pk"))))


def _read(
    rows: QuerySet[Subject], registry: Registry, edge: SubjectName | None, *, limit: int, backwards: bool = False
) -> list[Subject]:
    """The rows beyond an edge: those of its context, which the index has in order, then those of the contexts beyond."""
    contexts = dict(Context.objects.filter(registry=registry).values_list("name", "pk"))
    here = edge.context if edge else min(contexts, default="")
    beyond = [pk for name, pk in contexts.items() if (name < here if backwards else name > here)]
    inside = rows.filter(context=contexts.get(here))
    if edge is not None:
        inside = inside.filter(**{"name__lt" if backwards else "name__gt": edge.subject})
    found = list(inside.order_by(_order("name", backwards)).select_related("context")[:limit])
    if len(found) < limit and beyond:
        rest = rows.filter(context__in=beyond).select_related("context")
        ordered = rest.order_by(*(_order(name, backwards) for name in ("context__name", "name")))
        found += list(ordered[: limit - len(found)])
    return found


def _order(name: str, backwards: bool) -> OrderBy:
    """By the characters' numbers, as Python compares: the database's own order is another, and differs by machine."""
    by = Collate(F(name), "C")
    return by.desc() if backwards else by.asc()


def _lines(registry: Registry, page: Sequence[Subject], *, deleted: bool) -> list[SubjectRow]:
    if deleted:
        rows = [SubjectActivity(subject=each, registry_id=registry.pk, live_versions=0) for each in page]
        return rows_of(registry, rows, deleted=True)
    found = SubjectActivity.objects.in_bulk([each.pk for each in page])
    return rows_of(registry, [_with(found[each.pk], each) for each in page if each.pk in found])


def _with(row: SubjectActivity, subject: Subject) -> SubjectActivity:
    row.subject = subject
    return row


def _name(subject: Subject) -> SubjectName:
    return SubjectName(subject.context.name, subject.name)
