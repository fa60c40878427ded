"""The HTTP client for outgoing calls, and their credentials.

Each call passes the egress policy and stays within limits. The client follows no redirects, reads no proxy variables
and rejects compressed responses.

A secret is a file in the folder SECRETS_DIR, or an environment variable `SCHEMADESK_SECRET_NAME`. Its first word is the
host that it may be sent to, the rest is the secret:

    registry.example.com the-password
    registry.example.com:8443 the-password
    http://10.0.0.7:8081 the-password

It is sent only over https, or to this machine, unless the binding says `http://`. So people who may name a secret
can't send it to a host of their own.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import BaseHTTPResponse

from registry.access.egress import PORTS, Address, Connection, EgressPolicy, current_policy
from registry.errors import InvalidSecret, RemoteUnavailable

PREFIX = "SCHEMADESK_SECRET_"
MAX_SECRET = 8192
MAX_PEM = 65_536
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Secret:
    """A secret and the host it is bound to; its repr hides the value, so that no log or traceback contains it."""

    name: str
    binding: str
    value: str = field(repr=False)


def authorization(connection: Connection) -> dict[str, str]:
    """Return the Authorization header: Basic with a user, Bearer without one; empty if no secret is named.

    Raises InvalidSecret if the secret is missing or bound to another host.
    """
    if not connection.secret:
        return {}
    secret = find_secret(connection.secret)
    refuse_other_host(secret, connection)
    if connection.user:
        pair = f"{connection.user}:{secret.value}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {"Authorization": f"Bearer {secret.value}"}


def find_secret(
    name: str, *, folder: Path | None = None, environment: Mapping[str, str] | None = None, is_pem: bool = False
) -> Secret:
    """Return the secret with that name; a file takes precedence over a variable. Raises InvalidSecret.

    With `is_pem`, it may have several lines and be longer.
    """
    if not _NAME.fullmatch(name):
        raise InvalidSecret("A secret's name can have 1 to 64 letters, digits, _ and -.")
    folder = folder or settings.SECRETS_DIR
    variable = PREFIX + name.upper().replace("-", "_")
    longest = MAX_PEM if is_pem else MAX_SECRET
    text = _read(folder, name, longest) if folder else None
    if text is None:
        text = (os.environ if environment is None else environment).get(variable)
    if text is None:
        raise InvalidSecret(
            f"Secret {name!r} not found. Put it in a file of that name in SCHEMADESK_SECRETS_DIR, or in the"
            f" environment variable {variable}.",
            secret=name,
        )
    return _parsed(name, text, longest, is_pem=is_pem)


def _read(folder: Path, name: str, longest: int) -> str | None:
    """Return the file's text, None if it doesn't exist. A link must stay within the folder."""
    path = folder / name
    if not path.exists():
        return None
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise InvalidSecret(f"The secret {name!r} is not a file in the secrets folder.", secret=name)
    try:
        with path.open("rb") as file:
            return file.read(longest + 1).decode()
    except OSError as error:
        raise InvalidSecret(f"The secret {name!r} can't be read: {error.strerror}.", secret=name) from error
    except UnicodeDecodeError:
        raise InvalidSecret(f"The secret {name!r} is not UTF-8 text.", secret=name) from None


def _parsed(name: str, text: str, longest: int, *, is_pem: bool) -> Secret:
    parts = text.strip().split(None, 1)
    if len(text) > longest or len(parts) != 2:
        raise InvalidSecret(
            f"The secret {name!r} must be HOST and the secret, separated by a space or a line break.", secret=name
        )
    binding, value = parts[0], parts[1].strip()
    line = "".join(value.splitlines()) if is_pem else value
    if not line.isprintable() or not line.isascii():
        raise InvalidSecret(f"The secret {name!r} contains a character that is not allowed in a header.", secret=name)
    return Secret(name, binding, value)


def refuse_other_host(secret: Secret, connection: Connection) -> None:
    """Raise InvalidSecret unless the secret is bound to the connection's host, port and scheme."""
    scheme, _, rest = secret.binding.rpartition("://")
    host = rest.rstrip("/").lower()
    with_port = (
        f"[{connection.host}]:{connection.port}" if ":" in connection.host else (f"{connection.host}:{connection.port}")
    )
    if host not in (connection.host, with_port, f"[{connection.host}]"):
        raise InvalidSecret(
            f"The secret {secret.name!r} can't be used for {with_port}, because it is bound to another host.",
            secret=secret.name,
        )
    if connection.scheme == "http" and scheme != "http" and connection.host not in _LOOPBACK:
        raise InvalidSecret(
            f"The secret {secret.name!r} is not sent over plain http. Use https, or bind the secret to"
            f" http://{connection.host}.",
            secret=secret.name,
        )
    if scheme and scheme not in PORTS:
        raise InvalidSecret(f"The secret {secret.name!r} must be bound to an http or https host.", secret=secret.name)


