"""The database as it was at a moment: views of schemas of their own that stand before the tables, under their names.

Inside `as_of(at)` every reading statement finds the views first, so what reads the present reads the past unchanged.
Three kinds of tables:

- governed ones, whose every change is in the audit: a row that nothing changed since is as it was, of another the first
  change since has what was before it; a row that came since wasn't there;
- what is worked out from those: their app says how (`past_views.DERIVED`);
- what has no history (scans, the search's index, drafts) is empty: nothing of today is shown as of then.

Accounts, rights and the audit itself stand in no view: who may read is decided by today's rights. A moment inside of a
transaction shows the part of it that was done by then.
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

from registry.audit.past_views import SCHEMA
from registry.errors import InvalidInput

#: a moment that is written in whole seconds may lie so far ahead
SOON: Final = timedelta(seconds=2)
#: in a transaction of these every statement sees the same
STEADY: Final = frozenset({"repeatable read", "serializable"})


@dataclass(frozen=True, slots=True)
class _Look:
    """What is looked at, and where the names led before."""

    at: datetime
    path: str


_look: Final[ContextVar[_Look | None]] = ContextVar("look", default=None)


def moment() -> datetime | None:
    """The moment that is looked at; None for now."""
    look = _look.get()
    return look.at if look else None


def present() -> datetime:
    """The moment that is looked at, or now."""
    return moment() or timezone.now()


def moment_of(text: str) -> datetime:
    """The moment that an address names: ISO 8601, in UTC where it says no zone. Raises InvalidInput."""
    try:
        # a + that nobody encoded has become a space
        found = datetime.fromisoformat(text.strip()[:40].replace(" ", "+" if "T" in text else "T"))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text[:40]!r} is no moment: write it as 2026-10-01T12:00Z.") from None


@contextmanager
def as_of(at: datetime) -> Iterator[None]:
    """Whatever is read in the block is as it was at that moment; what is written fails. Raises InvalidInput.

    One transaction of one snapshot; nothing in it may go to another connection. Inside of a transaction that others'
    changes come into, each statement is right by itself, by the slower views alone.
    """
    if at > timezone.now() + SOON:
        raise InvalidInput(f"{at:%Y-%m-%d %H:%M} UTC is still to come: what was then can be read from then on.")
    is_own = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if is_own:
            # which tables are unchanged must stay so to the end
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = _look.get()
        path, isolation, material = _state(cursor)
        look = _Look(at, before.path if before else path)
        _set(cursor, _path(cursor, look, is_steady=isolation in STEADY), at.isoformat(), "off")
        cursor.execute("SET TRANSACTION READ ONLY")
        token = _look.set(look)
        try:
            yield
        finally:
            _look.reset(token)
        _set(cursor, path, before.at.isoformat() if before else "", material)


def _state(cursor: CursorWrapper) -> tuple[str, str, str]:
    cursor.execute(
        "SELECT current_setting('search_path'), current_setting('transaction_isolation'),"
        " current_setting('enable_material')"
    )
    path, isolation, material = cursor.fetchone()
    return path, isolation, material


def _path(cursor: CursorWrapper, look: _Look, *, is_steady: bool) -> str:
    """Where names lead: to the views of what is unchanged since, then to those that are always right."""
    quick = ""
    if is_steady:
        cursor.execute("SELECT past.path(%s)", [look.at])
        (quick,) = cursor.fetchone()
    return ", ".join(filter(None, (quick, SCHEMA, look.path)))


def _set(cursor: CursorWrapper, path: str, moment: str, material: str) -> None:
    """For this transaction; an error takes it back with the savepoint.

    Of what is put together of two parts PostgreSQL expects too few rows, so that it would go over a whole table again
    and again; without keeping the table aside for that it takes an index.
    """
    cursor.execute(
        "SELECT set_config('search_path', %s, true), set_config('schemadesk.as_of', %s, true),"
        " set_config('enable_material', %s, true)",
        [path, moment, material],
    )
