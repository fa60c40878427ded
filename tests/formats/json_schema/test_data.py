"""Data of schemas: examples, resolution, witnesses, edits, outlines; and data that keep the formats of texts."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidDatum
from registry.formats.base import ParsedSchema
from registry.formats.json_schema import JSON_SCHEMA
from registry.formats.json_schema.rules import RULES
from registry.formats.json_schema.sample_values import format_samples
from tests.formats.json_schema.random_schemas import random_pair

OLD: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer_name": {"type": "string", "maxLength": 20, "description": "who ordered"},
        "items": {"type": "array", "items": {"$ref": "#/definitions/Item"}},
        "note": {"type": "string", "default": "none"},
    },
    "required": ["id"],
    "additionalProperties": False,
    "definitions": {"Item": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}}},
}


def changed(**changes: Any) -> dict[str, Any]:
    new: dict[str, Any] = json.loads(json.dumps(OLD))
    new.update(changes)
    return new


def parse(schema: Any) -> ParsedSchema:
    return JSON_SCHEMA.parse(json.dumps(schema, indent=2))


def test_an_example_is_valid_and_full() -> None:
    example = JSON_SCHEMA.example(parse(OLD))
    jsonschema.validate(example, OLD)
    assert set(example) == {"id", "customer_name", "items", "note"}


@pytest.mark.parametrize("seed", range(40))
def test_examples_of_random_schemas_are_valid(seed: int) -> None:
    for text in random_pair(seed):
        try:
            example = JSON_SCHEMA.example(JSON_SCHEMA.parse(text))
        except InvalidDatum as error:
            assert "may not allow any" in error.message
            continue
        jsonschema.validators.validator_for(json.loads(text), default=jsonschema.Draft7Validator)(
            json.loads(text)
        ).validate(example)


def test_a_schema_that_allows_nothing_has_no_example() -> None:
    with pytest.raises(InvalidDatum, match="not allow any"):
        JSON_SCHEMA.example(parse(False))


@pytest.mark.requirement("ORA-6")
def test_resolution_keeps_everything_and_fills_nothing() -> None:
    datum = {"id": 1, "items": [{"price": 2.5, "color": "red"}]}
    resolution = JSON_SCHEMA.resolve(parse(OLD), parse(OLD), datum)
    assert resolution.error == ""
    assert resolution.value == datum
    assert json.loads(bytes.fromhex(resolution.encoded)) == datum
    rows = {row.path: row for row in resolution.fields}
    assert rows["Order.items[0].color"].note == "not declared in the reader schema: kept unchanged"
    assert rows["Order.note"].outcome == "kept"
    assert rows["Order.note"].read is None
    assert "isn't filled in" in rows["Order.note"].note


def test_resolution_says_what_the_reader_refuses() -> None:
    reader = parse(changed(required=["id", "items"]))
    resolution = JSON_SCHEMA.resolve(reader, parse(OLD), {"id": 1})
    assert resolution.error == 'Order: "items" is a required property'
    assert resolution.value is None
    with pytest.raises(InvalidDatum, match=r"isn't valid under the writer schema, at Order\.id"):
        JSON_SCHEMA.resolve(reader, parse(OLD), {"id": "x"})
    with pytest.raises(InvalidDatum, match="isn't JSON"):
        JSON_SCHEMA.resolve(reader, parse(OLD), {"id": float("nan")})


def test_a_witness_breaks_at_the_place_of_its_finding() -> None:
    new = changed(required=["id", "items"])
    new["definitions"]["Item"]["properties"]["price"]["minimum"] = 1
    reader, writer = parse(new), parse(OLD)
    for finding in JSON_SCHEMA.incompatibilities(reader, writer):
        witness = JSON_SCHEMA.witness(reader, writer, finding)
        assert witness.found, witness.reason
        assert ("minimum" in witness.error) == (finding.rule == "MINIMUM_INCREASED")
        assert json.loads(bytes.fromhex(witness.encoded)) == witness.datum
    proved = JSON_SCHEMA.witness(writer, writer)
    assert not proved.found
    assert "proved" in proved.reason


def test_a_repair_leaves_the_rest_of_the_text_alone() -> None:
    new = changed(required=["id", "items"])
    reader, writer = parse(new), parse(OLD)
    (finding,) = JSON_SCHEMA.incompatibilities(reader, writer)
    edit = JSON_SCHEMA.repair(reader, writer, finding, is_reader=True)
    assert edit is not None
    assert edit.title == 'make "items" optional'
    assert json.loads(edit.text) == OLD
    assert edit.text.splitlines()[:20] == reader.text.splitlines()[:20]
    other = JSON_SCHEMA.repair(writer, reader, finding, is_reader=False)
    assert other is not None
    assert other.title == 'require "items"'


def test_findings_of_the_truth_are_repaired_too() -> None:
    new = changed()
    new["properties"]["id"] = {"type": "integer", "maximum": 5}
    reader, writer = parse(new), parse(OLD)
    (finding,) = JSON_SCHEMA.truth(reader, writer).findings
    edit = JSON_SCHEMA.repair(reader, writer, finding, is_reader=True)
    assert edit is not None
    assert JSON_SCHEMA.truth(JSON_SCHEMA.parse(edit.text), writer).answer == "yes"


@pytest.mark.requirement("ORA-5")
def test_a_suspected_rename_keeps_the_old_property_as_deprecated() -> None:
    new = changed()
    new["properties"] = {
        ("customerName" if key == "customer_name" else key): schema for key, schema in new["properties"].items()
    }
    old, after = parse(OLD), parse(new)
    (suspected,) = [item for item in JSON_SCHEMA.diff(old, after) if item.kind == "renamed"]
    assert suspected.score is not None
    assert suspected.score > 0.9
    assert "the same position" in suspected.reasons
    edit = JSON_SCHEMA.accept_rename(old, after, suspected)
    assert edit is not None
    assert json.loads(edit.text)["properties"]["customer_name"]["deprecated"] is True
    assert JSON_SCHEMA.truth(JSON_SCHEMA.parse(edit.text), old).answer == "yes"


def test_the_outline_opens_references_once() -> None:
    schema = {
        **OLD,
        "definitions": {
            "Item": {"properties": {"price": {"type": "number"}, "parts": {"items": {"$ref": "#/definitions/Item"}}}}
        },
    }
    rows = [(row.path, row.type, row.required, row.default, row.depth) for row in JSON_SCHEMA.outline(parse(schema))]
    assert rows == [
        ("Order.id", "integer", True, None, 0),
        ("Order.customer_name", "string", False, None, 0),
        ("Order.items", "array of Item", False, None, 0),
        ("Order.items[].price", "number", False, None, 1),
        ("Order.items[].parts", "array", False, None, 1),
        ("Order.note", "string", False, '"none"', 0),
    ]


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
        for finding in truth.findings:
            assert finding.witness is not None
            assert checking.is_valid(finding.witness.datum), (change, finding.witness)
            assert not finding.witness.reason
        for finding in JSON_SCHEMA.incompatibilities(new, old):
            witness = JSON_SCHEMA.witness(new, old, finding)
            assert not witness.found or checking.is_valid(witness.datum), (change, witness)


def test_a_format_in_another_property_is_kept_too() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    writer, reader = schema(draft, format="email"), schema(draft, format="email")
    reader["properties"]["n"] = {"type": "string"}
    old, new = JSON_SCHEMA.parse(json.dumps(writer)), JSON_SCHEMA.parse(json.dumps(reader))
    (finding,) = JSON_SCHEMA.truth(new, old).findings
    assert finding.witness is not None
    assert "@" in finding.witness.datum["a"]


def test_where_only_a_text_of_no_format_breaks_the_witness_says_so() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    old, new = (JSON_SCHEMA.parse(json.dumps(schema(draft, format="date", **more))) for more in ({}, {"maxLength": 30}))
    (finding,) = JSON_SCHEMA.truth(new, old).findings
    assert finding.witness is not None
    assert "doesn't match its format" in finding.witness.reason


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
        for finding in JSON_SCHEMA.truth(reader, writer).findings:
            if finding.witness is not None and not finding.witness.reason and finding.rule in RULES:
                assert checking.is_valid(finding.witness.datum), (writer.text, finding.witness)


@pytest.mark.parametrize("format", FORMATS)
def test_samples_are_of_their_format(format: str) -> None:
    checking = jsonschema_rs.Draft202012Validator({"format": format}, validate_formats=True, offline=True)
    samples = list(format_samples(format, iter((40, 60))))
    assert samples
    assert [text for text in samples if not checking.is_valid(text)] == []
