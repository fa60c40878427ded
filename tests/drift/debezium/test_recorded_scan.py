"""The connector's recorded events on a real broker, scanned through Spark: JSON with a schema in each message, and without.

What stands in for the connector is its configuration; catalog, topics and scan are real.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from dashboard.demo.shop import Converter, Login, conversion, debezium
from registry.drift.debezium.connector import read_config, read_status
from registry.drift.debezium.facts import ConnectorFacts
from registry.drift.debezium.tables import Catalog, Slot
from registry.drift.models import Cluster, Connector, Source
from registry.drift.sources import debezium as source_module
from registry.drift.sources.base import ScanResult
from registry.drift.sources.debezium import DebeziumConnector
from registry.subjects.models import Registry
from tests.debezium.events import Event, recorded
from tests.debezium.scenarios import scenarios_of
from tests.pipeline.topics import fill

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

OF_COLUMNS = ("COLUMN_", "KEY_CHANGED", "KEY_REMOVED")


def put(bootstrap: str, events: list[Event], prefix: str) -> None:
    """The events on topics of another prefix, in their partitions and order."""
    topics: dict[str, list[Event]] = {}
    for event in events:
        topics.setdefault(f"{prefix}.{event.topic.partition('.')[2]}", []).append(event)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(name, max(event.partition for event in group) + 1) for name, group in topics.items()]
    for made in admin.create_topics(new).values():
        made.result(60)
    for name, group in topics.items():
        fill(
            bootstrap,
            name,
            [(message.partition, message.key, message.value, list(message.headers)) for message in group],
        )


def database_of(events: list[Event]) -> str:
    """The database that the events were recorded of."""
    document = json.loads(next(event.value for event in events if event.value))
    return str(document.get("payload", document)["source"]["db"])


def more_of(converter: Converter) -> dict[str, str]:
    """The connector's other properties: its converters', and those of the scenarios."""
    own = [scenario.get("properties", {}) for scenario in scenarios_of(converter).values()]
    return {**conversion(converter), **{name: value for properties in own for name, value in properties.items()}}


@pytest.fixture
def scan(
    registries: None,
    kafka_bootstrap: str,
    spark_remote: str,
    catalogs: tuple[Catalog, Catalog],
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> Iterator[Any]:
    settings.EGRESS_ALLOW = ["127.0.0.1"]
    settings.SPARK_REMOTE = spark_remote

    def run(converter: Converter, catalog: Catalog, keep: Any) -> tuple[str, ScanResult]:
        prefix = f"rec_{secrets.token_hex(3)}"
        events = [event for name in scenarios_of(converter) for event in recorded(name, converter) if keep(event)]
        put(kafka_bootstrap, events, prefix)
        login = Login(1, "u", "p", "d")
        config = read_config(
            {"name": prefix, **debezium(login, prefix=prefix, publication="everything", more=more_of(converter))}
        )
        slot = Slot(prefix, "pgoutput", True, "reserved", 0, None)
        status = read_status({"connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "RUNNING"}]})
        there = replace(catalog, slots={config.slot: slot}, database=database_of(events))
        world = ConnectorFacts(config, status, there)
        monkeypatch.setattr(source_module, "look", lambda _: world)
        cluster, _ = Cluster.objects.get_or_create(name="real", bootstrap=kafka_bootstrap, created_by="tests")
        source = Source.objects.create(
            registry=Registry.objects.get(name="dev"), kind="debezium", name=prefix, cluster=cluster, created_by="tests"
        )
        Connector.objects.create(source=source, connect_url="http://127.0.0.1:1", name=prefix)
        result = DebeziumConnector().scan(source, tag=f"scan-{prefix}", on_progress=lambda *_: None)
        return prefix, result

    yield run


def drift(result: ScanResult) -> set[tuple[str, str]]:
    rules = {(finding.rule, finding.location) for finding in result.findings if finding.rule.startswith(OF_COLUMNS)}
    return {finding for finding in rules if finding[0] != "COLUMN_NOT_IN_EVENTS"}


@pytest.mark.requirement("DEB-1", "DEB-4", "DEB-5", "DEB-6", "DEB-7")
@pytest.mark.parametrize("converter", ["json", "json_schema"])
def test_the_newest_events_are_in_step_with_the_table(
    scan: Any, catalogs: tuple[Catalog, Catalog], converter: Converter
) -> None:
    prefix, result = scan(converter, catalogs[1], lambda _: True)
    assert drift(result) == set()
    rules = {(finding.rule, finding.location) for finding in result.findings}
    assert {
        ("TOPIC_SHARED", f"{prefix}.names.a_b"),
        ("EVENTS_OF_SEVERAL_TABLES", f"{prefix}.names.a_b"),
        ("TRUNCATE_OUT_OF_ORDER", f"{prefix}.truncated.spread"),
        ("TABLE_DROPPED", f"{prefix}.altered.moved"),
        ("ARRAY_ARRIVES_AS_NULL", "types.everything.matrix"),
        ("DELETE_KEYS_WRONG", "identities.by_index"),
    } <= rules
    tables = {row["table"]: row for row in result.read["tables"]}
    assert tables["inventory.customers"]["events"] == {"c": 1, "u": 1, "d": 1, "r": 3, "t": 0}
    assert tables["inventory.customers"]["state"] == "in_step"
    assert (tables["key_change.orders"]["key_changes"], tables["key_change.orders"]["tombstones"]) == (1, 1)
    assert result.read["message_events"] == [{"topic": f"{prefix}.message", "messages": 3, "in_transaction": 2}]
    assert result.complete


@pytest.mark.requirement("DEB-7")
def test_rows_from_before_the_ddl_are_behind(scan: Any, catalogs: tuple[Catalog, Catalog]) -> None:
    """Plain JSON alone: columns that came, went or have another kind of value show; what JSON doesn't tell doesn't."""
    _, result = scan(
        "json", catalogs[1], lambda event: ".altered." in event.topic and event.offset == 0 and event.value is not None
    )
    assert drift(result) == {
        ("COLUMN_ADDED", "altered.added.extra"),
        ("COLUMN_ADDED", "altered.added_required.extra"),
        ("COLUMN_DROPPED", "altered.dropped.gone"),
        ("COLUMN_RENAMED", "altered.renamed.before"),
        ("COLUMN_TYPE_CHANGED", "altered.retyped.amount"),
        ("COLUMN_ADDED", "altered.recreated.code"),
        ("COLUMN_ADDED", "altered.recreated.title"),
        ("COLUMN_DROPPED", "altered.recreated.id"),
        ("COLUMN_DROPPED", "altered.recreated.name"),
        ("KEY_CHANGED", "altered.key_extended"),
        ("KEY_CHANGED", "altered.key_replaced"),
        ("KEY_CHANGED", "altered.recreated"),
        ("KEY_REMOVED", "altered.key_dropped"),
    }
    for finding in result.findings:
        if finding.rule.startswith(OF_COLUMNS) and finding.rule != "COLUMN_NOT_IN_EVENTS":
            assert finding.evidence["behind"] == ["events"]
