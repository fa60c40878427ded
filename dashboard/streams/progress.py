"""How a query runs, on its page: charts of what its listener reported, with its restarts marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.chart import MOST_SERIES, Chart, ChartStep, step_chart
from dashboard.components.translation import gettext_lazy as _
from registry.streams.progress_history import RANGES, PointInfo, QueryProgress, RunInfo, progress_of

LOOKS: Final = {
    "running": Look("ok", "circle-check", _("Running")),
    "silent": Look("care", "triangle-alert", _("Silent")),
    "ended": Look("unknown", "minus", _("Ended")),
    "failed": Look("breaks", "octagon-x", _("Failed")),
}
NAMES: Final = {"hour": _("Last hour"), "day": _("Last day"), "quarter": _("Last 90 days")}
Values = Callable[[PointInfo], Sequence[int]]


@dataclass(frozen=True, slots=True)
class RangeLink:
    """A range that can be shown; `current` is the shown one."""

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressPanel:
    """What the listener reported; `look` is None if it never did, and then `setup` has the lines that add it."""

    look: Look | None
    status: str
    since: datetime | None
    run: RunInfo | None
    restarts: int
    ranges: tuple[RangeLink, ...]
    charts: tuple[Chart, ...]
    setup: str


def progress_panel(request: HttpRequest, query_id: int) -> ProgressPanel:
    """Return the panel of a query that may be read, in the range of the address; two queries."""
    chosen = request.GET.get("range", "")
    within = chosen if chosen in RANGES else "day"
    progress = progress_of(query_id, within)
    here, now = reverse("ui:query", args=[query_id]), timezone.now()
    return ProgressPanel(
        look=LOOKS.get(progress.status),
        status=progress.status,
        since=progress.since,
        run=progress.runs[0] if progress.runs else None,
        restarts=sum(run.is_restart and run.started_at > now - RANGES[within][0] for run in progress.runs),
        ranges=tuple(RangeLink(str(NAMES[name]), f"{here}?range={name}#progress", name == within) for name in RANGES),
        charts=progress_charts(progress, within, f"{here}?range={within}&as=csv", now=now),
        setup=setup_lines(request.build_absolute_uri("/").rstrip("/")),
    )


def setup_lines(url: str) -> str:
    """Return the lines that add the listener to a job."""
    return "\n".join((
        "import os",
        "import schemadesk_spark",
        "",
        "spark.streams.addListener(",
        f'    schemadesk_spark.Listener(url="{url}", token=os.environ["SCHEMADESK_TOKEN"])',
        ")",
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Measure:
    """A chart: its texts, its series, and their values at a point."""

    key: str
    title: str
    note: str
    series: tuple[str, ...]
    values: Values


def progress_charts(progress: QueryProgress, within: str, csv_url: str, *, now: datetime) -> tuple[Chart, ...]:
    """Draw rows, durations, state, watermark delay and lag, leaving out what was never above zero."""
    steps = _steps(within, now)
    seconds = RANGES[within][2]
    marks = _marks(progress.runs, steps, seconds)
    drawn = []
    for measure in _measures(progress.points):
        totals = _totals(progress.points, measure, seconds)
        rows = [
            ChartStep(_label(at, within), totals.get(at, (0,) * len(measure.series)), tuple(marks.get(at, ())))
            for at in steps
        ]
        drawn.append(_chart(measure, rows, f"{csv_url}&{urlencode({'chart': measure.key})}"))
    return tuple(chart for chart in drawn if chart is not None)


def _chart(measure: _Measure, rows: Sequence[ChartStep], csv_url: str) -> Chart | None:
    peaks = [max(row.values[number] for row in rows) for number in range(len(measure.series))]
    parts = (f"{name}: {peak:,}" for name, peak in zip(measure.series, peaks, strict=True))
    return step_chart(
        rows=rows,
        series=measure.series,
        stacked=measure.key in ("state-rows", "state-memory"),
        key=measure.key,
        title=measure.title,
        note=measure.note,
        summary=gettext("Highest: %(parts)s.") % {"parts": ", ".join(parts)},
        csv_url=csv_url,
        step=gettext("Time (UTC)"),
        mark=gettext("restarted or failed"),
    )


def _steps(within: str, now: datetime) -> list[datetime]:
    """Return the beginnings of the columns, oldest first."""
    age, _, seconds = RANGES[within]
    last = _step_of(now, seconds).timestamp()
    count = int(age.total_seconds()) // seconds
    return [datetime.fromtimestamp(last - seconds * number, UTC) for number in reversed(range(count))]


def _step_of(at: datetime, seconds: int) -> datetime:
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)


def _label(at: datetime, within: str) -> str:
    return at.date().isoformat() if within == "quarter" else f"{at:%Y-%m-%d %H:%M}"


def _marks(runs: Sequence[RunInfo], steps: Sequence[datetime], seconds: int) -> dict[datetime, list[str]]:
    marks: dict[datetime, list[str]] = {}
    for run in reversed(runs):
        if run.is_restart:
            marks.setdefault(_step_of(run.started_at, seconds), []).append(gettext("restarted"))
        if run.ended_at is not None and run.error:
            text = gettext("failed: %(error)s") % {"error": run.error}
            marks.setdefault(_step_of(run.ended_at, seconds), []).append(text)
    return {at: list(dict.fromkeys(texts)) for at, texts in marks.items() if at in set(steps)}


def _measures(points: Sequence[PointInfo]) -> list[_Measure]:
    names = [operator.name for operator in max((p.operators for p in points), key=len, default=())]
    operators = tuple(
        gettext("operator %(number)s: %(name)s") % {"number": number, "name": name}
        for number, name in enumerate(names[:MOST_SERIES])
    )

    def of_operators(attribute: str, unit: int) -> Values:
        def values(point: PointInfo) -> Sequence[int]:
            known = [-(-getattr(operator, attribute) // unit) for operator in point.operators[: len(operators)]]
            return [*known, *(0 for _ in range(len(operators) - len(known)))]

        return values

    peak = gettext("Highest in each step")
    return [
        _Measure("rows", gettext("Rows a second"), gettext("Rows read, rounded up"), (gettext("rows"),), lambda p: (p.rows,)),
        _Measure("duration", gettext("Batch duration"), peak, (gettext("ms"),), lambda p: (p.duration_ms,)),
        _Measure("state-rows", gettext("State rows"), peak, operators, of_operators("rows", 1)),
        _Measure("state-memory", gettext("State in memory"), gettext("KiB that Spark reports, highest in each step"), operators, of_operators("bytes", 1024)),
        _Measure("watermark", gettext("Watermark delay"), peak, (gettext("seconds"),), lambda p: (-(-(p.watermark_delay_ms or 0) // 1000),)),
        _Measure("lag", gettext("Messages to be read"), gettext("Kafka’s latest offsets minus the query’s, highest in each step"), (gettext("messages"),), lambda p: (p.lag or 0,)),
    ]  # fmt: skip


def _totals(points: Sequence[PointInfo], measure: _Measure, seconds: int) -> Mapping[datetime, tuple[int, ...]]:
    """Return the values by step: rows are summed up and divided by the step's length, of others the highest counts."""
    totals: dict[datetime, tuple[int, ...]] = {}
    for point in points:
        at, values = _step_of(point.at, seconds), tuple(measure.values(point))
        before = totals.get(at, (0,) * len(values))
        join = int.__add__ if measure.key == "rows" else max
        totals[at] = tuple(join(old, new) for old, new in zip(before, values, strict=True))
    if measure.key != "rows":
        return totals
    return {at: tuple(-(-value // seconds) for value in values) for at, values in totals.items()}
