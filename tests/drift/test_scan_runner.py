"""What becomes of scans: claims, leases, cancelling, and nothing done twice."""

from __future__ import annotations

import socket
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift import selectors, services
from registry.drift.models import Cluster, Scan, SchemaUse, Source, Topic
from registry.drift.scan import db_retry
from registry.drift.scan.persistence import keep_result
from registry.drift.scan.runner import perform_scan
from registry.drift.sources import SOURCES
from registry.drift.sources.base import ScanResult
from registry.errors import (
    BrokerUnavailable,
    ClusterNotFound,
    InvalidCheckpoint,
    InvalidSource,
    NotAllowed,
    ScanInterrupted,
    SchemadeskError,
    WrongState,
)
from tests.drift.scans import READ, claim, framed, judged, make_source, scan, states, topic
from tests.waiting import ends_soon, until

pytestmark = pytest.mark.requirement("CARD-3")


@pytest.fixture
def source(registries: None) -> Source:
    return make_source(every_seconds=60, next_scan_at=timezone.now())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db_retry, "PATIENCE", (0.0, 0.0))


class Fake:
    """A kind of source whose scan is a function of the test's."""

    def __init__(self, look: Any) -> None:
        self.look = look

    def check(self, draft: Any) -> str:
        return str(draft.name)

    def scan(self, source: Source, *, tag: str, on_progress: Any) -> ScanResult:
        return self.look(on_progress)


@pytest.mark.parametrize(("complete", "nothing"), [(False, False), (True, True)])
def test_what_was_not_read_is_not_scanned(source: Source, system: Actor, complete: bool, nothing: bool) -> None:
    last = scan(source, system, complete=complete, read=READ | {"nothing": nothing})
    assert selectors.get_scan(last.pk).verdict == ("not scanned" if nothing else "scanned")


def test_a_scan_is_claimed_once(source: Source, system: Actor) -> None:
    number = services.queue_scan(source_id=source.pk, by=system)
    assert services.queue_scan(source_id=source.pk, by=system) == number, "two clicks made two scans"
    assert services.claim_scan(number) is not None
    assert services.claim_scan(number) is None
    assert perform_scan(number) == "not claimed"
    with pytest.raises(IntegrityError), transaction.atomic():
        Scan.objects.create(source=source, state="queued", queued_by="x")


def test_a_lost_worker_s_scan_goes_to_another_and_its_late_result_is_dropped(source: Source, system: Actor) -> None:
    lost = claim(source, system)
    assert services.reclaim_lost_scans() == []
    assert services.lost_tags() == []
    Scan.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert services.lost_tags() == [lost.tag]
    assert services.reclaim_lost_scans() == [lost.scan_id]
    again = services.claim_scan(lost.scan_id)
    assert again is not None
    assert again.tag != lost.tag
    assert not services.renew_lease(lost)
    observations = (framed(),)
    assert not keep_result(lost, ScanResult((judged("a"),), READ, True, (topic(),), observations))
    assert keep_result(again, ScanResult((judged("b"),), READ, True, (topic(),), observations))
    assert not keep_result(again, ScanResult((judged("b"),), READ, True, (topic(),), observations)), "kept twice"
    assert states() == {"finding b": "open"}
    assert SchemaUse.objects.get().messages == 5
    assert (Topic.objects.get().messages, Topic.objects.get().positions) == (5, {"0": 5})


def test_a_scan_whose_workers_keep_dying_ends_with_the_reason(source: Source, system: Actor) -> None:
    number = services.queue_scan(source_id=source.pk, by=system)
    for _ in range(services.MAX_ATTEMPTS):
        assert services.claim_scan(number) is not None
        Scan.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        services.reclaim_lost_scans()
    row = Scan.objects.get()
    assert row.state == "failed"
    assert "3 times" in row.error


def test_what_is_due_is_queued_once(source: Source, system: Actor) -> None:
    first = services.queue_due_scans(by=system)
    assert len(first) == 1
    assert services.queue_due_scans(by=system) == first, "a scan whose message was lost is offered again"
    assert Scan.objects.count() == 1


def test_a_broker_that_does_not_answer_ends_the_scan_and_keeps_the_findings(
    source: Source, system: Actor, settings: Any
) -> None:
    settings.KAFKA_BOOTSTRAP = "127.0.0.1:1"
    scan(source, system, judged())
    number = services.queue_scan(source_id=source.pk, by=system)
    for pause in services.RETRIES:
        before = timezone.now()
        assert perform_scan(number) == "waiting"
        row = Scan.objects.get(pk=number)
        assert row.retry_at is not None
        assert row.retry_at >= before + timedelta(seconds=pause)
        assert (row.state, "127.0.0.1:1" in row.error) == ("queued", True)
        assert perform_scan(number) == "not claimed"
        Scan.objects.update(retry_at=timezone.now())
    assert perform_scan(number) == "failed"
    assert "127.0.0.1:1" in Scan.objects.get(pk=number).error
    assert states() == {"finding a": "open"}


