"""The life cycle of scans (queue, claim with a lease, postpone, cancel, reclaim), and reported deployments."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from registry.access.name_patterns import checked_pattern, covering_samples
from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.drift.events import tell_of_failed
from registry.drift.models import MAX_LABEL, MAX_URL, Deployment, Scan, Source
from registry.drift.services.sources import locked_source
from registry.errors import InvalidInput, SourceNotFound, WrongState
from registry.subjects.models import Client, Registry
from registry.subjects.models.registries import MAX_NAME
from registry.subjects.versions.lookup import get_registry

LEASE = timedelta(seconds=45)
MAX_ATTEMPTS = 3
#: seconds before a scan is retried whose broker or Spark was away: a restarting server is back by then
RETRIES = (10, 30, 60, 120)


@dataclass(frozen=True)
class ScanClaim:
    """A scan that this worker holds until its lease ends; `tag` distinguishes its claim from later ones."""

    scan_id: int
    source_id: int
    tag: str
    attempt: int


@transaction.atomic
def queue_scan(*, source_id: int, by: Actor) -> int:
    """Queue a scan, or return the queued or running one; the caller enqueues its task.

    Raises SourceNotFound, NotAllowed.
    """
    source = locked_source(source_id, by, "source.scan")
    unfinished = source.scans.filter(state__in=("queued", "running")).first()
    if unfinished is not None:
        if unfinished.retry_at is not None:  # an explicit request doesn't wait
            unfinished.retry_at = None
            unfinished.save(update_fields=["retry_at"])
        return unfinished.pk
    return source.scans.create(queued_by=by.name).pk


@transaction.atomic
def queue_due_scans(*, by: Actor) -> list[int]:
    """Queue the sources that are due; return all queued scans, including those whose message was lost."""
    now = timezone.now()
    due = Source.objects.select_for_update(skip_locked=True).filter(every_seconds__isnull=False, next_scan_at__lte=now)
    for source in due:
        source.next_scan_at = now + timedelta(seconds=source.every_seconds or 0)
        source.save(update_fields=["next_scan_at"])
        if not source.scans.filter(state__in=("queued", "running")).exists():
            source.scans.create(queued_by=by.name)
    return list(_claimable().order_by("pk").values_list("pk", flat=True))


def _claimable() -> QuerySet[Scan]:
    """Return queued scans whose pause is over."""
    return Scan.objects.filter(state="queued").exclude(retry_at__gt=timezone.now())


def has_backlog(scan_id: int) -> bool:
    """Return whether a scan may have much to read: its source's last one reached a limit, or there is none yet."""
    last = Scan.objects.filter(source__scans=scan_id, state="done").order_by("-pk").first()
    return last is None or (last.read or {}).get("bound_reached") in ("messages", "bytes", "deadline")


def claim_scan(scan_id: int, *, session: str = "") -> ScanClaim | None:
    """Claim a queued scan by a conditional update; None if another worker has it, it waits, or it is over.

    The claim's tag ends with `session`, the name of the Spark session that its worker uses.
    """
    now, tag = timezone.now(), f"scan-{scan_id}-{uuid.uuid4().hex[:12]}-{session or uuid.uuid4().hex[:12]}"
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
    """Renew the lease; returns False once the scan was cancelled or given to another worker."""
    claimed = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running")
    return bool(claimed.update(lease_until=timezone.now() + LEASE))


def note_progress(claim: ScanClaim, *, done: int, total: int, phase: str) -> bool:
    """Store the progress for the page; returns False once the scan no longer belongs to this worker."""
    claimed = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running")
    return bool(claimed.update(phase=phase[:100], progress_done=done, progress_total=total))


@transaction.atomic
def fail_scan(claim: ScanClaim, *, reason: str) -> bool:
    """Fail a scan with its reason. Findings are unchanged: what wasn't read proves nothing.

    Returns False if the scan no longer belongs to this worker: it was cancelled, or given to another.
    """
    ended = Scan.objects.filter(pk=claim.scan_id, tag=claim.tag, state="running").update(
        state="failed", finished_at=timezone.now(), lease_until=None, error=reason[:4000]
    )
    if ended:
        tell_of_failed([claim.scan_id])
    return bool(ended)


@transaction.atomic
def postpone_scan(claim: ScanClaim, *, reason: str) -> bool:
    """Queue a scan again after a pause, because a server that it needs is away.

    Returns False if its pauses are used up, or it no longer belongs to this worker.
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
    """Queue a scan of what a done scan couldn't read because a server was away, in the caller's transaction.

    Returns None if the pauses are used up, or the source's next scan is due first.
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


