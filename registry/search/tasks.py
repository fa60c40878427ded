"""The Celery tasks. They are safe to deliver twice."""

from __future__ import annotations

from celery import shared_task

from registry.search import services
from registry.search.team_figures import keep_figures


@shared_task
def index_stale() -> None:
    """Index changed subjects again, as many as one run may."""
    services.index_stale()


@shared_task
def sweep_index() -> None:
    """Queue what no trigger queued, delete terms that no field has, and keep the day's figures of owners."""
    services.queue_missing()
    services.prune_terms()
    keep_figures()
