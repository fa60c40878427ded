"""The preflight against real restarts: every row of matrix.yaml, done by Spark, ends as the check said it would."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from registry.checkpoints.plans import StateCheck, StatePlan, check_state, read_plan
from tests.amounts import how_many
from tests.state.restarts import PREFIX, needs_clock, run_rows
from tests.toolchains import require_tools

HERE = Path(__file__).parent
APIS = {"row": "transformWithState", "pandas": "transformWithStateInPandas"}
MATRIX: list[dict[str, Any]] = yaml.safe_load((HERE / "matrix.yaml").read_text())
#: rows that are done for real: the first ones in every run, all of them before a release; the record has every row
REAL = (
    "the same schema",
    "int to long, float and double",
    "long to int",
    "int to short",
    "list: widened and extended",
    "a variable left out comes back with its rows",
    "time to live turned on",
    "the time mode changes",
    "unsaferow: a field added",
    "pandas: widened and extended",
    "a field renamed",
    "int to date",
    "another scale",
    "a new field that is not nullable",
    "map: type of the key",
    "value becomes list",
    "a variable deleted comes back empty",
    "list: time to live turned off",
    "unsaferow: names swapped",
    "the threshold of value schemas",
)[: how_many("restarts of transformWithState")]


def plan_of(row: dict[str, Any], step: dict[str, Any], *, by_pandas_alone: bool = False) -> StatePlan:
    """The plan that a steward would send for a step of the matrix; Spark 4.0 has pandas alone, whatever a row says."""
    settings = {**row.get("settings", {}), **step.get("settings", {})}
    variables = []
    for name, each in step["variables"].items():
        schemas = {"value_schema": each["value"], **({"user_key_schema": each["key"]} if "key" in each else {})}
        key = {"key_schema": step["key_schema"]} if "key_schema" in step else {}
        has_ttl = bool(each.get("ttl"))
        variables.append({"name": name, "kind": each.get("kind", "value"), "ttl": has_ttl, **schemas, **key})
    said = {"output_mode": "Update", "api": "row", **row, **step}
    return read_plan(
        {
            "variables": variables,
            "removed": step.get("deleted", []),
            "settings": {PREFIX + name: str(value) for name, value in settings.items()},
            "time_mode": row.get("time_mode", "ProcessingTime" if needs_clock(step) else "None"),
            "output_mode": said["output_mode"],
            "api": None if by_pandas_alone else APIS[said["api"]],
            "operators": step.get("operators"),
        }
    )


def predicted(row: dict[str, Any], before: Path, spark: str) -> StateCheck:
    """What the check says of a row's last step."""
    return check_state(str(before), [before], plan_of(row, row["steps"][-1], by_pandas_alone=spark.startswith("4.0.")))


def expected_of(row: dict[str, Any], spark: str) -> dict[str, Any]:
    """What a row expects of a Spark: of 4.2, but for what `by_spark` names for others."""
    expected: dict[str, Any] = row["expect"]
    return expected | expected.get("by_spark", {}).get(spark.rpartition(".")[0], {})


def assert_as_said(row: dict[str, Any], check: StateCheck, answer: dict[str, Any], spark: str) -> None:
    """What the row expects, what the check said, and what Spark did are one."""
    expected = expected_of(row, spark)
    error = expected.get("error", "")
    assert answer["error"] == error, answer["text"]
    for name, read in expected.get("reads", {}).items():
        assert answer["reads"][name] == read
    status = {each.name: each.status for each in check.variables}
    assert {name: status[name] for name in expected["status"]} == expected["status"]
    assert check.verdict == expected.get("verdict", check.verdict)
    are_values_unknown = any("hold values" in each for each in check.not_checked)
    if check.verdict == "not checked" and not are_values_unknown:
        assert expected["verdict"] == "not checked"
        return
    fails_later = check.verdict == "fails later"
    assert check.error == ("" if fails_later else error)
    # Some rows can be read and others can't: the check can only warn.
    if row.get("depends_on_rows"):
        return
    if fails_later:
        changes = [*check.changes, *(change for each in check.variables for change in each.changes)]
        said = {change.error for change in changes if change.effect == "fails later"}
        assert error in said or "" in said  # a rule without a class says that anything may happen
    assert bool(error) is (check.verdict in ("fails at start", "fails later"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the Spark that is installed did with the rows of the selection, by name; its folder keeps each checkpoint as
    it was before.
    """
    require_tools("restarts of Spark's state", ("java",))
    folder = tmp_path_factory.mktemp("restarts")
    numbers = [number for number, row in enumerate(MATRIX) if row["name"] in REAL]
    found = {
        answer["number"]: answer for answer in run_rows(HERE / "matrix.yaml", folder, numbers) if "number" in answer
    }
    yield {MATRIX[number]["name"]: (answer, folder / str(number) / "before") for number, answer in found.items()}
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.requirement("DBX-1", "DBX-2", "DBX-3", "DBX-4", "DBX-5")
@pytest.mark.parametrize("row", [row for row in MATRIX if row["name"] in REAL], ids=lambda row: str(row["name"]))
def test_a_restart_does_what_the_check_said(row: dict[str, Any], answers: dict[str, Any]) -> None:
    answer, before = answers[row["name"]]
    assert_as_said(row, predicted(row, before, pyspark.__version__), answer, pyspark.__version__)


def test_the_selection_names_rows_and_names_are_unique() -> None:
    names = [row["name"] for row in MATRIX]
    assert len(set(names)) == len(names)
    assert set(REAL) <= set(names)
    assert len(MATRIX) >= 60


#: the record of each Spark, by its version without the patch
RECORDS = {
    "4.0": "matrix_recorded_4.0.json",
    "4.1": "matrix_recorded_4.1.json",
    "4.2": "matrix_recorded.json",
}


@pytest.mark.requirement("DBX-1", "DBX-2", "DBX-3", "DBX-4", "DBX-5")
@pytest.mark.parametrize("version", RECORDS)
def test_the_record_of_the_whole_matrix_has_every_row_as_said(version: str) -> None:
    recorded = json.loads((HERE / RECORDS[version]).read_text())
    assert recorded["spark"].rpartition(".")[0] == version
    rows = {each["name"]: each for each in recorded["rows"]}
    assert list(rows) == [row["name"] for row in MATRIX], "run python -m tests.state.record_matrix"
    for row in MATRIX:
        answer, expected = rows[row["name"]], expected_of(row, recorded["spark"])
        assert answer["error"] == expected.get("error", "")
        assert {name: answer["reads"][name] for name in expected.get("reads", {})} == expected.get("reads", {})
        assert {name: answer["status"][name] for name in expected["status"]} == expected["status"]
        assert answer["as_said"] is True
