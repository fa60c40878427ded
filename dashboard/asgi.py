"""The ASGI application of the web server; it passes each request to Django, which stays synchronous.

The server uses ASGI because that keeps the raw request target. Django under ASGI would be several times slower than
under WSGI, so the bridge below calls its WSGI handler in a thread. The cache of dashboard/response_cache/cache.py
answers first.

By default, Python collects garbage after 700 new objects, and so scans all objects every few pages of a large schema:
that blocks all requests for a fifth of a second. `freeze_startup_objects` excludes the objects loaded at the start, and makes
collections rare: a page's objects are freed before they would be scanned.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import logging
import math
import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from django.conf import settings
from django.db import close_old_connections
from django.urls import get_resolver

from dashboard import telemetry
from dashboard.database.circuit_breaker import LONGEST, REPLIES
from dashboard.wsgi import application as django_application
from registry.api.google.base import refusal as google_refusal
from registry.api.product.base import refusal as product_refusal
from registry.api.response_marks import ENVIRON
from registry.api.spring.errors import refusal as spring_refusal
from registry.subjects.engine import schema_workers

#: new objects per collection of generation 0; those per collection of generation 1; those per collection of all
THRESHOLDS: Final = (10_000, 20, 20)


def freeze_startup_objects() -> None:
    """Load at the start what the first pages need, and exclude all present objects from garbage collection."""
    _ = get_resolver().url_patterns
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Refusal = Callable[[int, str], Mapping[str, Any] | str]
WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

# In total at most the pool of database connections in the settings: a thread without a connection would only wait.
THREADS = 8
WRITE_THREADS = 6  # for registrations and other writes of the APIs, which wait for each other and for costly schemas
READS = frozenset({"GET", "HEAD"})
WRITES = frozenset({"PUT", "PATCH", "DELETE"})
REGISTRATION = re.compile(r"(?<!/compatibility)/subjects/.+/versions/?$", re.DOTALL)
STREAM_THREADS = 2  # that generate streamed responses
READY_THREADS = 1  # that check whether the database and Valkey answer
READY_SECONDS = 1.0  # limit for a probe of readiness: probes share the check in flight
NOT_READY = b'{"status": "not ready", "reason": "the database or Valkey doesn\'t answer within %.0f s"}' % READY_SECONDS
APART_THREADS = 2  # for requests without the database
STATIC = "/ui/static/"
MAX_BODY = 8 * 1024 * 1024
IN_MEMORY = 512 * 1024  # bytes of a request's body; a longer one goes to a temporary file
# The server reports a malformed body like a disconnected client, and answers 500 itself if the application doesn't.
UNREADABLE = "The body ended early, or its chunks are malformed."
BODY_SECONDS = 60.0  # limit for a client to send its body
DRAIN_BYTES = 64 * 1024 * 1024  # of a too large body, read and dropped so that its client reads the response
DRAIN_SECONDS = 10.0
DRAIN_PAUSE = 2.0  # after this silence, a client is assumed to wait for the response
ANSWERED_AT_ONCE = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.BAD_REQUEST, HTTPStatus.SERVICE_UNAVAILABLE)
MOST_STREAMS = 64  # at the same time
BUSY = f"{MOST_STREAMS} long responses are being read, which is as many as the server holds. Try again later."
SPOOLED = 32 * 1024 * 1024  # bytes of a stream that its client hasn't read yet
ROOM_SECONDS, LEAST_TAKEN = 15.0, 1024 * 1024  # a client that reads less in this time loses its stream
PIECE = 256 * 1024  # bytes of a stream per message
SEND_SECONDS = 60.0  # limit for a client to read it
UNREAD_SECONDS = 60.0  # limit for a client to read anything of the pending data
WHOLE = 1024 * 1024  # a stream with at most this Content-Length is sent whole
ASCII_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))

logger = logging.getLogger(__name__)


class ClientGone(Exception):
    """The client has disconnected, or reads too slowly."""


class RequestRefused(Exception):
    """The request is refused before Django, with a status and a message."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass
