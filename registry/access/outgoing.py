"""The one HTTP client of ours: every outgoing call passes the egress policy and stays within limits.

Nothing in it follows a redirect, reads a proxy's variable or unpacks a compressed answer.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import BaseHTTPResponse

from registry.access.credentials import authorization
from registry.access.egress import Address, Connection, EgressPolicy, current_policy
from registry.errors import RemoteUnavailable

PIECE = 64 * 1024
MAX_ADDRESSES = 4  # of a host that are tried
#: whatever goes wrong on the wire
_FAULTS = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)
#: what a server does to a connection that it had kept open for too long
_GONE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, urllib3.exceptions.ProtocolError)


@dataclass(frozen=True)
class Limits:
    """Seconds to connect, between two pieces, and for a whole call; and the most bytes of one answer."""

    connect_seconds: float = 5.0
    read_seconds: float = 15.0
    total_seconds: float = 60.0
    max_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """What came back: status, headers with names in lower case, and the whole body."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self, where: str) -> Any:
        """The body as JSON. Raises RemoteUnavailable, which names the place."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RemoteUnavailable(f"{where} is no JSON: {str(error)[:80]}.", status=self.status) from error


class AnswerTooLarge(RemoteUnavailable):
    """The answer has more bytes than are taken."""


class OutgoingClient:
    """Calls of one server over one connection, which is kept open between them. Not for two threads at once."""

    def __init__(
        self, connection: Connection, *, policy: EgressPolicy | None = None, limits: Limits = Limits()
    ) -> None:
        self.connection = connection
        self.limits = limits
        self.received = 0
        self._policy = policy or current_policy()
        self._open: HTTPConnection | None = None

    def __enter__(self) -> OutgoingClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to a call; `path` is below the connection's and percent-encoded already.

        Raises AddressRefused and InvalidSecret before anything is sent, and RemoteUnavailable for a server that
        doesn't answer within the limits or answers with a redirect.
        """
        target = f"{self.connection.path}{path}" + (f"?{urlencode(query)}" if query else "")
        sent = {
            "Host": self.connection.netloc,
            "User-Agent": "schemadesk",
            "Accept-Encoding": "identity",
            **(headers or {}),
            **authorization(self.connection),
        }
        reused = self._open is not None and self._open.is_connected
        try:
            return self._exchange(method, target, sent, body)
        except _GONE:
            if not reused or method != "GET":
                raise RemoteUnavailable(f"{self.connection.netloc} closed the connection.") from None
        return self._again(target, sent)

    def _again(self, target: str, headers: Mapping[str, str]) -> Answer:
        """The call over a fresh connection: the server had closed the one that was kept open."""
        self.close()
        try:
            return self._exchange("GET", target, headers, None)
        except _GONE:
            raise RemoteUnavailable(f"{self.connection.netloc} closes connections without an answer.") from None

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        complete = False
        try:
            wire = self._connected()
            with _deadline(wire, self.limits.total_seconds) as late:
                try:
                    wire.request(method, target or "/", body=body, headers=headers, preload_content=False)
                    answer = self._read(wire.getresponse())
                except _FAULTS as error:
                    if late.is_set():
                        raise self._slow() from error
                    raise
            if late.is_set():  # headers that are cut off look like headers that have ended
                raise self._slow()
            complete = True
            return answer
        except _GONE:
            raise
        except _FAULTS as error:
            raise RemoteUnavailable(f"{self.connection.netloc}: {self._say(error)}") from error
        finally:
            if not complete:
                self.close()

    def _slow(self) -> RemoteUnavailable:
        return RemoteUnavailable(
            f"{self.connection.netloc} didn't answer whole within {self.limits.total_seconds:g} s."
        )

    def _read(self, response: BaseHTTPResponse) -> Answer:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if 300 <= response.status < 400 and response.status != 304:
            raise RemoteUnavailable(
                f"{self.connection.netloc} answers with a redirect ({response.status}); redirects aren't followed:"
                " give the address that it leads to, if you trust it.",
                status=response.status,
            )
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise RemoteUnavailable(f"{self.connection.netloc} sends a compressed answer that wasn't asked for.")
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced[:20]) > self.limits.max_bytes:
            raise self._too_large(response.status)
        pieces, length = [], 0
        while piece := response.read(PIECE):
            length += len(piece)
            if length > self.limits.max_bytes:
                raise self._too_large(response.status)
            pieces.append(piece)
        self.received += length
        return Answer(response.status, headers, b"".join(pieces))

    def _too_large(self, status: int) -> AnswerTooLarge:
        most = self.limits.max_bytes
        return AnswerTooLarge(f"{self.connection.netloc} sends more than {most} bytes in one answer.", status=status)

    def _connected(self) -> HTTPConnection:
        if self._open is not None and self._open.is_connected:
            return self._open
        self.close()
        failure: Exception | None = None
        for address in self._policy.addresses(self.connection)[:MAX_ADDRESSES]:
            wire = self._wire(address)
            try:
                wire.connect()
            except (urllib3.exceptions.HTTPError, OSError) as error:
                wire.close()
                failure = error
                continue
            wire.timeout = self.limits.read_seconds  # it is put on the socket with each request
            self._open = wire
            return wire
        raise RemoteUnavailable(f"{self.connection.netloc} can't be reached: {self._say(failure)}") from failure

    def _wire(self, address: Address) -> HTTPConnection:
        """A connection to the judged address; the certificate is checked against the host's name."""
        timeout = self.limits.connect_seconds
        if self.connection.scheme == "http":
            return HTTPConnection(str(address), self.connection.port, timeout=timeout)
        return HTTPSConnection(
            str(address),
            self.connection.port,
            timeout=timeout,
            ssl_context=ssl.create_default_context(),
            server_hostname=self.connection.host,
        )

    def _say(self, error: Exception | None) -> str:
        """The reason in words: no header and no body stands in it."""
        cause = error
        while isinstance(cause, urllib3.exceptions.HTTPError) and cause.__cause__ is not None:
            cause = cause.__cause__ if isinstance(cause.__cause__, Exception) else None
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate isn't valid ({cause.verify_message})."
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason or 'no reason given'})."
        if isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
            return "no answer in time."
        if isinstance(cause, OSError) and cause.strerror:
            return f"{cause.strerror}."
        return f"the answer is no HTTP ({type(cause).__name__})."


@contextlib.contextmanager
def _deadline(wire: HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """Cuts the connection when the time is up: a server that sends a byte now and then passes every other limit.

    The socket is held from the start: the connection forgets it once a server says that it will close.
    """
    late, held = threading.Event(), wire.sock

    def cut() -> None:
        late.set()
        if isinstance(held, socket.socket):
            with contextlib.suppress(OSError):  # it is closed already
                socket.socket.shutdown(held, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
