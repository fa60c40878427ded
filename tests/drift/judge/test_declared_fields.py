"""What schemas declare, as data is named; hostile schemas end in bounded time and conclude nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.drift.judge.declared_fields import MAX_DEPTH, MAX_FIELDS, declared_fields
from registry.formats import FORMATS
from tests.waiting import costs_little


def declared(kind: str, text: str) -> Any:
    fields = declared_fields(FORMATS[kind].parse(text))
    assert fields is not None
    return fields


def test_avro_fields_are_named_as_data_is() -> None:
    fields = declared(
        "AVRO",
        json.dumps(
            {
                "type": "record", "name": "O", "namespace": "shop", "fields": [
                    {"name": "id", "type": "long"},
                    {"name": "mail", "type": ["null", "string"], "default": None},
                    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                    {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["A", "B"]}},
                    {"name": "items", "type": {"type": "array", "items": {
                        "type": "record", "name": "I", "fields": [{"name": "sku", "type": "string"}, {"name": "next", "type": ["null", "I"]}]}}},
                    {"name": "tags", "type": {"type": "map", "values": "string"}},
                ],
            }
        ),
    )  # fmt: skip
    kinds = {path: None if field.kinds is None else sorted(field.kinds) for path, field in fields.fields.items()}
    assert kinds == {
        "id": ["integer"],
        "mail": ["null", "string"],
        "at": None,
        "state": ["string"],
        "items": ["array"],
        "items[]": ["object"],
        "items[].sku": ["string"],
        "items[].next": ["null", "object"],
        "tags": ["object"],
    }
    assert [path for path, field in fields.fields.items() if not field.required] == ["mail", "items[]"]
    assert fields.fields["state"].symbols == {"A", "B"}
    assert fields.others == {"": "closed", "items[]": "closed", "items[].next": "open", "tags": "open"}
    assert FORMATS["AVRO"].record_name(FORMATS["AVRO"].parse('"string"')) == ""


def test_protobuf_fields_and_message_types() -> None:
    text = """syntax = "proto3"; package shop;
    message Order { int64 id = 1; repeated Line lines = 2; map<string, Line> by = 3; message Line { string sku = 1; } }
    message Refund { Order order = 1; }"""
    fields = declared("PROTOBUF", text)
    assert set(fields.fields) == {"id", "lines", "lines[]", "lines[].sku", "by"}
    assert fields.messages == {
        "0": "shop.Order",
        "0.0": "shop.Order.ByEntry",
        "0.1": "shop.Order.Line",
        "1": "shop.Refund",
    }
    assert FORMATS["PROTOBUF"].record_name(FORMATS["PROTOBUF"].parse(text)) == "shop.Order"


@pytest.mark.parametrize(
    ("schema", "others"),
    [
        ({"properties": {"a": {}}}, "silent"),
        ({"properties": {"a": {}}, "additionalProperties": False}, "closed"),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, "open"),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, "open"),
        ({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]}, "open"),
        ({"allOf": [{"properties": {"a": {}}}, {"additionalProperties": False}]}, "closed"),
        ({"type": "object"}, "open"),
        ({"$ref": "#/$defs/r", "$defs": {"r": {"properties": {"a": {}}}}}, "silent"),
        ({"properties": {"a": {}}, "if": {"required": ["a"]}, "then": {"properties": {"b": {}}}}, "open"),
    ],
)
def test_what_else_an_object_may_hold_in_json_schema(schema: dict[str, Any], others: str) -> None:
    assert declared("JSON", json.dumps(schema)).others[""] == others


def test_kinds_and_symbols_are_what_all_parts_allow() -> None:
    fields = declared(
        "JSON",
        json.dumps(
            {
                "properties": {
                    "n": {"allOf": [{"type": ["number", "null"]}, {"type": "number"}]},
                    "s": {"enum": ["a", "b", None]},
                    "one": {"const": "x"},
                    "mixed": {"enum": [1, "a"]},
                    "any": {"type": "string", "anyOf": [{"minLength": 1}]},
                }
            }
        ),
    )
    assert fields.fields["n"].kinds == {"number", "integer"}
    assert (fields.fields["s"].symbols, fields.fields["one"].symbols) == ({"a", "b"}, {"x"})
    assert fields.fields["mixed"].symbols is fields.fields["any"].kinds is None


def doubling(levels: int) -> str:
    steps = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return json.dumps({"$ref": "#/$defs/d0", "$defs": {**steps, f"d{levels}": {"properties": {"a": {}}}}})


def wide(fields: int) -> str:
    listed = [{"name": f"f{n}", "type": "string"} for n in range(fields)]
    return json.dumps({"type": "record", "name": "R", "fields": listed})


def tree(levels: int) -> str:
    inner: Any = {"type": "record", "name": f"R{levels}", "fields": [{"name": "x", "type": "int"}]}
    for level in reversed(range(levels)):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{level + 1}"}]
        inner = {"type": "record", "name": f"R{level}", "fields": fields}
    return json.dumps(inner)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("JSON", doubling(20)), ("AVRO", wide(5_000)), ("AVRO", tree(30))],
    ids=["doubling", "wide", "tree"],
)
def test_hostile_schemas_end_soon(kind: str, text: str) -> None:
    parsed = FORMATS[kind].parse(text)
    with costs_little():  # the paths of these double with every level
        fields = declared_fields(parsed)
    assert fields is not None
    assert len(fields.fields) <= 3 * MAX_FIELDS


def nested(levels: int) -> str:
    inner: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        inner = {"type": "object", "properties": {"a": inner}}
    return json.dumps(inner)


@pytest.mark.parametrize(
    ("kind", "text", "is_cut"),
    [
        ("JSON", nested(MAX_DEPTH), False),
        ("JSON", nested(MAX_DEPTH + 1), True),
        ("JSON", doubling(20), True),
        ("JSON", json.dumps({"properties": {"a": {"$ref": "#"}}}), False),
        ("JSON", json.dumps({"allOf": [{"properties": {f"f{n}": {}}} for n in range(65)]}), True),
        ("AVRO", tree(3), False),
        ("AVRO", tree(30), True),
    ],
)
def test_what_a_limit_left_out_is_said(kind: str, text: str, is_cut: bool) -> None:
    fields = declared_fields(FORMATS[kind].parse(text))
    assert fields is not None and fields.is_cut is is_cut
