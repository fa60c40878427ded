"""Whether the database is there, as the pool of connections finds out: nobody waits long for one that isn't.

A request that comes while it is away waits until it has been away for the seconds of the settings; after that every
one is refused at once, so that no queue of waiting requests grows. Meanwhile the pool goes on trying.
"""

from __future__ import annotations

import logging
import select
import threading
import time
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool

#: seconds between two attempts to connect. The pool's own pause doubles with each, so that it may come long after
BETWEEN: Final = 0.25
#: seconds for which a line of the log isn't said again
SILENT: Final = 30.0

logger = logging.getLogger(__name__)


class DatabaseUnreachable(psycopg.OperationalError):
    """The database has been away for so long that nobody waits for it."""


class Reach:
    """Whether the database is there; one for all threads of a process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._since: float | None = None

    def note_away(self) -> None:
        """Nobody can connect."""
        with self._changed:
            if self._since is None:
                self._since = time.monotonic()
                logger.error("the database is away; requests are answered 503 meanwhile")

    def note_there(self) -> None:
        """Somebody has connected."""
        with self._changed:
            if self._since is not None:
                logger.warning("the database is back after %.1f s", time.monotonic() - self._since)
                self._since = None
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Return when it is there; raises DatabaseUnreachable once it has been away for so many seconds."""
        with self._changed:
            while self._since is not None:
                left = self._since + seconds - time.monotonic()
                if left <= 0:
                    raise DatabaseUnreachable("the database is away")
                self._changed.wait(left)


REACH: Final = Reach()


def try_again(pool: ConnectionPool[Any]) -> None:
    """What the pool calls where it couldn't connect: without any connection it tries again, with some it goes on."""
    if pool.get_stats()["pool_size"] == 0:
        REACH.note_away()
        pool.check()


def is_ended(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has ended an idle connection. It costs no round trip unless the server has said something."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return False
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return True
    return False


class LogThrottle(logging.Filter):
    """Lets each kind of line through once in a while: the pool says one for every attempt."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it wasn't said lately."""
        moment, kind = time.monotonic(), str(record.msg)
        if moment - self._logged_at.get(kind, -SILENT) < SILENT:
            return False
        self._logged_at[kind] = moment
        return True
