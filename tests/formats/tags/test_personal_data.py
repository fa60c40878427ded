"""Which tags hold at which field, what counts as personal, and that no personal value gets past the mask."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.formats import FORMATS
from registry.formats.base import OutlineField
from registry.formats.personal_data import MASK, SchemaTags, effective_tags

pytestmark = pytest.mark.requirement("CARD-4")
AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"], "confluent:tags": ["PII"]},
        {
            "name": "customer",
            "confluent:tags": ["CUSTOMER"],
            "type": {
                "type": "record",
                "name": "Customer",
                "confluent:tags": ["master"],
                "fields": [
                    {"name": "name", "type": "string"},
                    {"name": "ssn", "type": "string"},
                    {"name": "friend", "type": ["null", "Customer"]},
                ],
            },
        },
        {"name": "others", "type": {"type": "array", "items": "Customer"}},
        {"name": "by_key", "type": {"type": "map", "values": "Customer"}},
        {"name": "words", "type": {"type": "map", "values": "string"}},
    ],
}
PROTOBUF = """
syntax = "proto3"; package acme; import "confluent/meta.proto";
message Order {
  string email = 1 [(confluent.field_meta).tags = "pii"];
  repeated Customer others = 2; map<string, Customer> by_key = 3;
  oneof x { string card = 4 [(confluent.field_meta).tags = "PII"]; int32 n = 5; }
}
message Customer { option (confluent.message_meta).tags = "gdpr"; string name = 1; }
message Spare { string free = 1; }
"""
JSON = {
    "type": "object",
    "confluent:tags": ["root"],
    "properties": {
        "email": {"$ref": "#/definitions/Email"},
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "x": {"type": "string", "confluent:tags": ["PII"]}, "y": {"type": "string"}}}},
        "either": {"anyOf": [{"type": "null"}, {"type": "string", "confluent:tags": ["PERSONAL"]}]},
        "plain": {"type": "string"},
    },
    "definitions": {"Email": {"type": "string", "confluent:tags": ["PII"]}},
}  # fmt: skip


def tags_of(kind: str, schema: Any, **options: Any) -> SchemaTags:
    engine = FORMATS[kind]
    parsed = engine.parse(schema if isinstance(schema, str) else json.dumps(schema))
    return effective_tags(engine.outline(parsed), any_root=kind == "PROTOBUF", **options)


def by_path(found: SchemaTags) -> dict[str, tuple[str, ...]]:
    return {field.data_path: field.tags for field in found.fields}


def personal(found: SchemaTags) -> set[str]:
    return {field.data_path for field in found.fields if field.is_personal}


def test_a_field_has_the_tags_of_all_that_is_around_it() -> None:
    found = by_path(tags_of("AVRO", AVRO, around=["gold"]))
    assert found["id"] == ("gold",)
    assert found["customer"] == ("gold", "CUSTOMER")
    assert found["customer.name"] == ("gold", "CUSTOMER", "master")
    assert found["others[].name"] == ("gold", "master")
    assert found["by_key{}.ssn"] == ("gold", "master")


def test_protobuf_and_json_schema_say_it_their_ways() -> None:
    assert personal(tags_of("PROTOBUF", PROTOBUF)) == {"email", "others[].name", "by_key{}.name", "card"}
    found = tags_of("JSON", JSON)
    assert personal(found) == {"email", "list[].x", "either"}
    assert by_path(found)["list[].y"] == ("root",)
    assert (found.everywhere, found.somewhere) == (("root",), ("PERSONAL", "PII", "root"))


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("com.acme.Customer.ssn", {"customer.ssn", "others[].ssn", "by_key{}.ssn"}),
        ("Customer.ssn", {"customer.ssn", "others[].ssn", "by_key{}.ssn"}),
        ("**.ssn", {"customer.ssn", "others[].ssn", "by_key{}.ssn"}),
        ("customer.ssn", {"customer.ssn"}),
        ("$.customer.ssn", {"customer.ssn"}),
        ("Order.customer.ssn", {"customer.ssn"}),
        ("$.others.ssn", {"others[].ssn"}),
        ("*.id", {"id"}),
        ("com.*.Order.i?", {"id"}),
        ("**.s*n", {"customer.ssn", "others[].ssn", "by_key{}.ssn"}),
        ("customer", {"customer", "customer.name", "customer.ssn", "customer.friend"}),
        ("com.acme.Order", "all"),
        ("**", "all"),
        ("nowhere", set()),
        ("ID", set()),
        ("", set()),
    ],
)
@pytest.mark.parametrize("where", ["tags", "sensitive"])
def test_metadata_names_fields_by_patterns(pattern: str, paths: set[str] | str, where: str) -> None:
    metadata: dict[str, Any] = {"tags": {pattern: ["PII"]}} if where == "tags" else {"sensitive": [pattern]}
    schema = json.loads(json.dumps(AVRO).replace('"confluent:tags": ["PII"]', '"doc": ""'))
    found = tags_of("AVRO", schema, metadata=metadata)
    every = {field.data_path for field in found.fields}
    assert personal(found) == (every if paths == "all" else paths)


@pytest.mark.parametrize(("tag", "counts"), [("pii", True), ("Gdpr", True), ("SENSITIVE", True), ("PIIX", False)])
def test_which_tags_are_personal_is_said_in_any_case(tag: str, counts: bool) -> None:
    assert bool(personal(tags_of("AVRO", AVRO, around=[tag]))) is True  # the e-mail's own
    found = tags_of("AVRO", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, around=[tag])
    assert found.has_personal is counts
    assert found.covers("a") is counts
    assert found.covers("anything.else") is counts


def test_a_schema_without_fields_is_personal_by_its_subject_or_a_pattern() -> None:
    assert tags_of("AVRO", '"string"').masked("Ada") == "Ada"
    assert tags_of("AVRO", '"string"', around=["PII"]).masked("Ada") == MASK
    assert tags_of("AVRO", '"string"', metadata={"tags": {"**": ["PII"]}}).masked(["Ada"]) == [MASK]


@pytest.mark.parametrize(
    ("path", "is_personal"),
    [
        ("email", True),
        ("id", False),
        ("customer.name", False),
        ("others", False),
        ("others[]", False),
        ("words{}", False),
        ("", False),
        ("customer.friend", False),
        ("customer.friend.ssn", True),  # a type inside itself: what the outline doesn't have isn't told apart
        ("unknown", True),
        ("customer.unknown", True),
    ],
)
def test_what_is_not_known_counts_as_personal(path: str, is_personal: bool) -> None:
    assert tags_of("AVRO", AVRO).covers(path) is is_personal
    nothing = json.loads(json.dumps(AVRO).replace("PII", "x"))
    assert not tags_of("AVRO", nothing).covers(path)


def test_a_message_inside_of_the_root_is_known_by_its_own_paths() -> None:
    found = tags_of("PROTOBUF", PROTOBUF)
    assert found.covers("name")
    assert not found.covers("free")


def test_the_mask_keeps_the_form() -> None:
    person = {"name": "Ada", "ssn": "1-2", "friend": {"name": "Bob", "ssn": "3-4", "friend": None}}
    value = {"id": 7, "email": "ada@example.org", "customer": person, "others": [person], "by_key": {"k": person},
             "words": {}}  # fmt: skip
    tags = tags_of("AVRO", AVRO, metadata={"tags": {"**.ssn": ["PII"]}})
    hidden = {"name": "Ada", "ssn": MASK, "friend": {"name": MASK, "ssn": MASK, "friend": None}}
    assert tags.masked(value) == {"id": 7, "email": MASK, "customer": hidden, "others": [hidden],
                                  "by_key": {"k": hidden}, "words": {}}  # fmt: skip
    assert tags.masked({"email": None}) == {"email": None}
    assert tags.masked({"email": True}) == {"email": MASK}


SECRET = "s3cret-value"
LEAVES = st.sampled_from(["string", ["null", "string"]])


def records(depth: int) -> st.SearchStrategy[dict[str, Any]]:
    """Avro records of some shape, each field with or without a personal tag."""
    inner = LEAVES if depth == 0 else st.one_of(LEAVES, st.deferred(lambda: records(depth - 1)))
    kinds = st.one_of(
        inner,
        inner.map(lambda held: {"type": "array", "items": held}),
        inner.map(lambda held: {"type": "map", "values": held}),
    )
    fields = st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=4)
    return fields.map(lambda held: {"type": "record", "name": "R", "fields": [
        {"name": f"f{number}", "type": kind} | ({"confluent:tags": ["PII"]} if tagged else {})
        for number, (kind, tagged) in enumerate(held)]})  # fmt: skip


def named(schema: Any, counter: Iterator[int]) -> Any:
    """The same with a name of its own for each record."""
    if isinstance(schema, dict):
        found = {key: named(value, counter) if key != "confluent:tags" else value for key, value in schema.items()}
        return found | {"name": f"R{next(counter)}"} if schema.get("type") == "record" else found
    return [named(item, counter) for item in schema] if isinstance(schema, list) else schema


def datum(schema: Any, is_personal: bool = False) -> Any:
    """A value whose texts say whether they are personal."""
    if schema == "string":
        return SECRET if is_personal else "open"
    if isinstance(schema, list):
        return datum(schema[1], is_personal)
    if schema["type"] == "array":
        return [datum(schema["items"], is_personal)]
    if schema["type"] == "map":
        return {"k": datum(schema["values"], is_personal)}
    return {field["name"]: datum(field["type"], is_personal or "confluent:tags" in field) for field in schema["fields"]}


@given(records(2))
def test_no_personal_value_gets_past_the_mask(schema: dict[str, Any]) -> None:
    named_schema = named(schema, iter(range(1_000)))
    value = datum(named_schema)
    found = tags_of("AVRO", named_schema)
    shown = json.dumps(found.masked(value))
    assert SECRET not in shown
    assert (MASK in shown) is (SECRET in json.dumps(value))
    assert set(leaves(found.masked(value), found)) <= {"open", MASK}


def leaves(value: Any, found: SchemaTags) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from leaves(item, found)
    else:
        yield value


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda held: st.lists(held, max_size=3)
       | st.dictionaries(st.sampled_from(["email", "id", "customer", "ssn", "x", "{}", ""]), held, max_size=3)),
       st.lists(st.text(alphabet="*?.aeimls$", max_size=8), max_size=4))  # fmt: skip
def test_whatever_the_data_and_the_patterns_are_the_email_is_hidden(value: Any, patterns: list[str]) -> None:
    tags = tags_of("AVRO", AVRO, metadata={"tags": {pattern: ["PII"] for pattern in patterns}, "sensitive": patterns})
    shown = tags.masked({"email": value, "id": 7})
    assert shown["email"] in (MASK, None)
    assert tags.covers("email")


@pytest.mark.slow
def test_hostile_patterns_cost_little_and_hide_rather_than_show() -> None:
    rows = [OutlineField(f"f{n}", f"R.{'a' * 50}{n}", "int", 0, True, None, "") for n in range(2_000)]
    patterns = {"*a" * 200 + str(number): ["PII"] for number in range(500)}
    begin = time.monotonic()
    found = effective_tags(rows, metadata={"tags": patterns})
    assert time.monotonic() - begin < 20
    assert all(field.is_personal for field in found.fields)  # there are more patterns than are held against fields
    longest = effective_tags(rows[:1], metadata={"tags": {"x" * 600 + "*": ["PII"]}})
    assert longest.has_personal
