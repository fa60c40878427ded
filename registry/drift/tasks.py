"""What Celery runs. Delivered twice, none of it does harm."""

from __future__ import annotations

from celery import shared_task

from registry.access.roles import system_actor
from registry.drift import services
from registry.drift.scanning import perform_scan


@shared_task(acks_late=True)
def run_scan(scan_id: int) -> None:
    """Run a queued scan; nothing where another worker has it."""
    perform_scan(scan_id)


@shared_task
def queue_due_scans() -> None:
    """Queue what is due and enqueue what waits."""
    for scan_id in services.queue_due_scans(by=system_actor("schedule")):
        run_scan.delay(scan_id)


@shared_task
def reclaim_lost_scans() -> None:
    """Give the scans of dead workers to others."""
    for scan_id in services.reclaim_lost_scans():
        run_scan.delay(scan_id)
