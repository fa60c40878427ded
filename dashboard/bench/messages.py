"""Topics for measurements: small Avro messages of several schemas."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from registry.observations import PartitionRange, TopicRead

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
