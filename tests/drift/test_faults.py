"""What goes wrong around a scan, with a real broker and a real Spark: it ends with its reason, and loses no finding.

A restart of PostgreSQL is played by ending all of its connections, several times while the scan runs: that is what a
client sees of one, but for the seconds in which none is taken.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import TopicPartition
from django.db import connection, connections
from django.utils import timezone

from dashboard.runtime.layout import Layout, free_port
from dashboard.runtime.parts import kafka_broker
from dashboard.runtime.process import Watchdog
from dashboard.runtime.programs import worker_command
from registry.access.roles import Actor
from registry.drift import selectors, services, tasks
from registry.drift.models import Finding, Scan, SchemaUse, Source, Topic
from registry.drift.scan import runner
from registry.drift.scan.runner import perform_scan
from registry.drift.sources import kafka_passes
from registry.errors import WrongState
from registry.pipeline import kafka_reader
from registry.subjects.services import register_version
from registry.subjects.versions.qualified_names import SubjectName
from tests.pipeline.topics import USER, fill, framed, make_topic, string
from tests.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.requirement("CARD-3"),
    pytest.mark.django_db(transaction=True),
]
UNKNOWN = 900_001
MANY = 200_000


@pytest.fixture
def house(registries: None, settings: Any, kafka_bootstrap: str, spark_remote: str, system: Actor) -> str:
    """Broker and Spark of the session, connected; gives the broker's address."""
    settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = kafka_bootstrap, spark_remote
    services.connect_cluster(name="real", bootstrap=kafka_bootstrap, by=system)
    return kafka_bootstrap


def register(topic: str, by: Actor) -> int:
    return register_version(registry="dev", subject=SubjectName(".", f"{topic}-value"), text=USER, by=by).schema_id


def add(by: Actor, *topics: str, cluster: str = "real", **values: Any) -> int:
    return services.add_source(
        registry="dev", kind="kafka", name=f"s-{uuid.uuid4().hex[:8]}", cluster=cluster, include=topics, by=by,
        **({"max_messages": 10**7} | values),
    )  # fmt: skip


def scan(source_id: int, by: Actor) -> Scan:
    """A scan to its end; where a server is away it is tried again at once, as often as it would be after its pauses."""
    number = services.queue_scan(source_id=source_id, by=by)
    while perform_scan(number) == "waiting":
        Scan.objects.filter(pk=number).update(retry_at=None)
    return Scan.objects.get(pk=number)


def good(schema_id: int, number: int = 5) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(0, b"k", framed(schema_id, string(f"user {n}"))) for n in range(number)]


def bad(number: int = 1) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(0, b"k", framed(UNKNOWN, b"?"))] * number


def states(source_id: int) -> dict[str, str]:
    return dict(Finding.objects.filter(source_id=source_id).values_list("rule", "state"))


@pytest.fixture(scope="module")
def big(kafka_bootstrap: str) -> str:
    """A topic that takes Spark some seconds; its values carry schema id 1."""
    topic = make_topic(kafka_bootstrap, [], partitions=4)
    value = framed(1, string("somebody"))
    fill(kafka_bootstrap, topic, ((n % 4, None, value) for n in range(MANY)), **{"queue.buffering.max.messages": 10**6})
    return topic


