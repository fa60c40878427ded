"""The database as it was at a moment: views with the names of the tables, in schemas that precede theirs.

The views are made from the catalogue after every migration. Each governed table has two. The one in the schema `past`
is always right: it has the current rows that didn't change since, and of the others the values before their first
change. It has no conditions inside its union, so that PostgreSQL can use an index through it. The second view, in a
schema of the table's own, is for a moment since which rows were only added: it reads a single table, with at most one
condition, so that PostgreSQL plans as for the present. `past.path(moment)` says which second views are right for one
snapshot.

Inside `as_of(at)` every query finds the views first, so the code that reads the present also reads the past. There are
three kinds of tables:

- governed tables, whose changes are all in the audit: a row without later changes is unchanged, a changed row has the
  values before its first later change, and a row that was inserted later is left out;
- tables that are derived from those: their app defines the query (`hooks.derived_tables`);
- tables without history (scans, the search index, drafts) are empty, so that nothing from today appears in the past.

Accounts, rights and the audit itself have no views: today's rights decide who may read. A moment within a transaction
shows the part of it that was done until then.
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
from registry.hooks import derived_tables

SCHEMA: Final = "past"
#: prefix of a table's name in the name of its second view's schema
OF: Final = "past_of_"
MOMENT: Final = "current_setting('schemadesk.as_of')::timestamptz"
#: prefixes of tables with a past; those that are neither governed nor derived are empty
WITH_A_PAST: Final = ("subjects_", "promotions_", "access_groupchannel", "access_ownership")
#: prefixes of tables that are empty in the past
WITHOUT: Final = ("drift_", "streams_", "search_")
#: columns that show which rows were added later; so the audit is searched only for changes, which are few
CREATED: Final[Mapping[str, str]] = {
    "subjects_context": "created_at",
    "subjects_schema": "created_at",
    "subjects_schemaversion": "created_at",
    "subjects_subject": "created_at",
}


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A derived table: its query, which reads the views made before it, and when the table itself will do.

    `unchanged` is a condition on the moment, `$1`.
    """

    query: str
    unchanged: str


def by_then(column: str) -> str:
    """Return the condition that a row's time isn't after the moment, for many rows: the moment is read once.

    Written so that PostgreSQL expects it of nearly all rows, as of `<>`. For `<=` with an unknown moment it would
    expect a third of them, and plan for that.
    """
    return f"sign(timestamptz_cmp({column}, (SELECT {MOMENT}))) <> 1"


_GOVERNED: Final = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),
    max(format_type(a.atttypid, a.atttypmod)) FILTER (WHERE a.attname = 'id'),
    EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'audit' AND t.tgnargs = 0)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
GROUP BY c.oid, c.relname ORDER BY c.relname"""
#: each operation has an index of its own
_CHANGES: Final = """
SELECT e.id, e.row_id, e.operation, e.before FROM public.audit_auditevent e
WHERE e."table" = '{name}' AND e.operation <> 'INSERT' AND e.at > {moment}"""
_ARRIVALS: Final = """
UNION ALL SELECT e.id, e.row_id, e.operation, e.before FROM public.audit_auditevent e
WHERE e."table" = '{name}' AND e.operation = 'INSERT' AND e.at > {moment}"""
_RECONSTRUCTED: Final = """
SELECT {columns} FROM (
    SELECT {now}, true AS "is of now" FROM public.{table} x
    UNION ALL
    SELECT {columns}, false FROM (
        WITH before AS MATERIALIZED (
            SELECT {then} FROM (
                SELECT DISTINCT ON (e.row_id COLLATE "C") e.before, e.operation FROM ({events}) e
                ORDER BY e.row_id COLLATE "C", e.id
            ) first, jsonb_populate_record(NULL::public.{table}, first.before) r
            WHERE first.operation <> 'INSERT' {came_then}
        ) SELECT * FROM before
    ) before
) both_of_them
WHERE NOT "is of now" OR ({came} CASE WHEN id IN (SELECT e.row_id::{kind} FROM ({events}) e) THEN 1 ELSE 0 END <> 1)"""
_PATH: Final = """
CREATE FUNCTION past.path(timestamptz) RETURNS text LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN concat_ws(', ', {places});
END $$"""
_UNCHANGED: Final = """NOT EXISTS (
    SELECT FROM public.audit_auditevent WHERE "table" = '{name}' AND operation {operation} AND at > $1)"""
_GRANTS: Final = ("GRANT USAGE ON SCHEMA {schema} TO {role}", "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")


@dataclass(frozen=True)
class _Table:
    """A current table: its columns, its key's type, and whether the audit has all of its changes."""

    name: str
    columns: Sequence[str]
    key: str | None
    governed: bool

    @property
    def created(self) -> str | None:
        return CREATED.get(self.name)

    @property
    def has_a_past(self) -> bool:
        """Whether it has both views."""
        return self.name in derived_tables.hooks or (self.governed and self.name.startswith(WITH_A_PAST))

    def view(self) -> str | None:
        """Return the query of its view; None if it has none."""
        if self.name in derived_tables.hooks:
            return derived_tables.hooks[self.name].query
        if self.has_a_past:
            return self._reconstructed()
        if self.name.startswith((*WITH_A_PAST, *WITHOUT)):
            # the offset makes the view not updatable
            return f"SELECT {self._listed('x')} FROM public.{_quoted(self.name)} x WHERE false OFFSET 0"  # noqa: S608
        return None

    def unchanged(self) -> str:
        """Return the condition on the moment, `$1`, under which the second view is right.

        It allows later inserts if a column shows them.
        """
        if self.name in derived_tables.hooks:
            return derived_tables.hooks[self.name].unchanged
        operations = ("<> 'INSERT'",) if self.created else ("<> 'INSERT'", "= 'INSERT'")
        return " AND ".join(_UNCHANGED.format(name=self.name, operation=operation) for operation in operations)

    def view_of_unchanged(self) -> str:
        """Return the query of the second view."""
        came = f" WHERE {by_then(f'x.{self.created}')}" if self.created else ""
        return f"SELECT {self._listed('x')} FROM public.{_quoted(self.name)} x{came}"  # noqa: S608

    def _reconstructed(self) -> str:
        events = _CHANGES if self.created else _CHANGES + _ARRIVALS
        return _RECONSTRUCTED.format(
            table=_quoted(self.name),
            kind=self.key,
            columns=", ".join(map(_quoted, self.columns)),
            now=self._listed("x"),
            then=self._listed("r"),
            came=f"{by_then(self.created)} AND" if self.created else "",
            came_then=f"AND {by_then(f'r.{self.created}')}" if self.created else "",
            events=events.format(name=self.name, moment=MOMENT),
        )

    def _listed(self, alias: str) -> str:
        return ", ".join(f"{alias}.{_quoted(column)}" for column in self.columns)


