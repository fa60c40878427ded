"""How a query ran, as its listener reported it: its runs, its points, and whether it still reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from django.utils import timezone

from registry.access.roles import Actor
from registry.errors import InvalidInput
from registry.frozen_rows import row_info
from registry.streams.models import ProgressPoint, QueryRun
from registry.streams.query_progress import HOUR, MINUTE
from registry.streams.selectors import get_query

Status = Literal["none", "running", "silent", "ended", "failed"]
SILENT: Final = timedelta(minutes=10)  # a listener reports each minute, and waits up to five after an outage
#: what can be shown → (how far it goes back, the points that it is made of, the seconds of a column)
RANGES: Final = {
    "hour": (timedelta(hours=1), MINUTE, MINUTE),
    "day": (timedelta(days=1), MINUTE, 15 * MINUTE),
    "quarter": (timedelta(days=90), HOUR, 24 * HOUR),
}


@dataclass(frozen=True)
class RunInfo:
    """A run. `ended_at` is None while it isn't known to have ended, `error` "" if it didn't fail."""

    run_id: UUID
    name: str
    is_restart: bool
    started_at: datetime
    seen_at: datetime
    ended_at: datetime | None
    error: str
    last_batch: int
    dropped: int


@dataclass(frozen=True)
class OperatorProgress:
    """The state of an operator: its highest numbers. `bytes` are of memory."""

    name: str
    rows: int
    bytes: int
    partitions: int


@dataclass(frozen=True)
class PointInfo:
    """The batches that ended in the `seconds` from `at`: their rows, and the highest of the other numbers."""

    at: datetime
    seconds: int
    batches: int
    rows: int
    duration_ms: int
    watermark_delay_ms: int | None
    lag: int | None
    operators: tuple[OperatorProgress, ...]


@dataclass(frozen=True)
class QueryProgress:
    """What is known in a range. `since` is when the status began; for a silent query, when it reported last."""

    status: Status
    since: datetime | None
    runs: tuple[RunInfo, ...]
    points: tuple[PointInfo, ...]


def get_progress(query_id: int, *, within: str = "day", by: Actor) -> QueryProgress:
    """Return how a query ran in a range (see RANGES): its newest run and those of the range, newest first.

    Raises InvalidInput for an unknown range, NotSignedIn, NotAllowed, NotFound.
    """
    if within not in RANGES:
        raise InvalidInput(f"There is no range {within[:40]!r}. The ranges are {', '.join(RANGES)}.", field="range")
    return progress_of(get_query(query_id, by=by).id, within)


def progress_of(query_id: int, within: str) -> QueryProgress:
    """Return the same for a query that may be read; two queries."""
    age, seconds, _ = RANGES[within]
    now = timezone.now()
    runs = [row_info(RunInfo, row) for row in QueryRun.objects.filter(query=query_id)]
    status: Status = _status(runs[0], now) if runs else "none"
    points = ProgressPoint.objects.filter(
        query=query_id, seconds=seconds, at__gt=now - age - timedelta(seconds=seconds)
    )
    shown = tuple(run for number, run in enumerate(runs) if not number or run.seen_at > now - age)
    return QueryProgress(status, _since(status, runs), shown, tuple(map(_point, points)))


def _status(run: RunInfo, now: datetime) -> Status:
    if run.ended_at is not None:
        return "failed" if run.error else "ended"
    return "silent" if now - run.seen_at > SILENT else "running"


def _since(status: Status, runs: Sequence[RunInfo]) -> datetime | None:
    if not runs:
        return None
    run = runs[0]
    return run.ended_at or (run.seen_at if status == "silent" else run.started_at)


def _point(row: ProgressPoint) -> PointInfo:
    operators: list[dict[str, Any]] = row.operators
    return row_info(PointInfo, row, operators=tuple(OperatorProgress(**operator) for operator in operators))
