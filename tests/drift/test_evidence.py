"""The form of evidence: every rule has one, its judge makes it, what an older release stored is readable; and hints at producers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from registry.access.roles import Actor
from registry.drift.evidence import FORMS, UNREADABLE, fields_of_rule, make_evidence, mismatch, read_evidence
from registry.drift.models import Finding
from registry.drift.rules import RULES
from registry.drift.selectors.findings import OnePartition, one_partition
from tests.drift.judge.real_findings import findings_by_rule
from tests.drift.scans import judged, make_source, scan, topic

pytestmark = pytest.mark.requirement("CARD-3")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_every_rule_has_a_form_and_a_finding_of_its_own_judge() -> None:
    assert set(FORMS) == set(RULES)
    assert set(RULES) - set(findings_by_rule()) == set(), "a rule without a case that its judge makes a finding of"


@pytest.mark.parametrize("rule", sorted(RULES))
def test_what_a_judge_makes_comes_back_whole_from_the_database(rule: str) -> None:
    evidence = findings_by_rule()[rule].evidence
    assert mismatch(evidence, FORMS[rule]) == ""
    stored = json.loads(json.dumps(evidence))
    for row in stored.get("partitions", ()):
        row.pop("hours", None)  # a scan's counts by hour are kept once for all partitions
    assert read_evidence(rule, stored) == stored


@pytest.mark.django_db
def test_what_further_scans_add_comes_back_whole_from_the_database(registries: None, system: Actor) -> None:
    source, by_rule = make_source(), findings_by_rule()
    names = (topic(finding.topic) for finding in by_rule.values() if finding.topic)
    topics = tuple({each.name: each for each in names}.values())
    for _ in range(2):
        scan(source, system, *by_rule.values(), topics=topics)
    rows = Finding.objects.all()
    assert {row.rule for row in rows} == set(RULES)
    lost = {row.rule: read_evidence(row.rule, row.evidence).get(UNREADABLE) for row in rows}
    assert {rule: fields for rule, fields in lost.items() if fields} == {}


def test_changes_of_a_state_variable_are_rows() -> None:
    evidence = findings_by_rule()["STATE_EVOLVED_UNRELEASED"].evidence
    assert evidence["changes"]
    assert all(set(row) == {"field", "before", "after"} for row in evidence["changes"])
    assert json.loads(evidence["old_schema"]) != json.loads(evidence["new_schema"])


class Inner(TypedDict):
    number: int


class Form(TypedDict):
    name: str
    rows: NotRequired[list[Inner]]
    counts: NotRequired[dict[str, float]]
    empty: NotRequired[int | None]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"name": "x"}, ""),
        ({"name": "x", "rows": [{"number": 1}], "counts": {"a": 1, "b": 0.5}, "empty": None}, ""),
        ({}, "Form needs name"),
        ({"name": "x", "more": 1}, "Form has no field more"),
        ({"name": 1}, "name: 1 is no str"),
        ({"name": "x", "rows": "a: b"}, "rows: 'a: b' is no list"),
        ({"name": "x", "rows": [{"number": 1}, {"number": True}]}, "rows: [1] number: True is no int"),
        ({"name": "x", "counts": {"a": "b"}}, "counts: a: 'b' is no float"),
        ({"name": "x", "empty": "b"}, "empty: 'b' is no int"),
        ([], "[] is no object"),
    ],
)
def test_what_is_not_of_a_form_is_named(value: Any, says: str) -> None:
    assert mismatch(value, Form) == says


def test_a_judge_cannot_make_evidence_of_another_form() -> None:
    evidence = findings_by_rule()["STATE_EVOLVED_UNRELEASED"].evidence
    with pytest.raises(TypeError, match=r"STATE_EVOLVED_UNRELEASED.*changes: 'status' is no list"):
        make_evidence("STATE_EVOLVED_UNRELEASED", evidence | {"changes": "status"})


def test_what_an_older_release_kept_in_another_form_is_left_out_and_named() -> None:
    stored = {"operator": 0, "variable": "totals", "changes": "status was added", "own": 1}
    assert read_evidence("STATE_EVOLVED_UNRELEASED", stored) == {
        "operator": 0, "variable": "totals", UNREADABLE: ["changes", "own"],
    }  # fmt: skip
    assert read_evidence("A_RULE_OF_THE_PAST", {"a": 1, "b": ["x"]}) == {"a": 1, UNREADABLE: ["b"]}
    assert read_evidence("UNKNOWN_SCHEMA_ID", None) == {}


def test_of_messages_that_an_older_release_kept_with_one_reason_the_first_alone_has_it() -> None:
    older_rows = [
        {"partition": 0, "offsets": [5, 7], "reason": "it ends early"},
        {"partition": 2, "offsets": [1], "reason": "too deep"},
    ]
    for rule in ("UNDECODABLE", "SCHEMA_VIOLATED", "MESSAGE_NOT_READ", "NOT_JSON"):
        assert read_evidence(rule, {"offsets": older_rows}) == {
            "offsets": [
                {"partition": 0, "offset": 5, "reason": "it ends early"},
                {"partition": 0, "offset": 7},
                {"partition": 2, "offset": 1, "reason": "too deep"},
            ]
        }
    assert read_evidence("NOT_JSON", {"offsets": [{"partition": 0, "offsets": "all"}]}) == {UNREADABLE: ["offsets"]}


def test_a_number_that_an_older_release_kept_without_counting_is_left_out() -> None:
    stored = {"topic": "orders", "messages": 0, "of_messages_read": 5}
    assert read_evidence("SCHEMA_NOT_DECODED", stored) == {"topic": "orders", "of_messages_read": 5}
    assert read_evidence("SCHEMA_NOT_DECODED", stored | {"messages": 5})["messages"] == 5


@pytest.mark.slow
@given(st.sampled_from(sorted(RULES)), st.data())
def test_any_stored_value_is_read_without_an_error(rule: str, data: st.DataObject) -> None:
    names = st.sampled_from([*sorted(fields_of_rule(rule)), "other"])
    read = read_evidence(rule, data.draw(st.dictionaries(names, JSON, max_size=6)))
    kinds = fields_of_rule(rule)
    assert all(mismatch(value, kinds[name]) == "" for name, value in read.items() if name != UNREADABLE)


def part(partition: int = 3, messages: int = 10, last: Any = 60_000) -> dict[str, Any]:
    return {"partition": partition, "messages": messages, "first_time": 0, "last_time": last}


@pytest.mark.parametrize(
    ("evidence", "partitions", "hint"),
    [
        ({"partitions": [part()]}, 12, OnePartition(3, 12, 10)),
        ({"partitions": [part()]}, 1, None),
        ({"partitions": [part(messages=9)]}, 12, None),
        ({"partitions": [part(last=59_999)]}, 12, None),
        ({"partitions": [part(), part(4)]}, 12, None),
        ({"partitions": []}, 12, None),
        ({"partitions": [7]}, 12, None),
        ({"partitions": [part(last=None)]}, 12, None),
        ({"partitions": "x"}, 12, None),
        ({}, 12, None),
    ],
)
def test_one_partition_stands_out(evidence: dict[str, Any], partitions: int, hint: OnePartition | None) -> None:
    assert one_partition(evidence, partitions) == hint


@pytest.mark.django_db
def test_pages_and_programs_are_reported(
    registries: None, system: Actor, look: Callable[[str], Client], api: Callable[[str], Client]
) -> None:
    partitions = [part() | {"first_offset": 0, "last_offset": 9}]
    finding = judged("a", evidence={"topic": "orders", "partitions": partitions})
    scan(make_source(), system, finding, topics=(topic(partitions=12),))
    number, reader = Finding.objects.get().pk, look("reader")
    assert "Producer hint: all in partition 3 of 12" in reader.get("/ui/findings").content.decode()
    assert reader.get(f"/ui/findings/{number}").context["page"].finding.producer == "all in partition 3 of 12"
    assert api("reader").get(f"/api/v1/findings/{number}").json()["producer_hint"] == {
        "partition": 3,
        "of": 12,
        "messages": 10,
    }
