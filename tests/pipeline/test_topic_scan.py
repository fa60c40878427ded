"""Scans of real topics, on a real broker, through a real Spark Connect server.

The events of Debezium's real connector were recorded, and are sent through the broker in its three forms.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from registry.errors import BrokerUnavailable
from registry.observations import (
    Bounds,
    ChangeEvents,
    ConnectSchema,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    KafkaConnection,
    NullMessages,
    Observation,
    OtherGroups,
    PartitionRange,
    PartitionRead,
    Profile,
    ScanTotals,
    SchemaNotUsed,
    TopicLost,
    TopicRead,
    TopicScan,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
    WriterSchema,
)
from registry.pipeline import run
from tests.debezium.events import recorded, recorded_schemas
from tests.pipeline.topics import USER, Message, fill, framed, make_topic, scan_of, string, zigzag

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]
T = TypeVar("T")
HOUR_ZERO = 1_795_251_600_000  # 2026-11-21 09:00 UTC


def only(kind: type[T], observations: Iterable[Observation]) -> list[T]:
    return [observation for observation in observations if isinstance(observation, kind)]


def places(located: Iterable[Any], *names: str) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """Names' values → messages, first and last offset."""
    return {
        tuple(getattr(observation, name) for name in names): (
            observation.span.messages,
            observation.span.first_offset,
            observation.span.last_offset,
        )
        for observation in located
    }


@pytest.mark.requirement("CARD-3", "DEB-5")
def test_everything_that_can_be_in_a_topic_is_distinguished(kafka_bootstrap: str, spark_remote: str) -> None:
    good, key = framed(7, string("Ada")), framed(9, zigzag(5))
    messages: list[Message] = [
        (0, key, good),
        (0, key, good),
        (0, None, framed(8, b"\x02")),
        (0, b"plain", None),
        (0, b"plain", framed(7, zigzag(50) + b"short")),
        (0, b"", b'{"a": 1}'),
        (1, b"\x00\x01", b"[1]"),
        (1, b"\x00\x00\x00\x00", b"<a/>"),
        (1, b"\xff\xfe", b"Obj\x01rest"),
        (1, b"k", b"hello"),
        (1, b"k", b""),
        (1, b"k", b"\x1f\x8b\x08"),
        (1, framed(9, b""), b"\x00\x00\x00\x07"),
    ]
    topic = make_topic(kafka_bootstrap, messages)
    observations = run(scan_of(kafka_bootstrap, topic, schemas={7: USER, 9: '"int"'}), remote=spark_remote)
    assert only(PartitionRead, observations) == [
        PartitionRead(topic, 0, 0, 6, 0, 6, 6),
        PartitionRead(topic, 1, 0, 7, 0, 7, 7),
    ]
    assert places(only(FramedMessages, observations), "side", "partition", "schema_id") == {
        ("key", 0, 9): (2, 0, 1),
        ("key", 1, 9): (1, 6, 6),
        ("value", 0, 7): (3, 0, 4),
        ("value", 0, 8): (1, 2, 2),
    }
    assert places(only(UndecodableMessages, observations), "side", "partition", "mark") == {
        ("key", 1, "9"): (1, 6, 6),
        ("value", 0, "7"): (1, 4, 4),
    }
    assert places(only(NullMessages, observations), "side", "partition") == {
        ("key", 0): (1, 2, 2),
        ("value", 0): (1, 3, 3),
    }
    assert places(only(UnframedMessages, observations), "side", "partition", "hint") == {
        ("key", 0, "text"): (2, 3, 4),
        ("key", 0, "empty"): (1, 5, 5),
        ("key", 1, "binary"): (1, 2, 2),
        ("key", 1, "cut_frame"): (2, 0, 1),
        ("key", 1, "text"): (3, 3, 5),
        ("value", 0, "json_object"): (1, 5, 5),
        ("value", 1, "json_array"): (1, 0, 0),
        ("value", 1, "xml"): (1, 1, 1),
        ("value", 1, "avro_file"): (1, 2, 2),
        ("value", 1, "text"): (1, 3, 3),
        ("value", 1, "empty"): (1, 4, 4),
        ("value", 1, "gzip"): (1, 5, 5),
        ("value", 1, "cut_frame"): (1, 6, 6),
    }
    totals = observations[-1]
    assert isinstance(observations[-2], TopicTotals)
    size = sum(len(key or b"") + len(value or b"") for _, key, value in messages)
    assert observations[-2] == TopicTotals(topic, 13, size, None)
    assert isinstance(totals, ScanTotals)
    assert (totals.topics, totals.messages, totals.bytes, totals.bound_reached) == (1, 13, size, None)
    first = only(FramedMessages, observations)[0].span
    assert 1_700_000_000_000 < first.first_time <= first.last_time


