"""Sessions of a Spark Connect server: opened with bounded retries, joined and interrupted from another process."""

from __future__ import annotations

import re
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from registry.errors import InvalidSource, SparkUnavailable

DEFAULT_PORT = 15002
USER_ID = "schemadesk"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
PROBE_SECONDS = 3.0
_GRPC_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class RemoteAddress:
    """A Spark Connect address in its parts; the token is never shown."""

    host: str
    port: int
    parameters: tuple[tuple[str, str], ...]

    @property
    def shown(self) -> str:
        """The address without its parameters, for messages."""
        return f"sc://{self.host}:{self.port}"

    def url(self, **overrides: str) -> str:
        """The address as Spark's client takes it.

        A token without TLS is accepted by the client for the host name `localhost` alone, so loopback addresses
        are written that way.
        """
        parameters = dict(self.parameters) | overrides
        plain_token = "token" in parameters and parameters.get("use_ssl", "").lower() != "true"
        host = "localhost" if plain_token and self.host in LOOPBACK else self.host
        tail = ";".join(f"{name}={value}" for name, value in parameters.items())
        return f"sc://{host}:{self.port}/;{tail}" if tail else f"sc://{host}:{self.port}"


def parse_remote(remote: str) -> RemoteAddress:
    """Take `sc://host[:port][/;name=value;…]` apart; raises InvalidSource for anything else."""
    rest = remote.removeprefix("sc://")
    if rest == remote:
        raise InvalidSource("a Spark address begins with sc://, such as sc://localhost:15002")
    endpoint, _, tail = rest.partition("/")
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", "")
    if not host or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise InvalidSource("a Spark address is sc://host:port with a port from 1 to 65535")
    parameters = []
    for part in filter(None, tail.lstrip(";").split(";")):
        name, separator, value = part.partition("=")
        if not separator or not name:
            raise InvalidSource("the parameters of a Spark address are name=value, separated by semicolons")
        parameters.append((name, value))
    return RemoteAddress(host.strip("[]"), int(port) if port else DEFAULT_PORT, tuple(parameters))


def probe(address: RemoteAddress, seconds: float = PROBE_SECONDS) -> None:
    """Raise SparkUnavailable when nothing listens at the address: Spark's own client would retry for ten minutes."""
    try:
        socket.create_connection((address.host, address.port), timeout=seconds).close()
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise SparkUnavailable(
            f"no Spark Connect server answers at {address.shown} ({reason}); start it, or correct SPARK_REMOTE"
        ) from error


def probe_remote(remote: str, seconds: float = PROBE_SECONDS) -> None:
    """Raise SparkUnavailable when nothing listens at `remote`, InvalidSource when it is no Spark address."""
    probe(parse_remote(remote), seconds)


def open_session(remote: str, *, session_id: str | None = None, user_id: str = USER_ID) -> SparkSession:
    """A session of its own at `remote`, or the one named by `session_id` (a UUID); raises SparkUnavailable."""
    address = parse_remote(remote)
    probe(address)
    identity = {"session_id": session_id or str(uuid.uuid4()), "user_id": user_id}
    session = SparkSession(connection=DefaultChannelBuilder(address.url(**identity)))
    session.client.set_retry_policies([DefaultPolicy(max_retries=3, initial_backoff=200, max_backoff=2000)])
    try:
        _ = session.version
    except PySparkException as error:
        session.client.close()
        raise SparkUnavailable(
            f"the Spark Connect server at {address.shown} refused the session: {first_line(error)}; "
            "check its token and that its version is the client's"
        ) from error
    return session


def close_session(session: SparkSession) -> None:
    """Release the session on the server; one that is gone already (a restarted server) is as good as released."""
    if session.client.is_closed:
        return
    with suppress(PySparkException):
        session.client.release_session()
    session.client.close()


def interrupt(remote: str, session_id: str, user_id: str, tag: str) -> list[str]:
    """End what runs under `tag` in another process's session; returns the ids of the ended operations.

    Raises SparkUnavailable when the server doesn't answer or no longer knows the session.
    """
    session = open_session(remote, session_id=session_id, user_id=user_id)
    try:
        return list(session.interruptTag(tag))
    finally:
        session.client.close()


def first_line(error: BaseException, limit: int = 300) -> str:
    """What an error says, in one line cut to `limit` characters; of a gRPC error its details."""
    text = str(error)
    details = _GRPC_DETAILS.search(text)
    if details is not None:
        text = details[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:limit]
