"""The check of a plan against checkpoints as they are on disk, its rules, its plan documents, and its renderings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from registry.checkpoints.plans import (
    StateCheck,
    check_markdown,
    check_state,
    check_text,
    parse_plan,
    plan_as_is,
    read_plan,
)
from registry.checkpoints.plans.rules import RESTART_RULES
from registry.errors import InvalidCheckpoint, InvalidInput, InvalidSchema
from tests.checkpoints.checkpoint_writer import family, struct_type, v3, write_checkpoint

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "checkpoints" / "fixtures"
TOTALS = FIXTURES / "customer_totals"
DOCUMENTED = jsonschema_rs.validator_for(json.loads((ROOT / "docs/reference/state-check.schema.json").read_text()))
LIMITS = "spark.sql.streaming.stateStore."
NOW: dict[str, Any] = {
    "totals": {"value_schema": "orders BIGINT, amount_cents BIGINT, status STRING, currency STRING"},
    "last_orders": {"kind": "list", "value_schema": "order_id STRING, amount_cents BIGINT"},
    "by_status": {"kind": "map", "user_key_schema": "status STRING", "value_schema": "orders INT"},
}


def checked(changed: dict[str, Any] | None = None, *, fixture: str = "customer_totals", **more: Any) -> StateCheck:
    """The check of the fixture's state with some variables changed; None leaves one out."""
    variables = {**NOW, **(changed or {})}
    listed = [{"name": name, **each} for name, each in variables.items() if each is not None]
    filled = more.pop("filled", None)
    path = FIXTURES / fixture
    return check_state(str(path), [path], read_plan({"variables": listed, **more}), filled=filled)


def status_of(check: StateCheck) -> dict[str, str]:
    return {each.name: each.status for each in check.variables}


def rules_of(check: StateCheck, name: str) -> list[str]:
    return [change.rule for each in check.variables for change in each.changes if each.name == name]


@pytest.mark.requirement("DBX-4")
def test_a_plan_made_of_what_is_stored_changes_nothing() -> None:
    check = check_state(str(TOTALS), [FIXTURES], parse_plan(plan_as_is(str(TOTALS), [FIXTURES])))
    assert set(status_of(check).values()) == {"unchanged"}
    assert (check.verdict, check.error, check.is_safe) == ("safe", "", True)
    assert check.files is not None
    assert (check.files.before, check.files.after, check.files.allowed) == (2, 2, 128)


@pytest.mark.requirement("DBX-2", "DBX-3")
@pytest.mark.parametrize(
    ("changed", "status", "verdict", "error", "rule"),
    [
        ({"value_schema": "orders BIGINT, amount_cents DOUBLE, status STRING, currency STRING"}, "accepted but loses data", "loses data", "", "TYPE_WIDENED_INEXACTLY"),
        ({"value_schema": "orders BIGINT, amount_cents BIGINT, state STRING, currency STRING"}, "accepted but loses data", "loses data", "", "RENAME_SUSPECTED"),
        ({"value_schema": "orders INT, amount_cents BIGINT, status STRING, currency STRING"}, "refused", "fails at start", "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION", "TYPE_NARROWED"),
        ({"value_schema": "orders TIMESTAMP, amount_cents BIGINT, status STRING, currency STRING"}, "accepted but loses data", "loses data", "", "MEANING_CHANGED"),
        ({"kind": "list", **NOW["totals"]}, "refused", "fails at start", "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE", "KIND_CHANGED"),
        ({"ttl": True, **NOW["totals"]}, "refused", "fails at start", "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL", "TTL_NEEDS_PROCESSING_TIME"),
        ({"key_schema": "customer_id BIGINT", **NOW["totals"]}, "refused", "fails at start", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "KEY_CHANGED"),
        ({"key_schema": "customer_id INT NOT NULL", **NOW["totals"]}, "unchanged", "safe", "", None),
    ],
)  # fmt: skip
def test_what_becomes_of_a_variable(
    changed: dict[str, Any], status: str, verdict: str, error: str, rule: str | None
) -> None:
    check = checked({"totals": changed})
    assert status_of(check)["totals"] == status
    assert (check.verdict, check.error) == (verdict, error)
    assert rule is None or rule in rules_of(check, "totals")
    assert check.variables[0].name == "totals" or status == "unchanged"  # worst first
    DOCUMENTED.validate(check.to_dict())


