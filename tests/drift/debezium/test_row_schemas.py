"""Reading rows out of schemas: the real connector's in both forms, JSON Schema, plain JSON, and hostile texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.drift.debezium.columns import FieldShape, RowShape, compare, same_type
from registry.drift.debezium.row_schemas import SchemaLanguage, SchemaText, UnreadableShape, row_of, row_of_profiles
from registry.observations import FieldProfile
from tests.drift.debezium.worlds import shapes_of
from tests.waiting import costs_little

LANGUAGES: tuple[SchemaLanguage, ...] = ("AVRO", "JSON", "CONNECT")
pytestmark = pytest.mark.requirement("DEB-1")


@pytest.mark.parametrize(
    ("scenario", "table"),
    [("inventory", "customers"), ("types", "everything"), ("keyless", "log_full"), ("altered", "scaled")],
)
def test_the_same_row_reads_the_same_from_avro_and_from_json(scenario: str, table: str) -> None:
    avro, beside = (list(shapes_of(scenario, converter, table)) for converter in ("avro", "json_schema"))
    # Avro keeps what is the default of a nullable field apart by its order alone; all else is equal.
    assert [row.fields for row, _ in avro] == [row.fields for row, _ in beside]
    assert [key.fields for _, key in avro] == [key.fields for _, key in beside]
    assert len(avro) > 0


def json_schema(properties: dict[str, Any], **more: Any) -> SchemaText:
    row = {"type": "object", "properties": properties, **more}
    envelope = {
        "type": "object",
        "properties": {"after": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/row"}]}, "op": {"type": "string"}},
        "definitions": {"row": row},
    }
    return SchemaText("JSON", json.dumps(envelope))


def test_json_schema_as_connects_converter_writes_it() -> None:
    schema = json_schema(
        {
            "id": {"type": "integer", "title": "io.debezium.time.Date", "connect.type": "int32"},
            "price": {
                "oneOf": [
                    {"type": "null"},
                    {
                        "type": "number",
                        "title": "org.apache.kafka.connect.data.Decimal",
                        "connect.type": "bytes",
                        "connect.parameters": {"scale": "2"},
                    },
                ]
            },
            "name": {"type": "string", "connect.index": 2},
        }
    )
    assert row_of(schema, "value").fields == {
        "id": FieldShape(
            "id", "int32", "io.debezium.time.Date", False, default=row_of(schema, "value").fields["id"].default
        ),
        "price": FieldShape(
            "price",
            "bytes",
            "org.apache.kafka.connect.data.Decimal",
            True,
            {"scale": "2"},
            default=row_of(schema, "value").fields["price"].default,
        ),
        "name": FieldShape("name", "json_string", None, False, default=row_of(schema, "value").fields["name"].default),
    }


def test_json_schema_written_by_hand() -> None:
    schema = json_schema({"id": {"type": "integer"}, "name": {"type": ["string", "null"]}}, required=["id"])
    fields = row_of(schema, "value").fields
    assert [(field.kind, field.optional) for field in fields.values()] == [
        ("json_integer", False),
        ("json_string", True),
    ]
    assert same_type(fields["id"], FieldShape("id", "int64"))
    assert not same_type(fields["id"], FieldShape("id", "string"))


HOSTILE: list[tuple[SchemaLanguage, str]] = [
    *[(language, text) for language in LANGUAGES for text in ("", "{", "null", "7", "[]", '"x"', "{}", '{"a": NaN}')],
    *[(language, "[" * 100_000) for language in LANGUAGES],
    *[(language, '{"type": {"type": ' * 5_000 + "1" + "}}" * 5_000) for language in LANGUAGES],
    ("AVRO", '{"type": "record", "name": "a", "fields": 7}'),
    ("AVRO", '{"type": "record", "name": "a", "fields": [{"name": "after"}, {"name": "op"}]}'),
    ("AVRO", '{"type": "record", "name": "a", "fields": [{"name": 7, "type": {"type": "array"}}]}'),
    ("JSON", '{"$ref": "#"}'),
    ("JSON", '{"$ref": "https://example.com/x"}'),
    ("JSON", '{"properties": {"after": {"$ref": "#/properties/after"}, "op": {}}}'),
    ("CONNECT", '{"type": "struct", "fields": {"a": 1}}'),
    ("CONNECT", '{"type": "struct", "fields": [{"type": [1], "field": "a"}]}'),
    ("CONNECT", json.dumps({"type": "struct", "fields": [{"type": "int32", "field": str(n)} for n in range(6_000)]})),
    (
        "CONNECT",
        '{"type": "struct", "fields": [{"field": "op"}, {"field": "message"}, {"field": "source"}]}',
    ),
]


@pytest.mark.parametrize(("language", "text"), HOSTILE, ids=lambda value: str(value)[:30])
def test_what_tells_no_row_is_said(language: SchemaLanguage, text: str) -> None:
    """Said at once; one that follows its references in a circle never ends."""
    with costs_little():
        try:
            row = row_of(SchemaText(language, text), "value")
        except UnreadableShape as error:
            assert str(error)
        else:
            compare({"table": row, "events": row})


KEYS = st.sampled_from(
    ["type", "fields", "name", "field", "items", "after", "op", "properties", "oneOf", "$ref", "values"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(["record", "struct", "int32", "#", "null", "x"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5))


@given(JSON, st.sampled_from(LANGUAGES), st.sampled_from(["key", "value"]))
def test_any_json_is_a_row_or_is_said_not_to_be(value: Any, language: SchemaLanguage, side: Any) -> None:
    try:
        row = row_of(SchemaText(language, json.dumps(value)), side)
    except UnreadableShape:
        return
    assert compare({"table": row, "events": row}).columns == ()


def profile(path: str, present: int, kinds: dict[str, int], *, nulls: int = 0, messages: int = 10) -> FieldProfile:
    return FieldProfile("t", "value", None, "", path, messages, present, nulls, kinds, None, None, None, {})


def test_plain_json_in_envelopes() -> None:
    row = row_of_profiles(
        [
            profile("op", 10, {"string": 10}),
            profile("after", 10, {"object": 8, "null": 2}, nulls=2),
            profile("after.id", 8, {"integer": 8}),
            profile("after.part", 3, {"string": 3}),
            profile("after.mixed", 8, {"string": 3, "integer": 5}),
            profile("after.amount", 8, {"integer": 3, "number": 5}),
            profile("after.doc", 8, {"object": 8}),
            profile("after.doc.inside", 8, {"string": 8}),
            profile("after.tags", 8, {"array": 8}),
            profile("after.tags[]", 8, {"string": 8}),
        ],
        "value",
    )
    assert row is not None
    assert {name: field.kind for name, field in row.fields.items()} == {
        "id": "json_integer",
        "part": "json_string",
        "mixed": "unknown",
        "amount": "json_number",
        "doc": "json_object",
        "tags": "json_array",
    }
    assert row.partly == {"part"}


def test_no_row_was_seen() -> None:
    assert row_of_profiles([], "value") is None
    deletes = [profile("op", 10, {"string": 10}), profile("after", 10, {"null": 10}, nulls=10)]
    assert row_of_profiles(deletes, "value") is None


def test_unwrapped_rows() -> None:
    row = row_of_profiles([profile("id", 10, {"integer": 10}), profile("__op", 10, {"string": 10})], "value")
    assert row is not None
    assert set(row.fields) == {"id", "__op"}


def test_names_that_a_scan_masks_or_that_have_a_dot() -> None:
    envelope = [profile("op", 10, {"string": 10}), profile("after", 10, {"object": 10})]
    row = row_of_profiles(
        [
            *envelope,
            profile("after.a.b", 10, {"string": 10}),
            profile("after.doc", 10, {"object": 10}),
            profile("after.doc.x", 10, {"string": 10}),
        ],
        "value",
    )
    assert row is not None
    assert (set(row.fields), row.exact) == ({"a.b", "doc"}, True)
    masked = row_of_profiles([*envelope, profile("after.id", 10, {"integer": 10}), profile("after{}", 10, {})], "value")
    assert masked is not None
    assert (set(masked.fields), masked.exact) == ({"id"}, False)
    table = RowShape({name: FieldShape(name, "int32") for name in ("id", "2nd", "with space")})
    assert compare({"table": table, "events": masked}).columns == ()
