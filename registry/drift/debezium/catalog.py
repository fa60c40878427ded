"""Reads PostgreSQL's catalog through one read-only connection with a time limit on every statement.

The columns of each query have the names of the fields in `registry.drift.debezium.tables`.
"""

from __future__ import annotations

import ssl
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from registry.access.egress import Connection, current_policy, parse_connection
from registry.access.http_client import find_secret, refuse_other_host
from registry.drift.debezium.filters import TableFilter
from registry.drift.debezium.tables import Catalog, Column, Index, Publication, Slot, Table
from registry.errors import InvalidSource, RemoteUnavailable

SERVER: Final = """
SELECT current_setting('server_version_num')::int AS version, current_setting('wal_level') AS wal_level,
       current_database() AS database
"""

TABLES: Final = b"""
SELECT c.oid::bigint AS oid, n.nspname AS schema, c.relname AS name, c.relkind = 'p' AS partitioned,
       CASE c.relreplident WHEN 'd' THEN 'default' WHEN 'n' THEN 'nothing' WHEN 'f' THEN 'full' ELSE 'index' END
         AS identity,
       CASE WHEN c.relispartition THEN ARRAY(
           WITH RECURSIVE up AS (
               SELECT inhparent, 1 AS level FROM pg_inherits WHERE inhrelid = c.oid
             UNION ALL
               SELECT i.inhparent, up.level + 1 FROM pg_inherits i JOIN up ON i.inhrelid = up.inhparent
           ) SELECT pn.nspname || '.' || p.relname FROM up JOIN pg_class p ON p.oid = up.inhparent
             JOIN pg_namespace pn ON pn.oid = p.relnamespace ORDER BY up.level)::text[]
         ELSE ARRAY[]::text[] END AS ancestors,
       (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attisdropped)::int
         AS dropped_columns
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%%'
ORDER BY n.nspname, c.relname
LIMIT %(most)s
"""

# pg_type has the modifier of a domain; the query resolves its base type down to the last one.
COLUMNS: Final = b"""
WITH RECURSIVE bases AS (
    SELECT t.oid AS type, t.oid AS base, -1 AS modifier FROM pg_type t
    WHERE t.oid IN (SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0)
  UNION ALL
    SELECT b.type, t.typbasetype, t.typtypmod FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype = 'd'
), base AS (
    SELECT b.type, b.base, b.modifier FROM bases b JOIN pg_type t ON t.oid = b.base WHERE t.typtype <> 'd'
)
SELECT a.attrelid::bigint AS table_oid, a.attname AS name, t.typname AS type,
       format_type(a.atttypid, a.atttypmod) AS declared,
       NOT (a.attnotnull OR own.typnotnull) AS nullable,
       own.typnotnull AND NOT a.attnotnull AS required_by_domain, pg_get_expr(d.adbin, d.adrelid) AS default,
       a.attgenerated <> '' AS generated, a.attidentity <> '' AS identity,
       CASE WHEN m.typmod < 0 THEN NULL
            WHEN e.typname IN ('varchar', 'bpchar') THEN m.typmod - 4
            WHEN e.typname IN ('bit', 'varbit') THEN m.typmod END AS length,
       CASE WHEN m.typmod < 0 THEN NULL
            WHEN e.typname = 'numeric' THEN ((m.typmod - 4) & 2047) - ((m.typmod - 4) & 1024) * 2
            WHEN e.typname IN ('time', 'timetz', 'timestamp', 'timestamptz') THEN m.typmod END AS scale,
       CASE WHEN m.typmod >= 0 AND e.typname = 'numeric' THEN (m.typmod - 4) >> 16 END AS precision,
       a.attndims::int AS dimensions,
       CASE e.typtype WHEN 'b' THEN 'base' WHEN 'e' THEN 'enum' WHEN 'c' THEN 'composite' WHEN 'r' THEN 'range'
            WHEN 'm' THEN 'range' ELSE 'other' END AS kind,
       ARRAY(SELECT l.enumlabel FROM pg_enum l WHERE l.enumtypid = e.oid ORDER BY l.enumsortorder)::text[] AS labels,
       a.attnum::int AS number
FROM pg_attribute a
JOIN pg_type own ON own.oid = a.atttypid
JOIN base b ON b.type = a.atttypid
JOIN pg_type t ON t.oid = b.base
JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
CROSS JOIN LATERAL (SELECT CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE b.modifier END AS typmod) m
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
LIMIT %(most)s
"""

