"""The database backend: Django's for PostgreSQL, which also announces commits (see
dashboard/response_cache/epoch.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connection as django_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql import base, operations
from django.db.utils import DataError, InterfaceError, OperationalError
from psycopg.conninfo import conninfo_to_dict

from dashboard.database.circuit_breaker import LONGEST, REACH, REPLIES, check_idle, is_ended
from dashboard.database.statements import Kind, kind_of, note_written
from dashboard.response_cache.epoch import ALL, SUBJECTS, Generation, Groups, generation_at, group_of, groups_in
from dashboard.response_cache.hosts import tell_hosts
from registry.api.outage import OutcomeUnknown
from registry.errors import WrongState

#: for how long a thread keeps a connection of the pool: afterwards the pool may end it
KEPT_SECONDS: Final = 60.0
_CHANGES = (Kind.CHANGE, Kind.TOLD, Kind.COUNTED)
#: what the triggers recorded of this transaction (registry/audit/triggers.py)
_TOLD = "SELECT current_setting('schemadesk.changed', true)"
#: raises an error if they recorded anything else
_EXPECTED = "SELECT expect_told(%s)"


class DatabaseOperations(operations.DatabaseOperations):
    """Refuses numbers that don't fit into their column: as server-side parameters they would be truncated."""

    def adapt_integerfield_value(self, value: Any, internal_type: str) -> Any:
        """Return the number as a parameter. Raises DataError with the server's message."""
        if isinstance(value, int):
            _, most = self.integer_field_range(internal_type)
            if not -most - 1 <= value <= most:
                raise DataError("integer out of range")
        return super().adapt_integerfield_value(value, internal_type)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that tracks whether its transaction changes cached responses."""

    ops_class = DatabaseOperations

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: the strongest kind of change of the transaction
        self._changed: Kind | None = None
        #: what the triggers have recorded since the last change, if that was sent in a pipeline
        self._told: Any = None
        #: whether the pipeline of the moment ends with the commit
        self._is_committing = False
        if settings.HOT_PATH:
            self.execute_wrappers.append(self._noting)

    def get_connection_params(self) -> dict[str, Any]:
        """Return the parameters, with an application name that identifies this process even after it was killed."""
        parameters: dict[str, Any] = super().get_connection_params()
        if settings.HOT_PATH:
            generation = own_generation()
            parameters["application_name"] = generation.name_of(generation.slot)
        return parameters

    def _noting(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        kind = kind_of(sql)
        if kind is Kind.READ or kind is Kind.BOOKKEEPING:
            return execute(sql, params, many, context)
        note_written()
        if kind not in _CHANGES:
            return execute(sql, params, many, context)
        if self.get_autocommit():
            with self._honest(), self._announced(ALL):
                return execute(sql, params, many, context)
        self._told = None
        result = execute(sql, params, many, context)
        if kind is Kind.TOLD and self.connection.pgconn.pipeline_status and not self._is_committing:
            self._told = self.connection.execute(_TOLD)  # without another round trip
        if kind is Kind.CHANGE:
            self._changed = kind
        elif kind is Kind.TOLD or context["cursor"].rowcount != 0:
            self._changed = self._changed or Kind.TOLD
        return result

    def _commit(self) -> Any:
        if not self._changed:
            with self._honest():
                return super()._commit()  # type: ignore[misc]
        with self._honest(), self._announced(self._touched()):
            done = super()._commit()  # type: ignore[misc]
        self._changed = None
        return done

    @contextmanager
    def committing(self, subject: str) -> Iterator[None]:
        """Send the statements of this block with the commit in one round trip, so that others wait for its locks no longer.

        The whole transaction registers under one existing subject of that name: if the triggers recorded anything else,
        it is rolled back. Raises the error of the first statement that fails.
        """
        told = f"+ {group_of(subject) - SUBJECTS}"
        self._is_committing = True
        try:
            announced = self._announced(groups_in(told)) if settings.HOT_PATH else nullcontext()
            with self._honest(), announced, self.wrap_database_errors, self.connection.pipeline():
                yield
                self.connection.execute(_EXPECTED, [told])
                self.connection.execute("COMMIT", prepare=False)
            self._changed = None
        finally:
            self._is_committing = False

    def _touched(self) -> Groups:
        """Return the groups of responses that the transaction touches; all if the triggers can't tell."""
        if self._changed is Kind.CHANGE or self.connection is None:
            return ALL
        with self.wrap_database_errors:
            (told,) = (self._told or self.connection.execute(_TOLD)).fetchone()
        return groups_in(told or "")

    def _rollback(self) -> Any:
        self._changed = None
        return super()._rollback()  # type: ignore[misc]

    def connect(self) -> None:
        """Connect; a new connection has changed nothing. A thread keeps one from the pool for its next requests."""
        self._changed = None
        super().connect()
        if self.pool:
            self.close_at, self.health_check_enabled = time.monotonic() + KEPT_SECONDS, True

    def close_if_health_check_failed(self) -> None:
        """Check a kept connection at the first statement of a request; Django trusts a pool that has just given it."""
        super(base.DatabaseWrapper, self).close_if_health_check_failed()

    def is_usable(self) -> bool:
        """Return whether the connection works; for one from the pool, this takes no round trip."""
        if self.pool and self.connection is not None:
            return not REACH.is_away() and not is_ended(self.connection)
        return bool(super().is_usable())

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection, from the pool if there is one, that the server hasn't ended while it was idle.

        Raises psycopg.OperationalError if the database is away, after DATABASE_WAIT.
        """
        if self.pool:
            REACH.wait(settings.DATABASE_WAIT)
        connection = super().get_new_connection(conn_params)
        if self.pool and is_ended(connection):
            connection.close()
            self.pool.putconn(connection)
            self.pool.check()  # the others too
            connection = super().get_new_connection(conn_params)
        return connection

    def _configure_connection(self, connection: Any) -> Any:
        """Configure a new connection of the pool, and note that the database is back."""
        result = super()._configure_connection(connection)  # type: ignore[misc]
        if is_pooled(connection):
            # Its next transaction may be in another session, without what this one prepared or set.
            connection.prepare_threshold = None
            self.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = True
        elif REPLIES.is_watched:
            connection.execute(f"SET lock_timeout = '{LONGEST:.0f}s'")
        REACH.note_there()
        return result

    def set_autocommit(self, autocommit: bool, force_begin_transaction_with_broken_autocommit: bool = False) -> None:
        """Set autocommit; a transaction that ended with its connection doesn't need a new connection for that."""
        if autocommit and self.connection is None:
            self.autocommit = True
            return
        super().set_autocommit(autocommit, force_begin_transaction_with_broken_autocommit)

    def _close(self) -> None:
        """Close the connection; if the server has ended it, make the pool check its others.

        It has most likely ended those too, and each would fail the request that gets it.
        """
        lost = self.connection is not None and bool(self.connection.closed)
        super()._close()  # type: ignore[misc]
        if lost and self.pool and not REACH.is_away():
            # In another thread: one that hangs holds up this response otherwise.
            threading.Thread(target=check_idle, args=[self.pool], daemon=True).start()

    @contextmanager
    def _announced(self, groups: Groups) -> Iterator[None]:
        """Announce a commit: from here on no older response is repeated on this host, and afterwards on the others."""
        generation = own_generation()
        generation.begin(groups)
        try:
            yield
        except (OperationalError, InterfaceError):
            if self._is_lost():
                # The server may still commit, because its reply was lost.
                generation.end_later(groups)
            else:
                generation.end(groups)
            raise
        except BaseException:
            generation.end(groups)
            raise
        generation.end(groups)
        tell_hosts(generation, groups)

    @contextmanager
    def _honest(self) -> Iterator[None]:
        """Raise OutcomeUnknown if the connection is lost during a commit."""
        was_lost = self._is_lost()
        try:
            yield
        except OperationalError as error:
            if was_lost or not self._is_lost():
                raise
            raise OutcomeUnknown("the connection was lost in a commit") from error

    def _is_lost(self) -> bool:
        return self.connection is None or bool(self.connection.closed)


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a pooler such as PgBouncer is in between: it invents the process ids that its clients get."""
    return connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,)


def refuse_pooler(wrapper: BaseDatabaseWrapper) -> None:
    """Raise WrongState if a pooler is in between: what a command sets in a session would stay for others' requests."""
    wrapper.ensure_connection()
    if is_pooled(wrapper.connection):
        raise WrongState(
            "This command needs PostgreSQL's own address, and got that of a pooler such as PgBouncer. Set DATABASE_OWNER_URL."
        )


def notifying_parameters() -> dict[str, Any]:
    """Return the parameters of a connection that can LISTEN, to DATABASE_DIRECT_URL if that is set."""
    direct = conninfo_to_dict(settings.DATABASE_DIRECT_URL)
    return direct or django_connection.get_connection_params()


def own_generation() -> Generation:
    """Return this host's generation, by the settings."""
    return generation_at(settings.HOT_PATH_FILE)
