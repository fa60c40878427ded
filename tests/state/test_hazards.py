"""Restarts that lose state or stop for other reasons than a value schema: on checkpoints as they lie on disk, and the
record of those that were done for real.
"""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from registry.checkpoints import read_checkpoint
from registry.checkpoints.plans import StateCheck, check_markdown, check_state, check_text, plan_as_is, read_plan
from registry.errors import InvalidCheckpoint, InvalidInput
from tests.checkpoints.checkpoint_writer import family, struct_type, v3, write_checkpoint, write_state
from tests.state.test_matrix import HERE, expected_of

FIXTURES = Path(__file__).parents[1] / "checkpoints" / "fixtures"
TOTALS = FIXTURES / "customer_totals"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
WITHOUT_A_FIELD: list[dict[str, Any]] = [
    {"name": "totals", "value_schema": "orders BIGINT, status STRING, currency STRING"},
    {"name": "last_orders", "kind": "list", "value_schema": "order_id STRING, amount_cents BIGINT"},
    {"name": "by_status", "kind": "map", "user_key_schema": "status STRING", "value_schema": "orders INT"},
]
HAZARDS: list[dict[str, Any]] = yaml.safe_load((HERE / "hazards.yaml").read_text())


@pytest.fixture
def totals(tmp_path: Path) -> Path:
    """A copy of a real checkpoint with evolutions, in which files may be changed."""
    return Path(shutil.copytree(TOTALS, tmp_path / "totals"))


def checked(path: Path, **changed: Any) -> StateCheck:
    """The check of the plan that changes nothing but what is said."""
    plan = json.loads(plan_as_is(str(path), [path])) | changed
    return check_state(str(path), [path], read_plan({key: value for key, value in plan.items() if value is not None}))


def rules_of(check: StateCheck) -> list[str]:
    """The rules of all changes that are no notes."""
    changes = [*check.changes, *(change for each in check.variables for change in each.changes)]
    return [each.rule for each in changes if each.effect != "note"]


