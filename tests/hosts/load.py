"""Clients that write and read through the proxy and at each web host, and hold every read against what was answered before.

Each subject gets one version after the other, with its number in the text. A read that begins after a version was answered
shows that version or a later one.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.hosts.installation import ADDRESSES, NAME, OTHER_CLIENT, PROXY, WEBS
from tests.hosts.network import Host

PATIENCE: Final = 60.0  # seconds for a response
SUBJECTS, READERS = 4, 5  # subjects, each with a writer; readers through the proxy
FORGED: Final = "198.51.100.7"
#: what a client may get while a part is away, with Retry-After (docs/how-to/run.md)
DOCUMENTED: Final = (502, 503, 504)
#: how a connection fails that was closed while nothing was under way
CLOSED: Final = ("RemoteDisconnected", "ConnectionResetError", "BrokenPipeError", "SSLEOFError")
CLIENTS: Final = (ADDRESSES["client"], OTHER_CLIENT)


@dataclass(frozen=True)
class Answer:
    """A response; status 0 if none came."""

    status: int
    headers: Mapping[str, str]
    text: str


class Connection:
    """A kept connection from an address of the client, to the proxy or to a web host."""

    def __init__(self, target: str, source: str, token: str, authority: Path) -> None:
        self.target, self._source = target, source
        self._headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": FORGED}
        self._tls = ssl.create_default_context(cafile=str(authority)) if target == PROXY else None
        self._http: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request, and again if its kept connection had been closed, as clients do (RFC 9112, 9.3.1)."""
        is_kept = self._http is not None
        answer = self._ask_once(method, path, body, **headers)
        was_closed = answer.text.startswith(CLOSED)
        return self._ask_once(method, path, body, **headers) if is_kept and was_closed else answer

    def _ask_once(self, method: str, path: str, body: Any, **headers: str) -> Answer:
        sent = self._headers | headers | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            self._http = self._http or self._open()
            self._http.request(method, path, body and json.dumps(body), sent)
            response = self._http.getresponse()
            answer = Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read().decode(),
            )
            if response.will_close:
                self.close()
            return answer
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Answer(0, {}, repr(error))

    def close(self) -> None:
        if self._http:
            self._http.close()
        self._http = None

    def _open(self) -> http.client.HTTPConnection:
        port = 443 if self._tls else 8081
        raw = socket.create_connection((ADDRESSES[self.target], port), PATIENCE, (self._source, 0))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = http.client.HTTPConnection(NAME, port)
        found.sock = self._tls.wrap_socket(raw, server_hostname=NAME) if self._tls else raw
        return found


@dataclass
class Tracked:
    """A subject with its numbered versions: which were begun and answered, and their ids."""

    name: str
    begun: int = 0
    answered: list[tuple[float, int]] = field(default_factory=list)
    ids: dict[int, int] = field(default_factory=dict)

    def known(self, moment: float) -> int:
        """The newest version that was answered by then."""
        return next((number for at, number in reversed(self.answered) if at <= moment), 0)


def schema(subject: str, number: int) -> dict[str, str]:
    record = {"type": "record", "name": subject.replace("-", "_"), "doc": f"n{number:08d}x", "fields": []}
    return {"schema": json.dumps(record)}


@dataclass
class Part:
    """What was counted while something went on."""

    name: str
    began: float
    ended: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0

    def __str__(self) -> str:
        seconds = self.ended - self.began
        rate = (self.counts["reads"] + self.counts["writes"]) / seconds
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return f"{self.name}: {seconds:.1f} s, {rate:.0f} requests/s, longest {self.longest:.1f} s; {counts}"


