"""Rows of real state, read through Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.checkpoints import read_checkpoint
from registry.checkpoints.observed import rows_to_read
from registry.observations import (
    StateFieldNulls,
    StateRows,
    StateScan,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
)
from registry.pipeline import run
from tests.checkpoints import make_fixtures

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.requirement("CARD-3", "DBX-1")
def test_rows_and_nulls_of_every_kind_of_variable(spark_remote: str, tmp_path: Path) -> None:
    path = make_fixtures.run(spark_remote, "timers_and_ttl", tmp_path)
    checkpoint = read_checkpoint(str(path), [tmp_path])
    before = sorted(str(each) for each in path.rglob("*"))
    seen = run(StateScan(str(path), rows_to_read(checkpoint)), remote=spark_remote)
    rows = {each.variable: each.rows for each in seen if isinstance(each, StateRows)}
    assert rows == {"counts": 7, "last_visit": 7, "pages": 7}
    nulls = {(each.variable, each.path): each.nulls for each in seen if isinstance(each, StateFieldNulls)}
    assert set(nulls) >= {("last_visit", "value.visits"), ("pages", "value.page"), ("counts", "map_key.page")}
    assert set(nulls.values()) == {0}
    assert isinstance(seen[-1], StateTotals)
    assert (seen[-1].variables, seen[-1].rows) == (3, 21)
    assert sorted(str(each) for each in path.rglob("*")) == before


@pytest.mark.parametrize(("name", "rows"), [("aggregation_hdfs", 7), ("dedup_rocksdb", 7), ("join_rocksdb", 80)])
def test_built_in_operators_have_rows_too(spark_remote: str, tmp_path: Path, name: str, rows: int) -> None:
    path = make_fixtures.run(spark_remote, name, tmp_path)
    reads = rows_to_read(read_checkpoint(str(path), [tmp_path]))
    seen = run(StateScan(str(path), reads), remote=spark_remote)
    assert [each for each in seen if isinstance(each, StateUnreadable)] == []
    assert sum(each.rows for each in seen if isinstance(each, StateRows)) == rows


def test_what_cannot_be_read_is_said_and_hides_nothing_else(spark_remote: str, tmp_path: Path) -> None:
    path = make_fixtures.run(spark_remote, "dedup_rocksdb", tmp_path)
    reads = (StateVariableRead(0, "no_such_variable", "value", 0), StateVariableRead(0, None, "operator", 99))
    seen = run(StateScan(str(path), (*reads, StateVariableRead(0, None, "operator", 0))), remote=spark_remote)
    assert [type(each) for each in seen if not isinstance(each, StateFieldNulls)] == [
        StateUnreadable,
        StateUnreadable,
        StateRows,
        StateTotals,
    ]
