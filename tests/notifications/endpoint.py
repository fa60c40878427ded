"""A real HTTP server on this machine that receives webhooks and answers as it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Endpoint:
    """The server: how it answers, and what it got."""

    status: int = 200
    answer: bytes = b"thanks"
    location: str = ""
    wait: float = 0.0
    drip: bool = False
    announced: int | None = None
    port: int = 0
    got: list[Received] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook"


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A server on a free port, ended when the block is."""
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.got.append(Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            state.ended.wait(state.wait)
            self.send_response(state.status)
            if state.location:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", str(state.announced or len(state.answer)))
            self.end_headers()
            if state.drip:
                while not state.ended.is_set():
                    self.wfile.write(b".")
                    self.wfile.flush()
                    time.sleep(0.05)
            self.wfile.write(state.answer)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the caller has gone: that is what some tests are about
                return

        def log_message(self, *_line: object) -> None:
            """Nothing on the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
