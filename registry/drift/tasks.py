"""Celery tasks. A message that is delivered twice does no harm."""

from __future__ import annotations

from celery import shared_task

from registry.access.roles import system_actor
from registry.drift import services
from registry.drift.scan import runner


@shared_task(acks_late=True)
def run_scan(scan_id: int) -> None:
    """Run a queued scan; nothing where another worker has it."""
    runner.perform_scan(scan_id)


@shared_task
def interrupt_scan(tag: str) -> None:
    """End what a cancelled scan still does on Spark."""
    runner.interrupt_scan(tag)


@shared_task
def queue_due_scans() -> None:
    """Queue what is due and enqueue what waits; open findings whose acknowledgement is over."""
    services.end_what_is_over(by=system_actor("schedule"))
    for scan_id in services.queue_due_scans(by=system_actor("schedule")):
        run_scan.delay(scan_id)


@shared_task
def prune_deployments() -> None:
    """Remove deployments that began longer ago than they are kept."""
    while services.prune_deployments(by=system_actor("schedule")):
        continue


@shared_task
def reclaim_lost_scans() -> None:
    """End what dead workers' scans still do on Spark, then give them to others."""
    for tag in services.lost_tags():
        runner.interrupt_scan(tag)
    for scan_id in services.reclaim_lost_scans():
        run_scan.delay(scan_id)