class BridgeResponse:
    """A response with either a complete body, or parts still to come from the application."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    parts: Iterable[bytes] | None = None


class WsgiBridge:
    """An ASGI application that calls a WSGI application, one thread per request."""

    def __init__(
        self,
        application: WsgiApplication,
        *,
        threads: int = THREADS,
        max_body: int = MAX_BODY,
        at_start: Callable[[], None] | None = None,
        refusals: Mapping[bytes, Refusal] = {},
    ) -> None:
        """Create the bridge; `refusals` maps a path prefix to a function that makes a refusal's JSON or HTML."""
        self._application = application
        self._at_start = at_start
        self._refusals = refusals
        self._max_body = max_body
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="request")
        self._writers = ThreadPoolExecutor(WRITE_THREADS, thread_name_prefix="write")
        self._makers = ThreadPoolExecutor(STREAM_THREADS, thread_name_prefix="stream")
        self._ready = ThreadPoolExecutor(READY_THREADS, thread_name_prefix="ready")
        self._apart = ThreadPoolExecutor(APART_THREADS, thread_name_prefix="apart")
        self._streaming = 0
        self._checks: dict[tuple[str, str], asyncio.Future[BridgeResponse]] = {}  # of readiness, by method and host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; refuse a body that is too large, encoded, malformed or late (413, 415, 400, 408)."""
        if scope["type"] != "http":
            await _other(scope, receive, send, self._at_start)
            return
        try:
            body, length = await self._body(scope, receive)
        except RequestRefused as refusal:
            await self._refuse(refusal, scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        with body:
            environ = build_environ(scope, body, length)
            threads = self._threads_for(scope["method"], scope["path"])
            if threads is self._ready:
                response = await self._readiness(environ)
            else:
                response = await loop.run_in_executor(threads, _respond, self._application, environ)
        if response.parts is None:
            await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
            await send({"type": "http.response.body", "body": response.body, "more_body": False})
        elif self._streaming < MOST_STREAMS:
            self._streaming += 1
            try:
                await self._stream(response.parts, response, receive, send)
            finally:
                self._streaming -= 1
        else:
            loop.run_in_executor(self._makers, _close, response.parts)
            await self._refuse(RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, BUSY), scope, receive, send)

    async def _readiness(self, environ: dict[str, Any]) -> BridgeResponse:
        """Return the response of the check in flight, or of a new one; 503 if there is none in time."""
        key = environ["REQUEST_METHOD"], environ.get("HTTP_HOST", "")
        check = self._checks.get(key)
        if check is None:
            check = asyncio.get_running_loop().run_in_executor(self._ready, _respond, self._application, environ)
            self._checks[key] = check
            check.add_done_callback(lambda _: self._checks.pop(key))
        await asyncio.wait([check], timeout=READY_SECONDS)
        if check.done():
            return check.result()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(NOT_READY))]
        return BridgeResponse(503, headers, b"" if key[0] == "HEAD" else NOT_READY)

    def _threads_for(self, method: str, path: str) -> ThreadPoolExecutor:
        """Return separate threads for registrations and other API writes, which wait for locks, and for health checks and
        static files, which nothing may block.
        """
        if path == "/readyz" and method in READS:
            return self._ready
        if method in WRITES or (method == "POST" and REGISTRATION.search(path)):
            return self._writers
        return self._apart if path == "/healthz" or path.startswith(STATIC) else self._threads

    async def _stream(self, parts: Iterable[bytes], response: BridgeResponse, receive: Receive, send: Send) -> None:
        """Send what a thread generates; a truncated stream isn't terminated, so that its client detects it."""
        loop = asyncio.get_running_loop()
        spool = Spool(loop)
        making = loop.run_in_executor(self._makers, spool.fill, parts)
        gone = asyncio.ensure_future(_disconnected(receive))
        for future in (making, gone):
            future.add_done_callback(spool.wake)
        try:
            await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
            # The server accepts and drops what is sent to a disconnected client.
            while not gone.done():
                spool.changed.clear()
                is_made = making.done() and making.result() is None
                if piece := spool.take():
                    async with asyncio.timeout(SEND_SECONDS):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                elif is_made:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    return
                else:
                    await spool.changed.wait()
        except (ClientGone, OSError, RuntimeError) as error:
            logger.info("a stream was cut short: %r", error)
        finally:
            gone.cancel()
            spool.close()

    async def _refuse(self, refusal: RequestRefused, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer immediately, and let the client finish: most read no response before they have sent their body.

        Closing the connection while a client still sends would lose the response (a broken pipe, a reset).
        """
        made = self._refusal(scope["raw_path"], int(refusal.status), refusal.message)
        text = (made if isinstance(made, str) else json.dumps(made)).encode()
        headers = [
            (b"content-type", b"text/html; charset=utf-8" if isinstance(made, str) else b"application/json"),
            (b"accept-encoding", b"identity"),
            (b"connection", b"close"),
            (b"content-length", b"%d" % len(text)),
        ]
        await send({"type": "http.response.start", "status": int(refusal.status), "headers": headers})
        # Less than announced: at the end of the response, the server would close the connection while the client sends.
        await send({"type": "http.response.body", "body": text[:-1], "more_body": True})
        waits = any(
            name == b"expect" for name, _ in scope["headers"]
        )  # such a client sends nothing until the server agrees
        if refusal.status not in ANSWERED_AT_ONCE and not waits:
            await _drain(receive)
        await send({"type": "http.response.body", "body": text[-1:], "more_body": False})

    def _refusal(self, path: bytes, status: int, message: str) -> Mapping[str, Any] | str:
        """Return the body in the dialect of the path; Confluent's by default."""
        make = next((make for start, make in self._refusals.items() if path.startswith(start)), None)
        return make(status, message) if make else {"error_code": status, "message": message}

    async def _body(self, scope: Scope, receive: Receive) -> tuple[IO[bytes], int]:
        """Return the complete body and its length, so that Django's thread doesn't wait for a slow client."""
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if announced.isdigit() and int(announced) > self._max_body:
            raise RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._limit())
        if not announced and all(name != b"transfer-encoding" for name, _ in scope["headers"]):
            return io.BytesIO(), 0
        encodings = b", ".join(value for name, value in scope["headers"] if name == b"content-encoding")
        if encodings and encodings.lower() != b"identity":
            sentence = f"The body's Content-Encoding is {encodings[:40].decode('latin-1')}. Send the body unencoded."
            raise RequestRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._read(receive)
        except TimeoutError:
            raise RequestRefused(
                HTTPStatus.REQUEST_TIMEOUT, f"The body did not come in {BODY_SECONDS:.0f} s."
            ) from None

    async def _read(self, receive: Receive) -> tuple[IO[bytes], int]:
        body: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by the caller
        length, more = 0, True
        try:
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestRefused(HTTPStatus.BAD_REQUEST, UNREADABLE)
                part, more = message.get("body", b""), message.get("more_body", False)
                length += len(part)
                if length > self._max_body:
                    raise RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._limit())
                body.write(part)
        except BaseException:
            body.close()
            raise
        body.seek(0)
        return body, length

    def _limit(self) -> str:
        return f"A request's body may have up to {self._max_body} bytes."


