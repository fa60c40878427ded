"""The Celery tasks. All are idempotent."""

from __future__ import annotations

from celery import shared_task

from registry.subjects.archive import archive
from registry.subjects.remote import mirrors


@shared_task(acks_late=True)
def sync_remote(registry_id: int) -> None:
    """Mirror a remote registry; does nothing if another worker does it."""
    mirrors.sync_registry(registry_id=registry_id)


@shared_task
def queue_due_syncs() -> None:
    """Enqueue the mirrors that are due."""
    for registry_id in mirrors.queue_due_syncs():
        sync_remote.delay(registry_id)


@shared_task
def prune_copies() -> None:
    """Delete the expired copies."""
    while archive.prune():
        continue
