"""Profiles of decoded messages of every format, on a real broker and through a real Spark Connect server."""

from __future__ import annotations

import base64
import io
import json
import math
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from registry.observations import (
    BEGINS_AS_OBJECT,
    Bounds,
    ChangeEvents,
    ConnectSchema,
    FieldProfile,
    MessageIndexes,
    Observation,
    Profile,
    Sample,
    ScanTotals,
    SchemaNotUsed,
    UndecodableMessages,
    WriterSchema,
)
from registry.pipeline import avro_schemas, run
from tests.pipeline.test_topic_scan import only
from tests.pipeline.topics import USER, Message, framed, make_topic, scan_of, string, writers, zigzag

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]

ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": ["null", "string"]}]}
V1: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["string", "null"]},
        {"name": "address", "type": ["null", ADDRESS]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]},
            },
        },
        {"name": "tags", "type": {"type": "map", "values": "long"}},
    ],
}
V2 = json.loads(json.dumps(V1))
V2["fields"][0]["type"] = "long"
V2["fields"][1]["type"]["symbols"].append("SENT")
V2["fields"].insert(0, {"name": "Id", "type": ["null", "double"]})  # differs from `id` in its case alone
del V2["fields"][4]  # note
ODD = {
    "type": "record",
    "name": "Odd",
    "fields": [{"name": "either", "type": ["null", "string", "long"]}, {"name": "next", "type": ["null", "Odd"]}],
}


