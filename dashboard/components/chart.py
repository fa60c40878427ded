"""Charts over time, drawn as SVG: a column a day or other step, with marks, and the same numbers as a table and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from typing import Final

from django.http import HttpResponse
from django.utils import formats
from django.utils.translation import gettext

from registry.audit.selectors import csv_cell

DAYS: Final = 30
# The drawing is stretched to its place; labels stand outside, so that they are legible at any width.
STEP, HEIGHT = 10, 100
MOST_SERIES: Final = 6  # distinct fills in the stylesheet; further series are summed up in the last
GAP: Final = 0.2  # of a day's width


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A part of a column; `fill` is the number of its series."""

    x: float
    width: float
    y: float
    height: float
    fill: int


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """A step: its bars from the bottom up, and its numbers as text."""

    x: float
    width: float
    bars: tuple[ChartBar, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A marked step: its position and what happened."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class ChartStep:
    """The numbers of a day or of another step, by series."""

    label: str
    values: tuple[int, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawn chart, STEP wide for each of its steps and HEIGHT high.

    `numbers` label the left axis at its top, middle and bottom, `ends` the lower one at its ends and middle. `rows` are
    the steps that have a number or a mark, the newest first; `summary` describes the chart in a sentence. `step` and
    `mark` name what a row and a mark are.
    """

    key: str
    title: str
    note: str
    summary: str
    series: tuple[str, ...]
    columns: tuple[ChartColumn, ...]
    marks: tuple[ChartMark, ...]
    ends: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[ChartStep, ...]
    csv_url: str
    step: str
    mark: str

    height = HEIGHT

    @property
    def width(self) -> int:
        """The width of the drawing."""
        return len(self.columns) * STEP


def first_day(today: date) -> date:
    """Return the first of the days that a chart shows."""
    return today - timedelta(days=DAYS - 1)


def day_chart(
    *,
    key: str,
    title: str,
    note: str,
    series: Sequence[str],
    values: Mapping[date, Sequence[int]],
    today: date,
    marks: Mapping[date, Sequence[str]] | None = None,
    csv_url: str = "",
    stacked: bool = True,
) -> Chart | None:
    """Draw the values of the last DAYS days, one per series and day; None if all are zero.

    Series are stacked if their sum means something, else side by side. Those beyond MOST_SERIES become "others".
    """
    names, folded = _folded(series, values)
    days = [first_day(today) + timedelta(days=number) for number in range(DAYS)]
    rows = [
        ChartStep(day.isoformat(), tuple(folded.get(day, (0,) * len(names))), tuple((marks or {}).get(day, ())))
        for day in days
    ]
    texts = {"key": key, "title": title, "note": note, "csv_url": csv_url, "summary": _summary(names, rows)}
    texts |= {"step": gettext("Day"), "mark": gettext("registered")}
    return step_chart(rows=rows, series=names, stacked=stacked, **texts)


def step_chart(*, rows: Sequence[ChartStep], series: Sequence[str], stacked: bool, **texts: str) -> Chart | None:
    """Draw a column for each step, oldest first, with at most MOST_SERIES series; None if all are zero.

    `texts` are those of a Chart.
    """
    top = _round_up(max(sum(row.values) if stacked else max(row.values, default=0) for row in rows))
    if not top:
        return None
    shown = tuple(row for row in reversed(rows) if any(row.values) or row.marks)
    return Chart(
        **texts,
        series=tuple(series),
        columns=tuple(_column(row, n * STEP, HEIGHT / top, series, stacked=stacked) for n, row in enumerate(rows)),
        marks=tuple(ChartMark(n * STEP, ", ".join(row.marks)) for n, row in enumerate(rows) if row.marks),
        ends=tuple(row.label for row in (rows[0], rows[len(rows) // 2], rows[-1])),
        numbers=tuple(_number(number) for number in (top, top // 2, 0)),
        rows=shown,
    )


def chart_csv(chart: Chart | None, name: str, *, step: str = "day") -> HttpResponse:
    """Return the numbers of a chart as a CSV file, oldest first; `step` names the first column."""
    response = HttpResponse(
        content_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}.csv"'}
    )
    writer = csv.writer(response)
    writer.writerow([step, *(csv_cell(name) for name in (chart.series if chart else ())), "marks"])
    for row in reversed(chart.rows if chart else ()):
        writer.writerow([row.label, *row.values, csv_cell("; ".join(row.marks))])
    return response


def _folded(series: Sequence[str], values: Mapping[date, Sequence[int]]) -> tuple[list[str], dict[date, list[int]]]:
    if len(series) <= MOST_SERIES:
        return list(series), {day: list(row) for day, row in values.items()}
    kept = MOST_SERIES - 1
    names = [*series[:kept], gettext("%(number)s others") % {"number": len(series) - kept}]
    return names, {day: [*row[:kept], sum(row[kept:])] for day, row in values.items()}


def _column(row: ChartStep, x: int, scale: float, names: Sequence[str], *, stacked: bool) -> ChartColumn:
    left, width = x + STEP * GAP / 2, STEP * (1 - GAP)
    share = width if stacked else width / len(names)
    bars = tuple(
        ChartBar(
            x=round(left if stacked else left + share * fill, 2),
            width=round(share, 2),
            y=round(HEIGHT - top * scale, 2),
            height=round(value * scale, 2),
            fill=fill,
        )
        for fill, (value, top) in enumerate(
            zip(row.values, accumulate(row.values) if stacked else row.values, strict=True)
        )
        if value
    )
    parts = [f"{name}: {_number(value)}" for name, value in zip(names, row.values, strict=True) if value]
    text = "\n".join([row.label, *(parts or [gettext("none")]), *row.marks])
    return ChartColumn(x, STEP, bars, text)


def _round_up(number: int) -> int:
    """Return the next greater number with one digit and zeros, even, so that its half is whole; 0 for 0."""
    if not number:
        return 0
    unit = int("1".ljust(len(str(number)), "0"))
    top = -(-number // unit) * unit
    return top if top % 2 == 0 else top + 1 if top == 1 else top + unit


def _summary(names: Sequence[str], rows: Sequence[ChartStep]) -> str:
    totals = [sum(row.values[number] for row in rows) for number in range(len(names))]
    parts = ", ".join(f"{name}: {_number(total)}" for name, total in zip(names, totals, strict=True))
    return gettext("Last %(days)s days. %(parts)s.") % {"days": DAYS, "parts": parts}


def _number(value: int) -> str:
    return formats.number_format(value, use_l10n=True, force_grouping=True)