class Load:
    """The clients, until the end; what they found wrong is in `wrong`."""

    def __init__(
        self, client: Host, tokens: Mapping[str, str], authority: Path, *, targets: tuple[str, ...] = WEBS
    ) -> None:
        self._client, self._tokens, self._authority, self._targets = client, tokens, authority, targets
        run = secrets.token_hex(3)
        self.subjects = [Tracked(f"load-{run}-{number}") for number in range(SUBJECTS)]
        self.wrong: list[str] = []
        self.parts: list[Part] = []
        #: web hosts that may not respond at their own address
        self.down: set[str] = set()
        #: seconds by which a read may be late: while a writer's host can't reach Valkey (decision 12)
        self.late = 0.0
        self._part = Part("start", time.monotonic())
        self._ends = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the clients; at the end all have got their last response."""
        work: list[tuple[Callable[[Connection, int], None], str]] = [(self._write, PROXY)] * SUBJECTS
        work += [(self._read, target) for target in (*[PROXY] * READERS, *self._targets)]
        threads = [
            threading.Thread(target=self._work, args=(do, target, number)) for number, (do, target) in enumerate(work)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in threads:
                thread.join()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what happens inside under that name."""
        with self._lock:
            self._part = part = Part(name, time.monotonic())
        try:
            yield
        finally:
            part.ended = time.monotonic()
            self.parts.append(part)

    def answered(self) -> int:
        """How many versions were answered."""
        return sum(len(subject.answered) for subject in self.subjects)

    def counted(self, what: str) -> int:
        """How often it happened in this part."""
        return self._part.counts[what]

    def connection(self, target: str, source: str) -> Connection:
        return Connection(target, source, self._tokens[source], self._authority)

    def _work(self, do: Callable[[Connection, int], None], target: str, number: int) -> None:
        self._client.enter()
        connection = self.connection(target, CLIENTS[number % len(CLIENTS)])
        try:
            while not self._ends.is_set():
                do(connection, number)
        except Exception as error:
            self.wrong.append(f"a client failed: {error!r}")
            raise
        finally:
            connection.close()

    def _write(self, connection: Connection, number: int) -> None:
        """Register the next version, again and again until it is answered."""
        subject = self.subjects[number]
        subject.begun += 1
        while True:
            answer = self._counted(
                connection, "writes", "POST", f"/subjects/{subject.name}/versions", schema(subject.name, subject.begun)
            )
            if answer.status == 200:
                break
            if self._ends.is_set():
                return
            time.sleep(0.2)
        subject.ids[subject.begun] = json.loads(answer.text)["id"]
        subject.answered.append((time.monotonic(), subject.begun))
        time.sleep(0.1)

    def _read(self, connection: Connection, number: int) -> None:
        """Read the newest version of the subjects."""
        for subject in self.subjects:
            began, late = time.monotonic(), self.late
            known = subject.known(began - late)
            answer = self._counted(connection, "reads", "GET", f"/subjects/{subject.name}/versions/latest")
            if answer.status == 404 and known == 0:
                continue
            if answer.status == 200:
                shown = max(map(int, re.findall(r"n(\d{8})x", answer.text)), default=0)
                if not known <= shown <= subject.begun:
                    self.wrong.append(
                        f"{self._part.name}: {connection.target} shows {subject.name} {shown}, {known} was answered"
                    )
                elif late and shown < subject.known(began):
                    self._count("late")
            time.sleep(0.03 if answer.status else 0.3)

    def _counted(self, connection: Connection, what: str, *request: Any) -> Answer:
        began = time.monotonic()
        answer = connection.ask(*request)
        with self._lock:
            self._part.longest = max(self._part.longest, time.monotonic() - began)
        self._count(what)
        if answer.status not in (200, 404):
            retry = answer.headers.get("retry-after", "")
            self._count(f"{answer.status} for {what} at {connection.target}")
            is_away = not answer.status and connection.target in self.down
            if not is_away and not (answer.status in DOCUMENTED and re.fullmatch(r"\d+", retry)):
                self.wrong.append(
                    f"{self._part.name}: {connection.target} {request[:2]}: {answer.status} {answer.headers} {answer.text[:200]}"
                )
        return answer

    def _count(self, what: str) -> None:
        with self._lock:
            self._part.counts[what] += 1
