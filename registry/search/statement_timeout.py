"""Statements that may take only so long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import OperationalError, connection, transaction

#: what PostgreSQL calls a statement that took longer than it may
_CANCELLED: Final = "57014"


class TookTooLong(Exception):
    """The database would have taken longer than it may."""


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Each statement of the block has so long; an error takes the limit back with the savepoint. Raises TookTooLong."""
    change = "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)"
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(change, [f"{max(1, round(seconds * 1000))}ms"])
            before, _ = cursor.fetchone()
            yield
            cursor.execute(change, [before])
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") == _CANCELLED:
            raise TookTooLong from error
        raise
