"""The measurements run and say what they measured; how quick it was is not judged here."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from benchmarks import board, engines, measurement
from benchmarks.bench import Command as Bench
from benchmarks.engines import GENERATORS
from benchmarks.measurement import Timing, machine, resident_bytes, timed, timing_of
from registry.access.roles import system_actor
from registry.formats import FORMATS
from registry.formats.compatibility import check

TINY = ("--fields=7", "--diff-fields=9", "--versions=3", "--calls=2", "--seconds=1", "--checks=20")


@pytest.mark.requirement("GOO-2")
def test_it_prints_every_row_and_writes_its_section(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "benchmarks.md"
    monkeypatch.setattr(
        "benchmarks.bench.write_section",
        lambda *arguments: measurement.write_section(*arguments, written),
    )
    call_command(Bench(), "engines", *TINY, "--write")
    shown = capsys.readouterr().out
    titles = ("read a schema of 7", "estimate its cost", "check a pair of 7", "check against 3 versions", "compare 9", "prove a pair", "memory over 20 checks")  # fmt: skip
    for name in FORMATS:
        lines = [line for line in shown.splitlines() if line.startswith(name)]
        assert len(lines) == len(titles)
        for line, row in zip(lines, titles, strict=True):
            assert row in line
            assert len(re.findall(r"\d+(?:\.\d+)? ms", line)) >= 2, line
        assert re.search(r"MiB, then \d+\.\d MiB", lines[-1])
    text = written.read_text()
    assert text.startswith("# Benchmarks")
    assert machine() in text
    assert text.count("\n| ") == len(titles) * len(FORMATS) + 1


def test_python_avro_is_left_out_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "avro.compatibility", None)
    size = engines.Size(fields=3, diff_fields=3, versions=1, calls=1, seconds=0.1, checks=10)
    row = next(row for row in engines.measure(size) if row.what.startswith("check a pair"))
    assert row.other is None
    assert engines.cells(row)[-1] == "Python's `avro` isn't installed: left out"


def test_a_goal_that_is_missed_is_said() -> None:
    slow = engines.Row("AVRO", "x", Timing(0.002, 0.003, 10), goal=0.001, other=0.004)
    assert engines.cells(slow) == ["2.0 ms", "3.0 ms", "1.0 ms (missed)", "Python's `avro` 4.0 ms: 2.0 times as long"]
    assert engines.cells(engines.Row("AVRO", "x", Timing(0.0001, 0.2, 10), goal=0.001))[:3] == [
        "0.100 ms",
        "200 ms",
        "1.0 ms",
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_the_generated_versions_read_each_other_as_they_should(name: str) -> None:
    engine, text = FORMATS[name], GENERATORS[name]
    history = [(number + 1, engine.parse(text(30, number))) for number in range(4)]
    new = engine.parse(text(30, 4))
    assert len({schema.fingerprint for _, schema in [*history, (5, new)]}) == 5
    assert check(engine, new, history, "BACKWARD_TRANSITIVE").is_compatible
    assert engine.diff(history[0][1], new)


def test_a_section_replaces_itself_alone(tmp_path: Path) -> None:
    written = tmp_path / "page.md"
    measurement.write_section("a", "A", "one", written)
    measurement.write_section("b", "B", "two \\1", written)
    measurement.write_section("a", "A", "three", written)
    text = written.read_text()
    assert "one" not in text
    assert text.index("three") < text.index("two \\1")
    assert text.count("## A") == 1


def test_timings() -> None:
    assert timing_of([3.0, 1.0, 2.0]) == Timing(2.0, 3.0, 3)
    assert timing_of([float(number) for number in range(1, 101)]).p99 == 99.0
    calls: list[str] = []

    def prepare() -> Callable[[], None]:
        calls.append("prepared")
        time.sleep(0.1)
        return lambda: calls.append("called")

    five = timed(prepare, most_calls=5, most_seconds=600)
    assert five.calls == 5
    assert five.median < 0.1  # what makes ready isn't counted
    assert calls == ["prepared", "called"] * 6
    quick = timed(prepare, most_calls=10**9, most_seconds=0)
    assert quick.calls == 1
    assert 2**20 < resident_bytes() < 2**40


def test_an_unknown_subject_is_refused() -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        call_command(Bench(), "nothing")


@pytest.mark.requirement("CARD-4")
@pytest.mark.django_db
def test_the_board_is_measured_with_what_it_shows_at_scale() -> None:
    size = board.Size(subjects=30, requests=4, repeats=1)
    rows = list(board.measure_here(size))
    assert [row.goal for row in rows].count(board.BOARD_GOAL) == 7 + 2 * len(board.FILTERS)
    whole = [row.what for row in rows if row.what.startswith("the whole page")]
    assert whole == [
        "the whole page: home",
        "the whole page: the board",
        *(f"the whole page: the board, filter: {name}" for name in board.FILTERS),
    ]
    assert [row.goal for row in rows].count(board.ANSWER_GOAL) == 3
    assert rows[-1].what == "work out the 60 answers of a page"
    totals = {name: board.board_rows(by=system_actor("tests"), filters=[name]).total for name in board.FILTERS}
    assert 0 < totals["behind"] < 30, "the subjects lag behind each other"
    assert totals["id differs"]
    slow = board.Row("x", 0.1, 0.4, 0.3)
    assert board.cells(slow) == ("x", "100 ms", "400 ms", "300 ms (missed)", "")
    assert "30 subjects" in board.section(rows, size)
