"""The listener of Spark jobs: it reports what happened, and whatever Schemadesk does, the query goes on."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from registry.api.product.query_progress import ProgressReportSerializer
from schemadesk_spark import Listener
from schemadesk_spark.listener import BATCH
from tests.waiting import until

pytestmark = pytest.mark.requirement("DBX-7")
TOKEN = "sd_a-very-secret-token"
QUERY, RUN = uuid.UUID(int=1), uuid.UUID(int=2)
IDS = {"id": QUERY, "runId": RUN}
OPERATOR = SimpleNamespace(operatorName="dedupe", numRowsTotal=4, memoryUsedBytes=90, numShufflePartitions=2)


class Receiver(ThreadingHTTPServer):
    """Takes reports; `answers` are the statuses of the next ones, 200 afterwards. None: it doesn't answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int | None] = []
        self.requests: list[dict[str, Any]] = []
        self.released = threading.Event()
        self.tokens: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for body in self.requests for event in body["events"]]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.tokens.add(self.headers["Authorization"])
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status is None:
            self.server.released.wait(60)
            return
        if status == 200:
            self.server.requests.append(body)
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b'{"accepted": 1, "unknown": []}')

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


@pytest.fixture
def listen(receiver: Receiver) -> Iterator[Callable[..., Listener]]:
    made: list[Listener] = []

    def make(**more: Any) -> Listener:
        made.append(Listener(**{"url": receiver.url, "token": TOKEN, "interval": 0.01, **more}))
        return made[-1]

    yield make
    receiver.released.set()
    for listener in made:
        listener.close()


def progress(number: int, **more: Any) -> Any:
    values = {
        "batchId": number, "numInputRows": 10, "batchDuration": 300, "eventTime": {"watermark": "2026-11-01T00:00:00.000Z"},
        "stateOperators": [OPERATOR], "sources": [], "name": None, **IDS, **more,
    }  # fmt: skip
    return SimpleNamespace(progress=SimpleNamespace(**values))


def test_a_report_is_one_that_schemadesk_takes(receiver: Receiver, listen: Callable[..., Listener]) -> None:
    kafka = {"latestOffset": '{"orders":{"0":50,"1":7}}', "endOffset": '{"orders":{"0":40,"1":7}}'}
    others = ({"latestOffset": None, "endOffset": "3"}, {"latestOffset": "{", "endOffset": {"a": 1}}, kafka)
    listener = listen()
    listener.onQueryStarted(SimpleNamespace(name="totals", **IDS))
    listener.onQueryProgress(progress(0, sources=[SimpleNamespace(**source) for source in others]))
    listener.onQueryProgress(progress(1, eventTime={}))
    error = "org.apache.spark.SparkException: [STREAM_FAILED] Query [id = 1] ... [STATE_STORE_X.Y] secret@customer"
    listener.onQueryTerminated(SimpleNamespace(exception=error, errorClassOnException="STREAM_FAILED", **IDS))
    until(lambda: len(receiver.events) == 4)
    report = ProgressReportSerializer(data={"events": receiver.events})
    assert report.is_valid(), report.errors
    started, first, second, ended = report.validated_data["events"]
    assert [event["kind"] for event in receiver.events] == ["started", "batch", "batch", "ended"]
    assert (started["name"], first["lag"], second["lag"], second["watermark"]) == ("totals", 10, None, None)
    assert first["operators"] == [{"name": "dedupe", "rows": 4, "bytes": 90, "partitions": 2}]
    assert ended["error"] == "STATE_STORE_X.Y"
    assert "customer" not in json.dumps(receiver.events)
    assert receiver.tokens == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("text", "named", "expected"),
    [
        (None, None, ""),
        ("java.lang.IllegalStateException: a secret", None, "java.lang.IllegalStateException"),
        ("what is this?", None, "unknown"),
        ("[STREAM_FAILED] x", "STREAM_FAILED", "STREAM_FAILED"),
    ],
)
def test_an_error_is_named_without_its_text(
    receiver: Receiver, listen: Callable[..., Listener], text: str | None, named: str | None, expected: str
) -> None:
    listen().onQueryTerminated(SimpleNamespace(exception=text, errorClassOnException=named, **IDS))
    until(lambda: bool(receiver.events))
    assert receiver.events[0]["error"] == expected


def test_a_receiver_that_hangs_blocks_nothing_and_the_oldest_give_way(
    receiver: Receiver, listen: Callable[..., Listener]
) -> None:
    receiver.answers = [None]
    listener = listen(limit=200, timeout=60.0)
    listener.onQueryProgress(progress(0))
    until(lambda: not receiver.answers)
    done = threading.Thread(
        target=lambda: [listener.onQueryProgress(progress(n)) for n in range(1, 1_001)], daemon=True
    )
    done.start()
    done.join(30)
    assert not done.is_alive(), "no call waits for the receiver"
    receiver.released.set()
    until(lambda: len(receiver.events) >= 201)
    assert [event["batch"] for event in receiver.events] == [0, *range(801, 1_001)]
    assert receiver.events[-1]["dropped"] == 800
    assert max(len(body["events"]) for body in receiver.requests) <= BATCH


def test_it_tries_again_and_leaves_what_can_never_be_taken(
    receiver: Receiver, listen: Callable[..., Listener], caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [503, 401, 302, 429, 422]
    listener = listen()
    with caplog.at_level(logging.INFO, "schemadesk_spark"):
        listener.onQueryProgress(progress(0))
        until(lambda: not receiver.answers)
        listener.onQueryProgress(progress(1))
        until(lambda: bool(receiver.events))
        until(lambda: "again" in caplog.text)
    (event,) = receiver.events
    assert (event["batch"], event["dropped"]) == (1, 1)
    assert [record.args[0] for record in caplog.records if record.args] == [
        f"status {status}" for status in (503, 401, 302, 429, 422)
    ]
    assert TOKEN not in caplog.text


def test_what_is_left_is_sent_at_the_end_and_an_odd_event_harms_nothing(
    receiver: Receiver, listen: Callable[..., Listener], caplog: pytest.LogCaptureFixture
) -> None:
    listener = listen(interval=600.0)
    listener.onQueryProgress(SimpleNamespace(progress=None))
    assert "AttributeError" in caplog.text
    listener.onQueryProgress(progress(5))
    listener.close()
    assert [event["batch"] for event in receiver.events] == [5]


@pytest.mark.parametrize("values", [{"url": "ftp://x"}, {"token": " "}, {"limit": 0}])
def test_wrong_arguments_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Listener needs"):
        Listener(**{"url": "http://127.0.0.1", "token": TOKEN, **values})
