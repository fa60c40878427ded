"""What Celery runs. Delivered twice, it does no harm."""

from __future__ import annotations

import logging

from celery import shared_task

from registry.audit import sealing

logger = logging.getLogger(__name__)


@shared_task
def seal_events() -> None:
    """Seal all that has been committed, and note the head in the log, out of the database's reach."""
    number = 0
    while sealed := sealing.seal_events():
        number += sealed
    if number:
        logger.info("audit: %d events sealed, the chain's head is %s", number, sealing.head())