def forget_views(*, using: str, plan: Sequence[Any] = (), **_signal: Any) -> None:
    """Drop the views, since none may hold a column that a migration changes; a receiver of pre_migrate."""
    if plan:
        with connections[using].cursor() as cursor:
            _drop(cursor)


def make_views(*, using: str, **_signal: Any) -> None:
    """Make the views for the current tables, unless they are there already; a receiver of post_migrate."""
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        statements = _statements(cursor)
        mark = hashlib.sha256("\n".join(statements).encode()).hexdigest()
        cursor.execute("SELECT obj_description(to_regnamespace('past'), 'pg_namespace')")
        if cursor.fetchone()[0] != mark:
            _drop(cursor)
            for statement in statements:
                cursor.execute(statement)
            cursor.execute(sql.SQL("COMMENT ON SCHEMA past IS {}").format(sql.Literal(mark)))
        _grant(cursor)  # also if the views were there: the role may be new


def _statements(cursor: CursorWrapper) -> list[str]:
    """Return the statements that make the views, those of governed tables first: derived ones read them."""
    cursor.execute(_GOVERNED)
    tables = sorted(
        (_Table(*row) for row in cursor.fetchall()), key=lambda table: (table.name in derived_tables.hooks, table.name)
    )
    statements = [f"CREATE SCHEMA {SCHEMA}"]
    statements += [f"CREATE VIEW past.{_quoted(table.name)} AS {query}" for table in tables if (query := table.view())]
    paths = []
    for table in tables:
        if table.has_a_past:
            schema = _quoted(f"{OF}{table.name}")
            statements += [
                f"CREATE SCHEMA {schema}",
                f"CREATE VIEW {schema}.{_quoted(table.name)} AS {table.view_of_unchanged()}",
            ]
            paths.append(f"CASE WHEN {table.unchanged()} THEN '{schema}' END")
    return [*statements, _PATH.format(places=",\n    ".join(paths))]


def _schemas(cursor: CursorWrapper) -> list[sql.Identifier]:
    cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname = %s OR starts_with(nspname, %s)", [SCHEMA, OF])
    return [sql.Identifier(name) for (name,) in cursor.fetchall()]


def _drop(cursor: CursorWrapper) -> None:
    if schemas := _schemas(cursor):
        cursor.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.SQL(", ").join(schemas)))


def _grant(cursor: CursorWrapper) -> None:
    role = settings.DATABASE_APPLICATION_ROLE
    cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s AND rolname <> current_user", [role])
    if cursor.fetchone() is not None:
        for schema in _schemas(cursor):
            for statement in _GRANTS:
                cursor.execute(sql.SQL(statement).format(schema=schema, role=sql.Identifier(role)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


#: how far in the future a moment, in whole seconds, may be
SOON: Final = timedelta(seconds=2)
#: isolation levels in which every statement of a transaction sees the same snapshot
STEADY: Final = frozenset({"repeatable read", "serializable"})


@dataclass(frozen=True, slots=True)
class _Travel:
    """The moment that is shown, and the original search path."""

    at: datetime
    path: str


_travel: Final[ContextVar[_Travel | None]] = ContextVar("travel", default=None)


def moment() -> datetime | None:
    """Return the moment that is shown; None for the present."""
    travel = _travel.get()
    return travel.at if travel else None


def present() -> datetime:
    """Return the moment that is shown, or now."""
    return moment() or timezone.now()


def moment_of(text: str) -> datetime:
    """Parse the moment in a URL: ISO 8601, in UTC if it has no zone. Raises InvalidInput."""
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
    """Return the search path: the second views that are right, then the views that always are."""
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
