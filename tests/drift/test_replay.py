"""Real messages read with a proposed schema, through Kafka and Spark, and evidence from data beside a report."""

from __future__ import annotations

import html
import json
import pickle
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from django.test import Client
from django.utils import timezone
from pyspark import cloudpickle

from registry.access.models import User
from registry.access.roles import Actor, system_actor
from registry.drift import services
from registry.drift.models import Cluster, FieldStatistic, Scan, SchemaUse, Source, Topic
from registry.drift.replay.evidence import (
    MISSES_A_BRANCH,
    NEEDS_A_NULL,
    NEEDS_A_VALUE,
    REMOVED,
    FieldTotals,
    ReplayTotals,
    ReportFinding,
    evidence_for,
    replay_and_weigh,
)
from registry.drift.replay.schema_replay import _writers, newest_ranges, replay_proposal
from registry.drift.scan.runner import perform_scan
from registry.drift.sources.kafka_offsets import Watermarks
from registry.drift.usage.retirement import retirement_of
from registry.errors import InvalidSource, NotAllowed, SchemaTooCostly, VersionNotFound
from registry.formats import FORMATS
from registry.formats.avro.datum import codec
from registry.formats.avro.rules import RULES as AVRO
from registry.formats.json_schema.rules import RULES as JSON_SCHEMA
from registry.formats.protobuf.rules import RULES as PROTOBUF
from registry.formats.replay_tally import Replayer, ReplaySchema, ReplayTally, merged
from registry.pipeline import replay as replaying
from registry.pipeline.replay_worker import archive_of_engines, counting
from registry.subjects.models import Schema
from registry.subjects.services import register_version
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject
from tests.pipeline.topics import framed, make_topic


def record(*fields: dict[str, Any], name: str = "Order") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


