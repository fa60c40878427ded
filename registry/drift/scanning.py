"""Running one scan: claim, observe, judge, keep. Spark says what is there; the domain says whether it is drift."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, close_old_connections, transaction
from django.utils import timezone

from registry.access.roles import system_actor
from registry.audit.services import record
from registry.drift import services
from registry.drift.judge import JudgedFinding
from registry.drift.models import Finding, Scan, Source
from registry.drift.services import Claim
from registry.drift.sources import SOURCES
from registry.drift.sources.base import Place, ScanResult
from registry.errors import SchemadeskError

logger = logging.getLogger(__name__)
HEARTBEAT_SECONDS = 10
PROGRESS_SECONDS = 0.5
ACTOR = system_actor("scan")


def perform_scan(scan_id: int) -> str:
    """Run a queued scan to its end and give the state it ended in, or `not claimed` where another worker has it.

    A foreseen error ends the scan with its reason on the page. An unforeseen one does too, and is raised,
    so that the worker's log has its trace.
    """
    claim = services.claim_scan(scan_id)
    if claim is None:
        return "not claimed"
    source = Source.objects.select_related("registry").get(pk=claim.source_id)
    place = Place(registry=source.registry, name=source.name, bootstrap=source.bootstrap)
    try:
        with _heartbeat(claim):
            result = SOURCES[source.kind].scan(place, tag=claim.tag, on_progress=_Progress(claim))
    except SchemadeskError as error:
        services.fail_scan(claim, reason=error.message)
        return "failed"
    except Exception as error:
        services.fail_scan(claim, reason=f"The scan failed unexpectedly: {type(error).__name__}. See the worker's log.")
        raise
    return "done" if keep_result(claim, result) else "cancelled"


@transaction.atomic
def keep_result(claim: Claim, result: ScanResult) -> bool:
    """Store what a scan found, in one transaction; False where the scan is no longer this worker's."""
    scan = Scan.objects.select_for_update().filter(pk=claim.scan_id, tag=claim.tag, state="running").first()
    if scan is None:
        return False
    record(by=ACTOR, why=f"scan {claim.scan_id}")
    Source.objects.filter(pk=claim.source_id).update(positions=result.positions)
    for finding in result.findings:
        _keep_finding(scan, finding)
    if result.complete and not result.read.get("nothing"):
        _resolve_unseen(scan, [finding.fingerprint for finding in result.findings])
    scan.state, scan.finished_at, scan.lease_until = "done", timezone.now(), None
    scan.read, scan.phase = result.read, ""
    scan.save(update_fields=["state", "finished_at", "lease_until", "read", "phase"])
    return True


def _keep_finding(scan: Scan, judged: JudgedFinding) -> None:
    """Insert, or refresh the row of that fingerprint; a resolved one opens again, an acknowledged one stays so."""
    now = timezone.now()
    row = Finding.objects.select_for_update().filter(source_id=scan.source_id, fingerprint=judged.fingerprint).first()
    fresh = {
        "rule": judged.rule,
        "severity": judged.severity,
        "sentence": judged.sentence,
        "remedy": judged.remedy,
        "location": judged.location,
        "evidence": judged.evidence,
        "count": judged.count,
        "subject_name": str(judged.evidence.get("expected", "")),
        "last_seen": now,
        "last_scan": scan,
    }
    if row is None:
        Finding.objects.create(
            source_id=scan.source_id, fingerprint=judged.fingerprint, first_seen=now, first_scan=scan, **fresh
        )
        return
    if row.state == "resolved":
        fresh |= {"state": "open", "resolved_at": None}
    for name, value in fresh.items():
        setattr(row, name, value)
    row.save(update_fields=list(fresh))


def _resolve_unseen(scan: Scan, seen: list[str]) -> None:
    gone = Finding.objects.filter(source_id=scan.source_id).exclude(state="resolved").exclude(fingerprint__in=seen)
    gone.update(state="resolved", resolved_at=timezone.now())


class _Progress:
    """Writes progress to the scan's row, twice a second at most."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.lock = threading.Lock()
        self.next_write = 0.0

    def __call__(self, done: int, total: int, phase: str) -> None:
        with self.lock:
            if time.monotonic() < self.next_write:
                return
            self.next_write = time.monotonic() + PROGRESS_SECONDS
        services.note_progress(self.claim, done=done, total=total, phase=phase)


@contextmanager
def _heartbeat(claim: Claim) -> Iterator[None]:
    """Renews the lease while the body runs, from a thread with a database connection of its own."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            try:
                services.renew_lease(claim)
            except OperationalError:  # the next beat tries again; without any, the scan is given to another worker
                logger.warning("could not renew the lease of scan %s", claim.scan_id, exc_info=True)
            close_old_connections()

    thread = threading.Thread(target=beat, name=f"heartbeat-{claim.scan_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
