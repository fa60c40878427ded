"""The listener of Spark jobs: it reports what happened, and whatever Schemadesk does, the query goes on."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from registry.api.product.query_progress import ProgressReportSerializer
from registry.drift.models import Source
from registry.streams.models import StreamQuery
from registry.streams.progress_history import progress_of
from registry.subjects.models import Registry
from schemadesk_spark import Listener
from schemadesk_spark.listener import BATCH
from tests.toolchains import require_tools
from tests.waiting import until

pytestmark = pytest.mark.requirement("DBX-7")
ROOT = Path(__file__).parents[2]
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
    connect = {"latestOffset": "{'clicks': {'0': 3}}", "endOffset": "{'clicks': {'0': 1}}"}
    others = ({"latestOffset": None, "endOffset": "3"}, {"latestOffset": "{", "endOffset": {"a": 1}}, kafka, connect)
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
    assert (started["name"], first["lag"], second["lag"], second["watermark"]) == ("totals", 12, None, None)
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


#: a job whose query runs, is restarted and fails at its third start; a second listener has a receiver that hangs
JOB = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
import schemadesk_spark
folder, url, token, hanging = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "2").getOrCreate())
rows = spark.readStream.schema("k STRING, t TIMESTAMP").json(f"{folder}/in").withWatermark("t", "1 minute")

def run(number, write=lambda frame, batch: frame.count()):
    Path(f"{folder}/in/{number}.json").write_text(
        chr(10).join('{"k": "%s", "t": "2026-11-01 12:0%s:00"}' % (k, number) for k in range(7)))
    totals = rows.groupBy("k", F.window("t", "1 minute")).count()
    query = (totals.writeStream.queryName("totals").outputMode("update").foreachBatch(write)
             .option("checkpointLocation", f"{folder}/checkpoint").start())
    query.processAllAvailable()
    query.stop()
    return query.id

def fail(frame, batch):
    raise ValueError("of customer 4711")

print(run(0), flush=True)
sys.stdin.readline()
both = [schemadesk_spark.Listener(url=url, token=token, interval=0.1),
        schemadesk_spark.Listener(url=hanging, token=token, interval=0.1, limit=1)]
for listener in both:
    spark.streams.addListener(listener)
run(1)
run(2)
try:
    run(3, fail)
except Exception as error:
    print(type(error).__name__, flush=True)
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
both[0].close(60)
both[1].close(0)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_of_spark_is_seen_with_its_restart_and_its_error(
    transactional_db: None, registries: None, live_server: Any, receiver: Receiver, token: Callable[[str], str],
    look: Callable[[str], Client], tmp_path: Path,
) -> None:  # fmt: skip
    require_tools("a query of Spark", ("java",))
    (tmp_path / "in").mkdir()
    receiver.answers = [None] * 100
    command = [sys.executable, "-c", JOB, str(tmp_path), live_server.url, token("reader"), receiver.url]
    errors = tmp_path / "errors"
    with errors.open("wb") as log:
        job = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert job.stdout
            number = _known_query(job.stdout.readline().strip(), tmp_path)
            rest, _ = job.communicate("go\n", timeout=600)
        finally:
            job.kill()
    assert job.returncode == 0, errors.read_text()[-2000:]
    assert rest.split() == ["StreamingQueryException"], "the query ends as it would without listeners"
    seen = progress_of(number, "hour")
    assert seen.status == "failed", errors.read_text()[-2000:]
    assert [(run.name, run.is_restart, bool(run.error)) for run in seen.runs] == [
        ("totals", True, True), ("totals", True, False), ("totals", False, False),
    ]  # fmt: skip
    assert "4711" not in seen.runs[0].error
    assert sum(point.rows for point in seen.points) == 14
    newest = seen.points[-1]
    (operator,) = newest.operators
    assert (operator.name, operator.partitions) == ("stateStoreSave", 2)
    assert operator.rows >= 7
    assert operator.bytes > 0
    assert newest.watermark_delay_ms
    page = look("reader").get(f"/ui/queries/{number}?range=hour").content.decode()
    for words in ("Rows a second", "State rows", "Watermark delay", "restarted", seen.runs[0].error):
        assert words in page, words


def _known_query(query_id: str, folder: Path) -> int:
    registry = Registry.objects.get(name="dev")
    source = Source.objects.create(registry=registry, kind="state_store", name=str(folder), created_by="tests")
    query = StreamQuery.objects.create(
        source=source, registry=registry, path=str(folder / "checkpoint"), query_id=query_id, encoding="unsaferow",
        allowed_value_schemas=16, allowed_schema_files=128, scanned_at=timezone.now(),
    )  # fmt: skip
    return query.pk
