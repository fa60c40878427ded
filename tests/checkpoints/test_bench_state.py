"""What `manage.py bench state` measures with, and that it measures."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from dashboard.bench.state import Size, cells, measure, section
from dashboard.bench.state_files import write_checkpoint
from registry.checkpoints import read_checkpoint


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
    rows = list(measure(Size(schema_files=5, variables=3, checkpoints=6, repeats=2)))
    assert len(rows) == 6
    assert all(row.seconds > 0 for row in rows)
    assert [row.goal for row in rows if row.goal] == [0.3, 60.0]
    text = section(rows, "A note.")
    assert all(cells(row)[0] in text for row in rows)


@pytest.mark.slow
def test_the_command_prints_its_rows() -> None:
    out = StringIO()
    small = ("--schema-files", "4", "--variables", "2", "--checkpoints", "5", "--repeats", "1")
    call_command("bench", "state", *small, stdout=out)
    assert "read a checkpoint of 4 schema files and 2 variables" in out.getvalue()
    assert "list them again when 5 of them went on" in out.getvalue()
