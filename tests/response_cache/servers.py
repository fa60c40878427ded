"""Web servers as `up` runs them, over the tests' PostgreSQL and Valkey: two processes of a host, another host, one without."""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dashboard.runtime.layout import LOOPBACK, Layout, free_port
from dashboard.runtime.parts import WEB, Part, running
from dashboard.runtime.process import Child, Command, Watchdog, run
from dashboard.runtime.programs import manage, prepare_command, web_command
from registry.audit.triggers import TELL_FUNCTION, TELL_REGISTRATION_FUNCTION

#: name → the host that it is of, by its file; "" answers nothing before Django
SERVERS = {"first": "a", "second": "a", "third": "b", "plain": ""}
TELL_FUNCTIONS = (TELL_FUNCTION, TELL_REGISTRATION_FUNCTION)
#: the same, but for what listeners hear
SILENT_FUNCTIONS = [re.sub(r"pg_notify\(.*\)", "NULL", text) for text in TELL_FUNCTIONS]
START = 300.0  # seconds for each to be ready: they start together
#: a program beside the web servers of host a: lines of JSON in, lines of JSON out
PROGRAM = """
import io, json, sys, time
import django
django.setup()
from django.core.management import call_command
from django.db import connection, transaction
from registry.access.roles import system_actor
from registry.subjects.policy.registries import delete_registry, ensure_registry
by = system_actor("program", "command")
def make(name):
    with transaction.atomic():
        ensure_registry(name=name, by=by)
def remove(name):
    delete_registry(name=name, by=by)
def token(words):
    said = io.StringIO()
    call_command("issue_token", *words, stdout=said)
    print(json.dumps(said.getvalue().split()[-1]), flush=True)
def hang(name):
    with transaction.atomic():
        ensure_registry(name=name, by=by)
        with connection._announced((0,)):
            print(json.dumps("hanging"), flush=True)
            time.sleep(600)
for line in sys.stdin:
    name, argument = json.loads(line)
    globals()[name](argument)
    print(json.dumps("done"), flush=True)
"""


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """A kept connection to a server; one a thread."""

    def __init__(self, port: int, token: str, host: str) -> None:
        """`host` is the one that the server is of."""
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
        self._token = token
        self.host = host

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, more: Mapping[str, str] = {}
    ) -> Answer:
        sent = self._token if token is None else token
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {sent}"} if sent else {}), **more}
        text = None
        if body is not None:
            headers["Content-Type"], text = "application/json", json.dumps(body)
        for attempt in (1, 2):
            try:
                self._connection.request(method, path, text, headers)
                response = self._connection.getresponse()
                return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self._connection.close()
                if attempt == 2 or method != "GET":
                    raise
        raise AssertionError

    def close(self) -> None:
        self._connection.close()


class Program:
    """Another program of host a that changes things."""

    def __init__(self, command: Command) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**command.environment, "DJANGO_SETTINGS_MODULE": "dashboard.settings"}, cwd=command.folder,
        )  # fmt: skip

    def begin(self, name: str, argument: str | list[str]) -> str:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([name, argument]) + "\n")
        self.process.stdin.flush()
        return self._heard()

    def do(self, name: str, argument: str) -> None:
        assert self.begin(name, argument) == "done"

    def token(self, *options: str) -> str:
        """What `issue_token` prints."""
        made = self.begin("token", list(options))
        assert self._heard() == "done"
        return made

    def _heard(self) -> str:
        assert self.process.stdout
        return str(json.loads(self.process.stdout.readline()))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@dataclass
