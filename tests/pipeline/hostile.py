"""Bodies that somebody made to end whoever reads them, and what becomes of each: `problem` None is read as any other."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2

from registry.pipeline.avro_schemas import bare
from tests.pipeline.topics import string, zigzag

DEEP = 5_000
LEAST = -(2**63)


@dataclass(frozen=True)
class Hostile:
    """A body, the schema that it names (none: plain JSON), and the problem that it is expected to be."""

    kind: str | None
    schema: str
    body: bytes
    problem: str | None


def avro(schema: Any, body: bytes, problem: str | None) -> Hostile:
    return Hostile("AVRO", json.dumps(schema), body, problem)


def protobuf(body: bytes, problem: str | None) -> Hostile:
    return Hostile("PROTOBUF", descriptors(), b"\x00" + body, problem)


def json_schema(schema: Any, body: str, problem: str | None) -> Hostile:
    return Hostile("JSON", json.dumps(schema), body.encode("utf-8", "surrogatepass"), problem)


def plain(body: str | bytes, problem: str | None) -> Hostile:
    return Hostile(None, "", body if isinstance(body, bytes) else body.encode(), problem)


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def descriptors() -> str:
    """A message `N` with itself, a list of itself, a map of itself, text and a list of numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="n.proto", syntax="proto3")
    node = file.message_type.add(name="N")
    node.field.add(name="next", number=1, type=11, type_name=".N", label=1)
    node.field.add(name="all", number=2, type=11, type_name=".N", label=3)
    node.field.add(name="text", number=3, type=9, label=1)
    node.field.add(name="numbers", number=4, type=5, label=3)
    entry = node.nested_type.add(name="ByKeyEntry")
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=11, type_name=".N", label=1)
    entry.options.map_entry = True
    node.field.add(name="by_key", number=5, type=11, type_name=".N.ByKeyEntry", label=3)
    return base64.b64encode(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()


def varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def nested(levels: int, tag: int = 1) -> bytes:
    body = b""
    for _ in range(levels):
        body = varint(tag << 3 | 2) + varint(len(body)) + body
    return body


LIST = record(("value", "int"), ("next", ["null", "R"]))
TREE = record(("below", {"type": "array", "items": "R"}))
MAPS = record(("below", {"type": "map", "values": "R"}))
CHOICE = record(("any", ["null", "R", {"type": "array", "items": "R"}]))
EMPTY = record(("nothing", "null"), name="Empty")
WHOLE = {"type": "object", "properties": {"qty": {"type": "integer"}}}
ITSELF = {"type": "object", "properties": {"x": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}
SLOW = {"type": "object", "properties": {"s": {"pattern": "^(a|aa|aaa)+(?<=b)$"}}}

HOSTILE: dict[str, Hostile] = {
    # Avro: what nests as deep as the bytes say
    "a list of 5,000 links": avro(LIST, b"\x02\x02" * DEEP + b"\x02\x00", "not_read"),
    "a tree of 5,000 levels": avro(TREE, b"\x02" * DEEP + b"\x00" * (DEEP + 1), "not_read"),
    "a tree of 1,000,000 levels": avro(TREE, b"\x02" * 1_000_000 + b"\x00" * 1_000_001, "not_read"),
    "maps in 5,000 maps": avro(MAPS, b"\x02\x00" * DEEP + b"\x00" * (DEEP + 1), "not_read"),
    "5,000 blocks of negative counts": avro(TREE, b"\x01\x00" * DEEP, "not_read"),
    "a branch below zero, which is the last one": avro(CHOICE, b"\x01\x02" * DEEP, "malformed"),
    "a tree cut off": avro(TREE, b"\x02" * 40, "malformed"),
    "a list of 100 links": avro(LIST, b"\x02\x02" * 100 + b"\x02\x00", None),
    # Avro: few bytes that declare much
    "2,000,000 items": avro(
        record(("all", {"type": "array", "items": record(("is", "boolean"), name="I")}), ("next", ["null", "R"])),
        zigzag(2_000_000) + b"\x00" * 2_000_002,
        "not_read",
    ),
    "a trillion items": avro(record(("all", {"type": "array", "items": "R"})), zigzag(2**40), "malformed"),
    "blocks of the least count": avro(TREE, zigzag(LEAST) + zigzag(LEAST), "malformed"),
    "numbers without an end": avro(LIST, b"\xff" * 5_000, "malformed"),
    "a text as long as can be": avro(record(("a", "string"), ("b", ["null", "R"])), zigzag(2**63 - 1), "malformed"),
    "a text of a length below zero": avro(record(("a", "string"), ("b", ["null", "R"])), zigzag(-1), "malformed"),
    "a fixed that isn't there": avro(
        record(("a", {"type": "fixed", "name": "F", "size": 2**30}), ("b", ["null", "R"])), b"x", "malformed"
    ),
    "text that isn't UTF-8": avro(record(("a", "string"), ("b", ["null", "R"])), zigzag(1) + b"\xff\x00", "malformed"),
    # Avro: logical types out of their range, which the bytes below are right for
    "a date beyond the calendar": avro(
        record(("a", {"type": "int", "logicalType": "date"}), ("b", ["null", "R"])), zigzag(2**31 - 1) + b"\x00", None
    ),
    "a time beyond the calendar": avro(
        record(("a", {"type": "long", "logicalType": "timestamp-micros"}), ("b", ["null", "R"])),
        zigzag(2**63 - 1) + b"\x00",
        None,
    ),
    "a uuid that is none": avro(
        record(("a", {"type": "string", "logicalType": "uuid"}), ("b", ["null", "R"])),
        string("no uuid") + b"\x00",
        None,
    ),
    "a decimal of 10,000 bytes": avro(
        record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}), ("b", ["null", "R"])),
        zigzag(10_000) + b"\x7f" * 10_000 + b"\x00",
        None,
    ),
    # Protobuf
    "5,000 messages in each other": protobuf(nested(DEEP), "malformed"),
    "90 messages in each other": protobuf(nested(90), None),
    "5,000 groups of no known number": protobuf(b"\x4b" * DEEP + b"\x4c" * DEEP, "malformed"),
    "a group without an end": protobuf(b"\x4b" * 50, "malformed"),
    "1,200,000 empty messages": protobuf(b"\x12\x00" * 1_200_000, "not_read"),
    "a length beyond the end": protobuf(b"\x1a" + varint(2**31), "malformed"),
    "a field's number of zero": protobuf(b"\x00\x00", "malformed"),
    "text with half a character": protobuf(b"\x1a\x03\xed\xa0\x80", "malformed"),
    "numbers of no known field": protobuf(b"".join(varint(n << 3) + b"\x01" for n in range(100, 20_000)), None),
    # JSON without a schema
    "5,000 lists": plain("[" * DEEP + "]" * DEEP, "not_read"),
    "5,000 objects": plain('{"a":' * DEEP + "1" + "}" * DEEP, "not_read"),
    "100,000 lists that don't end": plain(b"[" * 100_000 + b"]", "not_read"),
    "a number beyond all": plain('{"a": 1e999999999, "b": -1e400}', None),
    "a whole number of 5,000 digits": plain('{"a": %s}' % ("9" * 5_000), None),
    "a whole number of 1,000,000 digits": plain('{"a": -%s}' % ("9" * 1_000_000), None),
    "names that stand twice": plain('{"a": 1, "a": "x", "a": null}', None),
    "half a character": plain(r'{"a": "\ud800", "b\udfff": "\u0000"}', None),
    "not a number": plain('{"a": NaN}', "malformed"),
    "bytes that aren't UTF-8": plain(b'{"a": "\xff"}', "malformed"),
    "50,000 names": plain(json.dumps({f"n{number}": number for number in range(50_000)}), None),
    # JSON that may be a change event or hold a schema of Connect
    "a change event of 900 lists": plain(
        '{"op": "c", "source": {"connector": "postgresql"}, "before": null, "after": {"a": %s}}'
        % ("[" * 800 + "]" * 800),
        None,
    ),
    "a change event of odd parts": plain('{"op": "u", "source": {"connector": "x", "db": 1, "snapshot": []}}', None),
    "a Connect schema of 800 levels": plain(
        '{"schema": %s, "payload": {"a": 1}}' % ('{"type": "array", "items": ' * 800 + "1" + "}" * 800), None
    ),
    "a Connect schema that is none": plain('{"schema": {"type": "struct", "fields": 7}, "payload": []}', None),
    # JSON Schema
    "a value of 800 levels by a schema in itself": json_schema(ITSELF, '{"x":' * 800 + "{}" + "}" * 800, None),
    "7.0 as a whole number": json_schema(WHOLE, '{"qty": 7.0}', None),
    "1e3 as a whole number": json_schema(WHOLE, '{"qty": 1e3}', None),
    "1e400 as a whole number": json_schema(WHOLE, '{"qty": 1e400}', None),
    "7.5 as a whole number": json_schema(WHOLE, '{"qty": 7.5}', "violates"),
    "half a character by a schema": json_schema(WHOLE, r'{"qty": "\ud800"}', "not_read"),
    "a value of 800 levels where another is allowed": json_schema(
        WHOLE, '{"qty": %s}' % ("[" * 800 + "]" * 800), "not_read"
    ),
    "a text that takes a pattern for ever": json_schema(SLOW, '{"s": "%s!"}' % ("a" * 50_000), "not_read"),
}


def writer_text(hostile: Hostile) -> str:
    """The schema as the driver hands it to workers."""
    return json.dumps(bare(hostile.schema)) if hostile.kind == "AVRO" else hostile.schema


#: the same message as in `descriptors`
PROTO = """syntax = "proto3";
message N {
  N next = 1;
  repeated N all = 2;
  string text = 3;
  repeated int32 numbers = 4;
  map<string, N> by_key = 5;
}
"""
