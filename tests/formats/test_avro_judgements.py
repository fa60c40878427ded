"""The hand-made table of judgement calls: verdict, kind and place as Java gives them, and what the data say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.formats.avro import AVRO
from registry.formats.avro.rules import RULES
from registry.formats.base import ParsedSchema

ROWS = yaml.safe_load((Path(__file__).parent / "cases" / "avro_judgements.yaml").read_text())


@pytest.fixture(params=ROWS, ids=[row["name"] for row in ROWS])
def row(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


def sides(row: dict[str, Any]) -> tuple[ParsedSchema, ParsedSchema]:
    return AVRO.parse(json.dumps(row["reader"])), AVRO.parse(json.dumps(row["writer"]))


def test_the_verdict_the_kinds_and_the_places(row: dict[str, Any]) -> None:
    judgement = AVRO.judge(*sides(row))
    assert judgement.is_compatible == row["compatible"]
    assert [[item.kind, item.location, item.detail] for item in judgement.breaks] == row.get("breaks", [])
    assert [item.rule for item in judgement.hazards] == row.get("hazards", [])


def test_the_truth_is_what_the_data_say(row: dict[str, Any]) -> None:
    truth = AVRO.truth(*sides(row))
    assert truth.answer == row["truth"]
    assert "covering data" in truth.how
    for item in truth.findings:
        assert item.rule in RULES
        assert item.severity in ("break", "value loss")
        assert item.witness is not None
        assert item.witness.found
        assert bool(item.witness.error) == (item.severity == "break")
        assert bytes.fromhex(item.witness.encoded) is not None
    after = {"STRING_READ_AS_UUID", "BYTES_READ_AS_DECIMAL", "DECIMAL_PRECISION_NARROWED"}
    assert [item.rule for item in truth.warnings] == [rule for rule in row.get("hazards", []) if rule in after]
    assert {item.severity for item in truth.warnings} <= {"warning"}


def test_where_the_table_and_the_data_part_the_truth_says_why(row: dict[str, Any]) -> None:
    truth = AVRO.truth(*sides(row))
    if not row["compatible"] and row["truth"] == "yes":
        assert "Java's rules also refuse" in truth.how
    for found in AVRO.judge(*sides(row)).breaks:
        witness = AVRO.witness(*sides(row), found)
        assert witness.found == (row["truth"] != "yes")
        assert witness.found or witness.reason


def test_there_are_enough_judgement_calls_of_every_kind() -> None:
    assert len(ROWS) >= 40
    kinds = {item[0] for row in ROWS for item in row.get("breaks", [])}
    assert kinds == {rule.kind for rule in RULES.values() if rule.kind}
