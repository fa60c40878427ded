"""What happens to tables under a connector (scenarios.yaml), and running it under Debezium's real one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import yaml

from dashboard.demo.shop import CONVERTERS, Connect, Converter, conversion, debezium, slot_name
from tests.debezium.events import Event, decoded, read_topics
from tests.debezium.services import PUBLICATION, LogicalDatabase

SCENARIOS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("scenarios.yaml").read_text("utf-8"))
#: prefix of the logical messages that say that a run is over; they are no part of it
MARK = "end of a run"
#: a step of a scenario: the next statement is run when the events of those before it are on their topics
WAIT = "wait"
QUICK = {"poll.interval.ms": "50"}


@dataclass(frozen=True)
class Runtime:
    """What a connector runs on: a Connect worker, its broker, and for Avro the endpoint and a token of the registry."""

    connect_url: str
    bootstrap: str
    endpoint: str = ""
    token: str = ""

    @property
    def connect(self) -> Connect:
        """The worker's REST API."""
        return Connect(self.connect_url)


@dataclass(frozen=True)
class Connector:
    """A running connector: its topics begin with `prefix` and a dot."""

    name: str
    prefix: str
    database: LogicalDatabase
    runtime: Runtime

    def wait_until_streaming(self, seconds: float = 120) -> None:
        """Returns when the snapshot is over and the slot is read."""
        self.runtime.connect.wait_until_running(self.name, seconds=seconds)
        question = (
            "SELECT count(*) FROM pg_stat_replication JOIN pg_replication_slots ON active_pid = pid "
            f"WHERE slot_name = '{slot_name(self.prefix)}' AND state = 'streaming'"
        )
        deadline = time.monotonic() + seconds
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            while connection.execute(question.encode()).fetchone() != (1,):
                assert time.monotonic() < deadline, self.runtime.connect.status(self.name)
                time.sleep(0.1)

    def settled(self, seconds: float = 120) -> list[Event]:
        """All events on its topics, once those of every statement that was run before are there."""
        deadline = time.monotonic() + seconds
        # The second mark is sent after the first arrived, and so after every message that was due before it.
        for _ in range(2):
            known = self._marks()
            self.database.run(f"SELECT pg_logical_emit_message(false, '{MARK}', '')")
            while self._marks() == known:
                status = self.runtime.connect.status(self.name)
                assert status.running, status
                assert time.monotonic() < deadline, f"a mark didn't arrive in {seconds} s: {status}"
                time.sleep(0.1)
        return [event for event in self.events() if not is_mark(event)]

    def _marks(self) -> int:
        return sum(is_mark(event) for event in read_topics(self.runtime.bootstrap, f"{self.prefix}.message"))

    def events(self) -> list[Event]:
        """All events on its topics now."""
        return read_topics(self.runtime.bootstrap, f"{self.prefix}.")


def is_mark(event: Event) -> bool:
    """Whether it is one of `settled`'s own messages."""
    return event.topic.endswith(".message") and MARK.encode() in (event.key or b"")


@contextmanager
def connector(
    runtime: Runtime,
    database: LogicalDatabase,
    converter: Converter,
    more: Mapping[str, str] | None = None,
    *,
    prefix: str = "",
) -> Iterator[Connector]:
    """A connector on the database, made over REST and deleted afterwards; it needn't run when the block is entered.

    Without a `prefix` its topics get one that no other has.
    """
    prefix = prefix or f"{converter}_{secrets.token_hex(3)}"
    converting = conversion(converter, endpoint=runtime.endpoint, token=runtime.token)
    configuration = debezium(
        database.login, prefix=prefix, publication=PUBLICATION, more={**QUICK, **converting, **(more or {})}
    )
    runtime.connect.put(prefix, configuration)
    try:
        yield Connector(prefix, prefix, database, runtime)
    finally:
        runtime.connect.delete(prefix)


@dataclass(frozen=True)
class Run:
    """What the scenarios made of a connector: all events with `prefix` at the beginning of their topics, and what
    PostgreSQL said to the statements that it refused."""

    prefix: str
    converter: Converter
    events: list[Event]
    refusals: Mapping[str, str]
    schemas: Mapping[int, dict[str, Any]] = field(default_factory=dict)

    def of(self, scenario: str) -> list[Event]:
        """The events of a scenario, logical messages among them where it is theirs."""
        begins = [f"{self.prefix}.{scenario}."]
        if scenario == "messages":
            begins.append(f"{self.prefix}.message")
        return [event for event in self.events if event.topic.startswith(tuple(begins))]

    def on(self, table: str) -> list[Event]:
        """The events of `SCHEMA.TABLE`."""
        return [event for event in self.events if event.topic == f"{self.prefix}.{table}"]

    def value(self, event: Event) -> Any:
        """The event's value, decoded."""
        return decoded(event.value, self.converter, self.schemas)

    def key(self, event: Event) -> Any:
        """The event's key, decoded."""
        return decoded(event.key, self.converter, self.schemas)


def scenarios_of(converter: Converter) -> dict[str, dict[str, Any]]:
    """The scenarios that are run with a converter, by name."""
    return {name: found for name, found in SCENARIOS.items() if converter in found.get("converters", CONVERTERS)}


def run_scenarios(runtime: Runtime, database: LogicalDatabase, converter: Converter, *, prefix: str = "") -> Run:
    """Runs the converter's scenarios under one connector and gives its events."""
    chosen = scenarios_of(converter)
    for name, scenario in chosen.items():
        database.run(f"CREATE SCHEMA {name}", *scenario["before"])
    spread = "|".join(rf".*\.{each['partitions']}" for each in chosen.values() if "partitions" in each)
    topics = {
        "topic.creation.groups": "spread",
        "topic.creation.spread.include": spread,
        "topic.creation.spread.partitions": "3",
        "topic.creation.spread.replication.factor": "1",
    }
    own = {name: value for scenario in chosen.values() for name, value in scenario.get("properties", {}).items()}
    with connector(runtime, database, converter, {**topics, **own}, prefix=prefix) as made:
        made.wait_until_streaming()
        refusals = {}
        for scenario in chosen.values():
            for statement in scenario["after"]:
                if statement == WAIT:
                    made.settled()
                else:
                    database.run(statement)
            for refused in scenario.get("refused", ()):
                refusals[refused["statement"]] = database.refuses(refused["statement"])
        return Run(made.prefix, converter, made.settled(), refusals)
