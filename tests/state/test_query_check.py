"""The check of described queries against checkpoints as they are on disk: operators other than transformWithState."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.core.management import call_command

from registry.checkpoints import read_checkpoint
from registry.checkpoints.plans import StateCheck, check_markdown, check_state, check_text, read_plan
from registry.checkpoints.plans.operator_rules import OPERATOR_RULES
from registry.errors import InvalidSchema

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "checkpoints" / "fixtures"
DOCUMENTED = jsonschema_rs.validator_for(json.loads((ROOT / "docs/reference/state-check.schema.json").read_text()))
Change = Callable[[dict[str, Any]], Any]


def described(fixture: str) -> dict[str, Any]:
    """A description of the query that wrote a fixture, with the schemas that it stored."""
    checkpoint = read_checkpoint(str(FIXTURES / fixture), [FIXTURES])
    operators = []
    for each in checkpoint.operators:
        stores = {
            item.name: {"key": json.loads(item.newest.key_schema), "value": json.loads(item.newest.value_schema)}
            for item in each.variables
        }
        fields = [field["name"] for store in stores.values() for field in store["value"]["fields"]]
        keys = [{"expression": field["name"]} for field in next(iter(stores.values()))["key"]["fields"]]
        operators.append(
            {
                "number": each.number,
                "name": each.name,
                "keys": keys,
                "values": [{"expression": f"of {name}", "fields": 1} for name in fields],
                "properties": {},
                "stores": stores,
                "input": [],
                "state_format": None,
            }
        )
    kinds = {"files": "json", "rate": "rate"}
    return {
        "schemadesk_spark": 1,
        "spark": "4.2.0",
        "operators": operators,
        "sources": [{"provider": kinds.get(each.kind, each.kind), "path": each.folder} for each in checkpoint.sources],
        "watermarks": [],
        "output_mode": "Update",
        "refused": None,
        "settings": {"spark.sql.streaming.stateStore.checkpointFormatVersion": "1"},
    }


def checked(fixture: str, changed: Change, *, is_known: bool = True) -> StateCheck:
    """The check of a fixture with a changed description, and with that of the running query if it is known."""
    running = described(fixture)
    query = copy.deepcopy(running)
    changed(query["operators"][0])
    plan = {"query": query, **({"running": running} if is_known else {})}
    return check_state(str(FIXTURES / fixture), [FIXTURES], read_plan(plan))


def value(operator: dict[str, Any], store: str = "default") -> list[Any]:
    fields: list[Any] = operator["stores"][store]["value"]["fields"]
    return fields


def key(operator: dict[str, Any]) -> list[Any]:
    fields: list[Any] = operator["stores"]["default"]["key"]["fields"]
    return fields


VALUE_ERROR = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
KEY_ERROR = "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"
NAME_ERROR = "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
LEFT = "left-keyWithIndexToValue"


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize(
    ("fixture", "changed", "verdict", "error", "rule"),
    [
        ("aggregation_hdfs", lambda each: None, "safe", "", None),
        ("aggregation_hdfs", lambda each: value(each).append(value(each)[0]), "fails at start", VALUE_ERROR, "STATE_VALUE_CHANGED"),
        ("aggregation_hdfs", lambda each: value(each)[1].update(type="double"), "fails at start", VALUE_ERROR, "STATE_VALUE_CHANGED"),
        ("aggregation_hdfs", lambda each: value(each)[0].update(nullable=True), "fails at start", VALUE_ERROR, "STATE_VALUE_CHANGED"),
        ("aggregation_hdfs", lambda each: key(each)[0].update(type="string"), "fails at start", KEY_ERROR, "STATE_KEY_CHANGED"),
        ("aggregation_hdfs", lambda each: each["values"][1].update(expression="min(v)"), "silently wrong", "", "VALUE_MEANING_CHANGED"),
        ("aggregation_hdfs", lambda each: each["keys"][0].update(expression="other"), "silently wrong", "", "KEY_MEANING_CHANGED"),
        ("aggregation_hdfs", lambda each: each["values"][1].update(expression="cast(of max as bigint)"), "not checked", "", None),
        ("aggregation_hdfs", lambda each: each["input"].append("filter (v > 3)"), "silently wrong", "", "ROWS_OF_STATE_CHANGED"),
        ("aggregation_hdfs", lambda each: each["input"].append("filter isnotnull(v)"), "silently wrong", "", "ROWS_OF_STATE_CHANGED"),
        ("aggregation_hdfs", lambda each: each["input"].append("filter isnotnull(id)"), "safe", "", None),
        ("aggregation_hdfs", lambda each: each["input"].append("filter of keys (id = 3)"), "safe", "", "KEYS_FILTERED"),
        ("aggregation_hdfs", lambda each: each.update(name="dedupe"), "fails at start", NAME_ERROR, "OPERATORS_CHANGED"),
        ("dedup_rocksdb", lambda each: key(each).append(key(each)[0]), "fails at start", KEY_ERROR, "STATE_KEY_CHANGED"),
        ("join_rocksdb", lambda each: value(each, LEFT)[1].update(type="string"), "fails at start", VALUE_ERROR, "STATE_VALUE_CHANGED"),
        ("join_rocksdb", lambda each: each["properties"].update(condition="(a > b)"), "not checked", "", None),
        ("pandas_state", lambda each: each["keys"][0].update(expression="other"), "silently wrong", "", "KEY_MEANING_CHANGED"),
    ],
)  # fmt: skip
def test_a_description_decides_about_every_operator(
    fixture: str, changed: Change, verdict: str, error: str, rule: str | None
) -> None:
    check = checked(fixture, changed)
    assert (check.verdict, check.error) == (verdict, error), check.sentence
    assert [each.rule for each in check.changes] == ([rule] if rule else [])
    DOCUMENTED.validate(check.to_dict())
    for text in (check_text(check), check_markdown(check)):
        assert check.to_dict()["label"] in text


@pytest.mark.requirement("DBX-1")
def test_without_the_running_query_only_sparks_comparison_is_repeated() -> None:
    same = checked("aggregation_hdfs", lambda each: None, is_known=False)
    assert (same.verdict, same.changes) == ("not checked", ())
    assert "give the description of the running query to compare" in same.sentence
    renamed = checked("aggregation_hdfs", lambda each: value(each)[1].update(name="min"), is_known=False)
    assert (renamed.verdict, [each.rule for each in renamed.changes]) == ("silently wrong", ["VALUE_MEANING_CHANGED"])
    refused = checked("aggregation_hdfs", lambda each: value(each).pop(), is_known=False)
    assert (refused.verdict, refused.error) == ("fails at start", VALUE_ERROR)


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize(
    ("before", "after", "verdict", "rule"),
    [
        ("var_samp(v)", "stddev_pop(v)", "safe", "STATE_READ_OTHERWISE"),
        ("stddev(v)", "variance(v)", "safe", "STATE_READ_OTHERWISE"),
        ("collect_list(v, 0, 0)", "collect_set(v, 0, 0)", "safe", "STATE_READ_OTHERWISE"),
        ("collect_set(v, 0, 0)", "collect_list(v, 0, 0)", "silently wrong", "VALUE_MEANING_CHANGED"),
        ("percentile_approx(v, 0.5, 100, 0, 0)", "percentile_approx(v, 0.9, 100, 0, 0)", "safe", "STATE_READ_OTHERWISE"),
        ("percentile_approx(v, 0.5, 100, 0, 0)", "percentile_approx(v, 0.5, 10, 0, 0)", "not checked", None),
        ("first(v)()", "last(v)()", "not checked", None),
        ("var_samp(v)", "var_samp(w)", "silently wrong", "VALUE_MEANING_CHANGED"),
    ],
)  # fmt: skip
def test_aggregates_that_keep_the_same_state(before: str, after: str, verdict: str, rule: str | None) -> None:
    running = described("aggregation_hdfs")
    query = copy.deepcopy(running)
    for each, expression in ((running, before), (query, after)):
        each["operators"][0]["values"] = [{"expression": expression, "fields": 2}]
    path = FIXTURES / "aggregation_hdfs"
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, [rule] if rule else [])


Query = dict[str, Any]
T10, T60 = ({"column": "t", "delay": f"{minutes} minutes"} for minutes in (10, 60))


def changed_query(fixture: str, before: Query, after: Query, *, of_operator: Query | None = None) -> StateCheck:
    """The check of a fixture with parts of the query changed, and with the same operator in both."""
    running, query = ({**described(fixture), **parts} for parts in (before, after))
    for each in (running, query):
        each["operators"][0].update(of_operator or {})
    path = FIXTURES / fixture
    return check_state(str(path), [path], read_plan({"query": query, "running": running}))


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("before", "after", "verdict", "rule"),
    [
        ({}, {"settings": {"spark.sql.session.timeZone": "Asia/Tokyo"}}, "safe", "TIME_ZONE_UNUSED"),
        ({}, {"settings": {"spark.sql.streaming.stateStore.providerClass": "com.example.Provider"}}, "safe", None),
        ({"sink": "FileSink[/a]"}, {"sink": "FileSink[/b]"}, "silently wrong", "SINK_FOLDER_CHANGED"),
        ({}, {"output_mode": "Append"}, "not checked", None),
        ({}, {"output_mode": "Append", "refused": "[STREAMING_OUTPUT_MODE] no"}, "fails at start", "QUERY_REFUSED"),
        ({}, {"output_mode": "Complete"}, "safe", None),
        ({"refused": "[STREAMING_OUTPUT_MODE] no"}, {}, "safe", None),
        ({"watermarks": [T10]}, {"watermarks": [T10], "output_mode": "Append"}, "safe", None),
        ({"watermarks": [T10]}, {"watermarks": [T10], "output_mode": "Complete"}, "silently wrong", "OTHER_GROUPS_KEPT"),
        ({}, {"watermarks": [T10]}, "safe", "WATERMARK_CHANGED"),
        ({"watermarks": [T10]}, {"watermarks": [T60]}, "safe", "WATERMARK_CHANGED"),
        ({"watermarks": [T10]}, {"watermarks": []}, "silently wrong", "WATERMARK_REMOVED"),
        ({"watermarks": [T10]}, {"watermarks": [{**T10, "column": "u"}]}, "silently wrong", "WATERMARK_REMOVED"),
    ],
)  # fmt: skip
def test_other_settings_another_watermark_mode_and_sink(
    before: Query, after: Query, verdict: str, rule: str | None
) -> None:
    keys = [{"expression": "window(t, length 300000000, slide 300000000, start 0)"}]
    check = changed_query("aggregation_hdfs", before, after, of_operator={"keys": keys})
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, [rule] if rule else [])


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize("fixture", ["pandas_state", "join_rocksdb"])
def test_a_watermark_removed_from_other_operators_is_not_judged(fixture: str) -> None:
    check = changed_query(fixture, {"watermarks": [T10]}, {"watermarks": []})
    assert (check.verdict, check.changes) == ("not checked", ())


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(("key", "verdict"), [("k", "safe"), ("t", "not checked"), ("t2", "safe")])
def test_a_watermark_removed_from_a_deduplication_matters_to_its_own_column_alone(key: str, verdict: str) -> None:
    """Keys with it are gone from the state, so rows that repeat them pass."""
    keys = {"keys": [{"expression": key}]}
    check = changed_query("dedup_rocksdb", {"watermarks": [T10]}, {"watermarks": []}, of_operator=keys)
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, ["WATERMARK_CHANGED"])


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("source", "key", "is_unknown"),
    [
        ({"provider": "json", "options": {"timezone": "UTC"}}, "k", False),
        ({"provider": "json"}, "k", True),
        ({"provider": "delta"}, "k", True),
        ({"provider": "kafka", "topics": ["a"]}, "window(t, length 1, slide 1, start 0)", False),
        ({"provider": "kafka", "topics": ["a"]}, "cast(t as date)", True),
        ({"provider": "kafka", "topics": ["a"]}, "date_format(t, yyyy, Some(UTC))", True),
    ],
)
def test_another_time_zone_of_the_session_matters_to_what_depends_on_it(
    source: Query, key: str, is_unknown: bool
) -> None:
    zones = ({"sources": [source], "settings": {"spark.sql.session.timeZone": each}} for each in ("UTC", "Asia/Tokyo"))
    check = changed_query("aggregation_hdfs", *zones, of_operator={"keys": [{"expression": key}]})
    assert any("timeZone" in each for each in check.not_checked) is is_unknown
    assert ("TIME_ZONE_UNUSED" in [each.rule for each in check.changes]) is not is_unknown


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize(
    ("fixture", "name", "before", "after", "verdict", "rule"),
    [
        ("limit", "limit", "9", "7", "safe", "LIMIT_CHANGED"),
        ("limit", "limit", "7", "9", "not checked", None),
        ("pandas_state", "functions", "one", "other", "not checked", None),
        ("pandas_state", "functions", "", "other", "safe", None),
        ("pandas_state", "static data", "file:/a", "file:/a", "safe", None),
        ("pandas_state", "static data", "file:/a", "file:/b", "not checked", None),
        ("pandas_state", "static data", "rows that aren't described", "rows that aren't described", "not checked", None),
        ("session_windows", "session", "session_window(t, 5 minutes)", "session_window(t, 9 minutes)", "silently wrong", "SESSION_CHANGED"),
    ],
)  # fmt: skip
def test_changed_properties(fixture: str, name: str, before: str, after: str, verdict: str, rule: str | None) -> None:
    running = described(fixture)
    running["operators"][0]["properties"] = {name: before}
    query = copy.deepcopy(running)
    query["operators"][0]["properties"] = {name: after}
    path = FIXTURES / fixture
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, [rule] if rule else [])


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ("filter (t < 2026-11-27 07:07:20.27027)", "filter (t < 2026-11-27 07:07:22.006242)", "not checked"),
        ("filter (rand(-26411) < 0.5)", "filter (rand(836) < 0.5)", "not checked"),
        ("filter (rand(-26411) < 0.5)", "filter (rand(836) < 0.9)", "silently wrong"),
        ("filter (t < 2026-11-27 00:00:00)", "filter (t < 2026-11-28 00:00:00)", "silently wrong"),
        ("filter (t < current_timestamp())", "filter (t < current_timestamp())", "safe"),
        ("filter (((v + w) * 2) > 8)", "filter ((v + (w * 2)) > 8)", "silently wrong"),
        ("filter ((isnotnull(v) AND (v > 8)) AND (w > 2))", "filter (((w > 2) AND isnotnull(v)) AND (v > 8))", "safe"),
        ("filter ((v BETWEEN 1 AND 2) OR (w > 2))", "filter ((v BETWEEN 1 AND 2) OR (w > 2))", "safe"),
        ("filter (t < 2026-11-27 07:07:20.27027)", "filter (t < current_timestamp())", "not checked"),
        ("filter (d < 2026-11-20)", "filter (d < date_sub(current_date(), 7))", "not checked"),
        ("filter (d < date_sub(current_date(), 6))", "filter (d < date_sub(current_date(), 7))", "silently wrong"),
    ],
)
def test_rows_chosen_by_the_time_or_at_random_are_not_judged(before: str, after: str, verdict: str) -> None:
    running = described("aggregation_hdfs")
    query = copy.deepcopy(running)
    for each, step in ((running, before), (query, after)):
        each["operators"][0]["input"] = [step]
    path = FIXTURES / "aggregation_hdfs"
    assert check_state(str(path), [path], read_plan({"query": query, "running": running})).verdict == verdict


@pytest.mark.requirement("DBX-1")
def test_filtered_keys_stay_silent_only_in_update_mode() -> None:
    for mode, verdict in (("Update", "safe"), ("Append", "silently wrong"), ("Complete", "silently wrong")):
        running = {**described("aggregation_hdfs"), "output_mode": mode}
        query = copy.deepcopy(running)
        query["operators"][0]["input"] = ["filter of keys (id = 3)"]
        path = FIXTURES / "aggregation_hdfs"
        assert check_state(str(path), [path], read_plan({"query": query, "running": running})).verdict == verdict


@pytest.mark.requirement("DBX-1")
def test_without_sparks_own_check_nothing_is_predicted() -> None:
    running = described("aggregation_hdfs")
    query = copy.deepcopy(running)
    value(query["operators"][0]).pop()
    query["settings"]["spark.sql.streaming.stateStore.stateSchemaCheck"] = "false"
    path = FIXTURES / "aggregation_hdfs"
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert (check.verdict, check.changes) == ("not checked", ())


@pytest.mark.requirement("DBX-1")
def test_a_description_of_another_query_is_not_that_of_the_running_one() -> None:
    running = described("aggregation_hdfs")
    value(running["operators"][0])[1]["type"] = "double"
    path = FIXTURES / "aggregation_hdfs"
    query = described("aggregation_hdfs")
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert check.verdict == "not checked"
    assert "isn't that of this checkpoint" in check.sentence


@pytest.mark.requirement("DBX-1")
def test_a_join_can_be_narrowed() -> None:
    running = described("join_rocksdb")
    running["operators"][0]["properties"] = {"join": "LeftOuter"}
    query = copy.deepcopy(running)
    for after, verdict in (("Inner", "safe"), ("FullOuter", "not checked")):
        query["operators"][0]["properties"] = {"join": after}
        path = FIXTURES / "join_rocksdb"
        check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
        assert check.verdict == verdict
        assert ("JOIN_NARROWED" in [each.rule for each in check.changes]) is (verdict == "safe")


@pytest.mark.requirement("DBX-1")
def test_variables_are_in_the_plan_and_not_in_the_description() -> None:
    query = described("customer_totals")
    check = check_state(str(FIXTURES / "customer_totals"), [FIXTURES], read_plan(query))
    assert check.verdict == "not checked"
    assert any("operator 0 (transformWithState" in each for each in check.not_checked)
    assert {each.status for each in check.variables} == {"not checked"}


@pytest.mark.requirement("DBX-4")
def test_a_description_needs_its_parts() -> None:
    with pytest.raises(InvalidSchema, match="/query/operators/0: an operator has a number"):
        read_plan({"query": {**described("limit"), "operators": [{}]}})
    with pytest.raises(InvalidSchema, match="/running/schemadesk_spark"):
        read_plan({"query": described("limit"), "running": {"operators": []}})


@pytest.mark.requirement("DBX-4")
def test_the_command_takes_both_descriptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = described("aggregation_hdfs")
    (tmp_path / "running.json").write_text(json.dumps(query))
    query["operators"][0]["values"][1]["expression"] = "min(v)"
    (tmp_path / "next.json").write_text(json.dumps(query))
    arguments = [str(FIXTURES / "aggregation_hdfs"), str(tmp_path / "next.json")]
    with pytest.raises(SystemExit, match="1"):
        call_command("check_state", *arguments, "--running", str(tmp_path / "running.json"))
    assert capsys.readouterr().out.startswith("Silently wrong: ")
    with pytest.raises(SystemExit, match="2"):
        call_command("check_state", *arguments)


def test_every_rule_is_reported_in_a_case() -> None:
    told = Path(__file__).read_text() + (Path(__file__).parent / "test_sources.py").read_text()
    assert [rule for rule in OPERATOR_RULES if rule not in told] == []


def test_a_sink_that_the_descriptions_do_not_name_is_said_to_be_assumed() -> None:
    running = described("aggregation_hdfs")
    for sinks, is_assumed in (((None, None), True), (("FileSink[/a]", None), True), (("FileSink[/a]",) * 2, False)):
        plan = {"query": {**running, "sink": sinks[0]}, "running": {**running, "sink": sinks[1]}}
        check = check_state(str(FIXTURES / "aggregation_hdfs"), [FIXTURES], read_plan(plan))
        assert any("sink is assumed unchanged" in note for note in check.notes) == is_assumed
        assert check.verdict == "safe"


@pytest.mark.requirement("DBX-4")
def test_a_description_that_does_not_have_whether_spark_starts_the_query_is_not_checked() -> None:
    query = described("aggregation_hdfs")
    del query["refused"]
    path = FIXTURES / "aggregation_hdfs"
    check = check_state(str(path), [path], read_plan({"query": query, "running": query}))
    assert (check.verdict, check.starts) == ("not checked", None)
    assert check.not_checked == ("whether Spark starts such a query, which the description lacks",)


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("before", "after", "verdict", "rule"),
    [
        ("max(struct(w, w, v, v))", "max(struct(v, v, w, w))", "silently wrong", "VALUE_MEANING_CHANGED"),
        ("max(struct(w, w, v, v))", "max(struct(weight, w, v, v))", "safe", "STATE_READ_OTHERWISE"),
        ("max(struct(w, (w + 1), v, v))", "max(struct(w, (w + 2), v, v))", "not checked", None),
        ("sum(v)", "sum(cast(v as bigint))", "safe", "STATE_READ_OTHERWISE"),
        ("sum(cast(v as int))", "sum(v)", "not checked", None),
        ("avg(v)", "avg(cast(v as bigint))", "not checked", None),
        ("sum(CASE WHEN (d = current_date()) THEN v END)", "sum(CASE WHEN (d = current_date()) THEN v END)", "safe", None),
        ("sum(CASE WHEN (d = 2026-11-27) THEN v END)", "sum(CASE WHEN (d = current_date()) THEN v END)", "not checked", None),
    ],
)  # fmt: skip
def test_aggregates_whose_state_is_the_same_or_has_another_meaning(
    before: str, after: str, verdict: str, rule: str | None
) -> None:
    running, query = described("aggregation_hdfs"), described("aggregation_hdfs")
    for each, expression in ((running, before), (query, after)):
        each["operators"][0]["values"][1].update(expression=expression)
    path = FIXTURES / "aggregation_hdfs"
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert (check.verdict, [each.rule for each in check.changes]) == (verdict, [rule] if rule else [])


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize(
    ("expression", "before", "after", "verdict"),
    [
        ("approx_count_distinct(v, 0.05, 0, 0)", "int", "int", "safe"),
        ("approx_count_distinct(v, 0.05, 0, 0)", "int", "bigint", "silently wrong"),
        ("approx_count_distinct(v, 0.05, 0, 0)", "", "int", "not checked"),
        ("approx_count_distinct(v, 0.05, 0, 0)", "", "", "not checked"),
        ("percentile_approx(v, 0.5, 100, 0, 0)", "", "", "safe"),  # its state shows its type, unlike Spark's
    ],
)
def test_types_that_the_schema_of_the_state_does_not_show(
    expression: str, before: str, after: str, verdict: str
) -> None:
    running, query = described("aggregation_hdfs"), described("aggregation_hdfs")
    for each, types in ((running, before), (query, after)):
        each["operators"][0]["values"][1].update(expression=expression, types=types)
    path = FIXTURES / "aggregation_hdfs"
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert check.verdict == verdict


@pytest.mark.requirement("DBX-1")
def test_keys_and_rows_of_state_variables_are_compared_with_the_running_query() -> None:
    path = FIXTURES / "customer_totals"
    running, query = described("customer_totals"), described("customer_totals")
    for each in (running, query):
        each["operators"][0]["keys"] = [{"expression": "customer_id"}]
    query["operators"][0]["keys"] = [{"expression": "order_id"}]
    query["operators"][0]["input"] = ["filter (amount > 3)"]
    check = check_state(str(path), [path], read_plan({"query": query, "running": running}))
    assert check.verdict == "silently wrong"
    assert {each.rule for each in check.changes} == {"KEY_MEANING_CHANGED", "ROWS_OF_STATE_CHANGED"}
