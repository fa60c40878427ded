"""The judgement, case by case; every rule has one at least."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.judge import JudgedFinding, Registered, RegisteredVersion, judge, nothing_read
from registry.drift.rules import RULES
from registry.drift.state_schemas import field_changes
from registry.observations import (
    FramedMessages,
    NullMessages,
    Observation,
    OtherGroups,
    SchemaNotUsed,
    Span,
    StateFieldNulls,
    StateLimit,
    StateRows,
    StateSchemaVersion,
    StateUnreadable,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
    decode_observations,
    encode_observations,
)

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "judge_cases.yaml").read_text())


def span(messages: int, first: int = 0, last: int | None = None) -> Span:
    return Span(messages, messages * 50, first, first + messages - 1 if last is None else last, 1_000, 2_000)


def struct(fields: dict[str, Any]) -> str:
    listed = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]
    return json.dumps({"type": "struct", "fields": listed})


def state(operator: int, variable: str, version: int, batch: int, fields: dict[str, str]) -> StateSchemaVersion:
    key = struct({"id": "long"})
    return StateSchemaVersion(operator, variable, "value", version, version - 1, batch, "avro", key, struct(fields))


SHORT_FORMS: dict[str, Any] = {
    "framed": lambda side, part, number, *where: FramedMessages(side, part, number, span(*where)),
    "undecodable": lambda side, part, number, *where: UndecodableMessages(side, part, number, span(*where)),
    "unframed": lambda side, part, hint, *where: UnframedMessages(side, part, hint, span(*where)),
    "null": lambda side, part, messages: NullMessages(side, part, span(messages)),
    "other": lambda part, groups, messages: OtherGroups(part, groups, span(messages)),
    "not_used": SchemaNotUsed,
    "totals": lambda messages: TopicTotals("orders", messages, messages * 50, None, 0.1),
    "state": state,
    "limit": StateLimit,
    "rows": StateRows,
    "nulls": StateFieldNulls,
    "unreadable": StateUnreadable,
}


def observations(case: dict[str, Any]) -> list[Observation]:
    return [SHORT_FORMS[form](*arguments) for form, *arguments in case["observations"]]


def registered(case: dict[str, Any]) -> Registered:
    given = case["registered"]
    versions = {number: tuple(RegisteredVersion(*each) for each in listed) for number, listed in given["ids"].items()}
    return Registered("dev", versions, {side: tuple(subjects) for side, subjects in given["expected"].items()})


def check(finding: JudgedFinding, expected: dict[str, Any]) -> None:
    assert (finding.rule, finding.severity) == (expected["rule"], expected["severity"])
    assert finding.location == expected.get("location", finding.location)
    for part in expected.get("says", []):
        assert part in finding.sentence
    assert {name: finding.evidence[name] for name in expected.get("evidence", {})} == expected.get("evidence", {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    seen = observations(case)
    found = judge(seen, registered(case))
    assert [finding.rule for finding in found] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(found, case["findings"], strict=True):
        check(finding, expected)
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
    assert nothing_read(seen) is case.get("nothing_read", False)
    assert len({finding.fingerprint for finding in found}) == len(found)
    # What came as JSON lines is judged the same, in any order.
    assert judge(reversed(list(decode_observations(encode_observations(seen)))), registered(case)) == found


def test_every_rule_has_a_case() -> None:
    assert {expected["rule"] for case in CASES for expected in case["findings"]} == set(RULES)


def one(*forms: list[Any]) -> JudgedFinding:
    case = {**CASES[0], "observations": [*forms, ["totals", 9]]}
    (finding,) = judge(observations(case), registered(case))
    return finding


def test_a_fingerprint_stays_while_offsets_and_counts_move() -> None:
    before = one(["framed", "value", 0, 77, 1, 5, 5])
    later = one(["framed", "value", 0, 77, 3, 5, 90], ["framed", "value", 1, 77, 8, 0, 7])
    assert before.fingerprint == later.fingerprint
    assert (before.count, later.count) == (1, 11)
    assert one(["framed", "value", 0, 78, 1, 5, 5]).fingerprint != before.fingerprint


def test_many_partitions_are_named_in_the_evidence_and_counted_in_the_location() -> None:
    finding = one(*(["framed", "value", part, 77, 1, part, part] for part in range(30)))
    assert finding.location == "orders:0@0, orders:1@1, orders:2@2, orders:3@3, and 26 more partitions (value)"
    assert [part["partition"] for part in finding.evidence["partitions"]] == list(range(30))


def test_names_with_braces_are_no_templates() -> None:
    versions = {7: (RegisteredVersion("{registry}-{0}", 1),)}
    seen = [FramedMessages("value", 0, 7, span(1)), TopicTotals("{topic}", 1, 50, None, 0.1)]
    (finding,) = judge(seen, Registered("{x}", versions, {"value": ("{side}-value",)}))
    assert "{registry}-{0} version 1, not to {side}-value" in finding.sentence


def test_nested_fields_are_compared_by_path() -> None:
    def inner(**fields: str) -> dict[str, Any]:
        return json.loads(struct(dict(fields)))

    old = struct(
        {"a": inner(x="long", y="string"), "l": {"type": "array", "elementType": "integer", "containsNull": True}}
    )
    new = struct(
        {"a": inner(x="long", z="string"), "l": {"type": "array", "elementType": "long", "containsNull": True}}
    )
    assert [str(change) for change in field_changes(old, new)] == [
        "a.y removed (string)",
        "l[] integer → long",
        "a.z added (string)",
    ]
