"""The Celery tasks. They are safe to deliver twice."""

from __future__ import annotations

import logging

from celery import shared_task

from registry.audit import hash_chain

logger = logging.getLogger(__name__)


@shared_task
def seal_events() -> None:
    """Seal all committed events, and write the head to the log, which the database can't change."""
    number = 0
    while sealed := hash_chain.seal_events():
        number += sealed
    if number:
        logger.info("audit: %d events sealed, the chain's head is %s", number, hash_chain.head())
