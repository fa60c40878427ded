"""A streaming listener that reports to Schemadesk how queries run. Needs pyspark and the standard library only."""

from __future__ import annotations

import atexit
import json
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pyspark.sql.streaming import StreamingQueryListener

logger = logging.getLogger("schemadesk_spark")

PATH: Final = "/api/v1/query-progress"
BATCH: Final = 100  # events in a request
OPERATORS: Final = 50  # of an event
HEARTBEAT: Final = 60.0  # seconds until a running query without a batch is reported as running
LONGEST_WAIT: Final = 300.0  # seconds between attempts while Schemadesk is away
LAST_WAIT: Final = 3.0  # seconds for the last events when the program ends
_UNUSABLE: Final = frozenset({400, 413, 422})  # answers to a request that would fail again
_ERROR_CLASS: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
_EXCEPTION: Final = re.compile(r"[\w.$]+(?=:|$)")

Event = dict[str, Any]


class Listener(StreamingQueryListener):
    """Reports starts, batches and ends of streaming queries, in the background; it never blocks or fails a query.

    `token` is one of Schemadesk with the scope `report`. At most `limit` events wait while Schemadesk is away: then the
    oldest are dropped and counted. `timeout` is for a request, `interval` the time between two, both in seconds.
    """

    def __init__(
        self, *, url: str, token: str, limit: int = 5_000, timeout: float = 10.0, interval: float = 5.0
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not token.strip() or limit < 1:
            raise ValueError("Listener needs Schemadesk's address (http:// or https://), a token, and a limit above 0.")
        self._queue = _Queue(limit)
        self._sender = _Sender(self._queue, _Client(url.rstrip("/") + PATH, token.strip(), timeout), interval)
        atexit.register(self.close)

    def close(self, wait: float = LAST_WAIT) -> None:
        """Send what is left, for at most `wait` seconds. A program that ends calls it by itself."""
        self._sender.stop(wait)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Report the start."""
        self._report(lambda: _event("started", event, name=(event.name or "")[:200]))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Report a batch."""
        self._report(lambda: _batch(event.progress))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Report the end, with the class of the error if there was one; its message may contain data."""
        self._report(lambda: _event("ended", event, error=_error_class(event)))

    def _report(self, make: Callable[[], Event]) -> None:
        try:
            self._queue.add(make())
        except Exception as error:  # noqa: BLE001 - the query matters more than its report
            logger.warning("an event of a streaming query can't be reported: %s", type(error).__name__)


def _event(kind: str, source: Any, **more: Any) -> Event:
    return {"kind": kind, "query": str(source.id), "run": str(source.runId), **more}


def _batch(progress: Any) -> Event:
    return _event(
        "batch",
        progress,
        batch=progress.batchId,
        rows=max(0, progress.numInputRows),
        duration_ms=max(0, progress.batchDuration),
        watermark=(progress.eventTime or {}).get("watermark"),
        lag=_lag(progress.sources),
        operators=[_operator(operator) for operator in progress.stateOperators[:OPERATORS]],
    )


def _operator(operator: Any) -> Event:
    return {
        "name": operator.operatorName[:100],
        "rows": max(0, operator.numRowsTotal),
        "bytes": max(0, operator.memoryUsedBytes),
        "partitions": max(0, operator.numShufflePartitions),
    }


def _lag(sources: Iterable[Any]) -> int | None:
    """Return how many messages of Kafka are not read yet, None if no source says it."""
    behind = []
    for source in sources:
        latest, end = _offsets(source.latestOffset), _offsets(source.endOffset)
        behind += [max(0, offset - end.get(partition, offset)) for partition, offset in latest.items()]
    return sum(behind) if behind else None


def _offsets(text: Any) -> dict[tuple[str, str], int]:
    """Return Kafka's offsets by topic and partition; none for an offset of another source.

    PySpark gives JSON, and before 4.2 with Spark Connect a dictionary's text: topics have no quotes in their names.
    """
    try:
        topics = json.loads(text.replace("'", '"')) if isinstance(text, str) else text
    except ValueError:
        return {}
    if not isinstance(topics, Mapping):
        return {}
    return {
        (topic, partition): offset
        for topic, partitions in topics.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }


def _error_class(event: Any) -> str:
    """Return Spark's error class, the innermost that is known, else the exception's class; "" for no error."""
    if not event.exception:
        return ""
    known = [name for name in _ERROR_CLASS.findall(event.exception[:20_000]) if name != "STREAM_FAILED"]
    named = _EXCEPTION.match(event.exception)
    return str((known or [event.errorClassOnException or (named[0] if named else "unknown")])[0])[:200]


class _Queue:
    """The events that wait, a bounded number, and the runs that haven't ended."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Event]] = deque()
        self._dropped: dict[str, int] = {}
        self._running: dict[str, tuple[float, Event]] = {}

    def add(self, event: Event) -> None:
        """Add an event; the oldest one gives way if there is no room."""
        now = time.monotonic()
        with self._lock:
            if len(self._waiting) >= self._limit:
                self._drop(self._waiting.popleft()[1])
            self._waiting.append((now, event))
            if event["kind"] == "ended":
                self._running.pop(event["run"], None)
            else:
                self._running[event["run"]] = (now, {**_of(event), "kind": "running"})

    def take(self) -> list[tuple[float, Event]]:
        """Take the oldest events; for queries that had none for a while, one that says that they run."""
        now = time.monotonic()
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            for run, (at, event) in list(self._running.items()):
                if len(taken) < BATCH and now - at >= HEARTBEAT:
                    self._running[run] = (now, event)
                    taken.append((now, event))
            return taken

    def drop(self, events: Iterable[tuple[float, Event]]) -> None:
        """Count events that can't be sent."""
        with self._lock:
            for _, event in events:
                self._drop(event)

    def body(self, events: Iterable[tuple[float, Event]]) -> bytes:
        """Return a request with events. Their age is by a clock that nobody sets."""
        now = time.monotonic()
        rows = [
            {**event, "age_ms": int(1000 * (now - at)), "dropped": self._dropped.get(event["run"], 0)}
            for at, event in events
        ]
        return json.dumps({"events": rows}).encode()

    def _drop(self, event: Event) -> None:
        self._dropped[event["run"]] = self._dropped.get(event["run"], 0) + 1

    def __len__(self) -> int:
        return len(self._waiting)


def _of(event: Event) -> Event:
    return {"query": event["query"], "run": event["run"]}


class _NoRedirect(HTTPRedirectHandler):
    """Follows nothing: another host must not get the token."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


class _Client:
    """Sends requests to Schemadesk. `status` of an attempt is 0 if there was no answer."""

    def __init__(self, url: str, token: str, timeout: float) -> None:
        self._url, self._timeout = url, timeout
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._opener = build_opener(_NoRedirect)

    def send(self, body: bytes, timeout: float | None = None) -> tuple[int, Event]:
        """Send a request; return the answer's status and values."""
        request = Request(self._url, body, self._headers, method="POST")  # noqa: S310 - the listener checks the scheme
        try:
            with self._opener.open(request, timeout=timeout or self._timeout) as response:
                answer = json.loads(response.read(1_000_000))
                return response.status, answer if isinstance(answer, dict) else {}
        except HTTPError as error:
            error.close()
            return error.code, {}
        except (OSError, HTTPException, ValueError):
            return 0, {}


class _Sender:
    """A thread that empties the queue and waits longer after each failure."""

    def __init__(self, queue: _Queue, client: _Client, interval: float) -> None:
        self._queue, self._client, self._interval = queue, client, interval
        self._stopping = threading.Event()
        self._pending: list[tuple[float, Event]] = []
        self._status = 200
        self._unknown: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="schemadesk listener", daemon=True)
        self._thread.start()

    def stop(self, wait: float) -> None:
        """Let the thread send what is left, for at most `wait` seconds."""
        self._stopping.set()
        self._thread.join(wait)

    def _run(self) -> None:
        wait = self._interval
        while not self._stopping.wait(wait):
            wait = self._interval if self._send_all() else min(2 * wait, LONGEST_WAIT)
        self._send_all(LAST_WAIT)

    def _send_all(self, timeout: float | None = None) -> bool:
        """Send what waits; return False if Schemadesk doesn't take it now."""
        while True:
            self._pending = self._pending or self._queue.take()
            if not self._pending:
                return True
            status, answer = self._client.send(self._queue.body(self._pending), timeout)
            self._note(status, answer)
            if status in _UNUSABLE:
                self._queue.drop(self._pending)
            elif status != 200:
                return False
            self._pending = []

    def _note(self, status: int, answer: Event) -> None:
        """Log what changed, without the token and without events."""
        if status != self._status:
            self._status = status
            if status == 200:
                logger.info("Schemadesk takes the events of streaming queries again")
            else:
                logger.warning(
                    "Schemadesk doesn't take the events of streaming queries: %s; %s events wait",
                    f"status {status}" if status else "no answer",
                    len(self._queue),
                )
        unknown = set(answer.get("unknown", ())) - self._unknown
        self._unknown |= unknown
        for query in sorted(unknown):
            logger.warning("Schemadesk doesn't know query %s: add its checkpoint as a source and scan it", query)