def test_what_a_broker_that_was_away_kept_from_a_scan_is_read_by_further_ones(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is kept at once; the rest has the pauses of a scan that could read nothing, and no more."""
    result = ScanResult((judged(),), READ, False, (topic(problem="a broker is away", waits=True),), waits="Gone away.")
    monkeypatch.setitem(SOURCES, "kafka", Fake(lambda _: result))
    number = services.queue_scan(source_id=source.pk, by=system)
    for attempt, pause in enumerate(services.RETRIES, start=2):
        before = timezone.now()
        assert perform_scan(number) == "done"
        assert (states(), Topic.objects.get().positions) == ({"finding a": "open"}, {"0": 5})
        rest = Scan.objects.get(state="queued")
        assert rest.pk > number
        assert rest.retry_at is not None
        assert rest.retry_at >= before + timedelta(seconds=pause)
        assert (rest.error, rest.phase) == (
            "Gone away.", f"waiting {pause} s for an unavailable server (attempt {attempt} of 5)"
        )  # fmt: skip
        assert perform_scan(rest.pk) == "not claimed"
        number = rest.pk
        Scan.objects.filter(pk=number).update(retry_at=timezone.now())
    assert perform_scan(number) == "done"
    assert not Scan.objects.filter(state="queued").exists()


def test_no_further_scan_is_queued_where_the_next_one_comes_sooner(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = ScanResult((), READ, False, (topic(),), waits="Gone away.")
    monkeypatch.setitem(SOURCES, "kafka", Fake(lambda _: result))
    soon = timezone.now() + timedelta(seconds=services.RETRIES[0] - 2)
    Source.objects.update(every_seconds=60, next_scan_at=soon)
    assert perform_scan(services.queue_scan(source_id=source.pk, by=system)) == "done"
    assert not Scan.objects.filter(state="queued").exists()


def test_waiting_is_no_death_of_a_worker(source: Source, system: Actor) -> None:
    number = services.queue_scan(source_id=source.pk, by=system)
    for _ in services.RETRIES:
        claimed = services.claim_scan(number)
        assert claimed is not None
        assert services.postpone_scan(claimed, reason="the broker is away")
        assert not services.postpone_scan(claimed, reason="twice")
        Scan.objects.update(retry_at=None)
    assert services.claim_scan(number) is not None
    Scan.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert services.reclaim_lost_scans() == [number]


def test_a_first_slice_that_took_too_long_is_smaller_the_next_time(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then as large as a tenth of the time allows, by what the last scan read."""

    def too_slow(_progress: Any) -> Any:
        raise ScanInterrupted("the scan reached its deadline", reason="deadline", slice=10_000)

    monkeypatch.setitem(SOURCES, "kafka", Fake(too_slow))
    assert perform_scan(services.queue_scan(source_id=source.pk, by=system)) == "failed"
    source.refresh_from_db()
    assert source.first_slice == 2_500
    for read, first in (
        ({"messages": 5, "seconds": 2.0}, 2_500),  # it had no more to read
        ({"messages": 3_000, "seconds": 300.0, "bound_reached": "deadline"}, 1_000),  # Spark's queries took the time
        ({"messages": 1_000, "seconds": 300.0, "bound_reached": "deadline"}, 1_000),
        ({"messages": 9_000, "seconds": 30.0}, 9_000),
        ({"messages": 50_000, "seconds": 1.0}, 50_000),
        ({"messages": 2_000, "seconds": 300.0, "bound_reached": "deadline"}, 200),
        ({"messages": 220, "seconds": 300.0, "bound_reached": "deadline"}, 200),
    ):
        scan(source, system, read=READ | read)
        source.refresh_from_db()
        assert source.first_slice == first


@pytest.mark.django_db(transaction=True)
def test_a_scan_that_was_cancelled_keeps_nothing_and_stops(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(source, system, judged("a"))
    number = services.queue_scan(source_id=source.pk, by=system)

    def look(on_progress: Any) -> ScanResult:
        tag = services.cancel_scan(scan_id=number, by=system)
        assert tag == Scan.objects.get(pk=number).tag != ""
        for _ in range(600):  # a minute
            on_progress(1, 2, "reading")
            time.sleep(0.1)
        return ScanResult((judged("b"),), READ, True, (topic(),))

    monkeypatch.setitem(SOURCES, "kafka", Fake(look))
    with ends_soon():
        assert perform_scan(number) == "cancelled"
    row = Scan.objects.get(pk=number)
    assert (row.state, row.read, "tests" in row.error) == ("cancelled", None, True)
    assert states() == {"finding a": "open"}
    with pytest.raises(WrongState):
        services.cancel_scan(scan_id=number, by=system)


def test_a_queued_scan_is_cancelled_before_it_begins(source: Source, system: Actor, person: Any) -> None:
    number = services.queue_scan(source_id=source.pk, by=system)
    with pytest.raises(NotAllowed):
        services.cancel_scan(scan_id=number, by=person("reader"))
    assert services.cancel_scan(scan_id=number, by=person("steward")) == ""
    assert perform_scan(number) == "not claimed"
    assert services.queue_scan(source_id=source.pk, by=system) != number


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_stops_no_scan(source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def away(*_: object, **__: object) -> bool:
        tries.append("away")
        raise OperationalError("the connection is closed")

    def look(on_progress: Any) -> ScanResult:
        monkeypatch.setattr(services, "note_progress", away)
        while len(tries) < 2:
            on_progress(1, 2, "reading")
            time.sleep(0.05)
        connection.connection.close()  # as a restart of the database does
        return ScanResult((judged(),), READ, True, (topic(),))

    monkeypatch.setitem(SOURCES, "kafka", Fake(look))
    assert perform_scan(services.queue_scan(source_id=source.pk, by=system)) == "done"
    assert states() == {"finding a": "open"}


@pytest.mark.django_db(transaction=True)
def test_progress_is_written(source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(on_progress: Any) -> ScanResult:
        on_progress(3, 7, "reading")
        until(lambda: Scan.objects.get().progress_total == 7, pause=0.05)
        assert (Scan.objects.get().progress_done, Scan.objects.get().phase) == (3, "reading")
        return ScanResult((), READ, True, (topic(),))

    monkeypatch.setitem(SOURCES, "kafka", Fake(look))
    assert perform_scan(services.queue_scan(source_id=source.pk, by=system)) == "done"


def test_an_unforeseen_error_ends_the_scan_and_is_raised(
    source: Source, system: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: Any) -> ScanResult:
        raise ZeroDivisionError

    monkeypatch.setitem(SOURCES, "kafka", Fake(look))
    number = services.queue_scan(source_id=source.pk, by=system)
    with pytest.raises(ZeroDivisionError):
        perform_scan(number)
    assert "ZeroDivisionError" in Scan.objects.get(pk=number).error


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"kind": "kafka"}, InvalidSource),
        ({"kind": "kafka", "cluster": "nowhere"}, ClusterNotFound),
        ({"kind": "kafka", "cluster": "local", "include": ["orders"]}, BrokerUnavailable),
        ({"kind": "kafka", "cluster": "local", "name": " "}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "include": "orders"}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "include": ["*" * 11]}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "mode": "sideways"}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "max_messages": 0}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "clean_scans": True}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "bootstrap": "x:1"}, InvalidSource),
        ({"kind": "kafka", "cluster": "local", "every_seconds": 1}, InvalidSource),
        ({"kind": "state_store", "name": ""}, InvalidSource),
        ({"kind": "state_store", "name": "/etc"}, InvalidCheckpoint),
        ({"kind": "state_store", "name": "/nowhere/../etc"}, InvalidCheckpoint),
        ({"kind": "state_store", "name": "/etc", "cluster": "local"}, InvalidSource),
        ({"kind": "carrier_pigeon"}, InvalidSource),
    ],
)
def test_a_source_that_cannot_be_is_refused(
    registries: None, system: Actor, settings: Any, values: dict[str, Any], error: type[SchemadeskError]
) -> None:
    settings.KAFKA_BOOTSTRAP = "127.0.0.1:1"
    Cluster.objects.create(name="local", bootstrap="127.0.0.1:1", created_by="tests")
    with pytest.raises(error):
        services.add_source(**({"registry": "dev", "name": "orders", "by": system} | values))
    assert not Source.objects.exists()