@pytest.mark.requirement("DBX-2")
def test_left_out_and_deleted_are_two_things() -> None:
    left_out = checked({"by_status": None})
    assert rules_of(left_out, "by_status") == ["ROWS_STAY"]
    deleted = checked({"by_status": None}, removed=["by_status", "never_there"])
    assert rules_of(deleted, "by_status") == ["ROWS_DELETED"]
    assert status_of(left_out)["by_status"] == status_of(deleted)["by_status"] == "removed"
    assert left_out.verdict == deleted.verdict == "safe"
    assert any("never_there" in note for note in deleted.notes)


@pytest.mark.requirement("DBX-2")
def test_a_removed_field_that_is_filled_is_a_loss() -> None:
    without = {"totals": {"value_schema": "orders BIGINT, amount_cents BIGINT, status STRING"}}
    unknown = checked(without)
    assert (unknown.verdict, status_of(unknown)["totals"]) == ("not checked", "evolves")
    assert unknown.not_checked == ("whether removed fields of totals hold values (currency)",)
    assert any("Rows not read" in note for note in unknown.notes)
    for said in (check_text(unknown), check_markdown(unknown), json.dumps(unknown.to_dict())):
        assert "whether removed fields of totals hold values (currency)" in said
    empty = checked(without, filled={(0, "totals", ""): (0, 0)})
    assert (empty.verdict, empty.not_checked) == ("safe", ())
    filled = checked(without, filled={(0, "totals", "currency"): (810, 1_000)})
    assert (filled.verdict, status_of(filled)["totals"]) == ("loses data", "accepted but loses data")
    assert rules_of(filled, "totals") == ["FILLED_FIELD_REMOVED"]
    assert "810 of 1,000 rows" in check_text(filled)
    elsewhere = checked(without, filled={(1, "totals", "currency"): (810, 1_000)})
    assert (elsewhere.verdict, rules_of(elsewhere, "totals")) == ("not checked", ["FIELD_REMOVED"])


@pytest.mark.requirement("DBX-5")
def test_limits_are_those_of_the_next_start_and_changes_count_once() -> None:
    grown = {
        "totals": {"value_schema": "orders DOUBLE, amount_cents BIGINT, status STRING, currency STRING, a INT, b INT"}
    }
    check = checked(grown)
    (totals,) = (each for each in check.variables if each.name == "totals")
    assert totals.budget is not None
    assert (totals.budget.before, totals.budget.after, totals.budget.allowed) == (2, 3, 16)
    full = checked(grown, settings={f"{LIMITS}valueStateSchemaEvolutionThreshold": 2})
    assert full.error == "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED"
    files = checked({"new": {"value_schema": "a INT"}}, settings={f"{LIMITS}maxNumStateSchemaFiles": 2})
    assert files.error == "STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED"
    said = {each.name.removeprefix(LIMITS): each.said_by for each in files.settings}
    assert said == {
        "valueStateSchemaEvolutionThreshold": "default",
        "maxNumStateSchemaFiles": "plan",
        "stateSchemaCheck": "default",
        "checkpointFormatVersion": "checkpoint",
    }
    with pytest.raises(InvalidInput, match="a whole number above 0"):
        checked(settings={f"{LIMITS}maxNumStateSchemaFiles": "many"})


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize("fixture", ["dedup_rocksdb", "aggregation_hdfs", "join_rocksdb", "join_v3"])
def test_built_in_operators_are_not_checked(fixture: str) -> None:
    check = checked(fixture=fixture)
    assert (check.verdict, check.is_safe, check.starts) == ("not checked", False, None)
    assert {each.status for each in check.variables} == {"not checked"}
    assert check.not_checked == (f"operator 0 ({check.operator.description})",)
    assert check.operator.why_fixed is not None
    for text in (check_text(check), check_markdown(check), json.dumps(check.to_dict())):
        assert "not checked" in text
        assert not any(word in text.lower() for word in ("unchanged", "nothing changes", "no evolution is possible"))
    DOCUMENTED.validate(check.to_dict())
    if fixture != "join_v3":
        with pytest.raises(InvalidCheckpoint, match="no state variables"):
            plan_as_is(str(FIXTURES / fixture), [FIXTURES])


@pytest.mark.requirement("DBX-1")
def test_without_avro_fields_are_found_by_position_and_the_encoding_stays() -> None:
    plan = json.loads(plan_as_is(str(FIXTURES / "timers_unsaferow"), [FIXTURES]))
    assert {each["name"]: each.get("ttl", False) for each in plan["variables"]} == {
        "counts": True, "last_visit": True, "pages": False,
    }  # fmt: skip
    plan["variables"][-1]["value_schema"] = "page STRING, visits INT"
    plan["settings"] = {f"{LIMITS}encodingFormat": "avro"}
    check = check_state(str(FIXTURES / "timers_unsaferow"), [FIXTURES], read_plan(plan))
    assert check.error == "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
    assert any("encodingFormat stays unsaferow" in note for note in check.notes)
    assert any("Values can't evolve" in note for note in check.notes)


