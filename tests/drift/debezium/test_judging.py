"""The judgement of a connector, case by case; every rule has one with it, and the clean cases are those without any."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.pages.evidence import SHOWN_ROWS
from dashboard.pages.finding_evidence import evidence_tables
from registry.drift.debezium.judging import judge_debezium
from registry.drift.debezium.rules import RULES
from registry.drift.debezium.summary import summary_of
from registry.drift.hours import without_hours
from registry.drift.suspicions import began_at
from tests.drift.debezium.worlds import world

FOLDER = Path(__file__).parent / "judging_cases"
CASES: list[dict[str, Any]] = [
    case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text("utf-8"))
]


def places_are_read(rule: str, evidence: dict[str, Any]) -> None:
    """What names partitions names them as all readers of evidence take them: keeping, the page, and what is suspected."""
    places = evidence.get("partitions", [])
    assert len(without_hours(places)) == len(places)
    shown = [row for table in evidence_tables(rule, evidence) for row in table.rows]
    assert len(shown) >= len(places[:SHOWN_ROWS])
    seen = datetime.now(UTC)
    assert began_at(seen, evidence) <= seen


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
        places_are_read(finding.rule, finding.evidence)
    assert len({finding.fingerprint for finding in found}) == len(found)
    shown = summary_of(given)
    json.dumps(shown, allow_nan=False)
    for name, expected in case.get("shows", {}).items():
        (row,) = [each for each in shown["tables"] if each["table"] == name]
        assert {key: row[key] for key in expected} == expected


def test_every_rule_has_a_case_with_it_and_none_stands_in_a_clean_one() -> None:
    assert {expected["rule"] for case in CASES for expected in case["findings"]} == set(RULES)
    assert sum(not case["findings"] for case in CASES) >= 8
