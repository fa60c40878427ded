"""The list of subjects in order: by name, or in tiers ranked by a column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate

from registry.errors import InvalidInput
from registry.subjects.listing.filters import SubjectNarrowing, narrowed
from registry.subjects.listing.listing import SubjectRow, SubjectRows, counted, rows_of
from registry.subjects.models import Context, Registry, SchemaVersion, Subject, SubjectActivity
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

_NAME_CURSOR: Final = re.compile(r"(?P<skipped>[0-9]{1,9})~(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True)
class _NamePosition:
    """A row's position: its name, and how many rows preceded it when the page was made."""

    name: SubjectName
    skipped: int

    @classmethod
    def of(cls, cursor: str) -> Self:
        """Parse a cursor. Raises InvalidInput, InvalidName."""
        match = _NAME_CURSOR.fullmatch(cursor)
        if match is None:
            raise InvalidInput("The cursor is not from the list of subjects by name. Start without a cursor.")
        return cls(parse_subject(match["name"]), int(match["skipped"]))

    @property
    def cursor(self) -> str:
        """The position as text, for a page's address."""
        return f"{self.skipped}~{self.name.qualified}"


def subject_rows_by_name(
    registry: Registry,
    narrowing: SubjectNarrowing,
    *,
    deleted: bool = False,
    after: str = "",
    before: str = "",
    limit: int = 50,
    total: int | None = None,
    is_counted: bool = True,
) -> SubjectRows:
    """Return a page of the subject list by name, the default context first; a constant number of queries.

    `total` is an earlier count; with `is_counted` False nothing is counted. `deleted` selects the subjects that have
    only soft-deleted versions. `after` and `before` are cursors of another page. Raises InvalidInput, InvalidName for
    an invalid cursor.
    """
    rows = narrowed(_subjects(registry, deleted=deleted), registry, narrowing, at="", deleted=deleted)
    edge = _NamePosition.of(before or after) if before or after else None
    page = _rows_by_name(rows, registry, edge.name if edge else None, limit=limit + 1, backwards=bool(before))
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
        before="" if is_first or not page else _NamePosition(_name(page[0]), skipped).cursor,
        after="" if is_last or not page else _NamePosition(_name(page[-1]), skipped + len(page) - 1).cursor,
    )


def _subjects(registry: Registry, *, deleted: bool) -> QuerySet[Subject]:
    rows = Subject.objects.filter(
        context__in=list(Context.objects.filter(registry=registry).values_list("pk", flat=True))
    )
    if not deleted:
        return rows.filter(activity__registry_id=registry.pk)
    return rows.filter(activity=None).filter(Exists(SchemaVersion.objects.filter(subject=OuterRef("pk"))))


def _rows_by_name(
    rows: QuerySet[Subject], registry: Registry, edge: SubjectName | None, *, limit: int, backwards: bool = False
) -> list[Subject]:
    """Return the rows beyond an edge: those of its context, in index order, then those of the contexts beyond."""
    contexts = dict(Context.objects.filter(registry=registry).values_list("name", "pk"))
    here = edge.context if edge else min(contexts, default="")
    beyond = [pk for name, pk in contexts.items() if (name < here if backwards else name > here)]
    inside = rows.filter(context=contexts.get(here))
    if edge is not None:
        inside = inside.filter(**{"name__lt" if backwards else "name__gt": edge.subject})
    subjects = list(inside.order_by(_order("name", backwards)).select_related("context")[:limit])
    if len(subjects) < limit and beyond:
        rest = rows.filter(context__in=beyond).select_related("context")
        ordered = rest.order_by(*(_order(name, backwards) for name in ("context__name", "name")))
        subjects += list(ordered[: limit - len(subjects)])
    return subjects


def _order(name: str, backwards: bool) -> OrderBy:
    """Order by code points, as Python does: the database's own order differs and depends on the machine."""
    by = Collate(F(name), "C")
    return by.desc() if backwards else by.asc()


def _lines(registry: Registry, page: Sequence[Subject], *, deleted: bool) -> list[SubjectRow]:
    if deleted:
        rows = [SubjectActivity(subject=subject, registry_id=registry.pk, live_versions=0) for subject in page]
        return rows_of(registry, rows, deleted=True)
    activities = SubjectActivity.objects.in_bulk([subject.pk for subject in page])
    return rows_of(registry, [_with(activities[subject.pk], subject) for subject in page if subject.pk in activities])


def _with(row: SubjectActivity, subject: Subject) -> SubjectActivity:
    row.subject = subject
    return row


def _name(subject: Subject) -> SubjectName:
    return SubjectName(subject.context.name, subject.name)


