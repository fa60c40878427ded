"""Data that are made keep the formats of texts: witnesses and examples look as a writer would write them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.formats.json_schema import JSON_SCHEMA
from registry.formats.json_schema.format_samples import format_samples
from registry.formats.json_schema.rules import RULES
from tests.formats.json_schema.random_schemas import random_pair

FORMATS = (
    "date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
    "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer", "relative-json-pointer", "regex",
)  # fmt: skip
DRAFTS = {
    "http://json-schema.org/draft-07/schema#": jsonschema_rs.Draft7Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
}
CHANGES: tuple[dict[str, Any], ...] = (
    {"maxLength": 0},
    {"minLength": 50},
    {"pattern": "^zz"},
    {"type": "integer"},
    {"enum": ["q"]},
)


def schema(draft: str, **property: Any) -> dict[str, Any]:
    return {
        "$schema": draft,
        "type": "object",
        "properties": {"a": {"type": "string", **property}, "n": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("format", FORMATS)
def test_witnesses_and_examples_keep_the_format(format: str, draft: str) -> None:
    writer = schema(draft, format=format)
    checking = DRAFTS[draft](writer, validate_formats=True, offline=True)
    old = JSON_SCHEMA.parse(json.dumps(writer))
    assert checking.is_valid(JSON_SCHEMA.example(old))
    for change in CHANGES:
        new = JSON_SCHEMA.parse(json.dumps(schema(draft, **{"format": format, **change})))
        truth = JSON_SCHEMA.truth(new, old)
        assert truth.answer == "no", change
        for found in truth.findings:
            assert found.witness is not None
            assert checking.is_valid(found.witness.datum), (change, found.witness)
            assert not found.witness.reason
        for found in JSON_SCHEMA.incompatibilities(new, old):
            witness = JSON_SCHEMA.witness(new, old, found)
            assert not witness.found or checking.is_valid(witness.datum), (change, witness)


def test_a_format_in_another_property_is_kept_too() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    writer, reader = schema(draft, format="email"), schema(draft, format="email")
    reader["properties"]["n"] = {"type": "string"}
    old, new = JSON_SCHEMA.parse(json.dumps(writer)), JSON_SCHEMA.parse(json.dumps(reader))
    (found,) = JSON_SCHEMA.truth(new, old).findings
    assert found.witness is not None
    assert "@" in found.witness.datum["a"]


def test_where_only_a_text_of_no_format_breaks_the_witness_says_so() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    old, new = (JSON_SCHEMA.parse(json.dumps(schema(draft, format="date", **more))) for more in ({}, {"maxLength": 30}))
    (found,) = JSON_SCHEMA.truth(new, old).findings
    assert found.witness is not None
    assert "isn't of its format" in found.witness.reason


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**40), st.sampled_from((7, 2020)))
def test_every_witness_keeps_the_formats_or_says_that_it_does_not(seed: int, draft: int) -> None:
    texts = random_pair(seed, draft)
    first, second = (JSON_SCHEMA.parse(text) for text in texts)
    maker = jsonschema_rs.Draft7Validator if draft == 7 else jsonschema_rs.Draft202012Validator
    for reader, writer in ((first, second), (second, first)):
        try:
            checking = maker(json.loads(writer.text), validate_formats=True, offline=True)
        except ValueError:
            continue
        for found in JSON_SCHEMA.truth(reader, writer).findings:
            if found.witness is not None and not found.witness.reason and found.rule in RULES:
                assert checking.is_valid(found.witness.datum), (writer.text, found.witness)


@pytest.mark.parametrize("format", FORMATS)
def test_samples_are_of_their_format(format: str) -> None:
    checking = jsonschema_rs.Draft202012Validator({"format": format}, validate_formats=True, offline=True)
    samples = list(format_samples(format, iter((40, 60))))
    assert samples
    assert [text for text in samples if not checking.is_valid(text)] == []
