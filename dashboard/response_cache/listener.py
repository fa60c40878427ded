"""Receives changes made by any program: triggers NOTIFY them, even if psql made them.

There is one thread per web process, with its own connection. If it can't listen, the cache continues for a grace
period; then it is off until the thread listens again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

import psycopg

from dashboard.database.base import is_pooled
from dashboard.response_cache.epoch import Generation, groups_in, now

CHANNEL: Final = "schemadesk_changed"
#: how long the cache continues after the last sign of life
GRACE: Final = 30.0
BETWEEN: Final = 1.0  # seconds between signs of life
AGAIN: Final = 0.5  # seconds before reconnecting

logger = logging.getLogger(__name__)
_IS_THERE: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


class Listener:
    """The thread; `until` is when the cache must be off, by `epoch.now`."""

    def __init__(
        self, generation: Generation, parameters: Callable[[], dict[str, Any]], *, grace: float = GRACE
    ) -> None:
        """Create the thread; `parameters` returns those of the connection."""
        self._generation = generation
        self._parameters = parameters
        self._grace = grace
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="generation-listener", daemon=True)
        self.until = 0.0

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the cache is then off."""
        self._over.set()
        self._thread.join()
        self.until = 0.0

    def _run(self) -> None:
        is_told = False
        while not self._over.is_set():
            try:
                self._listen()
                is_told = False
            except Exception as error:  # noqa: BLE001 - the cache must not continue after any error
                if not is_told:
                    logger.warning("changes from elsewhere aren't heard: %s", error)
                is_told = True
                self._over.wait(AGAIN)

    def _listen(self) -> None:
        parameters = {"connect_timeout": 5, "tcp_user_timeout": 5_000, **self._parameters()}
        with psycopg.connect(**parameters, autocommit=True) as connection:
            if is_pooled(connection):
                raise psycopg.OperationalError("a connection pooler loses notifications: set DATABASE_DIRECT_URL")
            connection.execute(f"LISTEN {CHANNEL}")
            self._generation.bump()  # for missed changes
            while not self._over.is_set():
                asked_at = now()
                connection.execute("SELECT 1")
                self.until = asked_at + self._grace if self._generation.is_in_place() else 0.0
                for change in connection.notifies(timeout=BETWEEN):
                    self._generation.bump(groups_in(change.payload))
                self._sweep(connection)

    def _sweep(self, connection: psycopg.Connection[Any]) -> None:
        """End the commits of killed processes once the server has no connection of theirs, and so can't commit."""

        def is_over(slot: int) -> bool:
            row = connection.execute(_IS_THERE, [self._generation.name_of(slot)]).fetchone()
            return row == (0,)

        if swept := self._generation.sweep(is_over):
            logger.warning("%d processes were killed in the middle of a commit; the cache goes on", swept)
