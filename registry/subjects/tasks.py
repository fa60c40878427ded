"""What Celery runs. Delivered twice, none of it does harm."""

from __future__ import annotations

from celery import shared_task

from registry.subjects.services import keeping, remotes, sync_queue


@shared_task(acks_late=True)
def sync_remote(registry_id: int) -> None:
    """Mirror a remote registry; nothing where another worker is at it."""
    remotes.sync_registry(registry_id=registry_id)


@shared_task
def queue_due_syncs() -> None:
    """Enqueue the mirrors that are due."""
    for registry_id in sync_queue.queue_due_syncs():
        sync_remote.delay(registry_id)


@shared_task
def prune_copies() -> None:
    """Remove the copies that are kept no longer."""
    while keeping.prune():
        continue
