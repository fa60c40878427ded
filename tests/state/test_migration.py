"""The generated way out of restarts that fail or lose state, with the real Spark; and what it says where there is none."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from registry.checkpoints import read_checkpoint
from registry.checkpoints.files import CheckpointFiles
from registry.checkpoints.plans import StateCheck, check_state, check_text, read_plan
from registry.checkpoints.plans.check import check_plan
from registry.checkpoints.plans.migration import STARTS_NOWHERE, USELESS
from registry.checkpoints.plans.operator_rules import OPERATOR_RULES
from registry.checkpoints.plans.source_rules import SOURCE_RULES
from registry.checkpoints.plans.stored_state import read_state
from registry.errors import InvalidCheckpoint
from tests.state.migrations import migrations
from tests.state.test_operators_predicted import DESCRIPTIONS, RECORD, write
from tests.state.test_operators_predicted import ROWS as PREDICTED
from tests.state.test_query_check import described
from tests.toolchains import require_tools

ROOT: Final = Path(__file__).parents[2]
FIXTURES: Final = ROOT / "tests" / "checkpoints" / "fixtures"
ROWS: Final = migrations()
RECORDED: Final = {row["name"]: row for row in RECORD["rows"]}
#: rules of changes that a migration carries the state over, if it has what the next release needs
HELPS: Final = (
    "STATE_KEY_CHANGED",
    "STATE_VALUE_CHANGED",
    "KEY_MEANING_CHANGED",
    "VALUE_MEANING_CHANGED",
    "SESSION_CHANGED",
)
NASTY: Final = 'x\'"""\n\\\nimport os; os._exit(3)  #\u202e{0}'


def checked(name: str, folder: Path) -> StateCheck | None:
    """The check before a recorded restart; None for a checkpoint that can't be read."""
    row = RECORDED[name]
    write(RECORD["checkpoints"][row["checkpoint"]], folder)
    plan = {"query": DESCRIPTIONS[row["after"]], "running": DESCRIPTIONS[row["before"]]}
    try:
        return check_state(str(folder), [folder], read_plan(plan))
    except InvalidCheckpoint:
        return None


def halves(half: str, folder: Path) -> dict[int, dict[str, Any]]:
    """What one half of all rows printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.state.migrations", half, str(folder)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(answers) == len(ROWS), done.stderr[-3000:]
    return {answer["number"]: answer for answer in answers}


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process with Spark, as a person starts a generated script."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"}
    settings = "--master local[1] --conf spark.ui.enabled=false pyspark-shell"
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment | {"PYSPARK_SUBMIT_ARGS": settings}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, dict[int, dict[str, Any]]]]:
    """The folder, what the scripts of all rows printed in one process, and what the next releases wrote."""
    require_tools("restarts of Spark's state", ("java",))
    folder = tmp_path_factory.mktemp("migrations")
    scripts = []
    for number, answer in halves("known", folder).items():
        row, place = ROWS[number], folder / str(number)
        assert not answer["error"], answer["text"]
        plan = {"query": answer["after"], "running": answer["before"]}
        plan |= {"variables": row["variables"]} if "variables" in row else {}
        report = check_state(str(place / "checkpoint"), [place], read_plan(plan))
        assert not report.is_safe
        assert report.script, report.ways_out
        scripts.append(place / "migrate.py")
        scripts[-1].write_text(filled_in(report.script, row.get("ttl")))
    before = [files_of(script.parent / "checkpoint") for script in scripts]
    every = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path, run_name='__main__')"
    done = ran("-c", every, *map(str, scripts))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert [files_of(script.parent / "checkpoint") for script in scripts] == before
    yield folder, done.stdout, halves("after", folder)


def filled_in(script: str, ttl: int | None) -> str:
    """A script with the times to live that the check can't know."""
    constant = re.search(r"(?m)^TTL_MS = \{[^}]*\}", script)
    assert constant
    return script.replace(constant[0], constant[0].replace("None", str(ttl)))


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its content."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: str(ROWS[number]["name"]))
def test_the_next_release_goes_on_as_if_it_had_run_from_the_first_row(
    number: int, migrated: tuple[Path, str, dict[int, dict[str, Any]]]
) -> None:
    folder, printed, answers = migrated
    place = folder / str(number)
    assert f"before: {place / 'checkpoint'}, batch 0: " in printed
    assert f"after: {place / 'checkpoint-migrated' / 'checkpoint'}" in printed
    answer, empty = answers[number], ROWS[number].get("starts_empty", [])
    assert not answer["error"], answer["text"]
    assert answer["written"]
    written, right = ([without(row, empty) for row in answer[side]] for side in ("written", "right"))
    assert sorted(written) == sorted(right)
    assert bool(empty) is (answer["written"] != answer["right"])


