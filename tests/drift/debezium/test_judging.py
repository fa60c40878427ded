"""The judgement of a connector, case by case; every rule has one with it, and the clean cases are those without any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.debezium.judging import judge_debezium
from registry.drift.debezium.rules import RULES
from registry.drift.debezium.summary import summary_of
from tests.drift.debezium.worlds import world

FOLDER = Path(__file__).parent / "judging_cases"
CASES: list[dict[str, Any]] = [
    case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text("utf-8"))
]


@pytest.mark.requirement("DEB-2", "DEB-3", "DEB-4", "DEB-5", "DEB-6", "DEB-7")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    given = world(case)
    found = judge_debezium(given)
    assert [finding.rule for finding in found] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(found, case["findings"], strict=True):
        assert finding.severity == expected.get("severity", RULES[finding.rule].severity)
        assert finding.location == expected.get("location", finding.location)
        for part in expected.get("says", []):
            assert part in finding.sentence
        for part in expected.get("cure", []):
            assert part in finding.remedy
        assert {name: finding.evidence[name] for name in expected.get("evidence", {})} == expected.get("evidence", {})
        assert not {"{", "}", "None"} & set(finding.sentence.split()), finding.sentence
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
    assert len({finding.fingerprint for finding in found}) == len(found)
    shown = summary_of(given)
    json.dumps(shown, allow_nan=False)
    for name, expected in case.get("shows", {}).items():
        (row,) = [each for each in shown["tables"] if each["table"] == name]
        assert {key: row[key] for key in expected} == expected


def test_every_rule_has_a_case_with_it_and_none_stands_in_a_clean_one() -> None:
    assert {expected["rule"] for case in CASES for expected in case["findings"]} == set(RULES)
    assert sum(not case["findings"] for case in CASES) >= 8
