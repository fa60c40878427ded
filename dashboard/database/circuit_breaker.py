"""A circuit breaker for the database: requests don't wait long while it is away, as the connection pool detects.

While it is away, a request waits until the outage has lasted for the seconds in the settings; later requests are
refused immediately, so that no queue of them grows. Meanwhile the pool keeps trying.

A hanging server keeps its connections and replies to nothing. A statement may take long, so a web process asks the
server for another sign of life once a reply is overdue, and ends all waits only without one. If one server process
hangs alone, or its replies are lost, its wait ends once the server says that it isn't working on the statement. Of one
that hangs in a statement, the server doesn't know, so reads of the APIs and waits for locks have a limit.
"""

from __future__ import annotations

import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool

#: seconds between attempts to connect. The pool's own interval doubles each time, and so becomes too long
BETWEEN: Final = 0.25
#: seconds for which a log message isn't repeated
SILENT: Final = 30.0
#: seconds after which a reply is overdue
OVERDUE: Final = 0.5
#: seconds after which the server is asked whether it works on a statement; doubled each time it says so
ASKED: Final = 2.0
#: seconds for a read of an API, and for a lock in the web process
LONGEST: Final = 15.0
#: which processes have been waiting for a statement for longer than somebody may still be receiving a reply
IDLE_PROCESSES: Final = """
SELECT pid FROM pg_stat_activity
WHERE pid = ANY(%s) AND state LIKE 'idle%%' AND state_change < statement_timestamp() - interval '1 second'"""
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


@dataclass(eq=False, slots=True)
class Wait:
    """A connection that waits for a reply: since when, until when at most, and when the server is asked about it."""

    connection: psycopg.Connection[Any]
    began: float
    ends: float
    asks: float

    def end(self) -> None:
        """End the wait like a lost connection."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.connection.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)

    def is_answered(self) -> bool:
        """Return whether the reply has come, and its thread hasn't read it yet."""
        return bool(select.select([self.connection.fileno()], [], [], 0)[0])


class _Limit(threading.local):
    seconds = math.inf


class Replies:
    """The connections that wait for a reply of the server, and since when; one for all threads of a process."""

    def __init__(self, reach: Reach) -> None:
        self.is_watched = False
        self._reach = reach
        self._lock = threading.Lock()
        self._limit = _Limit()
        self._awaited: dict[int, Wait] = {}
        self._hanging: Address | None = None  # the server's address

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Limit each wait of this thread to that many seconds."""
        self._limit.seconds = seconds
        try:
            yield
        finally:
            self._limit.seconds = math.inf

    def begin(self, connection: psycopg.Connection[Any]) -> None:
        """Note that the connection waits."""
        now, limit = time.monotonic(), self._limit.seconds
        with self._lock:
            self._awaited[id(connection)] = Wait(connection, now, now + limit, now + min(ASKED, limit))

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

        self.is_watched = True
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
            self._end_stuck()
            return
        self._hanging = address
        self._reach.note_away(seconds)
        with self._lock:
            for wait in self._awaited.values():
                wait.end()

    def _end_stuck(self) -> None:
        """End each wait that is over its limit, or whose server process isn't working on the statement."""
        now = time.monotonic()
        with self._lock:
            asked = {wait.connection.info.backend_pid: wait for wait in self._awaited.values() if wait.asks <= now}
        idle = idle_processes(next(iter(asked.values())).connection, asked) if asked else set()
        late = []
        with self._lock:
            for pid, wait in asked.items():
                wait.asks = now + (now - wait.began)
                wait.asks = min(wait.asks, wait.ends) if wait.ends > now else wait.asks
                if self._awaited.get(id(wait.connection)) is not wait or wait.is_answered():
                    continue
                if wait.ends <= now:
                    late.append(wait.connection.pgconn.get_cancel())
                if pid in idle or wait.ends <= now:
                    logger.error("a process of the database server hangs (%s)", pid)
                    wait.end()
        for cancel in late:
            cancel.cancel()

    def _overdue(self) -> Address | None:
        """Return the server's address if a reply is overdue."""
        with self._lock:
            for wait in self._awaited.values():
                if time.monotonic() - wait.began > OVERDUE:
                    with socket.socket(fileno=os.dup(wait.connection.fileno())) as own:
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


def idle_processes(like: psycopg.Connection[Any], pids: Collection[int]) -> set[int]:
    """Return which of the server processes aren't working on a statement; none if the server doesn't say.

    It is asked over another connection like that one.
    """
    try:
        with psycopg.connect(like.info.dsn, password=like.info.password, connect_timeout=2) as own:
            return {pid for (pid,) in own.execute(IDLE_PROCESSES, [list(pids)])}
    except psycopg.Error:
        return set()


def check_idle(pool: ConnectionPool) -> None:
    """Check the connections that the pool has, and replace those that have ended or don't reply."""
    with REPLIES.limited(OVERDUE):
        pool.check()


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
