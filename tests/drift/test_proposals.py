"""A schema proposed from what messages held: case by case, and for anything that data may hold."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from registry.drift.judge import declared_fields
from registry.drift.proposals.observed_schema import Declaration, propose
from registry.errors import InvalidInput
from registry.formats import FORMATS
from registry.observations import FieldProfile

CASES = yaml.safe_load((Path(__file__).parent / "proposing_cases.yaml").read_text())
RECORD = '{"type": "record", "name": "R", "namespace": "n", "fields": [{"name": "a", "type": "string"}]}'
OBJECT = '{"type": "object", "properties": {"a": {"type": "object", "properties": {}}}, "additionalProperties": false}'


def profile(path: str, messages: int, present: int, nulls: int, kinds: dict[str, int]) -> FieldProfile:
    return FieldProfile("clicks", "value", None, "", path, messages, present, nulls, kinds, None, None, None, {})


def at(document: Any, pointer: str) -> Any:
    steps = pointer.removeprefix("/").split("/")
    return reduce(lambda node, step: node[int(step) if isinstance(node, list) else step], steps, document)


@pytest.mark.requirement("CARD-3")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    profiles = [profile(*row) for row in case["seen"]]
    declared = Declaration(*case["declared"]) if "declared" in case else None
    if "refused" in case:
        with pytest.raises(InvalidInput, match=case["refused"]):
            propose(profiles, declared, name="clicks-value")
        return
    proposal = propose(reversed(profiles), declared, name="clicks-value", schema_type=case.get("schema_type", "JSON"))
    document = json.loads(proposal.text)
    assert list(proposal.added) == case["adds"]
    assert {pointer: at(document, pointer) for pointer in case["text"]} == case["text"]
    for note in case.get("note", []):
        assert note in proposal.note
    parsed = FORMATS[proposal.schema_type].parse(proposal.text)
    if declared is not None:
        before = FORMATS[declared.schema_type].parse(declared.text)
        fields, old = declared_fields(parsed), declared_fields(before)
        assert fields is not None
        assert old is not None
        assert set(old.fields) < set(fields.fields)
        assert not any(fields.fields[path].required for path in proposal.added)


STEP = st.sampled_from(["a", "b", "Ada", "no-name", "a.b", "$x", "a" * 64])
PATH = st.lists(STEP, min_size=1, max_size=4).flatmap(
    lambda steps: st.sampled_from(
        [".".join(steps), ".".join(steps) + "[]", "[]", "".join(f"{s}[]." for s in steps) + "z"]
    )
)
KINDS = st.dictionaries(
    st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null", "odd"]),
    st.integers(0, 9),
    max_size=4,
)
PROFILES = st.lists(
    st.builds(profile, PATH, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), KINDS), max_size=12
)


@given(PROFILES, st.sampled_from([None, ("AVRO", RECORD), ("JSON", OBJECT)]), st.sampled_from(["AVRO", "JSON"]))
def test_whatever_was_seen_a_proposal_is_a_schema(
    profiles: list[FieldProfile], declared: tuple[str, str] | None, kind: str
) -> None:
    try:
        proposal = propose(profiles, Declaration(*declared) if declared else None, name="9 odd/name", schema_type=kind)
    except InvalidInput:
        return
    assert proposal.added
    FORMATS[proposal.schema_type].parse(proposal.text)
    # What is declared by now isn't proposed again.
    with pytest.raises(InvalidInput, match="already declares"):
        propose(profiles, Declaration(proposal.schema_type, proposal.text), name="x")
