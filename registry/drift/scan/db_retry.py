"""Patience with a database that is away for a moment, as in a restart: a scan of minutes isn't thrown away for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

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
    for pause in PATIENCE:
        try:
            return work()
        except GONE as error:
            if connection.in_atomic_block:  # a transaction of the caller's is lost with its connection
                raise
            logger.warning("the database is away, trying again in %s s: %s", pause, error)
            connection.close()
            time.sleep(pause)
    return work()