PIECE = 64 * 1024
MAX_ADDRESSES = 4  # tried for a host
#: all errors of the network and the protocol
_FAULTS = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)
#: errors on a connection that the server has closed
_GONE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, urllib3.exceptions.ProtocolError)


@dataclass(frozen=True)
class HttpLimits:
    """Seconds to connect, between two chunks, and for a whole call; and the maximum bytes of a response."""

    connect_seconds: float = 5.0
    read_seconds: float = 15.0
    total_seconds: float = 60.0
    max_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True)
class ServerResponse:
    """A response: status, headers with names in lower case, and the whole body."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self, where: str) -> Any:
        """Parse the body as JSON. Raises RemoteUnavailable, which names `where`."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RemoteUnavailable(f"{where} is not valid JSON: {str(error)[:80]}.", status=self.status) from error


class ResponseTooLarge(RemoteUnavailable):
    """A response with more bytes than the limit."""


class OutgoingClient:
    """A client of one server, over one connection that stays open between calls. Not thread-safe."""

    def __init__(
        self, connection: Connection, *, policy: EgressPolicy | None = None, limits: HttpLimits = HttpLimits()
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
        """Close the connection."""
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
    ) -> ServerResponse:
        """Send a request, and return the response.

        `path` is relative to the connection's and already percent-encoded. Raises AddressRefused and InvalidSecret
        before anything is sent, and RemoteUnavailable if the server redirects or doesn't respond within the limits.
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

    def _again(self, target: str, headers: Mapping[str, str]) -> ServerResponse:
        """Repeat a GET over a new connection, because the server had closed the open one."""
        self.close()
        try:
            return self._exchange("GET", target, headers, None)
        except _GONE:
            raise RemoteUnavailable(f"{self.connection.netloc} closed the connection without a response.") from None

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> ServerResponse:
        complete = False
        try:
            wire = self._connected()
            with _deadline(wire, self.limits.total_seconds) as late:
                try:
                    wire.request(method, target or "/", body=body, headers=headers, preload_content=False)
                    response = self._read(wire.getresponse())
                except _FAULTS as error:
                    if late.is_set():
                        raise self._slow() from error
                    raise
            if late.is_set():  # truncated headers look like complete ones
                raise self._slow()
            complete = True
            return response
        except _GONE:
            raise
        except _FAULTS as error:
            raise RemoteUnavailable(f"{self.connection.netloc}: {self._say(error)}") from error
        finally:
            if not complete:
                self.close()

    def _slow(self) -> RemoteUnavailable:
        return RemoteUnavailable(
            f"{self.connection.netloc} didn't send a complete response within {self.limits.total_seconds:g} s."
        )

    def _read(self, response: BaseHTTPResponse) -> ServerResponse:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if 300 <= response.status < 400 and response.status != 304:
            raise RemoteUnavailable(
                f"{self.connection.netloc} responded with a redirect ({response.status}). Redirects are not"
                " followed. If you trust the target, enter its address.",
                status=response.status,
            )
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise RemoteUnavailable(f"{self.connection.netloc} sent a compressed response that was not requested.")
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
        return ServerResponse(response.status, headers, b"".join(pieces))

    def _too_large(self, status: int) -> ResponseTooLarge:
        most = self.limits.max_bytes
        return ResponseTooLarge(f"{self.connection.netloc} sent more than {most} bytes in one response.", status=status)

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
            wire.timeout = self.limits.read_seconds  # applied to the socket with each request
            self._open = wire
            return wire
        raise RemoteUnavailable(f"{self.connection.netloc} can't be reached: {self._say(failure)}") from failure

    def _wire(self, address: Address) -> HTTPConnection:
        """Make a connection to an allowed address; the certificate is checked against the host name."""
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
        """Give the reason as a sentence, without any header or body."""
        cause = error
        while isinstance(cause, urllib3.exceptions.HTTPError) and cause.__cause__ is not None:
            cause = cause.__cause__ if isinstance(cause.__cause__, Exception) else None
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate isn't valid ({cause.verify_message})."
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason or 'no reason given'})."
        if isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
            return "no response in time."
        if isinstance(cause, OSError) and cause.strerror:
            return f"{cause.strerror}."
        return f"the response is not valid HTTP ({type(cause).__name__})."


@contextlib.contextmanager
def _deadline(wire: HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """Cut the connection when the time is up: a server that trickles bytes stays within every other limit.

    Takes the socket at the start, because the connection drops it when a server announces that it will close.
    """
    late, sock = threading.Event(), wire.sock

    def cut() -> None:
        late.set()
        if isinstance(sock, socket.socket):
            with contextlib.suppress(OSError):  # it is closed already
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
