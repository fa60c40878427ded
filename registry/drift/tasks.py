"""Celery tasks. All tolerate duplicate delivery."""

from __future__ import annotations

from celery import shared_task

from registry.access.roles import system_actor
from registry.drift import services
from registry.drift.scan import runner


@shared_task(acks_late=True)
def run_scan(scan_id: int) -> None:
    """Run a queued scan; does nothing if another worker has it."""
    runner.perform_scan(scan_id)


@shared_task
def interrupt_scan(tag: str) -> None:
    """Interrupt a cancelled scan's work on Spark."""
    runner.interrupt_scan(tag)


@shared_task
def queue_due_scans() -> None:
    """Queue due scans and enqueue waiting ones; reopen findings whose acknowledgement has expired."""
    services.expire_decisions(by=system_actor("schedule"))
    for scan_id in services.queue_due_scans(by=system_actor("schedule")):
        run_scan.delay(scan_id)


@shared_task
def prune_deployments() -> None:
    """Delete deployments that began before the retention period."""
    while services.prune_deployments(by=system_actor("schedule")):
        continue


@shared_task
def reclaim_lost_scans() -> None:
    """Interrupt the work of dead workers' scans on Spark, then requeue them."""
    for tag in services.lost_tags():
        runner.interrupt_scan(tag)
    for scan_id in services.reclaim_lost_scans():
        run_scan.delay(scan_id)
