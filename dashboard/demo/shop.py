"""The demo's shop: a database whose changes Debezium's connector writes to topics, as Avro and as JSON.

Also the configuration of the connector and its converters, and a client of Kafka Connect's REST API.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dashboard.runtime.layout import write_private
from registry.errors import Unavailable

Converter = Literal["json", "json_schema", "avro"]
CONVERTERS: tuple[Converter, ...] = ("json", "json_schema", "avro")


@dataclass(frozen=True)
class Login:
    """A PostgreSQL and its user for replication; `password` may be a reference to one of Connect's secrets."""

    port: int
    user: str
    password: str
    database: str
    host: str = "127.0.0.1"


def debezium(login: Login, *, prefix: str, publication: str, more: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration of a PostgreSQL connector.

    It has topics `PREFIX.SCHEMA.TABLE`, a slot named like the prefix, and includes truncates and messages. The
    publication must exist. `more` are further properties, which take precedence.
    """
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": login.host,
        "database.port": str(login.port),
        "database.user": login.user,
        "database.password": login.password,
        "database.dbname": login.database,
        "topic.prefix": prefix,
        "slot.name": slot_name(prefix),
        "publication.name": publication,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "initial",
        # Truncates are skipped by default.
        "skipped.operations": "none",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "tasks.max": "1",
        **more,
    }


def slot_name(prefix: str) -> str:
    """Return the replication slot's name: PostgreSQL allows lower-case letters, digits and `_`."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in prefix.lower())


def conversion(converter: Converter, *, endpoint: str = "", token: str = "") -> dict[str, str]:
    """Return the encoding of keys and values: `json`, `json_schema` (with a schema in each message), or `avro`.

    Avro is framed, and registered with this token through the endpoint of dashboard.demo.apicurio_endpoint.
    """
    if converter == "avro":
        settings = {
            "": "io.apicurio.registry.utils.converter.AvroConverter",
            ".apicurio.registry.url": endpoint,
            ".apicurio.registry.auto-register": "true",
            ".apicurio.registry.as-confluent": "true",
            ".apicurio.registry.headers.enabled": "false",
            ".apicurio.registry.use-id": "contentId",
        }
        if token:
            settings |= {".apicurio.auth.username": "token", ".apicurio.auth.password": token}
        names = {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
    else:
        with_schema = "true" if converter == "json_schema" else "false"
        settings = {"": "org.apache.kafka.connect.json.JsonConverter", ".schemas.enable": with_schema}
        names = {}
    sides = {f"{side}.converter{name}": value for side in ("key", "value") for name, value in settings.items()}
    return sides | names


CONNECT_TIMEOUT = 30.0  # seconds for an answer: rebalancing takes a while
LARGEST = 16 * 1024 * 1024
PACE = 0.2
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ConnectRefused(Unavailable):
    """Kafka Connect can't be reached (`status` 0), or refused a request; the message is its own."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Status:
    """The states of a connector and its tasks.

    A connector stays RUNNING while its task is FAILED: `failure` is the first failed task's reason, empty if none
    failed.
    """

    connector: str
    tasks: tuple[str, ...]
    failure: str = ""

    @property
    def running(self) -> bool:
        """Whether the connector and all its tasks run, and it has a task."""
        return self.connector == "RUNNING" and bool(self.tasks) and set(self.tasks) == {"RUNNING"}


class Connect:
    """A client of a worker's REST API at `url`, which can contain a user and a password.

    Methods raise ConnectRefused.
    """

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._base = f"{address.scheme}://{address.hostname}:{address.port}"
        self._headers = {"Content-Type": "application/json"}
        if address.username:
            login = f"{unquote(address.username)}:{unquote(address.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()

    def names(self) -> list[str]:
        """Return the names of all connectors."""
        return sorted(self._ask("GET", "/connectors"))

    def put(self, name: str, configuration: Mapping[str, str]) -> None:
        """Create the connector, or change its configuration."""
        self._ask("PUT", f"/connectors/{quote(name, safe='')}/config", configuration)

    def delete(self, name: str) -> None:
        """Delete the connector if it exists. Its slot in PostgreSQL stays."""
        try:
            self._ask("DELETE", f"/connectors/{quote(name, safe='')}")
        except ConnectRefused as error:
            if error.status != 404:
                raise

    def restart_failed(self, name: str, *, seconds: float = 10.0) -> None:
        """Restart failed parts of the connector; return when they run, or failed again within that many seconds."""
        self._ask("POST", f"/connectors/{quote(name, safe='')}/restart?includeTasks=true&onlyFailed=true")
        # The worker restarts it with a delay, and reports the task as FAILED until then.
        deadline = time.monotonic() + seconds
        while self.status(name).failure and time.monotonic() < deadline:
            time.sleep(PACE / 4)

    def status(self, name: str) -> Status:
        """Return the connector's present status; `UNASSIGNED` if the worker hasn't started it yet."""
        try:
            content = self._ask("GET", f"/connectors/{quote(name, safe='')}/status")
        except ConnectRefused as error:
            if error.status == 404:
                return Status("UNASSIGNED", ())
            raise
        failed = [task.get("trace", "") for task in content["tasks"] if task["state"] == "FAILED"]
        failure = failed[0] if failed else content["connector"].get("trace", "")
        return Status(content["connector"]["state"], tuple(task["state"] for task in content["tasks"]), failure)

    def wait_until(self, name: str, condition: Callable[[Status], bool], *, seconds: float = 60.0) -> Status:
        """Return the first status that satisfies the condition.

        Raises ConnectRefused with the last one after that many seconds.
        """
        deadline = time.monotonic() + seconds
        while not condition(status := self.status(name)):
            if time.monotonic() > deadline:
                raise ConnectRefused(f"The connector {name} is {status} after {seconds:.0f} s.")
            time.sleep(PACE)
        return status

    def wait_until_running(self, name: str, *, seconds: float = 60.0) -> None:
        """Wait until the connector and its task run. Raises ConnectRefused with the task's reason if it failed."""
        status = self.wait_until(name, lambda state: state.running or bool(state.failure), seconds=seconds)
        if status.failure:
            raise ConnectRefused(f"The connector {name} failed: {status.failure}")

    def _ask(self, method: str, path: str, content: Mapping[str, str] | None = None) -> Any:
        data = json.dumps(content).encode() if content is not None else None
        request = urllib.request.Request(self._base + path, data, self._headers, method=method)  # noqa: S310
        try:
            with WITHOUT_PROXY.open(request, timeout=CONNECT_TIMEOUT) as response:
                body = response.read(LARGEST)
        except urllib.error.HTTPError as error:
            with error:
                reason = error.read(LARGEST).decode("utf-8", "replace")
            message = f"Kafka Connect answered {method} {path} with {error.code}: {reason[:2000]}"
            raise ConnectRefused(message, error.code) from error
        except OSError as error:
            raise ConnectRefused(f"Kafka Connect at {self._base} can't be reached: {error}") from error
        return json.loads(body) if body else None


HERE = Path(__file__).parent
DATABASE = "shop"
READER = "shop_reader"
PUBLICATION = "shop"
# Prefix → converter: the first connector has every table, the second shows the same customers as plain JSON.
CONNECTORS: Mapping[str, Converter] = {"shop": "avro", "shop_json": "json"}
ONLY: Mapping[str, dict[str, str]] = {
    # Its truncates affect more than one partition.
    "shop": {
        "topic.creation.groups": "stock",
        "topic.creation.stock.include": r"shop\.shop\.stock",
        "topic.creation.stock.partitions": "2",
        "topic.creation.stock.replication.factor": "1",
    },
    "shop_json": {"table.include.list": "shop.customers"},
}
CONNECTOR_TIMEOUT = 60.0


@dataclass(frozen=True)
class ShopEnvironment:
    """The services for the shop.

    They are the superuser's URL of a PostgreSQL that listens on a port, Kafka Connect, the folder of its secrets, the
    URL of the Apicurio endpoint, and a token for the registry behind it.
    """

    server: str
    connect_url: str
    secrets: Path
    endpoint: str
    token: str


def write_shop(around: ShopEnvironment, on_line: Callable[[str], object]) -> Login:
    """Create the shop and its connectors if missing, simulate a day, and change a table.

    Returns the login that may read the shop's catalog. A second run adds another day. Raises Unavailable if a connector
    fails or doesn't read what was written.
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


def _make_database(around: ShopEnvironment, shop: str) -> Login:
    """Create the database with its tables and publication; return the connectors' login, which may only read."""
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
    """Return the password in the file, created at the first call. No newline: Connect reads the file unchanged."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32))
    return path.read_text(encoding="utf-8")


def _reference(around: ShopEnvironment, name: str) -> str:
    """Return the reference to a secret for a connector's configuration, which Connect stores in a topic."""
    return f"${{directory:{around.secrets}:{name}}}"


def _start_connector(
    around: ShopEnvironment, connect: Connect, shop: str, login: Login, prefix: str, converter: Converter
) -> None:
    write_private(around.secrets / "shop-token", around.token)
    _drop_lost_slot(shop, prefix)
    converting = conversion(converter, endpoint=around.endpoint, token=_reference(around, "shop-token"))
    # After a slot was lost there is a gap, so all rows are read again.
    more = {**converting, **ONLY[prefix], "snapshot.mode": "when_needed"}
    connect.put(prefix, debezium(login, prefix=prefix, publication=PUBLICATION, more=more))
    status = connect.wait_until(prefix, lambda state: state.running or bool(state.failure), seconds=CONNECTOR_TIMEOUT)
    if status.failure:
        # It failed in an earlier run, perhaps for a reason that no longer exists.
        connect.restart_failed(prefix)
    connect.wait_until_running(prefix, seconds=CONNECTOR_TIMEOUT)


def _drop_lost_slot(shop: str, prefix: str) -> None:
    """Drop a slot whose WAL was removed, so that the connector creates a new one."""
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE slot_name = %s AND wal_status = 'lost' AND NOT active",
            [slot_name(prefix)],
        )


def _paragraphs(path: Path) -> list[str]:
    """Return the statements of a file, one per paragraph, without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]


def _wait_until_read(connection: psycopg.Connection, connect: Connect) -> None:
    """Wait until the connectors have confirmed everything written. Raises Unavailable if one fails or is too slow."""
    end = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    # A later record makes a slot move beyond the end.
    connection.execute("SELECT pg_logical_emit_message(false, 'shop', 'The end of a step.')")
    slots = [slot_name(prefix) for prefix in CONNECTORS]
    question = "SELECT slot_name FROM pg_replication_slots WHERE slot_name = ANY(%s) AND confirmed_flush_lsn >= %s"
    deadline = time.monotonic() + CONNECTOR_TIMEOUT
    while len(done := connection.execute(question, [slots, end and end[0]]).fetchall()) < len(slots):
        for prefix in CONNECTORS:
            if failure := connect.status(prefix).failure:
                raise Unavailable(f"The connector {prefix} failed: {failure}")
        if time.monotonic() > deadline:
            raise Unavailable(
                f"After {CONNECTOR_TIMEOUT:.0f} s, only {done} of the slots {slots} had been read to the end."
            )
        time.sleep(0.2)
