"""Sessions of a Spark Connect server, and the control of a scan that runs in one.

Sessions are opened with bounded retries, and can be joined and interrupted from another process. A control has the
scan's deadline, its tag, and the progress that Spark reports.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

from registry.errors import InvalidSource, ScanInterrupted, SparkUnavailable

DEFAULT_PORT = 15002
USER_ID = "schemadesk"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
PROBE_SECONDS = 3.0
CLOSED = "INVALID_HANDLE.SESSION_CLOSED"
_GRPC_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class RemoteAddress:
    """The parts of a Spark Connect address; the token is never shown."""

    host: str
    port: int
    parameters: tuple[tuple[str, str], ...]

    @property
    def shown(self) -> str:
        """Return the address without its parameters, for messages."""
        return f"sc://{self.host}:{self.port}"

    def url(self, **overrides: str) -> str:
        """Return the address for Spark's client.

        The client accepts a token without TLS only for the host name `localhost`, so loopback addresses are written
        that way.
        """
        parameters = dict(self.parameters) | overrides
        plain_token = "token" in parameters and parameters.get("use_ssl", "").lower() != "true"
        host = "localhost" if plain_token and self.host in LOOPBACK else self.host
        tail = ";".join(f"{name}={value}" for name, value in parameters.items())
        return f"sc://{host}:{self.port}/;{tail}" if tail else f"sc://{host}:{self.port}"


def parse_remote(remote: str) -> RemoteAddress:
    """Parse `sc://host[:port][/;name=value;…]`; raises InvalidSource for anything else."""
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
    """Raise SparkUnavailable if nothing listens at the address: Spark's own client would retry for ten minutes."""
    try:
        socket.create_connection((address.host, address.port), timeout=seconds).close()
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise SparkUnavailable(
            f"no Spark Connect server answers at {address.shown} ({reason}); start it, or correct SPARK_REMOTE"
        ) from error


def probe_remote(remote: str, seconds: float = PROBE_SECONDS) -> None:
    """Raise SparkUnavailable if nothing listens at `remote`, InvalidSource if it isn't a Spark address."""
    probe(parse_remote(remote), seconds)


def open_session(remote: str, *, session_id: str | None = None, user_id: str = USER_ID) -> SparkSession:
    """Open a new session at `remote`, or join `session_id` (a UUID); raises SparkUnavailable.

    If the server closed the session with that id, as after an hour without use, its successor is opened: the one whose
    id is derived from that id.
    """
    address = parse_remote(remote)
    probe(address)
    identity = {"session_id": session_id or str(uuid.uuid4()), "user_id": user_id}
    session = SparkSession(connection=DefaultChannelBuilder(address.url(**identity)))
    session.client.set_retry_policies([DefaultPolicy(max_retries=3, initial_backoff=200, max_backoff=2000)])
    try:
        _touch(session)
    except PySparkException as error:
        session.client.close()
        if session_id is not None and CLOSED in str(error):
            return open_session(remote, session_id=str(uuid.uuid5(uuid.UUID(session_id), "next")), user_id=user_id)
        raise SparkUnavailable(
            f"the Spark Connect server at {address.shown} refused the session: {first_line(error)}; "
            "check its token and that its version is the client's"
        ) from error
    return session


_kept: dict[tuple[str, str | None], SparkSession] = {}  # by server and the id asked for: not in use


@contextmanager
def session_for(remote: str, session_id: str | None, user_id: str = USER_ID) -> Iterator[SparkSession]:
    """Give the session with this id, and keep it for its next use here unless the block raises; raises SparkUnavailable.

    A new session compiles every query again and starts its own Python processes, which the server never ends. Without
    an id, the session is for this use only.
    """
    session = _kept.pop((remote, session_id), None)
    if session is None or not _answers(session):
        session = open_session(remote, session_id=session_id, user_id=user_id)
    try:
        yield session
    except BaseException:
        close_session(session)
        raise
    if session_id is None:
        close_session(session)
    else:
        _kept[remote, session_id] = session


_idle: deque[str] = deque()  # ids of kept sessions that no replay uses


@contextmanager
def kept_session(remote: str) -> Iterator[SparkSession]:
    """Give a session that only this thread uses, and keep it for the next use here unless the block raises."""
    try:
        session_id = _idle.pop()
    except IndexError:
        session_id = str(uuid.uuid4())
    with session_for(remote, session_id) as session:
        yield session
    _idle.append(session_id)


def _answers(session: SparkSession) -> bool:
    """Return whether a session still exists: its server may have been restarted."""
    try:
        _touch(session)
    except (PySparkException, ValueError):  # ValueError: it is closed
        session.client.close()
        return False
    return True


def _touch(session: SparkSession) -> None:
    """Make one request that needs the session on the server; raises PySparkException if it was closed or refused."""
    session.conf.get("spark.sql.session.timeZone")


def close_session(session: SparkSession) -> None:
    """Release the session on the server; a session that is already gone (a restarted server) counts as released."""
    if session.client.is_closed:
        return
    with suppress(PySparkException):
        session.client.release_session()
    session.client.close()


def interrupt(remote: str, session_id: str, user_id: str, tag: str) -> list[str]:
    """End what runs under `tag` in another process's session; return the ids of the ended operations.

    Raises SparkUnavailable if the server doesn't answer or no longer knows the session.
    """
    session = open_session(remote, session_id=session_id, user_id=user_id)
    try:
        return list(session.interruptTag(tag))
    finally:
        session.client.close()


def first_line(error: BaseException, limit: int = 300) -> str:
    """Return the first line of an error, truncated to `limit` characters; for a gRPC error, of its details."""
    text = str(error)
    details = _GRPC_DETAILS.search(text)
    if details is not None:
        text = details[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:limit]


