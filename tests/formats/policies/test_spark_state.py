"""What a restart does to Spark's state, case by case, and against Spark's own classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.errors import InvalidSchema
from registry.formats.policies.spark_state import (
    STATE_RULES,
    PlannedVariable,
    RestartPlan,
    RestartSettings,
    StoredVariable,
    StoredVersion,
    parse_struct,
    plan_restart,
    schema_changes,
    to_avro,
    why_no_avro,
)
from tests.amounts import how_many
from tests.toolchains import JAVA, require_tools
from tests.waiting import costs_little

FOLDER = Path(__file__).parent / "cases" / "spark_state"


def load_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}", marks=[pytest.mark.requirement(case["requirement"])])
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


CASES = load_cases()


def struct(fields: dict[str, Any]) -> dict[str, Any]:
    """A StructType from the short form; `!` is not nullable, `#` has metadata, a list an array, {"{}": …} a map."""
    listed = []
    for name, kind in fields.items():
        flags = kind if isinstance(kind, str) else ""
        metadata = {"comment": "x"} if flags.endswith("#") else {}
        nullable = not flags.endswith("!")
        listed.append({"name": name, "type": spark_type(kind), "nullable": nullable, "metadata": metadata})
    return {"type": "struct", "fields": listed}


def spark_type(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind.rstrip("!#")
    if isinstance(kind, list):
        return {"type": "array", "elementType": spark_type(kind[0]), "containsNull": True}
    if "{}" in kind:
        inner = spark_type(kind["{}"])
        return {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
    return struct(kind)


def plan_of(case: dict[str, Any]) -> RestartPlan:
    first = case.get("first_id", 0)
    old_key, new_key = (struct(key) for key in case.get("key", [{"k": "string"}, {"k": "string"}]))
    stored = [
        StoredVariable(
            name,
            tuple(StoredVersion(first + at, old_key, json.dumps(struct(value))) for at, value in enumerate(values)),
            name not in case.get("gone", []),
            case.get("uncommitted", {}).get(name, 0),
        )
        for name, values in case["stored"].items()
    ]
    planned = [PlannedVariable(name, new_key, struct(value)) for name, value in case["planned"].items()]
    limits = dict(zip(("value_schemas", "schema_files"), case.get("limits", []), strict=False))
    settings = RestartSettings(
        case.get("evolution", True), case.get("language", "python"), is_checked=case.get("checked", True), **limits
    )
    return plan_restart(stored, planned, settings, case.get("files"))


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_each_variable(case: dict[str, Any]) -> None:
    plan = plan_of(case)
    also = case.get("also", [])
    found = {
        each.name: [
            each.status,
            each.schema_id,
            [[c.rule, c.path, c.effect, c.against] for c in each.changes if c.rule not in also],
        ]
        for each in plan.variables
    }
    assert found == case["plan"]
    assert plan.error == case.get("error", "")
    assert plan.starts is ("error" not in case)
    assert bool(plan.error_message) is ("error" in case)
    rules = {change.rule for each in plan.variables for change in each.changes}
    assert set(also) <= rules


@pytest.mark.parametrize("case", CASES)
def test_budgets_and_what_old_rows_read_as(case: dict[str, Any]) -> None:
    plan = plan_of(case)
    budgets = {each.name: each.budget for each in plan.variables if each.budget is not None}
    for name, (before, after, allowed) in case.get("budget", {}).items():
        assert (budgets[name].before, budgets[name].after, budgets[name].allowed) == (before, after, allowed)
    if "files_after" in case:
        assert plan.files is not None
        assert (plan.files.before, plan.files.after) == (case["files"], case["files_after"])
    else:
        assert plan.files is None
    changes = [change for each in plan.variables for change in each.changes]
    for path, reads in case.get("reads", {}).items():
        (change,) = [each for each in changes if each.path == path]
        assert dict(change.reads) == reads
        assert all(value in change.why for value in reads.values())
    for rule, opinion in case.get("document", {}).items():
        assert {each.document for each in changes if each.rule == rule} == {opinion}
    for text in case.get("says", []):
        assert any(text in each.message + each.why for each in changes)


@pytest.mark.parametrize("case", CASES)
def test_every_sentence_has_its_values(case: dict[str, Any]) -> None:
    plan = plan_of(case)
    json.dumps(plan.to_dict(), allow_nan=False)
    for each in plan.variables:
        for change in each.changes:
            for text in (change.message, change.why, change.remedy):
                assert text
                assert "{" not in text.replace("{}", "")


def test_every_rule_has_a_case() -> None:
    told = {rule for param in CASES for rule in param.values[0].get("also", [])}
    for param in CASES:
        told |= {change[0] for _, _, changes in param.values[0]["plan"].values() for change in changes}
    assert told == set(STATE_RULES)


@pytest.mark.requirement("DBX-3")
def test_the_likeliest_pair_is_the_rename() -> None:
    case = {
        "stored": {"v": [{"order_id": "string", "city": "string"}]},
        "planned": {"v": {"id_of_order": "string", "town": "string", "orderId": "string"}},
    }
    (variable,) = plan_of(case).variables
    renames = [(c.before, c.after, c.score) for c in variable.changes if c.rule == "RENAME_SUSPECTED"]
    assert [(before, after) for before, after, _ in renames] == [("order_id", "orderId")]
    assert renames[0][2] is not None
    assert renames[0][2] > 0.8


def test_two_stored_versions_are_compared_by_name_or_by_position() -> None:
    old, new = struct({"a": "integer", "b": "integer"}), json.dumps(struct({"b": "long", "a": "integer"}))
    named = schema_changes(old, new, has_evolution=True)
    assert [(each.rule, each.path) for each in named] == [("TYPE_WIDENED", "b"), ("FIELDS_REORDERED", "")]
    placed = schema_changes(old, new, has_evolution=False)
    assert [(each.rule, each.path, each.before) for each in placed] == [("VALUE_CHANGED", "b", "integer")]
    odd = struct({"a": "variant", "m": "interval day"})
    assert schema_changes(odd, new, has_evolution=True)[0].rule == "FIELD_ADDED"
    assert schema_changes(odd, odd, has_evolution=True) == ()


def test_the_avro_form() -> None:
    given = parse_struct(struct({"a": "integer", "l": [{"x": "decimal(10,2)"}], "m": {"{}": ["date"]}, "n": "void"}))
    decimal = {"logicalType": "decimal", "precision": 10, "scale": 2}
    fixed = {"type": "fixed", "name": "fixed", "namespace": "x", "size": 5, **decimal}
    inner = {"type": "record", "name": "l", "fields": [{"name": "x", "type": ["null", fixed], "default": None}]}
    dates = {"type": "array", "items": {"type": "int", "logicalType": "date"}}
    assert to_avro(given) == {
        "type": "record",
        "name": "topLevelRecord",
        "fields": [
            {"name": "a", "type": ["null", "int"], "default": None},
            {"name": "l", "type": ["null", {"type": "array", "items": ["null", inner]}], "default": None},
            {"name": "m", "type": ["null", {"type": "map", "values": ["null", dates]}], "default": None},
            {"name": "n", "type": "null", "default": None},
        ],
    }


@pytest.mark.parametrize(
    ("fields", "error", "path"),
    [
        ([("a", "variant")], "IncompatibleSchemaException", "a"),
        ([("my-col", "long")], "SchemaParseException", "my-col"),
        ([("", "long")], "SchemaParseException", ""),
        ([("\U00020000", "long")], "SchemaParseException", "\U00020000"),
        ([("a", "long"), ("a", "long")], "AvroRuntimeException", "a"),
        (
            [("m", {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True})],
            "IncompatibleSchemaException",
            "m",
        ),
    ],
)
def test_what_has_no_avro_form(fields: list[tuple[str, Any]], error: str, path: str) -> None:
    listed = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]
    given = parse_struct({"type": "struct", "fields": listed})
    reason = why_no_avro(given)
    assert reason is not None
    assert (reason.error, reason.path) == (error, path)
    with pytest.raises(ValueError, match=reason.reason[:10]):
        to_avro(given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "no type that Spark writes"),
        ('"string"', "a StructType is expected"),
        ({"type": "struct", "fields": None}, "without a list of fields"),
        ({"type": "struct", "fields": [{"name": 1}]}, "a field without a name"),
        ({"type": "struct", "fields": [{"name": "a", "type": "long"}]}, "needs nullable as true or false"),
        ({"type": "struct", "fields": [{}] * 20_001}, "more than 20000 fields"),
    ],
)
def test_what_is_no_struct_type_is_refused_in_words(given: Any, says: str) -> None:
    with pytest.raises(InvalidSchema, match=says):
        parse_struct(given)


@pytest.mark.slow
def test_a_deep_schema_is_refused_and_a_wide_one_is_quick() -> None:
    deep: Any = "long"
    for _ in range(5_000):
        deep = {"type": "array", "elementType": deep, "containsNull": True}
    fields = [{"name": "a", "type": deep, "nullable": True, "metadata": {}}]
    with pytest.raises(InvalidSchema, match="nested more than 100 levels"):
        parse_struct({"type": "struct", "fields": fields})
    old = {f"a{number}": "string" for number in range(5_000)}
    new = {f"b{number}": "string" for number in range(5_000)}
    with costs_little():  # every old name held against every new one takes minutes
        (variable,) = plan_of({"stored": {"v": [old]}, "planned": {"v": new}}).variables
    assert variable.status == "accepted but loses data"


@pytest.mark.slow
@pytest.mark.requirement("DBX-2", "DBX-3", "DBX-5")
def test_verdicts_ids_and_avro_forms_equal_sparks(capsys: pytest.CaptureFixture[str]) -> None:
    """`SCHEMADESK_LONG=1` asks for 300 (see amounts.py)."""
    require_tools("the comparison with Spark's rules", JAVA)
    from tests.formats.policies import spark_comparison

    code = spark_comparison.main(how_many("restarts of random Spark state"), 5_000_000)
    assert code == 0, capsys.readouterr().out
