"""The Celery tasks. All are idempotent."""

from __future__ import annotations

from celery import shared_task

from registry.promotions.apply import execution
from registry.promotions.board import readiness


@shared_task(acks_late=True)
def apply_one(request_id: int) -> None:
    """Apply a scheduled request that is due, or do the steps of one that is being applied remotely."""
    execution.apply_due(request_id=request_id)


@shared_task
def apply_due() -> None:
    """Enqueue the due requests, and those whose worker is gone."""
    for request_id in execution.claim_due():
        apply_one.delay(request_id)


@shared_task
def refresh_outlooks() -> None:
    """Compute missing and stale answers for the board, up to the limit of one run."""
    readiness.refresh_outlooks()
