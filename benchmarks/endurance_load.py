"""Sends a mix of requests at a pace, to one server or several; a program of its own, as registry_load is.

Knows nothing of registries and imports nothing but the standard library. A job comes as one line of JSON on standard
input: the servers, and streams. A stream is a list of requests that are sent in turn, so many a second (0: as fast as
they are answered), over its own kept connections, each with one request under way. A request that can't be sent within
`LATE` seconds of its time isn't sent, and is counted; times are from when it was due, so that a server which makes
others wait isn't quicker for it.

A connection that breaks goes on at the next server, as clients do that know several addresses, and returns to its own
one when that accepts connections again; those of a stream that is `pinned` stay where they are. Every second a line of
JSON says what was answered in it; a last one says that it is over.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from typing import Any, Final

#: stand in a request for a number that is another one in each request sent, and for one that 64 of them share
SERIAL: Final = b"000000000000"
GROUP: Final = b"111111111111"
#: stands for a number in a request that registers nothing, so that no cache knows it
FRESH: Final = b"222222222222"
IN_TURN: Final = 32  # groups that are filled at a time
OF_A_GROUP: Final = 64
LATE: Final = 1.0
PATIENCE: Final = 45.0  # for an answer
TICK: Final = 0.005
AGAIN: Final = 0.1  # after a connection that can't be made
HOME: Final = 2.0  # between two attempts to return to the own server
HEAD_END: Final = b"\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
LENGTH: Final = b"\r\ncontent-length:"


def group_of(serial: int) -> int:
    """The group of a number: 32 in turn, and others when each of them has 64."""
    return serial % IN_TURN + IN_TURN * (serial // (IN_TURN * OF_A_GROUP))


class Stream:
    """Requests at a pace, and what came of them since the last line."""

    def __init__(self, job: dict[str, Any], run: Run) -> None:
        self.run = run
        self.name = job["name"]
        self.rate = float(job["rate"])
        self.pinned = bool(job.get("pinned"))
        self.requests = [(int(kind), text.encode("latin-1")) for kind, text in job["requests"]]
        self.due: deque[float] = deque()
        self.idle: list[Lane] = []
        self.issued = 0
        self.turn = 0
        self.fresh = time.time_ns()  # a number that no earlier run had
        self.forget()
        count = len(run.servers)
        self.lanes = [Lane(self, number % count) for number in range(job["lanes"])]

    def forget(self) -> None:
        """Begin a new line."""
        self.taken: list[tuple[int, float]] = []
        self.errors: list[tuple[int, float, float, str, str]] = []
        self.registered: list[tuple[int, int]] = []
        self.skipped = 0

    def next_request(self) -> tuple[int, bytes, int]:
        """The kind, the request, and its number (0 where it has none)."""
        kind, request = self.requests[self.turn % len(self.requests)]
        self.turn += 1
        if FRESH in request:
            self.fresh += 1
            return kind, request.replace(FRESH, b"%d" % self.fresh), 0
        if SERIAL not in request:
            return kind, request, 0
        self.run.serial += 1
        serial = self.run.serial
        return kind, request.replace(SERIAL, b"%012d" % serial).replace(GROUP, b"%012d" % group_of(serial)), serial

    def tick(self, moment: float) -> None:
        """Send what is due."""
        if self.run.is_over:
            return
        if not self.rate:
            while self.idle:
                self.idle.pop().send(moment)
            return
        while self.issued < (moment - self.run.began) * self.rate:
            self.due.append(self.run.began + self.issued / self.rate)
            self.issued += 1
        while self.due and self.idle:
            due = self.due.popleft()
            if moment - due > LATE:
                self.skipped += 1
            else:
                self.idle.pop().send(due)
        while self.due and moment - self.due[0] > LATE:
            self.due.popleft()
            self.skipped += 1

    def free(self, lane: Lane) -> None:
        """A connection has nothing under way."""
        self.idle.append(lane)
        if not self.rate or self.due:
            self.tick(time.monotonic())

    def line(self) -> dict[str, Any]:
        """What came since the last one."""
        report = {
            "taken": [[kind, round(seconds, 5)] for kind, seconds in self.taken],
            "errors": self.errors,
            "registered": self.registered,
            "skipped": self.skipped,
        }
        self.forget()
        return report


class Lane:
    """A kept connection with one request under way."""

    def __init__(self, stream: Stream, home: int) -> None:
        self.stream = stream
        self.home = self.server = home
        self.transport: asyncio.Transport | None = None
        self.waiting = False
        self.asked_home = 0.0
        self.answer = bytearray()
        self.needed = -1

    # -- connecting ----------------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Connect to a server that accepts, however long that takes."""
        loop, servers = asyncio.get_running_loop(), self.stream.run.servers
        while not self.stream.run.is_over:
            try:
                host, port = servers[self.server]
                transport, _ = await loop.create_connection(lambda: Wire(self), host, port)
            except OSError:
                if not self.stream.pinned:
                    self.server = (self.server + 1) % len(servers)
                await asyncio.sleep(AGAIN)
            else:
                self.transport = transport
                self.asked_home = time.monotonic()
                self.stream.free(self)
                return

    async def return_home(self) -> None:
        """Connect to the own server; where it doesn't accept, stay where it is."""
        host, port = self.stream.run.servers[self.home]
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: Wire(self), host, port)
        except OSError:
            self.stream.free(self)
            return
        if self.transport is not None:
            self.transport.abort()
        self.transport, self.server = transport, self.home
        self.stream.free(self)

    def again(self) -> None:
        """Make the connection anew."""
        self.transport = None
        self.stream.run.later(self.connect())

    # -- a request -----------------------------------------------------------------------------------------------------

    def send(self, due: float) -> None:
        """Send the next request, which was due then."""
        if self.transport is None or self.transport.is_closing():  # closed between two requests: nothing was asked
            self.again()
            return
        self.kind, request, self.serial = self.stream.next_request()
        self.due, self.waiting, self.needed = due, True, -1
        self.answer.clear()
        self.transport.write(request)

    def came(self, data: bytes) -> None:
        """Take a part of the answer."""
        if not self.waiting:
            return
        response = self.answer
        response += data
        if self.needed < 0 and not self.read_head():
            return
        if (self.chunked and response.endswith(LAST_CHUNK)) or (not self.chunked and len(response) >= self.needed):
            self.done()

    def read_head(self) -> bool:
        """Whether the head is there, and what it says of the body."""
        end = self.answer.find(HEAD_END)
        if end < 0:
            return False
        head = bytes(self.answer[: end + 2]).lower()
        self.body_at, self.status = end + 4, int(head[9:12])
        self.closes, self.chunked = b"\r\nconnection: close" in head, b"\r\ntransfer-encoding:" in head
        position = head.find(LENGTH)
        length = int(head[position + len(LENGTH) : head.index(b"\r\n", position + 2)]) if position >= 0 else 0
        self.needed = self.body_at + length
        return True

    def done(self) -> None:
        """The answer is whole."""
        self.waiting = False
        moment = time.monotonic()
        body = bytes(self.answer[self.body_at :])
        if 200 <= self.status < 300:
            self.stream.taken.append((self.kind, moment - self.due))
            if self.serial:
                self.stream.registered.append((self.serial, int(json.loads(body)["id"])))
        else:
            self.note(str(self.status), body[:300].decode("utf-8", "replace"))
        if self.closes and self.transport is not None:
            self.transport.abort()
            self.again()
        elif self.server != self.home and moment - self.asked_home > HOME:
            self.asked_home = moment
            self.stream.run.later(self.return_home())
        else:
            self.stream.free(self)

    def lost(self, wire: asyncio.BaseTransport | None) -> None:
        """The connection is closed."""
        if wire is not self.transport:
            return  # an earlier one
        if self.waiting:
            self.waiting = False
            self.note("closed", f"closed after {len(self.answer)} bytes of an answer")
            if not self.stream.pinned:
                self.server = (self.server + 1) % len(self.stream.run.servers)
            self.again()

    def look(self, moment: float) -> None:
        """Wait no longer than is reasonable."""
        if self.waiting and moment - self.due > PATIENCE and self.transport is not None:
            self.waiting = False
            self.note("no answer", f"none in {PATIENCE:.0f} s")
            self.transport.abort()
            self.again()

    def note(self, what: str, text: str) -> None:
        """Note what was no success."""
        moment = time.monotonic()
        self.stream.errors.append((self.kind, round(moment, 3), round(moment - self.due, 5), what, text))