LOOKS = (
    (b'{"a": 1}', "json_object"),
    (b"{not json}", "json_object"),
    (b'{"a": 1}\n', "json_object"),
    (b' \r\n{ "a": 1 }', "json_object"),
    (b'{"a": 1, "b": ', "json_object"),
    (b'{\n  "a', "json_object"),
    (b"{", "json_object"),
    (b"{0} of {1} items", "text"),
    (b"[1]", "json_array"),
    (b"[1, 2]\n", "json_array"),
    (b"[-1.5e3, 2", "json_array"),
    (b'[{"a": 1}, {"a"', "json_array"),
    (b"[null, ", "json_array"),
    (b"[INFO] started", "text"),
    (b"[2026-11-26 10:00:00] started", "text"),
    (b"[42] started", "text"),
    (b" hello", "text"),
    (b"\x03\x00" + bytes(range(16)) + b"body", "glue"),
    (b"\x03\x05" + bytes(range(16)), "glue"),
    (b"\x03\x07" + bytes(range(16)), "binary"),
    (b"\xc3\x01" + bytes(8) + b"body", "single_object"),
    (b"\xc3\x01" + bytes(7), "binary"),
)


@pytest.mark.requirement("CARD-3")
def test_what_unframed_bytes_look_like(kafka_bootstrap: str, spark_remote: str) -> None:
    """Each body is in a topic of its own, so that a wrong hint names its body."""
    topics = [make_topic(kafka_bootstrap, [(0, None, body)], partitions=1) for body, _ in LOOKS]
    header = ("content-type", b"avro/binary+" + b"0f" * 16)
    azure = make_topic(kafka_bootstrap, [(0, None, b"\x00\x00\x00\x00\x07", [header])], partitions=1)
    observations = run(scan_of(kafka_bootstrap, *topics, azure), remote=spark_remote)
    hints = {item.topic: item.hint for item in only(UnframedMessages, observations) if item.side == "value"}
    assert hints.pop(azure) == "azure"
    assert [(body, hints[topic]) for topic, (body, _) in zip(topics, LOOKS, strict=True)] == list(LOOKS)


# What a few bytes can declare: each has to be an undecodable message, and nothing worse.
POISON = {
    "a string of 1.5 GB": ("string", zigzag(1_500_000_000)),
    "bytes of 1.5 GB": ("bytes", zigzag(1_500_000_000) + b"x"),
    "a string of negative length": ("string", zigzag(-1)),
    "a list of a trillion": ({"type": "array", "items": "string"}, zigzag(2**40) + string("hi")),
    "a map of a trillion": ({"type": "map", "values": "null"}, zigzag(2**40) + zigzag(-1)),
    "a list that goes backwards": ({"type": "array", "items": "string"}, zigzag(2**19) + zigzag(-1)),
    "a branch that isn't there": (["null", "int"], zigzag(7)),
    "a symbol that isn't there": ({"type": "enum", "name": "E", "symbols": ["A"]}, zigzag(5)),
    "nothing at all": ("string", b""),
}


def test_poison_is_counted_and_the_server_lives(kafka_bootstrap: str, spark_remote: str) -> None:
    schemas = {number: json.dumps(schema) for number, (schema, _) in enumerate(POISON.values(), start=1)}
    bodies = [(0, None, framed(number, body)) for number, (_, body) in enumerate(POISON.values(), start=1)]
    topic = make_topic(kafka_bootstrap, [*bodies, (0, None, framed(1, string("fine")))])
    for _ in range(2):
        observations = run(scan_of(kafka_bootstrap, topic, schemas=schemas), remote=spark_remote)
        counts = {
            int(observation.mark): observation.span.messages for observation in only(UndecodableMessages, observations)
        }
        assert counts == dict.fromkeys(schemas, 1)
        assert {observation.schema_id: observation.span.messages for observation in only(FramedMessages, observations)}[
            1
        ] == 2


