"""A registry to be measured: its address and credentials, the load generator, and the server's CPU time."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks import registry_load
from registry.errors import InvalidInput, RemoteUnavailable

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
CONNECTIONS: Final = 8  # of what isn't measured
BATCH: Final = 1_000
WARM_UP: Final = 0.2  # of the measured seconds, before them


@dataclass(frozen=True, slots=True)
class Call:
    """One request; `is_right` says of the JSON that came back whether it is the answer."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    is_right: Callable[[Any], bool] = bool

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Target:
    """A registry: its name in the table, its base URL, and the header that says who asks.

    `pids` are the roots of its process tree, None where nobody knows them; `database_pids` those of its database.
    `has_goals` where the goals are meant for it; `is_scratch` for one that is thrown away with all that is in it;
    `cookie` is the session of somebody who reads its pages.
    """

    name: str
    url: str
    authorization: str = ""
    pids: tuple[int, ...] | None = None
    database_pids: tuple[int, ...] = ()
    has_goals: bool = False
    is_scratch: bool = False
    cookie: str = ""

    @property
    def address(self) -> tuple[str, int, bool]:
        """The host, the port, and whether it speaks TLS. Raises InvalidInput."""
        if not self.url.isascii() or not self.url.isprintable() or " " in self.url:
            raise InvalidInput(f"{self.url!r} has characters that a URL can't have; percent-encode them.")
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError as error:
            raise InvalidInput(f"{self.url}: {error}. Give a base URL such as http://127.0.0.1:8081.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"{self.url} is no base URL; give one such as http://127.0.0.1:8081.")
        if parts.username is not None or parts.query or parts.fragment:
            raise InvalidInput(
                "A base URL is scheme, host, port and path alone; credentials come by --token-from or --user."
            )
        tls = parts.scheme == "https"
        return parts.hostname, port or (443 if tls else 80), tls

    @property
    def is_here(self) -> bool:
        """Whether the host is this machine's loopback, and nothing else. Raises InvalidInput, RemoteUnavailable."""
        return all(ipaddress.ip_address(address).is_loopback for address in self.places())

    def places(self) -> set[str]:
        """The addresses of the host. Raises InvalidInput, RemoteUnavailable."""
        host, port, _ = self.address
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise RemoteUnavailable(f"{self.url}: {host} has no address here: {error}") from error
        return {str(info[4][0]).partition("%")[0] for info in infos}

    def raw(self, call: Call, *, signed: bool = True, is_fresh: bool = False) -> str:
        """A request as it goes over the wire; a fresh one has a header that no other one has, so that no cache knows it."""
        parts = urlsplit(self.url)
        body = "" if call.body is None else json.dumps(call.body)
        lines = [
            f"{call.method} {parts.path.rstrip('/')}{call.path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Accept: {CONTENT_TYPE}",
        ]
        if signed and self.authorization:
            lines.append(f"Authorization: {self.authorization}")
        if is_fresh:
            lines.append(f"X-Bench: {registry_load.SERIAL.decode()}")
        if call.body is not None:
            lines += [f"Content-Type: {CONTENT_TYPE}", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", body])

    def job(
        self, calls: Sequence[Call], *, connections: int, signed: bool = True, is_fresh: bool = False, **more: Any
    ) -> dict[str, Any]:
        """What the load generator is told."""
        host, port, tls = self.address
        requests = [self.raw(call, signed=signed, is_fresh=is_fresh) for call in calls]
        usual = {"seconds": 0.0, "warm_up": 0.0, "serial": 0}
        return {
            "host": host,
            "port": port,
            "tls": tls,
            "connections": connections,
            "requests": requests,
            **usual,
            **more,
        }


def bearer(token: str) -> str:
    """The header of a token."""
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header of a user and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def ask(target: Target, calls: Sequence[Call], *, signed: bool = True) -> list[tuple[int, str]]:
    """Send each once; statuses and bodies in their order. Raises RemoteUnavailable where one has no answer."""
    responses: list[tuple[int, str]] = []
    for begin in range(0, len(calls), BATCH):
        batch = calls[begin : begin + BATCH]
        with _generator(target.job(batch, connections=CONNECTIONS, signed=signed)) as generator:
            done = _told(target, generator.read())
        for call, response in zip(batch, done["answers"], strict=True):
            if response is None:
                raise RemoteUnavailable(f"{target.url}: {call.name} had no answer: {done['first_error']}")
            responses.append((response[0], response[1]))
    return responses


def ask_all(target: Target, calls: Sequence[Call]) -> list[Any]:
    """As `ask`, and read the JSON of each. Raises RemoteUnavailable where one isn't the right answer."""
    return [read_answer(target, call, *response) for call, response in zip(calls, ask(target, calls), strict=True)]


def read_answer(target: Target, call: Call, status: int, body: str) -> Any:
    """The JSON of an answer. Raises RemoteUnavailable for one that isn't 2xx, no JSON, or not what was asked for."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not 200 <= status < 300 or not call.is_right(content):
        problem = "with something else than was asked for" if 200 <= status < 300 else f"{status}"
        raise RemoteUnavailable(f"{target.url}: {call.name} was answered {problem}: {body[:300]}")
    return content


@dataclass(frozen=True, slots=True)
class Measured:
    """What the load generator found; times in seconds, `cpu` its own share of one processor.

    `failed` says what was wrong with the answers, and is empty where nothing was.
    """

    per_second: float
    p50: float
    p99: float
    answered: int
    sent: int
    cpu: float
    reconnects: int
    failed: str


def load(
    target: Target,
    calls: Sequence[Call],
    *,
    connections: int,
    seconds: float,
    serial: int,
    quiet: Callable[[], None],
    **more: Any,
) -> Measured:
    """Send the calls again and again; `quiet` is called right before and right after the measured time.

    `more` is for the job: `is_fresh`, or how many requests each connection sends (`each`) before it is made again.
    `serial` is 0, or what the numbers begin after that take the place of the generator's mark; the most that were used
    are those `sent`. Raises RemoteUnavailable where the registry can't be reached.
    """
    job = target.job(calls, connections=connections, seconds=seconds, warm_up=seconds * WARM_UP, serial=serial, **more)
    with _generator(job) as generator:
        first = generator.read()
        if first.strip() != "ready":
            _told(target, first)
            raise RemoteUnavailable(f"{target.url}: the load generator said {first[:300]!r}")
        quiet()
        generator.say("go")
        last = generator.read()
        quiet()
    return _measured(target, calls, _told(target, last))


def _measured(target: Target, calls: Sequence[Call], done: Mapping[str, Any]) -> Measured:
    failed = ""
    if done["wrong"]:
        all_sent = done["sent"] + done["warmed"]
        failed = f"{done['wrong']:,} of {all_sent:,} requests were no success; the first: {done['first_error']}"
    else:
        try:
            for index, status, body in done["samples"]:
                read_answer(target, calls[index], status, body)
        except RemoteUnavailable as error:
            failed = error.message
    return Measured(
        per_second=done["answered"] / done["seconds"],
        p50=done["p50"],
        p99=done["p99"],
        answered=done["answered"],
        sent=done["sent"] + done["warmed"],
        cpu=done["cpu"] / done["seconds"],
        reconnects=done["reconnects"],
        failed=failed,
    )


def _told(target: Target, line: str) -> dict[str, Any]:
    if not line.strip():
        raise RemoteUnavailable(f"{target.url}: the load generator ended without a word")
    done: dict[str, Any] = json.loads(line)
    if "failed" in done:
        raise RemoteUnavailable(f"{target.url} can't be reached: {done['failed']}")
    return done


class Writer:
    """Registers at a rate, beside what is measured, from a thread of this process."""

    def __init__(self, target: Target, calls: Sequence[Call], rate: float, serial: int) -> None:
        """`rate` is how many a second; the numbers begin after `serial`."""
        self._target = target
        self._calls = calls
        self._rate = rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.serial = serial
        self.failed = ""

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        host, port, tls = self._target.address
        kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
        connection, due = kind(host, port, timeout=60), time.monotonic()
        try:
            while not self._over.wait(max(0.0, due - time.monotonic())) and not self.failed:
                self._register(connection)
                due += 1 / self._rate
        except (OSError, http.client.HTTPException) as error:
            self.failed = f"a registration beside it had no answer: {error!r}"
        finally:
            connection.close()

    def _register(self, connection: http.client.HTTPConnection) -> None:
        self.serial += 1
        call = self._calls[self.serial % len(self._calls)]
        body = json.dumps(call.body).replace(registry_load.SERIAL.decode(), f"{self.serial:012d}")
        path = urlsplit(self._target.url).path.rstrip("/") + call.path
        headers = {"Accept": CONTENT_TYPE, "Content-Type": CONTENT_TYPE}
        headers |= {"Authorization": self._target.authorization} if self._target.authorization else {}
        connection.request(call.method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        if not 200 <= response.status < 300:
            self.failed = f"a registration beside it was answered {response.status}: {text[:300]}"


@dataclass(frozen=True, slots=True)
class _Generator:
    """The running load generator."""

    process: subprocess.Popen[str]

    def say(self, line: str) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read(self) -> str:
        """The next line that it prints; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@contextmanager
def _generator(job: Mapping[str, Any]) -> Iterator[_Generator]:
    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(registry_load.__file__))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    with process:
        try:
            generator = _Generator(process)
            generator.say(json.dumps(job))
            yield generator
        finally:
            process.kill()


try:
    import psutil
except ImportError:  # it comes with the packages of the tests
    psutil = None

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what a server that listens on all addresses is listed with


def server_pids(target: Target) -> tuple[int, ...] | None:
    """The roots of the processes that listen where the registry is; None where that isn't known.

    It isn't for a registry that isn't on this machine, or whose processes belong to somebody else; nor without psutil.
    """
    return listening_pids({*target.places(), *EVERYWHERE}, target.address[1]) if target.is_here else None


def listening_pids(addresses: Collection[str], port: int) -> tuple[int, ...] | None:
    """The roots of the processes that listen on a port of these addresses; None where that isn't known."""
    if psutil is None:
        return None
    try:
        sockets = [socket_row for socket_row in psutil.net_connections("tcp") if _listens(socket_row, port)]
    except psutil.Error:
        return None
    pids = {socket_row.pid for socket_row in sockets if socket_row.laddr.ip.removeprefix("::ffff:") in addresses}
    if not pids or None in pids:
        return None
    roots = {_root(psutil.Process(pid), port) for pid in pids}
    # A server in this very process can't be told from the one that measures it.
    return None if psutil.Process().pid in roots else tuple(sorted(roots))


def _listens(connection: Any, port: int) -> bool:
    return bool(connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port)


def _root(process: psutil.Process, port: int) -> int:
    """The topmost process that has the socket: workers inherit it from the one that started them."""
    try:
        while (parent := process.parent()) and any(
            _listens(connection, port) for connection in parent.net_connections("tcp")
        ):
            process = parent
    except psutil.Error:
        pass  # a parent of somebody else's is none of the server's
    return int(process.pid)


def cpu_of(target: Target) -> tuple[float | None, float | None]:
    """The CPU seconds until now of a registry's processes and of its database's; None where nobody knows.

    Raises RemoteUnavailable where a process is gone or may not be read.
    """
    if psutil is None:
        return None, None
    try:
        server = None if target.pids is None else cpu_seconds(target.pids, target.database_pids)
        return server, cpu_seconds(target.database_pids) if target.database_pids else None
    except psutil.Error as error:
        raise RemoteUnavailable(f"{target.url}: the CPU time of its processes can't be read: {error}") from error


def cpu_seconds(roots: Sequence[int], leaving_out: Iterable[int] = ()) -> float:
    """User and system time of the processes with all their descendants, those that have ended included.

    What is below `leaving_out` doesn't count. Raises psutil.Error where a root is gone or may not be read.
    """
    without = _below(leaving_out)
    total = 0.0
    # The deepest first: one that ends meanwhile is counted by its parent, which has waited for it.
    for pid, process in reversed(_below(roots).items()):
        if pid in without:
            continue
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            if pid in roots:
                raise
            continue
        ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        total += times.user + times.system + ended
    return total


def resident_below(roots: Iterable[int]) -> int:
    """The bytes of memory that the processes hold with all their descendants."""
    return sum(process.memory_info().rss for process in _below(roots).values())


def _below(roots: Iterable[int]) -> dict[int, psutil.Process]:
    processes: dict[int, psutil.Process] = {}
    for root in roots:
        process = psutil.Process(root)
        processes |= {child.pid: child for child in (process, *process.children(recursive=True))}
    return processes