CHANGED_AT: Final = "changed_at"
LIVE_VERSIONS: Final = "live_versions"
#: the most keys that are remembered, so that no tier searches for them again
_MOST_KEYS: Final = 5_000
_TIER_CURSOR: Final = re.compile(
    r"(?P<tier>[0-9]{1,2})\.(?P<value>[0-9]{1,17})\.(?P<subject>[0-9]{1,18})~(?P<skipped>[0-9]{1,9})"
)
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _TierPosition:
    """A row's position: its tier, its value of the column, its id, and how many rows precede it."""

    tier: int
    value: Any
    subject: int
    skipped: int = 0

    @classmethod
    def of(cls, cursor: str, column: str) -> Self:
        """Parse a cursor. Raises InvalidInput."""
        match = _TIER_CURSOR.fullmatch(cursor)
        if match is None:
            raise InvalidInput("The cursor is not from the list of subjects in this order. Start without a cursor.")
        value: Any = int(match["value"])
        if column == CHANGED_AT:
            value = _BEGINNING + timedelta(microseconds=value)
        elif value >= 2**31:
            raise InvalidInput("The cursor is not from the list of subjects in this order. Start without a cursor.")
        return cls(int(match["tier"]), value, int(match["subject"]), int(match["skipped"]))

    def cursor(self, skipped: int) -> str:
        """Return the position as text, for a page's address."""
        value = self.value
        if isinstance(value, datetime):
            value = (value - _BEGINNING) // timedelta(microseconds=1)
        return f"{self.tier}.{value}.{self.subject}~{skipped}"


def subject_rows_in_tiers(
    registry: Registry,
    narrowing: SubjectNarrowing,
    *,
    tiers: Sequence[Q] = (),
    column: str = CHANGED_AT,
    after: str = "",
    before: str = "",
    limit: int = 50,
    total: int | None = None,
    is_counted: bool = True,
) -> SubjectRows:
    """Return a page of the list: tier by tier, the column's greatest value first, and rows of no tier last.

    At most one query per tier plus five. `tiers` are conditions on SubjectActivity. `total` is an earlier count; with
    `is_counted` False nothing is counted. Raises InvalidInput for an invalid cursor.
    """
    rows = narrowed(SubjectActivity.objects.filter(registry_id=registry.pk), registry, narrowing, at="subject__")
    edge = _TierPosition.of(before or after, column) if before or after else None
    positions = _rows_by_tier(rows, tiers, column, edge, limit=limit + 1, backwards=bool(before))
    is_whole, positions = len(positions) <= limit, positions[:limit]
    if before:
        positions.reverse()
        skipped = 0 if is_whole or edge is None else max(1, edge.skipped - len(positions))
        is_first, is_last = is_whole, False
    else:
        skipped = edge.skipped + 1 if edge else 0
        is_first, is_last = edge is None, is_whole
    return SubjectRows(
        rows=rows_of(registry, _in_order([position.subject for position in positions])),
        total=counted(rows, total, len(positions), skipped, is_whole=is_first and is_last, is_counted=is_counted),
        skipped=skipped,
        before="" if is_first or not positions else positions[0].cursor(skipped),
        after="" if is_last or not positions else positions[-1].cursor(skipped + len(positions) - 1),
    )


def few_subject_keys(registry: Registry, narrowing: SubjectNarrowing) -> tuple[int, ...] | None:
    """Return the ids of the subjects that match; None if there are many, or if filtering is cheap.

    At most one query.
    """
    if not narrowing.is_expensive:
        return None
    rows = narrowed(SubjectActivity.objects.filter(registry_id=registry.pk), registry, narrowing, at="subject__")
    keys = tuple(rows.order_by().values_list("subject_id", flat=True)[: _MOST_KEYS + 1])
    return keys if len(keys) <= _MOST_KEYS else None


def _rows_by_tier(
    rows: QuerySet[SubjectActivity],
    tiers: Sequence[Q],
    column: str,
    edge: _TierPosition | None,
    *,
    limit: int,
    backwards: bool,
) -> list[_TierPosition]:
    """Return the rows beyond an edge: those of its tier, then those of the tiers beyond."""
    order = (column, "-subject_id") if backwards else (f"-{column}", "subject_id")
    start = edge.tier if edge else 0
    numbers = range(min(start, len(tiers)), -1, -1) if backwards else range(start, len(tiers) + 1)
    positions: list[_TierPosition] = []
    for number in numbers:
        inside = rows
        for higher in tiers[:number]:
            inside = inside.exclude(higher)
        if number < len(tiers):
            inside = inside.filter(tiers[number])
        if edge is not None and edge.tier == number:
            inside = inside.filter(_beyond(edge, column, backwards=backwards))
        read = inside.order_by(*order).values_list(column, "subject_id")[: limit - len(positions)]
        positions += [_TierPosition(number, value, subject) for value, subject in read]
        if len(positions) >= limit:
            break
    return positions


def _beyond(edge: _TierPosition, column: str, *, backwards: bool) -> Q:
    """Return the condition for rows after, or before, a position; the first part lets an index scan start there."""
    side, other = ("gt", "lt") if backwards else ("lt", "gt")
    later = Q(**{f"{column}__{side}": edge.value}) | Q(**{f"subject_id__{other}": edge.subject})
    return Q(**{f"{column}__{side}e": edge.value}) & later


def _in_order(subjects: Sequence[int]) -> list[SubjectActivity]:
    activities = SubjectActivity.objects.select_related("subject__context").in_bulk(subjects)
    return [activities[pk] for pk in subjects if pk in activities]