def test_a_message_of_50_mb_is_counted(kafka_bootstrap: str, spark_remote: str) -> None:
    large = 50 * 1024 * 1024
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, string("x")))], 1, **{"max.message.bytes": large * 2})
    huge = (0, None, framed(1, string("y" * large)))
    plain = (0, None, b'{"a": "%s"}' % (b"z" * (5 * 1024 * 1024)))
    fill(kafka_bootstrap, topic, [huge, (0, None, b'{"a": 1}'), plain], **{"message.max.bytes": large * 2})
    observations = run(scan_of(kafka_bootstrap, topic, schemas={1: USER}), remote=spark_remote)
    (framed_,) = only(FramedMessages, observations)
    assert framed_.span.messages == 2
    assert framed_.span.bytes > large
    avro, json = sorted(only(UndecodableMessages, observations), key=lambda unread: unread.offsets)
    assert (avro.problem, avro.mark, avro.span.messages, avro.span.bytes > large) == ("not_read", "1", 1, True)
    assert (json.problem, json.framing, json.span.messages) == ("not_read", None, 1)
    reason = "it is larger than the bodies that a scan decodes"
    assert avro.by_reason == json.by_reason == {reason: 1}
    sizes = {unread.offsets: unread.reasons for unread in (avro, json)}
    assert sizes == {(1,): (f"{reason}: 52,428,809 bytes",), (3,): (f"{reason}: 5,242,889 bytes",)}
    assert {observation.path: observation.present for observation in only(FieldProfile, observations)} == {
        "a": 1,
        "name": 1,
    }


# Schemas that are Avro, or nearly, and how far Spark can decode with them: id → (text, decodes?)
ODD_SCHEMAS = {
    1: (USER, True),
    2: ('{"type":"record","name":"List","fields":[{"name":"next","type":["null","List"]}]}', True),
    3: ('{"type":"array","items":"null"}', False),
    4: ("this is no schema", False),
    5: ('{"type":"record","name":"R","fields":[{"name":"x","type":"Missing"}]}', False),
    6: ('["null","string",{"type":"map","values":"double"}]', True),
    7: ('{"type":"record","name":"a.b.C","fields":[{"name":"when","type":{"type":"int","logicalType":"date"}}]}', True),
}
ODD_BODIES = {
    1: string("x"),
    2: b"\x00",
    3: b"\x00",
    4: b"x",
    5: b"x",
    6: zigzag(1) + string("y"),
    7: zigzag(2**31 - 1),
}


def test_schemas_that_spark_cannot_use_are_named_and_hide_no_other(kafka_bootstrap: str, spark_remote: str) -> None:
    topic = make_topic(kafka_bootstrap, [(0, None, framed(number, body)) for number, body in ODD_BODIES.items()])
    schemas = {number: text for number, (text, _) in ODD_SCHEMAS.items()}
    observations = run(scan_of(kafka_bootstrap, topic, schemas=schemas), remote=spark_remote)
    assert {int(observation.mark) for observation in only(SchemaNotUsed, observations)} == {
        n for n, (_, ok) in ODD_SCHEMAS.items() if not ok
    }
    assert only(UndecodableMessages, observations) == []
    assert {observation.schema_id for observation in only(FramedMessages, observations)} == set(ODD_BODIES)


def test_aborted_messages_are_not_seen(kafka_bootstrap: str, spark_remote: str) -> None:
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, string("before")))], partitions=1)
    producer = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for commit, schema_id in ((False, 666), (True, 1)):
        producer.begin_transaction()
        producer.produce(topic, framed(schema_id, string("x")))
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    observations = run(scan_of(kafka_bootstrap, topic, schemas={1: USER}), remote=spark_remote)
    assert {observation.schema_id for observation in only(FramedMessages, observations)} == {1}
    (read,) = only(PartitionRead, observations)
    assert (read.end, read.messages) == (5, 2)  # two messages, an aborted one, and two marks of the transactions


