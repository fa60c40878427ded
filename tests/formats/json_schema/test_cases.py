"""Each rule of the JSON Schema engine by its cases, and recorded combinations with equal members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.formats.base import ParsedSchema
from registry.formats.json_schema import JSON_SCHEMA, JsonSchemaFormat
from registry.formats.json_schema.differences import DIFFERENCE_RULES
from registry.formats.json_schema.rules import BREAKING, DESCRIPTIONS, RULES
from tests.formats.json_schema.measure import refuted

FOLDER = Path(__file__).parent / "cases"
LENIENT = JsonSchemaFormat("lenient")
DIRECTIONS = ("backward", "forward")


def load(name: str) -> list[Any]:
    cases = yaml.safe_load((FOLDER / name).read_text())
    return [pytest.param(case, id=case["name"]) for case in cases]


CASES = load("compatibility.yaml")
DIFFERENCES = load("differences.yaml")


def pair(case: dict[str, Any]) -> tuple[ParsedSchema, ParsedSchema]:
    return JSON_SCHEMA.parse(json.dumps(case["old"])), JSON_SCHEMA.parse(json.dumps(case["new"]))


def sides(case: dict[str, Any], direction: str) -> tuple[ParsedSchema, ParsedSchema]:
    old, new = pair(case)
    return (new, old) if direction == "backward" else (old, new)


def reports_all_breaks_under_the_established_names(case: dict[str, Any], direction: str) -> None:
    findings = JSON_SCHEMA.incompatibilities(*sides(case, direction))
    assert sorted([item.kind, item.location] for item in findings) == sorted(case.get(direction, []))


def reports_all_hazards(case: dict[str, Any], direction: str) -> None:
    findings = JSON_SCHEMA.judge(*sides(case, direction)).hazards
    assert sorted([item.rule, item.path] for item in findings) == sorted(case.get(f"{direction}_hazards", []))
    assert all(item.severity == "warning" for item in findings)


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES)
def test_the_truth_is_beside_it(case: dict[str, Any], direction: str) -> None:
    reader, writer = sides(case, direction)
    truth = JSON_SCHEMA.truth(reader, writer)
    assert truth.answer == case["truth"][direction], truth.how
    assert refuted(truth, reader.text, writer.text, 11, 300) == ""
    assert truth.how


@pytest.mark.parametrize("case", [param for param in CASES if "lenient" in param.values[0]])
def test_the_lenient_policy(case: dict[str, Any]) -> None:
    old, new = pair(case)
    verdicts = {"backward": not LENIENT.incompatibilities(new, old), "forward": not LENIENT.incompatibilities(old, new)}
    assert verdicts == case["lenient"]


@pytest.mark.parametrize("case", DIFFERENCES)
def test_all_differences_are_reported(case: dict[str, Any]) -> None:
    old, new = pair(case)
    differences = [[item.rule, item.path, item.pointer_old, item.pointer_new] for item in JSON_SCHEMA.diff(old, new)]
    assert differences == case["differences"]
    for item in JSON_SCHEMA.diff(old, new):
        assert item.message
        assert "{" not in item.message.replace("{}", "")
        assert json.dumps(item.to_dict())


def test_every_rule_has_a_case() -> None:
    rules: set[str] = set()
    for param in CASES:
        for direction in DIRECTIONS:
            judgement = JSON_SCHEMA.judge(*sides(param.values[0], direction))
            rules |= {item.rule for item in (*judgement.breaks, *judgement.hazards)}
    assert rules | {"DATUM_REFUSED"} == set(RULES)


def test_every_difference_rule_has_a_case() -> None:
    rules = {item[0] for param in DIFFERENCES for item in param.values[0]["differences"]}
    assert rules | {"REFERENCED_SCHEMA_CHANGED"} == set(DIFFERENCE_RULES)


def test_every_kind_has_the_sentence_of_verbose_answers() -> None:
    assert set(DESCRIPTIONS) == BREAKING["strict"]
    values = {"location": "#/a", "detail": "d", "reader": "new", "writer": "old"}
    assert all("{" not in sentence.format_map(values) for sentence in DESCRIPTIONS.values())


def has_whole_and_repairable_findings(case: dict[str, Any], direction: str) -> None:
    reader, writer = sides(case, direction)
    judgement = JSON_SCHEMA.judge(reader, writer)
    for item in (*judgement.breaks, *judgement.hazards):
        texts = [item.message, item.why, item.remedy_in_reader, item.remedy_in_writer]
        assert all(text and "{" not in text.replace("{}", "").replace('{"', "") for text in texts), texts
        assert JSON_SCHEMA.position(reader, item.reader_pointer or "") is not None
        edit = JSON_SCHEMA.repair(reader, writer, item, is_reader=True)
        if item.severity == "break" and item.reader_pointer:
            assert edit is not None, item
        if edit is not None:
            repaired = JSON_SCHEMA.parse(edit.text)
            left = JSON_SCHEMA.judge(repaired, writer)
            assert (item.rule, item.location) not in {
                (other.rule, other.location) for other in (*left.breaks, *left.hazards)
            }


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize("case", CASES)
def test_each_rule_holds(case: dict[str, Any]) -> None:
    for direction in DIRECTIONS:
        reports_all_breaks_under_the_established_names(case, direction)
        reports_all_hazards(case, direction)
        has_whole_and_repairable_findings(case, direction)


COMBINATIONS = [
    pytest.param(case, id=case["name"])
    for case in yaml.safe_load((Path(__file__).parent / "cases" / "combinations.yaml").read_text())
]
CRITERIA = ("anyOf", "oneOf", "allOf")
MEMBERS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "string", "title": "a name"},
    {"type": "integer"},
    {"enum": ["a", "b"]},
    {"type": "object", "properties": {"b": {"type": "string"}}},
    {"anyOf": [{"type": "string"}, {"type": "string"}]},
)


def parsed(schema: Any) -> ParsedSchema:
    return JSON_SCHEMA.parse(json.dumps(schema))


def kinds(old: Any, new: Any) -> list[str]:
    """What the new schema, as the reader of the old one's data, is refused for."""
    return sorted(item.kind for item in JSON_SCHEMA.incompatibilities(parsed(new), parsed(old)))


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize("case", COMBINATIONS)
def test_equal_members_are_decided_as_the_established_registry_does(case: dict[str, Any]) -> None:
    for direction, old, new in (("backward", "old", "new"), ("forward", "new", "old")):
        findings = JSON_SCHEMA.incompatibilities(parsed(case[new]), parsed(case[old]))
        assert sorted([item.kind, item.location] for item in findings) == sorted(case.get(direction, [])), direction


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(CRITERIA),
    st.lists(st.sampled_from(MEMBERS), min_size=2, max_size=4),
    st.lists(st.sampled_from(MEMBERS), min_size=2, max_size=4),
    st.data(),
)
def test_copies_and_order_change_nothing_between_two_combinations(
    criterion: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]], data: st.DataObject
) -> None:
    verdict = kinds({criterion: ours}, {criterion: theirs})
    more = data.draw(st.permutations([*ours, data.draw(st.sampled_from(ours))]))
    assert kinds({criterion: more}, {criterion: theirs}) == verdict
    more = data.draw(st.permutations([*theirs, data.draw(st.sampled_from(theirs))]))
    assert kinds({criterion: ours}, {criterion: more}) == verdict


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(("anyOf", "oneOf")), st.sampled_from(MEMBERS[:5]), st.integers(2, 4))
def test_a_choice_of_copies_never_becomes_its_member(criterion: str, member: dict[str, Any], copies: int) -> None:
    assert kinds({criterion: [member]}, member) == []
    assert kinds({criterion: [member] * copies}, member) == ["TYPE_CHANGED"]
    assert kinds(member, {criterion: [member] * copies}) == []
