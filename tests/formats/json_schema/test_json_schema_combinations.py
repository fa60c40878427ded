"""Combinations with equal members: what the established registry decides, recorded case by case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.formats.base import ParsedSchema
from registry.formats.json_schema import JSON_SCHEMA

CASES = [
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
@pytest.mark.parametrize("case", CASES)
def test_equal_members_are_decided_as_the_established_registry_does(case: dict[str, Any]) -> None:
    for direction, old, new in (("backward", "old", "new"), ("forward", "new", "old")):
        found = JSON_SCHEMA.incompatibilities(parsed(case[new]), parsed(case[old]))
        assert sorted([item.kind, item.location] for item in found) == sorted(case.get(direction, [])), direction


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
