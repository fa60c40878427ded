"""What PostgreSQL says of itself: the slowest statements with the plans they had, sizes, and what nobody used."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg

from dashboard.runtime import postgres

LARGE: Final = 10_000  # rows
TOP: Final = 10
SETTLED: Final = 1.5  # seconds for a reload to reach every process

_LARGE: Final = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples > %s AND relnamespace = 'public'::regnamespace"
)
_SCANS: Final = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'public'"
_USES: Final = "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'public'"
_STATEMENTS: Final = """
SELECT queryid, query, calls, mean_exec_time, total_exec_time, rows FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid = %s::regrole AND calls > 0
ORDER BY {order} DESC LIMIT %s
"""
_TABLES: Final = """
SELECT c.relname, c.reltuples::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY pg_total_relation_size(c.oid) DESC LIMIT %s
"""
_INDEXES: Final = """
SELECT s.indexrelname, s.relname, pg_relation_size(s.indexrelid), i.indisunique
FROM pg_stat_user_indexes s JOIN pg_index i USING (indexrelid)
WHERE s.schemaname = 'public' ORDER BY pg_relation_size(s.indexrelid) DESC
"""
_LOGGED: Final = re.compile(rb"duration: [\d.]+ ms  plan:\n((?:\t[^\n]*\n)+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One of the slowest: its text with its constants left out, its times in seconds, and its plans in words."""

    id: int
    text: str
    calls: int
    mean: float
    total: float
    plans: tuple[str, ...] = ()
    scanned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """An index: its bytes, and how often it was used meanwhile."""

    name: str
    table: str
    size: int
    is_unique: bool
    used: int


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each table was read whole, and each index used, until now."""

    scans: Mapping[str, int]
    uses: Mapping[str, int]


@dataclass
class Plans:
    """The plans that statements had, by the statement's id, and the large tables that some plan reads whole."""

    large: frozenset[str]
    of: dict[int, dict[str, frozenset[str]]] = field(default_factory=dict)

    def add(self, statement: int, plan: Mapping[str, Any]) -> None:
        """One more."""
        scanned = frozenset(name for name in whole_tables(plan) if name in self.large)
        self.of.setdefault(statement, {})[in_words(plan)] = scanned


def large_tables(connection: psycopg.Connection) -> frozenset[str]:
    """The tables of more than 10,000 rows."""
    return frozenset(name for (name,) in connection.execute(_LARGE, [LARGE]))


def counted(connection: psycopg.Connection) -> Counted:
    """The counters until now; those of connections that are still open may lack the last seconds."""
    return Counted(dict(connection.execute(_SCANS).fetchall()), dict(connection.execute(_USES).fetchall()))


def forget_statements(connection: psycopg.Connection) -> None:
    """Begin to count statements anew."""
    connection.execute("SELECT pg_stat_statements_reset()")


def slowest(connection: psycopg.Connection, plans: Plans) -> Iterator[tuple[str, list[Statement]]]:
    """The slowest ten by the mean and by the sum of their times, with their plans."""
    for measure, order in (("mean", "mean_exec_time"), ("total", "total_exec_time")):
        rows = connection.execute(_statement(order), [postgres.APPLICATION, TOP]).fetchall()
        statements = [
            Statement(int(id_), text, calls, mean / 1000, total / 1000) for id_, text, calls, mean, total, _ in rows
        ]
        yield measure, [_with_plans(connection, statement, plans) for statement in statements]


def _statement(order: str) -> LiteralString:
    statements: dict[str, LiteralString] = {
        name: _STATEMENTS.format(order=name) for name in ("mean_exec_time", "total_exec_time")
    }
    return statements[order]


def _with_plans(connection: psycopg.Connection, statement: Statement, plans: Plans) -> Statement:
    """With the plans that were seen; of a statement that none was seen of, the one that it has for any constants."""
    plans_logged = plans.of.get(statement.id)
    if plans_logged is not None:
        return replace(
            statement, plans=tuple(plans_logged), scanned=tuple(sorted(frozenset().union(*plans_logged.values())))
        )
    try:
        # What is explained is a statement that the product has just sent, as the server itself has kept it.
        explain = f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {statement.text}".encode()
        (plan,) = (entry["Plan"] for (explained,) in connection.execute(explain) for entry in explained)
    except (psycopg.Error, ValueError, KeyError) as error:
        return replace(statement, plans=(f"can't be explained: {str(error).partition(chr(10))[0]}",))
    scanned = tuple(name for name in whole_tables(plan) if name in plans.large)
    return replace(statement, plans=(f"for any constants: {in_words(plan)}",), scanned=scanned)


def database_size(connection: psycopg.Connection) -> int:
    """All its bytes."""
    row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


def largest_tables(connection: psycopg.Connection) -> list[tuple[str, int, int, int]]:
    """Names, rows, bytes, and bytes of the indexes."""
    return connection.execute(_TABLES, [TOP]).fetchall()


def indexes(connection: psycopg.Connection, before: Counted, after: Counted) -> list[Index]:
    """All of them, the largest first."""
    return [
        Index(name, table, size, is_unique, after.uses.get(name, 0) - before.uses.get(name, 0))
        for name, table, size, is_unique in connection.execute(_INDEXES)
    ]


# -- plans that statements had ------------------------------------------------------------------------------------------


@contextmanager
def explained(connection: psycopg.Connection, log: Path, plans: Plans) -> Iterator[None]:
    """Every statement in the block writes its plan into PostgreSQL's log, from which they are read in the end."""
    begin = log.stat().st_size
    _set(connection, "ALTER SYSTEM SET auto_explain.log_min_duration = 0")
    try:
        yield
    finally:
        _set(connection, "ALTER SYSTEM RESET auto_explain.log_min_duration")
    with log.open("rb") as file:
        file.seek(begin)
        for statement, plan in logged(file.read()):
            plans.add(statement, plan)


def _set(connection: psycopg.Connection, statement: LiteralString) -> None:
    connection.execute(statement)
    connection.execute("SELECT pg_reload_conf()")
    time.sleep(SETTLED)


def logged(text: bytes) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The ids and plans of statements in a log; an entry that others have written into is left out."""
    for match in _LOGGED.finditer(text):
        try:
            entry = json.loads(match[1])
        except ValueError:
            continue
        if "Query Identifier" in entry:
            yield int(entry["Query Identifier"]), entry["Plan"]


def whole_tables(plan: Mapping[str, Any]) -> Iterator[str]:
    """The tables that a plan reads from the first row to the last."""
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for child in plan.get("Plans", ()):
        yield from whole_tables(child)


def in_words(plan: Mapping[str, Any]) -> str:
    """A plan in one line: what each step reads, innermost in parentheses."""
    text = plan["Node Type"]
    if "Index Name" in plan:
        text += f" {plan['Index Name']}"
    elif "Relation Name" in plan:
        text += f" {plan['Relation Name']}"
    children: Sequence[Mapping[str, Any]] = plan.get("Plans", ())
    return f"{text}({', '.join(map(in_words, children))})" if children else text
