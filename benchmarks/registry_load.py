"""Sends requests to a server as fast as it answers; a program of its own, so that its CPU time isn't the server's.

Knows nothing of registries and imports nothing but the standard library. A job comes as one line of JSON on standard
input: raw requests, and how they are to be sent. Each connection has one request under way, and sends the next one
when the answer is there.

With `seconds` 0 every request is sent once, and all answers come back in their order. Else the requests are sent
again and again (a connection is made anew after `each` of them, 0: never): first for `warm_up` seconds; then the line `ready` is printed and a line awaited, in which time
nothing is under way, so that whoever counts the server's CPU time can do it; then for `seconds`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import ssl
import sys
import time
from typing import Any, Final

#: stands in a request for a number that is another one in each request sent, of as many digits
SERIAL: Final = b"000000000000"
PATIENCE: Final = 60.0  # for the answers that are still to come when the time is over
MOST_RECONNECTS: Final = 3  # for one request
SAMPLES: Final = 4
HEAD_END: Final = b"\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
CHUNKED, UNTIL_CLOSED = -1, -2  # instead of a length that is known


class Load:
    """One job: what is sent next, and what came back."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.host, self.port = job["host"], job["port"]
        self.tls = ssl.create_default_context() if job["tls"] else None
        self.requests = [text.encode("latin-1") for text in job["requests"]]
        self.once = not job["seconds"]
        self.each = int(job.get("each", 0))
        self.serial = int(job["serial"])
        self.numbered = bool(self.serial)
        self.answers: dict[int, tuple[int, bytes]] = {}
        self.reconnects = 0
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.taken: list[float] = []
        self.errors: dict[str, int] = {}
        self.first_error = ""
        self.samples: list[tuple[int, int, bytes]] = []
        self.busy = 0
        self.sent = self.came = 0
        self.deadline = math.inf
        self.over = asyncio.get_running_loop().create_future()

    async def phase(self, connections: list[Connection], seconds: float) -> float:
        """Keep the connections busy for some seconds (0: until every request was sent); the seconds that it took."""
        self.forget()
        began = time.perf_counter()
        self.deadline = math.inf if self.once else began + seconds
        self.busy = len(connections)
        for connection in connections:
            connection.begin()
        await asyncio.wait({self.over}, timeout=seconds)
        last_count = -1
        while not self.over.done() and last_count != self.came:
            last_count = self.came
            await asyncio.wait({self.over}, timeout=PATIENCE)
        if not self.over.done():
            self.fail("no answer", f"{self.busy} requests had no answer for {PATIENCE:.0f} s")
            for connection in connections:
                connection.drop()
        return time.perf_counter() - began

    def take(self, connection: Connection) -> tuple[int, bytes] | None:
        """The next request of a connection and its index; None when it is over."""
        if self.once:
            index, self.sent = self.sent, self.sent + 1
            return (index, self.requests[index]) if index < len(self.requests) else None
        # At least one each: a short time on a slow server measures something too.
        if connection.sent and time.perf_counter() >= self.deadline:
            return None
        connection.sent += 1
        self.sent += 1
        index = (connection.position + connection.sent) % len(self.requests)
        if not self.numbered:
            return index, self.requests[index]
        self.serial += 1
        return index, self.requests[index].replace(SERIAL, b"%012d" % self.serial)

    def answered(self, index: int, seconds: float, status: int, body: bytes) -> None:
        """Note an answer."""
        self.came += 1
        if self.once:
            self.answers[index] = (status, body)
            return
        if not 200 <= status < 300:
            self.fail(str(status), f"{status}: {body[:300].decode('utf-8', 'replace')}")
            return
        self.taken.append(seconds)
        if len(self.samples) < SAMPLES:
            self.samples.append((index, status, body))

    def fail(self, kind: str, text: str) -> None:
        """Note what was no answer, or a refusal."""
        self.errors[kind] = self.errors.get(kind, 0) + 1
        self.first_error = self.first_error or text

    def idle(self) -> None:
        """A connection has nothing more to send."""
        self.busy -= 1
        if not self.busy and not self.over.done():
            self.over.set_result(None)