class Site:
    """All of it."""

    layout: Layout
    ports: dict[str, int]
    admin: str
    web: dict[str, Child] = field(default_factory=dict)

    @cached_property
    def helper(self) -> Program:
        """One program for all that is to be done beside the web servers: each that starts takes seconds."""
        return self.program()

    def connect(self, server: str, token: str | None = None) -> Connection:
        return Connection(self.ports[server], self.admin if token is None else token, SERVERS[server])

    def ask(self, server: str, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        connection = self.connect(server)
        try:
            return connection.ask(method, path, body, **more)
        finally:
            connection.close()

    def token(self, user: str, name: str, *options: str) -> str:
        return self.helper.token(user, name, *options)

    def host(self, name: str) -> Layout:
        """The layout with the settings of a host's programs."""
        more = {
            "SCHEMADESK_HOT_PATH": "1" if name else "0",
            "SCHEMADESK_HOT_PATH_FILE": str(self.layout.data / f"run-{name}" / "generation"),
            "SCHEMADESK_HOT_PATH_HOSTS": "1",
        }
        return replace(self.layout, product={**self.layout.product, **more})

    def program(self) -> Program:
        return Program(manage(self.host("a"), "shell"))

    def counted(self, server: str) -> tuple[float, float]:
        """Hits and misses of the server's host."""
        text = self.ask(server, "GET", "/metrics").body.decode()
        name = 'schemadesk_answers_before_django_total{outcome="'
        counts = {line.split('"')[1]: float(line.split()[1]) for line in text.splitlines() if line.startswith(name)}
        return counts["hit"], counts["miss"]

    def is_hit(self, server: str, path: str = "/config") -> bool:
        """Whether the server answers before Django now: the second of two requests."""
        connection = self.connect(server)
        try:
            connection.ask("GET", path)
            before, _ = self.counted(server)
            connection.ask("GET", path)
            after, _ = self.counted(server)
        finally:
            connection.close()
        return after > before

    def execute(self, statement: str) -> list[Any]:
        """Past all programs."""
        with psycopg.connect(self.layout.product["DATABASE_URL"], autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def untold(self) -> Iterator[None]:
        """Where triggers tell of no change, so that what the programs themselves say has to be enough."""
        database = conninfo_to_dict(self.layout.product["DATABASE_URL"])["dbname"]
        owner = make_conninfo(os.environ["DATABASE_OWNER_URL"], dbname=database)
        with psycopg.connect(owner, autocommit=True) as connection:
            for function in SILENT_FUNCTIONS:
                connection.execute(function)
            try:
                yield
            finally:
                for function in TELL_FUNCTIONS:
                    connection.execute(function)


def _web(site: Site, name: str) -> Part:
    def command(_: Layout) -> Command:
        web = web_command(replace(site.host(SERVERS[name]), ports={"web": site.ports[name]}))
        return replace(web, environment={**web.environment, "ANONYMOUS_ROLE": ""})

    def probe(_: Layout) -> str | None:
        return WEB.probe(replace(site.layout, ports={"web": site.ports[name]}))

    return replace(WEB, name=f"web-{name}", command=command, probe=probe, seconds=START)


@contextmanager
def copied(name: str) -> Iterator[str]:
    """A copy of the database of that name beside it, for servers that commit; nobody may be connected to the first."""
    owner = make_conninfo(os.environ["DATABASE_OWNER_URL"], dbname="postgres")
    copy = f"{name}_{secrets.token_hex(4)}"
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(copy), sql.Identifier(name)))
        try:
            yield copy
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(copy)))


@contextmanager
def servers(folder: Path, database: str) -> Iterator[Site]:
    """Starts them all, over that database of the tests' PostgreSQL, and the tests' Valkey."""
    watchdog = Watchdog()
    watchdog.start()
    layout = Layout.at(folder / "data", watchdog, durable=False)
    layout.secret("django")
    product = {
        "SCHEMADESK_UP": "1",
        "SCHEMADESK_HOSTS": f"localhost,{LOOPBACK}",
        "SCHEMADESK_DATA": str(layout.data),
        "SECRET_KEY_FILE": str(layout.data / "secrets" / "django"),
        "DATABASE_URL": make_conninfo(os.environ["DATABASE_URL"], dbname=database),
        "KAFKA_BOOTSTRAP": "",
        "SPARK_REMOTE": "",
        "CONNECT_URL": "",
        "SCHEMADESK_HOT_PATH": "0",
    }
    layout = replace(layout, product=product)
    site = Site(layout, {name: free_port() for name in SERVERS}, "")
    try:
        run(prepare_command(layout), layout.log("setup"), watchdog)
        site.admin = site.token("admin", "tests")
        with running(layout, *(_web(site, name) for name in SERVERS)) as children:
            site.web = dict(zip(SERVERS, children, strict=True))
            yield site
    finally:
        if "helper" in vars(site):
            site.helper.end()
        watchdog.close()
        shutil.rmtree(layout.sockets, ignore_errors=True)
