"""The demo's producers through our API and to a broker. What is found in their messages is tested in tests/whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from dashboard.demo.producers import PHASES, DemoMessages, produce
from registry.observations import PartitionRange
from tests.pipeline.topics import ranges

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@dataclass(frozen=True)
class Demo:
    """What the producers did in this test, and where their messages lie: other tests may have written before."""

    result: DemoMessages
    lines: list[str]
    client: SchemaRegistryClient
    bootstrap: str
    written: dict[str, tuple[PartitionRange, ...]]


@pytest.fixture
def demo(live_server: Any, token: Callable[[str], str], kafka_bootstrap: str) -> Demo:
    existing = AdminClient({"bootstrap.servers": kafka_bootstrap}).list_topics(timeout=60).topics
    topics = sorted({phase.topic for phase in PHASES})
    before = {
        topic: {part.partition: part.high for part in ranges(kafka_bootstrap, topic)}
        for topic in topics
        if topic in existing
    }
    auth, lines = ("steward", token("steward")), []
    result = produce(kafka_bootstrap, live_server.url, auth, lines.append)
    written = {
        topic: tuple(
            replace(part, start=before.get(topic, {}).get(part.partition, 0)) for part in ranges(kafka_bootstrap, topic)
        )
        for topic in topics
    }
    client = SchemaRegistryClient({"url": live_server.url, "basic.auth.user.info": ":".join(auth)})
    return Demo(result, lines, client, kafka_bootstrap, written)


@pytest.mark.requirement("GOO-1", "CARD-4")
def test_producers_register_two_compatible_versions_of_both_subjects(demo: Demo) -> None:
    assert demo.client.get_versions("orders-value") == [1, 2]
    assert demo.client.get_versions("customers-value") == [1, 2]
    assert demo.client.get_versions("customers-key") == [1]
    assert demo.client.get_version("orders-value", 2).schema_id == demo.result.schema_ids["orders_v2"]
    written = {topic: sum(phase.count for phase in PHASES if phase.topic == topic) for topic in demo.written}
    assert demo.result.messages == {"orders": written["orders"] + 5, "customers": written["customers"]}
    assert {topic: sum(part.high - part.start for part in parts) for topic, parts in demo.written.items()} == (
        demo.result.messages
    )
    assert len(demo.lines) == len(PHASES) + 5


def test_a_consumer_reads_them_with_the_unchanged_deserializer(demo: Demo) -> None:
    consumer = Consumer({"bootstrap.servers": demo.bootstrap, "group.id": "demo-test", "enable.auto.commit": False})
    consumer.assign([TopicPartition("customers", part.partition, part.start) for part in demo.written["customers"]])
    decode = AvroDeserializer(demo.client)
    context = SerializationContext("customers", MessageField.VALUE)
    read = []
    try:
        for _ in range(demo.result.messages["customers"]):
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            read.append(decode(message.value(), context))
    finally:
        consumer.close()
    counts = {phase.value_schema: phase.count for phase in PHASES}
    assert sum("loyalty_points" in customer for customer in read) == counts["customers_v2"]
    assert all(customer["name"] for customer in read)
