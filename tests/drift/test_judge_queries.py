"""The judgement of a streaming query as a whole, case by case; every rule speaks in one and is silent in another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.drift.judge import in_order
from registry.drift.judge.queries import (
    QueryFacts,
    RunFacts,
    SchemaFacts,
    SubjectVersion,
    VariableFacts,
    judge_query,
)
from registry.drift.rules import RULES
from registry.formats.policies.spark_state import parse_struct
from tests.drift.judging import DAY, NOW, load_cases, struct

CASES = load_cases("judge_cases_queries.yaml")
OURS = {
    "STATE_FILES_DAMAGED",
    "STATE_EVOLVED_UNRELEASED",
    "STATE_DEPARTS",
    "STATE_KEY_AT_RISK",
    "STATE_CANNOT_EVOLVE",
    "STATE_CHECK_OFF",
    "STATE_SETTING_CHANGED",
    "CHECKPOINT_NOT_ADVANCING",
}
TIMES = ("last_batch_time", "last_message")


def variable(name: str, given: dict[str, Any]) -> VariableFacts:
    key, map_key = (struct(given[part]) if part in given else "" for part in ("key", "map_key"))
    versions = tuple(
        SchemaFacts(number, batch, int(day * DAY), struct(fields), key, map_key)
        for number, (batch, day, fields) in enumerate(given["versions"], start=1)
    )
    return VariableFacts(0, name, given.get("encoding", "avro"), given.get("evolvable", True), versions)


def facts(given: dict[str, Any]) -> QueryFacts:
    known = {key: int(value * DAY) if key in TIMES else value for key, value in given.items()}
    known["runs"] = tuple(RunFacts(*each) for each in given.get("runs", ()))
    known["variables"] = tuple(variable(*each) for each in given.get("variables", {}).items())
    known["subjects"] = tuple(
        SubjectVersion(subject, version, int(day * DAY), released, parse_struct(struct(fields)))
        for subject, version, day, released, fields in given.get("subjects", ())
    )
    for name in ("planned", "problems"):
        known[name] = tuple(given.get(name, ()))
    return QueryFacts(path="/state/q", observed_at=NOW * DAY, **known)


@pytest.mark.requirement("CARD-3", "DBX-3", "DBX-5")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    found = in_order(judge_query(facts(case["query"])))
    assert [each.rule for each in found] == [each["rule"] for each in case["findings"]]
    assert not {each.rule for each in found} & set(case.get("not", ()))
    for each, expected in zip(found, case["findings"], strict=True):
        assert each.severity == expected["severity"]
        assert each.location == expected.get("location", each.location)
        assert each.subject == expected.get("subject", each.subject)
        for part in expected.get("says", ()):
            assert part in each.sentence
        assert "{" not in each.sentence + each.remedy
        json.dumps(each.evidence, allow_nan=False)
    assert len({each.fingerprint for each in found}) == len(found)


def test_every_rule_speaks_and_is_silent() -> None:
    assert set(RULES) >= OURS
    assert {each["rule"] for case in CASES for each in case["findings"]} == OURS
    assert {rule for case in CASES for rule in case.get("not", ())} == OURS
