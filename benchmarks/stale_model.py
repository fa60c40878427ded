"""The model of `bench stale`: things that go from one numbered state to the next, and what a read of them may show.

A read shows the state of the last write that was confirmed before it began, or a later one. A write without an answer
may have been made or not, until it was seen. What nobody confirmed may reach another host some milliseconds late.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.stale_site import Host, Site
from dashboard.runtime.layout import LOOPBACK

LATE: Final = 2.0  # seconds after which even what nobody confirmed is everywhere
PATIENCE: Final = 90.0  # for an answer of a host that stands still
MARK: Final = re.compile(r"n(\d{8})x")


@dataclass(frozen=True, slots=True)
class Answer:
    """A status (0: none came) and a text."""

    status: int
    text: str

    @property
    def numbers(self) -> int | None:
        """Return the highest number in it, 0 if there is none; None if it is no answer."""
        if self.status >= 500 or not self.status:
            return None
        return max(map(int, MARK.findall(self.text)), default=0) if self.status < 300 else 0


class Client:
    """A kept connection to a web process of a host; one per thread."""

    def __init__(self, site: Site, host: Host, server: str) -> None:
        self.site, self.host, self.server = site, host, server
        self._connection = http.client.HTTPConnection(LOOPBACK, host.ports[server], timeout=PATIENCE)
        self.headers: dict[str, str] = {}

    def ask(self, method: str, path: str, body: Any = None, token: str = "", **headers: str) -> Answer:
        """Send a request once."""
        if path.startswith("/ui/"):
            headers["Cookie"] = self.site.cookie
        else:
            headers |= {"Authorization": f"Bearer {token or self.site.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            self._connection.request(method, path, body and json.dumps(body), {**headers, **self.headers})
            response = self._connection.getresponse()
            return Answer(response.status, response.read().decode())
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Answer(0, repr(error))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Proof:
    """That a state was reached: since when, why it is known, and at which hosts every read shows it at once."""

    number: int
    at: float
    why: str
    hosts: frozenset[str]


Write = Callable[["Tracked", Client, int], Answer]
Read = Callable[["Tracked", Client], Any]


@dataclass
class Tracked:
    """Something with numbered states; `fits` says whether what a read gave is of a state."""

    name: str
    write: Write
    reads: Mapping[str, Read]
    fits: Callable[[Any, int], bool] = lambda value, number: bool(value == number)
    begun: int = 0
    by: str = ""
    floor: int = 0
    proofs: list[Proof] = field(default_factory=list)
    history: deque[str] = field(default_factory=lambda: deque(maxlen=400))
    more: dict[str, Any] = field(default_factory=dict)
    writing: threading.Lock = field(default_factory=threading.Lock)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, text: str) -> None:
        """Add a line to the history."""
        self.history.append(f"{time.monotonic():.4f} {text}")

    def prove(self, number: int, why: str, hosts: frozenset[str]) -> None:
        """Note that a state was reached."""
        with self.lock:
            self.proofs.append(Proof(number, time.monotonic(), why, hosts))

    def bounds(self, host: str) -> tuple[int, Proof | None]:
        """Return the oldest state that a read at the host may show, and the proof of the newest."""
        moment = time.monotonic()
        with self.lock:
            old = [proof for proof in self.proofs if moment - proof.at > LATE]
            self.floor = max([self.floor, *(proof.number for proof in old)])
            self.proofs = [proof for proof in self.proofs if moment - proof.at <= LATE]
            allowed = max([self.floor, *(proof.number for proof in self.proofs if host in proof.hosts)])
            newest = max(self.proofs, key=lambda proof: (proof.number, -proof.at), default=None)
        return allowed, newest

    def check(self, client: Client, what: str) -> tuple[str, float, str]:
        """Read; return `unanswered`, `right`, `late` with the seconds and what it is late for, or `stale`."""
        host, began = client.host.name, time.monotonic()
        oldest, newest = self.bounds(host)
        value = self.reads[what](self, client)
        latest, by = self.begun, self.by
        if value is None:
            return "unanswered", 0.0, ""
        known = max(oldest, newest.number if newest else 0)
        if (
            shown := next((number for number in range(known, latest + 1) if self.fits(value, number)), None)
        ) is not None:
            if shown > known:
                self.note(f"{what} at {client.server} shows {shown}, asked at {began:.4f}")
                self.prove(shown, "seen", frozenset({host} & {by}))
            return "right", 0.0, ""
        self.note(f"{what} at {client.server} shows {value!r}, asked at {began:.4f}; known {known}, allowed {oldest}")
        if newest and any(self.fits(value, number) for number in range(oldest, known)):
            return "late", began - newest.at, newest.why
        return "stale", 0.0, ""

    def is_at(self, client: Client, number: int) -> bool:
        """Return whether the database has that state: a request with a header of its own isn't answered by a cache."""
        client.headers = {"X-Fresh": secrets.token_hex(8)}
        try:
            values = [read(self, client) for read in self.reads.values()]
        finally:
            client.headers = {}
        return all(value is not None and self.fits(value, number) for value in values)

    def step(self, client: Client, hosts: frozenset[str], is_over: Callable[[], bool]) -> str:
        """Go to the next state, and try again until it is reached; return `confirmed`, `unknown`, or `` if it is over."""
        host, number = client.host, self.begun + 1
        self.by, self.begun = host.name, number
        first = True
        while not is_over() or first:
            was_cut = host.is_cut
            answer = self.write(self, client, number)
            self.note(
                f"write {number} at {client.server}: {answer.status} {answer.text[:80] if answer.status != 200 else ''}"
            )
            if 200 <= answer.status < 300 and first:
                alone = was_cut or host.is_cut
                self.prove(
                    number, "confirmed, cut off" if alone else "confirmed", frozenset({host.name}) if alone else hosts
                )
                return "confirmed"
            first = False
            if self.is_at(client, number):
                self.prove(number, "unknown", frozenset({host.name}))
                return "unknown"
            time.sleep(0.1)
        return ""
