"""The producers of the demo's topics: confluent-kafka's serializer, registering through the registry's HTTP API."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMAS = Path(__file__).parent / "schemas"
PARTITIONS = 2
STARTED_AT_MS = 1_780_000_000_000  # the demo's clock, so that its input is always the same
UNKNOWN_SCHEMA_ID = 900_001  # far above the ids of a new registry
STATUSES = ("NEW", "PAID", "SHIPPED", "CANCELLED")
COUNTRIES = ("DE", "FR", "JP", "NL", "PL", "US")
NAMES = ("Aiko", "Bram", "Chloe", "Daan", "Ewa", "Finn", "Grace", "Hugo", "Ines", "Jonas")


@dataclass(frozen=True)
class Phase:
    """A producer's release: it writes `count` messages of one topic with one schema version."""

    topic: str
    value_schema: str
    count: int
    values: Callable[[random.Random, int], Iterator[dict[str, Any]]]
    key_schema: str | None = None


@dataclass(frozen=True)
class DemoMessages:
    """The messages written by topic, and the schema id by schema file."""

    messages: dict[str, int]
    schema_ids: dict[str, int]


def _orders_v1(rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        lines = [
            {"sku": f"SKU-{rng.randint(100, 140)}", "quantity": rng.randint(1, 5)} for _ in range(rng.randint(1, 4))
        ]
        yield {
            "order_id": f"O-{rng.getrandbits(32):08X}",
            "customer_id": rng.randint(1, 40),
            "status": rng.choice(STATUSES),
            "amount_cents": rng.randint(500, 90_000),
            "placed_at": STARTED_AT_MS + number * 15_000,
            "lines": lines,
        }


def _orders_v2(rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    for order in _orders_v1(rng, count):
        coupon = f"WELCOME{rng.randint(5, 20)}" if rng.random() < 0.2 else None
        yield {**order, "currency": rng.choice(("EUR", "EUR", "JPY", "USD")), "coupon": coupon}


def _customers_v1(rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    for number in range(1, count + 1):
        name = rng.choice(NAMES)
        email = f"{name.lower()}.{number}@example.com" if rng.random() < 0.7 else None
        yield {"customer_id": number, "name": name, "email": email, "country": rng.choice(COUNTRIES)}


def _customers_v2(rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
    for customer in _customers_v1(rng, count):
        yield {**customer, "loyalty_points": rng.randint(0, 5_000)}


PHASES = (
    Phase("orders", "orders_v1", 300, _orders_v1),
    Phase("customers", "customers_v1", 80, _customers_v1, key_schema="customers_key"),
    Phase("orders", "orders_v2", 200, _orders_v2),
    Phase("customers", "customers_v2", 60, _customers_v2, key_schema="customers_key"),
)


class _Delivery:
    """Records a failed delivery, so that the demo doesn't claim messages that were lost."""

    def __init__(self) -> None:
        self.failed: KafkaError | None = None

    def __call__(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and self.failed is None:
            self.failed = error


def produce(
    bootstrap: str, registry_url: str, auth: tuple[str, str] | None = None, on_line: Callable[[str], object] = print
) -> DemoMessages:
    """Write the `orders` and `customers` topics in two schema versions each, and the five kinds of bad messages.

    `registry_url` is the base URL of an API in Confluent's dialect, `auth` its (user, secret) for HTTP basic; progress
    goes to `on_line`. Raises KafkaException if the broker doesn't answer, and the client's SchemaRegistryError if the
    registry refuses a schema.
    """
    configuration: dict[str, Any] = {"url": registry_url}
    if auth is not None:
        configuration["basic.auth.user.info"] = ":".join(auth)
    client = SchemaRegistryClient(configuration)
    _create_topics(bootstrap, sorted({phase.topic for phase in PHASES}))
    delivery = _Delivery()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "message.timeout.ms": 30_000})
    rng = random.Random(20_260_704)  # noqa: S311  always the same input, not a secret
    messages: dict[str, int] = {}
    last_values: dict[str, bytes] = {}
    for phase in PHASES:
        last_values[phase.value_schema] = _run_phase(phase, client, producer, rng, delivery)
        messages[phase.topic] = messages.get(phase.topic, 0) + phase.count
        on_line(f"produced {phase.count} messages to {phase.topic} with {phase.value_schema}")
    for bad in _bad_messages(last_values):
        producer.produce(bad.topic, value=bad.value, key=bad.key, on_delivery=delivery)
        messages[bad.topic] += 1
        on_line(f"produced to {bad.topic} {bad.what}")
    _flush(producer, delivery)
    ids = {schema: int.from_bytes(value[1:5], "big") for schema, value in last_values.items()}
    return DemoMessages(messages, ids)


def _create_topics(bootstrap: str, topics: list[str]) -> None:
    """Create missing topics with a fixed number of partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS) for topic in topics], request_timeout=20)
    for future in made.values():
        try:
            future.result(timeout=30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _run_phase(
    phase: Phase, client: SchemaRegistryClient, producer: Producer, rng: random.Random, delivery: _Delivery
) -> bytes:
    """Write a phase's messages; return the last encoded value."""
    value_of = AvroSerializer(client, _schema_text(phase.value_schema))
    key_of = AvroSerializer(client, _schema_text(phase.key_schema)) if phase.key_schema else None
    value_context = SerializationContext(phase.topic, MessageField.VALUE)
    key_context = SerializationContext(phase.topic, MessageField.KEY)
    value = b""
    for record in phase.values(rng, phase.count):
        if key_of is None:
            key = str(record["order_id"]).encode()
        else:
            key = key_of({"customer_id": record["customer_id"]}, key_context) or b""
        value = value_of(record, value_context) or b""
        producer.produce(phase.topic, value=value, key=key, on_delivery=delivery)
        producer.poll(0)
    _flush(producer, delivery)
    return value


def _flush(producer: Producer, delivery: _Delivery) -> None:
    left = producer.flush(30)
    if delivery.failed is not None:
        raise KafkaException(delivery.failed)
    if left:
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT, f"{left} messages were not delivered within 30 s"))


@dataclass(frozen=True)
class BadMessage:
    """A message as a faulty program writes it, with a description of the fault."""

    topic: str
    key: bytes | None
    value: bytes | None
    what: str


def _framed(schema_id: int, body: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big") + body


def _bad_messages(last_values: dict[str, bytes]) -> tuple[BadMessage, ...]:
    """Return the messages that a scan should report (and the tombstone, which it should accept)."""
    order = last_values["orders_v2"]
    order_id, body = int.from_bytes(order[1:5], "big"), order[5:]
    customer_id = int.from_bytes(last_values["customers_v2"][1:5], "big")
    plain = json.dumps({"order_id": "O-PLAIN", "customer_id": 7, "amount_cents": 1250}).encode()
    return (
        BadMessage("orders", b"O-FOREIGN", _framed(UNKNOWN_SCHEMA_ID, body), "a value with an unknown schema id"),
        BadMessage("orders", b"O-PLAIN", plain, "a value without framing (plain JSON)"),
        BadMessage("orders", b"O-GONE", None, "a tombstone"),
        BadMessage("orders", b"O-MIXED", _framed(customer_id, body), "a value with the id of another subject"),
        BadMessage("orders", b"O-CUT", _framed(order_id, body[:3]), "a value with a truncated body"),
    )


def _schema_text(name: str) -> str:
    return (SCHEMAS / f"{name}.avsc").read_text(encoding="utf-8")
