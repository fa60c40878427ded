"""A server on loopback that answers as a test says: whatever a hostile or old server would."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass
class Call:
    """A request: decoded path, query, headers in lower case, and the socket to write raw bytes to."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    write: Callable[[bytes], Any]
    method: str = "GET"
    body: bytes = b""


@dataclass
class Raw:
    """An answer that the test writes itself, byte by byte; the connection ends after it."""

    write: Callable[[Call], None]


@dataclass
class Told:
    """An answer with a status, headers and a body."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeServer:
    """The port and every call that came."""

    port: int
    calls: list[Call]


@contextmanager
def serving(answer: Callable[[Call], Any], *, tls: ssl.SSLContext | None = None) -> Iterator[FakeServer]:
    """A server whose answers are JSON values, `Told`, `Raw`, or None for 404."""
    calls: list[Call] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(unquote(parts.path), dict(parse_qsl(parts.query)), headers, self.wfile.write)
            call.method, call.body = self.command, self.rfile.read(int(headers.get("content-length", 0)))
            calls.append(call)
            told = answer(call)
            if isinstance(told, Raw):
                self.close_connection = True
                with contextlib.suppress(OSError):  # the client goes away, which is what the test wants
                    told.write(call)
                return
            if not isinstance(told, Told):
                found = told is not None
                told = Told(200 if found else 404, json.dumps(told if found else {"error_code": 404}).encode())
            self.send_response(told.status)
            for name, value in {"Content-Length": str(len(told.body)), **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told.body)

        do_POST = do_GET  # noqa: N815 - the name that the handler looks for

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that hangs up in the middle is a case, not a failure

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield FakeServer(server.server_port, calls)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