class Running:
    """A scan in a thread of its own; `state` is how it ended."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = ""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.state = perform_scan(self.number)
        finally:
            connections.close_all()

    def until_reading(self) -> None:
        """Returns while Spark is at work on it."""
        until(lambda: Scan.objects.get(pk=self.number).progress_total > 0, 150)
        assert Scan.objects.get(pk=self.number).state == "running"

    def ended(self, seconds: float = 200) -> Scan:
        self.thread.join(seconds)
        assert not self.thread.is_alive()
        return Scan.objects.get(pk=self.number)


def before_spark(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    """Do something after the cluster was asked for offsets and before Spark reads them."""
    channel = kafka_passes.kafka_connection

    def opened(cluster: Any) -> Any:
        do()
        return channel(cluster)

    monkeypatch.setattr(kafka_passes, "kafka_connection", opened)


# ---- the broker --------------------------------------------------------------------------------------------------


def test_a_topic_that_is_deleted_in_mid_scan_is_said_and_the_others_are_read(
    house: str, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, goes = make_topic(house, [], partitions=1), make_topic(house, [], partitions=1)
    schema_id = register(stays, system)
    for topic in (stays, goes):
        fill(house, topic, [*good(schema_id), *bad()])
    source = add(system, stays, f"{goes[:-1]}*", clean_scans=1)
    first = scan(source, system)
    assert (first.state, first.error) == ("done", "")
    count = Finding.objects.filter(source_id=source, topic__name=goes).count()
    assert count
    for topic in (stays, goes):
        fill(house, topic, good(schema_id))
    admin = AdminClient({"bootstrap.servers": house})

    def delete() -> None:
        admin.delete_topics([goes])[goes].result(60)
        time.sleep(1)

    before_spark(monkeypatch, delete)
    row = scan(source, system)
    assert (row.state, row.error) == ("done", "")
    assert row.read is not None
    assert {entry["topic"]: entry["messages"] for entry in row.read["partitions"]}[stays] == 5
    assert [entry["topic"] for entry in row.read["unreadable"]] == [goes]
    assert Topic.objects.get(name=goes).problem
    open_ones = Finding.objects.filter(source_id=source, topic__name=goes, state="open").count()
    assert open_ones == count, "what couldn't be read resolves nothing"
    assert Topic.objects.get(name=goes).positions == {"0": 6}


def test_offsets_that_expire_in_mid_scan_are_said(house: str, system: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(house, [], partitions=1)
    schema_id = register(topic, system)
    fill(house, topic, good(schema_id, 20))
    source = add(system, topic)
    admin = AdminClient({"bootstrap.servers": house})

    def expire() -> None:
        next(iter(admin.delete_records([TopicPartition(topic, 0, 15)]).values())).result(60)

    before_spark(monkeypatch, expire)
    row = scan(source, system)
    monkeypatch.undo()
    if row.state == "done" and not Topic.objects.get().problem:
        assert row.read is not None
        assert row.read["messages"] <= 5
        assert Topic.objects.get().positions == {"0": 20}
    else:
        assert "expired" in f"{row.error} {Topic.objects.get().problem}"
        again = scan(source, system)
        assert again.read is not None
        assert again.read["messages"] == 5
        assert Topic.objects.get().positions == {"0": 20}


def test_offsets_that_expired_between_two_scans_are_said(house: str, system: Actor) -> None:
    topic = make_topic(house, [], partitions=1)
    schema_id = register(topic, system)
    fill(house, topic, good(schema_id))
    source = add(system, topic)
    scan(source, system)
    fill(house, topic, good(schema_id, 10))
    admin = AdminClient({"bootstrap.servers": house})
    next(iter(admin.delete_records([TopicPartition(topic, 0, 9)]).values())).result(60)
    row = scan(source, system)
    assert row.read is not None
    assert row.read["expired"] == [{"topic": topic, "partition": 0, "start": 5, "end": 9}]
    assert row.read["messages"] == 6
    assert row.read["nothing"] is False


@pytest.fixture
def own_broker(tmp_path: Path, settings: Any, registries: None, spark_remote: str) -> Iterator[Callable[[], str]]:
    """A broker of the test's own: call to start it, on the same port each time; `stop` ends it."""
    stack = ExitStack()
    started: list[AbstractContextManager[str]] = []

    def start() -> str:
        started.append(kafka_broker(tmp_path / "kafka"))
        settings.KAFKA_BOOTSTRAP, settings.SPARK_REMOTE = stack.enter_context(started[-1]), spark_remote
        return str(settings.KAFKA_BOOTSTRAP)

    start.stop = stack.close  # type: ignore[attr-defined]
    (tmp_path / "kafka").mkdir()
    yield start
    stack.close()


