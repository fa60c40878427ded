"""What is foretold of a table's next row, held against the row: real DDL under Debezium's real connector.

A row of each table is streamed, then all tables change, then the catalog is asked, then a row is written to each: the
task fails or goes on, and the subjects get a version or don't.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboard.demo.apicurio_endpoint import apicurio_endpoint
from registry.drift.debezium.judge import summary_of
from registry.drift.models import Connector as ConnectorRow
from registry.drift.models import Source
from registry.drift.scan_context.connector import topic_facts
from registry.drift.sources.debezium import look
from tests.debezium.events import Event, read_topics
from tests.debezium.scenarios import Connector, Runtime, connector
from tests.debezium.services import LogicalDatabase, ask, logical_database, schemadesk_server
from tests.drift.debezium.conftest import debezium_source

pytestmark = [pytest.mark.broker, pytest.mark.connect, pytest.mark.slow]

CASES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("ddl_cases.yaml").read_text("utf-8"))
SIDES = ("value", "key")
SECONDS = 900
Outcomes = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Tables:
    """The tables of all cases under one connector that writes Avro through our registry."""

    made: Connector
    database: LogicalDatabase
    source: Source
    url: str
    token: str

    def topic(self, name: str) -> str:
        return f"{self.made.prefix}.ddl.{name}"

    def run(self, name: str, statements: list[str]) -> None:
        self.database.run(*[text.replace("{t}", f"ddl.{name}").replace("{n}", name) for text in statements])

    def level(self, name: str, side: str, level: str) -> None:
        ask(self.url, self.token, "PUT", f"/config/{self.topic(name)}-{side}", {"compatibility": level})

    def mode(self, name: str, side: str, mode: str) -> None:
        ask(self.url, self.token, "PUT", f"/mode/{self.topic(name)}-{side}", {"mode": mode})

    def versions(self, name: str, side: str) -> int:
        subject = f"{self.topic(name)}-{side}"
        if subject not in ask(self.url, self.token, "GET", f"/subjects?subjectPrefix={subject}"):
            return 0
        return len(ask(self.url, self.token, "GET", f"/subjects/{subject}/versions"))

    def events(self, name: str) -> list[Event]:
        topic = self.topic(name)
        return [event for event in read_topics(self.made.runtime.bootstrap, topic) if event.topic == topic]

    def foretold(self) -> Outcomes:
        """What each table's next row will do, by table and side."""
        world = look(ConnectorRow.objects.get(source=self.source))
        world = replace(world, topics=topic_facts(self.source, world, {}, ()))
        rows = {row["table"].removeprefix("ddl."): row["next_row"] for row in summary_of(world)["tables"]}
        return {name: {side: rows[name][side]["outcome"] for side in SIDES} for name in CASES}

    def outcome(self, name: str, row: str) -> dict[str, str]:
        """What a row did: a refusal is noted, then allowed, so that the other side is seen too."""
        versions = {side: self.versions(name, side) for side in SIDES}
        messages, refused = len(self.events(name)), set()
        self.database.run(f"INSERT INTO ddl.{name} VALUES ({row})")
        deadline = time.monotonic() + SECONDS
        connect = self.made.runtime.connect
        while len(events := self.events(name)) == messages:
            assert time.monotonic() < deadline, f"{name}: {connect.status(self.made.name)}"
            if failure := connect.status(self.made.name).failure:
                side = next(side for side in SIDES if f"{self.topic(name)}-{side}" in failure)
                refused.add(side)
                self.mode(name, side, "READWRITE")
                self.level(name, side, "NONE")
                connect.restart_failed(self.made.name)
                self.made.wait_until_streaming()
            time.sleep(0.1)
        more = {side for side in SIDES if self.versions(name, side) > versions[side]}
        outcomes = {
            side: "refused" if side in refused else "registered" if side in more else "unchanged" for side in SIDES
        }
        return outcomes if events[-1].key is not None else {**outcomes, "key": "no_key"}


@pytest.fixture
def tables(
    request: pytest.FixtureRequest, connect_url: str, kafka_bootstrap: str, logical_postgres: str
) -> Iterator[Tables]:
    with (
        schemadesk_server(request) as (url, token),
        apicurio_endpoint(url) as endpoint,
        logical_database(logical_postgres) as database,
    ):
        database.run("CREATE SCHEMA ddl")
        for name, case in CASES.items():
            database.run(*case.get("types", ()), f"CREATE TABLE ddl.{name} ({case['table']})")
        runtime = replace(Runtime(connect_url, kafka_bootstrap), endpoint=endpoint, token=token)
        with connector(runtime, database, "avro") as made:
            made.wait_until_streaming()
            with debezium_source(connect_url, kafka_bootstrap, made, "ddl") as source:
                yield Tables(made, database, source, url, token)


@pytest.mark.requirement("DEB-7")
def test_every_prediction_comes_true(tables: Tables) -> None:
    for name, case in CASES.items():
        tables.run(name, [f"INSERT INTO {{t}} VALUES ({case['first']})"])
    tables.made.settled(SECONDS)
    for name, case in CASES.items():
        for side in SIDES:
            tables.level(name, side, case.get("level", "BACKWARD"))
        tables.run(name, case.get("between", []))
    tables.made.settled(SECONDS)
    for name, case in CASES.items():
        tables.run(name, case["ddl"])
        for side in SIDES if "mode" in case else ():
            tables.mode(name, side, case["mode"])
    foretold = tables.foretold()
    # A restart reads all tables and types anew, so the rows that need none come first.
    happened = {
        name: tables.outcome(name, case["next"])
        for name, case in sorted(CASES.items(), key=lambda item: "refused" in item[1].values())
    }
    expected = {name: {side: case.get(side, "unchanged") for side in SIDES} for name, case in CASES.items()}
    assert happened == expected
    for name, case in CASES.items():
        unsure = dict.fromkeys(case.get("unsure", ()), "not_checked")
        assert foretold[name] == {**happened[name], **unsure}, name