def avro(schema: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return buffer.getvalue()


def order(number: int, **changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": number,
        "state": "PAID" if number % 4 else "NEW",
        "paid": bool(number % 4),
        "note": f"note {number}" if number % 2 else None,
        "address": {"zip": f"{number:05}" if number % 5 else None} if number % 10 else None,
        "day": 19_000,
        "items": [{"sku": f"sku-{number % 7}"}] * (number % 3),
        "tags": {"weight": number},
    }
    return value | changes


def fields(observations: list[Observation], mark: str = "1", side: str = "value") -> dict[str, FieldProfile]:
    return {
        observation.path: observation
        for observation in only(FieldProfile, observations)
        if observation.mark == mark and observation.side == side
    }


def counts(profile: FieldProfile) -> tuple[int, int, int]:
    return profile.messages, profile.present, profile.nulls


FEW = "registry.pipeline.profile.FEW"


@pytest.fixture
def natively(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark counts plain Avro, however few its messages are."""
    monkeypatch.setattr(FEW, 0)


def told(observations: list[Observation]) -> list[Observation]:
    """What two scans of the same messages say alike: all but their duration."""
    return [observation for observation in observations if not isinstance(observation, ScanTotals)]


def comparable(observations: list[Observation]) -> list[Observation]:
    """Both passes give these alike: not the estimates, and reasons only of the offsets that are named."""
    observations = [
        replace(item, distinct=None) if isinstance(item, FieldProfile) else item for item in told(observations)
    ]
    return [replace(item, by_reason={}) if isinstance(item, UndecodableMessages) else item for item in observations]


def test_few_messages_are_counted_as_many_are(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed: dict[str, Any] = {
        "type": "record",
        "name": "Mixed",
        "fields": [
            {"name": "float", "type": "float"},
            {"name": "double", "type": ["null", "double"]},
            {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 3}},
            {
                "name": "never",
                "type": ["null", {"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}],
            },
            {"name": "nothing", "type": "null"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
    value = {"float": 0.5, "double": None, "fixed": b"abc", "never": None, "nothing": None, "at": -1}
    values = [value, *(value | {"double": number} for number in (math.nan, -1e200, 0.0, 1000.0, -0.07))]
    bodies = [framed(1, avro(V1, order(number))) for number in range(40)]
    bodies += [framed(2, avro(V2, order(number, Id=None, state="SENT", address=None))) for number in range(5)]
    bodies += [framed(3, body) for body in (avro(TEXTS, GOOD_TEXTS), *broken_texts(TEXTS, GOOD_TEXTS))]
    bodies += [framed(4, avro("double", 2.5)), *(framed(5, avro(mixed, each)) for each in values)]
    bodies += [framed(1, b""), framed(1, avro(V1, order(1)) + b"more"), framed(9, b"unknown"), b"{}", b""]
    topic = make_topic(kafka_bootstrap, [(number % 2, body[:9], body) for number, body in enumerate(bodies)])
    schemas = {1: V1, 2: V2, 3: TEXTS, 4: "double", 5: mixed}
    texts = {number: json.dumps(schema) for number, schema in schemas.items()}
    spec = scan_of(kafka_bootstrap, topic, schemas=texts, bounds=Bounds(first_slice=20), profile=Profile(samples=3))
    in_python = run(spec, remote=spark_remote)
    assert len(only(FieldProfile, in_python)) > 30
    monkeypatch.setattr(FEW, 20)
    assert comparable(run(spec, remote=spark_remote)) == comparable(in_python), "the first slice alone has few"
    monkeypatch.setattr(FEW, 0)
    assert comparable(run(spec, remote=spark_remote)) == comparable(in_python)


@pytest.mark.requirement("DEB-5", "CARD-3")
def test_fields_of_avro_by_schema(kafka_bootstrap: str, spark_remote: str) -> None:
    messages: list[Message] = [(number % 3, None, framed(1, avro(V1, order(number)))) for number in range(1_000)]
    for number in range(100):
        value = order(number, Id=1.5 if number else None, state="SENT")
        messages.append((number % 3, None, framed(2, avro(V2, value))))
    messages.append((1, None, framed(1, avro(V1, order(1))[:-3])))
    topic = make_topic(kafka_bootstrap, messages, partitions=3)
    schemas = {1: json.dumps(V1), 2: json.dumps(V2)}
    observations = run(scan_of(kafka_bootstrap, topic, schemas=schemas), remote=spark_remote)
    one, two = fields(observations, "1"), fields(observations, "2")
    assert {path: counts(profile) for path, profile in one.items()} == {
        "id": (1_000, 1_000, 0),
        "state": (1_000, 1_000, 0),
        "paid": (1_000, 1_000, 0),
        "note": (1_000, 1_000, 500),
        "address": (1_000, 1_000, 100),
        "address.zip": (1_000, 900, 100),
        "day": (1_000, 1_000, 0),
        "items": (1_000, 1_000, 0),
        "items[]": (1_000, 666, 0),
        "items[].sku": (1_000, 666, 0),
        "tags": (1_000, 1_000, 0),
        "tags{}": (1_000, 1_000, 0),
    }
    assert one["state"].values == {"PAID": 750, "NEW": 250}
    assert one["paid"].values == {"true": 750, "false": 250}
    assert one["note"].kinds == {"string": 500, "null": 500}
    assert one["id"].kinds == {"int": 1_000}
    assert two["id"].kinds == {"long": 100}
    assert counts(two["Id"]) == (100, 100, 1)
    assert two["state"].values == {"SENT": 100}
    assert "note" not in two
    assert 930 <= (one["id"].distinct or 0) <= 1_070
    assert (one["id"].minimum, one["id"].maximum) == ("0", "1e2")
    assert (one["note"].minimum, one["note"].maximum) == ("6 characters", "8 characters")
    assert (one["day"].minimum, one["day"].maximum) == ("2022", "2022")
    assert (one["items"].minimum, one["items"].maximum) == ("0 items", "2 items")
    assert (one["items[].sku"].distinct, one["items[].sku"].kinds) == (7, {"string": 999})
    (bad,) = only(UndecodableMessages, observations)
    assert (bad.partition, bad.mark, bad.span.messages, bad.offsets) == (1, "1", 1, (bad.span.first_offset,))
    assert bad.reasons == ("the body ends before its schema does",)
    assert bad.by_reason == {"the body ends before its schema does": 1}
    assert only(SchemaNotUsed, observations) == []


NOT_UTF8 = "a string in the body isn't UTF-8, which some clients replace and others refuse"
TEXTS: dict[str, Any] = {
    "type": "record",
    "name": "Texts",
    "fields": [
        {"name": "plain", "type": "string"},
        {"name": "perhaps", "type": ["null", "string"]},
        {"name": "list", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": "string"}]}}},
        {"name": "map", "type": {"type": "map", "values": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
        {"name": "raw", "type": "bytes"},
    ],
}  # fmt: skip
GOOD_TEXTS: dict[str, Any] = {
    "plain": "ä", "perhaps": "ä", "list": [{"n": 1, "s": "ä"}], "map": {"ä": "ä"}, "sizes": {"ä": ["ä"]}, "raw": b"\xff",
}  # fmt: skip


def broken_texts(schema: Any, value: Any) -> list[bytes]:
    """The body once for each `ä` in it, with that one's bytes as no UTF-8 has them."""
    whole, paths = avro(schema, value), []
    while (at := whole.find("ä".encode(), paths[-1] + 1 if paths else 0)) >= 0:
        paths.append(at)
    return [whole[:at] + b"\xff\xfe" + whole[at + 2 :] for at in paths]


def test_a_string_that_is_not_utf8_is_undecodable_wherever_it_stands(kafka_bootstrap: str, spark_remote: str) -> None:
    broken = broken_texts(TEXTS, GOOD_TEXTS)
    assert len(broken) == 7
    nulls = GOOD_TEXTS | {"perhaps": None, "list": [], "map": {}, "sizes": {}}
    fine = [avro(TEXTS, GOOD_TEXTS), avro(TEXTS, nulls)]
    bodies: list[Message] = [(0, None, framed(1, body)) for body in (*fine, *broken)]
    topic = make_topic(kafka_bootstrap, bodies, partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, schemas={1: json.dumps(TEXTS)}), remote=spark_remote)
    (bad,) = only(UndecodableMessages, observations)
    assert (bad.span.messages, bad.span.first_offset, bad.span.last_offset) == (7, 2, 8)
    assert bad.offsets == (2, 3, 4, 5, 6)
    assert bad.reasons == (NOT_UTF8,) * 5
    assert bad.by_reason == {NOT_UTF8: 7}
    assert counts(fields(observations)["plain"]) == (2, 2, 0)
    assert counts(fields(observations)["perhaps"]) == (2, 2, 1)


@pytest.mark.usefixtures("natively")
def test_every_offset_that_is_reported_has_its_own_reason(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the share of plain Avro that Python reads anyway ends before them; and nothing is counted twice."""
    monkeypatch.setattr("registry.pipeline.profile.SHARE", 2)
    fine, not_utf8 = avro(TEXTS, GOOD_TEXTS), broken_texts(TEXTS, GOOD_TEXTS)[0]
    cut = fine[:-1]
    bodies = [fine, fine, cut, not_utf8, fine, cut, fine, not_utf8, cut, cut, not_utf8]
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, body)) for body in bodies], partitions=1)
    observations = run(
        scan_of(kafka_bootstrap, topic, schemas={1: json.dumps(TEXTS)}, bounds=Bounds(first_slice=6)),
        remote=spark_remote,
    )
    (bad,) = only(UndecodableMessages, observations)
    ends = "the body ends before its schema does"
    assert (bad.span.messages, bad.offsets) == (7, (2, 3, 5, 7, 8))
    assert bad.reasons == (ends, NOT_UTF8, ends, NOT_UTF8, ends)
    assert bad.by_reason == {ends: 3, NOT_UTF8: 2}, "of the others nobody looked for the reason"
    profiles = fields(observations)
    assert counts(profiles["plain"]) == (4, 4, 0)
    assert profiles["list[].s"].kinds == {"string": 3}, "of the first messages of every slice alone"


@pytest.mark.usefixtures("natively")
def test_a_body_with_bytes_left_over_is_no_evidence_of_fields(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the messages that Python reads, and beyond the fields that are counted at once."""
    monkeypatch.setattr("registry.pipeline.profile.SHARE", 2)
    wide = {"type": "record", "name": "W", "fields": [{"name": f"n{number}", "type": "int"} for number in range(60)]}
    body = avro(wide, {f"n{number}": number for number in range(60)})
    end = avro_schemas.END
    left = [body + b"\x00", body + b"more", body + end[:3], body + end[1:], body + end[:7] + end[:1], body + bytes(40)]
    bodies = [body, body, *left, body[:-1]]
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, each)) for each in bodies], partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, schemas={1: json.dumps(wide)}), remote=spark_remote)
    (bad,) = only(UndecodableMessages, observations)
    assert (bad.span.messages, bad.offsets) == (7, (2, 3, 4, 5, 6))
    lengths = [f"{length} bytes are left over after decoding" for length in (1, 4, 3, 7, 8)]
    assert bad.reasons == tuple(lengths)
    profiles = fields(observations)
    assert {counts(profiles[name]) for name in ("n0", "n49", "n59")} == {(2, 2, 0)}