def _respond(application: WsgiApplication, environ: dict[str, Any]) -> BridgeResponse:
    """Call the WSGI application in the current thread; a stream isn't started here."""
    status, headers = 0, list[tuple[bytes, bytes]]()

    def start_response(line: str, pairs: list[tuple[str, str]], exc_info: Any = None) -> Callable[..., Any]:
        nonlocal status, headers
        status, headers = int(line[:3]), [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in pairs]
        return _no_write

    is_api_read = environ["REQUEST_METHOD"] in READS and not environ["PATH_INFO"].startswith("/ui/")
    try:
        with REPLIES.limited(LONGEST if is_api_read else math.inf):
            result = application(environ, start_response)
    except Exception:
        logger.exception("no answer to %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
        text = b'{"error_code":500,"message":"Internal Server Error"}'
        return BridgeResponse(500, [(b"content-type", b"application/json")], text)
    length = next((value for name, value in headers if name == b"content-length"), b"")
    is_whole = environ["REQUEST_METHOD"] == "HEAD" or (length.isdigit() and int(length) <= WHOLE)
    if not is_whole and getattr(result, "streaming", not isinstance(result, list | tuple)):
        close_old_connections()  # this thread's: the stream has its own thread's
        return BridgeResponse(status, headers, b"", result)
    try:
        return BridgeResponse(status, headers, b"" if environ["REQUEST_METHOD"] == "HEAD" else b"".join(result))
    finally:
        _close(result)


def _close(result: Iterable[bytes]) -> None:
    if close := getattr(result, "close", None):
        close()


class Spool:
    """A file with the unread part of a stream: a thread fills it, and the event loop empties it.

    The thread waits only while the file is full, and not for a client that then reads too little. So a slow client
    doesn't block a thread for long, and a stream of any length takes little space.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.changed = asyncio.Event()
        self._loop = loop
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed by `close`
        self._lock = threading.Lock()
        self._has_room = threading.Event()
        self._made = self._taken = 0

    def fill(self, parts: Iterable[bytes]) -> None:
        """Generate the stream, and close it in the same thread. Raises ClientGone if the client is gone or too slow."""
        try:
            for part in parts:
                self._put(part)
        finally:
            _close(parts)

    def _put(self, part: bytes) -> None:
        with self._lock:
            if self._file.closed:
                raise ClientGone("it closed the connection")
            self._file.seek(self._made)
            self._made += self._file.write(part)
            is_full = self._made >= SPOOLED
            if is_full:
                self._has_room.clear()
        if not self.changed.is_set():
            self._loop.call_soon_threadsafe(self.changed.set)
        taken = self._taken
        while is_full and not self._has_room.wait(ROOM_SECONDS):
            if self._taken - taken < LEAST_TAKEN:
                raise ClientGone(f"it took less than {LEAST_TAKEN} bytes in {ROOM_SECONDS:.0f} s")
            taken = self._taken

    def wake(self, future: asyncio.Future[Any]) -> None:
        """Wake the loop at the end of a future; its exception is ignored."""
        self.changed.set()
        if not future.cancelled():
            future.exception()

    def take(self) -> bytes:
        """Return the next piece; empty if the client has read everything so far."""
        with self._lock:
            self._file.seek(self._taken)
            piece = self._file.read(PIECE)
            self._taken += len(piece)
            if not piece:
                self._file.seek(0)
                self._file.truncate()
                self._made = self._taken = 0
                self._has_room.set()
        return piece

    def close(self) -> None:
        """Stop: the client reads no more."""
        with self._lock:
            self._file.close()
            self._has_room.set()


def build_environ(scope: Scope, body: IO[bytes], length: int) -> dict[str, Any]:
    """Return the WSGI environment of a request (PEP 3333), with `RAW_URI`, the raw request target.

    Bytes above ASCII in the target are percent-encoded there. Header names with an underscore are dropped: WSGI
    couldn't distinguish them from those with a hyphen, which proxies check.
    """
    raw, query = bytes(scope["raw_path"]), bytes(scope["query_string"])
    target = raw + b"?" + query if query else raw
    server, client = scope.get("server") or ("localhost", 80), scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(raw).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "RAW_URI": target.decode() if target.isascii() else quote_from_bytes(target, safe=ASCII_AS_IT_IS),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        if b"_" in name or name == b"content-length":
            continue
        text = value.decode("latin-1")
        key = "CONTENT_TYPE" if name == b"content-type" else "HTTP_" + name.decode("latin-1").upper().replace("-", "_")
        if key in environ:
            text = f"{environ[key]}{'; ' if name == b'cookie' else ','}{text}"
        environ[key] = text
    if (replay := scope.get(ENVIRON)) is not None:
        environ[ENVIRON] = replay
    # A chunked body has no announced length, and Django reads nothing without one.
    environ["CONTENT_LENGTH"] = str(length) if length else ""
    return environ


async def _drain(receive: Receive) -> None:
    """Read and drop the rest of a refused body, up to limits of size and time."""
    left = DRAIN_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while left > 0:
                async with asyncio.timeout(DRAIN_PAUSE):
                    message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))


async def _disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _other(scope: Scope, receive: Receive, send: Send, at_start: Callable[[], None] | None) -> None:
    """Handle the server's start and stop; close a websocket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1000})
        return
    while scope["type"] == "lifespan":
        message = await receive()
        if message["type"] == "lifespan.startup" and at_start is not None:
            at_start()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _no_write(data: bytes) -> None:
    raise NotImplementedError("the write() of PEP 3333 is for old frameworks; Django doesn't use it")


def _begin() -> None:
    schema_workers.prestart()
    REPLIES.watch(settings.DATABASE_WAIT)
    freeze_startup_objects()
    # The server listens only after this.
    asyncio.get_running_loop().call_later(1.0, limit_unread)


def limit_unread() -> None:
    """Make the system end a connection whose client reads nothing of a response for UNREAD_SECONDS.

    The server itself would wait for ever. A connection inherits the option from its listening socket.
    """
    for file in Path("/proc/self/fd").iterdir() if sys.platform == "linux" else ():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(file.name))) as listener:
            if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and listener.family != socket.AF_UNIX:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_SECONDS * 1000))


