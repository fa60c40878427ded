"""The database backend: as Django's for PostgreSQL, and it announces what is committed (see dashboard/response_cache/epoch.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base, operations
from django.db.utils import DataError, InterfaceError, OperationalError

from dashboard.database.circuit_breaker import REACH, is_ended
from dashboard.database.statements import Kind, kind_of, note_written
from dashboard.response_cache.epoch import ALL, Generation, Groups, generation_at, groups_in
from dashboard.response_cache.hosts import tell_hosts
from registry.api.outage import OutcomeUnknown

_CHANGES = (Kind.CHANGE, Kind.TOLD, Kind.COUNTED)
#: what the triggers have seen of this transaction (registry/audit/triggers.py)
_TOLD = "SELECT current_setting('schemadesk.changed', true)"


class DatabaseOperations(operations.DatabaseOperations):
    """Numbers that don't fit into their column are refused: sent beside the statement they would be cut to its size."""

    def adapt_integerfield_value(self, value: Any, internal_type: str) -> Any:
        """The number as it is sent. Raises DataError, in the words of the server."""
        if isinstance(value, int):
            _, most = self.integer_field_range(internal_type)
            if not -most - 1 <= value <= most:
                raise DataError("integer out of range")
        return super().adapt_integerfield_value(value, internal_type)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that knows whether its transaction changed what answers depend on."""

    ops_class = DatabaseOperations

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: the strongest kind of change of the transaction
        self._changed: Kind | None = None
        if settings.HOT_PATH:
            self.execute_wrappers.append(self._noting)

    def get_connection_params(self) -> dict[str, Any]:
        """With the name of this process, by which it is known at the server after it was killed."""
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
        result = execute(sql, params, many, context)
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

    def _touched(self) -> Groups:
        """The groups of answers that the transaction touches; all where the triggers can't tell, or said nothing."""
        if self._changed is Kind.CHANGE or self.connection is None:
            return ALL
        with self.wrap_database_errors:
            (told,) = self.connection.execute(_TOLD).fetchone()
        return groups_in(told or "")

    def _rollback(self) -> Any:
        self._changed = None
        return super()._rollback()  # type: ignore[misc]

    def connect(self) -> None:
        """A new connection has changed nothing."""
        self._changed = None
        super().connect()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """From the pool, if there is one: a connection that the server hasn't ended while nobody used it.

        Raises psycopg.OperationalError, after DATABASE_WAIT where the database is away.
        """
        if self.pool:
            REACH.wait(settings.DATABASE_WAIT)
        connection = super().get_new_connection(conn_params)
        if self.pool and is_ended(connection):
            connection.close()
            self.pool.putconn(connection)
            self.pool.check()  # of the others too
            connection = super().get_new_connection(conn_params)
        return connection

    def _configure_connection(self, connection: Any) -> Any:
        """The pool has made a connection: the database is there."""
        result = super()._configure_connection(connection)  # type: ignore[misc]
        REACH.note_there()
        return result

    def set_autocommit(self, autocommit: bool, force_begin_transaction_with_broken_autocommit: bool = False) -> None:
        """A transaction that ends with its connection needs no new one to say so: the next one begins like this."""
        if autocommit and self.connection is None:
            self.autocommit = True
            return
        super().set_autocommit(autocommit, force_begin_transaction_with_broken_autocommit)

    def _close(self) -> None:
        """Where the server has ended the connection, it has most likely ended those that wait in the pool too.

        The pool looks at them now; else each would fail the request that gets it.
        """
        lost = self.connection is not None and bool(self.connection.closed)
        super()._close()  # type: ignore[misc]
        if lost and self.pool and not REACH.is_away():
            self.pool.check()

    @contextmanager
    def _announced(self, groups: Groups) -> Iterator[None]:
        """Around what commits: no answer of before is given again from here on, on this host, and on the others after."""
        generation = own_generation()
        generation.begin(groups)
        try:
            yield
        except (OperationalError, InterfaceError):
            if self._is_lost():
                # The server may commit it still, as it didn't come to say.
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
        """Around what commits: where the connection is lost meanwhile, raises OutcomeUnknown."""
        was_lost = self._is_lost()
        try:
            yield
        except OperationalError as error:
            if was_lost or not self._is_lost():
                raise
            raise OutcomeUnknown("the connection was lost in a commit") from error

    def _is_lost(self) -> bool:
        return self.connection is None or bool(self.connection.closed)


def own_generation() -> Generation:
    """That of this host, by the settings."""
    return generation_at(settings.HOT_PATH_FILE)
