"""A second instance of ours as a remote registry: a real server on a database of its own, behind a proxy that stalls; and
requests to promote there, with workers that a test may kill.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from django.db import connection
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dashboard.runtime.layout import free_port
from dashboard.runtime.programs import THRIFTY
from registry.access.roles import Actor
from registry.promotions import services
from registry.promotions.environments.locking import fresh
from registry.promotions.models import ApplyStep, Environment, PromotionRequest, Release
from registry.subjects.models import Registry
from registry.subjects.remote.mirrors import add_remote_registry
from registry.subjects.services import register_version, set_config
from registry.subjects.versions.qualified_names import SubjectName
from tests.promotions.factories import approve_shown
from tests.promotions.worker_process import work
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "schemadesk_elsewhere"
BEFORE, AFTER = "before", "after"
#: what the second instance gets before it starts; prints the token
PREPARE = """
import django
django.setup()
from dashboard.management.commands.prepare import make_registries
from registry.access.roles import system_actor
from registry.access.services import ensure_person, issue_token
by = system_actor("tests", channel="command")
make_registries(by=by)
ensure_person(username="admin", role="admin", by=by)
print(issue_token(username="admin", name="tests", by=by))
"""


@dataclass
class Instance:
    """The second instance, asked directly."""

    port: int
    token: str

    def ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of one call."""
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            wire.request(method, target, None if body is None else json.dumps(body), headers)
            answer = wire.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            wire.close()

    def call(self, method: str, target: str, body: Any = None) -> Any:
        """The JSON of a call that has to succeed."""
        status, value = self.ask(method, target, body)
        assert status == 200, (method, target, status, value)
        return value

    def versions(self, subject: str) -> list[int]:
        """The numbers of a subject's versions, deleted ones too; none for a subject that isn't there."""
        status, value = self.ask("GET", f"/subjects/{quote(subject, safe='')}/versions?deleted=true")
        return value if status == 200 else []


@contextmanager
def second_instance(folder: Path) -> Iterator[Instance]:
    """It runs, with its own database, made from the tests' one."""
    address = _copied_database()
    port = free_port()
    environment = {
        **os.environ,
        **THRIFTY,
        "DATABASE_URL": address,
        "SECRET_KEY": "for this test alone",
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    made = subprocess.run(
        [sys.executable, "-c", PREPARE], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    words = ["--interface", "asgi", "--workers", "1", "--no-ws", "--port", str(port), "dashboard.asgi:application"]
    with (folder / "server").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "granian", *words], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    found = Instance(port, made.stdout.split()[-1])
    try:
        until(lambda: process.poll() is not None or _is_ready(found), pause=0.1)
        assert process.poll() is None, (folder / "server").read_text()
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE)
        _as_owner(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))


def _is_ready(instance: Instance) -> bool:
    try:
        return instance.ask("GET", "/subjects")[0] == 200
    except OSError:
        return False


def _copied_database() -> str:
    """A copy of the tests' database, which nobody may be connected to meanwhile; gives its address."""
    source = connection.settings_dict["NAME"]
    connection.close()
    _as_owner(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(DATABASE)))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(DATABASE), sql.Identifier(source))

    def is_copied() -> bool:
        try:
            _as_owner(copy)
        except psycopg.errors.ObjectInUse:
            return False
        return True

    until(is_copied, pause=0.1)
    return make_conninfo(os.environ["DATABASE_URL"], dbname=DATABASE)


def _as_owner(statement: sql.Composed) -> None:
    login = conninfo_to_dict(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"])
    with psycopg.connect(make_conninfo("", **{**login, "dbname": "postgres"}), autocommit=True) as owner:
        owner.execute(statement)


@dataclass
class Proxy:
    """Between a worker and the remote."""

    port: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)
    #: number (from 1) of the request at which it stops; 0 for none
    stall_at: int = 0
    where: str = BEFORE
    stalled: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    #: answers some requests itself: status and body, None to hand the request on
    instead: Callable[[str, str], tuple[int, bytes] | None] = lambda method, path: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def begin(self, stall_at: int = 0, where: str = BEFORE) -> None:
        """Count anew, and stop at a request."""
        with self._lock:
            self.asked.clear()
            self.stall_at, self.where = stall_at, where
            self.stalled.clear()
            self.go_on.clear()

    def release(self) -> None:
        """Let what was stopped end."""
        self.stall_at = 0
        self.go_on.set()

    def note(self, method: str, path: str) -> int:
        """The number of a request."""
        with self._lock:
            self.asked.append((method, path))
            return len(self.asked)

    def stop_at(self, number: int, where: str) -> bool:
        """Stop there if the test says so; whether it did."""
        if number != self.stall_at or where != self.where:
            return False
        self.stalled.set()
        assert self.go_on.wait(PATIENCE)
        return True


@contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """A proxy to that port of this machine."""
    proxy = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def hand_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            number = proxy.note(self.command, self.path)
            if proxy.stop_at(number, BEFORE):
                self.close_connection = True
                return
            told = proxy.instead(self.command, self.path)
            status, answer = told if told is not None else self._ask(body)
            if proxy.stop_at(number, AFTER):
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _ask(self, body: bytes) -> tuple[int, bytes]:
            wire = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            names = ("Authorization", "Content-Type", "Accept")
            headers = {name: self.headers[name] for name in names if self.headers[name]}
            try:
                wire.request(self.command, self.path, body or None, headers)
                found = wire.getresponse()
                return found.status, found.read()
            finally:
                wire.close()

        do_GET = do_POST = do_PUT = do_DELETE = hand_on  # noqa: N815 - what the base class looks for

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a worker that is killed hangs up in the middle

    server = Server(("127.0.0.1", 0), Handler)
    proxy.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.release()
        server.shutdown()
        with contextlib.suppress(OSError):
            server.server_close()
        thread.join()


NAME = "theirs"
SECRET = "elsewhere"
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "home", "type": "shop.Address"}],
}


def secret_environment(token: str) -> dict[str, str]:
    """The variable that holds the remote's token."""
    return {"SCHEMADESK_SECRET_ELSEWHERE": f"127.0.0.1 {token}"}


def make_environment(url: str, by: Actor, *, secret: str = SECRET) -> Environment:
    """The remote registry as the last environment."""
    number = add_remote_registry(name=NAME, url=url, by=by, secret=secret)
    services.ensure_environment(registry_id=number, position=9, by=by)
    made = Environment.objects.select_related("registry").get(registry_id=number)
    fresh(made)
    return made


def register(subject: str, schema: object, by: Actor, **more: Any) -> None:
    """A version in `dev`."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    register_version(registry="dev", subject=SubjectName(".", subject), text=text, by=by, **more)


def ask_for_customers(prefix: str, cast: dict[str, Actor]) -> int:
    """A request with three steps: an address, a customer that refers to it, and the customer's config; approved."""
    from registry.formats.base import Reference

    address, customer = f"{prefix}-address", f"{prefix}-customer"
    register(address, ADDRESS, cast["steward"])
    register(customer, CUSTOMER, cast["steward"], references=(Reference("shop.Address", address, 1),))
    set_config(registry="dev", subject=SubjectName(".", customer), level="FULL", by=cast["steward"])
    number = services.request_promotion(
        source="dev", target=NAME, subject=SubjectName(".", customer), by=cast["steward"], with_config=True
    )
    assert approve_shown(request_id=number, by=cast["approver"]) == "approved"
    return number


@contextmanager
def worker(request_id: int, token: str) -> Iterator[tuple[BaseProcess, Any]]:
    """A worker's process for a request, and the pipe on which it says the state that it came to."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.promotions.worker_process"])
    database = {name: connection.settings_dict[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, request_id, database, secret_environment(token)), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        if process.is_alive():
            process.kill()
        process.join(PATIENCE)


def kill(process: BaseProcess) -> None:
    """`kill -9`, and it is gone."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


def let_leases_end(request_id: int) -> None:
    """As if the time of the dead worker's leases were over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE promotions_promotionrequest SET claim_until = now() - interval '1 second' WHERE id = %s",
            [request_id],
        )
    Registry.objects.filter(name=NAME).update(sync_lease_until=None)


def states_of(request_id: int) -> tuple[str, list[str]]:
    """The state of a request and those of its steps."""
    steps = ApplyStep.objects.filter(request_id=request_id).order_by("position")
    return PromotionRequest.objects.get(pk=request_id).state, [step.state for step in steps]


def failure_of(request_id: int) -> str:
    """Why a request wasn't applied."""
    return PromotionRequest.objects.get(pk=request_id).failure


def releases_of(request_id: int) -> list[tuple[str, int, bool]]:
    """Subject and number of each release of a request, and whether the mirror's version stands with it."""
    rows = Release.objects.filter(request_id=request_id).order_by("subject_name")
    return [(row.subject_name, row.version_number, row.version_id is not None) for row in rows]
