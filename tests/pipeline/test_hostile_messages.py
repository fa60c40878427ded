"""One message never ends a scan: real topics, a real broker and a real Spark Connect server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from registry.observations import (
    Bounds,
    FieldProfile,
    Observation,
    PartitionRead,
    Profile,
    SchemaNotUsed,
    TopicLost,
    TopicTotals,
    UndecodableMessages,
    WriterSchema,
)
from registry.pipeline import run
from registry.pipeline.too_large import REASON
from registry.pipeline.workers import message_reader, schema_shapes
from tests.pipeline.hostile import DEEP, HOSTILE, LIST, TREE
from tests.pipeline.topics import USER, Headers, Message, fill, framed, make_topic, scan_of, string, writers, zigzag

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]
T = TypeVar("T")
BOMB = 400_000_000
PATIENT = Bounds(deadline_seconds=1_200)  # each try fills Spark's memory
LARGE = {"max.message.bytes": 20_000_000}
FINE = 1
#: headers that name no schema, whatever they hold
HEADERS: list[Headers] = [
    [("contentType", b"\xff\xfe\x00"), ("__value_schema_id", b"\x01" + b"\xff" * 3)],
    [("contentType", None), ("__value_schema_id", None), ("__key_schema_id", b"")],
    [("", b""), ("\x00\n", b"\x00"), ("contentType", b"application/" + b"a" * 100_000 + b".v1+avro")],
    [("__value_schema_id", b"\x01" * 100_000), ("__debezium.newkey", b"\xff")],
]


def only(kind: type[T], observations: Iterable[Observation]) -> list[T]:
    return [observation for observation in observations if isinstance(observation, kind)]


def problems(observations: Iterable[Observation]) -> dict[tuple[str, str, int], str]:
    return {
        (observation.topic, observation.side, offset): observation.problem
        for observation in only(UndecodableMessages, observations)
        for offset in observation.offsets
    }


@pytest.mark.requirement("CARD-3", "SCS-3", "DEB-5")
def test_hostile_messages_are_findings_and_all_others_are_read(kafka_bootstrap: str, spark_remote: str) -> None:
    schemas: list[WriterSchema] = list(writers({FINE: USER}))
    messages: list[Message] = []
    expected: dict[int, str] = {}
    for number, case in enumerate(HOSTILE.values(), start=10):
        if case.problem:
            expected[len(messages)] = case.problem
        body = framed(number, case.body) if case.kind else case.body
        messages.append((0, b"\x00\x00\x00\x00\x07\xff" if number % 2 else b"\xff\xfe", body))
        if case.kind:
            schemas.append(WriterSchema("id", str(number), case.kind, case.schema))
    messages += [(0, None, framed(FINE, string("Ada")), headers) for headers in HEADERS]
    topic = make_topic(kafka_bootstrap, messages, partitions=1, **LARGE)
    other = make_topic(kafka_bootstrap, [(0, None, framed(FINE, string("Eve")))] * 5, partitions=1)
    profile = Profile(samples=3, changes=True)
    observations = run(
        scan_of(kafka_bootstrap, topic, other, more=tuple(schemas), profile=profile), remote=spark_remote
    )
    assert only(TopicLost, observations) == []
    assert {observation.topic: observation.messages for observation in only(TopicTotals, observations)} == {
        topic: len(messages),
        other: 5,
    }
    named = {FINE, *range(10, 10 + len(HOSTILE))}
    undecodable = {
        (offset, problem)
        for (where, side, offset), problem in problems(observations).items()
        if side == "value" and where == topic
    }
    # Of JSON without a schema the first five of a problem have their offsets; the others are counted.
    assert {offset for offset, _ in undecodable} <= expected.keys()
    assert {(offset, problem) for offset, problem in expected.items() if messages[offset][2] is not None} >= undecodable
    counted: dict[str, int] = {}
    for observation in only(UndecodableMessages, observations):
        counted[observation.problem] = counted.get(observation.problem, 0) + observation.span.messages
    assert counted == {problem: list(expected.values()).count(problem) for problem in set(expected.values())}
    assert {observation.path for observation in only(FieldProfile, observations) if observation.topic == other} == {
        "name"
    }
    assert {
        int(observation.mark) for observation in only(FieldProfile, observations) if observation.framing == "id"
    } <= named
    assert [observation.reason for observation in only(SchemaNotUsed, observations)] == []


def test_a_message_that_ends_its_process_is_found_and_all_others_are_decoded(
    kafka_bootstrap: str, spark_remote: str, monkeypatch: Any
) -> None:
    """Without the check of depth, as a decoder does for which there is none; the stack is as small as a thread's may be."""
    monkeypatch.setattr(schema_shapes, "MOST_DEPTH", 10**9)
    monkeypatch.setattr(message_reader, "STACKS", (256 * 1024,))
    deep = b"\x02" * DEEP + b"\x00" * (DEEP + 1)
    shallow = b"\x02\x00\x00"
    key = framed(3, b"\x02" + string("k") + b"\x00")
    messages: list[Message] = [(number % 2, key, framed(2, shallow)) for number in range(40)]
    messages[14] = (0, framed(2, deep), framed(2, shallow))
    messages[31] = (1, key, framed(2, deep))
    topic = make_topic(kafka_bootstrap, messages)
    other = make_topic(kafka_bootstrap, [(0, None, framed(4, b"\x02\x02\x02\x00"))] * 5, partitions=1)
    schemas = {2: json.dumps(TREE), 3: '{"type": "array", "items": "string"}', 4: json.dumps(LIST)}
    observations = run(scan_of(kafka_bootstrap, topic, other, schemas=schemas), remote=spark_remote)
    assert problems(observations) == {(topic, "key", 7): "not_read", (topic, "value", 15): "not_read"}
    assert {observation.topic: observation.messages for observation in only(TopicTotals, observations)} == {
        topic: 40,
        other: 5,
    }
    roots = {
        (observation.topic, observation.side, observation.path): observation.messages
        for observation in only(FieldProfile, observations)
        if (observation.side, observation.path) in {("value", "below"), ("value", "value")}
    }
    assert roots == {(topic, "value", "below"): 39, (other, "value", "value"): 5}


def test_a_message_that_is_larger_than_sparks_memory_is_skipped_and_all_others_are_read(
    kafka_bootstrap: str, spark_remote: str
) -> None:
    """A few kilobytes in the broker, which limits the compressed size only."""
    good = framed(FINE, string("Ada"))
    topic = make_topic(kafka_bootstrap, [(0, None, good)] * 5, partitions=1)
    bomb = framed(FINE, zigzag(BOMB) + bytes(BOMB))
    fill(kafka_bootstrap, topic, [(0, None, bomb)], **{"compression.type": "zstd", "message.max.bytes": 2 * BOMB})
    fill(kafka_bootstrap, topic, [(0, None, good)] * 3)
    other = make_topic(kafka_bootstrap, [(0, None, good)] * 5, partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, other, bounds=PATIENT), remote=spark_remote)
    (unread,) = only(UndecodableMessages, observations)
    assert (unread.topic, unread.problem, unread.offsets, unread.reasons) == (topic, "not_read", (5,), (REASON,))
    assert {observation.topic: observation.messages for observation in only(TopicTotals, observations)} == {
        topic: 8,
        other: 5,
    }
    assert {part.topic: part.end for part in only(PartitionRead, observations)} == {topic: 9, other: 5}
