"""Real checkpoints of older Sparks: what their queries are known to keep, and what Spark's own reader said of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import Checkpoint, Operator, StateVariable, read_checkpoint
from registry.checkpoints.plans.ddl import parse_ddl
from registry.checkpoints.plans.model import to_ddl

HERE = Path(__file__).parent
OLDER = HERE / "older"
EXPECTED: dict[str, Any] = yaml.safe_load((HERE / "older_expected.yaml").read_text())
MADE = sorted(str(path.parent.relative_to(OLDER)) for path in OLDER.glob("*/*/metadata"))
SAID = [name for name in MADE if (OLDER / name / "spark.json").exists()]
BUDGET = 600_000  # bytes of all fixtures


def read(name: str) -> Checkpoint:
    return read_checkpoint(str(OLDER / name), [OLDER])


def ddl(schema: str | None) -> str:
    return to_ddl(json.loads(schema)) if schema else ""


def described(variable: StateVariable) -> dict[str, Any]:
    """A variable as the expectations write it."""
    newest = variable.newest
    return {
        "kind": variable.kind,
        "ttl": variable.ttl,
        "ids": [version.schema_id for version in variable.versions],
        "key": ddl(newest.key_schema),
        "map_key": ddl(newest.map_key_schema),
        "value": ddl(newest.value_schema),
        "removed_at": variable.removed_at,
    }


def expected_of(name: str) -> tuple[str, dict[str, Any]]:
    version, _, query = name.partition("/")
    return version, EXPECTED["queries"][query]


def expected_variable(given: dict[str, Any]) -> dict[str, Any]:
    defaults = {"kind": "operator", "ttl": False, "ids": [0], "map_key": "", "removed_at": None}
    return defaults | {name: value for name, value in given.items() if name != "batches"}


def assert_operator(operator: Operator, expected: dict[str, Any], version: str) -> None:
    has_metadata = version != "3.5"
    by_form = expected.get("by_form", expected["description"])
    assert operator.description == (expected["description"] if has_metadata else by_form)
    if has_metadata:
        assert (operator.name, operator.partitions) == (expected["name"], 1)
    found = {variable.name: described(variable) for variable in operator.variables}
    assert found == {name: expected_variable(each) for name, each in expected["variables"].items()}
    for variable in operator.variables:
        batches = expected["variables"][variable.name].get("batches")
        assert batches is None or [each.batch for each in variable.versions] == batches
    assert sorted(family.meaning for family in operator.internal) == sorted(expected.get("internal", []))
    assert (operator.time_mode, operator.schema_files) == (
        expected.get("time_mode"),
        expected.get("schema_files", 0),
    )
    assert operator.evolvable is expected.get("evolvable", False)


@pytest.mark.requirement("DBX-1", "DBX-6")
@pytest.mark.parametrize("name", MADE)
def test_a_checkpoint_of_an_older_spark_says_what_its_query_keeps(name: str) -> None:
    version, expected = expected_of(name)
    checkpoint = read(name)
    assert checkpoint.written_by == expected.get("written_by", EXPECTED["versions"][version]["written_by"])
    last, encoding = expected.get("last_batch", 0), expected.get("encoding", "unsaferow")
    run = checkpoint.settings[-1]
    assert (run.provider, run.encoding, run.last_batch) == (expected["provider"], encoding, last)
    assert (checkpoint.last_planned_batch, checkpoint.last_committed_batch) == (last, last)
    assert [source.kind for source in checkpoint.sources] == expected["sources"]
    assert (checkpoint.limits.value_schemas, checkpoint.limits.schema_files) == (16, 128)
    assert [operator.number for operator in checkpoint.operators] == list(range(len(expected["operators"])))
    for operator, each in zip(checkpoint.operators, expected["operators"], strict=True):
        assert_operator(operator, each, version)
    told = "operator {} has no metadata: its kind is derived from the form of its state"
    untold = [told.format(operator.number) for operator in checkpoint.operators] if version == "3.5" else []
    assert list(checkpoint.problems) == untold


@pytest.mark.requirement("DBX-5")
@pytest.mark.parametrize("name", [name for name in MADE if "/tws_" in name])
def test_what_is_used_of_the_limits_is_counted(name: str) -> None:
    _, expected = expected_of(name)
    (operator,) = expected["operators"]
    used = {
        variable: each.get("ids", [0])[-1] + 1
        for variable, each in operator["variables"].items()
        if operator.get("evolvable") and "removed_at" not in each
    }
    budgets = read(name).budgets
    assert {each.variable: each.used for each in budgets if each.limit == "value_schemas"} == used
    assert [each.used for each in budgets if each.limit == "schema_files"] == [operator["schema_files"]]


def as_spark_writes(schema: str) -> str:
    """A schema as Spark's simpleString has it."""

    def written(kind: Any) -> str:
        if isinstance(kind, str):
            return {"long": "bigint", "integer": "int"}.get(kind, kind)
        fields = ",".join(f"{field['name']}:{written(field['type'])}" for field in kind["fields"])
        return f"struct<{fields}>"

    return written(json.loads(schema))


