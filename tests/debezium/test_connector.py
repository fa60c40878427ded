"""Debezium's real connector on a real PostgreSQL: its events in each way to write them, and what makes its task fail.

Kafka Connect calls the connector RUNNING when its task has failed.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from dashboard.demo.apicurio_endpoint import apicurio_endpoint
from dashboard.demo.shop import Converter, Status, slot_name
from tests.debezium.events import Event
from tests.debezium.scenarios import SCENARIOS, Connector, Run, Runtime, connector, scenarios_of
from tests.debezium.services import LogicalDatabase, ask, drop_slots, schemadesk_server

pytestmark = [pytest.mark.broker, pytest.mark.connect, pytest.mark.slow]


def brief(run: Run, table: str) -> list[tuple[str | None, Any]]:
    """Each event of a table as its operation (None: a tombstone) and key."""
    return [(run.value(event)["op"] if event.value else None, run.key(event)) for event in run.on(table)]


def rows(run: Run, table: str, side: str) -> list[Any]:
    """`before` or `after` of each event of a table that has a value."""
    return [run.value(event)[side] for event in run.on(table) if event.value]


def test_the_source_documents_customers(run: Run) -> None:
    table = "inventory.customers"
    found = brief(run, table)
    assert found[:3] == [("r", {"id": number}) for number in (1, 2, 3)]
    assert found[3:] == [("c", {"id": 4}), ("u", {"id": 4}), ("d", {"id": 4}), (None, {"id": 4})]
    anne = {"id": 4, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
    assert rows(run, table, "after")[3:] == [anne, {**anne, "first_name": "Anne Marie"}, None]
    # Under the default identity an update tells nothing of before, and a delete fills what isn't in the key.
    assert rows(run, table, "before")[3:] == [None, None, {"id": 4, "first_name": "", "last_name": "", "email": ""}]
    events = run.on(table)
    sources = [run.value(event)["source"] for event in events[:6]]
    assert [source["snapshot"] for source in sources] == [
        "first_in_data_collection",
        "true",
        sources[2]["snapshot"],
    ] + ["false"] * 3
    assert sources[2]["snapshot"].startswith("last")
    assert {(source["connector"], source["schema"], source["table"]) for source in sources} == {
        ("postgresql", "inventory", "customers")
    }
    assert events[6].is_tombstone


def test_a_changed_primary_key_is_three_messages_with_headers(run: Run) -> None:
    table = "key_change.orders"
    assert brief(run, table) == [
        ("r", {"id": 1}),
        ("d", {"id": 1}),
        (None, {"id": 1}),
        ("c", {"id": 100}),
        ("u", {"id": 100}),
    ]
    events = run.on(table)
    keys = [(event.header("__debezium.newkey"), event.header("__debezium.oldkey")) for event in events]
    assert [(bool(new), bool(old)) for new, old in keys] == [
        (False, False),
        (True, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert json.loads(keys[1][0] or b"") == {"id": 100}
    assert json.loads(keys[3][1] or b"") == {"id": 1}


def test_a_truncate_has_no_key_and_lies_on_one_of_the_partitions(run: Run) -> None:
    assert brief(run, "truncated.alone") == [("c", {"id": 1}), ("c", {"id": 2}), ("c", {"id": 3}), ("t", None)]
    spread = run.on("truncated.spread")
    assert {event.partition for event in spread} == {0, 1, 2}
    truncates = [event for event in spread if run.value(event)["op"] == "t"]
    assert len(truncates) == 1
    assert truncates[0].key is None
    # Rows from before and after it lie on other partitions: their order against it is lost.
    assert sum(event.partition != truncates[0].partition for event in spread) > 0


def test_logical_messages_with_and_without_a_transaction(run: Run) -> None:
    events = run.on("message")
    assert [run.key(event) for event in events] == [{"prefix": "foo"}, {"prefix": "foo"}, {"prefix": "bytes"}]
    values = [run.value(event) for event in events]
    assert [value["op"] for value in values] == ["m"] * 3
    assert [_content(value["message"]["content"]) for value in values] == [b"bar", b"in a transaction", b"\x00\xff"]
    assert [value["source"]["txId"] is None for value in values] == [True, False, False]
    assert "after" not in values[0]


def _content(found: str | bytes) -> bytes:
    """JSON has it in base64, Avro as bytes."""
    return base64.b64decode(found) if isinstance(found, str) else found


def test_the_four_replica_identities(run: Run) -> None:
    def befores(table: str) -> list[Any]:
        return [
            value and {name: value[name] for name in ("id", "code", "name")} for value in rows(run, table, "before")
        ]

    assert befores("identities.by_default") == [None, None, {"id": 1, "code": 0, "name": None}]
    assert befores("identities.by_full") == [
        None,
        {"id": 1, "code": 10, "name": "one"},
        {"id": 1, "code": 10, "name": "changed"},
    ]
    # An index beside the primary key gives keys of a row that never was.
    assert brief(run, "identities.by_index") == [
        ("r", {"id": 1}),
        ("u", {"id": 1}),
        ("d", {"id": 0}),
        (None, {"id": 0}),
        ("c", {"id": 1}),
        ("u", {"id": 2}),
        ("d", {"id": 0}),
        (None, {"id": 0}),
    ]
    assert brief(run, "identities.by_nothing") == [("r", {"id": 1}), ("c", {"id": 2})]
    unread = "__debezium_unavailable_value"
    assert rows(run, "identities.by_default", "after")[1]["big"] == unread
    assert len(rows(run, "identities.by_full", "after")[1]["big"]) == 2500


def test_a_table_without_a_key(run: Run) -> None:
    assert brief(run, "keyless.log") == [("c", None)]
    assert brief(run, "keyless.log_full") == [("c", None), ("u", None), ("d", None), (None, None)]


@pytest.mark.parametrize(
    ("scenario", "number"),
    [(name, number) for name, found in SCENARIOS.items() for number in range(len(found.get("refused", ())))],
)
def test_postgresql_itself_refuses_what_has_no_identity(run: Run, scenario: str, number: int) -> None:
    refused = SCENARIOS[scenario]["refused"][number]
    assert refused["says"] in run.refusals[refused["statement"]]


def test_three_tables_whose_names_meet_share_one_topic(run: Run) -> None:
    assert [sorted(row) for row in rows(run, "names.a_b", "after")] == [
        ["first", "id"],
        ["id", "second"],
        ["id", "third"],
    ]
    assert {event.topic for event in run.of("names")} == {f"{run.prefix}.names.a_b", f"{run.prefix}.names.letters"}
    names = {"json": ["2nd", "größe", "id", "with space"], "avro": ["_2nd", "gr__e", "id", "with_space"]}
    expected = names["avro" if run.converter == "avro" else "json"]
    assert sorted(rows(run, "names.letters", "after")[0]) == expected


def test_alterations_show_with_the_next_row(run: Run) -> None:
    def fields(table: str) -> list[list[str]]:
        return [sorted(row) for row in rows(run, f"altered.{table}", "after")]

    assert fields("added") == [["id", "name"], ["extra", "id", "name"]]
    assert rows(run, "altered.added_required", "after")[1]["extra"] == 5
    assert fields("dropped") == [["gone", "id", "name"], ["id", "name"]]
    assert fields("renamed") == [["before", "id"], ["after", "id"]]
    assert rows(run, "altered.widened", "after") == [{"id": 1, "amount": 1}, {"id": 2, "amount": 3_000_000_000}]
    assert rows(run, "altered.retyped", "after") == [{"id": 1, "amount": 1}, {"id": 2, "amount": "many"}]
    assert rows(run, "altered.made_optional", "after")[1] == {"id": 2, "name": None}
    assert rows(run, "altered.defaulted", "after")[1] == {"id": 2, "name": "nobody"}
    assert [key for _, key in brief(run, "altered.key_extended")] == [{"id": 1}, {"id": 1, "part": 8}]
    assert [key for _, key in brief(run, "altered.key_dropped")] == [{"id": 1}, None]
    assert [key for _, key in brief(run, "altered.key_replaced")] == [{"id": 1}, {"code": 8}]
    assert (len(run.on("altered.moved")), len(run.on("altered.moved_away"))) == (1, 1)
    assert fields("recreated") == [["id", "name"], ["code", "title"]]


def test_columns_that_the_connectors_configuration_leaves_out(run: Run) -> None:
    assert rows(run, "filtered.people", "after") == [{"id": 1, "name": "Anne"}, {"id": 2, "name": "Sally"}]
    # A key column that is left out stays in the key; but the snapshot doesn't read it, and writes a placeholder.
    assert rows(run, "filtered.badly", "after") == [{"name": "Anne"}, {"name": "Sally"}]
    assert brief(run, "filtered.badly") == [("r", {"id": 0}), ("c", {"id": 2})]
    assert brief(run, "filtered.visits") == [("r", {"page": "/"}), ("c", {"page": "/basket"})]


def test_types_that_consumers_have_to_know(run: Run) -> None:
    empty, full, happy = rows(run, "types.everything", "after")
    assert empty["id"] == 1
    assert all(value is None for name, value in empty.items() if name != "id")
    assert full["guid"] == "6f1ed002-ab5a-4c5b-9f29-d2f8a3a5c7d1"
    assert full["doc"] == '{"a": 1}'
    assert full["instant"] == "2026-01-02T01:04:05.678901Z"
    assert full["numbers"] == [1, 2, 3]
    # Lost by the connector: arrays of arrays arrive as nulls.
    assert full["matrix"] == [None, None]
    # Generated columns aren't in the log.
    assert "doubled" not in full
    assert happy["feeling"] == "happy"
    assert happy["moment"] == 2**63 - 1  # infinity


def test_each_way_to_write_events_says_the_same_number_of_them(run: Run) -> None:
    assert {name: len(run.of(name)) for name in scenarios_of(run.converter)} == {
        "inventory": 7,
        "key_change": 5,
        "truncated": 46,
        "messages": 4,
        "identities": 18,
        "keyless": 5,
        "names": 4,
        "filtered": 6,
        **({"digit": 1} if run.converter != "avro" else {}),
        "types": 3,
        "altered": 32,
    }


def test_avro_is_framed_with_ids_of_the_topics_own_subjects(avro_run: Run) -> None:
    for event in avro_run.events:
        for side, data in (("key", event.key), ("value", event.value)):
            if data is None:
                continue
            uses = avro_run.schemas[int.from_bytes(data[1:5], "big")]["versions"]
            assert f"{event.topic}-{side}" in {use["subject"] for use in uses}, (event.topic, side)


def test_how_many_versions_each_alteration_registers(avro_run: Run) -> None:
    """What the registry can't see: a longer text, and a scale that stands in a parameter is one version more."""
    found: dict[str, int] = {}
    for schema in avro_run.schemas.values():
        for use in schema["versions"]:
            subject = use["subject"].removeprefix(f"{avro_run.prefix}.")
            found[subject] = max(found.get(subject, 0), use["version"])
    values = {name.removeprefix("altered."): count for name, count in found.items() if name.startswith("altered.")}
    assert {name.removesuffix("-value"): count for name, count in values.items() if name.endswith("-value")} == {
        "added": 2,
        "added_required": 2,
        "dropped": 2,
        "renamed": 2,
        "widened": 2,
        "retyped": 2,
        "scaled": 2,
        "lengthened": 1,
        "made_optional": 2,
        "made_required": 2,
        "defaulted": 2,
        "key_extended": 1,
        "key_dropped": 1,
        "key_replaced": 1,
        "moved": 1,
        "moved_away": 1,
        "recreated": 2,
    }
    assert (values["key_extended-key"], values["key_replaced-key"], values["key_dropped-key"]) == (2, 2, 1)


def test_events_of_tables_carry_the_connectors_headers(run: Run) -> None:
    def names(event: Event) -> set[str]:
        return {name for name, _ in event.headers}

    wanted = {f"__debezium.context.{name}" for name in ("connectorLogicalName", "taskId", "connectorName", "runId")}
    assert all(names(event) >= wanted for event in run.of("inventory"))


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
