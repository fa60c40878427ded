"""Damaged checkpoints: what the check says of each, held against what Spark did when their queries started again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import read_checkpoint
from registry.checkpoints.plans import StateCheck, check_state, plan_as_is, read_plan
from registry.errors import InvalidCheckpoint
from tests.state.damage import damage
from tests.state.test_matrix import HERE

ROWS: list[dict[str, Any]] = yaml.safe_load((HERE / "damage.yaml").read_text())
RECORDED: dict[str, Any] = {row["name"]: row for row in json.loads((HERE / "damage_recorded.json").read_text())["rows"]}
BASES = HERE / "damaged"
FIXTURES = HERE.parent / "checkpoints" / "fixtures"
#: what the check says of a checkpoint that it refuses to read
NO_ANSWER = "no answer"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def checked(path: Path, row: dict[str, Any], *, base: Path) -> StateCheck | None:
    """The check of the plan that changes nothing, on a copy that was damaged; None where it can't be read."""
    plan = read_plan(json.loads(plan_as_is(str(base), [base])))
    shutil.copytree(base, path)
    damage(path, row)
    try:
        return check_state(str(path), [path], plan)
    except InvalidCheckpoint:
        return None


def test_every_row_was_done_for_real() -> None:
    assert list(RECORDED) == [row["name"] for row in ROWS], "run python -m tests.state.record_damage FOLDER"


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("base", ["plain", "rate", "ids"])
def test_what_is_not_damaged_is_safe(folder: Path, base: str) -> None:
    check = checked(folder, {"changes": []}, base=BASES / base)
    assert check is not None
    assert (check.verdict, check.not_checked) == ("safe", ())


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_a_damaged_checkpoint_is_never_said_to_start_where_spark_stops(folder: Path, row: dict[str, Any]) -> None:
    """Where Spark starts it is fine; `unsure` are the rows whose files the check doesn't judge."""
    answer = RECORDED[row["name"]]
    check = checked(folder, row, base=BASES / row.get("base", "plain"))
    said = check.verdict if check else NO_ANSWER
    error = answer["error"] or answer["then"]
    if row.get("unsure"):
        assert said in ("not checked", NO_ANSWER)
        assert check is None or check.not_checked
    elif error:
        assert (said, check.error if check else "") == ("fails at start", error)
        assert check is not None
        assert check.error_message
    else:
        assert said == "safe"


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([{"empty": "commits/4"}], "commits/4 is empty"),
        ([{"copy": ["commits/4", "commits/7"]}], "commits/7 is the newest commit, but the newest offsets file is 4"),
        ([{"copy": ["offsets/4", "offsets/7"]}], "offsets/7 is the newest, but offsets/6 is missing"),
    ],
)
def test_a_reading_names_the_file_and_the_cure(folder: Path, changes: list[Any], words: str) -> None:
    shutil.copytree(FIXTURES / "customer_totals", folder)
    damage(folder, {"changes": changes})
    problem = read_checkpoint(str(folder), [folder]).problems[0]
    assert problem.startswith(words)
    assert "restore" in problem


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("fixture", ["dedup_rocksdb", "join_rocksdb", "session_windows"])
def test_an_operator_that_is_not_checked_is_refused_where_no_query_starts(folder: Path, fixture: str) -> None:
    shutil.copytree(FIXTURES / fixture, folder)
    newest = max(int(path.name) for path in (folder / "commits").iterdir())
    (folder / f"commits/{newest}").write_bytes(b"")
    plan = read_plan({"variables": [{"name": "v", "value_schema": "a INT"}]})
    check = check_state(str(folder), [folder], plan)
    assert (check.verdict, check.error, check.starts) == ("fails at start", "IllegalStateException", False)
    assert [each.rule for each in check.changes] == ["CHECKPOINT_DAMAGED"]
    assert "restore it from a copy" in check.changes[0].remedy
