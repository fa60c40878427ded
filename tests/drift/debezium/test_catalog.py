"""PostgreSQL's catalog, read from a real server as a role that may only read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from registry.drift.debezium import catalog
from registry.drift.debezium.catalog import DatabaseConnection, read_catalog
from registry.drift.debezium.filters import TableFilter
from registry.drift.debezium.tables import Catalog, Column, Table
from registry.errors import AddressRefused, InvalidSecret, InvalidSource, RemoteUnavailable
from tests.debezium.services import LogicalDatabase, logical_database
from tests.drift.debezium.conftest import EVERY_TABLE, catalog_of, reachable

pytestmark = pytest.mark.slow

STATEMENTS = (
    "CREATE DOMAIN price AS numeric(12, 4) NOT NULL",
    "CREATE DOMAIN list_price AS price",
    "CREATE TYPE mood AS ENUM ('sad', 'o''k, fine')",
    "CREATE TYPE pair AS (a int, b int)",
    """CREATE TABLE "odd ""name" ("a.b" int PRIMARY KEY, "größe" text, "x'; DROP TABLE y; --" int)""",
    """CREATE TABLE kinds (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cost list_price, n numeric, m numeric(5),
       neg numeric(3, -2), v varchar(7), c char(3), plain text, t time(3), ts timestamptz, f mood, p pair, g int[][],
       b bit(4), twice bigint GENERATED ALWAYS AS (m::bigint * 2) STORED, d text DEFAULT 'it''s', gone int)""",
    "ALTER TABLE kinds DROP COLUMN gone",
    "CREATE TABLE parts (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
    "CREATE TABLE several (a int NOT NULL, b int NOT NULL, c int, UNIQUE (b, a), UNIQUE (c))",
    "CREATE UNIQUE INDEX several_lower ON several ((a + 1))",
    "CREATE UNIQUE INDEX several_some ON several (a) WHERE c > 0",
    "ALTER TABLE several REPLICA IDENTITY USING INDEX several_b_a_key",
    "CREATE TABLE nothing (id int PRIMARY KEY)",
    "ALTER TABLE nothing REPLICA IDENTITY NOTHING",
    "CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)",
    "CREATE VIEW a_view AS SELECT 1 AS one",
    "CREATE PUBLICATION inserts FOR TABLE several (a, b) WHERE (a > 1) WITH (publish = 'insert')",
    "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')",
)


@pytest.fixture(scope="module")
def database(logical_postgres: str) -> Iterator[LogicalDatabase]:
    with logical_database(logical_postgres) as made:
        made.run(*STATEMENTS)
        yield made


@pytest.fixture(scope="module")
def catalog_read(database: LogicalDatabase) -> Catalog:
    return catalog_of(database, slot="mine")


def table(catalog_read: Catalog, name: str) -> Table:
    return next(item for item in catalog_read.tables if item.name == name)


def test_the_tables_are_those_that_can_be_captured(catalog_read: Catalog) -> None:
    assert {item.name for item in catalog_read.tables} == {
        'odd "name',
        "kinds",
        "parts",
        "parts_1",
        "several",
        "nothing",
    }
    assert table(catalog_read, "parts").partitioned
    assert catalog_read.server_version >= 140_000
    assert (catalog_read.wal_level, catalog_read.cut) == ("logical", "")
    assert [column.name for column in table(catalog_read, 'odd "name').columns] == [
        "a.b",
        "größe",
        "x'; DROP TABLE y; --",
    ]


def test_columns_have_their_types(catalog_read: Catalog) -> None:
    kinds = table(catalog_read, "kinds")
    columns: dict[str, Column] = {column.name: column for column in kinds.columns}
    assert kinds.dropped_columns == 1
    assert (columns["id"].type, columns["id"].identity, columns["id"].nullable) == ("int8", True, False)
    # Of a domain of a domain the modifier stands at the first one.
    assert (columns["cost"].type, columns["cost"].precision, columns["cost"].scale) == ("numeric", 12, 4)
    assert (columns["n"].precision, columns["n"].scale) == (None, None)
    assert (columns["m"].precision, columns["m"].scale) == (5, 0)
    assert (columns["neg"].precision, columns["neg"].scale) == (3, -2)
    assert (columns["v"].length, columns["c"].length, columns["b"].length) == (7, 3, 4)
    assert (columns["t"].scale, columns["ts"].scale) == (3, None)
    assert (columns["f"].kind, columns["f"].labels) == ("enum", ("sad", "o'k, fine"))
    assert columns["p"].kind == "composite"
    assert (columns["g"].type, columns["g"].dimensions) == ("_int4", 2)
    assert (columns["twice"].generated, columns["plain"].generated) == (True, False)
    assert columns["d"].default == "'it''s'::text"


def test_keys_indexes_and_identities(catalog_read: Catalog) -> None:
    several = table(catalog_read, "several")
    assert {index.name: index.columns for index in several.unique} == {
        "several_b_a_key": ("b", "a"),
        "several_c_key": ("c",),
        "several_lower": (),
        "several_some": ("a",),
    }
    assert [index.name for index in several.unique if index.partial] == ["several_some"]
    assert (several.identity, several.primary_key) == ("index", ())
    assert several.identity_index is not None
    assert several.identity_index.name == "several_b_a_key"
    assert table(catalog_read, "nothing").identity == "nothing"
    assert table(catalog_read, "parts").primary_key == ("id", "day")


def test_publications_and_slots(catalog_read: Catalog) -> None:
    several = table(catalog_read, "several")
    assert several.publications == ("everything", "inserts")
    assert several.published_columns == {"everything": ("a", "b", "c"), "inserts": ("a", "b")}
    assert several.row_filters == {"inserts": "(a > 1)"}
    assert table(catalog_read, "kinds").publications == ("everything",)
    inserts = catalog_read.publications["inserts"]
    assert (inserts.inserts, inserts.updates, inserts.deletes, inserts.truncates) == (True, False, False, False)
    slot = catalog_read.slots["mine"]
    assert (slot.active, slot.wal_status, slot.plugin) == (False, "reserved", "pgoutput")
    assert slot.lag_bytes is not None
    assert slot.lag_bytes >= 0


def test_tables_that_are_not_captured_are_not_read(database: LogicalDatabase) -> None:
    only = catalog_of(database, TableFilter.read({"table.include.list": r"public\.kinds"}))
    assert [item.name for item in only.tables] == ["kinds"]
    assert only.slots == {}


def test_nothing_can_be_written_and_every_statement_ends(database: LogicalDatabase, monkeypatch: Any) -> None:
    with reachable(database) as address:
        with catalog._connected(address) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("CREATE TABLE public.mine (id int)")
        monkeypatch.setattr(catalog, "STATEMENT_MS", 200)
        with (
            pytest.raises(RemoteUnavailable, match="statement timeout"),
            catalog._connected(address) as connection,
        ):
            connection.execute("SELECT pg_sleep(30)")


def test_bounds_are_said(database: LogicalDatabase, monkeypatch: Any) -> None:
    monkeypatch.setattr(catalog, "MAX_TABLES", 2)
    cut = catalog_of(database)
    assert (len(cut.tables), cut.cut) == (2, "only the first 2 tables were checked")
    monkeypatch.setattr(catalog, "MAX_COLUMNS", 1)
    with pytest.raises(InvalidSource, match="more than 1 columns"):
        catalog_of(database)


CHANGES: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"secret": "none-of-that-name"}, InvalidSecret),
    ({"secret": ""}, RemoteUnavailable),
    ({"user": "nobody"}, RemoteUnavailable),
    ({"database": "other"}, RemoteUnavailable),
    ({"database": "host=/tmp dbname=postgres"}, InvalidSource),
    ({"database": "postgresql://elsewhere/db"}, InvalidSource),
    ({"user": ""}, InvalidSource),
    ({"port": 1}, RemoteUnavailable),
    ({"port": 0}, InvalidSource),
    ({"host": "169.254.169.254", "secret": ""}, AddressRefused),
    ({"host": "127.0.0.2", "secret": ""}, AddressRefused),
    # The server has no TLS: nothing is sent to it in the clear.
    ({"tls": True}, RemoteUnavailable),
]


@pytest.mark.parametrize(("change", "error"), CHANGES, ids=lambda value: str(value)[:40])
def test_what_cannot_be_connected_with(
    database: LogicalDatabase, change: dict[str, Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    with reachable(database) as address:
        if change.get("port") == 1:
            monkeypatch.setenv("SCHEMADESK_SECRET_CDC", "http://127.0.0.1 pw")
        with pytest.raises(error) as caught:
            read_catalog(replace(address, **change), EVERY_TABLE, slot="mine")
        assert database.login.password not in str(caught.value)


def test_a_secret_is_not_sent_to_another_host_or_in_the_clear(database: LogicalDatabase, monkeypatch: Any) -> None:
    with reachable(database) as address:
        monkeypatch.setenv("SCHEMADESK_SECRET_CDC", "db.example.com pw")
        with pytest.raises(InvalidSecret):
            read_catalog(address, EVERY_TABLE, slot="mine")


def test_the_address_is_typed() -> None:
    address = DatabaseConnection("h", 1, "d", "u")
    assert address.tls is True