def test_values_with_time_to_live_are_compared_without_sparks_wrapping() -> None:
    plan = json.loads(plan_as_is(str(FIXTURES / "timers_and_ttl"), [FIXTURES]))
    (visit,) = (each for each in plan["variables"] if each["name"] == "last_visit")
    visit["value_schema"] = "visits BIGINT, page STRING, device STRING"
    check = check_state(str(FIXTURES / "timers_and_ttl"), [FIXTURES], read_plan(plan))
    (found,) = (each for each in check.variables if each.name == "last_visit")
    assert [(each.rule, each.path) for each in found.changes] == [("TYPE_WIDENED", "visits"), ("FIELD_ADDED", "device")]
    assert (found.status, found.has_ttl) == ("evolves", True)
    plan["time_mode"] = "None"
    other = check_state(str(FIXTURES / "timers_and_ttl"), [FIXTURES], read_plan(plan))
    assert (other.error, [each.rule for each in other.changes]) == (
        "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
        ["TIME_MODE_CHANGED"],
    )


def test_the_language_decides_what_old_rows_read_as(tmp_path: Path) -> None:
    added = {
        "totals": {
            "value_schema": "orders BIGINT, amount_cents BIGINT, status STRING, currency STRING, n BIGINT NOT NULL"
        }
    }
    assert checked(added).error == "TRANSFORM_WITH_STATE_SCHEMA_MUST_BE_NULLABLE"
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "scala")
    for path in (tmp_path / "scala/state/0/_metadata/v2").iterdir():
        path.write_text(path.read_text().replace("transformWithStateInPySparkExec", "transformWithStateExec"))
    scala = checked(added, fixture=str(tmp_path / "scala"))
    (change,) = (change for each in scala.variables for change in each.changes)
    assert dict(change.reads) == {"Python": "None", "Scala": "0"}
    assert scala.verdict == "safe"
    added["totals"]["value_schema"] = added["totals"]["value_schema"].removesuffix(" NOT NULL")
    scala = checked(added, fixture=str(tmp_path / "scala"), language="scala")
    (change,) = (change for each in scala.variables for change in each.changes)
    assert dict(change.reads) == {"Python": "None", "Scala": "null (0 where the type is a primitive)"}


def test_the_checkpoint_is_only_read(tmp_path: Path) -> None:
    copy = tmp_path / "checkpoint"
    shutil.copytree(TOTALS, copy)
    before = {path: path.stat() for path in sorted(copy.rglob("*"))}
    check_state(str(copy), [tmp_path], read_plan({"variables": [{"name": "totals", **NOW["totals"]}]}))
    after = {path: path.stat() for path in sorted(copy.rglob("*"))}
    assert {path: (stat.st_mtime_ns, stat.st_size) for path, stat in before.items()} == {
        path: (stat.st_mtime_ns, stat.st_size) for path, stat in after.items()
    }
    with pytest.raises(InvalidCheckpoint, match="outside the allowed folders"):
        check_state(str(copy), [FIXTURES], read_plan({"variables": [{"name": "totals", **NOW["totals"]}]}))


def test_what_others_wrote_stays_text_in_markdown() -> None:
    name = "`<script>`|*x*\n# y"
    text = check_markdown(checked({name: {"value_schema": "a INT"}}))
    assert "\n# y" not in text
    assert "`` `<script>`|*x* # y ``" in text


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("[]", "a JSON object is expected"),
        ("{}", "variables must be a list"),
        ('{"variables": []}', "no state variables"),
        ('{"variables": [{"name": "v"}]}', "/variables/0: 'v' has no value_schema"),
        ('{"variables": [{"name": "v", "value_schema": "a INTT"}]}', '.*found "INTT", at character 3 of the schema$'),
        ('{"variables": [{"name": "v", "value_schema": "{"}]}', "/variables/0/value_schema: not JSON"),
        ('{"variables": [{"name": "v", "value_schema": {"type": "array"}}]}', "/variables/0/value_schema"),
        ('{"variables": [{"name": "v", "kind": "set", "value_schema": "a INT"}]}', "one of value, list, map"),
        ('{"variables": [{"name": "v", "kind": "map", "value_schema": "a INT"}]}', "needs a user_key_schema"),
        ('{"variables": [{"name": "v", "user_key_schema": "k INT", "value_schema": "a INT"}]}', "has no user_key_schema"),
        ('{"variables": [{"name": "$v", "value_schema": "a INT"}]}', "reserved for Spark"),
        ('{"variables": [{"name": "v", "value_schema": "a INT", "ttl": "1h"}]}', "milliseconds"),
        ('{"variables": [{"name": "v", "value_schema": "a INT"}], "removed": ["v"]}', "also listed in the variables"),
        ('{"variables": [{"name": "v", "value_schema": "a INT"}], "language": "java"}', "one of python, scala"),
        ('{"variables": [{"name": "v", "value_schema": "a INT"}], "settings": {"x": []}}', "a text, number or boolean is expected"),
        ('{"variables": [{"name": "v", "value_schema": "a INT"}], "operator": -1}', "the number of a stateful"),
        ('{"variables": [{"name": "v", "value_schema": "a INT"}], "Removed": []}', "'Removed' is not a key here"),
        ('{"variables": [], "variables": []}', "same key twice"),
        ("[" * 100_000, "nested too deep"),
        ('{"variables": [' + '{"name": "v", "value_schema": "a INT"},' * 1_001 + "1]}", "more than 1,000"),
    ],
)  # fmt: skip
def test_a_plan_that_can_not_be_used_says_where(document: str, says: str) -> None:
    with pytest.raises(InvalidSchema, match=says):
        parse_plan(document)