@pytest.mark.usefixtures("natively")
def test_a_string_that_is_not_utf8_is_found_among_many_fields(kafka_bootstrap: str, spark_remote: str) -> None:
    numbers = [{"name": f"n{number}", "type": "int"} for number in range(70)]
    wide = {"type": "record", "name": "W", "fields": [*numbers, {"name": "last", "type": "string"}]}
    value = {f"n{number}": number for number in range(70)} | {"last": "ä"}
    bodies = [avro(wide, value), *broken_texts(wide, value)]
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, body)) for body in bodies], partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, schemas={1: json.dumps(wide)}), remote=spark_remote)
    (bad,) = only(UndecodableMessages, observations)
    assert (bad.span.messages, bad.offsets) == (1, (1,))
    profiles = fields(observations)
    assert {counts(profiles[name]) for name in ("n0", "n69", "last")} == {(1, 1, 0)}


def test_avro_without_a_common_reader_is_counted_too(kafka_bootstrap: str, spark_remote: str) -> None:
    chain: dict[str, Any] | None = None
    for _ in range(5):
        chain = {"either": 7, "next": chain}
    deep = zigzag(0) + zigzag(1)  # either: null, next: an Odd, and so on
    messages: list[Message] = [
        (0, None, framed(1, avro(ODD, {"either": "text", "next": None}))),
        (0, None, framed(1, avro(ODD, chain))),
        (0, None, framed(1, deep * 100_000 + zigzag(0) + zigzag(0))),
        (0, None, framed(2, string("Ada") + b"more")),
        (0, string("k"), framed(2, string("Grace"))),
        (0, None, framed(3, zigzag(5))),
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    text_too = json.dumps({"type": "record", "name": "User", "fields": [{"name": "name", "type": "int"}]})
    schemas = {1: json.dumps(ODD), 2: USER, 3: text_too}
    observations = run(scan_of(kafka_bootstrap, topic, schemas=schemas), remote=spark_remote)
    odd = fields(observations)
    assert (counts(odd["either"]), odd["either"].kinds) == ((2, 2, 0), {"string": 1, "long": 1})
    assert counts(odd["next.next.either"]) == (2, 1, 0)
    assert len(odd) <= 42
    assert fields(observations, "2")["name"].kinds == {"string": 1}
    assert fields(observations, "3")["name"].kinds == {"int": 1}
    bad = {observation.mark: observation for observation in only(UndecodableMessages, observations)}
    assert (bad["2"].offsets, bad["2"].reasons) == ((3,), ("4 bytes are left over after decoding",))
    too_deep = (bad["1"].offsets, bad["1"].problem, bad["1"].reasons)
    assert too_deep == ((2,), "not_read", ("it is nested deeper than 500 levels",))


def test_json_without_a_schema_and_with_one(kafka_bootstrap: str, spark_remote: str) -> None:
    documents: list[Any] = [{"a": number, "b": {"c": [1, "x", None]}, "d": True} for number in range(10)]
    documents += [{"a": "text", "ada@example.com": 1, "550e8400-e29b-41d4-a716-446655440000": 2}]
    messages: list[Message] = [(0, None, json.dumps(document).encode()) for document in documents]
    messages += [(0, b'{"k": 1}', b"{not json}"), (0, None, b'{"a": "\xff"}'), (0, None, b"[" * 50_000 + b"]" * 50_000)]
    messages += [(0, None, framed(9, b'{"s": 1.5}')), (0, None, framed(9, b"oops"))]
    messages += [(0, None, b'{"k": 1, "x": '), (0, None, b'{"a": 1}\n'), (0, None, b"[INFO] started")]
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    schema = writers({9: '{"type": "object"}'}, "JSON")
    observations = run(scan_of(kafka_bootstrap, topic, more=schema), remote=spark_remote)
    profiles = fields(observations, "")
    assert (counts(profiles["a"]), profiles["a"].kinds) == ((12, 12, 0), {"integer": 11, "string": 1})
    assert (counts(profiles["b.c[]"]), profiles["b.c[]"].kinds) == (
        (12, 10, 10),
        {"integer": 10, "string": 10, "null": 10},
    )
    assert profiles["d"].values == {"true": 10}
    assert profiles["{}"].kinds == {"integer": 2}
    assert fields(observations, "", "key")["k"].present == 1
    assert fields(observations, "9")["s"].kinds == {"number": 1}
    bad = {
        (observation.framing, observation.problem): observation
        for observation in only(UndecodableMessages, observations)
    }
    no_json, too_deep = bad[None, "malformed"], bad[None, "not_read"]
    assert (no_json.span.messages, no_json.offsets) == (3, (11, 12, 16))
    assert no_json.reasons == (
        "the text isn't JSON",
        f"the bytes aren't UTF-8{BEGINS_AS_OBJECT}",
        f"the text isn't JSON{BEGINS_AS_OBJECT}",
    )
    assert no_json.by_reason == dict.fromkeys(no_json.reasons, 1)
    assert (too_deep.span.messages, too_deep.offsets) == (1, (13,))
    assert (bad["id", "malformed"].mark, bad["id", "malformed"].offsets) == ("9", (15,))


def test_json_is_held_against_its_schema(kafka_bootstrap: str, spark_remote: str) -> None:
    """A value that the schema doesn't allow is told in the schema's words alone, and its fields are counted still."""
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "integer"}, "state": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/State"}]}},
        "$defs": {"State": {"type": "string", "enum": ["OPEN", "PAID"]}},
    }
    values = [
        {"id": 1, "state": "OPEN"},
        {"id": 2, "state": None},
        {"id": "ada@example.com"},
        {"id": 3, "state": "LOST"},
        {"state": "LOST"},
    ]
    messages: list[Message] = [(0, None, framed(9, json.dumps(value).encode())) for value in values]
    messages.append((0, None, framed(8, b'{"any": 1}')))
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    texts = {9: json.dumps(schema), 8: '{"type": "object", "pattern": "("}'}
    observations = run(scan_of(kafka_bootstrap, topic, more=writers(texts, "JSON")), remote=spark_remote)
    bad = {observation.mark: observation for observation in only(UndecodableMessages, observations)}
    prefix = "the value isn't valid by its schema, at"
    assert (bad["9"].offsets, bad["9"].problem) == ((2, 3, 4), "violates")
    assert bad["9"].reasons == (
        f"{prefix} properties/id/type",
        f"{prefix} properties/state/oneOf",
        f"{prefix} required and at properties/state/oneOf",
    )
    assert bad["9"].by_reason == dict.fromkeys(bad["9"].reasons, 1)
    assert "ada" not in str(observations)
    assert "LOST" not in str(observations)
    profiles = fields(observations, "9")
    assert profiles["state"].values == {"OPEN": 1, "(not declared)": 2}
    assert profiles["id"].kinds == {"integer": 3, "string": 1}
    assert [(observation.mark, observation.reason) for observation in only(SchemaNotUsed, observations)] == [
        ("8", "jsonschema_rs rejects the schema")
    ]


