"""What `manage.py bench state` measures with, and that it measures."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from benchmarks.bench import Command as Bench
from benchmarks.spark_state import write_aggregation
from benchmarks.state import Size, cells, measure, section, write_checkpoint
from registry.checkpoints import read_checkpoint
from registry.checkpoints.model import rows_to_read
from registry.observations import StateFieldNulls, StateFieldRange, StateScan, StateUnreadable
from registry.pipeline import run


def test_the_checkpoint_that_is_measured_has_what_is_claimed(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "q", schema_files=7, variables=3)
    checkpoint = read_checkpoint(str(folder), [tmp_path])
    (operator,) = checkpoint.operators
    assert (operator.schema_files, checkpoint.problems, checkpoint.topics) == (7, (), ("orders",))
    assert [len(variable.versions) for variable in operator.variables] == [3, 3, 3]
    assert {variable.kind for variable in operator.variables} == {"value"}
    budgets = {(budget.limit, budget.variable): budget.left for budget in checkpoint.budgets}
    assert budgets["schema_files", None] == 121
    assert budgets["value_schemas", "variable_000"] == 13


@pytest.mark.slow
def test_every_row_is_measured_and_written() -> None:
    rows = list(measure(Size(schema_files=5, variables=3, checkpoints=6, repeats=2, keys=0, variable_keys=0)))
    assert len(rows) == 6
    assert all(row.seconds > 0 for row in rows)
    assert [row.goal for row in rows if row.goal] == [0.3, 60.0]
    text = section(rows, "A note.")
    assert all(cells(row)[0] in text for row in rows)


@pytest.mark.slow
def test_the_command_prints_its_rows() -> None:
    out = StringIO()
    small = ("--schema-files", "4", "--variables", "2", "--checkpoints", "5", "--repeats", "1", "--keys", "0")
    call_command(Bench(), "state", *small, "--variable-keys", "0", stdout=out)
    assert "read a checkpoint of 4 schema files and 2 variables" in out.getvalue()
    assert "list them again when 5 of them went on" in out.getvalue()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.requirement("CARD-3")
def test_row_statistics_are_held_against_sparks_own_count(spark_remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", spark_remote)
    size = Size(schema_files=2, variables=1, checkpoints=1, repeats=1, keys=3_000, variable_keys=200)
    rows = [row for row in measure(size) if "keys" in row.what]
    assert [row.what for row in rows] == [
        "count the rows of an aggregation of 3,000 keys with Spark",
        "row statistics of an aggregation of 3,000 keys",
        "count the rows of 2 variables of 200 keys with Spark",
        "row statistics of 2 variables of 200 keys",
    ]
    for count, statistics in zip(rows[::2], rows[1::2], strict=True):
        assert statistics.goal == pytest.approx(count.seconds / 0.8)
        assert "of the count's rate" in statistics.note


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.requirement("CARD-3")
def test_names_that_occur_twice_in_a_state_are_counted_apart(spark_remote: str, tmp_path: Path) -> None:
    path = write_aggregation(spark_remote, tmp_path / "query", 500)
    seen = run(StateScan(str(path), rows_to_read(read_checkpoint(str(path), [tmp_path]))), remote=spark_remote)
    assert [each for each in seen if isinstance(each, StateUnreadable)] == []
    fields = {each.path: (each.rows, each.nulls) for each in seen if isinstance(each, StateFieldNulls)}
    assert fields.keys() >= {"value.max", "value.max#2"}
    assert set(fields.values()) == {(500, 0)}
    kinds = {each.path: each.kind for each in seen if isinstance(each, StateFieldRange)}
    assert (kinds["value.max"], kinds["value.max#2"]) == ("timestamp", "string")