def test_a_plan_of_what_is_stored_says_everything_that_spark_compares() -> None:
    plan = json.loads(plan_as_is(str(TOTALS), [TOTALS]))
    assert {key: plan[key] for key in ("language", "api", "time_mode", "output_mode", "operators")} == {
        "language": "python",
        "api": "transformWithState",
        "time_mode": "None",
        "output_mode": "Update",
        "operators": ["transformWithState (Python)"],
    }
    check = checked(TOTALS)
    assert check.verdict == "safe"
    assert not any("Assumed unchanged" in note for note in check.notes)
    assert any(note.startswith("The grouping key is assumed unchanged") for note in check.notes)
    silent = checked(TOTALS, api=None, time_mode=None, output_mode=None, operators=None)
    (note,) = (note for note in silent.notes if note.startswith("Assumed unchanged"))
    assert note.removeprefix("Assumed unchanged because the plan doesn't set it: ").startswith(
        "API (transformWithState (Python)); time mode (None); output mode (Update); stateful operators"
    )


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("changed", "verdict", "rule", "error"),
    [
        ({"output_mode": "Append"}, "fails at start", "OUTPUT_MODE_CHANGED", "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"),
        ({"time_mode": "EventTime"}, "fails at start", "TIME_MODE_CHANGED", "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"),
        ({"api": "transformWithStateInPandas"}, "fails at start", "API_CHANGED", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
        ({"language": "scala", "api": None}, "fails at start", "API_CHANGED", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
        ({"operators": ["dropDuplicates", "transformWithState (Python)"]}, "fails at start", "ENCODING_NOT_SUPPORTED OPERATORS_CHANGED", "AnalysisException"),
        ({"settings": {FORMAT: 2}}, "fails later", "CHECKPOINT_FORMAT_RAISED", ""),
        ({"settings": {FORMAT: 3}}, "fails later", "CHECKPOINT_FORMAT_RAISED", ""),
        ({"settings": {FORMAT: 1}}, "safe", None, ""),
    ],
)  # fmt: skip
def test_what_concerns_the_operator_as_a_whole(
    changed: dict[str, Any], verdict: str, rule: str | None, error: str
) -> None:
    check = checked(TOTALS, **changed)
    assert (check.verdict, check.error, rules_of(check)) == (verdict, error, rule.split() if rule else [])
    assert check.starts is (verdict != "fails at start")


@pytest.mark.requirement("DBX-4")
def test_the_format_of_a_checkpoint_is_reported_by_its_commits(totals: Path) -> None:
    newest = totals / "commits" / "4"
    newest.write_text(
        'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["9c322c60-b075-44a1-b9db-29fd6bd10a8e"]]}}'
    )
    assert read_checkpoint(str(totals), [totals]).format_version == 2
    assert json.loads(plan_as_is(str(totals), [totals]))["settings"] == {FORMAT: 2}
    assert checked(totals).verdict == "safe"
    lowered = checked(totals, settings={FORMAT: 1})
    assert (lowered.verdict, rules_of(lowered)) == ("fails later", ["CHECKPOINT_FORMAT_LOWERED"])
    with pytest.raises(InvalidInput, match="a whole number above 0"):
        checked(totals, settings={FORMAT: "two"})
    newest.write_text("v2\n{")
    assert any("commits/4" in each for each in read_checkpoint(str(totals), [totals]).problems)


def test_a_setting_of_the_plan_counts_or_a_note_says_why_not() -> None:
    settings = {"spark.sql.shuffle.partitions": 200, "spark.sql.streaming.stateStore.minDeltasForSnapshot": 3}
    check = checked(TOTALS, settings=settings)
    assert check.notes[1:3] == (
        "spark.sql.shuffle.partitions stays 2: Spark takes it from the checkpoint, not from the next start.",
        "The plan sets spark.sql.streaming.stateStore.minDeltasForSnapshot, which this check ignores.",
    )


@pytest.mark.requirement("DBX-4")
def test_a_checkpoint_that_was_moved_is_said_to_be_as_spark_reads_schema_files_where_they_were(tmp_path: Path) -> None:
    """A real restart after the folder was renamed: FileNotFoundException."""
    path = write_checkpoint(tmp_path / "here", [(0, v3(family("totals", struct_type(a="long"))))])
    assert not any("was written at" in note for note in checked(path).notes)
    (note,) = (note for note in checked(path.rename(tmp_path / "there")).notes if "was written at" in note)
    assert note.startswith(
        f"The checkpoint was written at file:{tmp_path}/here, and Spark reads its schema files there"
    )


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("lost", ["0_*", "1_*", "*"])
def test_a_schema_file_that_is_missing_stops_spark(totals: Path, lost: str) -> None:
    plan = read_plan({"variables": [{"name": "totals", "value_schema": "orders BIGINT"}]})
    for path in totals.glob(f"state/0/_stateSchema/default/{lost}"):
        path.unlink()
    check = check_state(str(totals), [totals], plan)
    assert (check.verdict, check.error) == ("fails at start", "FileNotFoundException")
    assert "SCHEMA_FILE_MISSING" in [each.rule for each in check.changes]


@pytest.mark.requirement("DBX-4")
def test_an_operator_without_its_metadata_is_not_checked(totals: Path) -> None:
    shutil.rmtree(totals / "state/0/_metadata")
    plan = read_plan({"variables": [{"name": "totals", "value_schema": "orders BIGINT"}]})
    assert check_state(str(totals), [totals], plan).verdict == "not checked"


@pytest.mark.requirement("DBX-2")
@pytest.mark.parametrize(
    ("name", "refused"), [(" w ", True), ("w\t", True), ("default", True), ("_w", False), ("größe", False)]
)
def test_names_that_spark_takes_for_no_variable(name: str, refused: bool) -> None:
    variables = json.loads(plan_as_is(str(TOTALS), [TOTALS]))["variables"]
    check = checked(TOTALS, variables=[*variables, {"name": name, "value_schema": "a INT"}])
    assert rules_of(check) == (["VARIABLE_NAME_REFUSED"] if refused else [])
    assert check.verdict == ("fails at start" if refused else "safe")


@pytest.mark.requirement("DBX-3")
def test_a_variable_under_another_name_is_a_loss_that_is_said_with_both_names() -> None:
    variables = json.loads(plan_as_is(str(TOTALS), [TOTALS]))["variables"]
    listed = [each | {"name": "Totals"} if each["name"] == "totals" else each for each in variables]
    check = checked(TOTALS, variables=listed)
    assert (check.verdict, rules_of(check)) == ("loses data", ["VARIABLE_REPLACED"])
    assert "totals is no longer declared, and Totals starts empty" in check_text(check)
    deleted = checked(TOTALS, variables=listed, removed=["totals"])
    assert (deleted.verdict, rules_of(deleted)) == ("loses data", ["VARIABLE_REPLACED"])
    other = [each for each in variables if each["name"] != "totals"]
    other.append({"name": "unlike", "kind": "list", "value_schema": "b BOOLEAN"})
    assert checked(TOTALS, variables=other).verdict == "loses data"
    assert checked(TOTALS, variables=other, removed=["totals"]).verdict == "safe"  # said on purpose, and no rename


@pytest.mark.requirement("DBX-4")
def test_a_query_with_an_operator_beside_is_never_fine(totals: Path) -> None:
    shutil.copytree(FIXTURES / "dedup_rocksdb/state/0", totals / "state/1")
    metadata = totals / "state/1/_metadata/metadata"
    text = metadata.read_text().replace('"operatorId":0', '"operatorId":1')
    metadata.write_text(text.replace('"numPartitions":1', '"numPartitions":2'))
    (totals / "state/1/0/1.delta").unlink()
    write_state(totals)
    plan = json.loads(plan_as_is(str(totals), [totals]))
    assert plan["operators"] == ["transformWithState (Python)", "dropDuplicates"]
    check = checked(totals)
    assert (check.verdict, check.starts, check.not_checked) == ("not checked", None, ("operator 1 (dropDuplicates)",))
    assert {each.status for each in check.variables} == {"unchanged"}
    for text in (check_text(check), check_markdown(check)):
        assert "Not checked: operator 1 (dropDuplicates)." in text
    assert checked(totals, output_mode="Append").verdict == "fails at start"


@pytest.mark.requirement("DBX-3")
def test_what_a_start_that_failed_wrote_holds_no_row(tmp_path: Path) -> None:
    before, after = struct_type(a="integer", n="long"), struct_type(b="integer", n="long")
    files = [(0, v3(family("v", before))), (1, v3(family("v", after, 1), family("w", before)))]
    path = write_checkpoint(tmp_path / "checkpoint", files, ("v", "w"))
    (path / "commits/1").rename(path / "commits/0")
    variables = [{"name": "v", "value_schema": "b INT, n BIGINT"}, {"name": "w", "value_schema": "a INT, n BIGINT"}]
    check = check_state(str(path), [path], read_plan({"variables": variables}))
    assert {each.name: each.status for each in check.variables} == {
        "v": "accepted but loses data",
        "w": "accepted but fails later",
    }
    assert rules_of(check) == ["NEVER_COMMITTED", "RENAME_SUSPECTED"]


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("has_state", [True, False])
def test_a_query_that_is_starting_says_so(totals: Path, has_state: bool) -> None:
    for path in (totals / "commits").iterdir():
        path.unlink()
    if not has_state:
        shutil.rmtree(totals / "state")
    checkpoint = read_checkpoint(str(totals), [totals])
    assert checkpoint.is_starting
    assert checkpoint.problems == ()
    plan = read_plan({"variables": [{"name": "totals", "value_schema": "orders BIGINT"}]})
    with pytest.raises(InvalidCheckpoint, match="this query is starting: no batch has been committed"):
        check_state(str(totals), [totals], plan)


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("fixture", "plan", "code"),
    [
        ("customer_totals", {}, 0),
        ("customer_totals", {"output_mode": "Append"}, 1),
        ("customer_totals", {"variables": WITHOUT_A_FIELD}, 2),
        ("dedup_rocksdb", {"variables": [{"name": "v", "value_schema": "a INT"}]}, 2),
        ("join_rocksdb", {"variables": [{"name": "v", "value_schema": "a INT"}]}, 2),
    ],
)
def test_the_command_ends_with_0_for_what_is_safe_alone(
    fixture: str, plan: dict[str, Any], code: int, tmp_path: Path
) -> None:
    path = FIXTURES / fixture
    whole = plan if "variables" in plan else json.loads(plan_as_is(str(path), [path])) | plan
    (tmp_path / "plan.json").write_text(json.dumps(whole))
    ended = 0
    try:
        call_command("check_state", str(path), str(tmp_path / "plan.json"), stdout=StringIO())
    except SystemExit as end:
        ended = int(end.code or 0)
    except CommandError as error:
        ended = error.returncode
    assert ended == code


@pytest.mark.requirement("DBX-1", "DBX-2", "DBX-3", "DBX-4", "DBX-5")
def test_the_record_has_every_hazard_as_said() -> None:
    recorded = json.loads((HERE / "hazards_recorded.json").read_text())
    rows = {each["name"]: each for each in recorded["rows"]}
    assert list(rows) == [row["name"] for row in HAZARDS], "run python -m tests.state.record_matrix FOLDER --matrix …"
    for row in HAZARDS:
        answer, expected = rows[row["name"]], expected_of(row, recorded["spark"])
        assert answer["error"] == expected.get("error", "")
        assert {name: answer["reads"][name] for name in expected.get("reads", {})} == expected.get("reads", {})
        assert {name: answer["status"][name] for name in expected["status"]} == expected["status"]
        assert answer["verdict"] == expected.get("verdict", answer["verdict"])
        assert answer["as_said"] is True
