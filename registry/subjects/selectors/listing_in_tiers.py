"""The list of subjects in tiers: all of the first, then of the second and so on, each in the order of one column.

A subject stands in the first tier whose condition it fulfils. No tier is sorted beyond the page that is read of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from django.db.models import Q, QuerySet

from registry.errors import InvalidInput
from registry.subjects.models import Registry, SubjectActivity
from registry.subjects.selectors.listing import SubjectRows, counted, rows_of
from registry.subjects.selectors.narrowing import Narrowing, narrowed

CHANGED_AT: Final = "changed_at"
LIVE_VERSIONS: Final = "live_versions"
#: so many are remembered by their numbers, so that no tier looks for them again
_MOST_FOUND: Final = 5_000
_CURSOR: Final = re.compile(
    r"(?P<tier>[0-9]{1,2})\.(?P<value>[0-9]{1,17})\.(?P<subject>[0-9]{1,18})~(?P<skipped>[0-9]{1,9})"
)
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Place:
    """Where a row stands: its tier, its value of the column, its number, and how many were before it on its page."""

    tier: int
    value: Any
    subject: int
    skipped: int = 0

    @classmethod
    def of(cls, cursor: str, column: str) -> Self:
        """The place that a cursor names. Raises InvalidInput."""
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise InvalidInput("The cursor is none that the list of subjects in this order gave: begin without one.")
        value: Any = int(found["value"])
        if column == CHANGED_AT:
            value = _BEGINNING + timedelta(microseconds=value)
        elif value >= 2**31:
            raise InvalidInput("The cursor is none that the list of subjects in this order gave: begin without one.")
        return cls(int(found["tier"]), value, int(found["subject"]), int(found["skipped"]))

    def cursor(self, skipped: int) -> str:
        """The place as text, for the address of a page."""
        value = self.value
        if isinstance(value, datetime):
            value = (value - _BEGINNING) // timedelta(microseconds=1)
        return f"{self.tier}.{value}.{self.subject}~{skipped}"


def subject_rows_in_tiers(
    registry: Registry,
    given: Narrowing,
    *,
    tiers: Sequence[Q] = (),
    column: str = CHANGED_AT,
    after: str = "",
    before: str = "",
    limit: int = 50,
    total: int | None = None,
    is_counted: bool = True,
) -> SubjectRows:
    """A page of the list, the greatest value of the column first in each tier and what fits no tier last.

    At most a query a tier, and five. `tiers` are conditions on SubjectActivity; `total` is for who has counted already, and
    without `is_counted` nobody does.
    Raises InvalidInput for a cursor that is none.
    """
    rows = narrowed(SubjectActivity.objects.filter(registry_id=registry.pk), registry, given, at="subject__")
    edge = _Place.of(before or after, column) if before or after else None
    places = _read(rows, tiers, column, edge, limit=limit + 1, backwards=bool(before))
    is_whole, places = len(places) <= limit, places[:limit]
    if before:
        places.reverse()
        skipped = 0 if is_whole or edge is None else max(1, edge.skipped - len(places))
        is_first, is_last = is_whole, False
    else:
        skipped = edge.skipped + 1 if edge else 0
        is_first, is_last = edge is None, is_whole
    return SubjectRows(
        rows=rows_of(registry, _in_order([place.subject for place in places])),
        total=counted(rows, total, len(places), skipped, is_whole=is_first and is_last, is_counted=is_counted),
        skipped=skipped,
        before="" if is_first or not places else places[0].cursor(skipped),
        after="" if is_last or not places else places[-1].cursor(skipped + len(places) - 1),
    )


def few_found(registry: Registry, given: Narrowing) -> tuple[int, ...] | None:
    """The numbers of the subjects that the filters leave; None where these are many, or found without looking at all.

    At most one query.
    """
    if not given.is_dear:
        return None
    rows = narrowed(SubjectActivity.objects.filter(registry_id=registry.pk), registry, given, at="subject__")
    keys = tuple(rows.order_by().values_list("subject_id", flat=True)[: _MOST_FOUND + 1])
    return keys if len(keys) <= _MOST_FOUND else None


def _read(
    rows: QuerySet[SubjectActivity],
    tiers: Sequence[Q],
    column: str,
    edge: _Place | None,
    *,
    limit: int,
    backwards: bool,
) -> list[_Place]:
    """The rows beyond an edge: those of its tier, then those of the tiers beyond."""
    order = (column, "-subject_id") if backwards else (f"-{column}", "subject_id")
    start = edge.tier if edge else 0
    numbers = range(min(start, len(tiers)), -1, -1) if backwards else range(start, len(tiers) + 1)
    found: list[_Place] = []
    for number in numbers:
        inside = rows
        for higher in tiers[:number]:
            inside = inside.exclude(higher)
        if number < len(tiers):
            inside = inside.filter(tiers[number])
        if edge is not None and edge.tier == number:
            inside = inside.filter(_beyond(edge, column, backwards=backwards))
        read = inside.order_by(*order).values_list(column, "subject_id")[: limit - len(found)]
        found += [_Place(number, value, subject) for value, subject in read]
        if len(found) >= limit:
            break
    return found


def _beyond(edge: _Place, column: str, *, backwards: bool) -> Q:
    """What comes after a place, or before it; the first condition is the one that an index can begin at."""
    side, other = ("gt", "lt") if backwards else ("lt", "gt")
    later = Q(**{f"{column}__{side}": edge.value}) | Q(**{f"subject_id__{other}": edge.subject})
    return Q(**{f"{column}__{side}e": edge.value}) & later


def _in_order(subjects: Sequence[int]) -> list[SubjectActivity]:
    found = SubjectActivity.objects.select_related("subject__context").in_bulk(subjects)
    return [found[pk] for pk in subjects if pk in found]
