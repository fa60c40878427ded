"""What a scan knows from earlier ones, under Debezium's real connector: fields of JSON, columns, and what is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dashboard.demo.shop import Converter, slot_name
from registry.access.roles import system_actor
from registry.drift import services
from registry.drift.models import Finding, Scan, Source
from registry.drift.scan.runner import perform_scan
from tests.debezium.scenarios import Connector, Runtime, connector
from tests.debezium.services import LogicalDatabase, drop_slots, logical_database, schemadesk_server
from tests.drift.debezium.conftest import debezium_source

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.connect, pytest.mark.slow]

TABLES = (
    "CREATE SCHEMA s",
    "CREATE TABLE s.dropped (id int PRIMARY KEY, name text, gone text)",
    "CREATE TABLE s.retyped (id int PRIMARY KEY, amount int)",
    "CREATE TABLE s.added (id int PRIMARY KEY)",
    "CREATE TABLE s.swapped (id int PRIMARY KEY, a text, b text)",
    "CREATE TABLE s.key_extended (id int PRIMARY KEY, k2 int NOT NULL)",
    "CREATE TABLE s.lost (id int PRIMARY KEY)",
)
FIRST_ROWS = (
    "INSERT INTO s.dropped VALUES (1, 'x', 'y')",
    "INSERT INTO s.retyped VALUES (1, 1)",
    "INSERT INTO s.added VALUES (1)",
    "INSERT INTO s.swapped VALUES (1, 'x', 'y')",
    "INSERT INTO s.key_extended VALUES (1, 7)",
    "INSERT INTO s.lost VALUES (1)",
)
CHANGES = (
    "ALTER TABLE s.dropped DROP gone",
    "ALTER TABLE s.retyped ALTER amount TYPE text",
    "ALTER TABLE s.added ADD extra text",
    "ALTER TABLE s.swapped RENAME a TO c",
    "ALTER TABLE s.swapped RENAME b TO a",
    "ALTER TABLE s.swapped RENAME c TO b",
    "ALTER TABLE s.key_extended DROP CONSTRAINT key_extended_pkey, ADD PRIMARY KEY (id, k2)",
    "DROP TABLE s.lost",
)
NEXT_ROWS = (
    "INSERT INTO s.dropped VALUES (2, 'x')",
    "INSERT INTO s.retyped VALUES (2, 'many')",
    "INSERT INTO s.added VALUES (2, 'x')",
    "INSERT INTO s.swapped VALUES (2, 'y', 'x')",
    "INSERT INTO s.key_extended VALUES (1, 8)",
)
SWAPPED = {("COLUMN_REPLACED", "s.swapped.a"), ("COLUMN_REPLACED", "s.swapped.b")}
BEHIND = {
    ("COLUMN_DROPPED", "s.dropped.gone"),
    ("COLUMN_TYPE_CHANGED", "s.retyped.amount"),
    ("COLUMN_ADDED", "s.added.extra"),
    ("KEY_CHANGED", "s.key_extended"),
}


@dataclass(frozen=True)
class Scanned:
    """A connector, its database, and the source that scans both."""

    made: Connector
    database: LogicalDatabase
    source: Source

    def scan(self) -> Any:
        number = services.queue_scan(source_id=self.source.pk, by=system_actor("tests", channel="command"))
        state = perform_scan(number)
        row = Scan.objects.get(pk=number)
        assert state == "done", row.error
        return row.read

    def open(self) -> dict[tuple[str, str], Finding]:
        return {(row.rule, row.location): row for row in Finding.objects.filter(source=self.source, state="open")}

    def drift(self) -> set[tuple[str, str]]:
        return {key for key in self.open() if key[0].startswith(("COLUMN_", "KEY_"))}

    def states(self, read: Any) -> dict[str, str]:
        return {row["table"].removeprefix("s."): row["state"] for row in read["tables"]}


@contextmanager
def scanned(request: pytest.FixtureRequest, converter: Converter, *tables: str) -> Iterator[Scanned]:
    url, bootstrap, remote, server = (
        request.getfixturevalue(name) for name in ("connect_url", "kafka_bootstrap", "spark_remote", "logical_postgres")
    )
    with (
        schemadesk_server(request),
        logical_database(server) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("django.conf.settings.SPARK_REMOTE", remote)
        database.run(*tables)
        with connector(Runtime(url, bootstrap), database, converter) as made:
            made.wait_until_streaming()
            with debezium_source(url, bootstrap, made, "s") as source:
                yield Scanned(made, database, source)


@pytest.mark.requirement("DEB-7")
@pytest.mark.parametrize("converter", ["json", "json_schema"])
def test_json_is_compared_with_the_fields_of_earlier_scans(
    request: pytest.FixtureRequest, converter: Converter
) -> None:
    with scanned(request, converter, *TABLES) as world:
        world.database.run(*FIRST_ROWS)
        world.made.settled()
        assert set(world.states(world.scan()).values()) == {"in_step"}
        assert world.drift() == set()

        # Nothing has been written since then, so this scan reads no messages.
        world.database.run(*CHANGES)
        read = world.scan()
        assert read["messages"] == 0
        assert world.drift() == BEHIND | SWAPPED
        assert all(world.open()[key].evidence["behind"] == ["events"] for key in BEHIND)
        gone = ("TABLE_DROPPED", f"{world.made.prefix}.s.lost")
        assert gone in world.open()

        # The rows bring the changes: nothing is behind, and exchanged columns are told of once more.
        world.database.run(*NEXT_ROWS)
        world.made.settled()
        world.scan()
        assert world.drift() == SWAPPED
        assert gone in world.open()

        # Rows from before and after a change in one scan.
        world.database.run(
            "INSERT INTO s.swapped VALUES (3, 'y', 'x')",
            "INSERT INTO s.dropped VALUES (3, 'x')",
            "INSERT INTO s.added VALUES (3, 'x')",
        )
        world.made.settled()
        world.database.run(
            "ALTER TABLE s.dropped DROP name",
            "INSERT INTO s.dropped VALUES (4)",
            "ALTER TABLE s.added ADD more int",
            "INSERT INTO s.added VALUES (4, 'x', 5)",
        )
        world.made.settled()
        assert set(world.states(world.scan()).values()) == {"in_step"}
        assert world.drift() == set()
        world.database.run("ALTER TABLE s.added DROP more, DROP extra")
        assert world.scan()["messages"] == 0
        assert world.drift() == {("COLUMN_DROPPED", "s.added.extra"), ("COLUMN_DROPPED", "s.added.more")}


@pytest.mark.requirement("DEB-1", "DEB-4")
def test_partitions_and_what_is_paused_lost_or_removed(request: pytest.FixtureRequest) -> None:
    tables = (
        "CREATE SCHEMA s",
        "CREATE TABLE s.m (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE s.m_1 PARTITION OF s.m FOR VALUES FROM (0) TO (100)",
    )
    with scanned(request, "json", *tables) as world:
        partitions(world)
        removed_and_made_again(world)
        paused_and_lost(world)


def rows_by_topic(world: Scanned) -> dict[str, int]:
    world.made.settled()
    topics = [event.topic.rpartition(".")[2] for event in world.made.events() if event.topic.endswith((".m", ".m_1"))]
    return {topic: topics.count(topic) for topic in topics}


def partitions(world: Scanned) -> None:
    """Changes have the partition's name, then that of its table."""
    world.database.run("INSERT INTO s.m VALUES (1)")
    assert rows_by_topic(world) == {"m_1": 1}
    read = world.scan()
    assert (
        f"they arrive in {world.made.prefix}.s.m_1" in world.open()["PARTITIONS_PUBLISHED_SEPARATELY", "s.m"].sentence
    )
    foretold = {row["table"]: row["next_row"]["value"]["outcome"] for row in read["tables"]}
    assert foretold == {"s.m": "no_event", "s.m_1": "no_schema"}
    world.database.run(
        "ALTER PUBLICATION everything SET (publish_via_partition_root = true)", "INSERT INTO s.m VALUES (2)"
    )
    assert rows_by_topic(world) == {"m_1": 1, "m": 1}
    world.scan()
    assert not {rule for rule, _ in world.open()} & {"PARTITIONS_PUBLISHED_SEPARATELY", "TABLE_NOT_PUBLISHED"}


