"""Scans: queued, claimed by one worker, kept by its lease, cancelled, given to another."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, require
from registry.drift.events import tell_of_failed
from registry.drift.models import Scan, Source
from registry.drift.services.sources import locked_source
from registry.errors import SourceNotFound, WrongState

LEASE = timedelta(seconds=45)
MAX_ATTEMPTS = 3
#: pauses before a scan is tried again whose broker or Spark was away, in seconds: a server that restarts is back by then
RETRIES = (10, 30, 60, 120)


@dataclass(frozen=True)
class ScanClaim:
    """A scan that this worker holds until its lease ends; `tag` tells its claim from a later one."""

    scan_id: int
    source_id: int
    tag: str
    attempt: int


@transaction.atomic
def queue_scan(*, source_id: int, by: Actor) -> int:
    """Put a scan into the queue, or give the one that is in it or running; the caller enqueues its task.

    Raises SourceNotFound, NotAllowed.
    """
    source = locked_source(source_id, by, "source.scan")
    unfinished = source.scans.filter(state__in=("queued", "running")).first()
    if unfinished is not None:
        if unfinished.retry_at is not None:  # whoever asks for it doesn't wait
            unfinished.retry_at = None
            unfinished.save(update_fields=["retry_at"])
        return unfinished.pk
    return source.scans.create(queued_by=by.name).pk


@transaction.atomic
def queue_due_scans(*, by: Actor) -> list[int]:
    """Queue the sources whose time has come and give all scans that wait, those whose message was lost too."""
    now = timezone.now()
    due = Source.objects.select_for_update(skip_locked=True).filter(every_seconds__isnull=False, next_scan_at__lte=now)
    for source in due:
        source.next_scan_at = now + timedelta(seconds=source.every_seconds or 0)
        source.save(update_fields=["next_scan_at"])
        if not source.scans.filter(state__in=("queued", "running")).exists():
            source.scans.create(queued_by=by.name)
    return list(_claimable().values_list("pk", flat=True))


def _claimable() -> QuerySet[Scan]:
    """Queued scans whose pause is over."""
    return Scan.objects.filter(state="queued").exclude(retry_at__gt=timezone.now())


def claim_scan(scan_id: int) -> ScanClaim | None:
    """Take a queued scan by a conditional update; None where another worker has it, it waits, or it is over."""
    now, tag = timezone.now(), f"scan-{scan_id}-{uuid.uuid4().hex[:12]}"
    claimed = (
        _claimable()
        .filter(pk=scan_id)
        .update(
            state="running",
            started_at=now,
            lease_until=now + LEASE,
            attempts=F("attempts") + 1,
            tag=tag,
            phase="starting",
            progress_done=0,
            progress_total=0,
            retry_at=None,
            error="",
        )
    )
    if not claimed:
        return None
    row = Scan.objects.filter(pk=scan_id, tag=tag).first()
    return ScanClaim(scan_id=scan_id, source_id=row.source_id, tag=tag, attempt=row.attempts) if row else None


def renew_lease(claim: ScanClaim) -> bool:
    """Keep the claim; False once the scan was cancelled or given to another worker."""
    claimed = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running")
    return bool(claimed.update(lease_until=timezone.now() + LEASE))


def note_progress(claim: ScanClaim, *, done: int, total: int, phase: str) -> bool:
    """What the page shows while the scan runs; False once the scan is no longer this worker's."""
    claimed = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running")
    return bool(claimed.update(phase=phase[:100], progress_done=done, progress_total=total))


@transaction.atomic
def fail_scan(claim: ScanClaim, *, reason: str) -> bool:
    """End a scan with its reason. Findings stay as they were: what wasn't read proves nothing.

    False where the scan is no longer this worker's: it was cancelled, or given to another.
    """
    ended = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running").update(
        state="failed", finished_at=timezone.now(), lease_until=None, error=reason[:4000]
    )
    if ended:
        tell_of_failed([claim.scan_id])
    return bool(ended)