def test_a_source_is_changed_and_removed(source: Source, system: Actor, person: Any) -> None:
    with pytest.raises(NotAllowed):
        services.update_source(source_id=source.pk, by=person("reader"), mode="full")
    services.update_source(source_id=source.pk, by=person("steward"), mode="tail", tail_messages=5, exclude=["x-*"])
    info = selectors.get_source(source.pk)
    assert (info.mode, info.tail_messages, info.exclude, info.cluster) == ("tail", 5, ("x-*",), "local")
    services.update_source(source_id=source.pk, by=system, every_seconds=None)
    assert selectors.get_source(source.pk).next_scan_at is None
    with pytest.raises(InvalidSource):
        services.update_source(source_id=source.pk, by=system, name="other")
    scan(source, system, judged(), observations=(framed(),))
    running = claim(source, system)
    with pytest.raises(WrongState):
        services.remove_source(source_id=source.pk, by=system)
    services.cancel_scan(scan_id=running.scan_id, by=system)
    with pytest.raises(NotAllowed):
        services.remove_source(source_id=source.pk, by=person("approver"))
    services.remove_source(source_id=source.pk, by=person("steward"))
    assert not keep_result(running, ScanResult((), READ, True))
    services.remove_cluster(name="local", by=system)


@pytest.mark.slow
def test_a_server_that_listens_and_is_no_broker_is_distinguished(
    registries: None, system: Actor, settings: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings.KAFKA_BOOTSTRAP = address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BrokerUnavailable, match="didn't answer within"):
            services.connect_cluster(name="no broker", bootstrap=address, by=system)