INDEXES: Final = b"""
SELECT i.indrelid::bigint AS table_oid, c.relname AS name, i.indisprimary AS primary,
       i.indisreplident AS replica_identity, i.indpred IS NOT NULL AS partial,
       CASE WHEN i.indexprs IS NULL THEN ARRAY(
           SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
           JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
           WHERE k.place <= i.indnkeyatts ORDER BY k.place)::text[] ELSE ARRAY[]::text[] END AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(%(oids)s::oid[]) AND i.indisunique AND i.indisvalid
ORDER BY i.indrelid, c.relname
LIMIT %(most)s
"""

PUBLICATIONS: Final = b"""
SELECT pubname AS name, pubinsert AS inserts, pubupdate AS updates, pubdelete AS deletes,
       pubtruncate AS truncates
FROM pg_publication ORDER BY pubname LIMIT 1000
"""

PUBLISHED: Final = """
SELECT schemaname AS schema, tablename AS name, pubname AS publication, attnames::text[] AS columns,
       coalesce(rowfilter, '') AS row_filter
FROM pg_publication_tables ORDER BY 1, 2, 3 LIMIT 100000
"""
PUBLISHED_BEFORE_15: Final = """
SELECT schemaname AS schema, tablename AS name, pubname AS publication, NULL::text[] AS columns, '' AS row_filter
FROM pg_publication_tables ORDER BY 1, 2, 3 LIMIT 100000
"""

_LAG: Final = """
       pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END,
                       confirmed_flush_lsn)::bigint AS lag_bytes"""
SLOTS: Final = f"""
SELECT slot_name AS name, coalesce(plugin, '') AS plugin, active, coalesce(wal_status, '') AS wal_status,
       safe_wal_size::bigint AS safe_bytes,{_LAG}
FROM pg_replication_slots WHERE slot_name = %(slot)s AND database = current_database()
"""  # noqa: S608 - only constants
SLOTS_BEFORE_13: Final = f"""
SELECT slot_name AS name, coalesce(plugin, '') AS plugin, active, '' AS wal_status, NULL::bigint AS safe_bytes,{_LAG}
FROM pg_replication_slots WHERE slot_name = %(slot)s AND database = current_database()
"""  # noqa: S608 - only constants


STATEMENT_MS: Final = 10_000
CONNECT_SECONDS: Final = 8
MAX_TABLES: Final = 5_000
MAX_COLUMNS: Final = 100_000
OLDEST: Final = 100_000  # version 10: logical decoding with publications


@dataclass(frozen=True)
class DatabaseConnection:
    """Where the database is and who reads it; `secret` is the name of the secret with the password."""

    host: str
    port: int
    database: str
    user: str
    secret: str = ""
    tls: bool = True


def read_catalog(database: DatabaseConnection, tables: TableFilter, *, slot: str) -> Catalog:
    """Read the captured tables, all publications and the connector's slot from the catalog.

    Tables that a pattern leaves undecided are read too. Raises AddressRefused, InvalidSecret, InvalidSource if the
    database can't be used, RemoteUnavailable if it doesn't answer or rejects the login.
    """
    with _connected(database) as connection:
        server = _one(connection, SERVER)
        listed = connection.execute(TABLES, {"most": MAX_TABLES + 1}).fetchall()
        captured = [row for row in listed[:MAX_TABLES] if tables.takes(row["schema"], row["name"]) is not False]
        cut = f"only the first {MAX_TABLES} tables were checked" if len(listed) > MAX_TABLES else ""
        oids = {"oids": [row["oid"] for row in captured], "most": MAX_COLUMNS + 1}
        columns = connection.execute(COLUMNS, oids).fetchall()
        if len(columns) > MAX_COLUMNS:
            raise InvalidSource(f"The captured tables have more than {MAX_COLUMNS} columns; narrow table.include.list.")
        indexes = connection.execute(INDEXES, oids).fetchall()
        published = _published(connection, int(server["version"]))
        names: dict[str, set[str]] = defaultdict(set)
        for (schema, name), memberships in published.items():
            for member in memberships:
                names[member["publication"]].add(f"{schema}.{name}")
        publications = {
            row["name"]: Publication(**row, tables=frozenset(names[row["name"]]))
            for row in connection.execute(PUBLICATIONS)
        }
        slots = {row["name"]: Slot(**row) for row in connection.execute(_slots_query(server), {"slot": slot})}
    return Catalog(
        database=str(server["database"]),
        server_version=int(server["version"]),
        wal_level=str(server["wal_level"]),
        tables=tuple(_tables(captured, columns, indexes, published)),
        publications=publications,
        slots=slots,
        cut=cut,
    )