def test_a_place_in_the_document_has_its_line() -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse_plan(
            '{\n "variables": [\n  {"name": "v", "value_schema": "a INT"},\n  {"name": "v", "value_schema": "a"}]}'
        )
    assert (caught.value.line, caught.value.column) == (4, 33)


def test_which_operator_is_meant_must_be_clear() -> None:
    with pytest.raises(InvalidInput, match=r"no operator 7; it has 0 \(transformWithState"):
        checked(operator=7)
    assert checked(operator=0).verdict == "safe"


def test_every_rule_of_a_restart_is_reported_in_a_case_here_or_in_the_matrix() -> None:
    here = Path(__file__).parent
    told = "".join(
        (here / name).read_text() for name in ("test_check.py", "test_hazards.py", "test_damage.py", "test_sources.py")
    )
    assert [rule for rule in RESTART_RULES if rule not in told] == []


# a variable in the operator's metadata, which has JSON in a text of its JSON
CARTS = json.dumps(', {"stateName": "carts", "stateVariableType": "ValueState", "ttlEnabled": false}')[1:-1]
CHECKPOINTS = Path(__file__).parents[1] / "checkpoints" / "fixtures"


def check(path: Path, variables: list[dict[str, Any]]) -> StateCheck:
    return check_state(str(path), [path], read_plan({"variables": variables}))


@pytest.mark.requirement("DBX-3")
@pytest.mark.parametrize(
    ("name", "ttl", "status", "rule"),
    [
        ("last_visit", False, "accepted but loses data", "TTL_TURNED_OFF"),
        ("counts", False, "accepted but loses data", "TTL_TURNED_OFF"),
        ("pages", True, "accepted but loses data", "TTL_TURNED_ON_HIDES"),
    ],
)
def test_time_to_live_that_comes_or_goes(name: str, ttl: bool, status: str, rule: str) -> None:
    path = CHECKPOINTS / "timers_and_ttl"
    variables = json.loads(plan_as_is(str(path), [path]))["variables"]
    for each in variables:
        if each["name"] == name:
            each["ttl"] = ttl
    found = check(path, variables)
    (variable,) = (each for each in found.variables if each.name == name)
    assert (variable.status, [change.rule for change in variable.changes]) == (status, [rule])
    assert found.verdict == "loses data"


@pytest.mark.requirement("DBX-3")
def test_a_variable_that_comes_back_as_another_kind(tmp_path: Path) -> None:
    totals, carts = (family(name, struct_type(orders="long")) for name in ("totals", "carts"))
    path = write_checkpoint(tmp_path / "checkpoint", [(0, v3(carts, totals)), (1, v3(totals))], ("totals", "carts"))
    metadata = path / "state/0/_metadata/v2"
    (metadata / "0").write_text((metadata / "1").read_text())
    newest = (metadata / "1").read_text()
    (metadata / "1").write_text(newest.replace(CARTS, ""))
    assert CARTS in newest
    found = check(
        path,
        [
            {"name": "totals", "value_schema": "orders BIGINT"},
            {"name": "carts", "kind": "list", "value_schema": "orders BIGINT"},
        ],
    )
    (variable,) = (each for each in found.variables if each.name == "carts")
    assert variable.status == "accepted but fails later"
    assert [change.rule for change in variable.changes] == ["CAME_BACK_AS_OTHER_KIND", "VARIABLE_CAME_BACK"]
    assert found.verdict == "fails later"
