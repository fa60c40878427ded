"""What becomes of scans and findings: claims, leases, resolution, and nothing done twice."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.roles import Actor
from registry.drift import selectors, services
from registry.drift.judge import JudgedFinding
from registry.drift.models import Finding, Scan, Source
from registry.drift.scanning import keep_result, perform_scan
from registry.drift.sources.base import ScanResult
from registry.errors import BrokerUnavailable, InvalidCheckpoint, InvalidInput, InvalidSource, NotAllowed, WrongState
from registry.subjects.models import Registry

pytestmark = pytest.mark.requirement("CARD-3")
READ = {"nothing": False, "messages": 5, "bytes": 9, "seconds": 0.1, "bound_reached": None, "partitions": [], "ids": []}


@pytest.fixture
def source(registries: None) -> Source:
    return Source.objects.create(
        registry=Registry.objects.get(name="dev"),
        kind="kafka_topic",
        name="orders",
        bootstrap="127.0.0.1:1",
        every_seconds=60,
        next_scan_at=timezone.now(),
        created_by="tests",
    )


def judged(name: str = "a", **values: Any) -> JudgedFinding:
    base = {
        "rule": "UNKNOWN_SCHEMA_ID",
        "severity": "break",
        "fingerprint": name * 64,
        "sentence": f"finding {name}",
        "remedy": "look",
        "location": "orders:0@1",
        "count": 1,
        "evidence": {"topic": "orders"},
    }
    return JudgedFinding(**(base | values))


def scan(
    source: Source, by: Actor, *found: JudgedFinding, complete: bool = True, read: dict[str, Any] | None = None
) -> Scan:
    claim = services.claim_scan(services.queue_scan(source_id=source.pk, by=by))
    assert claim is not None
    assert keep_result(claim, ScanResult(found, read or READ, complete, {"0": 5}))
    return Scan.objects.get(pk=claim.scan_id)


def states() -> dict[str, str]:
    return dict(Finding.objects.values_list("sentence", "state"))


def test_a_finding_is_one_row_however_often_it_is_seen(source: Source, system: Actor) -> None:
    scan(source, system, judged(count=1))
    scan(source, system, judged(count=7))
    finding = Finding.objects.get()
    assert finding.count == 7
    assert finding.last_seen > finding.first_seen
    assert finding.first_scan_id != finding.last_scan_id
    assert Source.objects.get().positions == {"0": 5}


def test_what_is_gone_is_resolved_and_what_comes_back_opens_again(source: Source, system: Actor) -> None:
    scan(source, system, judged("a"), judged("b"))
    scan(source, system, judged("b"))
    assert states() == {"finding a": "resolved", "finding b": "open"}
    scan(source, system, judged("a"))
    assert states() == {"finding a": "open", "finding b": "resolved"}
    assert Finding.objects.get(sentence="finding a").resolved_at is None


def test_an_acknowledged_finding_stays_so_while_it_is_seen(source: Source, system: Actor) -> None:
    scan(source, system, judged())
    services.acknowledge(finding_id=Finding.objects.get().pk, reason="known", by=system)
    scan(source, system, judged(count=3))
    assert states() == {"finding a": "acknowledged"}
    with pytest.raises(WrongState):
        services.acknowledge(finding_id=Finding.objects.get().pk, reason="again", by=system)


@pytest.mark.parametrize(("complete", "nothing"), [(False, False), (True, True)])
def test_what_was_not_read_resolves_nothing(source: Source, system: Actor, complete: bool, nothing: bool) -> None:
    scan(source, system, judged())
    last = scan(source, system, complete=complete, read=READ | {"nothing": nothing})
    assert states() == {"finding a": "open"}
    verdict = selectors.get_scan(last.pk).verdict
    assert verdict == ("not scanned" if nothing else "scanned")


def test_a_scan_is_claimed_once(source: Source, system: Actor) -> None:
    number = services.queue_scan(source_id=source.pk, by=system)
    assert services.queue_scan(source_id=source.pk, by=system) == number, "two clicks made two scans"
    assert services.claim_scan(number) is not None
    assert services.claim_scan(number) is None
    assert perform_scan(number) == "not claimed"
    with pytest.raises(IntegrityError), transaction.atomic():
        Scan.objects.create(source=source, state="queued", queued_by="x")


def test_a_lost_worker_s_scan_goes_to_another_and_its_late_result_is_dropped(source: Source, system: Actor) -> None:
    lost = services.claim_scan(services.queue_scan(source_id=source.pk, by=system))
    assert lost is not None
    assert services.reclaim_lost_scans() == []
    Scan.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert services.reclaim_lost_scans() == [lost.scan_id]
    again = services.claim_scan(lost.scan_id)
    assert again is not None
    assert again.tag != lost.tag
    assert not services.renew_lease(lost)
    assert not keep_result(lost, ScanResult((judged("a"),), READ, True))
    assert keep_result(again, ScanResult((judged("b"),), READ, True))
    assert states() == {"finding b": "open"}


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


def test_a_broker_that_does_not_answer_ends_the_scan_and_keeps_the_findings(source: Source, system: Actor) -> None:
    scan(source, system, judged())
    number = services.queue_scan(source_id=source.pk, by=system)
    assert perform_scan(number) == "failed"
    assert "127.0.0.1:1" in Scan.objects.get(pk=number).error
    assert states() == {"finding a": "open"}


@pytest.mark.parametrize(
    ("kind", "name", "bootstrap", "error"),
    [
        ("kafka_topic", "a b", "localhost:1", InvalidSource),
        ("kafka_topic", "orders", "localhost:1\nsasl.jaas.config=x", InvalidSource),
        ("kafka_topic", "orders", "127.0.0.1:1", BrokerUnavailable),
        ("state_store", "", "", InvalidSource),
        ("state_store", "/etc", "", InvalidCheckpoint),
        ("state_store", "/nowhere/../etc", "", InvalidCheckpoint),
        ("carrier_pigeon", "x", "", InvalidSource),
    ],
)
def test_a_source_that_cannot_be_is_refused(
    registries: None, system: Actor, kind: str, name: str, bootstrap: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        services.add_source(registry="dev", kind=kind, name=name, bootstrap=bootstrap, by=system)
    assert not Source.objects.exists()


def test_who_may(source: Source, person, system: Actor) -> None:
    scan(source, system, judged())
    finding = Finding.objects.get().pk
    for name in ("reader", "stranger"):
        with pytest.raises(NotAllowed):
            services.queue_scan(source_id=source.pk, by=person(name))
        with pytest.raises(NotAllowed):
            services.acknowledge(finding_id=finding, reason="x", by=person(name))
    with pytest.raises(InvalidInput):
        services.acknowledge(finding_id=finding, reason=" ", by=person("approver"))


@pytest.mark.slow
def test_a_server_that_listens_and_is_no_broker_is_told_apart(registries: None, system: Actor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(BrokerUnavailable, match="doesn't answer within"):
            services.add_source(registry="dev", kind="kafka_topic", name="orders", bootstrap=address, by=system)


def test_findings_come_worst_first(source: Source, system: Actor) -> None:
    scan(source, system, *(judged(name[0], severity=name) for name in ("notice", "break", "risk")))
    assert [info.severity for info in selectors.list_findings()] == ["break", "risk", "notice"]
