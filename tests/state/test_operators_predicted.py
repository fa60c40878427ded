"""The check of described queries against real restarts: every recorded restart ends as the check says, or isn't checked.

`operators_recorded.json` has the restarts, with the descriptions of the queries before and after them.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final

import pytest

from registry.checkpoints.plans import check_state, read_plan
from registry.errors import InvalidCheckpoint
from tests.checkpoints.checkpoint_writer import write_state
from tests.state.operator_restarts import MATRIX, rows_of

HERE: Final = Path(__file__).parent


def recorded(name: str) -> dict[str, Any]:
    """A record of restarts. Its older descriptions don't have `refused`: there, the outcome says whether Spark starts."""
    record: dict[str, Any] = json.loads((HERE / name).read_text())
    descriptions = record["descriptions"].items()
    return {**record, "descriptions": {key: each and {"refused": None, **each} for key, each in descriptions}}


RECORD: Final = recorded("operators_recorded.json")
DESCRIPTIONS: Final = RECORD["descriptions"]
#: verdict → outcomes. Whether values get lost or wrong depends on the rows, as does which batch is the first to fail
OUTCOMES: Final = {
    "safe": {"harmless"},
    "loses data": {"loses data", "silently wrong"},
    "silently wrong": {"loses data", "silently wrong"},
    "fails later": {"fails at start", "fails later"},
    "fails at start": {"fails at start"},
}
#: rows that the check can't judge: nothing beside these state files says what they should hold, and without the operators'
# metadata Spark stops later, with another error
BEYOND: Final = (
    "checkpoint: a byte of a state file is another",
    "checkpoint: a byte of a state file is another, without checksums of files",
    "checkpoint: the operators' metadata is gone and deduplication becomes an aggregation",
)
#: rows whose checkpoints are recorded with all their files
DAMAGED: Final = {row["name"] for row in rows_of(MATRIX) if "changes" in row}
#: rows whose queries are described
ROWS: Final[list[dict[str, Any]]] = [
    row
    for row in RECORD["rows"]
    if row["outcome"]
    and row["name"] not in BEYOND
    and all(DESCRIPTIONS.get(row.get(side)) for side in ("before", "after"))
]


def write(checkpoint: dict[str, str], folder: Path, *, with_state: bool = True) -> None:
    """Write the recorded files of a checkpoint. Those with rows of state are recorded only where they were damaged."""
    for name, text in checkpoint.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_binary = text.startswith("base64:")
        path.write_bytes(base64.b64decode(text.removeprefix("base64:")) if is_binary else text.encode())
    if with_state:
        write_state(folder)


def verdict_of(row: dict[str, Any], folder: Path, record: dict[str, Any] = RECORD) -> tuple[str, str]:
    """The verdict and the error class of the check before a recorded restart."""
    write(record["checkpoints"][row["checkpoint"]], folder, with_state=row["name"] not in DAMAGED)
    running, query = (record["descriptions"][row[side]] for side in ("before", "after"))
    try:
        check = check_state(str(folder), [folder], read_plan({"query": query, "running": running}))
    except InvalidCheckpoint:
        return "not checked", ""
    return check.verdict, check.error


@pytest.mark.requirement("DBX-1", "DBX-4")
def test_recorded_restarts_end_as_the_check_says_and_most_are_predicted(tmp_path: Path) -> None:
    wrong, unknown = [], 0
    for number, row in enumerate(ROWS):
        verdict, error = verdict_of(row, tmp_path / str(number))
        if verdict == "not checked":
            unknown += 1
        elif row["outcome"] not in OUTCOMES[verdict]:
            wrong.append((row["name"], row["outcome"], verdict))
        elif verdict == "fails at start" and error not in (row["error"], "AnalysisException"):
            wrong.append((row["name"], row["error"], error))
    assert wrong == []
    assert len(ROWS) >= 390
    assert unknown <= 0.14 * len(ROWS)


@pytest.mark.requirement("DBX-1", "DBX-4")
def test_another_delay_of_a_deduplication_is_not_judged(tmp_path: Path) -> None:
    """The rows of this restart show no harm, but a repeated row can pass that only the new delay lets in."""
    row = next(each for each in ROWS if each["name"] == "within watermark: a longer delay")
    assert verdict_of(row, tmp_path) == ("not checked", "")


#: records of the same restarts with another Spark, or of checkpoints that another Spark wrote
OTHERS: Final = {name: recorded(f"operators_recorded_{name}.json") for name in ("4.0", "4.0_to_4.2")}
#: rows in which another Spark stops with another error
OWN_ERRORS: Final = {"4.0": ("limit: added", "setting: checkpoint format 1 becomes 2")}


@pytest.mark.requirement("DBX-1", "DBX-4")
@pytest.mark.parametrize(
    ("name", "row"),
    [pytest.param(name, row, id=f"{name} {row['name']}") for name in OTHERS for row in OTHERS[name]["rows"]],
)
def test_another_spark_does_the_same(name: str, row: dict[str, Any], tmp_path: Path) -> None:
    """A restart ends as with Spark 4.2 alone, and as the check says."""
    usual = next(each for each in RECORD["rows"] if each["name"] == row["name"])
    assert row["outcome"] == usual["outcome"]
    if row["name"] in OWN_ERRORS.get(name, ()):
        return
    assert row["error"] == usual["error"]
    verdict, error = verdict_of(row, tmp_path, OTHERS[name])
    assert verdict == "not checked" or row["outcome"] in OUTCOMES[verdict]
    assert verdict != "fails at start" or error in (row["error"], "AnalysisException")
