"""What Celery runs. Delivered twice, none of it does harm."""

from __future__ import annotations

from celery import shared_task

from registry.search import services


@shared_task
def index_stale() -> None:
    """Make anew the entries of subjects that changed, as many as one run may."""
    services.index_stale()


@shared_task
def sweep_index() -> None:
    """Queue what no trigger told of, and drop terms that no field has any more."""
    services.queue_missing()
    services.prune_terms()
