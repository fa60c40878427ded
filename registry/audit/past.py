"""The database as it was at a moment: views of a schema of its own that stand before the tables, under their names.

Inside `as_of(at)` every reading statement finds the views first, so what reads the present reads the past unchanged.
Three kinds of tables:

- governed ones, whose every change is in the audit: a row that nothing changed since is as it was, of another the first
  change since has what was before it; a row that came since wasn't there;
- what is worked out from those: their app says how (`DERIVED`);
- what has no history (scans, the search's index, drafts) is empty: nothing of today is shown as of then.

Accounts, rights and the audit itself stand in no view: who may read is decided by today's rights. A moment inside of a
transaction shows the part of it that was done by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from psycopg import sql

from registry.errors import InvalidInput

#: a moment that is written in whole seconds may lie so far ahead
SOON: Final = timedelta(seconds=2)
SCHEMA: Final = "past"
MOMENT: Final = "current_setting('schemadesk.as_of')::timestamptz"
#: tables whose name begins so have a past; of the rest of these, what isn't governed is empty
WITH_A_PAST: Final = ("subjects_", "promotions_", "access_ownership")
#: tables whose name begins so are empty in the past
WITHOUT: Final = ("drift_", "streams_", "search_")
#: what came after the moment is known by a column: changes alone are looked for in the audit, which are few
CREATED: Final[Mapping[str, str]] = {
    "subjects_context": "created_at",
    "subjects_schema": "created_at",
    "subjects_schemaversion": "created_at",
    "subjects_subject": "created_at",
}
#: table → the query that works it out of the views before it; apps add theirs when they are ready
DERIVED: Final[dict[str, str]] = {}

_GOVERNED: Final = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum), EXISTS (
    SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'audit' AND t.tgnargs = 0)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
GROUP BY c.oid, c.relname ORDER BY c.relname"""
_RECONSTRUCTED: Final = """
SELECT {now} FROM public.{table} x
WHERE {came_now} NOT EXISTS (
    SELECT FROM public.audit_auditevent e
    WHERE e."table" = '{name}' AND e.row_id = x.id::text AND e.at > {moment} {changes_now})
UNION ALL
SELECT {then} FROM public.audit_auditevent f, jsonb_populate_record(NULL::public.{table}, f.before) r
WHERE f."table" = '{name}' AND f.operation <> 'INSERT' AND f.at > {moment} {came_then} AND NOT EXISTS (
    SELECT FROM public.audit_auditevent e
    WHERE e."table" = '{name}' AND e.row_id = f.row_id AND e.at > {moment} AND e.id < f.id {changes_now})"""
_GRANTS: Final = ("GRANT USAGE ON SCHEMA past TO {role}", "GRANT SELECT ON ALL TABLES IN SCHEMA past TO {role}")


@dataclass(frozen=True)
class _Table:
    """A table of the present: its columns, and whether the audit has all of its changes."""

    name: str
    columns: Sequence[str]
    governed: bool

    def view(self) -> str | None:
        """The query of its view; None where it has none."""
        if self.name in DERIVED:
            return DERIVED[self.name]
        if self.governed and self.name.startswith(WITH_A_PAST):
            return self._reconstructed()
        if self.name.startswith((*WITH_A_PAST, *WITHOUT)):
            # the offset keeps it from being a view that could be written through
            return f"SELECT {self._listed('x')} FROM public.{_quoted(self.name)} x WHERE false OFFSET 0"  # noqa: S608
        return None

    def _reconstructed(self) -> str:
        created = CREATED.get(self.name)
        return _RECONSTRUCTED.format(
            table=_quoted(self.name),
            name=self.name,
            now=self._listed("x"),
            then=self._listed("r"),
            moment=MOMENT,
            came_now=f"x.{created} <= {MOMENT} AND" if created else "",
            came_then=f"AND r.{created} <= {MOMENT}" if created else "",
            changes_now="AND e.operation <> 'INSERT'" if created else "",
        )

    def _listed(self, alias: str) -> str:
        return ", ".join(f"{alias}.{_quoted(column)}" for column in self.columns)


_moment: Final[ContextVar[datetime | None]] = ContextVar("moment", default=None)


def moment() -> datetime | None:
    """The moment that is looked at; None for now."""
    return _moment.get()


def present() -> datetime:
    """The moment that is looked at, or now."""
    return _moment.get() or timezone.now()


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

    One transaction; nothing in it may go to another connection.
    """
    if at > timezone.now() + SOON:
        raise InvalidInput(f"{at:%Y-%m-%d %H:%M} UTC is still to come: what was then can be read from then on.")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('search_path'), coalesce(current_setting('schemadesk.as_of', true), '')")
        path, before = cursor.fetchone()
        _set(cursor, path if before else f"{SCHEMA}, {path}", at.isoformat())
        token = _moment.set(at)
        try:
            yield
        finally:
            _moment.reset(token)
        _set(cursor, path, before)


def _set(cursor: CursorWrapper, path: str, moment: str) -> None:
    """For this transaction; an error takes it back with the savepoint."""
    cursor.execute(
        "SELECT set_config('search_path', %s, true), set_config('schemadesk.as_of', %s, true)", [path, moment]
    )


def forget_views(*, using: str, plan: Sequence[Any] = (), **_signal: Any) -> None:
    """Receiver of pre_migrate: no view may hold a column that a migration changes."""
    if plan:
        with connections[using].cursor() as cursor:
            cursor.execute("DROP SCHEMA IF EXISTS past CASCADE")


def make_views(*, using: str, **_signal: Any) -> None:
    """Receiver of post_migrate: the views as the tables are now, where they aren't already."""
    with connections[using].cursor() as cursor:
        statements = _statements(cursor)
        mark = hashlib.sha256("\n".join(statements).encode()).hexdigest()
        cursor.execute("SELECT obj_description(to_regnamespace('past'), 'pg_namespace')")
        if cursor.fetchone()[0] == mark:
            return
        cursor.execute("DROP SCHEMA IF EXISTS past CASCADE")
        cursor.execute("CREATE SCHEMA past")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(sql.SQL("COMMENT ON SCHEMA past IS {}").format(sql.Literal(mark)))
        _grant(cursor)


def _statements(cursor: CursorWrapper) -> list[str]:
    """Those of the governed tables first: the derived ones are made of them."""
    cursor.execute(_GOVERNED)
    tables = [_Table(name, columns, governed) for name, columns, governed in cursor.fetchall()]
    ordered = sorted(tables, key=lambda table: (table.name in DERIVED, table.name))
    views = ((table.name, table.view()) for table in ordered)
    return [f"CREATE VIEW past.{_quoted(name)} AS {query}" for name, query in views if query]


def _grant(cursor: CursorWrapper) -> None:
    role = settings.DATABASE_APPLICATION_ROLE
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
    if cursor.fetchone() is not None:
        for statement in _GRANTS:
            cursor.execute(sql.SQL(statement).format(role=sql.Identifier(role)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