ID = {"name": "id", "type": "string"}
FAX = {"name": "fax", "type": ["null", "string"], "default": None}
STATE = {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}}
TAGS = {"name": "tags", "type": {"type": "map", "values": "int"}}
OLD = record(ID, FAX, STATE, TAGS)
LESS_STATE = {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW"]}}


def body(text: str, **datum: Any) -> bytes:
    return codec(FORMATS["AVRO"].parse(text).model).encode(datum)


def order(number: int, *, fax: str | None = None, state: str = "NEW", **tags: int) -> bytes:
    fax_value = ("null", None) if fax is None else ("string", fax)
    return body(OLD, id=f"o{number}", fax=fax_value, state=state, tags=tags)


def replayed(reader: str, messages: list[bytes], *, kind: str = "AVRO", writer: str = OLD) -> ReplayTally:
    """The tally of a task, having crossed as its line."""
    replayer = Replayer(ReplaySchema(kind, reader), {("id", "7"): ReplaySchema(kind, writer)}, 60)
    for offset, message in enumerate(messages):
        replayer.add("id", "7", message, len(message), None, (0, offset))
    return merged([replayer.tally.to_json()])


# -- counting -------------------------------------------------------------------------------------------------------


def test_what_becomes_of_each_field_is_counted_and_no_value_leaves() -> None:
    reader = record(
        ID,
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW"], "default": "NEW"}},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "more", "type": "int", "default": 5},
    )
    messages = [order(1, fax="secret-1", secret=4), order(2, state="PAID"), order(3)]
    tally = replayed(reader, messages)
    (writer,) = tally.writers.values()
    assert (writer.messages, writer.read, writer.failed, writer.unreadable) == (3, 3, 0, 0)
    assert writer.fields == {
        "Order.id": {"kept": 3},
        "Order.state": {"kept": 2, "changed": 1},
        "Order.tags": {"kept": 2, "converted": 1},
        "Order.more": {"filled": 3},
        "Order.fax": {"lost": 1, "dropped": 2},
    }
    assert "secret" not in tally.to_json()


def test_failures_are_reported_with_their_first_offsets() -> None:
    reader = record(ID, FAX, LESS_STATE, TAGS)
    messages = [order(number, state="PAID" if number % 3 == 0 else "NEW") for number in range(30)]
    (writer,) = replayed(reader, [*messages, b"\x02"]).writers.values()
    assert (writer.read, writer.failed, writer.unreadable) == (20, 10, 1)
    assert [at for _, at, _ in writer.failures] == [0, 3, 6, 9, 12]
    assert "PAID" in writer.failures[0][2]
    assert writer.foreign == [(0, 30, "Order.id, byte 1: 1 bytes are declared, but 0 are left")]


def test_tallies_of_tasks_add_up() -> None:
    lines = []
    for part in range(3):
        replayer = Replayer(
            ReplaySchema("AVRO", record(ID, FAX, LESS_STATE, TAGS)), {("id", "7"): ReplaySchema("AVRO", OLD)}, 60
        )
        for offset in range(4):
            data = order(offset, state="PAID" if offset == 2 else "NEW")
            replayer.add("id", "7", data, len(data), None, (2 - part, offset))
        replayer.add(None, "", b"{}", 2, None, (part, 4))
        replayer.add("id", "8", b"", 0, None, (part, 5))
        replayer.add("id", "7", None, 2_000_000, None, (part, 6))
        lines.append(replayer.tally.to_json())
    total = merged(lines)
    (writer,) = total.writers.values()
    assert (total.looked_at, total.unframed, total.unknown, total.too_large) == (21, 3, 3, 3)
    assert (writer.messages, writer.failed, writer.fields["Order.id"]) == (12, 3, {"kept": 9})
    assert [failure[:2] for failure in writer.failures] == [(0, 2), (1, 2), (2, 2)]


def test_after_its_time_nothing_is_tried_and_it_is_said() -> None:
    replayer = Replayer(ReplaySchema("AVRO", OLD), {("id", "7"): ReplaySchema("AVRO", OLD)}, -1)
    replayer.add("id", "7", order(1), 9, None, (0, 0))
    assert (replayer.tally.not_tried, replayer.tally.writers) == (1, {})


def test_json_is_refused_at_a_place_of_the_schema_without_its_values() -> None:
    writer = '{"type": "object", "properties": {"age": {"type": "integer"}}}'
    reader = '{"type": "object", "properties": {"age": {"type": "integer", "maximum": 99}}}'
    tally = replayed(reader, [b'{"age": 7}', b'{"age": 12345}', b'{"age": "x"}', b"{"], kind="JSON", writer=writer)
    (outcome,) = tally.writers.values()
    assert (outcome.read, outcome.failed, outcome.unreadable) == (1, 1, 2)
    assert "#/properties/age/maximum" in outcome.failures[0][2]
    assert "12345" not in tally.to_json()
    (repaired,) = replayed("{}", [b'{"age": "x"}', b"{"], kind="JSON", writer=writer).writers.values()
    assert (repaired.read, repaired.failed, repaired.unreadable) == (1, 0, 1), "the reader alone looks at the value"


def test_messages_of_other_subjects_are_of_no_writer(registries: None, system: Actor) -> None:
    subject = parse_subject("orders-value")
    ids = [
        register_version(registry="dev", subject=name, text=text, by=system).schema_id
        for name, text in (
            (subject, OLD),
            (subject, record(ID, FAX, STATE)),
            (parse_subject("carts-value"), record(ID)),
        )
    ]
    topic = add_topic("127.0.0.1:1", "orders", subject)
    now = timezone.now()
    for number in ids:
        SchemaUse.objects.create(
            topic=topic, side="value", framing="id", mark=str(number), schema_id=number, partition=0, messages=1, bytes=1,
            first_offset=0, last_offset=0, first_time=now, last_time=now,
        )  # fmt: skip
    writers, _ = _writers(get_registry("dev"), subject, topic.pk, "value")
    assert {mark for framing, mark in writers if framing == "id"} == {str(number) for number in ids[:2]}


def test_protobuf_finds_its_message_by_indexes_in_front_or_in_the_header() -> None:
    writer = 'syntax = "proto3"; message A { string s = 1; } message B { int64 n = 1; }'
    reader = 'syntax = "proto3"; message A { string s = 1; } message B { int32 n = 1; }'
    schemas = {("guid", "g"): ReplaySchema("PROTOBUF", writer), ("id", "7"): ReplaySchema("PROTOBUF", writer)}
    replayer = Replayer(ReplaySchema("PROTOBUF", reader), schemas, 60)
    large = b"\x08" + bytes([0xFF] * 5) + b"\x01"
    replayer.add("id", "7", b"\x02\x02" + large, 9, None, (0, 0))
    replayer.add("guid", "g", large, 7, bytes(17) + b"\x02\x02", (0, 1))
    replayer.add("guid", "g", b"\x0a\x01x", 3, bytes(17) + b"\x00", (0, 2))
    replayer.add("id", "7", b"\x02\x12", 2, None, (0, 3))
    writers = merged([replayer.tally.to_json()]).writers
    assert writers["id", "7"].fields == {"B.n": {"changed": 1}}
    assert writers["guid", "g"].fields == {"B.n": {"changed": 1}, "A.s": {"kept": 1}}
    assert writers["id", "7"].unreadable == 1


def test_a_writer_of_another_format_or_that_does_not_parse_is_said() -> None:
    schemas = {("id", "1"): ReplaySchema("JSON", "{}"), ("id", "2"): ReplaySchema("AVRO", "{")}
    replayer = Replayer(ReplaySchema("AVRO", OLD), schemas, 60)
    for mark in ("1", "2"):
        replayer.add("id", mark, b"{}", 2, None, (0, 0))
    reasons = [tally.foreign[0][2] for tally in replayer.tally.writers.values()]
    assert reasons[0] == "they are written in JSON, but the reader schema is AVRO"
    assert "can't be used here" in reasons[1]


@pytest.mark.parametrize(
    ("highs", "messages", "taken"),
    [
        ({0: 100, 1: 100}, 50, {0: 25, 1: 25}),
        ({0: 10, 1: 100, 2: 0}, 60, {0: 10, 1: 50}),
        ({0: 3, 1: 3}, 100, {0: 3, 1: 3}),
        ({0: 100, 1: 100, 2: 100}, 2, {0: 1, 1: 1}),
        ({}, 10, {}),
    ],
)
def test_the_newest_offsets_are_taken_evenly(highs: dict[int, int], messages: int, taken: dict[int, int]) -> None:
    ranges = newest_ranges({part: Watermarks(5, 5 + high) for part, high in highs.items()}, messages)
    assert {part.partition: part.end - part.start for part in ranges} == taken
    assert all(part.end == part.high for part in ranges)


@pytest.mark.slow
def test_workers_without_this_package_unpack_the_engines(tmp_path: Path) -> None:
    assert replaying.replay_worker.counting is counting, "what the pipeline sends by value is another function"
    guid = uuid.uuid4()
    writers = {
        ("id", (7).to_bytes(4, "big")): ("7", "AVRO", OLD),
        ("guid", guid.bytes): (str(guid), "AVRO", OLD),
    }
    function = counting(archive_of_engines(), ("AVRO", record(ID, FAX, LESS_STATE, TAGS)), writers, 60)
    (tmp_path / "function").write_bytes(cloudpickle.dumps(function))
    rows = [
        (0, 0, "id", b"\0\0\0\7", 9, order(1), None),
        (0, 1, "guid", guid.bytes, 9, order(2, state="PAID"), b"\1" + guid.bytes),
        (0, 2, "id", b"\0\0\0\x08", 9, order(1), None),
        (0, 3, "null", None, 0, None, None),
        (0, 4, "json_object", None, 2, b"{}", None),
    ]
    (tmp_path / "rows").write_bytes(pickle.dumps(rows))
    done = subprocess.run(
        [sys.executable, "-I", "-c", WORKER, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    tally = merged([done.stdout])
    assert (tally.looked_at, tally.unknown, tally.no_value, tally.unframed) == (5, 1, 1, 1)
    assert [(item.read, item.failed) for item in tally.writers.values()] == [(1, 0), (0, 1)]


WORKER = """
import pathlib, pickle, sys, pyarrow
folder = pathlib.Path(sys.argv[1])
try:
    import registry
except ImportError:
    pass
else:
    raise SystemExit("the package is there: nothing is shown")
names = ["partition", "offset", "class", "mark", "size", "body", "header"]
kinds = [pyarrow.int32(), pyarrow.int64(), pyarrow.string(), pyarrow.binary(), pyarrow.int64(), pyarrow.binary(), pyarrow.binary()]
rows = pickle.loads((folder / "rows").read_bytes())
columns = [pyarrow.array(column, kind) for column, kind in zip(zip(*rows), kinds)]
count = pickle.loads((folder / "function").read_bytes())
(answer,) = count([pyarrow.RecordBatch.from_arrays(columns, names)])
print(answer.column("tally")[0].as_py())
"""


# -- through Kafka and Spark ----------------------------------------------------------------------------------------


@pytest.fixture
def subject(registries: None, system: Actor, settings: Any, kafka_bootstrap: str) -> Any:
    """A subject with a version, and a topic of its name with 300 messages of it and some of nobody."""
    settings.KAFKA_BOOTSTRAP = kafka_bootstrap
    name = f"orders-{uuid.uuid4().hex[:8]}"
    return parse_subject(f"{name}-value")


def make_orders(bootstrap: str, schema_id: int, guid: str) -> str:
    messages: list[Any] = []
    for number in range(300):
        data = order(number, fax="1" if number < 3 else None, state="PAID" if number % 30 == 0 else "NEW")
        if number % 10 == 9:
            header = b"\x01" + uuid.UUID(guid).bytes
            messages.append((number % 2, None, data, [("__value_schema_id", header)]))
        else:
            messages.append((number % 2, None, framed(schema_id, data)))
    messages += [
        (0, b"k", None),
        (0, None, b'{"a": 1}'),
        (1, None, framed(99_999, b"x")),
        (1, None, framed(schema_id, b"\x7f")),
    ]
    return make_topic(bootstrap, messages)


def add_topic(bootstrap: str, topic: str, subject: Any) -> Topic:
    cluster = Cluster.objects.create(name=topic, bootstrap=bootstrap, created_by="tests")
    source = Source.objects.create(
        registry=get_registry("dev"), kind="kafka", name=topic, cluster=cluster, created_by="tests"
    )
    now = timezone.now()
    return Topic.objects.create(
        source=source,
        name=topic,
        partitions=2,
        messages=300,
        subjects={"value": [subject.subject]},
        read_from={"0": 0, "1": 0},
        checked_at=now,
        read_at=now,
        retention_ms=7 * 86_400_000,
    )


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.requirement("CARD-3")
def test_a_proposed_schema_reads_a_real_topic(
    subject: Any,
    system: Actor,
    kafka_bootstrap: str,
    spark_remote: str,
    settings: Any,
    api: Callable[[str], Client],
    person: Callable[[str], Actor],
) -> None:
    settings.SPARK_REMOTE = spark_remote
    steward = Client()
    registry = get_registry("dev")
    number = register_version(registry="dev", subject=subject, text=OLD, by=system).schema_id
    guid = str(Schema.objects.get(context__registry=registry, context__name=".", schema_id=number).guid)
    topic = add_topic(kafka_bootstrap, make_orders(kafka_bootstrap, number, guid), subject)
    today = timezone.now().date()
    FieldStatistic.objects.create(
        topic=topic, side="value", framing="id", mark=str(number), path="fax", day=today, messages=300, present=300, nulls=300
    )  # fmt: skip

    same = replay_proposal(registry, subject, by=system, version=1)
    assert (same.asked, same.looked_at, same.messages, same.read, same.unreadable) == (304, 304, 301, 300, 1)
    assert (same.no_value, same.unframed, same.unknown, same.not_tried, same.missing) == (1, 1, 1, 0, 0)
    assert {(writer.framing, writer.messages, writer.versions) for writer in same.writers} == {
        ("id", 271, (1,)),
        ("guid", 30, (1,)),
    }

    fewer = record(ID, LESS_STATE, TAGS)
    weighed = replay_and_weigh(registry, subject, by=system, text=fewer)
    assert (weighed.replay.read, weighed.replay.failed) == (290, 10)
    first = min((item.partition, item.offset) for writer in weighed.replay.writers for item in writer.failures)
    assert first == (0, 0)
    sentences = [line.sentence for line in weighed.evidence]
    assert any("3.3 % of the 300 messages" in line and "offset 0 of partition 0" in line for line in sentences)
    assert any("Not checked: 1 message invalid under their own schema" in line for line in sentences)
    assert any(line.startswith("Order.fax: a value is no longer read in ") for line in sentences)

    steward.force_login(User.objects.get(username=person("steward").name))
    page = steward.post(f"/ui/registries/dev/subjects/{subject.subject}/report", {"text": fewer, "replay": "1"})
    assert "3.3 % of the 300 messages" in html.unescape(page.content.decode())
    assert "1 invalid under its own schema" in html.unescape(page.content.decode())

    body = {"registry": "dev", "subject": subject.subject, "schema": fewer, "messages": 20}
    response = api("steward").post("/api/v1/replays", body, content_type="application/json")
    assert response.status_code == 200
    report = response.json()
    assert (report["asked"], report["topic"]) == (20, topic.name)
    assert report["evidence"]
    with pytest.raises(NotAllowed):
        replay_proposal(registry, subject, by=Actor("nobody", "ui", user_id=5), version=1)
    with pytest.raises(VersionNotFound):
        replay_proposal(registry, subject, by=system, version=9)
    with pytest.raises(InvalidSource, match="Choose one"):
        add_topic(kafka_bootstrap, topic.name + "-2", subject)
        replay_proposal(registry, subject, by=system, version=1)


def delete_records(admin: AdminClient, until: TopicPartition) -> None:
    """Deletes a partition's messages before an offset; a broker learns of a changed policy a moment later."""
    deadline = time.monotonic() + 60
    while True:
        (deletion,) = admin.delete_records([until]).values()
        try:
            deletion.result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.POLICY_VIOLATION or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.requirement("CARD-3")
def test_retirement_asks_the_real_cluster(subject: Any, system: Actor, kafka_bootstrap: str) -> None:
    registry = get_registry("dev")
    number = register_version(registry="dev", subject=subject, text=OLD, by=system).schema_id
    register_version(
        registry="dev", subject=subject, text=record(ID, FAX, STATE, TAGS, {**FAX, "name": "b"}), by=system
    )
    name = make_topic(kafka_bootstrap, [(0, None, framed(number, order(at))) for at in range(10)])
    topic = add_topic(kafka_bootstrap, name, subject)
    old = timezone.now() - timedelta(days=3)
    SchemaUse.objects.create(
        topic=topic, side="value", framing="id", mark=str(number), schema_id=number, partition=0, messages=10,
        bytes=100, first_offset=0, last_offset=9, first_time=old, last_time=old,
    )  # fmt: skip

    retirement = retirement_of(registry, subject, by=system_actor("tests"))
    assert (retirement.problems, retirement.versions[1].answer) == ((), "not_before")

    group = f"readers-{name}"
    consumer = Consumer({"bootstrap.servers": kafka_bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(name, 0, 4)], asynchronous=False)
    consumer.close()
    behind = retirement_of(registry, subject, by=system_actor("tests")).versions[1]
    assert behind.answer == "no"
    assert f"Consumer group {group} has yet to read it: the group is at offset 4 of partition 0" in behind.sentence

    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(60)
    compacted = retirement_of(registry, subject, by=system_actor("tests")).versions[1]
    assert any("is compacted" in reason.sentence for reason in compacted.reasons)

    entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(60)
    delete_records(admin, TopicPartition(name, 0, 10))
    gone = retirement_of(registry, subject, by=system_actor("tests")).versions[1]
    assert gone.answer == "yes", gone
    assert f"All 10 messages with it have been removed from {name}." in gone.sentence


@pytest.mark.django_db
def test_a_costly_schema_does_not_go_to_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from registry.drift.replay import schema_replay
    from registry.subjects.engine import schema_engine

    parsed = schema_engine.parse("AVRO", OLD)
    with pytest.raises(SchemaTooCostly):
        schema_replay._as_text(
            type(parsed)(
                **{**{name: getattr(parsed, name) for name in ("schema_type", "text", "canonical", "fingerprint")}}
            )
        )


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.requirement("CARD-3")
@pytest.mark.django_db(transaction=True)  # a scan renews its lease from a thread of its own
def test_a_real_scan_tells_which_versions_can_go(
    subject: Any, system: Actor, kafka_bootstrap: str, spark_remote: str, settings: Any
) -> None:
    settings.SPARK_REMOTE = spark_remote
    registry = get_registry("dev")
    fields: list[dict[str, Any]] = [ID, FAX, STATE, TAGS]
    ids = [
        register_version(registry="dev", subject=subject, text=record(*fields, *more), by=system).schema_id
        for more in ([], [{**FAX, "name": "b"}], [{**FAX, "name": "b"}, {**FAX, "name": "c"}])
    ]
    assert retirement_of(registry, subject, by=system_actor("tests")).versions[1].answer == "unknown", (
        "nothing was scanned yet"
    )
    name = make_topic(kafka_bootstrap, [(at % 2, None, framed(ids[0], order(at))) for at in range(40)])
    services.connect_cluster(name=name, bootstrap=kafka_bootstrap, by=system)
    source_id = services.add_source(registry="dev", kind="kafka", name=name, cluster=name, include=[name], by=system)
    # The topic's name isn't the subject's: that it carries its schemas is found from the data.
    scan_id = services.queue_scan(source_id=source_id, by=system)
    assert perform_scan(scan_id) == "done", Scan.objects.get(pk=scan_id).error
    topic = Topic.objects.get(source_id=source_id)
    assert topic.read_from == {"0": 0, "1": 0}

    retirement = retirement_of(registry, subject, by=system_actor("tests"))
    assert retirement.problems == ()
    first = retirement.use.version(1)
    assert (first.messages, first.topics[0].share) == (40, 1.0)
    assert [(part.partition, part.first_offset, part.last_offset) for part in first.topics[0].partitions] == [
        (0, 0, 19),
        (1, 0, 19),
    ]
    answers = {number: item.answer for number, item in retirement.versions.items()}
    assert answers == {1: "no", 2: "yes", 3: "no"}
    assert "Producers still write with it" in retirement.versions[1].sentence
    assert "Never seen in the 40 messages" in retirement.versions[2].sentence


CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "weighing_cases.yaml").read_text())


def replay_of(values: dict[str, Any]) -> ReplayTotals:
    losses, changes = (tuple(values.get(name, {}).items()) for name in ("losses", "changes"))
    return ReplayTotals(
        "orders",
        values["tried"],
        values["failed"],
        values.get("first", ""),
        losses,
        changes,
        tuple(values.get("unchecked", {}).items()),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    findings = [ReportFinding(*item) for item in case["findings"]]
    fields = [FieldTotals(*item, date(2026, 11, 1), date(2026, 11, 30)) for item in case.get("fields", [])]
    lines = evidence_for(findings, fields, replay_of(case["replay"]) if "replay" in case else None)
    assert [line.weight for line in lines] == [weight for weight, _ in case["lines"]], lines
    for line, (_, part) in zip(lines, case["lines"], strict=True):
        assert part in line.sentence


def test_the_rules_exist() -> None:
    rules = {*AVRO, *PROTOBUF, *JSON_SCHEMA}
    assert rules >= NEEDS_A_VALUE | NEEDS_A_NULL | REMOVED | MISSES_A_BRANCH
