"""Which version a state schema was taken from, and hostile schemas in bounded time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.formats.policies.spark_state import parse_struct
from registry.streams.spark_shapes import SparkVersionSchema, carried_versions, departures, spark_shape
from tests.drift.judge.cases import struct
from tests.waiting import costs_little


def shape(*fields: tuple[str, Any]) -> Any:
    return spark_shape(record("R", *fields))


def record(name: str, *fields: tuple[str, Any]) -> str:
    listed = [{"name": field, "type": kind} for field, kind in fields]
    return json.dumps({"type": "record", "name": name, "fields": listed})


@pytest.mark.parametrize(
    ("avro", "spark"),
    [
        ("int", "integer"),
        (["null", "long"], "long"),
        (["int", "long"], "long"),
        (["float", "double", "null"], "double"),
        (["int", "string"], "unknown"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "decimal(9,2)"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "fixed", "name": "F", "size": 2}, "binary"),
        ({"type": "array", "items": "string"}, "array<string>"),
        ({"type": "map", "values": ["null", "int"]}, "map<string,integer>"),
        ({"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}, "struct<x:integer>"),
        ("R", "unknown"),
        ("Elsewhere", "unknown"),
    ],
)
def test_avro_as_spark_reads_it(avro: Any, spark: str) -> None:
    assert str(shape(("f", avro)).fields[0].type) == spark


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '"string"', "3", '{"type":"record","name":"R","fields":7}'])
def test_what_is_no_record_has_no_fields(text: str) -> None:
    parsed = spark_shape(text)
    assert parsed is None or parsed.fields == ()


def test_a_small_text_that_means_an_endless_type_is_cut() -> None:
    inner: list[tuple[str, Any]] = [("f0", {"type": "record", "name": "R0", "fields": []})]
    for level in range(1, 40):
        fields = [{"name": f"x{n}", "type": f"R{level - 1}"} for n in range(8)]
        inner.append((f"f{level}", {"type": "record", "name": f"R{level}", "fields": fields}))
    with costs_little():  # uncut it has 8^40 fields
        parsed = shape(*inner)
        assert parsed is not None
        assert len(departures(struct({"f39": "string", "f0": "string"}), parsed)) <= 2
        assert len(str(parsed)) < 10_000_000


ONE = {"a": "string", "b": "integer"}
VERSIONS = [
    SparkVersionSchema(".", "s", 1, 100, parse_struct(struct(ONE))),
    SparkVersionSchema(".", "s", 2, 200, parse_struct(struct({**ONE, "c": "long"}))),
    SparkVersionSchema(".", "s", 3, 300, parse_struct(struct({"a": "string", "c": "long", "d": "long"}))),
]


@pytest.mark.parametrize(
    ("fields", "written_at", "version"),
    [
        (ONE, 50, 1),
        (ONE, 999, 1),
        ({"a": "string", "c": "long"}, 250, 2),
        ({"a": "string", "c": "long"}, 350, 3),
        ({"a": "string", "c": "long"}, None, 3),
        ({"a": "string", "c": "long"}, 10, 2),
        ({"a": "string"}, 999, None),
        ({"a": "string", "b": "long"}, 999, None),
        ({**ONE, "other": "long"}, 999, None),
    ],
)
def test_the_likeliest_version(fields: dict[str, str], written_at: int | None, version: int | None) -> None:
    carried = carried_versions(struct(fields), written_at, VERSIONS)
    assert [item.version.version for item in carried] == ([] if version is None else [version])


def test_a_struct_inside_of_the_value_counts_too() -> None:
    inner = json.loads(struct(ONE))
    listed = {"type": "array", "elementType": inner, "containsNull": True}
    value = {"type": "struct", "fields": [{"name": "last", "type": listed, "nullable": True, "metadata": {}}]}
    (carried,) = carried_versions(json.dumps(value), 999, VERSIONS)
    assert (carried.path, carried.fields, carried.version.version) == ("last[]", ("a", "b"), 1)
