"""Reading JSON Schemas: drafts, errors with line and column, references, canonical texts and fingerprints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.errors import InvalidSchema
from registry.formats.base import ResolvedReference
from registry.formats.json_schema import JSON_SCHEMA

D2020 = "https://json-schema.org/draft/2020-12/schema"


def reference(
    name: str, schema: Any, *inner: ResolvedReference, subject: str = "", version: int = 1
) -> ResolvedReference:
    return ResolvedReference(name, subject or name, version, json.dumps(schema), inner)


@pytest.mark.parametrize(
    ("text", "says", "line", "column"),
    [
        ("", "empty", 1, 1),
        ("[1]", "an object, true or false", 1, 1),
        ('{"type": }', "not JSON", 1, 10),
        ('{\n  "a": 1,\n  "a": 2}', '"a" appears twice', 3, 3),
        ('{"type": "strin"}', "at /type", 1, 10),
        ('{\n "properties": {"a": {"minLength": -1}}}', "at /properties/a/minLength", 2, 36),
        ('{"pattern": "(a"}', "at /pattern", 1, 13),
        ('{"$schema": "http://example.com/own", "type": "string"}', "is not a supported draft", 1, 13),
        ('{"$ref": "http://example.com/a.json"}', '"http://example.com/a.json" can\'t be resolved', 1, 10),
        ('{"$ref": "#/definitions/a"}', "define it in the schema", 1, 10),
        ('{"maximum": 1e400}', "doesn't fit a double", 1, 13),
        ('{"maximum": NaN}', "NaN is not JSON", None, None),
        ('{"title": "\\ud800"}', "half of a surrogate pair", 1, 11),
        ('{"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMaximum": 3}', "at /", 1, None),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, says: str, line: int | None, column: int | None) -> None:
    with pytest.raises(InvalidSchema) as caught:
        JSON_SCHEMA.parse(text)
    assert says in caught.value.message
    assert caught.value.line == line
    if column is not None:
        assert caught.value.column == column


@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://e.com/",
            "maximum": 3,
            "exclusiveMaximum": True,
        },
        {"$schema": "http://json-schema.org/draft-06/schema#", "const": 1},
        {"$schema": "http://json-schema.org/draft-07/schema", "if": True},
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "items": {"$recursiveRef": "#"},
        },
        {"$schema": D2020, "$dynamicAnchor": "n", "properties": {"next": {"$dynamicRef": "#n"}}},
        {"$schema": D2020, "$ref": "#k", "$defs": {"a": {"$anchor": "k", "type": "string"}}},
        {"$id": "http://e.com/a.json", "$ref": "b.json", "definitions": {"b": {"$id": "b.json", "type": "null"}}},
        {"$ref": "#/$defs/a", "definitions": {"a": {"type": "string"}}},
        {"$ref": "#/definitions/a~1b%25", "definitions": {"a/b%": {"type": "string"}}},
        {"$ref": "http://json-schema.org/draft-07/schema#"},
        {"properties": {"$ref": {"type": "string"}}, "const": {"$ref": "http://nowhere"}},
    ],
)
def test_every_draft_and_every_kind_of_reference_is_read(schema: Any) -> None:
    parsed = JSON_SCHEMA.parse(json.dumps(schema))
    assert JSON_SCHEMA.judge(parsed, parsed).breaks == ()
    assert JSON_SCHEMA.truth(parsed, parsed).answer in ("yes", "unknown")
    assert JSON_SCHEMA.diff(parsed, parsed) == ()
    assert JSON_SCHEMA.outline(parsed) is not None


def test_the_default_is_draft_7() -> None:
    parsed = JSON_SCHEMA.parse('{"type": "array", "items": [{"type": "string"}], "additionalItems": false}')
    assert JSON_SCHEMA.resolve(parsed, parsed, ["a"]).error == ""
    wider = JSON_SCHEMA.parse('{"type": "array", "items": [{"type": "string"}]}')
    assert "Additional items" in JSON_SCHEMA.resolve(parsed, wider, ["a", 1]).error


def test_canonical_keeps_the_order_and_every_digit() -> None:
    text = '{ "type" : "number", "maximum": 1.50, "minimum": 1e2, "default": -0.0, "const": -0, "title": "a\\u001f\\u00e9/" }'
    parsed = JSON_SCHEMA.parse(text)
    assert (
        parsed.canonical
        == '{"type":"number","maximum":1.50,"minimum":1E+2,"default":0.0,"const":0,"title":"a\\u001Fé/"}'
    )
    assert JSON_SCHEMA.parse(parsed.canonical) == parsed


def test_normalize_sorts_the_keys_of_every_object_and_nothing_else() -> None:
    one = JSON_SCHEMA.parse(
        '{"type":"object","properties":{"b":{"enum":[2,1],"type":"integer"},"a":{}},"required":["b","a"]}'
    )
    other = JSON_SCHEMA.parse(
        '{"required":["b","a"],"properties":{"a":{},"b":{"type":"integer","enum":[2,1]}},"type":"object"}'
    )
    assert one.canonical != other.canonical
    assert JSON_SCHEMA.normalize(one) == JSON_SCHEMA.normalize(other)
    assert JSON_SCHEMA.normalize(one).startswith('{"properties":{"a":{},"b":{"enum":[2,1]')


@pytest.mark.requirement("GOO-5")
def test_references_resolve_by_name_by_base_and_by_id() -> None:
    street = reference("street.json", {"$id": "http://e.com/other", "type": "string"})
    address = reference(
        "address.json", {"properties": {"street": {"$ref": "street.json"}, "self": {"$ref": "#"}}}, street
    )
    for root in (
        {"properties": {"home": {"$ref": "address.json"}}},
        {"$id": "http://e.com/customer.json", "properties": {"home": {"$ref": "address.json#"}}},
        {"$id": "http://e.com/customer.json", "properties": {"home": {"$ref": "http://e.com/address.json"}}},
        {"properties": {"home": {"$ref": "./address.json#/properties/self"}, "street": {"$ref": "http://e.com/other"}}},
    ):
        parsed = JSON_SCHEMA.parse(json.dumps(root), [address])
        open_street = reference("street.json", {"type": ["string", "null"]})
        wider = JSON_SCHEMA.parse(
            json.dumps({"properties": {"home": {"$ref": "address.json"}}}),
            [reference("address.json", {"properties": {"street": {"$ref": "street.json"}}}, open_street)],
        )
        truth = JSON_SCHEMA.truth(parsed, wider)
        assert truth.answer == "no"
        assert truth.findings[0].reader_source in ("address.json", "street.json")
        inside = JSON_SCHEMA.parse(JSON_SCHEMA.self_contained(parsed))
        assert JSON_SCHEMA.truth(inside, parsed).answer == "yes"
        assert JSON_SCHEMA.truth(parsed, inside).answer == "yes"


def test_an_error_in_a_reference_names_it() -> None:
    with pytest.raises(InvalidSchema, match=r'in the reference "a.json" \(subject a.json, version 1\): not a schema'):
        JSON_SCHEMA.parse('{"$ref": "a.json"}', [reference("a.json", {"type": "x"})])
    with pytest.raises(
        InvalidSchema, match=r'in the reference "a.json" at /\$ref: the \$ref "b.json" can.t be resolved'
    ):
        JSON_SCHEMA.parse('{"$ref": "a.json"}', [reference("a.json", {"$ref": "b.json"})])


def test_the_fingerprint_is_of_the_content_and_the_identity_of_the_version() -> None:
    text = '{"$ref": "a.json"}'
    first = JSON_SCHEMA.parse(text, [reference("a.json", {"type": "string"}, subject="a", version=1)])
    again = JSON_SCHEMA.parse(text, [reference("a.json", {"type": "string"}, subject="b", version=7)])
    other = JSON_SCHEMA.parse(text, [reference("a.json", {"type": "integer"}, subject="a", version=1)])
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.identity != again.identity
    assert [item.rule for item in JSON_SCHEMA.diff(first, other)] == ["REFERENCED_SCHEMA_CHANGED"]


def test_a_shared_graph_of_references_is_walked_once() -> None:
    below = reference("r0", {"type": "string"})
    for number in range(1, 60):
        previous = f"r{number - 1}"
        below = reference(
            f"r{number}", {"properties": {"x": {"$ref": previous}, "y": {"$ref": previous}}}, below, below
        )
    parsed = JSON_SCHEMA.parse('{"$ref": "r59"}', [below])
    assert len(parsed.model.documents) == 61
    assert JSON_SCHEMA.truth(parsed, parsed).answer in ("yes", "unknown")


def test_references_of_another_draft_are_read_in_theirs() -> None:
    pair = reference("pair.json", {"$schema": D2020, "prefixItems": [{"type": "string"}], "items": False})
    parsed = JSON_SCHEMA.parse('{"$ref": "pair.json"}', [pair])
    wide = JSON_SCHEMA.parse("{}")
    assert "integer" not in JSON_SCHEMA.resolve(parsed, wide, ["a"]).error
    assert JSON_SCHEMA.resolve(parsed, wide, [1]).error
    assert JSON_SCHEMA.resolve(parsed, wide, ["a", "b"]).error


def test_dynamic_references_with_several_meanings_are_unknown_rather_than_wrong() -> None:
    tree = {
        "$schema": D2020,
        "$id": "tree",
        "$dynamicAnchor": "node",
        "properties": {"kids": {"items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$schema": D2020,
        "$id": "strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
    }
    parsed = JSON_SCHEMA.parse(json.dumps(strict), [reference("tree", tree)])
    truth = JSON_SCHEMA.truth(parsed, parsed)
    assert truth.answer == "unknown"
    assert "$dynamicRef" in truth.how