logger = logging.getLogger(__name__)

INTERRUPT_EVERY = 0.5  # seconds: an interrupt between two operations ends nothing, so it is repeated
# Spark takes one interrupt per operation. While a cold server still compiles the query, it takes effect late (11 s were
# measured) or is lost, and a second one is ignored: then the session is given up, so that the caller continues.
GIVE_UP_AFTER = 20.0  # seconds
CANCELED = "OPERATION_CANCELED"
LOST = ("StatusCode.UNAVAILABLE", "INVALID_HANDLE.SESSION")
OnProgress = Callable[[int, int, str], None]
T = TypeVar("T")


class Control(ProgressHandler):
    """Runs Spark actions of one scan under a tag, interrupts them at the deadline, and passes on their progress.

    Use as a context manager around the actions. `seconds` counts from entering it. An exception in `on_progress` ends
    the scan: the running action is interrupted, and `run` raises the exception.
    """

    def __init__(
        self, session: SparkSession, *, seconds: float, tag: str | None = None, on_progress: OnProgress | None = None
    ) -> None:
        self._session = session
        self._seconds = seconds
        self._tag = tag or f"scan-{uuid.uuid4()}"
        self._on_progress = on_progress
        self._phase = ""
        self._refused: Exception | None = None
        self._finished = threading.Event()
        self._action_over = threading.Event()  # of the last action
        self._action_over.set()
        self._ending = threading.Lock()  # held while an action is interrupted
        self._ends = time.monotonic() + seconds

    def __enter__(self) -> Self:
        self._ends = time.monotonic() + self._seconds
        self._session.addTag(self._tag)
        self._session.registerProgressHandler(self)
        self._start_watch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finished.set()
        self._session.removeProgressHandler(self)
        self._session.removeTag(self._tag)

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline; negative after it."""
        return self._ends - time.monotonic()

    def allow(self, seconds: float) -> None:
        """Allow at least this many seconds from now, even after the deadline: for the short steps that end a scan."""
        if self.seconds_left < seconds:
            self._end_at(time.monotonic() + seconds)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Allow what runs inside this many seconds, then restore the deadline."""
        ends = self._ends
        self._end_at(time.monotonic() + seconds)
        try:
            yield
        finally:
            self._end_at(ends)

    def _end_at(self, ends: float) -> None:
        with self._ending:
            self._ends = ends
        self._start_watch()

    def run(self, phase: str, action: Callable[[], T]) -> T:
        """Run one Spark action.

        Raises ScanInterrupted at the deadline or if cancelled, SparkUnavailable if the server is lost, what
        `on_progress` raised, and Spark's own PySparkException for anything else.
        """
        self._phase = phase
        with self._ending:  # a pending interrupt of the last action mustn't end this one
            self._raise_if_ended()
        over = self._action_over = threading.Event()
        try:
            self._notify(0, 0)
            self._raise_if_ended()
            result = action()
        except (PySparkException, ValueError) as error:  # ValueError: the session was given up
            self._raise_if_ended(error)
            text = str(error)
            if CANCELED in text:
                raise ScanInterrupted(
                    f"the scan was cancelled while {phase}", reason="cancelled", phase=phase
                ) from error
            if any(mark in text for mark in LOST):
                raise SparkUnavailable(
                    f"the Spark Connect server was lost while {phase}: {first_line(error)}; the scan can be repeated"
                ) from error
            raise
        finally:
            over.set()
        self._raise_if_ended()
        return result

    def _raise_if_ended(self, cause: BaseException | None = None) -> None:
        if self._refused is not None:
            raise self._refused
        if self.seconds_left <= 0:
            raise ScanInterrupted(
                f"the scan reached its deadline of {self._seconds:g} s while {self._phase or 'starting'}; "
                "allow more time, or read less at once",
                reason="deadline",
                phase=self._phase,
                deadline_seconds=self._seconds,
            ) from cause

    def __call__(
        self, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        """Handle Spark's progress: called with exactly these names; an exception here would fail the query."""
        counted = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
        if counted:
            self._notify(sum(completed for completed, _ in counted), sum(total for _, total in counted))

    def _notify(self, done: int, total: int) -> None:
        if self._on_progress is None or self._refused is not None:
            return
        try:
            self._on_progress(done, total, self._phase)
        except Exception as error:  # noqa: BLE001  any exception of the caller's code ends the scan and is re-raised
            self._refused = error
            threading.Thread(target=self._end, name=f"end of {self._tag}", daemon=True).start()

    def _start_watch(self) -> None:
        threading.Thread(target=self._watch, args=[self._ends], name=f"deadline of {self._tag}", daemon=True).start()

    def _watch(self, ends: float) -> None:
        if self._finished.wait(max(0.0, ends - time.monotonic())) or ends != self._ends:
            return  # finished, or another thread watches the new deadline
        self._end(ends)

    def _end(self, ends: float | None = None) -> None:
        """Interrupt the running action until it ends; give up the session if it doesn't.

        An action under another deadline than `ends` is left alone.
        """
        give_up, over = time.monotonic() + GIVE_UP_AFTER, self._action_over
        while not (over.is_set() or self._finished.is_set()):
            if time.monotonic() >= give_up:
                logger.warning("%s doesn't end after its interrupt; its session is given up", self._tag)
                close_session(self._session)
                return
            with self._ending:
                if over.is_set() or ends not in (None, self._ends):
                    return
                self._interrupt()
            over.wait(INTERRUPT_EVERY)

    def _interrupt(self) -> None:
        # If the server is gone or the session closed, the action itself fails with that error.
        with suppress(PySparkException, ValueError):
            self._session.interruptTag(self._tag)