def test_a_broker_that_goes_away_ends_the_scan_with_the_reason_and_it_goes_on_later(
    own_broker: Any, system: Actor
) -> None:
    bootstrap = own_broker()
    services.connect_cluster(name="own", bootstrap=bootstrap, by=system)
    topic = make_topic(bootstrap, [], partitions=1)
    schema_id = register(topic, system)
    fill(bootstrap, topic, [*good(schema_id), *bad()])
    source = add(system, topic, cluster="own", clean_scans=1, max_seconds=60)
    assert scan(source, system).state == "done"
    fill(bootstrap, topic, good(schema_id, 3))
    own_broker.stop()
    row = scan(source, system)
    assert (row.state, bootstrap in row.error) == ("failed", True)
    assert states(source)["UNKNOWN_SCHEMA_ID"] == "open"
    assert own_broker() == bootstrap
    row = scan(source, system)
    assert (row.state, row.error) == ("done", "")
    assert row.read is not None
    assert row.read["messages"] == 3


def test_a_broker_that_goes_away_between_two_slices_costs_nothing_that_was_read(
    own_broker: Any, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slices that were read are kept, the rest is read when the broker is back; nothing is counted twice."""
    bootstrap, slice_ = own_broker(), 200
    services.connect_cluster(name="own", bootstrap=bootstrap, by=system)
    topic = make_topic(bootstrap, [], partitions=1)
    schema_id = register(topic, system)
    fill(bootstrap, topic, [*bad(), *good(schema_id, 3 * slice_ - 1)])
    source = add(system, topic, cluster="own", every_seconds=86_400)
    Source.objects.update(next_scan_at=timezone.now() + timedelta(days=1), first_slice=slice_)
    monkeypatch.setattr("registry.pipeline.kafka_reader.LARGEST_SLICE", slice_)
    away_after(monkeypatch, 1, own_broker.stop)
    number = services.queue_scan(source_id=source, by=system)
    assert perform_scan(number) == "done"
    row = Scan.objects.get(pk=number)
    assert row.read is not None
    assert (row.read["messages"], row.read["nothing"]) == (slice_, False)
    assert [entry["topic"] for entry in row.read["unreadable"]] == [topic]
    assert (Topic.objects.get().positions, states(source)["UNKNOWN_SCHEMA_ID"]) == ({"0": slice_}, "open")
    rest = Scan.objects.get(state="queued")
    assert rest.retry_at is not None
    assert own_broker() == bootstrap
    monkeypatch.undo()
    Scan.objects.update(retry_at=None)
    assert perform_scan(rest.pk) == "done"
    row = Scan.objects.get(pk=rest.pk)
    assert row.read is not None
    assert (row.read["messages"], row.read["unreadable"]) == (2 * slice_, [])
    assert Topic.objects.get().positions == {"0": 3 * slice_}
    assert sum(SchemaUse.objects.filter(side="value").values_list("messages", flat=True)) == 3 * slice_


def test_a_broker_that_goes_away_before_anything_was_read_is_waited_for(
    own_broker: Any, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = own_broker()
    services.connect_cluster(name="own", bootstrap=bootstrap, by=system)
    topic = make_topic(bootstrap, [], partitions=1)
    fill(bootstrap, topic, good(register(topic, system)))
    source = add(system, topic, cluster="own")
    away_after(monkeypatch, 0, own_broker.stop)
    number = services.queue_scan(source_id=source, by=system)
    assert perform_scan(number) == "waiting"
    row = Scan.objects.get(pk=number)
    assert (row.state, row.read, row.retry_at is None) == ("queued", None, False)
    assert own_broker() == bootstrap
    monkeypatch.undo()
    Scan.objects.update(retry_at=None)
    assert perform_scan(number) == "done"
    assert Topic.objects.get().positions == {"0": 5}


def away_after(monkeypatch: pytest.MonkeyPatch, number: int, stop: Callable[[], None]) -> None:
    """Stop the broker before a scan reads its slice of that number."""
    module = import_module("registry.pipeline.run")  # the package has a function of that name
    read, left = module._read_slice, [number]

    def reading(*args: Any) -> Any:
        if left[0] == 0:
            stop()
        left[0] -= 1
        return read(*args)

    monkeypatch.setattr(module, "_read_slice", reading)


# ---- workers, the database, and people ---------------------------------------------------------------------------

WORKER = """
import django; django.setup()
from registry.drift.scan.runner import perform_scan
print(perform_scan({number}), flush=True)
"""


def program(settings: Any, *arguments: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A Python process of its own, with this test's database."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    database = urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
    environment = os.environ | {
        "DATABASE_URL": database,
        "SECRET_KEY": settings.SECRET_KEY,
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "KAFKA_BOOTSTRAP": settings.KAFKA_BOOTSTRAP,
        "SPARK_REMOTE": settings.SPARK_REMOTE,
    }
    return subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT, text=True
    )


def test_a_worker_that_is_killed_leaves_its_scan_to_another(
    house: str, big: str, system: Actor, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    assert register(big, system) == 1
    source = add(system, big, max_seconds=600)
    number = services.queue_scan(source_id=source, by=system)
    process = program(settings, "-c", WORKER.format(number=number))
    try:
        until(lambda: process.poll() is not None or Scan.objects.get(pk=number).progress_total > 0)
    finally:
        process.send_signal(signal.SIGKILL)
        output = process.communicate()[0]
    assert process.returncode == -signal.SIGKILL, output
    assert Scan.objects.get(pk=number).state == "running"
    assert services.reclaim_lost_scans() == [], "its lease isn't over"
    Scan.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    sent: list[int] = []
    monkeypatch.setattr(tasks.run_scan, "delay", sent.append)
    with caplog.at_level(logging.INFO, logger="registry.drift.scan.runner"):
        tasks.reclaim_lost_scans()
    assert sent == [number]
    # Of a killed client no further query begins; the one that ran is ended here, if it isn't over by now.
    assert any(message.startswith("interrupted scan-") for message in caplog.messages)
    assert perform_scan(number) == "done"
    assert perform_scan(number) == "not claimed"
    row = Scan.objects.get(pk=number)
    assert (row.attempts, row.error) == (2, "")
    assert sum(SchemaUse.objects.filter(topic__name=big).values_list("messages", flat=True)) == MANY
    assert Topic.objects.get(name=big).messages == MANY


@pytest.mark.requirement("CARD-3")
def test_a_backlog_larger_than_a_deadline_is_read_by_several_scans_and_counted_once(
    house: str, system: Actor, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed in the middle of it too. The deadline is as long as some slices take on this machine."""
    slice_, backlog = 2_000, 28_000
    topic = make_topic(house, [], partitions=2)
    schema_id = register(topic, system)
    fill(house, topic, ((n % 2, None, framed(schema_id, string(f"user {n}"))) for n in range(backlog)))
    source = add(system, topic, every_seconds=3600)
    number = services.queue_scan(source_id=source, by=system)
    process = program(settings, "-c", WORKER.format(number=number))
    try:
        until(lambda: process.poll() is not None or Scan.objects.get(pk=number).state == "running")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    Scan.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert services.reclaim_lost_scans() == [number]

    monkeypatch.setattr("registry.pipeline.kafka_reader.LARGEST_SLICE", slice_)
    monkeypatch.setattr("registry.pipeline.kafka_reader.SMALLEST_SLICE", slice_ // 4)
    Source.objects.update(max_messages=slice_, first_slice=slice_)
    rows = [scan(source, system), scan(source, system)]
    assert [row.read["bound_reached"] for row in rows if row.read] == ["messages", "messages"]
    took = rows[1].read["seconds"] if rows[1].read else 0
    Source.objects.update(max_messages=10**7, max_seconds=int(3 * took) + 1)
    while (left := backlog - sum(row.read["messages"] for row in rows if row.read)) and len(rows) < 40:
        Source.objects.update(first_slice=slice_)
        rows.append(scan(source, system))
    assert left == 0
    assert {(row.state, row.error) for row in rows} == {("done", "")}
    done = [row.read for row in rows if row.read]
    for number, read in enumerate(done):
        behind = backlog - sum(scan_read["messages"] for scan_read in done[: number + 1])
        assert (read["behind"]["offsets"] if read["behind"] else 0) == behind
        assert (read["bound_reached"] is None) == (behind == 0)
    assert "deadline" in {read["bound_reached"] for read in done}
    assert done[0]["behind"]["arriving_per_second"] is None, "of the first scan nobody knows what arrives"
    assert done[1]["behind"]["arriving_per_second"] == 0
    assert done[1]["behind"]["scans"] == (backlog - 2 * slice_) / slice_
    assert datetime.fromisoformat(done[1]["behind"]["caught_up_at"]) > timezone.now()
    assert sum(SchemaUse.objects.filter(topic__name=topic).values_list("messages", flat=True)) == backlog
    assert Topic.objects.get(name=topic).messages == backlog
    assert not Finding.objects.filter(source_id=source).exists()


@pytest.mark.requirement("CARD-3")
def test_a_first_slice_that_does_not_end_is_followed_by_a_single_message(
    house: str, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark takes a tenth of a second for each message: 100 s for the first slice, which has 30 s."""
    topic = make_topic(house, [], partitions=1)
    fill(house, topic, good(register(topic, system), 1_100))
    source = add(system, topic, max_seconds=60)
    read, bounds = kafka_reader.read_messages, kafka_passes._bounds

    def slowly(*args: Any) -> Any:
        return read(*args).where("reflect('java.lang.Thread', 'sleep', 100L) = 'null'")

    monkeypatch.setattr(kafka_reader, "read_messages", slowly)
    monkeypatch.setattr(kafka_passes, "_bounds", lambda source: replace(bounds(source), first_seconds=20.0))
    row = scan(source, system)
    assert (row.state, row.error) == ("done", "")
    assert row.read is not None
    count = row.read["messages"]
    assert 1 <= count < 400
    assert Topic.objects.get().positions == {"0": count}
    assert (row.read["bound_reached"], row.read["behind"]["offsets"]) == ("deadline", 1_100 - count)
    assert Source.objects.get().first_slice in range(1, 1 + count), "the next scan begins with what it can read in time"
    monkeypatch.undo()
    Source.objects.update(max_seconds=1_000)
    row = scan(source, system)
    assert row.read is not None
    assert (row.read["messages"], row.read["behind"]) == (1_100 - count, None)


def test_a_task_that_is_delivered_twice_changes_nothing(house: str, system: Actor) -> None:
    topic = make_topic(house, [], partitions=1)
    schema_id = register(topic, system)
    fill(house, topic, [*good(schema_id), *bad(2)])
    source = add(system, topic)
    number = services.queue_scan(source_id=source, by=system)
    both = [Running(number), Running(number)]
    for run in both:
        run.ended()
    assert sorted(run.state for run in both) == ["done", "not claimed"]
    uses = dict(SchemaUse.objects.filter(side="value").values_list("schema_id", "messages"))
    assert uses == {schema_id: 5, UNKNOWN: 2}
    assert Finding.objects.get(rule="UNKNOWN_SCHEMA_ID").count == 2


def test_a_scan_that_is_cancelled_ends_at_once_on_spark_too(house: str, big: str, system: Actor) -> None:
    assert register(big, system) == 1
    source = add(system, big)
    running = Running(services.queue_scan(source_id=source, by=system))
    running.until_reading()
    tag = services.cancel_scan(scan_id=running.number, by=system)
    began = time.monotonic()
    runner.interrupt_scan(tag)
    row = running.ended(120)
    print(f"a cancelled scan ended after {time.monotonic() - began:.1f} s")
    assert (running.state, row.state, row.read) == ("cancelled", "cancelled", None)
    assert not SchemaUse.objects.exists()
    assert Topic.objects.get().positions == {}
    services.update_source(source_id=source, by=system, max_messages=1000)
    row = scan(source, system)
    assert row.state == "done"
    assert row.read is not None
    assert row.read["bound_reached"] == "messages", "a bound that was reached is said"
    assert 0 < sum(Topic.objects.get().positions.values()) < MANY


def test_a_small_source_does_not_wait_for_large_ones(house: str, big: str, system: Actor, settings: Any) -> None:
    """With the worker that `up` starts, and tasks through Valkey."""
    schema_id = register(big, system)
    small_topic = make_topic(house, good(schema_id), partitions=1)
    small = add(system, small_topic, every_seconds=60)
    assert scan(small, system).state == "done"
    fill(house, small_topic, good(schema_id))
    Source.objects.filter(pk=small).update(next_scan_at=timezone.now() + timedelta(hours=1))
    large = [services.queue_scan(source_id=add(system, big), by=system) for _ in range(3)]
    layout = Layout(Path(settings.BASE_DIR), Path(settings.BASE_DIR), Watchdog())
    worker = program(settings, *worker_command("scans", 3)(layout).argv[1:], output=subprocess.DEVNULL)

    def are(state: str) -> int:
        return Scan.objects.filter(pk__in=large, state=state).count()

    try:
        tasks.queue_due_scans()
        until(lambda: are("running") == 2 and Scan.objects.filter(pk__in=large, progress_total__gt=0).exists(), 240)
        due = timezone.now()
        Source.objects.filter(pk=small).update(next_scan_at=due)
        tasks.queue_due_scans()
        until(lambda: Scan.objects.filter(source=small, started_at__gte=due).exists(), 60)
        assert are("queued") == 1 and are("running") > 0, "the backlog is still read, and the last thread is for others"
        until(lambda: Scan.objects.filter(source=small, started_at__gte=due, state="done").exists(), 120)
        row = Source.objects.get(pk=small).scans.first()
        assert row is not None and row.read is not None and row.read["messages"] == 5
    finally:
        for number in large:
            with suppress(WrongState):  # it is done
                runner.interrupt_scan(services.cancel_scan(scan_id=number, by=system))
        worker.kill()
        worker.wait()


def test_a_restart_of_the_database_stops_no_scan(house: str, big: str, system: Actor) -> None:
    assert register(big, system) == 1
    source = add(system, big, max_seconds=600)
    running = Running(services.queue_scan(source_id=source, by=system))
    running.until_reading()
    parts = urlsplit(os.environ["DATABASE_URL"])
    ended = 0
    while running.thread.is_alive():
        with psycopg.connect(urlunsplit(parts)) as other:
            query = (
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND usename = current_user AND datname = %s"
            )
            row_count = other.execute(query, [connection.settings_dict["NAME"]]).fetchone()
            ended += row_count[0] if row_count else 0
        running.thread.join(2)
    connection.close()
    row = Scan.objects.get(pk=running.number)
    assert ended > 1
    assert (running.state, row.state, row.error) == ("done", "done", "")
    assert sum(SchemaUse.objects.values_list("messages", flat=True)) == MANY


def test_a_spark_that_is_away_ends_the_scan_with_the_reason(house: str, system: Actor, settings: Any) -> None:
    topic = make_topic(house, [], partitions=1)
    register(topic, system)
    fill(house, topic, bad())
    source = add(system, topic)
    assert scan(source, system).state == "done"
    fill(house, topic, bad())
    settings.SPARK_REMOTE = f"sc://127.0.0.1:{free_port()}"
    row = scan(source, system)
    assert (row.state, "no Spark Connect server answers" in row.error) == ("failed", True)
    assert Topic.objects.get().positions == {"0": 1}
    assert states(source)["UNKNOWN_SCHEMA_ID"] == "open"


def test_a_scan_waits_for_a_spark_that_restarts(house: str, system: Actor, settings: Any) -> None:
    topic = make_topic(house, [], partitions=1)
    register(topic, system)
    fill(house, topic, bad())
    source, remote = add(system, topic), settings.SPARK_REMOTE
    number = services.queue_scan(source_id=source, by=system)
    settings.SPARK_REMOTE = f"sc://127.0.0.1:{free_port()}"
    assert perform_scan(number) == "waiting"
    row = selectors.get_scan(number)
    assert (row.state, "no Spark Connect server answers" in row.error) == ("queued", True)
    assert row.retry_at is not None
    assert row.retry_at > timezone.now()
    assert row.phase == "waiting 10 s for an unavailable server (attempt 2 of 5)"
    settings.SPARK_REMOTE = remote
    assert perform_scan(number) == "not claimed", "its pause isn't over"
    assert number not in services.queue_due_scans(by=system)
    assert services.queue_scan(source_id=source, by=system) == number, "whoever asks for it doesn't wait"
    assert services.queue_due_scans(by=system) == [number]
    assert perform_scan(number) == "done"
    row = selectors.get_scan(number)
    assert (row.error, row.retry_at) == ("", None)
    assert states(source) == {"UNKNOWN_SCHEMA_ID": "open"}


def test_no_spark_at_all_is_not_waited_for(house: str, system: Actor, settings: Any) -> None:
    topic = make_topic(house, bad(), partitions=1)
    source = add(system, topic)
    settings.SPARK_REMOTE = ""
    assert perform_scan(services.queue_scan(source_id=source, by=system)) == "failed"
