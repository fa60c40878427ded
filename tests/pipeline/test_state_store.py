"""Rows of real state, read through Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.checkpoints import read_checkpoint
from registry.checkpoints.model import rows_to_read
from registry.drift.sources.state_store import rows_by_variable, timers_by_operator, timers_to_read
from registry.observations import (
    StateFieldNulls,
    StateRows,
    StateScan,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
)
from registry.pipeline import run
from registry.pipeline.state_store import CLIENT_NEEDED
from tests.checkpoints import make_fixtures

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.requirement("CARD-3", "DBX-1")
def test_rows_and_nulls_of_every_kind_of_variable(spark_remote: str, tmp_path: Path) -> None:
    path = make_fixtures.run(spark_remote, "timers_and_ttl", tmp_path)
    checkpoint = read_checkpoint(str(path), [tmp_path])
    before = sorted(str(entry) for entry in path.rglob("*"))
    observations = run(StateScan(str(path), rows_to_read(checkpoint)), remote=spark_remote)
    rows = {row.variable: row.rows for row in observations if isinstance(row, StateRows)}
    assert rows == {"counts": 7, "last_visit": 7, "pages": 7}
    nulls = {(row.variable, row.path): row.nulls for row in observations if isinstance(row, StateFieldNulls)}
    assert set(nulls) >= {("last_visit", "value.visits"), ("pages", "value.page"), ("counts", "map_key.page")}
    assert set(nulls.values()) == {0}
    assert isinstance(observations[-1], StateTotals)
    assert (observations[-1].variables, observations[-1].rows) == (3, 21)
    assert sorted(str(entry) for entry in path.rglob("*")) == before


@pytest.mark.parametrize(("name", "rows"), [("aggregation_hdfs", 7), ("dedup_rocksdb", 7), ("join_rocksdb", 80)])
def test_built_in_operators_have_rows_too(spark_remote: str, tmp_path: Path, name: str, rows: int) -> None:
    path = make_fixtures.run(spark_remote, name, tmp_path)
    reads = rows_to_read(read_checkpoint(str(path), [tmp_path]))
    observations = run(StateScan(str(path), reads), remote=spark_remote)
    assert [row for row in observations if isinstance(row, StateUnreadable)] == []
    assert sum(row.rows for row in observations if isinstance(row, StateRows)) == rows


def test_fields_that_are_not_counted_are_said(
    spark_remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.pipeline.state_store.MAX_FIELDS", 1)
    path = make_fixtures.run(spark_remote, "dedup_rocksdb", tmp_path)
    reads = rows_to_read(read_checkpoint(str(path), [tmp_path]))
    observations = run(StateScan(str(path), reads), remote=spark_remote)
    (left_out,) = [row for row in observations if isinstance(row, StateUnreadable)]
    assert left_out.reason.startswith("the first 1 of ") and left_out.reason.endswith(" fields were counted")
    assert len([row for row in observations if isinstance(row, StateFieldNulls)]) == 1


def test_what_cannot_be_read_is_said_and_hides_nothing_else(spark_remote: str, tmp_path: Path) -> None:
    path = make_fixtures.run(spark_remote, "dedup_rocksdb", tmp_path)
    reads = (StateVariableRead(0, "no_such_variable", "value", 0), StateVariableRead(0, None, "operator", 99))
    observations = run(StateScan(str(path), (*reads, StateVariableRead(0, None, "operator", 0))), remote=spark_remote)
    ends = (StateUnreadable, StateRows, StateTotals)
    assert [type(row) for row in observations if isinstance(row, ends)] == [StateUnreadable, *ends]


@pytest.mark.requirement("DBX-1", "CARD-3")
def test_keys_masked_ranges_expiry_and_timers(spark_remote: str, tmp_path: Path) -> None:
    path = make_fixtures.run(spark_remote, "timers_and_ttl", tmp_path)
    checkpoint = read_checkpoint(str(path), [tmp_path])
    reads = (*rows_to_read(checkpoint), *timers_to_read(checkpoint))
    assert [row.kind for row in reads] == ["map", "value", "list", "timers"]
    observations = run(StateScan(str(path), reads), remote=spark_remote)
    assert [row for row in observations if isinstance(row, StateUnreadable)] == []
    rows = rows_by_variable(checkpoint, observations)
    last, pages, counts = (rows[0, name] for name in ("last_visit", "pages", "counts"))
    assert (last.rows, last.keys, pages.keys, counts.keys) == (7, 7, 7, 7)
    fields = {(name, row["path"]): row for (_, name), state_fields in rows.items() for row in state_fields.fields}
    visits, page = fields["last_visit", "value.visits"], fields["last_visit", "value.page"]
    # 40 rows on 7 keys are 5 or 6 visits each, which may be told as their magnitude alone; "home" as its length.
    assert (visits["minimum"], visits["maximum"], visits["type"], visits["bytes"]) == ("1e0", "1e0", "int", 28)
    assert (page["minimum"], page["maximum"], page["bytes"]) == ("4 characters", "4 characters", 28)
    assert last.bytes == 7 * 8 + 28 + 28
    assert "home" not in str(rows)
    day, hour = 86_400_000, 3_600_000
    assert last.expiry["without"] == counts.expiry["without"] == 0
    assert pages.expiry == {}
    assert last.expiry["earliest"] - counts.expiry["latest"] == pytest.approx(day - hour, abs=600_000)
    timers = timers_by_operator(observations)[0]
    assert timers["timers"] == 7
    assert timers["earliest"] == pytest.approx(counts.expiry["earliest"], abs=600_000)


@pytest.mark.requirement("CARD-3")
def test_a_server_without_a_client_for_an_address_says_what_it_lacks(spark_remote: str) -> None:
    reads = (StateVariableRead(0, None, "operator", 0),)
    observations = run(StateScan("s3a://lake/checkpoints/totals", reads), remote=spark_remote)
    (unreadable,) = [row for row in observations if isinstance(row, StateUnreadable)]
    assert unreadable.reason.startswith(CLIENT_NEEDED)