def protobuf_schema() -> tuple[str, Any]:
    """A FileDescriptorSet in base64, and the classes of its messages by full name."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    other, order_ = file.message_type.add(name="Other"), file.message_type.add(name="Order")
    other.field.add(name="text", number=1, type=9, label=1)
    inner = order_.nested_type.add(name="Item")
    inner.field.add(name="sku", number=1, type=9, label=1)
    entry = order_.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=3, label=1)
    file.enum_type.add(name="State").value.add(name="NEW", number=0)
    file.enum_type[0].value.add(name="PAID", number=1)
    order_.field.add(name="id", number=1, type=3, label=1)
    order_.field.add(name="items", number=2, type=11, label=3, type_name=".shop.Order.Item")
    order_.field.add(name="tags", number=3, type=11, label=3, type_name=".shop.Order.TagsEntry")
    order_.field.add(name="state", number=4, type=14, label=1, type_name=".shop.State")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    text = base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()
    names = ("shop.Other", "shop.Order", "shop.Order.Item")
    return text, {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def test_protobuf_with_message_indexes(kafka_bootstrap: str, spark_remote: str) -> None:
    text, classes = protobuf_schema()
    value = classes["shop.Order"](id=7, items=[{"sku": "a"}, {"sku": "b"}], tags={"w": 3}, state=1)
    body = value.SerializeToString()
    item = classes["shop.Order.Item"](sku="x").SerializeToString()
    one, nested = zigzag(1) + zigzag(1), zigzag(2) + zigzag(1) + zigzag(0)
    guid = b"\x01" + bytes(16)
    messages: list[Message] = [
        (0, None, framed(5, one + body)),
        (0, None, framed(5, one + body + b"\x50\x01")),  # a field 10 that the schema doesn't know
        (0, None, framed(5, nested + item)),
        (0, None, framed(5, b"\x00" + classes["shop.Other"](text="t").SerializeToString())),
        (0, None, framed(5, zigzag(1) + zigzag(9) + body)),
        (0, None, framed(5, one + body[:-3] + b"\xff")),
        (0, None, framed(5, b"")),
        (0, None, body, [("__value_schema_id", guid + one)]),
        (0, None, guid + one + body),
        (0, None, framed(6, b"\x00")),
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    more = (
        *writers({5: text, 6: "bm8="}, "PROTOBUF"),
        WriterSchema("guid", str(__import__("uuid").UUID(int=0)), "PROTOBUF", text),
    )
    observations = run(scan_of(kafka_bootstrap, topic, more=more), remote=spark_remote)
    indexes = {
        (observation.framing, observation.indexes): observation.span.messages
        for observation in only(MessageIndexes, observations)
    }
    assert indexes == {("id", "1"): 2, ("id", "1.0"): 1, ("id", "0"): 1, ("guid", "1"): 2}
    profiles = fields(observations, "5")
    assert (profiles["items[].sku"].present, profiles["items[].sku"].kinds) == (2, {"string": 4})
    assert profiles["state"].values == {"PAID": 2}
    assert profiles["tags{}"].kinds == {"int64": 2}
    assert profiles["#10"].kinds == {"unknown": 1}
    assert (profiles["#10"].values, profiles["#10"].undeclared) == ({"varint": 1}, (0, 1))
    bad = {observation.mark: observation for observation in only(UndecodableMessages, observations)}
    assert bad["5"].offsets == (4, 5, 6)
    assert bad["5"].reasons[0] == "the message's indexes name a type that the schema doesn't have"
    assert len(set(bad["5"].reasons)) == 3
    assert [observation.mark for observation in only(SchemaNotUsed, observations)] == ["6"]


CONNECT = {
    "type": "struct",
    "name": "s.public.customers.Envelope",
    "optional": False,
    "fields": [{"field": "before", "type": "string", "optional": True, "somebody's": "secret"}],
}


def change(op: str, **more: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "customers", "snapshot": "false"}
    return {"before": None, "after": {"id": 1}, "op": op, "source": source} | more


def test_debezium_in_json_and_its_schemas(kafka_bootstrap: str, spark_remote: str) -> None:
    snapshot = change("r")
    snapshot["source"]["snapshot"] = "last"
    message = change("m", before=None, after=None, message={"prefix": "p", "content": ""})
    message["source"]["txId"] = 5
    unavailable = change("u", after={"id": 1, "bio": "__debezium_unavailable_value"}, transaction={"id": "1"})
    events: list[tuple[Any, list[tuple[str, str | bytes | None]]]] = [
        (change("c"), []),
        ({"schema": CONNECT, "payload": change("c")}, []),
        ({"schema": CONNECT, "payload": change("d", before={"id": 1}, after=None)}, [("__debezium.newkey", b"{}")]),
        ({"schema": CONNECT, "payload": change("c")}, [("__debezium.oldkey", b"{}")]),
        (unavailable, []),
        (snapshot, []),
        (message, []),
        (change("t", after=None), []),
        ({"op": "c", "source": "none"}, []),
    ]
    messages: list[Message] = [
        (0, None, json.dumps(event, separators=(",", ":")).encode(), headers) for event, headers in events
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, profile=Profile(changes=True)), remote=spark_remote)
    changes = {observation.op: observation for observation in only(ChangeEvents, observations)}
    assert {op: observation.span.messages for op, observation in changes.items()} == {
        "c": 3,
        "d": 1,
        "u": 1,
        "r": 1,
        "m": 1,
        "t": 1,
    }
    assert (changes["c"].database, changes["c"].schema, changes["c"].table) == ("shop", "public", "customers")
    assert (changes["d"].with_before, changes["d"].newkey, changes["c"].oldkey) == (1, 1, 1)
    assert (changes["r"].snapshot, changes["c"].snapshot) == (1, 0)
    assert (changes["u"].unavailable, changes["u"].in_transaction, changes["m"].in_transaction) == (1, 1, 1)
    assert changes["m"].table == ""
    (shape,) = only(ConnectSchema, observations)
    assert shape.span.messages == 3
    assert json.loads(shape.text)["name"] == "s.public.customers.Envelope"
    assert "secret" not in shape.text
    assert fields(observations, "")["op"].present == 9  # the payload's fields, not `payload.op`


SECRET = "Sn0wd3n-geheim-4711"


def secretive() -> tuple[list[Message], tuple[WriterSchema, ...]]:
    """Messages of every form that hold the secret, and schemas for them."""
    text, classes = protobuf_schema()
    envelope = change("u", before={"pw": SECRET}, after={"pw": SECRET})
    number = 4_711_471_147
    v1 = order(number % 1_000, note=SECRET, items=[{"sku": SECRET}], tags={SECRET: number})
    messages: list[Message] = [
        (0, SECRET.encode(), framed(1, avro(V1, v1))),
        (0, None, framed(1, avro(V1, v1)[:-5])),
        (0, None, framed(2, string(SECRET) + SECRET.encode())),
        (0, None, framed(3, avro(ODD, {"either": SECRET, "next": None}))),
        (0, None, framed(5, b"\x00" + classes["shop.Other"](text=SECRET).SerializeToString())),
        (0, None, framed(5, b"\x00\xff" + SECRET.encode())),
        (0, None, json.dumps({"a": SECRET, SECRET: 1, "n": number, "deep": [{"x": SECRET}]}).encode()),
        (0, None, b'{"a": "' + SECRET.encode() + b"}"),
        (0, None, json.dumps({"schema": CONNECT, "payload": envelope}).encode()),
        (0, None, b"{" + SECRET.encode() + b"}"),
        (0, None, SECRET.encode()),
        (0, None, framed(7, SECRET.encode())),
    ]
    avros = {1: json.dumps(V1), 2: USER, 3: json.dumps(ODD)}
    return messages, (*writers(avros), *writers({5: text}, "PROTOBUF"), *writers({7: "{}"}, "JSON"))


def test_no_secret_leaves_spark_unless_it_is_to_be_revealed(kafka_bootstrap: str, spark_remote: str) -> None:
    messages, more = secretive()
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    masked = Profile(changes=True, samples=50)
    observations = run(scan_of(kafka_bootstrap, topic, more=more, profile=masked), remote=spark_remote)
    text = repr(observations)
    assert SECRET not in text
    assert "4711" not in text
    assert len(only(Sample, observations)) == 5  # what can be decoded: two of Avro, one of Protobuf, two of JSON
    assert all(not observation.revealed for observation in only(Sample, observations))
    assert '"a": "Aa9aa9a-aaaaaa-9999 (19)"' in "".join(observation.text for observation in only(Sample, observations))
    open_ = Profile(samples=1, reveal=True)
    revealed = run(scan_of(kafka_bootstrap, topic, more=more, profile=open_), remote=spark_remote)
    samples = only(Sample, revealed)
    # One of each schema, and one of JSON without any: a rare one isn't crowded out by those before it.
    marks = [(observation.framing or "", observation.mark) for observation in samples]
    assert sorted(set(marks)) == [("", ""), ("id", "1"), ("id", "3"), ("id", "5")]
    assert all(observation.revealed for observation in samples)
    assert all(SECRET in observation.text for observation in samples)
    assert fields(revealed)["note"].maximum == SECRET
