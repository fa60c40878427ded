"""A circuit breaker for the database: requests don't wait long while it is away, as the connection pool detects.

While it is away, a request waits until the outage has lasted for the seconds in the settings; later requests are
refused immediately, so that no queue of them grows. Meanwhile the pool keeps trying.

A hanging server keeps its connections and replies to nothing. A statement may take long, so a web process asks the
server for another sign of life once a reply is overdue, and ends all waits only without one.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool

#: seconds between attempts to connect. The pool's own interval doubles each time, and so becomes too long
BETWEEN: Final = 0.25
#: seconds for which a log message isn't repeated
SILENT: Final = 30.0
#: seconds after which a reply is overdue
OVERDUE: Final = 0.5
#: an SSLRequest of PostgreSQL's protocol: a new server process answers it with one byte, before authentication
SIGN_OF_LIFE: Final = (8).to_bytes(4) + (80_877_103).to_bytes(4)
Address = tuple[int, Any]  # a socket's family, and its peer's name

logger = logging.getLogger(__name__)


class DatabaseUnreachable(psycopg.OperationalError):
    """The database has been away for so long that requests no longer wait for it."""


class Reach:
    """Whether the database can be reached; one for all threads of a process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._since: float | None = None

    def is_away(self) -> bool:
        """Return whether connecting fails."""
        return self._since is not None

    def note_away(self, seconds: float = 0.0) -> None:
        """Note that connecting fails, or that no reply has come for that many seconds."""
        with self._changed:
            if self._since is None:
                self._since = time.monotonic() - seconds
                logger.error("the database is away; requests are answered 503 meanwhile")

    def note_there(self) -> None:
        """Note that a connection was made."""
        with self._changed:
            if self._since is not None:
                logger.warning("the database is back after %.1f s", time.monotonic() - self._since)
                self._since = None
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Return when the database is there. Raises DatabaseUnreachable once it has been away for that many seconds."""
        with self._changed:
            while self._since is not None:
                left = self._since + seconds - time.monotonic()
                if left <= 0:
                    raise DatabaseUnreachable("the database is away")
                self._changed.wait(left)


REACH: Final = Reach()


class Replies:
    """The connections that wait for a reply of the server, and since when; one for all threads of a process."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = threading.Lock()
        self._awaited: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._hanging: Address | None = None  # the server's address

    def begin(self, connection: psycopg.Connection[Any]) -> None:
        """Note that the connection waits."""
        with self._lock:
            self._awaited[id(connection)] = (time.monotonic(), connection)

    def end(self, connection: psycopg.Connection[Any]) -> None:
        """Note that it no longer waits.

        The lock ensures that its socket isn't closed before, because the number could be reused.
        """
        with self._lock:
            self._awaited.pop(id(connection), None)

    def watch(self, seconds: float) -> None:
        """Limit all waits for a hanging server to that many seconds from now on."""

        def work() -> None:
            while True:
                time.sleep(BETWEEN)
                with suppress(OSError, psycopg.Error):
                    self.look(seconds)

        threading.Thread(target=work, name="database replies", daemon=True).start()

    def look(self, seconds: float) -> None:
        """Once a reply is overdue, end all waits if the server hangs. Once it hangs, note when it recovers."""
        address = self._hanging or self._overdue()
        if address is None:
            return
        if not hangs(address, max(BETWEEN, seconds - OVERDUE - BETWEEN)):
            if self._hanging:
                self._hanging = None
                self._reach.note_there()
            return
        self._hanging = address
        self._reach.note_away(seconds)
        with self._lock:
            for _, connection in self._awaited.values():
                with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as own:
                    own.shutdown(socket.SHUT_RDWR)

    def _overdue(self) -> Address | None:
        """Return the server's address if a reply is overdue."""
        with self._lock:
            for began, connection in self._awaited.values():
                if time.monotonic() - began > OVERDUE:
                    with socket.socket(fileno=os.dup(connection.fileno())) as own:
                        return own.family, own.getpeername()
        return None


REPLIES: Final = Replies(REACH)


class WatchedConnection(psycopg.Connection[Any]):
    """A connection of the pool, which notes its waits."""

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Wait like the base class."""
        REPLIES.begin(self)
        try:
            return super().wait(*args, **kwargs)
        finally:
            REPLIES.end(self)


def hangs(address: Address, seconds: float) -> bool:
    """Return whether a server accepts a connection without a sign of life.

    One that refuses connections has ended, which its clients notice.
    """
    family, name = address
    with socket.socket(family) as own:
        own.settimeout(seconds)
        try:
            own.connect(name)
            own.sendall(SIGN_OF_LIFE)
            own.recv(1)
        except (TimeoutError, BlockingIOError):
            return True
        except OSError:
            return False
    return False


def try_again(pool: ConnectionPool[Any]) -> None:
    """Try again to connect if the pool has no connection; called by the pool after a failure."""
    if pool.get_stats()["pool_size"] == 0:
        REACH.note_away()
        pool.check()


def is_ended(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has ended an idle connection; without data from it, this takes no round trip."""
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
    """Passes each kind of message only once in a while, because the pool logs every attempt."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message wasn't logged recently."""
        moment, kind = time.monotonic(), str(record.msg)
        if moment - self._logged_at.get(kind, -SILENT) < SILENT:
            return False
        self._logged_at[kind] = moment
        return True
