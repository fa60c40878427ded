"""Databases with the scenarios' tables in them, read as the product reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from registry.access.roles import system_actor
from registry.drift import services
from registry.drift.debezium.catalog import DatabaseConnection, read_catalog
from registry.drift.debezium.filters import TableFilter
from registry.drift.debezium.tables import Catalog
from registry.drift.models import Source
from tests.debezium.scenarios import SCENARIOS, WAIT, Connector
from tests.debezium.services import LogicalDatabase, logical_database

ReadCatalog = Callable[[LogicalDatabase], Catalog]


def before_of(scenario: str) -> list[Any]:
    """The statements that make a scenario's tables, in a schema of its own."""
    return [f"CREATE SCHEMA {scenario}", *SCENARIOS[scenario]["before"]]


def after_of(scenario: str) -> list[Any]:
    """What happens to a scenario's tables while the connector streams."""
    return [statement for statement in SCENARIOS[scenario]["after"] if statement != WAIT]


@contextmanager
def reachable(database: LogicalDatabase) -> Iterator[DatabaseConnection]:
    """The database as a typed connection whose secret is there and whose address is allowed."""
    login = database.login
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCHEMADESK_SECRET_CDC", f"http://{login.host}:{login.port} {login.password}")
        patch.setattr("django.conf.settings.EGRESS_ALLOW", [login.host])
        yield DatabaseConnection(login.host, login.port, login.database, login.user, "cdc", tls=False)


@contextmanager
def debezium_source(connect_url: str, bootstrap: str, made: Connector, name: str) -> Iterator[Source]:
    """A source of the connector and its database in the registry dev."""
    address, login = urlsplit(connect_url), made.database.login
    by = system_actor("tests", channel="command")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCHEMADESK_SECRET_CDC", f"http://{login.host}:{login.port} {login.password}")
        patch.setenv("SCHEMADESK_SECRET_CONNECT", f"http://{address.hostname}:{address.port} {address.password}")
        patch.setattr("django.conf.settings.EGRESS_ALLOW", ["127.0.0.1"])
        services.connect_cluster(name="real", bootstrap=bootstrap, by=by)
        connection = {
            "connect_url": f"http://{address.hostname}:{address.port}",
            "connect_user": address.username or "",
            "connect_secret": "connect" if address.password else "",
            "name": made.name,
            "database_host": login.host,
            "database_port": login.port,
            "database_name": login.database,
            "database_user": login.user,
            "database_secret": "cdc",
            "database_tls": False,
        }
        number = services.add_source(
            registry="dev", kind="debezium", name=name, cluster="real", clean_scans=1, by=by, connector=connection
        )
        yield Source.objects.get(pk=number)


EVERY_TABLE = TableFilter()


def catalog_of(database: LogicalDatabase, tables: TableFilter = EVERY_TABLE, slot: str = "none") -> Catalog:
    """What the catalog says now."""
    with reachable(database) as connection:
        return read_catalog(connection, tables, slot=slot)


@pytest.fixture(scope="module")
def catalogs(logical_postgres: str) -> tuple[Catalog, Catalog]:
    """The catalog before and after everything that the scenarios do to their tables."""
    with logical_database(logical_postgres) as database:
        for scenario in SCENARIOS:
            database.run(*before_of(scenario))
        before = catalog_of(database)
        for scenario in SCENARIOS:
            database.run(*after_of(scenario))
        return before, catalog_of(database)