@pytest.mark.slow
@pytest.mark.spark
def test_a_script_overwrites_nothing(migrated: tuple[Path, str, dict[int, dict[str, Any]]]) -> None:
    folder = migrated[0] / "0"
    before = files_of(folder)
    done = ran(str(folder / "migrate.py"))
    assert done.returncode == 1
    assert "isn't empty. Nothing was written." in done.stderr
    assert files_of(folder) == before


def without(row: str, columns: list[int]) -> str:
    """A row of output without some of its columns."""
    return json.dumps([value for at, value in enumerate(json.loads(row)) if at not in columns])


@pytest.mark.requirement("DBX-4")
def test_every_restart_that_is_not_safe_has_a_way_out_or_says_what_is_lost(tmp_path: Path) -> None:
    ways, scripts = set(), 0
    for number, row in enumerate(PREDICTED):
        report = checked(row["name"], tmp_path / str(number))
        if report is None or report.is_safe:
            assert report is None or not (report.ways_out or report.script)
            continue
        by_way = {item.way: item for item in report.ways_out}
        assert len(by_way) == len({item.way for item in report.ways_out})
        starts_nowhere = any(change.rule in STARTS_NOWHERE for change in report.changes)
        assert ("new checkpoint" in by_way) is not starts_nowhere, row["name"]
        assert any(item.has_script for item in report.ways_out) is bool(report.script)
        if report.script:
            ast.parse(report.script)
        ways |= set(by_way)
        scripts += bool(report.script)
    assert ways == {"undo", "state migration", "new checkpoint", "check again"}
    assert scripts >= 30


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("aggregation: max becomes min", "the old state has none of min(v)"),
        ("aggregation: a grouping key added", "the key j isn't in the old state"),
        ("aggregation: a filter added before it", "the state was made of other rows"),
        ("deduplication: a column added", "the key j isn't in the old state"),
        ("join: a column added on the left", "no script can write the state of this operator (stream-stream join)"),
        ("source: a second one added by a union", "the offsets belong to other sources"),
    ],
)
def test_the_report_says_why_there_is_no_script(name: str, says: str, tmp_path: Path) -> None:
    report = checked(name, tmp_path)
    assert report
    assert not report.script
    assert [item.text for item in report.ways_out if item.way == "state migration"] == [
        f"The state can't be carried over by a script: {says}."
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("aggregation: an aggregate added at the end", "max(w)"),
        ("deduplication: the watermark's column removed", "the keys that the watermark has removed"),
    ],
)
def test_the_report_says_what_a_script_can_not_carry_over(name: str, says: str, tmp_path: Path) -> None:
    report = checked(name, tmp_path)
    assert report
    assert f"The old state doesn't have {says}: there, rows from before the migration don't count." in check_text(
        report
    )
    assert f"STARTS_EMPTY = {[says]!r}" in report.script


def test_for_each_rule_it_is_decided_whether_a_migration_helps() -> None:
    """A new rule of operators or sources joins one of the two."""
    rules = [*OPERATOR_RULES.values(), *SOURCE_RULES.values()]
    assert {rule.id for rule in rules if rule.effect != "note"} == {
        *(rule.id for rule in rules if rule.id in USELESS), *HELPS
    }  # fmt: skip


def test_hostile_names_are_literals_in_a_script(tmp_path: Path) -> None:
    """Of a variable, of a setting and of the folder; the variable takes the place of another."""
    folder = Path(shutil.copytree(FIXTURES / "customer_totals", tmp_path / NASTY.replace("/", "")))
    plan = {
        "variables": [{"name": NASTY, "value_schema": "orders INT"}],
        "settings": {f"spark.sql.{NASTY}": NASTY, "k": "x"},
    }
    script = check_state(str(folder), [folder], read_plan(plan)).script
    tree = ast.parse(script)
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    }
    assert values["CHECKPOINT"] == str(folder)
    assert values["PLAN"]["variables"][0]["name"] == NASTY
    assert values["PLAN"]["variables"][0]["from"] == "totals"
    assert values["PLAN"]["settings"][f"spark.sql.{NASTY}"] == NASTY
    assert "k" not in values["PLAN"]["settings"]
    kinds = {type(node) for node in tree.body}
    assert kinds == {ast.Expr, ast.ImportFrom, ast.Import, ast.Assign, ast.FunctionDef, ast.If}
    assert NASTY not in script
    assert "\u202e" not in script


