"""Examples of schemas: really encoded or validated by the format's own library, always the same, and bounded."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.errors import InvalidDatum, InvalidSchema
from registry.formats.avro import AVRO
from registry.formats.json_schema import JSON_SCHEMA
from registry.formats.personal_data import MASK, Placeholders, effective_tags
from registry.formats.protobuf import PROTOBUF
from registry.formats.schema_format import SchemaFormat
from tests.formats.avro import random_schemas
from tests.formats.json_schema import random_schemas as random_json
from tests.formats.protobuf import random_schemas as random_protobuf

pytestmark = pytest.mark.requirement("CARD-4")
SEEDS = st.integers(min_value=0, max_value=2**32)
SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def avro_text(seed: int) -> str:
    return random_schemas.random_pair(seed)[0]


def protobuf_text(seed: int) -> str:
    return random_protobuf.text_of(random_protobuf.random_tree(Random(seed)))


def json_text(seed: int) -> str:
    return random_json.random_pair(seed)[0]


def holds(engine: SchemaFormat, text: str) -> bool:
    """Whether an example was made; one that was is encoded and decoded as itself, and is made again the same."""
    try:
        parsed = engine.parse(text)
        example = engine.example(parsed)
    except (InvalidSchema, InvalidDatum):
        return False
    assert engine.resolve(parsed, parsed, example).error == "", text
    assert engine.example(engine.parse(text)) == example, text
    return True


@pytest.mark.parametrize(
    ("engine", "text_of"), [(AVRO, avro_text), (PROTOBUF, protobuf_text), (JSON_SCHEMA, json_text)]
)
def test_most_schemas_have_an_example_and_every_example_is_valid(engine: SchemaFormat, text_of: Any) -> None:
    made: list[bool] = []

    @SOME
    @given(SEEDS)
    def look(seed: int) -> None:
        made.append(holds(engine, text_of(seed)))

    look()
    assert sum(made) > len(made) * 0.6


#: schemas that hold themselves, or whose data would be without bounds
HOSTILE = {
    "a list in itself": (
        AVRO,
        '{"type":"record","name":"N","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","N"]}]}',
    ),
    "no finite value": (AVRO, '{"type":"record","name":"N","fields":[{"name":"next","type":"N"}]}'),
    "doubling": (
        AVRO,
        json.dumps(
            {
                "type": "record", "name": "R0",
                "fields": [{"name": "leaf", "type": {"type": "record", "name": "L0", "fields": [{"name": "a", "type": "int"}]}}]
                + [
                    {"name": f"f{n}", "type": {"type": "record", "name": f"L{n}", "fields": [
                        {"name": "a", "type": f"L{n - 1}"}, {"name": "b", "type": f"L{n - 1}"}]}}
                    for n in range(1, 40)
                ],
            }
        ),
    ),
    "messages in themselves": (
        PROTOBUF,
        'syntax="proto3"; message A { A a=1; repeated B b=2; map<string,A> m=3; A c=4; } message B { A a=1; B b=2; A d=3; }',
    ),
    "a tree in itself": (
        JSON_SCHEMA,
        '{"type":"object","properties":{"v":{"type":"integer"},"children":{"type":"array","minItems":1,"items":{"$ref":"#"}}}}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_examples_are_bounded(case: str) -> None:
    engine, text = HOSTILE[case]
    parsed = engine.parse(text)
    try:
        example = engine.example(parsed)
    except InvalidDatum as error:
        assert error.message
    else:
        assert len(json.dumps(example)) < 500_000
        assert engine.resolve(parsed, parsed, example).error == ""


def test_a_message_in_itself_is_drawn_once() -> None:
    parsed = PROTOBUF.parse('syntax="proto3"; message A { string name=1; A left=2; A right=3; }')
    assert PROTOBUF.example(parsed) == {"name": "name", "left": {}, "right": {}}


#: format, schema, the example as it is with placeholders, how many there are, whether it still is one of the schema
PERSONAL = [
    (
        AVRO,
        {
            "type": "record", "name": "C",
            "fields": [
                {"name": "mail", "type": ["null", "string"], "confluent:tags": ["PII"]},
                {"name": "age", "type": "int", "confluent:tags": ["PII"]},
                {"name": "city", "type": ["null", "string"]},
                {"name": "notes", "type": {"type": "map", "values": "string"}, "confluent:tags": ["PII"]},
                {"name": "rows", "type": {"type": "array", "items": ["null", {
                    "type": "record", "name": "I", "fields": [
                        {"name": "phone", "type": "string", "confluent:tags": ["PII"]}, {"name": "n", "type": "long"}]}]}},
            ],
        },
        {
            "mail": {"string": MASK}, "age": 0, "city": {"string": "text"}, "notes": {"k": MASK},
            "rows": [{"I": {"phone": MASK, "n": 1}}],
        },
        4,
        True,
    ),
    (
        PROTOBUF,
        'syntax="proto3"; import "confluent/meta.proto"; message C { string mail = 1 [(confluent.field_meta) = { tags: "PII" }];'
        ' int64 ssn = 2 [(confluent.field_meta) = { tags: "PII" }]; string city = 3; }',
        {"mail": MASK, "ssn": "0", "city": "city"},
        2,
        True,
    ),
    (
        JSON_SCHEMA,
        {
            "type": "object", "additionalProperties": False, "required": ["mail", "kind"],
            "properties": {
                "mail": {"type": "string", "confluent:tags": ["PII"]},
                "kind": {"enum": ["a", "b"], "confluent:tags": ["PII"]},
                "n": {"type": "integer"},
            },
        },
        {"mail": MASK, "kind": MASK, "n": 1},
        2,
        False,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "text", "expected", "count", "is_valid"), PERSONAL, ids=["avro", "protobuf", "json"]
)
def test_personal_fields_hold_placeholders(
    engine: SchemaFormat, text: Any, expected: Any, count: int, is_valid: bool
) -> None:
    parsed = engine.parse(text if isinstance(text, str) else json.dumps(text))
    tags = effective_tags(engine.outline(parsed), any_root=engine is PROTOBUF)
    placeholders = Placeholders(tags, is_union_wrapped=engine is AVRO)
    example = placeholders.of(engine.example(parsed))
    assert example == expected
    assert placeholders.put == count
    try:
        valid = engine.resolve(parsed, parsed, example).error == ""
    except InvalidDatum:
        valid = False
    assert valid is is_valid