class Wire(asyncio.Protocol):
    """One connection of a lane."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Known."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """A part of an answer, if it is still the lane's connection."""
        if self.transport is self.lane.transport:
            self.lane.came(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Closed, by whomever."""
        self.lane.lost(self.transport)


class Run:
    """All streams for some seconds."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.servers = [(host, int(port)) for host, port in job["servers"]]
        self.seconds = float(job["seconds"])
        self.serial = int(job["serial"])
        self.is_over = False
        self.began = 0.0
        self.tasks: set[asyncio.Task[None]] = set()
        self.streams = [Stream(stream, self) for stream in job["streams"]]

    def later(self, work: Any) -> None:
        """Do something meanwhile."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def go(self) -> None:
        """Send for that long, and wait for the answers that are still to come."""
        self.began = time.monotonic()
        for stream in self.streams:
            for lane in stream.lanes:
                self.later(lane.connect())
        reported_at = self.began
        while True:
            moment = time.monotonic()
            if moment - self.began >= self.seconds:
                self.is_over = True
                if not any(lane.waiting for stream in self.streams for lane in stream.lanes):
                    break
            for stream in self.streams:
                stream.tick(moment)
            if moment - reported_at >= 1.0:
                reported_at = moment
                self.tell(moment)
                for stream in self.streams:
                    for lane in stream.lanes:
                        lane.look(moment)
            await asyncio.sleep(TICK)
        self.tell(time.monotonic())

    def tell(self, moment: float) -> None:
        """A line of what came."""
        line = {"at": round(moment, 3), "began": self.began, "serial": self.serial, "cpu": time.process_time()}
        say({**line, "streams": {stream.name: stream.line() for stream in self.streams}})


def say(report: dict[str, Any]) -> None:
    """Print a line now."""
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read a job and do it."""
    job = json.loads(sys.stdin.readline())

    async def run() -> None:
        await Run(job).go()

    asyncio.run(run())
    say({"over": True})


if __name__ == "__main__":
    main()
