"""What the check says of restarts of Scala applications, held against what real ones did: scala_recorded.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from registry.checkpoints import read_checkpoint
from registry.checkpoints.plans import StateCheck, StatePlan, check_state, read_plan
from tests.state.scala_restarts import RECORD, ROWS

RECORDED: dict[str, Any] = json.loads(RECORD.read_text())
ANSWERS: dict[str, dict[str, Any]] = {each["name"]: each for each in RECORDED["rows"]}


def laid(files: dict[str, str], folder: Path) -> Path:
    """The checkpoint of a recording as it was before the last start, without its rows."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content) if "_stateSchema" in name else content.encode())
    return folder


def plan_of(step: dict[str, Any], schemas: dict[str, Any]) -> StatePlan:
    """The plan of a step, with the schemas that Spark's encoders made of its classes."""
    variables = []
    for name, each in step["variables"].items():
        key = {"user_key_schema": schemas[f"key {name}"]} if "key" in each else {}
        kind = each.get("kind", "value")
        variables.append({"name": name, "kind": kind, "value_schema": schemas[f"type {name}"], **key})
    return read_plan({"language": "scala", "variables": variables})


def checked(row: dict[str, Any], folder: Path) -> StateCheck:
    answer = ANSWERS[row["name"]]
    plan = plan_of(row["steps"][-1], answer["schemas"])
    return check_state(str(laid(answer["before"], folder / "checkpoint")), [folder], plan)


def at(read: Any, path: str) -> Any:
    """What stands at the path of a change in what was read; the first of several elements."""
    for name in path.split("."):
        bare = name.removesuffix("[]")
        read = read[bare][0] if name.endswith("[]") else read[bare]
    return read


def said(value: Any) -> str:
    """A value as the check writes it: None of an option is what null becomes."""
    return "null" if value in (None, "None") else json.dumps(value)


@pytest.mark.requirement("DBX-1", "DBX-2", "DBX-3")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_a_restart_in_scala_does_what_the_check_said(row: dict[str, Any], tmp_path: Path) -> None:
    answer, expected = ANSWERS[row["name"]], row["expect"]
    error = expected.get("error", "")
    assert answer["error"] == error
    assert answer["reads"] == expected.get("reads", {}) or error
    check = checked(row, tmp_path)
    assert {each.name: each.status for each in check.variables} == expected["status"]
    fails_later = check.verdict == "fails later"
    assert check.error == ("" if fails_later else error)
    assert bool(error) is (check.verdict in ("fails at start", "fails later"))
    if fails_later:
        assert error in {change.error for each in check.variables for change in each.changes}


@pytest.mark.requirement("DBX-2")
def test_what_old_rows_read_as_is_said_for_scala(tmp_path: Path) -> None:
    """Null for references and options, its zero for a primitive: for every field that a row of the record adds."""
    compared = []
    for number, row in enumerate(ROWS):
        answer = ANSWERS[row["name"]]
        if answer["error"]:
            continue
        for variable in checked(row, tmp_path / str(number)).variables:
            read = answer["reads"].get(variable.name)
            for change in variable.changes:
                if change.rule != "FIELD_ADDED":
                    continue
                value = read[0] if variable.kind == "list" else read[0][1] if variable.kind == "map" else read
                seen, told = said(at(value, change.path)), dict(change.reads)["Scala"]
                # A boxed number or an option may be missing: the check can't tell it from a primitive in a plan's text.
                assert seen == told or told.startswith(f"{seen} ("), (row["name"], change.path)
                compared.append((seen, change.after))
    assert {seen for seen, _ in compared} == {"null", "0", "false", "0.0"}
    assert len(compared) >= 20


@pytest.mark.requirement("DBX-1")
def test_the_default_family_that_scala_writes_down_is_no_variable(tmp_path: Path) -> None:
    (answer, *_) = RECORDED["rows"]
    path = laid(answer["before"], tmp_path / "checkpoint")
    (written,) = (path / "state/0/_stateSchema/default").iterdir()
    assert b"\x00\x07default" in written.read_bytes()
    (operator,) = read_checkpoint(str(path), [tmp_path]).operators
    assert [variable.name for variable in operator.variables] == ["v"]
    assert operator.description == "transformWithState"


def test_the_record_has_every_row() -> None:
    assert list(ANSWERS) == [row["name"] for row in ROWS], "run python -m tests.state.scala_restarts FOLDER"
    assert RECORDED["spark"].startswith("4.2.")
    assert len(ROWS) >= 8