class Connection(asyncio.Protocol):
    """A kept connection with one request under way; callbacks alone, as tasks and futures cost more than the rest."""

    def __init__(self, load: Load, position: int) -> None:
        self.load = load
        self.position = position
        self.transport: asyncio.Transport | None = None
        self.sent = 0
        self.waiting = False
        self.request = b""
        self.index = 0
        self.tries = 0
        self.began = 0.0

    async def connect(self) -> None:
        """Connect, and send what waits to be sent. Raises OSError."""
        load = self.load
        await asyncio.get_running_loop().create_connection(lambda: self, load.host, load.port, ssl=load.tls)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready; send what the last connection did not get answered."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self.waiting:
            self._write()

    def begin(self) -> None:
        """Start a phase."""
        self.sent = 0
        self._next()

    def drop(self) -> None:
        """Wait for an answer no longer."""
        self.waiting = False
        if self.transport is not None:
            self.transport.abort()

    def _next(self) -> None:
        if self.load.each and self.sent and self.sent % self.load.each == 0 and self.transport is not None:
            self.transport.abort()  # another client takes over
        taken = self.load.take(self)
        if taken is None:
            self.load.idle()
            return
        self.index, self.request = taken
        self.waiting, self.tries = True, 0
        self.began = time.perf_counter()
        if self.transport is None or self.transport.is_closing():
            self._reconnect()
        else:
            self._write()

    def _write(self) -> None:
        assert self.transport is not None
        self.answer = bytearray()
        self.needed: int | None = None
        self.transport.write(self.request)

    def _reconnect(self) -> None:
        self.transport = None
        self.tries += 1
        self.load.reconnects += 1
        asyncio.ensure_future(self.connect()).add_done_callback(self._reconnected)

    def _reconnected(self, done: asyncio.Future[None]) -> None:
        if error := done.exception():
            self._lost(f"can't connect again: {error}")

    def data_received(self, data: bytes) -> None:
        """Take a part of the answer; when it is whole, send the next request."""
        if not self.waiting:
            return  # nothing was asked: what a server says on its own isn't an answer
        response = self.answer
        response += data
        if self.needed is None and not self._read_head():
            return
        if self.needed == CHUNKED:
            if response.endswith(LAST_CHUNK) and (body := unchunked(response, self.body_at)) is not None:
                self._done(body)
        elif self.needed != UNTIL_CLOSED and self.needed is not None and len(response) >= self.needed:
            self._done(bytes(response[self.body_at : self.needed]))

    def _read_head(self) -> bool:
        end = self.answer.find(HEAD_END)
        if end < 0:
            return False
        head = bytes(self.answer[: end + 2]).lower()
        self.body_at = end + 4
        self.status = int(head[9:12])
        self.closes = b"\r\nconnection: close" in head
        position = head.find(b"\r\ncontent-length:")
        if position >= 0:
            self.needed = self.body_at + int(head[position + 17 : head.index(b"\r\n", position + 17)])
        elif b"\r\ntransfer-encoding:" in head:
            self.needed = CHUNKED
        else:
            self.needed = self.body_at if self.status == 204 else UNTIL_CLOSED
        return True

    def _done(self, body: bytes) -> None:
        seconds = time.perf_counter() - self.began
        self.waiting = False
        if self.closes and self.transport is not None:
            self.transport.abort()
        self.load.answered(self.index, seconds, self.status, body)
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        """The server closed it: between two requests it is made again, within an answer that is an error."""
        if not self.waiting or self.transport is None:
            return
        if self.needed == UNTIL_CLOSED:
            self.closes = True
            self._done(bytes(self.answer[self.body_at :]))
        elif not self.answer and self.tries < MOST_RECONNECTS:
            self._reconnect()  # it met a request on its way: nothing of an answer came
        else:
            self._lost(f"the connection was closed after {len(self.answer)} bytes of an answer ({error})")

    def _lost(self, text: str) -> None:
        self.waiting = False
        self.load.fail("closed", text)
        self.load.idle()


def unchunked(response: bytearray, position: int) -> bytes | None:
    """The body of a chunked answer that begins at a place; None while it isn't whole."""
    parts: list[bytes] = []
    while True:
        end = response.find(b"\r\n", position)
        if end < 0:
            return None
        size = int(response[position:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        if end + 2 + size + 2 > len(response):
            return None
        parts.append(bytes(response[end + 2 : end + 2 + size]))
        position = end + 2 + size + 2


async def run(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job; what came of it. Raises OSError where the server doesn't let us connect."""
    load = Load(job)
    count = min(job["connections"], len(load.requests)) if load.once else job["connections"]
    step = max(1, len(load.requests) // count)
    connections = [Connection(load, number * step) for number in range(count)]
    for connection in connections:
        await connection.connect()
    if load.once:
        await load.phase(connections, 0)
        answers = [load.answers.get(index) for index in range(len(load.requests))]
        return {
            "answers": [response and [response[0], response[1].decode("utf-8", "replace")] for response in answers],
            "first_error": load.first_error,
        }
    await load.phase(connections, job["warm_up"])
    warmed, warm_up_errors, failed = load.sent, sum(load.errors.values()), load.first_error
    say("ready")
    sys.stdin.readline()
    before = time.process_time()
    taken = await load.phase(connections, job["seconds"])
    return {
        "seconds": taken,
        "cpu": time.process_time() - before,
        "answered": len(load.taken),
        "sent": load.sent,
        "warmed": warmed,
        "p50": percentile(load.taken, 0.5),
        "p99": percentile(load.taken, 0.99),
        "wrong": warm_up_errors + sum(load.errors.values()),
        "first_error": failed or load.first_error,
        "reconnects": load.reconnects,
        "samples": [[index, status, body.decode("utf-8", "replace")] for index, status, body in load.samples],
    }


def percentile(taken: list[float], share: float) -> float:
    """The nearest rank of some seconds; 0 of none."""
    return sorted(taken)[math.ceil(len(taken) * share) - 1] if taken else 0.0


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read a job, do it, print what came of it as one line."""
    job = json.loads(sys.stdin.readline())
    gc.disable()  # nothing here makes cycles, and a collection would be in a latency
    try:
        done = asyncio.run(run(job))
    except OSError as error:
        done = {"failed": str(error)}
    say(json.dumps(done))


if __name__ == "__main__":
    main()
