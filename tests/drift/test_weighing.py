"""What data say beside a report, case by case."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.drift.weighing import (
    MISSES_A_BRANCH,
    NEEDS_A_NULL,
    NEEDS_A_VALUE,
    REMOVED,
    FieldSeen,
    PaperFinding,
    ReplaySeen,
    weigh,
)
from registry.formats.avro.rules import RULES as AVRO
from registry.formats.json_schema.rules import RULES as JSON_SCHEMA
from registry.formats.protobuf.rules import RULES as PROTOBUF

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "weighing_cases.yaml").read_text())


def replay_of(given: dict[str, Any]) -> ReplaySeen:
    losses, changes = (tuple(given.get(name, {}).items()) for name in ("losses", "changes"))
    return ReplaySeen("orders", given["tried"], given["failed"], given.get("first", ""), losses, changes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    findings = [PaperFinding(*item) for item in case["findings"]]
    fields = [FieldSeen(*item, date(2026, 11, 1), date(2026, 11, 30)) for item in case.get("fields", [])]
    found = weigh(findings, fields, replay_of(case["replay"]) if "replay" in case else None)
    assert [line.weight for line in found] == [weight for weight, _ in case["lines"]], found
    for line, (_, part) in zip(found, case["lines"], strict=True):
        assert part in line.sentence


def test_the_rules_exist() -> None:
    known = {*AVRO, *PROTOBUF, *JSON_SCHEMA}
    assert known >= NEEDS_A_VALUE | NEEDS_A_NULL | REMOVED | MISSES_A_BRANCH
