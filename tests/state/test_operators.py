"""Real restarts of stateful operators other than transformWithState, and of settings, sources and sinks: their record."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from registry.checkpoints.reader import read_checkpoint
from tests.amounts import how_many
from tests.state.operator_restarts import HERE, MATRIX, restarted, rows_of
from tests.toolchains import require_tools

ROWS = rows_of(MATRIX)
RECORDED: dict[str, Any] = json.loads((HERE / "operators_recorded.json").read_text())
RECORD: dict[str, dict[str, Any]] = {row["name"]: row for row in RECORDED["rows"]}
OUTCOMES = ("harmless", "loses data", "silently wrong", "fails at start", "fails later")
CONDITIONS: dict[str, dict[str, str]] = yaml.safe_load((HERE / "state_error_conditions.yaml").read_text())
#: the error conditions of Spark that a restart may raise because of the checkpoint, by their names
OF_STATE = re.compile(
    r"(STATE_STORE|STREAMING_STATEFUL|STREAMING_CHECKPOINT|STREAMING_QUERY_EVOLUTION|STREAM_STREAM_JOIN|CANNOT_LOAD_STATE"
    r"|CANNOT_WRITE_STATE|STATEFUL_PROCESSOR|STREAMING_UNFINISHED|TRANSFORM_WITH_STATE_SCHEMA|CHECKPOINT_FILE"
    r"|CONCURRENT_STREAM|ILLEGAL_STATE_STORE)\w*"
)
#: records of other restarts, which raise what transformWithState and damaged files raise
OTHER_RECORDS = ("matrix_recorded.json", "damage_recorded.json", "scala_recorded.json", "hazards_recorded.json")
#: rows that are done for real, one of most operators first; the record has all
REAL = (
    "aggregation: max becomes min",
    "window: update becomes append",
    "deduplication: becomes an aggregation",
    "join: inner becomes left outer",
    "limit: a larger one",
    "setting: checkpoint format 1 becomes 2",
    "aggregation: an aggregate added at the end",
    "aggregation: two grouping keys swapped",
    "deduplication: columns selected in another order",
    "join: two columns of a side swapped",
    "setting: more shuffle partitions",
    "source: a folder moved with its files",
)[: how_many("restarts of other operators")]


def test_every_row_is_recorded_with_its_outcome() -> None:
    names = [row["name"] for row in ROWS]
    assert len(set(names)) == len(names)
    assert list(RECORD) == names, "run python -m tests.state.record_operators FOLDER --missing"
    assert {row["outcome"] for row in RECORD.values()} == set(OUTCOMES)
    described = {row[side] for row in RECORD.values() for side in ("before", "after")}
    assert described == set(RECORDED["descriptions"])
    assert RECORDED["spark"] == pyspark.__version__


def test_each_outcome_has_what_shows_it() -> None:
    for name, row in RECORD.items():
        assert bool(row["error"]) is row["outcome"].startswith("fails"), name
        assert row["error"] != "UNKNOWN", name
        if row["outcome"] in ("loses data", "silently wrong"):
            assert row["proof"]["written"] != row["proof"]["right"], name
        if row["outcome"] == "fails later" and row["error"] != "JVM_DIED":
            assert row["batches"], name


@pytest.mark.requirement("DBX-1")
def test_the_recorded_checkpoints_can_be_read(tmp_path: Path) -> None:
    """They are as Spark left them, without rows of state: what a check before the restart reads."""
    for name in sorted({RECORD[row["name"]]["checkpoint"] for row in ROWS if "changes" not in row}):
        files = RECORDED["checkpoints"][name]
        if not files:  # the restart begins with a new checkpoint
            continue
        written_to(tmp_path / name, files)
        checkpoint = read_checkpoint(str(tmp_path / name), [tmp_path])
        assert checkpoint.last_committed_batch is not None
        operators = {path.split("/")[1] for path in files if path.startswith("state/")}
        assert {str(operator.number) for operator in checkpoint.operators} == operators


def written_to(folder: Path, files: dict[str, str]) -> None:
    """Write a recorded checkpoint to a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_binary = text.startswith("base64:")
        path.write_bytes(base64.b64decode(text.removeprefix("base64:")) if is_binary else text.encode())


def conditions_of_spark() -> set[str]:
    """The names of the error conditions that concern state, of the Spark that is installed."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-common-utils_2.13-*.jar")
    with zipfile.ZipFile(jar) as files:
        conditions = json.loads(files.read("error/error-conditions.json"))
    return {name for name in conditions if OF_STATE.fullmatch(name)}


def test_every_error_condition_of_state_occurs_or_is_explained() -> None:
    """A new Spark brings new conditions: each needs a row, or the reason why no restart raises it."""
    assert set(CONDITIONS) == conditions_of_spark()
    raised = {row["error"] for row in RECORD.values()}
    elsewhere = {
        row["error"]
        for name in OTHER_RECORDS
        for row in json.loads((HERE / name).read_text())["rows"]
        if "error" in row
    }
    for name, said in CONDITIONS.items():
        if "row" in said:
            assert RECORD[said["row"]]["error"] == name
        elif "recorded" in said:
            assert name in elsewhere
        else:
            assert name not in raised | elsewhere
            assert said["absent"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """What the Spark that is installed did with the rows of the selection, by name."""
    require_tools("restarts of Spark's state", ("java",))
    folder = tmp_path_factory.mktemp("operators")
    numbers = [number for number, row in enumerate(ROWS) if row["name"] in REAL]
    done = restarted(MATRIX, folder, numbers)
    yield {ROWS[answer["number"]]["name"]: answer for answer in done if "number" in answer}
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", REAL)
def test_spark_does_what_is_recorded(name: str, answers: dict[str, dict[str, Any]]) -> None:
    answer, recorded = answers[name], RECORD[name]
    assert (answer["outcome"], answer["error"]) == (recorded["outcome"], recorded["error"]), answer["text"]
    if "proof" in recorded:
        assert answer["proof"]["written"] == recorded["proof"]["written"]
