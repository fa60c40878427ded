"""A registry to be measured: its address and credentials, and the load generator that asks it."""

from __future__ import annotations

import base64
import ipaddress
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from dashboard.bench import registry_load
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
    `has_goals` where the goals are meant for it; `is_scratch` for one that is thrown away with all that is in it.
    """

    name: str
    url: str
    authorization: str = ""
    pids: tuple[int, ...] | None = None
    database_pids: tuple[int, ...] = ()
    has_goals: bool = False
    is_scratch: bool = False

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
        return all(ipaddress.ip_address(place).is_loopback for place in self.places())

    def places(self) -> set[str]:
        """The addresses of the host. Raises InvalidInput, RemoteUnavailable."""
        host, port, _ = self.address
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise RemoteUnavailable(f"{self.url}: {host} has no address here: {error}") from error
        return {str(each[4][0]).partition("%")[0] for each in found}

    def raw(self, call: Call, *, signed: bool = True) -> str:
        """A request as it goes over the wire."""
        parts = urlsplit(self.url)
        body = "" if call.body is None else json.dumps(call.body)
        lines = [
            f"{call.method} {parts.path.rstrip('/')}{call.path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Accept: {CONTENT_TYPE}",
        ]
        if signed and self.authorization:
            lines.append(f"Authorization: {self.authorization}")
        if call.body is not None:
            lines += [f"Content-Type: {CONTENT_TYPE}", f"Content-Length: {len(body)}"]
        return "\r\n".join([*lines, "", body])

    def job(self, calls: Sequence[Call], *, connections: int, signed: bool = True, **more: Any) -> dict[str, Any]:
        """What the load generator is told."""
        host, port, tls = self.address
        requests = [self.raw(call, signed=signed) for call in calls]
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
    given: list[tuple[int, str]] = []
    for begin in range(0, len(calls), BATCH):
        batch = calls[begin : begin + BATCH]
        with _generator(target.job(batch, connections=CONNECTIONS, signed=signed)) as generator:
            done = _told(target, generator.read())
        for call, answer in zip(batch, done["answers"], strict=True):
            if answer is None:
                raise RemoteUnavailable(f"{target.url}: {call.name} had no answer: {done['first_error']}")
            given.append((answer[0], answer[1]))
    return given


def ask_all(target: Target, calls: Sequence[Call]) -> list[Any]:
    """As `ask`, and read the JSON of each. Raises RemoteUnavailable where one isn't the right answer."""
    return [read_answer(target, call, *answer) for call, answer in zip(calls, ask(target, calls), strict=True)]


def read_answer(target: Target, call: Call, status: int, body: str) -> Any:
    """The JSON of an answer. Raises RemoteUnavailable for one that isn't 2xx, no JSON, or not what was asked for."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not 200 <= status < 300 or not call.is_right(answer):
        told = "with something else than was asked for" if 200 <= status < 300 else f"{status}"
        raise RemoteUnavailable(f"{target.url}: {call.name} was answered {told}: {body[:300]}")
    return answer


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
    target: Target, calls: Sequence[Call], *, connections: int, seconds: float, serial: int, quiet: Callable[[], None]
) -> Measured:
    """Send the calls again and again; `quiet` is called right before and right after the measured time.

    `serial` is 0, or what the numbers begin after that take the place of the generator's mark; the most that were used
    are those `sent`. Raises RemoteUnavailable where the registry can't be reached.
    """
    job = target.job(calls, connections=connections, seconds=seconds, warm_up=seconds * WARM_UP, serial=serial)
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
