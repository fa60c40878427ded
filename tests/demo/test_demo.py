"""The demo's programs against the real parts: producers through our API, a broker, Spark, and the judgement of it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from dashboard.demo.producers import PHASES, UNKNOWN_SCHEMA_ID, DemoMessages, produce
from dashboard.demo.streaming_query import run_queries
from registry.checkpoints import read_checkpoint
from registry.checkpoints.model import observe_schemas, rows_to_read
from registry.drift.judge import Registered, RegisteredVersion, SubjectSummary, judge
from registry.observations import NullMessages, PartitionRange, StateScan, TopicRead, TopicScan, TopicTotals
from registry.pipeline import run
from tests.pipeline.topics import ranges, scan_of

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@dataclass(frozen=True)
class Demo:
    """What the producers did in this test, and where their messages lie: other tests may have written before."""

    result: DemoMessages
    lines: list[str]
    client: SchemaRegistryClient
    bootstrap: str
    written: dict[str, tuple[PartitionRange, ...]]

    def scan(self, topic: str, schemas: dict[int, str]) -> TopicScan:
        spec = scan_of(self.bootstrap, topic, schemas=schemas)
        return replace(spec, topics=(TopicRead(topic, self.written[topic]),))


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


@pytest.mark.spark
@pytest.mark.requirement("CARD-3")
def test_a_scan_finds_the_four_kinds_of_bad_messages_and_nothing_else(demo: Demo, spark_remote: str) -> None:
    subjects = ("orders-value", "customers-value", "customers-key")
    histories: dict[str, tuple[RegisteredVersion, ...]] = {}
    schemas: dict[int, str] = {}
    for subject in subjects:
        for version in demo.client.get_versions(subject):
            response = demo.client.get_version(subject, version)
            registered_version = RegisteredVersion(subject, version, schema_id=response.schema_id)
            histories[subject] = (*histories.get(subject, ()), registered_version)
            schemas[response.schema_id] = response.schema.schema_str
    registered = Registered(
        "dev",
        versions={("id", str(version.schema_id)): (version,) for history in histories.values() for version in history},
        subjects={name: SubjectSummary(name, len(history)) for name, history in histories.items()},
        histories=histories,
    )
    observations = run(demo.scan("orders", schemas), remote=spark_remote)
    findings = judge(observations, registered)
    ids = demo.result.schema_ids
    assert [(finding.rule, finding.count, finding.evidence.get("schema_id")) for finding in findings] == [
        ("UNKNOWN_SCHEMA_ID", 1, UNKNOWN_SCHEMA_ID),
        ("ID_OF_OTHER_SUBJECT", 1, ids["customers_v2"]),
        ("UNFRAMED_DATA", 1, None),
        ("UNDECODABLE", 1, ids["orders_v2"]),
    ]
    assert (
        sum(item.span.messages for item in observations if isinstance(item, NullMessages) and item.side == "value") == 1
    )
    assert [item.messages for item in observations if isinstance(item, TopicTotals)] == [demo.result.messages["orders"]]

    observations = run(demo.scan("customers", schemas), remote=spark_remote)
    assert judge(observations, registered) == []


@pytest.mark.spark
@pytest.mark.requirement("CARD-3", "DBX-1", "DBX-3", "DBX-6")
def test_the_query_runs_in_two_releases_and_its_renamed_field_is_found(
    demo: Demo, spark_remote: str, tmp_path: Path
) -> None:
    lines: list[str] = []
    path = run_queries(spark_remote, demo.bootstrap, tmp_path, lines.append)
    assert [line.rpartition(" ran ")[0] for line in lines] == [
        "streaming query customer_totals: first release",
        "streaming query customer_totals: second release",
    ]
    checkpoint = read_checkpoint(str(path), [tmp_path])
    rows = run(StateScan(str(path), rows_to_read(checkpoint)), remote=spark_remote)
    findings = judge([*observe_schemas(checkpoint), *rows], Registered("dev"))
    assert [(finding.rule, finding.evidence["variable"]) for finding in findings] == [
        ("RENAME_SUSPECTED", "totals"),
        ("STATE_SCHEMA_EVOLVED", "last_orders"),
        ("STATE_SCHEMA_EVOLVED", "totals"),
    ]
    rename = findings[0].evidence
    assert (rename["field"], rename["added"], rename["batch"]) == ("last_status", "status", 1)
    assert 0 < rename["filled_before"] == rename["rows_before"] <= 40

    run_queries(spark_remote, demo.bootstrap, tmp_path, lines.append)
    assert lines[2].startswith("streaming query customer_totals: second release")