def test_a_bounded_scan_says_so_and_the_next_one_goes_on_where_it_ended(
    kafka_bootstrap: str, spark_remote: str
) -> None:
    messages = [(number % 3, None, framed(number % 2 + 1, string(str(number)))) for number in range(900)]
    topic = make_topic(kafka_bootstrap, messages, partitions=3)
    spec = scan_of(kafka_bootstrap, topic, bounds=Bounds(max_messages=400))
    counted = 0
    for expected in (("messages", 400), ("messages", 400), (None, 100)):
        observations = run(spec, remote=spark_remote)
        totals = only(TopicTotals, observations)[0]
        assert (totals.bound_reached, totals.messages) == expected
        counted += sum(observation.span.messages for observation in only(FramedMessages, observations))
        ends = {read.partition: read.end for read in only(PartitionRead, observations)}
        (read,) = spec.topics
        onward = tuple(replace(part, start=ends[part.partition]) for part in read.ranges)
        spec = replace(spec, topics=(replace(read, ranges=onward),))
    assert counted == 900


@pytest.mark.requirement("CARD-3")
def test_messages_are_counted_by_hour_over_all_slices(kafka_bootstrap: str, spark_remote: str) -> None:
    topic = make_topic(kafka_bootstrap, [], partitions=1)
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    # 30 hours: of the first a message each, of the last 1 and 40; beside them another id, of one hour
    times = [*(hour for hour in range(29)), 29, *([28] * 40)]
    for hour in times:
        producer.produce(topic, framed(1, string("x")), partition=0, timestamp=HOUR_ZERO + hour * 3_600_000 + 7)
    producer.produce(topic, framed(2, string("y")), partition=0, timestamp=HOUR_ZERO)
    producer.flush(30)
    observations = {
        observation.mark: observation
        for observation in only(
            FramedMessages, run(scan_of(kafka_bootstrap, topic, bounds=Bounds(first_slice=20)), remote=spark_remote)
        )
    }
    zero = HOUR_ZERO // 3_600_000
    assert observations["1"].hours == {str(zero + hour): 41 if hour == 28 else 1 for hour in range(6, 30)}
    assert observations["1"].span.messages == 70, "hours before the newest 24 are in the span alone"
    assert observations["2"].hours == {str(zero): 1}


def test_the_bound_of_bytes_ends_a_scan(kafka_bootstrap: str, spark_remote: str) -> None:
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, bytes(1_000))) for _ in range(200)], partitions=1)
    observations = run(
        scan_of(kafka_bootstrap, topic, bounds=Bounds(max_bytes=50_000, first_slice=10)), remote=spark_remote
    )
    totals = only(TopicTotals, observations)[0]
    assert totals.bound_reached == "bytes"
    assert 50_000 <= totals.bytes <= 60_000


def test_bogus_ids_are_folded_and_known_ones_kept(kafka_bootstrap: str, spark_remote: str) -> None:
    bogus: list[Message] = [(0, None, framed(10_000 + number, b"x")) for number in range(3_000)]
    topic = make_topic(kafka_bootstrap, [*bogus, (0, None, framed(1, string("x")))], partitions=1)
    observations = run(
        scan_of(kafka_bootstrap, topic, schemas={1: USER}, bounds=Bounds(max_groups=50)), remote=spark_remote
    )
    framed_ids = {observation.schema_id for observation in only(FramedMessages, observations)}
    assert 1 in framed_ids
    assert len(framed_ids) <= 50
    (other,) = only(OtherGroups, observations)
    assert (other.groups, other.span.messages) == (3_001 - len(framed_ids), 3_001 - len(framed_ids))
    totals = only(TopicTotals, observations)[0]
    assert (totals.messages, totals.bound_reached) == (3_001, "groups")