def columns_by_spark(variable: StateVariable) -> dict[str, str]:
    """The columns in which Spark's reader shows a variable."""
    newest = variable.newest
    value = as_spark_writes(newest.value_schema)
    if variable.ttl:
        value = f"struct<value:{value},ttlExpirationMs:bigint>"
    names = {"map": "user_map_value", "list": "list_element"}
    shown = {"key": as_spark_writes(newest.key_schema), names.get(variable.kind, "value"): value}
    return shown | ({"user_map_key": as_spark_writes(newest.map_key_schema)} if newest.map_key_schema else {})


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize("name", SAID)
def test_sparks_own_reader_says_the_same(name: str) -> None:
    """Names, partitions, time mode, kinds and columns: everything that Spark's readers show of a store."""
    operators = {operator.number: operator for operator in read(name).operators}
    stores = json.loads((OLDER / name / "spark.json").read_text())
    assert {store["operatorId"] for store in stores} == set(operators)
    compared = set()
    for store in stores:
        operator = operators[store["operatorId"]]
        properties = store["operatorProperties"]
        assert (operator.name, operator.partitions) == (store["operatorName"], store["numPartitions"])
        assert operator.time_mode == properties.get("timeMode")
        kinds = {each["stateName"]: each["stateVariableType"] for each in properties.get("stateVariables", [])}
        for variable in operator.variables:
            shown = variable.name if kinds else "default"
            if variable.removed_at is None and (kinds or variable.name == store["stateStoreName"]):
                columns = {**store["columns"][shown]}
                assert columns.pop("partition_id") == "int"
                assert columns == columns_by_spark(variable)
                assert not kinds or kinds[variable.name] == f"{variable.kind.capitalize()}State"
                compared.add((operator.number, variable.name))
    assert compared == {(o.number, v.name) for o in operators.values() for v in o.variables if v.removed_at is None}


def test_every_query_was_made_by_every_spark_that_has_it() -> None:
    queries = EXPECTED["queries"]
    wanted = {
        f"{version}/{query}"
        for version in EXPECTED["versions"]
        for query in queries
        if queries[query].get("since", "3.5") <= version <= queries[query].get("until", "9.9")
    }
    assert set(MADE) == wanted
    made_by = json.loads((OLDER / "versions.json").read_text())
    assert {by.rpartition(".")[0] for by in made_by.values()} == set(made_by) == set(EXPECTED["versions"])


def test_the_fixtures_stay_small() -> None:
    assert sum(path.stat().st_size for path in OLDER.rglob("*") if path.is_file()) < BUDGET


@pytest.mark.parametrize("name", ["3.5/dedup_rocksdb", "4.0/dedup_rocksdb", "4.1/aggregation_hdfs"])
def test_rows_beside_the_schemas_make_no_difference(name: str, tmp_path: Path) -> None:
    """These were kept whole; without the files that hold rows the same is read."""
    shutil.copytree(OLDER / name, tmp_path / "c")
    rows = [path for path in (tmp_path / "c/state/0/0").iterdir() if path.name != "_metadata"]
    assert rows
    for path in rows:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (without,) = read_checkpoint(str(tmp_path / "c"), [tmp_path]).operators
    (whole,) = read(name).operators
    assert [described(each) for each in without.variables] == [described(each) for each in whole.variables]
    assert parse_ddl(described(whole.variables[0])["key"])
