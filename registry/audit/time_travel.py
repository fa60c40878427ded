"""The database as it was at a moment: views in separate schemas that precede the tables and have their names.

Inside `as_of(at)` every query finds the views first, so the code that reads the present also reads the past. There are
three kinds of tables:

- governed tables, whose changes are all in the audit: a row without later changes is as it was, for another one the first
  later change has the former values, and a row that was inserted later is left out;
- tables that are derived from those: their app defines how (`hooks.derived_tables`);
- tables without history (scans, the search index, drafts) are empty, so that nothing of today appears in the past.

Accounts, rights and the audit itself have no views: today's rights decide who may read. A moment within a transaction
shows the part of it that was done by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from registry.audit.history_views import SCHEMA
from registry.errors import InvalidInput

#: how far ahead a moment in whole seconds may be
SOON: Final = timedelta(seconds=2)
#: isolation levels in which every statement of a transaction sees the same snapshot
STEADY: Final = frozenset({"repeatable read", "serializable"})


@dataclass(frozen=True, slots=True)
class _Travel:
    """The moment that is shown, and the former search path."""

    at: datetime
    path: str


_travel: Final[ContextVar[_Travel | None]] = ContextVar("travel", default=None)


def moment() -> datetime | None:
    """The moment that is shown; None for the present."""
    travel = _travel.get()
    return travel.at if travel else None


def present() -> datetime:
    """The moment that is shown, or now."""
    return moment() or timezone.now()


def moment_of(text: str) -> datetime:
    """The moment in a URL: ISO 8601, in UTC if it has no zone. Raises InvalidInput."""
    try:
        # an unencoded + has become a space
        parsed = datetime.fromisoformat(text.strip()[:40].replace(" ", "+" if "T" in text else "T"))
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text[:40]!r} is not a valid time. Write it like 2026-10-01T12:00Z.") from None


@contextmanager
def as_of(at: datetime) -> Iterator[None]:
    """Read the past in the block; writes fail. Raises InvalidInput for a future moment.

    The block is one transaction with one snapshot, and must not use another connection. Within a transaction that sees
    concurrent changes, each statement is right by itself, and only the slower views are used.
    """
    if at > timezone.now() + SOON:
        raise InvalidInput(f"{at:%Y-%m-%d %H:%M} UTC is in the future. Choose a time in the past.")
    is_own = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if is_own:
            # unchanged tables must stay unchanged until the end
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = _travel.get()
        path, isolation, material = _state(cursor)
        travel = _Travel(at, before.path if before else path)
        _set(cursor, _path(cursor, travel, is_steady=isolation in STEADY), at.isoformat(), "off")
        cursor.execute("SET TRANSACTION READ ONLY")
        token = _travel.set(travel)
        try:
            yield
        finally:
            _travel.reset(token)
        _set(cursor, path, before.at.isoformat() if before else "", material)


def _state(cursor: CursorWrapper) -> tuple[str, str, str]:
    cursor.execute(
        "SELECT current_setting('search_path'), current_setting('transaction_isolation'),"
        " current_setting('enable_material')"
    )
    path, isolation, material = cursor.fetchone()
    return path, isolation, material


def _path(cursor: CursorWrapper, travel: _Travel, *, is_steady: bool) -> str:
    """The search path: the views of unchanged tables, then those that are always right."""
    quick = ""
    if is_steady:
        cursor.execute("SELECT past.path(%s)", [travel.at])
        (quick,) = cursor.fetchone()
    return ", ".join(filter(None, (quick, SCHEMA, travel.path)))


def _set(cursor: CursorWrapper, path: str, moment: str, material: str) -> None:
    """Set path, moment and planner option for this transaction; an error restores them with the savepoint.

    PostgreSQL underestimates the rows of a union, and would scan a whole materialized table repeatedly; without
    materialization it uses an index.
    """
    cursor.execute(
        "SELECT set_config('search_path', %s, true), set_config('schemadesk.as_of', %s, true),"
        " set_config('enable_material', %s, true)",
        [path, moment, material],
    )