def test_progress_counts_tasks_and_names_the_phase(kafka_bootstrap: str, spark_remote: str) -> None:
    topic = make_topic(kafka_bootstrap, [(0, None, framed(1, b"x"))])
    reported: list[tuple[int, int, str]] = []
    run(scan_of(kafka_bootstrap, topic), remote=spark_remote, on_progress=lambda *step: reported.append(step))
    assert reported[-1][2] == f"reading messages 1 to 1 of 1 from {topic}"
    assert all(0 <= done <= total for done, total, _ in reported)


def test_a_broker_that_does_not_answer_is_named(spark_remote: str) -> None:
    spec = TopicScan(KafkaConnection("127.0.0.1:9"), (TopicRead("orders", (PartitionRange(0, 0, 5, 0, 5),)),))
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:9 didn't answer"):
        run(spec, remote=spark_remote)


def test_a_topic_that_is_gone_is_lost_and_the_others_are_read(kafka_bootstrap: str, spark_remote: str) -> None:
    topics = [make_topic(kafka_bootstrap, [(0, None, framed(1, b"x"))] * (number + 1)) for number in range(5)]
    spec = scan_of(kafka_bootstrap, *topics)
    gone = {topics[1], "never-made"}
    missing = TopicRead("never-made", (PartitionRange(0, 0, 5, 0, 5),))
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.delete_topics([topics[1]])[topics[1]].result(60)
    observations = run(replace(spec, topics=(*spec.topics, missing)), remote=spark_remote)
    assert {observation.topic for observation in only(TopicLost, observations)} == gone
    assert all("deleted" in observation.reason for observation in only(TopicLost, observations))
    assert {observation.topic: observation.messages for observation in only(TopicTotals, observations)} == {
        topics[0]: 1,
        topics[2]: 3,
        topics[3]: 4,
        topics[4]: 5,
    }
    assert {observation.topic for observation in only(PartitionRead, observations)} == set(topics) - gone


GUID = uuid.UUID("0190b6d5-5f83-7d6e-a1b2-c3d4e5f60718")
NAMED = WriterSchema("guid", str(GUID), "AVRO", USER)
SPRING = WriterSchema("content_type", "vnd.user.v1", "AVRO", USER)


@pytest.mark.requirement("SCS-3", "DEB-5")
def test_marks_in_headers_win_over_the_first_bytes(kafka_bootstrap: str, spark_remote: str) -> None:
    guid, ada, odd = b"\x01" + GUID.bytes, string("Ada"), framed(7, string("x"))
    messages: list[Message] = [
        (0, None, ada, [("__value_schema_id", guid)]),
        (0, None, odd, [("__value_schema_id", guid)]),  # its first bytes look like an id, and aren't
        (0, None, odd, [("__value_schema_id", b"\x01short")]),  # no GUID: the first bytes count
        (0, ada, None, [("__key_schema_id", guid), ("__value_schema_id", guid)]),
        (0, None, ada, [("contentType", "application/vnd.user.v1+avro")]),
        (0, None, ada, [("other", b"1"), ("contentType", '"application/vnd.user.v1+avro"')]),
        (0, None, ada, [("content-type", "application/vnd.user.v1+avro;charset=UTF-8")]),
        (0, None, b"{}", [("contentType", "application/json")]),
        (0, None, b"{}", [("contentType", b"\xff\xfe")]),
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, schemas={7: USER}, more=(NAMED, SPRING)), remote=spark_remote)
    assert places(only(FramedMessages, observations), "side", "framing", "mark") == {
        ("value", "guid", str(GUID)): (2, 0, 1),
        ("value", "id", "7"): (1, 2, 2),
        ("key", "guid", str(GUID)): (1, 3, 3),
        ("value", "content_type", "vnd.user.v1"): (3, 4, 6),
    }
    assert places(only(FramedTwice, observations), "side", "guid", "schema_id") == {("value", str(GUID), 7): (1, 1, 1)}
    assert places(only(UnframedMessages, observations), "side", "hint") == {("value", "json_object"): (2, 7, 8)}
    assert places(only(NullMessages, observations), "side") == {("key",): (8, 0, 8), ("value",): (1, 3, 3)}
    assert places(only(UndecodableMessages, observations), "framing", "mark") == {("guid", str(GUID)): (1, 1, 1)}