def removed_and_made_again(world: Scanned) -> None:
    connect, name = world.made.runtime.connect, world.made.name
    configuration = connect._ask("GET", f"/connectors/{name}/config")
    connect.delete(name)
    world.scan()
    removed = world.open()["CONNECTOR_REMOVED", name]
    assert f"Its slot {slot_name(name)} is still there and retains the database's log" in removed.sentence
    connect.put(name, configuration)
    world.made.wait_until_streaming()
    world.scan()
    assert ("CONNECTOR_REMOVED", name) not in world.open()


def paused_and_lost(world: Scanned) -> None:
    connect, name, slot = world.made.runtime.connect, world.made.name, slot_name(world.made.name)
    connect._ask("PUT", f"/connectors/{name}/pause")
    connect.wait_until(name, lambda status: status.connector == "PAUSED" and status.tasks == ("PAUSED",))
    world.scan()
    assert "is PAUSED" in world.open()["CONNECTOR_NOT_RUNNING", name].sentence
    connect._ask("PUT", f"/connectors/{name}/stop")
    connect.wait_until(name, lambda status: status.connector == "STOPPED" and not status.tasks)
    for _ in range(5):
        world.database.run("SELECT pg_logical_emit_message(false, 'much', repeat('x', 128 * 1024 * 1024))")
    world.database.run("CHECKPOINT", "DROP PUBLICATION everything")
    world.scan()
    assert "is STOPPED" in world.open()["CONNECTOR_NOT_RUNNING", name].sentence
    assert ("SLOT_LOST", f"slot {slot}") in world.open()
    assert ("PUBLICATION_MISSING", "publication everything") in world.open()
    drop_slots(world.database)
    world.scan()
    assert ("SLOT_MISSING", f"slot {slot}") in world.open()
    connect.delete(name)
    world.scan()
    assert "is gone too" in world.open()["CONNECTOR_REMOVED", name].sentence