Fields = list[tuple[str, str]]


def of_aggregates(before: Fields, after: Fields, *, key: str = "long") -> tuple[str, dict[str, Any]]:
    """Why there is no script for an aggregation by `id` with other aggregates (expression, type), and its plan."""
    path = FIXTURES / "aggregation_hdfs"
    files, read = CheckpointFiles(str(path), (path,)), read_checkpoint(str(path), [path])
    operator = read.operators[0]
    variable = operator.variables[0]
    running, query = described("aggregation_hdfs"), described("aggregation_hdfs")
    for each, aggregates in ((running, before), (query, after)):
        fields = [{"name": "x", "type": kind, "nullable": True, "metadata": {}} for _, kind in aggregates]
        each["operators"][0]["values"] = [{"expression": text} for text, _ in aggregates]
        each["operators"][0]["stores"]["default"]["value"]["fields"] = fields
        each["operators"][0]["state_format"] = 2
    query["operators"][0]["stores"]["default"]["key"]["fields"][0]["type"] = key
    value = json.dumps(running["operators"][0]["stores"]["default"]["value"])
    variable = replace(variable, versions=(replace(variable.newest, value_schema=value),))
    read = replace(read, operators=(replace(operator, variables=(variable,)),))
    state = replace(read_state(files, read, None), operator=read.operators[0])
    report = check_plan(read, state, read_plan({"query": query, "running": running}))
    return next((way.text for way in report.ways_out if way.way == "state migration"), ""), plan_of(report.script)


def plan_of(script: str) -> dict[str, Any]:
    """The plan in a script, with what starts empty; empty without a script."""
    constants = {
        node.targets[0].id: node.value
        for node in ast.parse(script).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return {name: ast.literal_eval(constants[name]) for name in ("PLAN", "STARTS_EMPTY") if name in constants}


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize(
    ("before", "after", "key", "says"),
    [
        ([("max(v)", "long")], [("max(v)", "string")], "long", "max(v) is of other types"),
        ([("max(v)", "timestamp")], [("max(v)", "string")], "long", "max(v) is of other types"),
        ([("first(m)", "long")], [("first(m)", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True})], "long", "no script can write the state of first(m)"),
        ([("max(v)", "long")], [("max(v)", "long")], "string", "the key id is of another type"),
        ([("max(s)", "string")], [("max(cast(s as double))", "double")], "long", "the old state has none of max(cast(s as double))"),
        ([("count(s)", "long")], [("count(cast(s as int))", "double")], "long", "the old state has none of count(cast(s as int))"),
    ],
)  # fmt: skip
def test_state_that_would_change_its_meaning_is_not_carried_over(
    before: Fields, after: Fields, key: str, says: str
) -> None:
    text, plan = of_aggregates(before, after, key=key)
    assert says in text
    assert plan == {}


@pytest.mark.requirement("DBX-1")
def test_a_script_stops_at_values_that_the_new_type_would_change() -> None:
    _, plan = of_aggregates([("max(v)", "double"), ("avg(v)", "double")], [("max(v)", "integer"), ("avg(v)", "double")])
    assert [each["exact"] for each in plan["PLAN"]["fields"]] == [True, True]
    assert [each["exact"] for each in plan["PLAN"]["keys"]] == [True]


@pytest.mark.requirement("DBX-1")
def test_renamed_fields_of_variables_are_carried_over_or_named() -> None:
    """A map's key by position, as Spark compares it; a field that no one suspects to be renamed starts empty."""
    folder = FIXTURES / "customer_totals"
    variables = [
        {"name": "totals", "kind": "value", "value_schema": "total INT, amount_cents BIGINT, status STRING"},
        {"name": "by_status", "kind": "map", "user_key_schema": "state STRING", "value_schema": "orders INT"},
        {"name": "last_orders", "kind": "list", "value_schema": "order_id STRING, amount_cents BIGINT"},
    ]
    plan = plan_of(check_state(str(folder), [folder], read_plan({"variables": variables})).script)
    made = {each["name"]: each for each in plan["PLAN"]["variables"]}
    assert made["by_status"]["key_renamed"] == {"state": "status"}
    assert made["totals"]["renamed"] or "totals.total" in plan["STARTS_EMPTY"]
    variables[0]["value_schema"] = "orders TIMESTAMP, amount_cents BIGINT, status STRING, currency STRING"
    report = check_state(str(folder), [folder], read_plan({"variables": variables}))
    assert "totals: orders (long) can't become timestamp" in check_text(report)
    assert not report.script
