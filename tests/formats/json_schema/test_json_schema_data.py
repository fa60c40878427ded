"""Data of schemas: examples, resolution, witnesses for one finding, edits, outlines."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from registry.errors import InvalidDatum
from registry.formats.base import ParsedSchema
from registry.formats.json_schema import JSON_SCHEMA
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
    found = JSON_SCHEMA.example(parse(OLD))
    jsonschema.validate(found, OLD)
    assert set(found) == {"id", "customer_name", "items", "note"}


@pytest.mark.parametrize("seed", range(40))
def test_examples_of_random_schemas_are_valid(seed: int) -> None:
    for text in random_pair(seed):
        try:
            found = JSON_SCHEMA.example(JSON_SCHEMA.parse(text))
        except InvalidDatum as error:
            assert "may allow none" in error.message
            continue
        jsonschema.validators.validator_for(json.loads(text), default=jsonschema.Draft7Validator)(
            json.loads(text)
        ).validate(found)


def test_a_schema_that_allows_nothing_has_no_example() -> None:
    with pytest.raises(InvalidDatum, match="allow none"):
        JSON_SCHEMA.example(parse(False))


@pytest.mark.requirement("ORA-6")
def test_resolution_keeps_everything_and_fills_nothing() -> None:
    datum = {"id": 1, "items": [{"price": 2.5, "color": "red"}]}
    found = JSON_SCHEMA.resolve(parse(OLD), parse(OLD), datum)
    assert found.error == ""
    assert found.value == datum
    assert json.loads(bytes.fromhex(found.encoded)) == datum
    rows = {row.path: row for row in found.fields}
    assert rows["Order.items[0].color"].note == "not declared by the reader: it passes as it is"
    assert rows["Order.note"].outcome == "kept"
    assert rows["Order.note"].read is None
    assert "isn't filled in" in rows["Order.note"].note


def test_resolution_says_what_the_reader_refuses() -> None:
    reader = parse(changed(required=["id", "items"]))
    found = JSON_SCHEMA.resolve(reader, parse(OLD), {"id": 1})
    assert found.error == 'Order: "items" is a required property'
    assert found.value is None
    with pytest.raises(InvalidDatum, match=r"isn't one of the writer's schema, at Order\.id"):
        JSON_SCHEMA.resolve(reader, parse(OLD), {"id": "x"})
    with pytest.raises(InvalidDatum, match="isn't JSON"):
        JSON_SCHEMA.resolve(reader, parse(OLD), {"id": float("nan")})


def test_a_witness_breaks_at_the_place_of_its_finding() -> None:
    new = changed(required=["id", "items"])
    new["definitions"]["Item"]["properties"]["price"]["minimum"] = 1
    reader, writer = parse(new), parse(OLD)
    for found in JSON_SCHEMA.incompatibilities(reader, writer):
        witness = JSON_SCHEMA.witness(reader, writer, found)
        assert witness.found, witness.reason
        assert ("minimum" in witness.error) == (found.rule == "MINIMUM_INCREASED")
        assert json.loads(bytes.fromhex(witness.encoded)) == witness.datum
    proved = JSON_SCHEMA.witness(writer, writer)
    assert not proved.found
    assert "proved" in proved.reason


def test_a_repair_leaves_the_rest_of_the_text_alone() -> None:
    new = changed(required=["id", "items"])
    reader, writer = parse(new), parse(OLD)
    (found,) = JSON_SCHEMA.incompatibilities(reader, writer)
    edit = JSON_SCHEMA.repair(reader, writer, found, is_reader=True)
    assert edit is not None
    assert edit.title == 'make "items" optional'
    assert json.loads(edit.text) == OLD
    assert edit.text.splitlines()[:20] == reader.text.splitlines()[:20]
    other = JSON_SCHEMA.repair(writer, reader, found, is_reader=False)
    assert other is not None
    assert other.title == 'require "items"'


def test_findings_of_the_truth_are_repaired_too() -> None:
    new = changed()
    new["properties"]["id"] = {"type": "integer", "maximum": 5}
    reader, writer = parse(new), parse(OLD)
    (found,) = JSON_SCHEMA.truth(reader, writer).findings
    edit = JSON_SCHEMA.repair(reader, writer, found, is_reader=True)
    assert edit is not None
    assert JSON_SCHEMA.truth(JSON_SCHEMA.parse(edit.text), writer).answer == "yes"


@pytest.mark.requirement("ORA-5")
def test_a_suspected_rename_keeps_the_old_property_as_deprecated() -> None:
    new = changed()
    new["properties"] = {
        ("customerName" if key == "customer_name" else key): held for key, held in new["properties"].items()
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