@contextmanager
def _connected(database: DatabaseConnection) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """Open a read-only connection to an address of the host that the egress policy allows."""
    address = _place(database)
    addresses = current_policy().addresses(address)
    password = ""
    if database.secret:
        secret = find_secret(database.secret)
        refuse_other_host(secret, address)
        password = secret.value
    where = f"{database.host}:{database.port}/{database.database}"
    try:
        connection = psycopg.connect(
            host=database.host,
            hostaddr=str(addresses[0]),
            port=database.port,
            dbname=_plain(database.database),
            user=_plain(database.user),
            password=password or None,
            passfile="/dev/null",
            sslmode="verify-full" if database.tls else "disable",
            sslrootcert=_authorities() if database.tls else None,
            gssencmode="disable",
            connect_timeout=CONNECT_SECONDS,
            application_name="schemadesk",
            options=f"-c default_transaction_read_only=on -c statement_timeout={STATEMENT_MS} -c lock_timeout=2000"
            " -c idle_in_transaction_session_timeout=60000 -c search_path=pg_catalog",
            autocommit=True,
            row_factory=dict_row,
        )
    except psycopg.Error as error:
        raise RemoteUnavailable(f"The database {where} can't be reached: {_said(error)}.") from error
    try:
        if connection.info.server_version < OLDEST:
            raise InvalidSource(f"The database {where} is older than PostgreSQL 10: it has no publications.")
        yield connection
    except psycopg.Error as error:
        raise RemoteUnavailable(f"The catalog of {where} can't be read: {_said(error)}.") from error
    finally:
        connection.close()


def _authorities() -> str:
    """Return the CA file of Python's TLS; libpq's default may not exist."""
    return ssl.get_default_verify_paths().cafile or "system"


def _place(database: DatabaseConnection) -> Connection:
    """Return the address for the egress policy; https means TLS, as in a secret's binding."""
    if not 1 <= database.port <= 65535:
        raise InvalidSource(f"The port {database.port} is not between 1 and 65535.")
    host = f"[{database.host}]" if ":" in database.host else database.host
    scheme = "https" if database.tls else "http"
    return parse_connection(f"{scheme}://{host}:{database.port}")


def _plain(name: str) -> str:
    """Return the name of a database or user. Raises InvalidSource if libpq would read it as a connection string."""
    if not name or "=" in name or "://" in name or not name.isprintable():
        raise InvalidSource(f"{name[:63]!r} is not a valid name for a database or user.")
    return name


def _said(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__


def _one(connection: psycopg.Connection[dict[str, Any]], query: str) -> dict[str, Any]:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise RemoteUnavailable("The database returned no answer to the query about its version and settings.")
    return row


def _slots_query(server: Mapping[str, Any]) -> bytes:
    """Return the query for slots; `wal_status` and `safe_wal_size` exist since version 13."""
    query = SLOTS if int(server["version"]) >= 130_000 else SLOTS_BEFORE_13
    return query.encode()


def _published(
    connection: psycopg.Connection[dict[str, Any]], version: int
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return publications by table; column lists and row filters exist since version 15."""
    query = PUBLISHED if version >= 150_000 else PUBLISHED_BEFORE_15
    by_table: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(query.encode()):
        by_table[row["schema"], row["name"]].append(row)
    return by_table


def _tables(
    listed: list[dict[str, Any]],
    columns: list[dict[str, Any]],
    indexes: list[dict[str, Any]],
    published: Mapping[tuple[str, str], list[dict[str, Any]]],
) -> Iterator[Table]:
    columns_of: dict[int, list[Column]] = defaultdict(list)
    for row in columns:
        columns_of[row.pop("table_oid")].append(Column(**{**row, "labels": tuple(row["labels"])}))
    indexes_of: dict[int, list[Index]] = defaultdict(list)
    for row in indexes:
        indexes_of[row.pop("table_oid")].append(Index(**{**row, "columns": tuple(row["columns"])}))
    for row in listed:
        memberships = published.get((row["schema"], row["name"]), [])
        unique = tuple(indexes_of[row["oid"]])
        yield Table(
            schema=row["schema"],
            name=row["name"],
            columns=tuple(columns_of[row["oid"]]),
            primary_key=next((index.columns for index in unique if index.primary), ()),
            unique=unique,
            identity=row["identity"],
            publications=tuple(member["publication"] for member in memberships),
            dropped_columns=row["dropped_columns"],
            partitioned=row["partitioned"],
            oid=row["oid"],
            ancestors=tuple(row["ancestors"]),
            published_columns={
                member["publication"]: tuple(member["columns"])
                for member in memberships
                if member["columns"] is not None
            },
            row_filters={member["publication"]: member["row_filter"] for member in memberships if member["row_filter"]},
        )
