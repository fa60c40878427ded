"""PostgreSQL's catalog, read through one read-only connection with a time limit on every statement."""

from __future__ import annotations

import ssl
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from registry.access.credentials import find_secret, refuse_other_host
from registry.access.egress import Connection, current_policy, parse_connection
from registry.drift.debezium import catalog_queries as queries
from registry.drift.debezium.filters import TableFilter
from registry.drift.debezium.tables import Catalog, Column, Index, Publication, Slot, Table
from registry.errors import InvalidSource, RemoteUnavailable

STATEMENT_MS: Final = 10_000
CONNECT_SECONDS: Final = 8
MAX_TABLES: Final = 5_000
MAX_COLUMNS: Final = 100_000
OLDEST: Final = 100_000  # version 10: logical decoding with publications


@dataclass(frozen=True)
class DatabaseConnection:
    """Where the database is and who reads it; `secret` is the name of the secret that holds the password."""

    host: str
    port: int
    database: str
    user: str
    secret: str = ""
    tls: bool = True


def read_catalog(database: DatabaseConnection, tables: TableFilter, *, slot: str) -> Catalog:
    """What the catalog says of the captured tables, of all publications, and of the connector's slot.

    Tables that a pattern leaves open are read too. Raises AddressRefused, InvalidSecret, InvalidSource for a database
    that can't be used, RemoteUnavailable where it doesn't answer or doesn't let us in.
    """
    with _connected(database) as connection:
        server = _one(connection, queries.SERVER)
        listed = connection.execute(queries.TABLES, {"most": MAX_TABLES + 1}).fetchall()
        wanted = [row for row in listed[:MAX_TABLES] if tables.takes(row["schema"], row["name"]) is not False]
        cut = f"the first {MAX_TABLES} tables were looked at" if len(listed) > MAX_TABLES else ""
        oids = {"oids": [row["oid"] for row in wanted], "most": MAX_COLUMNS + 1}
        columns = connection.execute(queries.COLUMNS, oids).fetchall()
        if len(columns) > MAX_COLUMNS:
            raise InvalidSource(f"The captured tables have more than {MAX_COLUMNS} columns; narrow table.include.list.")
        indexes = connection.execute(queries.INDEXES, oids).fetchall()
        published = _published(connection, int(server["version"]))
        publications = {row["name"]: Publication(**row) for row in connection.execute(queries.PUBLICATIONS)}
        slots = {row["name"]: Slot(**row) for row in connection.execute(_slots_query(server), {"slot": slot})}
    return Catalog(
        database=str(server["database"]),
        server_version=int(server["version"]),
        wal_level=str(server["wal_level"]),
        tables=tuple(_tables(wanted, columns, indexes, published)),
        publications=publications,
        slots=slots,
        cut=cut,
    )


@contextmanager
def _connected(database: DatabaseConnection) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A read-only connection to a judged address of the host."""
    place = _place(database)
    addresses = current_policy().addresses(place)
    password = ""
    if database.secret:
        secret = find_secret(database.secret)
        refuse_other_host(secret, place)
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
    """The file of certificate authorities that Python's TLS uses: the library's own notion of one may lead nowhere."""
    return ssl.get_default_verify_paths().cafile or "system"


def _place(database: DatabaseConnection) -> Connection:
    """The address in the form that the egress policy judges; https stands for TLS, as for a secret's binding."""
    if not 1 <= database.port <= 65535:
        raise InvalidSource(f"The port {database.port} is not between 1 and 65535.")
    host = f"[{database.host}]" if ":" in database.host else database.host
    scheme = "https" if database.tls else "http"
    return parse_connection(f"{scheme}://{host}:{database.port}")


def _plain(name: str) -> str:
    """A database's or user's name. Raises InvalidSource for what libpq would read as a whole connection string."""
    if not name or "=" in name or "://" in name or not name.isprintable():
        raise InvalidSource(f"{name[:63]!r} is no name of a database or user that can be connected with.")
    return name


def _said(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__


def _one(connection: psycopg.Connection[dict[str, Any]], query: str) -> dict[str, Any]:
    row = connection.execute(query.encode()).fetchone()
    if row is None:
        raise RemoteUnavailable("The database answers nothing to what it is asked of itself.")
    return row


def _slots_query(server: Mapping[str, Any]) -> bytes:
    """`wal_status` and `safe_wal_size` are there since version 13."""
    query = queries.SLOTS if int(server["version"]) >= 130_000 else queries.SLOTS_BEFORE_13
    return query.encode()


def _published(
    connection: psycopg.Connection[dict[str, Any]], version: int
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Publications by table; column lists and row filters are there since version 15."""
    query = queries.PUBLISHED if version >= 150_000 else queries.PUBLISHED_BEFORE_15
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(query.encode()):
        found[row["schema"], row["name"]].append(row)
    return found


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
            published_columns={
                member["publication"]: tuple(member["columns"])
                for member in memberships
                if member["columns"] is not None
            },
            row_filters={member["publication"]: member["row_filter"] for member in memberships if member["row_filter"]},
        )