def test_a_guid_may_precede_the_body(kafka_bootstrap: str, spark_remote: str) -> None:
    guid, ada, foreign = b"\x01" + GUID.bytes, string("Ada"), uuid.UUID(int=7)
    messages: list[Message] = [
        (0, guid + ada, guid + ada),
        (0, None, guid + b"\x7f"),
        (0, None, guid + ada, [("__value_schema_id", b"\x01short")]),
        (0, None, b"\x01" + foreign.bytes + ada),
        (0, None, guid[:16]),  # a byte short of a GUID
        (0, None, guid + ada, [("__value_schema_id", guid)]),  # the header wins: all of it is the body
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=1)
    observations = run(scan_of(kafka_bootstrap, topic, more=(NAMED,)), remote=spark_remote)
    assert places(only(FramedMessages, observations), "side", "framing", "mark") == {
        ("key", "guid", str(GUID)): (1, 0, 0),
        ("value", "guid", str(GUID)): (4, 0, 5),
        ("value", "guid", str(foreign)): (1, 3, 3),
    }
    assert places(only(UnframedMessages, observations), "side", "hint") == {("value", "binary"): (1, 4, 4)}
    assert {item.offsets for item in only(UndecodableMessages, observations)} == {(1, 5)}


SCENARIOS = ("inventory", "key_change", "truncated", "messages", "identities", "types")
# op, schema, table → events, with a row before, with newkey, with oldkey, unavailable
Counts = dict[tuple[str, str, str], tuple[int, ...]]


def counts_of(events: list[ChangeEvents]) -> Counts:
    summed: dict[tuple[str, str, str], list[int]] = {}
    for observation in events:
        row = (
            observation.span.messages,
            observation.with_before,
            observation.newkey,
            observation.oldkey,
            observation.unavailable,
        )
        before = summed.setdefault((observation.op, observation.schema, observation.table), [0] * 5)
        summed[observation.op, observation.schema, observation.table] = [
            one + other for one, other in zip(before, row, strict=True)
        ]
    return {key: tuple(row) for key, row in summed.items()}


def expected_counts() -> Counts:
    """Counted by hand from the events in JSON, which need no decoder but Python's."""
    counted: dict[tuple[str, str, str], Counter[int]] = {}
    for scenario in SCENARIOS:
        for event in recorded(scenario, "json"):
            value: Any = json.loads(event.value) if event.value is not None else None
            if value is None or "op" not in value:
                continue
            source = value["source"]
            table = "" if value["op"] == "m" else source["table"]
            marks = (
                1,
                value["before"] is not None if "before" in value else 0,
                event.header("__debezium.newkey") is not None,
                event.header("__debezium.oldkey") is not None,
                "__debezium_unavailable_value" in json.dumps([value.get("before"), value.get("after")]),
            )
            at = counted.setdefault((value["op"], source["schema"], table), Counter())
            at.update({index: int(mark) for index, mark in enumerate(marks)})
    return {key: tuple(row[index] for index in range(5)) for key, row in counted.items()}


@pytest.mark.requirement("DEB-2", "DEB-3")
@pytest.mark.parametrize("converter", ["json", "json_schema", "avro"])
def test_changes_are_counted_in_every_form(kafka_bootstrap: str, spark_remote: str, converter: str) -> None:
    messages: list[Message] = [
        (event.partition, event.key, event.value, list(event.headers))
        for scenario in SCENARIOS
        for event in recorded(scenario, converter)
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=3)
    writers = tuple(
        WriterSchema("id", str(number), "AVRO", schema["schema"]) for number, schema in recorded_schemas().items()
    )
    spec = scan_of(kafka_bootstrap, topic, more=writers if converter == "avro" else (), profile=Profile(changes=True))
    observations = run(spec, remote=spark_remote)
    assert only(UndecodableMessages, observations) == []
    assert only(SchemaNotUsed, observations) == []
    assert counts_of(only(ChangeEvents, observations)) == expected_counts()
    shapes = only(ConnectSchema, observations)
    assert bool(shapes) == (converter == "json_schema")
    for shape in shapes:
        assert json.loads(shape.text)["type"] == "struct"
