"""Topics of the tests: made, filled, and described for a scan."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from registry.observations import (
    Bounds,
    KafkaConnection,
    PartitionRange,
    Profile,
    TopicRead,
    TopicScan,
    WriterSchema,
)

Headers = list[tuple[str, str | bytes | None]]
Message = (
    tuple[int, bytes | None, bytes | None] | tuple[int, bytes | None, bytes | None, Headers]
)  # partition, key, value
USER = json.dumps({"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]})


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + body


def zigzag(number: int) -> bytes:
    """An Avro int or long."""
    left, written = (number << 1 ^ number >> 63) & (2**64 - 1), bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def string(text: str) -> bytes:
    encoded = text.encode()
    return zigzag(len(encoded)) + encoded


def make_topic(bootstrap: str, messages: Iterable[Message], partitions: int = 2, **config: object) -> str:
    """A topic of its own with these messages, in their order."""
    topic = f"t-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: its destruction would cancel the call
    admin.create_topics(
        [NewTopic(topic, num_partitions=partitions, config={name: str(value) for name, value in config.items()})]
    )[topic].result(60)
    fill(bootstrap, topic, messages)
    return topic


def fill(bootstrap: str, topic: str, messages: Iterable[Message], **settings: object) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 20_000_000, "linger.ms": 20, **settings})
    for partition, key, value, *headers in messages:
        while True:
            try:
                producer.produce(topic, key=key, value=value, partition=partition, headers=(headers or [None])[0])
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(30) == 0


def ranges(bootstrap: str, topic: str) -> tuple[PartitionRange, ...]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "enable.auto.commit": False})
    try:
        partitions = []
        for partition in sorted(consumer.list_topics(topic, timeout=60).topics[topic].partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
            partitions.append(PartitionRange(partition, low, high, low, high))
        return tuple(partitions)
    finally:
        consumer.close()


def writers(schemas: Mapping[int, str] | None, kind: str = "AVRO") -> tuple[WriterSchema, ...]:
    """Schemas by their ids."""
    return tuple(WriterSchema("id", str(number), kind, text) for number, text in (schemas or {}).items())


def scan_of(
    bootstrap: str,
    *topics: str,
    schemas: Mapping[int, str] | None = None,
    bounds: Bounds | None = None,
    profile: Profile | None = None,
    more: tuple[WriterSchema, ...] = (),
) -> TopicScan:
    """A scan of the whole topics."""
    reads = tuple(TopicRead(topic, ranges(bootstrap, topic)) for topic in topics)
    schemas_known = (*writers(schemas), *more)
    return TopicScan(KafkaConnection(bootstrap), reads, schemas_known, profile or Profile(), bounds or Bounds())
