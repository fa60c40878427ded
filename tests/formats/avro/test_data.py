"""What a reader gets of a datum: by really encoding and decoding, each field with its outcome; data as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from registry.errors import InvalidDatum
from registry.formats.avro import AVRO
from registry.formats.base import ParsedSchema


def record(*fields: dict[str, Any], name: str = "Order", **more: Any) -> ParsedSchema:
    return AVRO.parse(json.dumps({"type": "record", "name": name, "fields": list(fields), **more}))


def of(type_: Any) -> ParsedSchema:
    return AVRO.parse(json.dumps(type_))


ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "price", "type": "int"}, {"name": "gone", "type": "string"}],
}
ITEM_NEW = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "price", "type": "long"}, {"name": "note", "type": "string", "default": "-"}],
}


@pytest.mark.requirement("ORA-6")
def test_every_field_of_both_sides_has_an_outcome() -> None:
    writer = record(
        {"name": "id", "type": "string"},
        {"name": "old", "type": "int"},
        {"name": "who", "type": "string"},
        {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["A", "B"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "items", "type": {"type": "array", "items": ITEM}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
    )
    reader = record(
        {"name": "id", "type": "string"},
        {"name": "by", "type": "string", "aliases": ["who"]},
        {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["A"], "default": "A"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "items", "type": {"type": "array", "items": ITEM_NEW}},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {"name": "more", "type": ["null", "int"], "default": None},
    )
    datum = {
        "id": "7",
        "old": 1,
        "who": "me",
        "state": "B",
        "at": 1_700_000_000_000,
        "items": [{"price": 3, "gone": "x"}],
        "tags": {"a": 1},
    }
    got = AVRO.resolve(reader, writer, datum)
    assert got.error == ""
    assert got.datum == datum
    assert bytes.fromhex(got.encoded)
    assert got.value == {
        "id": "7",
        "by": "me",
        "state": "A",
        "at": 1_700_000_000_000,
        "items": [{"price": 3, "note": "-"}],
        "tags": {"a": 1.0},
        "more": None,
    }
    told = {item.path: (item.outcome, item.written, item.read) for item in got.fields}
    assert told == {
        "Order.id": ("kept", "7", "7"),
        "Order.by": ("converted", "me", "me"),
        "Order.state": ("converted", "B", "A"),
        "Order.at": ("converted", 1_700_000_000_000, 1_700_000_000_000),
        "Order.items[0].price": ("converted", 3, 3),
        "Order.items[0].note": ("filled", None, "-"),
        "Order.items[0].gone": ("dropped", "x", None),
        "Order.tags": ("converted", {"a": 1}, {"a": 1.0}),
        "Order.more": ("filled", None, None),
        "Order.old": ("dropped", 1, None),
    }
    notes = {item.path: item.note for item in got.fields if item.note}
    assert notes["Order.by"] == 'written as "who", read through its alias'
    assert notes["Order.state"] == "B is read as the default A"
    assert "2023-11-14T22:13:20+00:00" in notes["Order.at"]
    assert notes["Order.tags"] == "widened from int to double"


@pytest.mark.requirement("ORA-7")
def test_equal_schemas_convert_nothing() -> None:
    schema = record({"name": "id", "type": ["null", "long"]}, {"name": "raw", "type": "bytes"})
    got = AVRO.resolve(schema, schema, {"id": {"long": 5}, "raw": "\u00ff"})
    assert got.value == got.datum == {"id": {"long": 5}, "raw": "\u00ff"}
    assert [item.outcome for item in got.fields] == ["kept", "kept"]


@pytest.mark.requirement("ORA-6")
def test_where_the_reader_stops_its_own_error_is_reported() -> None:
    got = AVRO.resolve(record({"name": "n", "type": "int"}), record({"name": "m", "type": "int"}), {"m": 1})
    assert got.value is None
    assert got.fields == ()
    assert "No default value for field n" in got.error
    assert got.encoded == "02"


@pytest.mark.parametrize(
    ("type_", "value", "encoded"),
    [
        (["null", "string"], "x", {"string": "x"}),
        (["null", "string"], {"string": "x"}, {"string": "x"}),
        (["null", "string"], None, None),
        (["null", {"type": "fixed", "name": "a.F", "size": 1}], {"F": "\u00fe"}, {"a.F": "\u00fe"}),
        ([{"type": "map", "values": "int"}, "int"], {"int": 5}, {"int": 5}),
        ([{"type": "map", "values": "int"}, "string"], {"a": 5}, {"map": {"a": 5}}),
        ("double", "NaN", "NaN"),
        ("float", 0.1, 0.10000000149011612),
        ("double", 3, 3.0),
        ("bytes", "\u0000\u00ff", "\u0000\u00ff"),
    ],
)
def test_data_are_taken_in_avros_json_and_plain_where_that_is_clear(type_: Any, value: Any, encoded: Any) -> None:
    assert AVRO.resolve(of(type_), of(type_), value).datum == encoded


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({}, "Order.id", "string is missing"),
        ({"id": 1}, "Order.id", "a string"),
        ({"id": "x", "n": 2**31}, "Order.n", "32 bits"),
        ({"id": "x", "n": True}, "Order.n", "whole number"),
        ({"id": "x", "u": 5}, "Order.u", "fits several branches (int, long)"),
        ({"id": "x", "u": "x"}, "Order.u", "one of the branches"),
        ({"id": "x", "e": "C"}, "Order.e", "one of the symbols A, B"),
        ({"id": "x", "l": [{"price": "x", "gone": ""}]}, "Order.l[0].price", "32 bits"),
        ({"id": "x", "l": [{"price": 1}]}, "Order.l[0].gone", "missing"),
        ({"id": "x", "m": {"k": 1}}, "Order.m{k}", "string"),
        ({"id": "x", "f": "ab"}, "Order.f", "1 bytes"),
        ({"id": "\ud800"}, "Order.id", "surrogate"),
        ({"id": "x", "z": 1}, "Order", 'no field "z"'),
        ([], "Order", "an object of Order"),
    ],
)
def test_a_wrong_datum_is_named_with_its_path_and_what_is_expected(value: Any, path: str, words: str) -> None:
    schema = record(
        {"name": "id", "type": "string"},
        {"name": "n", "type": "int", "default": 0},
        {"name": "u", "type": ["null", "int", "long"], "default": None},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "default": "A"},
        {"name": "l", "type": {"type": "array", "items": ITEM}, "default": []},
        {"name": "m", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}, "default": "a"},
    )
    with pytest.raises(InvalidDatum) as caught:
        AVRO.resolve(schema, schema, value)
    assert caught.value.message.startswith(f"{path}: ")
    assert words in caught.value.message


@pytest.mark.slow
def test_unions_in_unions_of_records_end_soon() -> None:
    pair = [{"type": "record", "name": n, "fields": [{"name": "n", "type": ["null", "A", "B"]}]} for n in "AB"]
    text = json.dumps(["null", {**pair[0], "fields": [{"name": "n", "type": ["null", "A", pair[1]]}]}])
    schema = AVRO.parse(text)
    value: Any = None
    for _ in range(60):
        value = {"n": value}
    with pytest.raises(InvalidDatum):
        AVRO.resolve(schema, schema, value)


def test_a_datum_that_is_too_deep_is_refused() -> None:
    schema = of({"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]})
    value: Any = None
    for _ in range(2_000):
        value = {"next": value}
    with pytest.raises(InvalidDatum):
        AVRO.resolve(schema, schema, value)


def test_an_example_is_a_datum_with_a_value_in_every_place() -> None:
    schema = record(
        {"name": "id", "type": ["null", "string"], "default": None},
        {"name": "age", "type": "int", "default": 1},
        {"name": "on", "type": "boolean", "default": True},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}, "default": "A"},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
        {"name": "next", "type": ["null", "Order"], "default": None},
    )
    example = AVRO.example(schema)
    assert example["id"] == {"string": "text"}
    assert (example["age"], example["on"], example["e"]) == (2, False, "B")
    assert example["next"]["Order"]["id"] == {"string": "text"}
    got = AVRO.resolve(schema, schema, example)
    assert got.datum == example
    assert all(math.isfinite(value) for value in (got.value["age"],))


def test_no_example_is_made_where_none_can_be() -> None:
    with pytest.raises(InvalidDatum, match="no finite value"):
        AVRO.example(record({"name": "next", "type": "Order"}))
    with pytest.raises(InvalidDatum, match="bytes"):
        AVRO.example(of({"type": "fixed", "name": "F", "size": 10_000_000}))


def test_a_position_is_reported_in_lines_and_columns() -> None:
    schema = AVRO.parse('{"type": "record",\n "name": "R",\n "fields": [\n  {"name": "a", "type": "int"}]}')
    assert AVRO.position(schema, "/fields/0/type") == (4, 25)
