"""Retries while the database is away for a moment, as in a restart, so that minutes of scanning aren't lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_chain, wait_fixed

logger = logging.getLogger(__name__)
#: pauses between the attempts to write while the database is away, in seconds: some 40 in all, as long as a lease
PATIENCE = (0.5, 1, 2, 4, 8, 12, 12)
GONE = (OperationalError, InterfaceError)
T = TypeVar("T")


def patiently(work: Callable[[], T]) -> T:
    """What `work` gives, tried again while the database is away, as in a restart; raises its error after 40 s.

    Only for what may be done twice: a claim that got through and was lost on the way back is given to another worker
    when its lease ends.
    """
    return Retrying(
        retry=retry_if_exception(_is_away),
        wait=wait_chain(*map(wait_fixed, PATIENCE)),
        stop=stop_after_attempt(len(PATIENCE) + 1),
        before_sleep=_disconnect,
        reraise=True,
    )(work)


def _is_away(error: BaseException) -> bool:
    """Not within a caller's transaction, which is lost with its connection."""
    return isinstance(error, GONE) and not connection.in_atomic_block


def _disconnect(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    logger.warning("the database is away, trying again in %s s: %s", state.upcoming_sleep, error)
    connection.close()