def shrink_first_slice(source_id: int, *, read: int) -> None:
    """Make the source's next scan start with fewer than `read` messages, which took longer than its deadline."""
    Source.objects.filter(pk=source_id).update(first_slice=max(1, read // 4))


@transaction.atomic
def cancel_scan(*, scan_id: int, by: Actor) -> str:
    """Cancel a queued or running scan; returns the tag of its work on Spark, empty if none is running.

    Its worker stores nothing more; the caller enqueues `tasks.interrupt_scan` with the tag, so that Spark stops too.
    Raises SourceNotFound, WrongState if it is over, NotAllowed.
    """
    require_extent(by, READ)
    rows = Scan.objects.visible_to(by).select_related("source__registry").select_for_update(of=("self",))
    row = rows.filter(pk=scan_id).first()
    if row is None:
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
    """Return the tags of running scans with an expired lease: their work on Spark continues until interrupted."""
    return list(Scan.objects.filter(state="running", lease_until__lt=timezone.now()).values_list("tag", flat=True))


@transaction.atomic
def reclaim_lost_scans() -> list[int]:
    """Requeue scans whose worker is gone, or fail them after three attempts; returns the requeued ones."""
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


ACTION: Final = "deployment.tell"
#: how long deployments are kept after they began
KEPT: Final = timedelta(days=90)
#: without an explicit time, the same label within this time is the same deployment: a retry after a lost response
RETRY_WINDOW: Final = timedelta(minutes=10)
#: how far a program's clock may be ahead
AHEAD: Final = timedelta(minutes=5)
AT_A_TIME: Final = 5_000


@dataclass(frozen=True)
class DeploymentResult:
    """The deployment's number, whether it is new, and `note`: why no finding will name it, or empty."""

    id: int
    is_new: bool
    note: str = ""


@transaction.atomic
def report_deployment(
    *,
    registry: str,
    label: str,
    by: Actor,
    at: datetime | None = None,
    url: str = "",
    subjects: str = "",
    topics: str = "",
    client: str = "",
) -> DeploymentResult:
    """Report a deployment to what a registry serves; `at` is when it began, by default now.

    Idempotent: label and time identify it, and the later report wins. People with the right to only some subjects must
    give a pattern within them. Raises InvalidInput, NotAllowed, NotSignedIn, RegistryNotFound.
    """
    registry_row = get_registry(registry)
    subjects = _pattern(subjects, "subjects", 512)
    _require_all_of(subjects, registry_row, by)
    label = _text(label, "label", MAX_LABEL)
    if not label:
        raise InvalidInput("Give the deployment a label, such as the program and its version.", field="label")
    fields = {
        "url": _url(url),
        "subjects": subjects,
        "topics": _pattern(topics, "topics", 249),
        "client": _text(client, "client", MAX_NAME),
    }
    now = timezone.now()
    _check_time(at, now)
    # Concurrent reports wait for each other; transactions that only refer to the registry don't.
    Registry.objects.select_for_update(no_key=True).get(pk=registry_row.pk)
    record(by=by, why=f"report deployment {label} in {registry_row.name}")
    there = _there(registry_row, label, at, now)
    if there is not None:  # a different report replaces its patterns
        _require_all_of(there.subjects, registry_row, by)
    else:
        row = Deployment.objects.create(registry=registry_row, label=label, at=at or now, told_by=by.name, **fields)
        return DeploymentResult(row.pk, is_new=True, note=_note(registry_row, fields["client"]))
    changed = [field for field, value in fields.items() if getattr(there, field) != value]
    if changed:
        for field in changed:
            setattr(there, field, fields[field])
        there.told_by = by.name
        there.save(update_fields=[*changed, "told_by"])
    return DeploymentResult(there.pk, is_new=False, note=_note(registry_row, fields["client"]))


def _note(registry: Registry, client: str) -> str:
    """Return a note about an undeclared client, which may declare itself when it starts; empty if declared."""
    if not client or Client.objects.filter(subject__context__registry=registry, name=client).exists():
        return ""
    return f"No client {client} is declared in {registry.name}: no finding names this deployment until one is."


@transaction.atomic
def prune_deployments(*, by: Actor) -> int:
    """Delete a batch of deployments that began before the retention period; returns how many."""
    over = Deployment.objects.filter(at__lt=timezone.now() - KEPT).order_by("at", "pk")
    numbers = list(over.values_list("pk", flat=True)[:AT_A_TIME])
    if numbers:
        record(by=by, why=f"deployments are kept for {KEPT.days} days")
        Deployment.objects.filter(pk__in=numbers).delete()
    return len(numbers)


def _require_all_of(subjects: str, registry: Registry, by: Actor) -> None:
    """Require the right to all subjects of a pattern: `orders-*` is within the right to `orders-*`; `*` isn't."""
    for name in covering_samples(subjects):
        require(by, ACTION, registry=registry.name, subject=name)


def _there(registry: Registry, label: str, at: datetime | None, now: datetime) -> Deployment | None:
    same = Deployment.objects.filter(registry=registry, label=label)
    since = now - RETRY_WINDOW
    candidates = same.filter(at=at) if at else same.filter(told_at__gt=since, at__gt=since)
    return candidates.order_by("-at", "-pk").first()


def _check_time(at: datetime | None, now: datetime) -> None:
    if at is None:
        return
    if at.tzinfo is None or at > now + AHEAD:
        raise InvalidInput("The deployment starts in the future. Report it when it starts.", field="at")
    if at < now - KEPT:
        raise InvalidInput(f"Deployments are kept for {KEPT.days} days, and this one started earlier.", field="at")


def _text(text: str, what: str, most: int) -> str:
    cleaned = " ".join(text.split())
    if len(cleaned) > most:
        raise InvalidInput(f"The {what} has {len(cleaned)} characters; the maximum is {most}.", field=what)
    if not cleaned.isprintable():
        raise InvalidInput(f"The {what} has a character that can't be displayed. Remove it.", field=what)
    return cleaned


def _pattern(text: str, what: str, most: int) -> str:
    """Return a shell pattern; `*` becomes the empty pattern."""
    pattern = checked_pattern(text, what, longest=most, field=what)
    return "" if pattern == "*" else pattern


def _url(text: str) -> str:
    """Return an address that a page may link to. It is never fetched."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        good = False
    if address and (not good or len(address) > MAX_URL or not address.isprintable() or " " in address):
        raise InvalidInput(f"The url must be an http or https address of up to {MAX_URL} characters.", field="url")
    return address
