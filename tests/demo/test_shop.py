"""The demo's shop under Debezium's real connector, twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from psycopg.conninfo import make_conninfo

from dashboard.demo.apicurio_endpoint import apicurio_endpoint
from dashboard.demo.shop import CONNECTORS, DATABASE, READER, Connect, ShopEnvironment, write_shop
from tests.debezium.events import Event, read_topics
from tests.debezium.services import LogicalDatabase, drop_slots, schemadesk_server

pytestmark = [pytest.mark.broker, pytest.mark.connect, pytest.mark.slow]
TOPICS = ("shop.shop.customers", "shop.shop.orders", "shop.shop.stock")


def operations(events: list[Event], decode: AvroDeserializer) -> Counter[tuple[str, str | None]]:
    """How many events of each operation each Avro topic has; None is a tombstone."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for event in events:
        value = decode(event.value, None) if event.value else None
        # Logical messages also say that a step is over; the last of them may come after the connector confirmed.
        if event.topic != "shop.message":
            counts[event.topic.removeprefix("shop.shop."), value["op"] if value else None] += 1
    return counts


def test_two_days_in_the_shop(
    request: pytest.FixtureRequest,
    logical_postgres: str,
    connect_worker: tuple[str, Path],
    kafka_bootstrap: str,
) -> None:
    url, secrets = connect_worker
    lines: list[str] = []
    with schemadesk_server(request) as (registry, token), apicurio_endpoint(registry) as endpoint:
        around = ShopEnvironment(logical_postgres, url, secrets, endpoint, token)
        client = SchemaRegistryClient({"url": registry, "basic.auth.user.info": f"admin:{token}"})
        decode = AvroDeserializer(client)
        try:
            write_shop(around, lines.append)
            first = operations(read_topics(kafka_bootstrap, "shop."), decode)
            write_shop(around, lines.append)
            both = operations(read_topics(kafka_bootstrap, "shop."), decode)
            versions = {topic: client.get_versions(f"{topic}-value") for topic in TOPICS}
            latest = json.loads(client.get_latest_version("shop.shop.orders-value").schema.schema_str)
            messages = [decode(event.value, None) for event in read_topics(kafka_bootstrap, "shop.message")]
            as_json = read_topics(kafka_bootstrap, "shop_json.")
        finally:
            _close(around, kafka_bootstrap)
    assert first == Counter(
        {
            ("customers", "r"): 3,
            ("customers", "c"): 1,
            ("customers", "u"): 1,
            ("customers", "d"): 1,
            ("customers", None): 1,
            ("orders", "c"): 22,  # 20, one under its new key, one with the new column
            ("orders", "d"): 2,
            ("orders", None): 2,
            ("visits", "c"): 3,
            ("stock", "c"): 3,
            ("stock", "u"): 1,
            ("stock", "d"): 1,
            ("stock", None): 1,
            ("stock", "t"): 1,
        }
    )
    again = both - first
    assert again == first - Counter({("customers", "r"): 3})
    assert versions == {"shop.shop.customers": [1], "shop.shop.orders": [1, 2], "shop.shop.stock": [1]}
    assert "coupon" in json.dumps(latest)
    assert {json.loads(event.value)["op"] for event in as_json if event.value and "customers" in event.topic} == set(
        "rcud"
    )
    contents = Counter(message["message"]["content"] for message in messages)
    assert contents[b"The shop closes."] == contents[b"The lights are out."] == 2
    # The second run finds its connectors, and says as much as the first.
    assert len(lines) == 8
    assert lines[:4] == lines[4:]


def _close(around: ShopEnvironment, bootstrap: str) -> None:
    """Leaves nothing that another run on the same broker would meet."""
    connect = Connect(around.connect_url)
    for prefix in CONNECTORS:
        connect.delete(prefix)
    shop = LogicalDatabase(make_conninfo(around.server, dbname=DATABASE), None)  # type: ignore[arg-type]
    drop_slots(shop)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        topic for topic in admin.list_topics(timeout=60).topics if topic.startswith(tuple(f"{p}." for p in CONNECTORS))
    ]
    for future in admin.delete_topics(topics).values():
        future.result(60)
    with psycopg.connect(around.server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)".encode())
        connection.execute(f"DROP ROLE {READER}".encode())
