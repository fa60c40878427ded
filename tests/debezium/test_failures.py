"""What makes the real connector's task fail, while Kafka Connect calls the connector RUNNING."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import psycopg
import pytest

from dashboard.demo.apicurio_endpoint import apicurio_endpoint
from dashboard.demo.connect_api import Status
from dashboard.demo.connectors import Converter, slot_name
from tests.debezium.databases import LogicalDatabase, drop_slots
from tests.debezium.scenarios import Connector, Runtime, connector
from tests.debezium.server import ask, schemadesk_server

pytestmark = [pytest.mark.broker, pytest.mark.connect, pytest.mark.slow]


@dataclass(frozen=True)
class Registry:
    """A Schemadesk that converters register with."""

    runtime: Runtime
    url: str

    def level(self, level: str) -> None:
        """Sets the compatibility level for all subjects."""
        ask(self.url, self.runtime.token, "PUT", "/config", {"compatibility": level})

    def versions(self, subject: str) -> list[int]:
        """The versions of a subject."""
        found = ask(self.url, self.runtime.token, "GET", f"/subjects/{subject}/versions")
        assert isinstance(found, list)
        return found


@pytest.fixture
def registry(request: pytest.FixtureRequest, runtime: Runtime) -> Iterator[Registry]:
    with schemadesk_server(request) as (url, token), apicurio_endpoint(url) as endpoint:
        yield Registry(replace(runtime, endpoint=endpoint, token=token), url)


@pytest.fixture
def runtime_of(request: pytest.FixtureRequest, runtime: Runtime) -> Callable[[Converter], Runtime]:
    """What a connector with this converter runs on; a registry that takes everything for Avro."""

    def find(converter: Converter) -> Runtime:
        if converter != "avro":
            return runtime
        found: Registry = request.getfixturevalue("registry")
        found.level("NONE")
        return found.runtime

    return find


def failed(made: Connector) -> Status:
    """The connector's state, once its task has failed."""
    return made.runtime.connect.wait_until(made.name, lambda status: "FAILED" in status.tasks, seconds=120)


def kept_bytes(database: LogicalDatabase, slot: str) -> int:
    """How much of the log the slot keeps, in bytes."""
    with psycopg.connect(database.url) as connection:
        found = connection.execute(
            "SELECT pg_current_wal_insert_lsn() - confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s",
            [slot],
        ).fetchone()
    assert found
    return int(found[0])


def test_a_schema_that_the_registry_refuses_fails_the_task_and_goes_on_when_the_level_is_relaxed(
    registry: Registry, database: LogicalDatabase
) -> None:
    database.run(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.orders (id int PRIMARY KEY, amount int NOT NULL)",
        "INSERT INTO shop.orders VALUES (1, 5)",
    )
    registry.level("BACKWARD")
    with connector(registry.runtime, database, "avro") as made:
        made.wait_until_streaming()
        made.settled()
        database.run(
            "ALTER TABLE shop.orders ALTER COLUMN amount TYPE text", "INSERT INTO shop.orders VALUES (2, 'many')"
        )
        status = failed(made)
        assert (status.connector, status.tasks) == ("RUNNING", ("FAILED",))
        assert not status.running
        subject = f"{made.prefix}.shop.orders-value"
        assert f"{subject}: " in status.failure
        assert "incompatible" in status.failure.lower()
        assert registry.versions(subject) == [1]

        before = kept_bytes(database, slot_name(made.prefix))
        database.run(*[f"INSERT INTO shop.orders VALUES ({number}, repeat('x', 1000))" for number in range(3, 23)])
        assert kept_bytes(database, slot_name(made.prefix)) > before + 20_000

        registry.level("NONE")
        made.runtime.connect.restart_failed(made.name)
        made.wait_until_streaming()
        orders = [event for event in made.settled() if event.topic.endswith(".orders")]
        assert len(orders) == 22
        assert registry.versions(subject) == [1, 2]


NAMES = {
    "a topic's . meets another's _": (
        "json",
        ['CREATE TABLE names."a.b" (id int PRIMARY KEY)', 'CREATE TABLE names."a_b" (id int PRIMARY KEY)'],
        ['INSERT INTO names."a.b" VALUES (1)', 'INSERT INTO names."a_b" VALUES (1)'],
        "collide",
    ),
    "two columns get one name in Avro": (
        "avro",
        ['CREATE TABLE names.lines (id int PRIMARY KEY, "x-y" int, "x_y" int)'],
        ["INSERT INTO names.lines VALUES (1, 2, 3)"],
        "x_y",
    ),
    "a table's name begins with a digit": (
        "avro",
        ['CREATE TABLE names."9lives" (id int PRIMARY KEY)'],
        ['INSERT INTO names."9lives" VALUES (1)'],
        '"9lives" can\'t be a part of the name',
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_fail_the_task(
    case: str, runtime_of: Callable[[Converter], Runtime], database: LogicalDatabase
) -> None:
    converter, tables, statements, words = NAMES[case]
    database.run("CREATE SCHEMA names", *tables, *statements)
    with connector(runtime_of(converter), database, converter) as made:
        status = failed(made)
        assert status.connector == "RUNNING"
        assert words in status.failure


def test_a_deleted_connector_leaves_its_slot_which_keeps_the_log(runtime: Runtime, database: LogicalDatabase) -> None:
    database.run("CREATE TABLE public.things (id int PRIMARY KEY)")
    with connector(runtime, database, "json") as made:
        made.wait_until_streaming()
        slot = slot_name(made.prefix)
    assert database.slots() == {slot: "reserved"}
    before = kept_bytes(database, slot)
    database.run("INSERT INTO public.things SELECT generate_series(1, 1000)")
    assert kept_bytes(database, slot) > before + 50_000


def test_a_forgotten_slot_is_lost_before_it_fills_the_disk_and_a_new_one_reads_all_rows_again(
    runtime: Runtime, database: LogicalDatabase
) -> None:
    database.run("CREATE TABLE public.things (id int PRIMARY KEY)", "INSERT INTO public.things VALUES (1)")
    with connector(runtime, database, "json") as made:
        made.wait_until_streaming()
        first = len(made.settled())
    prefix, slot = made.prefix, slot_name(made.prefix)
    for _ in range(5):
        database.run("SELECT pg_logical_emit_message(false, 'much', repeat('x', 128 * 1024 * 1024))")
    database.run("CHECKPOINT")
    assert database.slots() == {slot: "lost"}
    with psycopg.connect(database.url) as connection:
        kept = connection.execute("SELECT sum(size) FROM pg_ls_waldir()").fetchone()
    assert kept
    assert kept[0] < 1.3 * 2**30

    with connector(runtime, database, "json", {"snapshot.mode": "when_needed"}, prefix=prefix) as again:
        # Neither state nor reason tells: the connector is RUNNING, and its task asks for the slot for half an hour.
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            status = again.runtime.connect.status(prefix)
            assert not status.running
            assert not status.failure
            time.sleep(0.5)
        assert status.connector == "RUNNING"
        assert database.slots() == {slot: "lost"}
        drop_slots(database)
        again.wait_until_streaming()
        things = [event for event in again.settled() if event.topic.endswith(".things")]
    assert len(things) == first + 1
    assert b'"op":"r"' in (things[-1].value or b"")
