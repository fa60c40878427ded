"""Scans of topics: messages a second as a ratio to a plain consumer, the CPU time of many topics, idle topics, memory."""

from __future__ import annotations

import io
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fastavro
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from benchmarks.measurement import machine, resident_bytes
from benchmarks.registry_client import cpu_seconds, listening_pids, resident_below
from dashboard.runtime.parts import kafka_broker, spark_connect
from registry.drift.judge import judge
from registry.drift.judge.model import Registered, RegisteredVersion, SubjectSummary
from registry.observations import (
    Bounds,
    KafkaConnection,
    PartitionRange,
    Profile,
    ScanTotals,
    TopicRead,
    TopicScan,
    WriterSchema,
)
from registry.pipeline.run import run
from registry.pipeline.session import LOOPBACK, parse_remote

DISTINCT: Final = 5_000  # bodies; they repeat
_ADDRESS: Final = {
    "type": "record",
    "name": "Address",
    "fields": [{"name": "zip", "type": "string"}, {"name": "city", "type": ["null", "string"]}],
}
_FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "sku", "type": "string"},
    {"name": "quantity", "type": "int"},
    {"name": "price", "type": "double"},
    {"name": "paid", "type": "boolean"},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "SENT"]}},
    {"name": "address", "type": _ADDRESS},
    {"name": "note", "type": ["null", "string"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]


def _schema(number: int) -> str:
    """Versions differ by a field that is there or not, and by the width of a number."""
    fields = [dict(field) for field in _FIELDS if number % 2 or field["name"] != "note"]
    fields[3]["type"] = "int" if number < 4 else "long"
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


SCHEMAS: Final = {number: _schema(number) for number in range(1, 8)}


@dataclass(frozen=True)
class Filled:
    """A topic with messages, and what there is to read of it."""

    reads: tuple[TopicRead, ...]


def make_topics(bootstrap: str, count: int, partitions: int) -> list[str]:
    """So many empty topics; their names."""
    names = [f"bench-{uuid.uuid4().hex[:12]}" for _ in range(count)]
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: its destruction would cancel the calls
    for made in admin.create_topics([NewTopic(name, num_partitions=partitions) for name in names]).values():
        made.result(60)
    return names


def fill_topic(bootstrap: str, messages: int, partitions: int, topic: str = "") -> Filled:
    """Writes so many messages, in turns to each partition of a topic that is made for it, unless one is given."""
    topic = topic or make_topics(bootstrap, 1, partitions)[0]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.num.messages": 10_000})
    bodies = list(_bodies(min(DISTINCT, messages)))
    for number in range(messages):
        while True:
            try:
                producer.produce(topic, bodies[number % len(bodies)], b"%d" % number, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the broker didn't take all messages")
    ends = [len(range(partition, messages, partitions)) for partition in range(partitions)]
    ranges = tuple(PartitionRange(partition, 0, end, 0, end) for partition, end in enumerate(ends))
    return Filled((TopicRead(topic, ranges),))


def _bodies(count: int) -> Iterator[bytes]:
    parsed = {number: fastavro.parse_schema(json.loads(text)) for number, text in SCHEMAS.items()}
    for number in range(count):
        schema_id = number % len(SCHEMAS) + 1
        value = {
            "id": number * 7_919,
            "customer": f"customer {number % 500}",
            "sku": f"sku-{number % 97}",
            "quantity": number % 9,
            "price": number / 7,
            "paid": number % 2 == 0,
            "state": ("NEW", "PAID", "SENT")[number % 3],
            "address": {"zip": f"{number:05}", "city": "Bonn" if number % 4 else None},
            "note": f"note {number}" if number % 3 else None,
            "at": 1_700_000_000_000 + number,
        }
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed[schema_id], value)
        yield b"\0" + schema_id.to_bytes(4, "big") + buffer.getvalue()


IDS: Final = Profile(fields=False)
FIELDS: Final = Profile()
BOUNDS: Final = Bounds(max_messages=10**9, max_bytes=10**12, deadline_seconds=3_600)
CHANGED: Final = 5
SESSION: Final = str(uuid.uuid4())  # kept between scans, as a worker does
PER_CPU_SECOND: Final = 30_000  # messages whose fields are profiled
MANY: Final = 100  # topics of a hundred messages each
MANY_SECONDS: Final = 60.0  # of CPU, for all of them
TOPIC_SECONDS: Final = 0.5  # of CPU, for each topic more


@dataclass(frozen=True)
class Size:
    """How much is measured: the messages of the one topic and its partitions, and the mostly idle topics."""

    messages: int = 3_000_000
    partitions: int = 8
    topics: int = 200
    repeats: int = 2


@dataclass(frozen=True)
class Row:
    """A line of the table: seconds of the best repeat, the goal, and whether and how it was reached."""

    what: str
    seconds: float
    goal: str
    note: str


@contextmanager
def services() -> Iterator[tuple[str, str]]:
    """The addresses of a broker and of a Spark Connect server, for the length of the block."""
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="schemadesk-bench-")))
        for name in ("kafka", "spark"):
            (base / name).mkdir()
        bootstrap = os.environ.get("KAFKA_BOOTSTRAP") or stack.enter_context(kafka_broker(base / "kafka"))
        remote = os.environ.get("SPARK_REMOTE") or stack.enter_context(spark_connect(base / "spark"))
        yield bootstrap, remote


