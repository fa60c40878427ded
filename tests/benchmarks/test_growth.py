"""The growth run: what it reads out of PostgreSQL's log and plans, and a small one for real."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from benchmarks import dataset, growth
from benchmarks.bench import Command as Bench
from benchmarks.growth_database import in_words, logged, whole_tables
from benchmarks.registry_calls import LoadedSet
from benchmarks.registry_client import Target
from tests.amounts import whole_benchmark

pytestmark = pytest.mark.requirement("CARD-4")

PLAN: dict[str, Any] = {
    "Node Type": "Nested Loop",
    "Plans": [
        {"Node Type": "Index Scan", "Relation Name": "subjects_subject", "Index Name": "subject_name"},
        {"Node Type": "Hash", "Plans": [{"Node Type": "Seq Scan", "Relation Name": "subjects_schema"}]},
    ],
}


def entry(content: Any) -> str:
    """As auto_explain writes it: what goes on in further lines begins with a tab."""
    text = json.dumps(content, indent=2).replace("\n", "\n\t")
    return f"2026-01-01 00:00:00.000 UTC [77] app@db LOG:  duration: 0.123 ms  plan:\n\t{text}\n"


def test_plans_are_read_out_of_a_log_with_other_lines_in_between() -> None:
    other = "2026-01-01 00:00:00.000 UTC [78] LOG:  checkpoint starting: time\n"
    broken = entry({"Query Identifier": 3, "Plan": PLAN}).replace('"Plan"', other)
    text = other + entry({"Query Identifier": -5, "Plan": PLAN}) + broken + other + entry({"Plan": PLAN}) + other
    assert list(logged(text.encode())) == [(-5, PLAN)]


def test_a_table_that_is_read_whole_is_found_wherever_it_stands() -> None:
    assert list(whole_tables(PLAN)) == ["subjects_schema"]
    assert in_words(PLAN) == "Nested Loop(Index Scan subject_name, Hash(Seq Scan subjects_schema))"


@pytest.mark.parametrize("subjects", [200, 1_000, 100_000])
def test_as_many_subjects_are_asked_for_in_each_data_set(subjects: int) -> None:
    data = LoadedSet(Target("x", "http://127.0.0.1:1"), dataset.Size(subjects=subjects))
    assert data.hot and data.growing
    assert not set(data.hot) & set(data.growing)
    assert len(set(data.numbers)) == len(data.numbers)
    assert all(0 <= number < data.count and not dataset.is_referring(number) for number in data.numbers)
    if subjects >= 1_000:
        assert (len(data.hot), len(data.growing)) == (100, 32)
        digits = [number % 10 for number in data.hot]
        assert {digits.count(digit) for digit in range(10)} <= set(range(5, 16)), "of each size"
        assert max(data.numbers) > data.count * 0.7, "spread over all of it"


@pytest.mark.parametrize(("after", "sentence"), [(0.0129, "1.29"), (0.0131, "1.31 (missed)")])
def test_what_takes_longer_than_the_goal_is_missed(after: float, sentence: str) -> None:
    assert growth._ratio(0.01, after) == sentence


def test_a_scan_of_a_large_table_is_missed() -> None:
    plans = growth.Plans(frozenset({"subjects_schema", "subjects_subject"}))
    plans.add(1, PLAN)
    part = growth._scanned(plans, {"subjects_schema": 3, "subjects_subject": 0})
    assert [row[:2] for row in part.rows] == [("subjects_schema", "3 (missed)")]
    assert "none" in growth.in_columns(growth._scanned(growth.Plans(frozenset()), {}))


@pytest.mark.parametrize("options", [["--subjects=10"], ["--small=1"], ["--versions=1"], ["--seconds=0"]])
def test_sizes_out_of_range_are_refused(options: list[str]) -> None:
    with pytest.raises(CommandError, match="a number from"):
        call_command(Bench(), "growth", *options)


@whole_benchmark
@pytest.mark.slow
@pytest.mark.usefixtures("django_db_setup")
def test_a_small_run_measures_everything(django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "PAGE_REQUESTS", 2)
    size = growth.Size(
        subjects=400, versions=2, fields_max=12, fields_mean=4, small=200, listed=5, seconds=0.05, mixed_seconds=2
    )
    with django_db_blocker.unblock():  # it connects to databases of its own
        parts = list(growth.measure(size, print))
    for operations in parts[:2]:
        assert [row[0] for row in operations.rows[::2]] == [
            "schema by id", "version", "latest", "look-up", "re-register", "compatibility check", "register new", "list of 5",
        ]  # fmt: skip
    titles = " ".join(part.title for part in parts)
    for word in (
        "pages",
        "mixed load",
        "by mean time",
        "by total time",
        "sequential scans",
        "largest tables",
        "largest indexes",
        "nothing of",
    ):
        assert word in titles
    slow = next(part for part in parts if "by total time" in part.title)
    assert len(slow.rows) == 10
    assert any("Index Scan" in row[4] for row in slow.rows), "plans that statements had"
    assert not [row for row in slow.rows if "can't be explained" in row[4]]
    text = growth.section(parts, size, "A note.")
    assert "A note." in text and "800 versions" in text
