"""The demo's shop: a database whose changes Debezium's real connector writes to topics, as Avro and as JSON."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dashboard.demo.connect_api import Connect
from dashboard.demo.connectors import Converter, Login, conversion, debezium, slot_name
from dashboard.services.folders import write_private
from registry.errors import Unavailable

HERE = Path(__file__).parent
DATABASE = "shop"
READER = "shop_reader"
PUBLICATION = "shop"
# The connectors by their prefix: the first has every table, the second shows the same customers as plain JSON.
CONNECTORS: Mapping[str, Converter] = {"shop": "avro", "shop_json": "json"}
ONLY: Mapping[str, dict[str, str]] = {
    # Its truncates meet more than one partition.
    "shop": {
        "topic.creation.groups": "stock",
        "topic.creation.stock.include": r"shop\.shop\.stock",
        "topic.creation.stock.partitions": "2",
        "topic.creation.stock.replication.factor": "1",
    },
    "shop_json": {"table.include.list": "shop.customers"},
}
PATIENCE = 60.0


@dataclass(frozen=True)
class Surroundings:
    """What the shop runs on: the superuser's address of a PostgreSQL that listens on a port, Kafka Connect, the folder
    of the secrets that it reads, the address of the Apicurio endpoint and a token for the registry behind that."""

    server: str
    connect_url: str
    secrets: Path
    endpoint: str
    token: str


def write_shop(around: Surroundings, on_line: Callable[[str], object]) -> Login:
    """Make the shop and its connectors if they are missing, let a day pass in it, and change a table.

    Gives the login that may read the shop's catalog. A second run adds another day. Raises Unavailable when a connector fails or doesn't read what was written.
    """
    shop = make_conninfo(around.server, dbname=DATABASE)
    login = _make_database(around, shop)
    connect = Connect(around.connect_url)
    for prefix, converter in CONNECTORS.items():
        _start_connector(around, connect, shop, login, prefix, converter)
        on_line(f"connector {prefix} reads the shop's tables and writes {converter} events to {prefix}.shop.*")
    with psycopg.connect(shop, autocommit=True) as connection:
        for name, what in (("shop_day", "a day in the shop"), ("shop_change", "shop.orders has a new column")):
            statements = _paragraphs(HERE / f"{name}.sql")
            for statement in statements:
                connection.execute(statement.encode())
            _wait_until_read(connection, connect)
            on_line(f"{what}: {len(statements)} statements, read by both connectors")
    return replace(login, password=_kept_password(around.secrets / "shop-postgres"))


def _make_database(around: Surroundings, shop: str) -> Login:
    """The database with its tables and publication, and the login of connectors, which may only read."""
    password = _kept_password(around.secrets / "shop-postgres")
    with psycopg.connect(around.server, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER]).fetchone():
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN REPLICATION").format(sql.Identifier(READER)))
        role = sql.SQL("ALTER ROLE {} PASSWORD {}")
        connection.execute(role.format(sql.Identifier(READER), sql.Literal(password)))
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute((HERE / "shop.sql").read_bytes())
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA shop TO {}").format(sql.Identifier(READER)))
        connection.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA shop TO {}").format(sql.Identifier(READER)))
        if not connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [PUBLICATION]).fetchone():
            connection.execute(sql.SQL("CREATE PUBLICATION {} FOR ALL TABLES").format(sql.Identifier(PUBLICATION)))
    port = int(str(conninfo_to_dict(around.server)["port"]))
    return Login(port, READER, _reference(around, "shop-postgres"), DATABASE)


def _kept_password(path: Path) -> str:
    """The password in the file, made at the first call. Without a newline: Connect takes the file as it is."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32))
    return path.read_text(encoding="utf-8")


def _reference(around: Surroundings, name: str) -> str:
    """What stands for a secret in a connector's configuration, which Connect keeps in a topic."""
    return f"${{directory:{around.secrets}:{name}}}"


def _start_connector(
    around: Surroundings, connect: Connect, shop: str, login: Login, prefix: str, converter: Converter
) -> None:
    write_private(around.secrets / "shop-token", around.token)
    _drop_lost_slot(shop, prefix)
    converting = conversion(converter, endpoint=around.endpoint, token=_reference(around, "shop-token"))
    # After a slot was lost there is a gap: then all rows are read again.
    more = {**converting, **ONLY[prefix], "snapshot.mode": "when_needed"}
    connect.put(prefix, debezium(login, prefix=prefix, publication=PUBLICATION, more=more))
    status = connect.wait_until(prefix, lambda found: found.running or bool(found.failure), seconds=PATIENCE)
    if status.failure:
        # It failed in an earlier run, perhaps for a reason that is gone.
        connect.restart_failed(prefix)
    connect.wait_until_running(prefix, seconds=PATIENCE)


def _drop_lost_slot(shop: str, prefix: str) -> None:
    """A slot whose part of the log is gone serves nobody: the connector makes a new one."""
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE slot_name = %s AND wal_status = 'lost' AND NOT active",
            [slot_name(prefix)],
        )


def _paragraphs(path: Path) -> list[str]:
    """The statements of a file, one a paragraph, without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]


def _wait_until_read(connection: psycopg.Connection, connect: Connect) -> None:
    """Returns when the connectors have confirmed all that was written. Raises Unavailable when one fails or is slow."""
    end = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    # What comes after the end moves a slot beyond it.
    connection.execute("SELECT pg_logical_emit_message(false, 'shop', 'The end of a step.')")
    slots = [slot_name(prefix) for prefix in CONNECTORS]
    question = "SELECT slot_name FROM pg_replication_slots WHERE slot_name = ANY(%s) AND confirmed_flush_lsn >= %s"
    deadline = time.monotonic() + PATIENCE
    while len(done := connection.execute(question, [slots, end and end[0]]).fetchall()) < len(slots):
        for prefix in CONNECTORS:
            if failure := connect.status(prefix).failure:
                raise Unavailable(f"The connector {prefix} failed: {failure}")
        if time.monotonic() > deadline:
            raise Unavailable(f"After {PATIENCE:.0f} s only {done} of the slots {slots} have been read to the end.")
        time.sleep(0.2)