def make_application() -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Return Django behind the bridge, with the response cache in front unless the settings disable it."""
    # Not at the top: the backend reads the settings when it is imported, and dashboard.wsgi names them.
    from dashboard.database.base import notifying_parameters, own_generation
    from dashboard.errors.views import refusal_page
    from dashboard.metrics import MeasuredApplication
    from dashboard.response_cache.cache import ResponseCache, noting
    from dashboard.response_cache.hosts import Agent
    from dashboard.response_cache.listener import Listener

    refusals: dict[bytes, Refusal] = {
        b"/v1/projects/": google_refusal,
        b"/api/v1/": product_refusal,
        b"/ui/": refusal_page,
    }
    if spring := settings.SPRING_PATH.strip("/").encode():
        refusals[b"/" + spring] = spring_refusal
    if not settings.HOT_PATH:
        return MeasuredApplication(WsgiBridge(django_application, at_start=_begin, refusals=refusals))
    generation = own_generation()
    watches: list[Listener | Agent] = [Listener(generation, notifying_parameters)]
    if settings.HOT_PATH_HOSTS:
        watches.append(Agent(generation, settings.REDIS_URL))

    def start() -> None:
        _begin()
        for watch in watches:
            watch.start()

    bridge = MeasuredApplication(WsgiBridge(noting(django_application), at_start=start, refusals=refusals))
    most_bytes = settings.HOT_PATH_MIB * 1024 * 1024
    return telemetry.traced(ResponseCache(telemetry.marking(bridge), generation, watches, most_bytes=most_bytes))


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
application = make_application()
