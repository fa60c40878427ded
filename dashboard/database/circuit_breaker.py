"""Whether the database is there, as the pool of connections finds out: nobody waits long for one that isn't.

A request that comes while it is away waits until it has been away for the seconds of the settings; after that every
one is refused at once, so that no queue of waiting requests grows. Meanwhile the pool goes on trying.

A server that hangs keeps its connections and replies to nothing. A statement may take long, so a web process asks the
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

#: seconds between two attempts to connect. The pool's own pause doubles with each, so that it may come long after
BETWEEN: Final = 0.25
#: seconds for which a line of the log isn't said again
SILENT: Final = 30.0
#: seconds after which a reply is overdue
OVERDUE: Final = 0.5
#: an SSLRequest of PostgreSQL's protocol: its new process answers with one byte, before it asks who connects
SIGN_OF_LIFE: Final = (8).to_bytes(4) + (80_877_103).to_bytes(4)
Address = tuple[int, Any]  # the family of a socket, and its peer's name

logger = logging.getLogger(__name__)


class DatabaseUnreachable(psycopg.OperationalError):
    """The database has been away for so long that nobody waits for it."""


class Reach:
    """Whether the database is there; one for all threads of a process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._since: float | None = None

    def is_away(self) -> bool:
        """Whether nobody can connect."""
        return self._since is not None

    def note_away(self, seconds: float = 0.0) -> None:
        """Nobody can connect, or has had a reply for so many seconds."""
        with self._changed:
            if self._since is None:
                self._since = time.monotonic() - seconds
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


class Replies:
    """Who waits for a reply of the server, and since when; one for all threads of a process."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = threading.Lock()
        self._awaited: dict[int, tuple[float, psycopg.Connection[Any]]] = {}
        self._hanging: Address | None = None  # of the server

    def begin(self, connection: psycopg.Connection[Any]) -> None:
        """The connection waits from now on."""
        with self._lock:
            self._awaited[id(connection)] = (time.monotonic(), connection)

    def end(self, connection: psycopg.Connection[Any]) -> None:
        """It doesn't any more. Under the lock: until then nobody closes its socket, whose number may be used again."""
        with self._lock:
            self._awaited.pop(id(connection), None)

    def watch(self, seconds: float) -> None:
        """From now on nobody waits longer than so many seconds for a server that hangs."""

        def work() -> None:
            while True:
                time.sleep(BETWEEN)
                with suppress(OSError, psycopg.Error):
                    self.look(seconds)

        threading.Thread(target=work, name="database replies", daemon=True).start()

    def look(self, seconds: float) -> None:
        """Once a reply is overdue: end all waits if the server hangs. Once it hangs: note when that is over."""
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
        """The server's address, if a reply of it is overdue."""
        with self._lock:
            for began, connection in self._awaited.values():
                if time.monotonic() - began > OVERDUE:
                    with socket.socket(fileno=os.dup(connection.fileno())) as own:
                        return own.family, own.getpeername()
        return None


REPLIES: Final = Replies(REACH)


class WatchedConnection(psycopg.Connection[Any]):
    """A connection of the pool, which notes that it waits."""

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        """As its base."""
        REPLIES.begin(self)
        try:
            return super().wait(*args, **kwargs)
        finally:
            REPLIES.end(self)


def hangs(address: Address, seconds: float) -> bool:
    """Whether a server takes a connection and gives no sign of life. One that refuses has ended, which its clients hear."""
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
