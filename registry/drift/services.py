"""Sources, scans, and what becomes of findings."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.drift.models import Finding, Scan, Source
from registry.drift.sources import SOURCES
from registry.errors import FindingNotFound, InvalidInput, InvalidSource, SourceNotFound, WrongState
from registry.subjects.selectors.places import get_registry

LEASE = timedelta(seconds=45)
MAX_ATTEMPTS = 3
SHORTEST_INTERVAL = 10


@dataclass(frozen=True)
class Claim:
    """A scan that this worker holds until its lease ends; `token` tells its claim from a later one."""

    scan_id: int
    source_id: int
    tag: str
    attempt: int


@transaction.atomic
def add_source(
    *, registry: str, kind: str, name: str, by: Actor, bootstrap: str = "", every_seconds: int | None = None
) -> int:
    """Add a topic or a checkpoint to be scanned, after looking that it is there; gives the source's number.

    Raises InvalidSource, InvalidCheckpoint, BrokerUnavailable, RegistryNotFound, WrongState where it is
    there already, NotAllowed.
    """
    place = get_registry(registry)
    require(by, "source.manage", registry=place.name)
    if kind not in SOURCES:
        raise InvalidSource(f"There is no kind of source {kind!r}; the kinds are {', '.join(sorted(SOURCES))}.")
    if every_seconds is not None and not SHORTEST_INTERVAL <= every_seconds <= 2_000_000_000:
        raise InvalidSource(
            f"A source is scanned every {SHORTEST_INTERVAL} seconds or more, not every {every_seconds}."
        )
    checked = SOURCES[kind].check(name=name, bootstrap=bootstrap)
    record(by=by, why=f"add source {checked.name}")
    try:
        with transaction.atomic():
            row = Source.objects.create(
                registry=place,
                kind=kind,
                name=checked.name,
                bootstrap=checked.bootstrap,
                every_seconds=every_seconds,
                next_scan_at=timezone.now() if every_seconds else None,
                created_by=by.name,
            )
    except IntegrityError as error:
        raise WrongState(f"{checked.name} is a source of {place.name} already.") from error
    return row.pk


@transaction.atomic
def queue_scan(*, source_id: int, by: Actor) -> int:
    """Put a scan into the queue, or give the one that is in it or running; the caller enqueues its task.

    Raises SourceNotFound, NotAllowed.
    """
    source = Source.objects.select_related("registry").select_for_update(of=("self",)).filter(pk=source_id).first()
    if source is None:
        raise SourceNotFound(f"There is no source {source_id}.", source=source_id)
    require(by, "source.scan", registry=source.registry.name)
    unfinished = source.scans.filter(state__in=("queued", "running")).first()
    if unfinished is not None:
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
    return list(Scan.objects.filter(state="queued").values_list("pk", flat=True))


def claim_scan(scan_id: int) -> Claim | None:
    """Take a queued scan by a conditional update; None where another worker has it or it is over."""
    now, tag = timezone.now(), f"scan-{scan_id}-{uuid.uuid4().hex[:12]}"
    claimed = Scan.objects.filter(pk=scan_id, state="queued").update(
        state="running",
        started_at=now,
        lease_until=now + LEASE,
        attempts=F("attempts") + 1,
        tag=tag,
        phase="starting",
        progress_done=0,
        progress_total=0,
    )
    if not claimed:
        return None
    row = Scan.objects.get(pk=scan_id)
    return Claim(scan_id=scan_id, source_id=row.source_id, tag=tag, attempt=row.attempts)


def renew_lease(claim: Claim) -> bool:
    """Keep the claim; False once the scan was cancelled or given to another worker."""
    held = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running")
    return bool(held.update(lease_until=timezone.now() + LEASE))


def note_progress(claim: Claim, *, done: int, total: int, phase: str) -> None:
    """What the page shows while the scan runs."""
    Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running").update(
        phase=phase[:100], progress_done=done, progress_total=total
    )


def fail_scan(claim: Claim, *, reason: str) -> None:
    """End a scan with its reason. Findings stay as they were: what wasn't read proves nothing."""
    Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running").update(
        state="failed", finished_at=timezone.now(), lease_until=None, error=reason[:4000]
    )


@transaction.atomic
def reclaim_lost_scans() -> list[int]:
    """Queue scans whose worker is gone once more, end them after three attempts; gives the queued ones."""
    lost = Scan.objects.select_for_update(skip_locked=True).filter(state="running", lease_until__lt=timezone.now())
    again = []
    for scan in lost:
        if scan.attempts >= MAX_ATTEMPTS:
            scan.state, scan.finished_at, scan.lease_until = "failed", timezone.now(), None
            scan.error = f"Its worker died {scan.attempts} times; look into the log of the scans worker."
        else:
            scan.state, scan.lease_until, scan.phase = "queued", None, "its worker was lost; queued again"
            again.append(scan.pk)
        scan.save(update_fields=["state", "finished_at", "lease_until", "error", "phase"])
    return again


@transaction.atomic
def acknowledge(*, finding_id: int, reason: str, by: Actor) -> None:
    """Take note of a finding, with a reason. Raises FindingNotFound, InvalidInput, WrongState, NotAllowed."""
    row = (
        Finding.objects.select_for_update(of=("self",)).select_related("source__registry").filter(pk=finding_id).first()
    )
    if row is None:
        raise FindingNotFound(f"There is no finding {finding_id}.", finding=finding_id)
    require(by, "finding.decide", registry=row.source.registry.name)
    if not reason.strip():
        raise InvalidInput("Say why the finding can stay for now.")
    if row.state != "open":
        raise WrongState(f"Finding {finding_id} is {row.state}; only an open one can be acknowledged.")
    record(by=by, why=f"acknowledge finding {finding_id}")
    row.state, row.acknowledged_by, row.acknowledged_reason = "acknowledged", by.name, reason
    row.save(update_fields=["state", "acknowledged_by", "acknowledged_reason"])
