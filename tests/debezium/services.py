"""What a connector needs around it: a database with a login of its own, gone afterwards, and a Schemadesk over HTTP."""

from __future__ import annotations

import json
import secrets
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dashboard.demo.shop import Login
from tests.services_plugin import as_owner

PUBLICATION = "everything"


@dataclass(frozen=True)
class LogicalDatabase:
    """A database: `url` for its owner, a superuser, and the `login` of connectors, which may only read."""

    url: str
    login: Login

    def run(self, *statements: str | Sequence[str]) -> None:
        """Runs the statements, each by itself; a list of them is one transaction."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                if isinstance(statement, str):
                    connection.execute(statement.encode())
                    continue
                with connection.transaction():
                    for each in statement:
                        connection.execute(each.encode())

    def refuses(self, statement: str) -> str:
        """PostgreSQL's own words about a statement that it must refuse."""
        try:
            self.run(statement)
        except psycopg.Error as error:
            return str(error)
        raise AssertionError(f"PostgreSQL took {statement}")

    def slots(self) -> dict[str, str]:
        """The state of the WAL that each slot of this database keeps, by its name: `reserved`, …, `lost`."""
        with psycopg.connect(self.url) as connection:
            found = connection.execute(
                "SELECT slot_name, wal_status FROM pg_replication_slots WHERE database = current_database()"
            )
            return {str(name): str(status) for name, status in found}


@contextmanager
def logical_database(server: str) -> Iterator[LogicalDatabase]:
    """A fresh database on the server (its superuser's address), in which every table is published.

    Leave the block after the connectors are deleted: it waits some seconds for their slots to be let go.
    """
    name = f"cdc_{secrets.token_hex(4)}"
    password = secrets.token_urlsafe(16)
    port = int(str(conninfo_to_dict(server)["port"]))
    database = LogicalDatabase(make_conninfo(server, dbname=name), Login(port, name, password, name))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        role = sql.SQL("CREATE ROLE {} LOGIN REPLICATION PASSWORD {}")
        connection.execute(role.format(sql.Identifier(name), sql.Literal(password)))
        connection.execute(sql.SQL("GRANT pg_read_all_data TO {}").format(sql.Identifier(name)))
    database.run(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES")
    try:
        yield database
    finally:
        drop_slots(database)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def drop_slots(database: LogicalDatabase, seconds: float = 60) -> None:
    """Drops the slots of the database, waiting for connectors that were deleted to let go of them."""
    deadline = time.monotonic() + seconds
    while slots := database.slots():
        try:
            for name in slots:
                database.run(f"SELECT pg_drop_replication_slot('{name}')")
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@contextmanager
def schemadesk_server(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A Schemadesk over HTTP with registries of its own, and an admin's token; its rows are gone afterwards.

    Not pytest-django's `live_server`: that empties the database after each test, and a connector doesn't register
    again what it registered once.
    """
    from django.core.management import call_command
    from pytest_django.live_server_helper import LiveServer

    from dashboard.management.commands.prepare import make_registries
    from registry.access.roles import system_actor
    from registry.access.services import ensure_person, issue_token

    request.getfixturevalue("django_db_setup")
    with request.getfixturevalue("django_db_blocker").unblock():
        by = system_actor("tests", channel="command")
        make_registries(by=by)
        ensure_person(username="admin", role="admin", by=by)
        server = LiveServer("127.0.0.1")
        try:
            yield server.url, issue_token(username="admin", name="connector", by=by)
        finally:
            server.stop()
            with as_owner():
                call_command("flush", verbosity=0, interactive=False)


def ask(url: str, token: str, method: str, path: str, content: dict[str, Any] | None = None) -> Any:
    """What the server answers to a call. Raises HTTPError where it refuses."""
    data = json.dumps(content).encode() if content else None
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
        return json.load(answer)
