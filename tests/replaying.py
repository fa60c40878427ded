"""What many tests begin with is written by the product once, and from then on by its own statements in one round trip.

The statements that wrote something are sent again with what they were sent with, each row under the number that it got
the first time, so triggers do what they did. What was read in between and who may do it isn't asked again: a test of
that calls the service itself. Outside a test's transaction nothing is replayed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone
from psycopg import ClientCursor

WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b|.*\bset_config\(", re.DOTALL)
#: as Django writes one row and asks for its number
INSERTED = re.compile(r'INSERT INTO ("\w+") \((.*)\) VALUES \((.*)\) RETURNING "\w+"\."id"', re.DOTALL)


class Replayed:
    """Calls what it was made with in a test's first transaction, and sends the same statements in the later ones."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make
        self.statements: list[tuple[str, Sequence[Any]]] = []

    def __call__(self) -> None:
        """What was made is there."""
        if not connection.in_atomic_block:
            self.make()
        elif not self.statements:
            with self._recording():
                self.make()
        else:
            self._send()

    @contextmanager
    def _recording(self) -> Iterator[None]:
        found: list[tuple[str, Sequence[Any]]] = []

        def note(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
            result = execute(sql, params, many, context)
            if WRITES.match(sql):
                found.append(with_number(sql, params, context["cursor"]))
            return result

        with connection.execute_wrapper(note):
            yield
        self.statements = found

    def _send(self) -> None:
        connection.ensure_connection()
        composing, now = ClientCursor(connection.connection), timezone.now()
        texts = [composing.mogrify(sql, values_of(params, now)) for sql, params in self.statements]
        with connection.cursor() as cursor:
            cursor.execute(";\n".join(texts))


def with_number(sql: str, params: Any, cursor: Any) -> tuple[str, Any]:
    """The statement and its parameters; an insertion with the number that the row got."""
    found = INSERTED.fullmatch(sql.strip())
    if not found:
        assert not sql.lstrip().startswith("INSERT"), f"can't be sent again: {sql}"
        return sql, params
    (row,) = cursor.fetchall()
    cursor.cursor.scroll(0, mode="absolute")  # the caller reads it too
    table, names, values = found.groups()
    return f'INSERT INTO {table} ("id", {names}) VALUES (%s, {values})', (row[0], *params)


def values_of(params: Any, now: datetime) -> Any:
    """The parameters, moments being now."""
    if not params or isinstance(params, dict):
        return params
    return tuple(now if isinstance(value, datetime) else value for value in params)
