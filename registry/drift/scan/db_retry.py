"""Retries while the database is briefly away, as in a restart, so that minutes of scanning aren't lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

logger = logging.getLogger(__name__)
#: seconds between attempts to write while the database is away: about 40 in total, as long as a lease
PATIENCE = (0.5, 1, 2, 4, 8, 12, 12)
GONE = (OperationalError, InterfaceError)
T = TypeVar("T")


def retry_while_database_away(work: Callable[[], T]) -> T:
    """Return the result of `work`, retried while the database is away; raises its error after 40 s.

    Only for idempotent work: if the answer to a successful claim is lost, another worker gets the scan when its lease
    ends.
    """
    return Retrying(
        retry=retry_if_exception(_is_away),
        wait=wait_chain(*map(wait_fixed, PATIENCE)),
        stop=stop_after_attempt(len(PATIENCE) + 1),
        before_sleep=_disconnect,
        reraise=True,
    )(work)


def _is_away(error: BaseException) -> bool:
    """Return whether to retry: not in a caller's transaction, which is lost with its connection."""
    return isinstance(error, GONE) and not connection.in_atomic_block


def _disconnect(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    logger.warning("the database is away, trying again in %s s: %s", state.upcoming_sleep, error)
    connection.close()