def measure(size: Size) -> Iterator[Row]:
    """The rows, one after the other as they are measured."""
    with services() as (bootstrap, remote):
        topic = fill_topic(bootstrap, size.messages, size.partitions)
        scan = _scan(bootstrap, list(topic.reads), IDS)
        observe(scan, remote)  # a server compiles what it runs often
        consumed = best(size.repeats, lambda: consume(bootstrap, topic))
        yield Row("count ids in a Python consumer", consumed, "", f"{size.messages / consumed:,.0f} a second")
        for what, profile, goal in (("observe ids and judge", IDS, 1.5), ("and profile fields", FIELDS, 0.3)):
            spec = _scan(bootstrap, list(topic.reads), profile)
            seconds = best(size.repeats, lambda spec=spec: observe(spec, remote))  # type: ignore[misc]
            yield Row(
                what, seconds, f"ratio {goal}", f"{size.messages / seconds:,.0f} a second: {consumed / seconds:.2f}"
            )
        yield from _profile_cpu(_scan(bootstrap, list(topic.reads), FIELDS), remote, size.messages)
        yield _idle(bootstrap, remote, size.topics)
        yield from _many(bootstrap, remote)
        yield _memory(scan, remote)


def consume(bootstrap: str, topic: Filled) -> None:
    """The plain loop that scans are held against: it counts ids, and nothing else."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    (read,) = topic.reads
    consumer.assign([TopicPartition(read.topic, part.partition, part.start) for part in read.ranges])
    left, ids = sum(part.end - part.start for part in read.ranges), dict[int, int]()
    while left > 0:
        for message in consumer.consume(10_000, 5.0):
            value = message.value() or b""
            number = int.from_bytes(value[1:5], "big")
            ids[number] = ids.get(number, 0) + 1
            left -= 1
    consumer.close()
    if len(ids) != len(SCHEMAS):
        raise RuntimeError(f"the consumer counted {len(ids)} ids of {len(SCHEMAS)}")


def observe(spec: TopicScan, remote: str) -> None:
    """A whole scan: observed through Spark, and judged; all messages must be there, and no finding be made of ids."""
    observations = run(spec, remote=remote, session_id=SESSION)
    expected = sum(part.end - part.start for read in spec.topics for part in read.ranges)
    read = sum(total.messages for total in observations if isinstance(total, ScanTotals))
    if read != expected:
        raise RuntimeError(f"the scan read {read:,} messages of {expected:,}")
    judge(observations, _registered([total.topic for total in spec.topics]))


def best(repeats: int, action: Callable[[], None]) -> float:
    """The seconds of the quickest of some repeats."""
    taken = []
    for _ in range(max(1, repeats)):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    return min(taken)


def _scan(bootstrap: str, reads: list[TopicRead], profile: Profile) -> TopicScan:
    writers = tuple(WriterSchema("id", str(number), "AVRO", text) for number, text in SCHEMAS.items())
    return TopicScan(KafkaConnection(bootstrap), tuple(reads), writers, profile, BOUNDS)


def _registered(topics: list[str]) -> Registered:
    """A registry that has all of the schemas as versions of the first topic's subject."""
    subject = f"{topics[0]}-value"
    history = tuple(RegisteredVersion(subject, number, schema_id=number, schema_type="AVRO") for number in SCHEMAS)
    return Registered(
        "bench",
        versions={("id", str(version.schema_id)): (version,) for version in history},
        subjects={subject: SubjectSummary(subject, len(history))},
        histories={subject: history},
    )


