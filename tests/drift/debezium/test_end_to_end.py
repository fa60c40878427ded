"""The whole of it: Debezium's real connector, a real PostgreSQL, registered Avro, real scans through Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dashboard.demo.apicurio_endpoint import apicurio_endpoint
from registry.access.roles import Actor, system_actor
from registry.drift import services
from registry.drift.debezium.connector import ConnectorConfig
from registry.drift.debezium.expected_columns import key_of
from registry.drift.models import Finding, Scan, Source
from registry.drift.scan.runner import perform_scan
from tests.debezium.scenarios import SCENARIOS, WAIT, Connector, Runtime, connector
from tests.debezium.services import LogicalDatabase, ask, logical_database, schemadesk_server
from tests.drift.debezium.conftest import after_of, before_of, catalog_of, debezium_source
from tests.drift.debezium.test_expected_columns import ALTERED

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.connect, pytest.mark.slow]

STEADY = ("inventory", "key_change", "truncated", "messages", "identities", "keyless")
RULES = {
    "added": "COLUMN_ADDED",
    "dropped": "COLUMN_DROPPED",
    "renamed": "COLUMN_RENAMED",
    "retyped": "COLUMN_TYPE_CHANGED",
    "scaled": "COLUMN_SCALE_CHANGED",
    "nullability": "COLUMN_NULLABILITY_CHANGED",
    "default": "COLUMN_DEFAULT_CHANGED",
}
OF_COLUMNS = ("COLUMN_", "KEY_CHANGED", "KEY_REMOVED")


@dataclass(frozen=True)
class Shop:
    """A database, its connector and the source that scans both."""

    made: Connector
    database: LogicalDatabase
    source: Source
    by: Actor
    url: str
    token: str

    def scan(self) -> Scan:
        """One scan, done."""
        number = services.queue_scan(source_id=self.source.pk, by=self.by)
        state = perform_scan(number)
        row = Scan.objects.get(pk=number)
        assert state == "done", row.error
        return row

    def open(self) -> dict[tuple[str, str], Finding]:
        """What is open, by rule and location."""
        return {(row.rule, row.location): row for row in Finding.objects.filter(source=self.source, state="open")}

    def drift(self) -> set[tuple[str, str]]:
        """The open findings of the three-way check."""
        keys = {key for key in self.open() if key[0].startswith(OF_COLUMNS)}
        return {key for key in keys if key[0] != "COLUMN_NOT_IN_EVENTS"}

    def level(self, level: str) -> None:
        """Sets the compatibility level for all subjects."""
        ask(self.url, self.token, "PUT", "/config", {"compatibility": level})


@pytest.fixture
def shop(
    request: pytest.FixtureRequest, connect_url: str, kafka_bootstrap: str, spark_remote: str, logical_postgres: str
) -> Iterator[Shop]:
    """The scenarios' tables under one connector that writes Avro through our registry."""
    with (
        schemadesk_server(request) as (url, token),
        apicurio_endpoint(url) as endpoint,
        logical_database(logical_postgres) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("django.conf.settings.SPARK_REMOTE", spark_remote)
        runtime = replace(Runtime(connect_url, kafka_bootstrap), endpoint=endpoint, token=token)
        ask(url, token, "PUT", "/config", {"compatibility": "NONE"})
        for name in (*STEADY, "altered"):
            database.run(*before_of(name))
        more = {
            "topic.creation.groups": "spread",
            "topic.creation.spread.include": r".*\.truncated\.spread",
            "topic.creation.spread.partitions": "3",
            "topic.creation.spread.replication.factor": "1",
        }
        with connector(runtime, database, "avro", more) as made:
            made.wait_until_streaming()
            actor = system_actor("tests", channel="command")
            with debezium_source(connect_url, kafka_bootstrap, made, "shop") as source:
                yield Shop(made, database, source, actor, url, token)


def altered_steps() -> tuple[Any, list[Any], Any]:
    """The rows before, the ALTER TABLE statements, and the rows after them."""
    rows, wait, *alters, more = SCENARIOS["altered"]["after"]
    assert wait == WAIT
    return rows, alters, more


def expected_drift() -> set[tuple[str, str]]:
    keys = set()
    for table, case in ALTERED.items():
        keys |= {(RULES[change], f"altered.{table}.{column}") for change, column in case["columns"]}
        if "key" in case:
            keys.add(("KEY_CHANGED" if case["key"]["table"] else "KEY_REMOVED", f"altered.{table}"))
    return keys


@pytest.mark.requirement("DEB-1", "DEB-2", "DEB-3", "DEB-4", "DEB-5", "DEB-7", "CARD-3")
def test_from_the_first_row_to_the_failed_task(shop: Shop) -> None:
    rows, alters, more_rows = altered_steps()
    for name in STEADY:
        shop.database.run(*after_of(name))
    shop.database.run(rows)
    shop.made.settled()
    in_step(shop)
    after_the_ddl(shop, alters)
    after_the_next_rows(shop, more_rows)
    dropped(shop)
    refused_key(shop)
    refused(shop)


def in_step(shop: Shop) -> None:
    """All operations happened, and nothing drifts."""
    read = shop.scan().read
    assert shop.drift() == set()
    keys = shop.open()
    prefix = shop.made.prefix
    assert ("REPLICA_IDENTITY_MISSING", "keyless.log") in keys
    assert ("REPLICA_IDENTITY_MISSING", "identities.by_nothing") in keys
    assert ("DELETE_KEYS_WRONG", "identities.by_index") in keys
    assert ("TRUNCATE_OUT_OF_ORDER", f"{prefix}.truncated.spread") in keys
    assert ("TRUNCATE_OUT_OF_ORDER", f"{prefix}.truncated.alone") not in keys
    assert ("VALUES_UNAVAILABLE", f"{prefix}.identities.by_default") in keys
    assert {rule for rule, _ in keys} == {
        "REPLICA_IDENTITY_MISSING", "DELETE_KEYS_WRONG", "TABLE_WITHOUT_KEY", "TRUNCATE_OUT_OF_ORDER", "VALUES_UNAVAILABLE",
    }  # fmt: skip

    tables = {row["table"]: row for row in read["tables"]}
    customers = tables["inventory.customers"]
    assert customers["events"] == {"c": 1, "u": 1, "d": 1, "r": 3, "t": 0}
    assert (customers["tombstones"], customers["key_changes"], customers["state"]) == (1, 0, "in_step")
    assert (customers["key"], customers["topic"]) == (["id"], f"{prefix}.inventory.customers")
    orders = tables["key_change.orders"]
    assert (orders["key_changes"], orders["state"], orders["events"]["d"]) == (1, "in_step", 1)
    assert tables["keyless.log"]["refused"] == ["UPDATE", "DELETE"]
    assert read["message_events"] == [{"topic": f"{prefix}.message", "messages": 5, "in_transaction": 2}]
    assert read["connector"]["state"] == "RUNNING"
    assert [task["state"] for task in read["connector"]["tasks"]] == ["RUNNING"]
    assert read["slot"]["active"] is True
    assert read["slot"]["wal_status"] == "reserved"


def after_the_ddl(shop: Shop, alters: list[Any]) -> None:
    """No row was written since: events and registered schemas are behind, and nothing new is read."""
    shop.database.run(*alters)
    read = shop.scan().read
    assert read["messages"] == 0
    assert shop.drift() == expected_drift()
    for (rule, location), finding in shop.open().items():
        if (rule, location) in expected_drift():
            assert finding.evidence["behind"] == ["registered", "events"], location
            assert "no row has been written since" in finding.sentence
    renamed = shop.open()["COLUMN_RENAMED", "altered.renamed.before"]
    assert "looks renamed to after (no column has ever been dropped from the table)" in renamed.sentence
    assert {row["table"] for row in read["tables"] if row["state"] == "drift"} == {
        f"altered.{table}" for table, case in ALTERED.items() if case["columns"] or "key" in case
    }


def after_the_next_rows(shop: Shop, rows: Any) -> None:
    """The rows bring the new schemas: everything is in step again, and the findings are resolved."""
    shop.database.run(rows)
    shop.made.settled()
    shop.scan()
    assert shop.drift() == {("KEY_REMOVED", "altered.key_dropped")}  # its subject of keys is still there
    assert shop.open()["KEY_REMOVED", "altered.key_dropped"].evidence["behind"] == ["registered"]
    assert Finding.objects.filter(source=shop.source, rule="COLUMN_RENAMED", state="resolved").count() == 1


def dropped(shop: Shop) -> None:
    """A dropped table sends nothing: nothing is read, and it is found all the same, in each scan."""
    topic = f"{shop.made.prefix}.truncated.alone"
    assert ("TABLE_DROPPED", topic) not in shop.open()
    shop.database.run("DROP TABLE truncated.alone")
    for _ in range(2):
        assert shop.scan().read["messages"] == 0
        assert "no longer exists in database" in shop.open()["TABLE_DROPPED", topic].sentence


def refused_key(shop: Shop) -> None:
    """A primary key with a column more: the value's schema stays, the key's is refused and fails the task."""
    connect = shop.made.runtime.connect
    shop.level("BACKWARD")
    shop.database.run("ALTER TABLE inventory.customers DROP CONSTRAINT customers_pkey, ADD PRIMARY KEY (id, email)")
    shop.scan()
    foretold = shop.open()["NEXT_ROW_REJECTED", "inventory.customers (key)"]
    assert f"{shop.made.prefix}.inventory.customers-key is BACKWARD" in foretold.sentence
    assert ("NEXT_ROW_REJECTED", "inventory.customers") not in shop.open()
    shop.database.run("INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('A', 'B', 'c')")
    failed = connect.wait_until(shop.made.name, lambda status: "FAILED" in status.tasks, seconds=180)
    assert f"{shop.made.prefix}.inventory.customers-key" in failed.failure
    shop.level("NONE")
    connect.restart_failed(shop.made.name)
    shop.made.wait_until_streaming()
    shop.made.settled()
    shop.scan()
    assert ("NEXT_ROW_REJECTED", "inventory.customers (key)") not in shop.open()


def refused(shop: Shop) -> None:
    """What is foretold comes true: the registry refuses the next row's schema, and the task fails behind RUNNING."""
    shop.level("BACKWARD")
    shop.database.run("ALTER TABLE inventory.customers ALTER COLUMN email TYPE int USING 1")
    shop.scan()
    foretold = shop.open()["NEXT_ROW_REJECTED", "inventory.customers"]
    assert f"{shop.made.prefix}.inventory.customers-value is BACKWARD" in foretold.sentence
    shop.database.run("INSERT INTO inventory.customers (first_name, last_name, email) VALUES ('A', 'B', 2)")
    deadline = time.monotonic() + 180
    while shop.made.runtime.connect.status(shop.made.name).running:
        assert time.monotonic() < deadline, "the task didn't fail"
        time.sleep(0.2)
    read = shop.scan().read
    failed = shop.open()["CONNECTOR_TASK_FAILED", f"{shop.made.name} task 0"]
    assert failed.evidence["state"] == "RUNNING"
    assert "restart?includeTasks=true&onlyFailed=true" in failed.remedy
    assert read["connector"]["tasks"][0]["state"] == "FAILED"


@pytest.mark.requirement("DEB-2", "DEB-6")
def test_what_replaces_a_primary_key_and_what_the_connector_refuses(
    connect_url: str, kafka_bootstrap: str, logical_postgres: str
) -> None:
    """Facts of the connector that the judgement goes by."""
    runtime = Runtime(connect_url, kafka_bootstrap)
    with logical_database(logical_postgres) as database:
        database.run(
            "CREATE SCHEMA s",
            "CREATE TABLE s.may_be_null (a int, b int, UNIQUE (b))",
            "CREATE TABLE s.partial (a int NOT NULL, b int)",
            "CREATE UNIQUE INDEX first_partial ON s.partial (a) WHERE b > 0",
            "CREATE TABLE s.several (a int NOT NULL, b int NOT NULL, c int NOT NULL)",
            "CREATE UNIQUE INDEX several_z ON s.several (a)",
            "CREATE UNIQUE INDEX several_b ON s.several (b, c)",
            "CREATE UNIQUE INDEX several_a ON s.several ((a + 1))",
        )
        names = ("may_be_null", "partial", "several")
        with connector(runtime, database, "json_schema") as made:
            made.wait_until_streaming()
            columns = {"may_be_null": "1, 2", "partial": "1, 2", "several": "1, 2, 3"}
            database.run(*[f"INSERT INTO s.{name} VALUES ({columns[name]})" for name in names])
            keys = {event.topic.rpartition(".")[2]: json.loads(event.key or b"null") for event in made.settled()}
            tables = {table.name: table for table in catalog_of(database).tables}
            for name in names:
                key_columns = key_of(tables[name], ConnectorConfig(made.name, made.prefix))
                assert tuple(sorted(keys[name]["payload"])) == key_columns, name
            database.run('CREATE TABLE s.cases (id int PRIMARY KEY, "Name" text, name text)')
            database.run("INSERT INTO s.cases VALUES (1, 'a', 'b')")
            deadline = time.monotonic() + 180
            while (status := runtime.connect.status(made.name)).running:
                assert time.monotonic() < deadline, "the task didn't fail"
                time.sleep(0.2)
            assert "differ only by case" in str(status)


def test_the_cases_name_every_table_that_is_altered() -> None:
    tables = {text.split()[2].partition(".")[2] for text in SCENARIOS["altered"]["before"]}
    assert set(ALTERED) == tables - {"moved"}
