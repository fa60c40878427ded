"""Celery tasks. A message that is delivered twice does no harm."""

from __future__ import annotations

from celery import shared_task

from registry.promotions.apply import execution
from registry.promotions.board import readiness


@shared_task(acks_late=True)
def apply_one(request_id: int) -> None:
    """Apply a scheduled request whose time has come, or do the steps of one that is applied elsewhere."""
    execution.apply_due(request_id=request_id)


@shared_task
def apply_due() -> None:
    """Enqueue what is due, and what a worker that is gone has left."""
    for request_id in execution.claim_due():
        apply_one.delay(request_id)


@shared_task
def refresh_outlooks() -> None:
    """Work out for the board what is missing or old, as much as one run may."""
    readiness.refresh_outlooks()
