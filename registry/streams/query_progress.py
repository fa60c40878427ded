"""What listeners report of running queries: runs, and batches as points per minute and per hour.

The times are the server's: an event says how long ago it was, so a clock that is wrong doesn't matter. Batches of a run
have ascending numbers, so a report that arrives twice counts once. Each query keeps a day of minutes, 90 days of hours
and its newest runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from registry.access.permission_filters import require_extent
from registry.access.roles import Actor
from registry.streams.models import ProgressPoint, QueryRun, StreamQuery

ACTION: Final = "query.report"
KINDS: Final = ("started", "batch", "running", "ended")
MAX_EVENTS: Final = 200  # of a report
MAX_OPERATORS: Final = 50  # of an event
MINUTE, HOUR = 60, 3600
#: seconds of a point → how long it is kept
KEPT: Final[Mapping[int, timedelta]] = {MINUTE: timedelta(days=1), HOUR: timedelta(days=90)}
OLDEST: Final = KEPT[HOUR] // timedelta(milliseconds=1)
MAX_RUNS: Final = 200  # of a query
_LARGEST: Final = 2**63 - 1
_NO_WATERMARK: Final = datetime(1970, 1, 1, tzinfo=UTC)
PointKey = tuple[int, datetime]
Points = dict[PointKey, ProgressPoint]
Event = Mapping[str, Any]


def report_progress(*, events: Sequence[Event], by: Actor) -> list[str]:
    """Store events of queries, oldest first; return the ids of queries that the actor can't report for or that no scan found.

    An event has `kind`, `query` and `run` (UUIDs), `age_ms`, `dropped`, and what its kind has: `name`, `error`, or
    `batch`, `rows`, `duration_ms`, `watermark`, `lag`, `operators`. Raises NotSignedIn, NotAllowed.
    """
    require_extent(by, ACTION)
    now = timezone.now()
    by_query: dict[str, list[Event]] = {}
    for event in events:
        by_query.setdefault(str(event["query"]), []).append(event)
    known = set()
    with transaction.atomic():
        queries = StreamQuery.objects.visible_to(by, ACTION).filter(query_id__in=by_query).order_by("pk")
        for query in queries.select_for_update(of=("self",)):
            known.add(query.query_id)
            _store(query, by_query[query.query_id], now)
            _remove_old(query, now)
    return sorted(set(by_query) - known)


def _store(query: StreamQuery, events: Sequence[Event], now: datetime) -> None:
    runs = {run.run_id: run for run in query.reported_runs.filter(run_id__in={event["run"] for event in events})}
    is_restart = query.reported_runs.exists()
    new: list[tuple[datetime, Event]] = []
    for event in events:
        at = now - timedelta(milliseconds=min(event["age_ms"], OLDEST))
        run = runs.get(event["run"])
        if run is None:
            run = runs[event["run"]] = _new_run(query, event["run"], at, is_restart=is_restart or bool(runs))
        if _note_event(run, event, at):
            new.append((at, event))
    fields = ["name", "started_at", "seen_at", "ended_at", "error", "last_batch", "dropped"]
    QueryRun.objects.bulk_create(
        runs.values(), update_conflicts=True, unique_fields=["query", "run_id"], update_fields=fields
    )
    _store_points(query, new, now)


def _new_run(query: StreamQuery, run: UUID, at: datetime, *, is_restart: bool) -> QueryRun:
    return QueryRun(query=query, run_id=run, is_restart=is_restart, started_at=at, seen_at=at)


def _note_event(run: QueryRun, event: Event, at: datetime) -> bool:
    """Change the run by an event; return whether it is a batch that wasn't counted."""
    run.seen_at = max(run.seen_at, at)
    run.dropped = max(run.dropped, event["dropped"])
    if event["kind"] == "started":
        run.started_at, run.name = min(run.started_at, at), event["name"]
    if event["kind"] == "ended" and run.ended_at is None:
        run.ended_at, run.error = at, event["error"]
    if event["kind"] != "batch" or event["batch"] <= run.last_batch:
        return False
    run.last_batch = event["batch"]
    return True


def _store_points(query: StreamQuery, batches: Sequence[tuple[datetime, Event]], now: datetime) -> None:
    keys = {key for at, _ in batches for key in _keys(at, now)}
    if not keys:
        return
    stored = query.progress.filter(at__gte=min(at for _, at in keys), at__lte=max(at for _, at in keys))
    points: Points = {(point.seconds, point.at): point for point in stored}
    for at, event in batches:
        for seconds, begin in _keys(at, now):
            point = points.setdefault((seconds, begin), ProgressPoint(query=query, seconds=seconds, at=begin))
            _add(point, event, at)
    ProgressPoint.objects.bulk_create(
        (points[key] for key in sorted(keys)),
        update_conflicts=True,
        unique_fields=["query", "seconds", "at"],
        update_fields=["batches", "rows", "duration_ms", "watermark_delay_ms", "lag", "operators"],
    )


def _keys(at: datetime, now: datetime) -> Iterable[PointKey]:
    for seconds, kept in KEPT.items():
        begin = datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)
        if begin > now - kept:
            yield seconds, begin


def _add(point: ProgressPoint, event: Event, at: datetime) -> None:
    point.batches += 1
    point.rows = min(point.rows + event["rows"], _LARGEST)
    point.duration_ms = max(point.duration_ms, event["duration_ms"])
    watermark = event["watermark"]
    if watermark is not None and watermark > _NO_WATERMARK:
        delay = max(0, int((at - watermark).total_seconds() * 1000))
        point.watermark_delay_ms = max(point.watermark_delay_ms or 0, delay)
    if event["lag"] is not None:
        point.lag = max(point.lag or 0, event["lag"])
    point.operators = _highest(point.operators, event["operators"])


def _highest(before: Sequence[Event], now: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the operators with the highest numbers of both; a query that was changed has its new ones alone."""
    if [operator["name"] for operator in before] != [operator["name"] for operator in now]:
        return [dict(operator) for operator in now]
    return [
        {"name": new["name"], **{key: max(old[key], new[key]) for key in ("rows", "bytes", "partitions")}}
        for old, new in zip(before, now, strict=True)
    ]


def _remove_old(query: StreamQuery, now: datetime) -> None:
    for seconds, kept in KEPT.items():
        query.progress.filter(seconds=seconds, at__lt=now - kept).delete()
    query.reported_runs.filter(seen_at__lt=now - KEPT[HOUR]).delete()
    query.reported_runs.filter(pk__in=query.reported_runs.values_list("pk", flat=True)[MAX_RUNS:]).delete()
