"""Each rule of the Avro engine by its cases: differences, breaks, hazards, witnesses and levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.formats import FORMATS
from registry.formats.avro.difference_rules import DIFFERENCE_RULES
from registry.formats.avro.rules import RULES
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import check

AVRO = FORMATS["AVRO"]
FOLDER = Path(__file__).parent / "cases" / "avro"


def load_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


CASES = load_cases()


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


@pytest.fixture
def old(case: dict[str, Any]) -> ParsedSchema:
    return AVRO.parse(json.dumps(case["old"]))


@pytest.fixture
def new(case: dict[str, Any]) -> ParsedSchema:
    return AVRO.parse(json.dumps(case["new"]))


def test_all_differences_are_told(case, old, new) -> None:
    found = [[item.rule, item.path, item.pointer_old, item.pointer_new] for item in AVRO.diff(old, new)]
    assert found == case.get("differences", [])


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_all_breaks_are_told(case, old, new, direction) -> None:
    reader, writer = (new, old) if direction == "backward" else (old, new)
    found = AVRO.incompatibilities(reader, writer)
    places = [[item.rule, item.path, item.reader_pointer, item.writer_pointer] for item in found]
    assert places == case.get(direction, [])
    if direction == "backward":
        causes = [[cause.rule, cause.path] for item in found for cause in item.causes]
        assert causes == case.get("causes", causes if "causes" not in case else [])
        assert [item.kind for item in found] == case.get("kinds", [item.kind for item in found])


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_all_hazards_are_told(case, old, new, direction) -> None:
    reader, writer = (new, old) if direction == "backward" else (old, new)
    found = [[item.rule, item.path] for item in AVRO.judge(reader, writer).hazards]
    assert found == case.get(f"{direction}_hazards", [])


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_every_break_has_a_witness_that_really_breaks(case, old, new, direction) -> None:
    reader, writer = (new, old) if direction == "backward" else (old, new)
    witness = AVRO.witness(reader, writer)
    if not case.get(direction):
        known = {"FIELD_ALIASED_TWICE", "UNION_BRANCH_AMBIGUOUS", "UNION_BRANCH_ORDER", "BYTES_READ_AS_STRING"}
        rules = {rule for rule, _ in case.get(f"{direction}_hazards", [])}
        assert not witness.found or rules & known
    elif case.get("no_witness") and direction == "backward":
        assert not witness.found
        assert "ALIAS_AMBIGUOUS" in witness.reason
    else:
        assert witness.found, witness.reason
        assert witness.error
        assert bytes.fromhex(witness.encoded) is not None


@pytest.mark.requirement("GOO-2")
def test_levels(case, old, new) -> None:
    verdicts = {level: check(AVRO, new, [(1, old)], level).is_compatible for level in case["levels"]}
    assert verdicts == case["levels"]


def test_every_rule_has_a_case() -> None:
    told = {item[0] for case in (param.values[0] for param in CASES) for item in case.get("differences", [])}
    assert told == set(DIFFERENCE_RULES)
    found = {
        item[0]
        for case in (param.values[0] for param in CASES)
        for key in ("backward", "forward", "backward_hazards", "forward_hazards")
        for item in case.get(key, [])
    }
    assert found == set(RULES) - {"NOT_DECODED", "SCHEMA_REFUSED"}


def test_every_sentence_has_its_values(case, old, new) -> None:
    texts = [item.message for item in AVRO.diff(old, new)]
    for reader, writer in ((new, old), (old, new)):
        judgement = AVRO.judge(reader, writer)
        for item in judgement.breaks + judgement.hazards:
            texts += [item.message, item.remedy_in_reader, item.remedy_in_writer, item.why]
    assert all(text and "{" not in text.replace("{}", "") for text in texts)
