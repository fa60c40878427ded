"""Clients that hold connections and send or read nothing: the others are answered meanwhile, and such connections end."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from dashboard.runtime.programs import MOST_CONNECTIONS, OTHER_FILES, most_connections, most_files
from tests.runtime.test_asgi import request, served
from tests.waiting import PATIENCE, ends_soon, until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CARD-4")]

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /subjects/s/versions HTTP/1.1\r\nHost: x\r\n"
#: what each of several hundred clients sends, before it says nothing more
CLIENTS = {
    "nothing": b"",
    "half a line": b"GET /subj",
    "half a header": GET + b"X-A: ",
    "one request": GET + b"\r\n",
    "half a body": POST + b"Content-Length: 1000\r\n\r\n{",
    "half a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n10\r\nx",
}
EACH = 200
SHORT = 1  # second


@pytest.fixture
def few_files() -> Iterator[None]:
    """The limit of open files with which a program often begins; this process has what its connections need."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4096), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def connected(port: int, text: bytes, number: int = 1, *, window: int = 0) -> Iterator[list[socket.socket]]:
    """So many connections on which the text was sent."""
    with ExitStack() as stack:
        sockets = []
        for _ in range(number):
            connection = stack.enter_context(socket.socket())
            if window:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
            connection.settimeout(PATIENCE)
            connection.connect(("127.0.0.1", port))
            connection.sendall(text)
            sockets.append(connection)
        yield sockets


def test_requests_are_answered_beside_many_connections_that_are_idle_or_slow(tmp_path: Path, few_files: None) -> None:
    with served(tmp_path) as (port, _), ExitStack() as stack:
        kept = [stack.enter_context(connected(port, text, EACH)) for text in CLIENTS.values()]
        for _ in range(10):
            with ends_soon():
                assert request(port, "GET", "/subjects")[0] == 200
                assert request(port, "POST", "/subjects/s/versions", b"{}")[0] == 200
            for connection in kept[2]:
                connection.sendall(b"x")  # a slow client's next byte


@pytest.mark.parametrize("name", ["nothing", "half a line", "half a header", "one request"])
def test_a_connection_without_a_whole_request_is_closed_in_time(tmp_path: Path, name: str) -> None:
    with served(tmp_path, http1_header_read_timeout=SHORT * 1000) as (port, _), ends_soon():
        with connected(port, CLIENTS[name]) as (connection,):
            while connection.recv(65_536):
                pass


def test_a_connection_whose_client_reads_nothing_is_ended(tmp_path: Path) -> None:
    """Else each of them takes one of the connections that the server holds, for ever."""
    with served(tmp_path, UNREAD_SECONDS=SHORT, backpressure=3) as (port, output):
        until(lambda: "limited" in output.read_text())
        with connected(port, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", 3, window=2048), ends_soon():
            assert request(port, "GET", "/")[0] == 200


def read_slowly(connections: list[socket.socket], over: threading.Event) -> None:
    """A kilobyte a second of each."""
    while not over.wait(1):
        for connection in connections:
            with suppress(OSError):
                connection.recv(1024)


def test_readers_of_long_responses_delay_nobody_and_are_cut_off_where_they_read_too_slowly(tmp_path: Path) -> None:
    """More of them than there are threads: for those that make streams, each in its turn."""
    ask = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
    over = threading.Event()
    with served(tmp_path, ROOM_SECONDS=SHORT) as (port, output), connected(port, ask, 12, window=2048) as readers:
        reading = threading.Thread(target=read_slowly, args=[readers, over])
        reading.start()
        try:
            waits = []
            while output.read_text().count("stream closed") < len(readers):
                began = time.monotonic()
                assert request(port, "GET", "/")[0] == 200
                waits.append(time.monotonic() - began)
                time.sleep(0.1)
        finally:
            over.set()
            reading.join()
        assert max(waits) < 1.0


def test_the_server_holds_as_many_connections_as_it_may_have_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for hard, connections in ((resource.RLIM_INFINITY, MOST_CONNECTIONS), (1_000_000, MOST_CONNECTIONS), (4096, 1920)):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, hard=hard: (256, hard))
        assert most_connections() == connections
        assert 2 * most_connections() + OTHER_FILES <= most_files()
