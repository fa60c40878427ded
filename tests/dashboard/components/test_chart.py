"""Charts by day: what is drawn agrees with the numbers, whatever they are."""

from __future__ import annotations

import csv
import io
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.components.chart import DAYS, HEIGHT, MOST_SERIES, chart_csv, day_chart, first_day

TODAY = date(2026, 3, 1)
numbers = st.integers(min_value=0, max_value=10**12)


@given(
    rows=st.lists(st.lists(numbers, min_size=9, max_size=9), min_size=1, max_size=DAYS),
    series=st.integers(min_value=1, max_value=9),
    stacked=st.booleans(),
)
def test_bars_are_as_high_as_their_numbers_and_none_leaves_the_chart(
    rows: list[list[int]], series: int, stacked: bool
) -> None:
    values = {TODAY - timedelta(days=n): row[:series] for n, row in enumerate(rows)}
    names = [f"s{n}" for n in range(series)]
    chart = day_chart(key="k", title="t", note="", series=names, values=values, today=TODAY, stacked=stacked)
    if not any(map(sum, values.values())):
        assert chart is None
        return
    assert chart is not None
    assert len(chart.columns) == DAYS
    assert len(chart.series) == min(series, MOST_SERIES)
    assert sum(sum(row.values) for row in chart.rows) == sum(map(sum, values.values())), "others are summed up"
    bars = [bar for column in chart.columns for bar in column.bars]
    assert all(bar.y >= -0.02 and bar.y + bar.height <= HEIGHT + 0.02 for bar in bars)
    scale = HEIGHT / _top(chart.numbers[0])
    for row, column in zip(sorted(chart.rows, key=lambda row: row.label), _drawn(chart), strict=True):
        assert [bar.height for bar in column.bars] == [
            pytest.approx(value * scale, abs=0.01) for value in row.values if value
        ]
    for column in chart.columns:
        assert all(column.x <= bar.x and bar.x + bar.width <= column.x + column.width + 0.05 for bar in column.bars)


def _top(label: str) -> int:
    return int("".join(letter for letter in label if letter.isdigit()))


def _drawn(chart):
    return [column for column in chart.columns if column.bars]


def test_the_axis_ends_at_a_round_number_above_the_highest_column() -> None:
    for highest, top in (
        (1, 2),
        (2, 2),
        (3, 4),
        (9, 10),
        (11, 20),
        (21, 30),
        (99, 100),
        (101, 200),
        (900, 900),
        (950, 1000),
    ):
        chart = day_chart(key="k", title="t", note="", series=["a"], values={TODAY: [highest]}, today=TODAY)
        assert chart is not None
        assert _top(chart.numbers[0]) == top, highest


def test_days_outside_are_left_out_and_marks_alone_draw_nothing() -> None:
    before = first_day(TODAY) - timedelta(days=1)
    assert day_chart(key="k", title="t", note="", series=["a"], values={before: [3]}, today=TODAY) is None
    marks = {TODAY: ["version 2 registered"]}
    assert day_chart(key="k", title="t", note="", series=["a"], values={}, today=TODAY, marks=marks) is None


def test_the_file_has_the_numbers_of_the_chart_oldest_first() -> None:
    chart = day_chart(
        key="k", title="t", note="", series=["a", "b"], today=TODAY, marks={TODAY: ["one", "two"]},
        values={TODAY: [1, 2], TODAY - timedelta(days=2): [3, 0]},
    )  # fmt: skip
    rows = list(csv.reader(io.StringIO(chart_csv(chart, "n").content.decode())))
    assert rows == [["day", "a", "b", "marks"], ["2026-02-27", "3", "0", ""], ["2026-03-01", "1", "2", "one; two"]]
    assert chart_csv(None, "n").content.decode().strip() == "day,marks"