def _idle(bootstrap: str, remote: str, count: int) -> Row:
    """A scheduled scan of mostly idle topics of two partitions each: their offsets are asked for, what changed is read."""
    names = make_topics(bootstrap, count, 2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    before = _settled(admin, names)
    changed = names[:: max(1, count // CHANGED)][:CHANGED]
    for name in changed:
        fill_topic(bootstrap, 1_000, 2, name)

    def scheduled() -> None:
        after = _ends(admin, names)
        reads: dict[str, list[PartitionRange]] = {}
        for (name, partition), end in after.items():
            if end > before[name, partition]:
                part = PartitionRange(partition, before[name, partition], end, 0, end)
                reads.setdefault(name, []).append(part)
        if len(reads) != len(changed):
            raise RuntimeError(f"{len(reads)} topics changed, not {len(changed)}")
        observe(_scan(bootstrap, [TopicRead(name, tuple(parts)) for name, parts in reads.items()], IDS), remote)

    seconds = best(3, scheduled)
    what = f"scan {count} topics of {2 * count} partitions, {len(changed)} changed"
    return Row(what, seconds, "2.0 s", f"{seconds:.2f} s")


def _cpu_of(scan: TopicScan, remote: str, pids: Sequence[int]) -> float:
    """The CPU seconds of Spark and of this process for a scan."""
    before = cpu_seconds(pids) + time.process_time()
    observe(scan, remote)
    return cpu_seconds(pids) + time.process_time() - before


def _profile_cpu(spec: TopicScan, remote: str, messages: int) -> Iterator[Row]:
    pids = listening_pids(LOOPBACK, parse_remote(remote).port)
    if pids is not None:  # of a server here
        seconds = _cpu_of(spec, remote, pids)
        what, note = f"CPU time for the fields of {messages:,} messages", f"{messages / seconds:,.0f} a second of CPU"
        yield Row(what, seconds, f"{PER_CPU_SECOND:,} a second", note)


def _many(bootstrap: str, remote: str) -> Iterator[Row]:
    """The CPU time of Spark and of this process for the profile of many small topics, and Spark's memory over ten."""
    names = make_topics(bootstrap, MANY, 2)
    _settled(AdminClient({"bootstrap.servers": bootstrap}), names)
    reads = [read for name in names for read in fill_topic(bootstrap, 100, 2, name).reads]
    spec, few = (_scan(bootstrap, some, FIELDS) for some in (reads, reads[:1]))
    pids = listening_pids(LOOPBACK, parse_remote(remote).port)
    if pids is None:
        return  # of a server elsewhere

    _cpu_of(few, remote, pids)
    single, first = (_cpu_of(scan, remote, pids) for scan in (few, spec))
    sizes = [resident_below(pids) / 1024**2]
    seconds = statistics.median(
        _cpu_of(spec, remote, pids) for _ in range(3)
    )  # a Python process that ends may take its time with it
    yield Row(
        f"CPU time for the fields of {MANY} topics of 100 messages",
        seconds,
        f"{MANY_SECONDS:.0f} s",
        f"first {first:.0f} s",
    )
    each = (seconds - single) / (MANY - 1)
    yield Row("for each topic of these", each, f"{TOPIC_SECONDS} s", f"a single one {single:.1f} s")
    for _ in range(7):
        observe(spec, remote)
    sizes.append(resident_below(pids) / 1024**2)
    yield Row("memory of Spark over 10 such scans", 0.0, "flat", "MiB, then ".join(f"{size:.0f} " for size in sizes))


def _settled(admin: AdminClient, names: list[str]) -> dict[tuple[str, int], int]:
    """The ends of new topics, once each partition has its leader."""
    gives_up = time.monotonic() + 60
    while True:
        try:
            return _ends(admin, names)
        except KafkaException:
            if time.monotonic() > gives_up:
                raise
            time.sleep(0.5)


def _ends(admin: AdminClient, names: list[str]) -> dict[tuple[str, int], int]:
    offsets_asked = {TopicPartition(name, partition): OffsetSpec.latest() for name in names for partition in range(2)}
    offsets = admin.list_offsets(offsets_asked, request_timeout=10)
    return {(part.topic, part.partition): future.result().offset for part, future in offsets.items()}


def _memory(spec: TopicScan, remote: str) -> Row:
    """What this process holds after one more scan, and after three more."""
    began = time.perf_counter()
    observe(spec, remote)
    first = resident_bytes()
    seconds = time.perf_counter() - began
    for _ in range(2):
        observe(spec, remote)
    mib = 1024 * 1024
    return Row(
        "memory of the client over 3 scans",
        seconds,
        "flat",
        f"{first / mib:.0f} MiB, then {resident_bytes() / mib:.0f}",
    )


def cells(row: Row) -> tuple[str, str, str, str]:
    """A row as the table shows it."""
    return row.what, f"{row.seconds:.2f} s", row.goal, row.note


def section(rows: list[Row], size: Size, note: str = "") -> str:
    """The section of the page of measurements."""
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with {machine()}, {size.messages:,} messages on {size.partitions} "
        f"partitions, {len(SCHEMAS)} Avro schemas of 11 fields.{' ' + note if note else ''}",
        "",
        "A ratio is the scan's messages a second over those of a Python consumer on librdkafka that only counts ids, in "
        "the same run: the quickest of each.",
        "",
        "| what | seconds | goal | |",
        "|---|---|---|---|",
        *(f"| {' | '.join(cells(row))} |" for row in rows),
    ]
    return "\n".join(lines)
