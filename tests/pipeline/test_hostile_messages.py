"""One message never ends a scan: real topics, a real broker and a real Spark Connect server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from registry.observations import (
    FieldProfile,
    Observation,
    Profile,
    SchemaNotUsed,
    TopicLost,
    TopicTotals,
    UndecodableMessages,
    WriterSchema,
)
from registry.pipeline import run
from registry.pipeline.workers import avro_extent, reading
from tests.pipeline.hostile import DEEP, HOSTILE, LIST, TREE
from tests.pipeline.topics import USER, Headers, Message, framed, make_topic, scan_of, string, writers

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]
T = TypeVar("T")
LARGE = {"max.message.bytes": 20_000_000}
FINE = 1
#: headers that name no schema, whatever they hold
HEADERS: list[Headers] = [
    [("contentType", b"\xff\xfe\x00"), ("__value_schema_id", b"\x01" + b"\xff" * 3)],
    [("contentType", None), ("__value_schema_id", None), ("__key_schema_id", b"")],
    [("", b""), ("\x00\n", b"\x00"), ("contentType", b"application/" + b"a" * 100_000 + b".v1+avro")],
    [("__value_schema_id", b"\x01" * 100_000), ("__debezium.newkey", b"\xff")],
]


def only(kind: type[T], seen: Iterable[Observation]) -> list[T]:
    return [each for each in seen if isinstance(each, kind)]


def problems(seen: Iterable[Observation]) -> dict[tuple[str, str, int], str]:
    return {
        (each.topic, each.side, offset): each.problem
        for each in only(UndecodableMessages, seen)
        for offset in each.offsets
    }


@pytest.mark.requirement("CARD-3", "SCS-3", "DEB-5")
def test_hostile_messages_are_findings_and_all_others_are_read(kafka_bootstrap: str, spark_remote: str) -> None:
    known: list[WriterSchema] = list(writers({FINE: USER}))
    messages: list[Message] = []
    expected: dict[int, str] = {}
    for number, case in enumerate(HOSTILE.values(), start=10):
        if case.problem:
            expected[len(messages)] = case.problem
        body = framed(number, case.body) if case.kind else case.body
        messages.append((0, b"\x00\x00\x00\x00\x07\xff" if number % 2 else b"\xff\xfe", body))
        if case.kind:
            known.append(WriterSchema("id", str(number), case.kind, case.schema))
    messages += [(0, None, framed(FINE, string("Ada")), headers) for headers in HEADERS]
    topic = make_topic(kafka_bootstrap, messages, partitions=1, **LARGE)
    other = make_topic(kafka_bootstrap, [(0, None, framed(FINE, string("Eve")))] * 5, partitions=1)
    profile = Profile(samples=3, changes=True)
    seen = run(scan_of(kafka_bootstrap, topic, other, more=tuple(known), profile=profile), remote=spark_remote)
    assert only(TopicLost, seen) == []
    assert {each.topic: each.messages for each in only(TopicTotals, seen)} == {topic: len(messages), other: 5}
    named = {FINE, *range(10, 10 + len(HOSTILE))}
    found = {
        (offset, problem)
        for (where, side, offset), problem in problems(seen).items()
        if side == "value" and where == topic
    }
    # Of JSON without a schema the first five of a problem have their offsets; the others are counted.
    assert {offset for offset, _ in found} <= expected.keys()
    assert {(offset, problem) for offset, problem in expected.items() if messages[offset][2] is not None} >= found
    counted: dict[str, int] = {}
    for each in only(UndecodableMessages, seen):
        counted[each.problem] = counted.get(each.problem, 0) + each.span.messages
    assert counted == {problem: list(expected.values()).count(problem) for problem in set(expected.values())}
    assert {each.path for each in only(FieldProfile, seen) if each.topic == other} == {"name"}
    assert {int(each.mark) for each in only(FieldProfile, seen) if each.framing == "id"} <= named
    assert [each.reason for each in only(SchemaNotUsed, seen)] == []


def test_a_message_that_ends_its_process_is_found_and_all_others_are_decoded(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: Any
) -> None:
    """Without the check of depth, as a decoder does for which there is none; the stack is as small as a thread's may be."""
    monkeypatch.setattr(avro_extent, "MOST_DEPTH", 10**9)
    monkeypatch.setattr(reading, "STACKS", (256 * 1024,))
    deep = b"\x02" * DEEP + b"\x00" * (DEEP + 1)
    shallow = b"\x02\x00\x00"
    key = framed(3, b"\x02" + string("k") + b"\x00")
    messages: list[Message] = [(number % 2, key, framed(2, shallow)) for number in range(40)]
    messages[14] = (0, framed(2, deep), framed(2, shallow))
    messages[31] = (1, key, framed(2, deep))
    topic = make_topic(kafka_bootstrap, messages)
    other = make_topic(kafka_bootstrap, [(0, None, framed(4, b"\x02\x02\x02\x00"))] * 5, partitions=1)
    schemas = {2: json.dumps(TREE), 3: '{"type": "array", "items": "string"}', 4: json.dumps(LIST)}
    seen = run(scan_of(kafka_bootstrap, topic, other, schemas=schemas), remote=spark_remote)
    assert problems(seen) == {(topic, "key", 7): "not_read", (topic, "value", 15): "not_read"}
    assert {each.topic: each.messages for each in only(TopicTotals, seen)} == {topic: 40, other: 5}
    roots = {
        (each.topic, each.side, each.path): each.messages
        for each in only(FieldProfile, seen)
        if (each.side, each.path) in {("value", "below"), ("value", "value")}
    }
    assert roots == {(topic, "value", "below"): 39, (other, "value", "value"): 5}