@transaction.atomic
def postpone_scan(claim: ScanClaim, *, reason: str) -> bool:
    """Queue a scan once more, to be tried after a pause, since a server that it needs is away.

    False where its pauses are used up, or it is no longer this worker's.
    """
    row = Scan.objects.select_for_update().filter(pk=claim.scan_id, tag=claim.tag, state="running").first()
    if row is None or row.postponed >= len(RETRIES):
        return False
    pause = RETRIES[row.postponed]
    row.state, row.lease_until, row.postponed = "queued", None, row.postponed + 1
    row.retry_at, row.error = timezone.now() + timedelta(seconds=pause), reason[:4000]
    row.phase = _waiting(pause, row.postponed)
    row.save(update_fields=["state", "lease_until", "postponed", "retry_at", "error", "phase"])
    return True


def queue_rest(scan: Scan, source: Source, *, reason: str) -> int | None:
    """Queue a scan of what one that is done couldn't read, as a server was away; inside the caller's transaction.

    None where the pauses are used up, or the source's next scan comes before this one would.
    """
    if scan.postponed >= len(RETRIES):
        return None
    pause, number = RETRIES[scan.postponed], scan.postponed + 1
    now = timezone.now()
    at = now + timedelta(seconds=pause)
    if source.every_seconds and source.next_scan_at is not None and now < source.next_scan_at <= at:
        return None
    rest = source.scans.create(
        queued_by=scan.queued_by,
        attempts=number,
        postponed=number,
        retry_at=at,
        error=reason[:4000],
        phase=_waiting(pause, number),
    )
    return rest.pk


def _waiting(pause: int, number: int) -> str:
    return f"waiting {pause} s for an unavailable server (attempt {number + 1} of {len(RETRIES) + 1})"


def begin_smaller(source_id: int, *, read: int) -> None:
    """Let the next scan of a source begin with fewer messages than `read`, which took longer than its deadline."""
    Source.objects.filter(pk=source_id).update(first_slice=max(1, read // 4))


@transaction.atomic
def cancel_scan(*, scan_id: int, by: Actor) -> str:
    """End a scan that is queued or running; gives the tag of its work on Spark, empty where none runs.

    Its worker keeps nothing of it from here on; the caller enqueues `tasks.interrupt_scan` with the tag, so that Spark
    stops too. Raises SourceNotFound, WrongState where it is over, NotAllowed.
    """
    extent = require_extent(by, "schema.read")
    row = Scan.objects.select_related("source__registry").select_for_update(of=("self",)).filter(pk=scan_id).first()
    if row is None or not extent.has_all_of(row.source.registry.name):
        raise SourceNotFound(f"There is no scan {scan_id}.", scan=scan_id)
    require(by, "source.scan", registry=row.source.registry.name)
    if row.state not in ("queued", "running"):
        raise WrongState(f"Scan {scan_id} is {row.state}; only one that is queued or running can be cancelled.")
    tag = row.tag if row.state == "running" else ""
    row.state, row.finished_at, row.lease_until = "cancelled", timezone.now(), None
    row.error = f"Cancelled by {by.name}."
    row.save(update_fields=["state", "finished_at", "lease_until", "error"])
    return tag


def lost_tags() -> list[str]:
    """The tags of running scans whose lease is over: their work on Spark goes on until somebody interrupts it."""
    return list(Scan.objects.filter(state="running", lease_until__lt=timezone.now()).values_list("tag", flat=True))


@transaction.atomic
def reclaim_lost_scans() -> list[int]:
    """Queue scans whose worker is gone once more, end them after three attempts; gives the queued ones."""
    lost = Scan.objects.select_for_update(skip_locked=True).filter(state="running", lease_until__lt=timezone.now())
    again, ended = [], []
    for scan in lost:
        if scan.attempts - scan.postponed >= MAX_ATTEMPTS:
            scan.state, scan.finished_at, scan.lease_until = "failed", timezone.now(), None
            scan.error = f"Its worker died {scan.attempts} times. Check the log of the scans worker."
            ended.append(scan.pk)
        else:
            scan.state, scan.lease_until, scan.phase = "queued", None, "its worker was lost; queued again"
            again.append(scan.pk)
        scan.save(update_fields=["state", "finished_at", "lease_until", "error", "phase"])
    tell_of_failed(ended)
    return again
