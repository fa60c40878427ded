"""The endurance run: what it sends, what it says of what came, and a short one for real with all its faults."""

from __future__ import annotations

import json
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from benchmarks import endurance, endurance_workload
from benchmarks.bench import Command as Bench
from benchmarks.endurance import Trouble, Verdict, growth_of
from benchmarks.endurance_load import GROUP, IN_TURN, OF_A_GROUP, group_of
from benchmarks.endurance_workload import FAULTS, Error, Kind, RunRecord, Second, lines, mixed, stream
from benchmarks.registry_client import Target
from benchmarks.registry_load import SERIAL
from tests.amounts import whole_benchmark

pytestmark = pytest.mark.requirement("CARD-4")

NUMBERED = f"POST /new/{GROUP.decode()}/{SERIAL.decode()} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
READING = "GET /read HTTP/1.1\r\nHost: x\r\n\r\n"


class Fake(ThreadingHTTPServer):
    """Answers with an id; ends in the middle of a run where it is told to."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, most: int = 10**9, status: int = 200, seconds: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.left, self.status, self.seconds = most, status, seconds
        self.lock = threading.Lock()
        self.seen: list[str] = []
        self.waits = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away aren't of interest."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Fake

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.server.lock:
            self.server.seen.append(self.path)
            self.server.left -= 1
            is_dead = self.server.left < 0
        if is_dead:
            self.server.socket.close()  # accepts nobody any more
            self.close_connection = True
            return
        self.server.waits.wait(self.server.seconds)
        body = json.dumps({"id": len(self.server.seen)}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def fakes() -> Iterator[list[Fake]]:
    servers: list[Fake] = []
    yield servers
    for server in servers:
        server.shutdown()
        server.server_close()


def started(fakes: list[Fake], **options: Any) -> Fake:
    server = Fake(**options)
    fakes.append(server)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def target(fake: Fake) -> Target:
    return Target("fake", f"http://127.0.0.1:{fake.server_address[1]}")


def told(reports: list[dict[str, Any]], name: str, what: str) -> list[Any]:
    return [entry for line in reports for entry in line["streams"][name][what]]


# -- the load generator -------------------------------------------------------------------------------------------------


def test_each_number_is_sent_once_and_groups_are_filled_in_turn(fakes: list[Fake]) -> None:
    fake = started(fakes)
    requests = [(0, READING), (1, NUMBERED)]
    reports = list(lines([target(fake)], [stream("mix", requests, rate=60, lanes=3)], seconds=2, serial=1_000))
    sent = [path for path in fake.seen if path.startswith("/new/")]
    registered = told(reports, "mix", "registered")
    assert len(sent) == len(set(sent)) == len(registered) > 5
    numbers = sorted(int(path.rpartition("/")[2]) for path in sent)
    assert numbers == list(range(1_001, 1_001 + len(numbers))) == sorted(serial for serial, _ in registered)
    assert all(int(path.split("/")[2]) == group_of(int(path.split("/")[3])) for path in sent)
    assert reports[-1]["serial"] == numbers[-1]
    kinds = Counter(kind for kind, _ in told(reports, "mix", "taken"))
    assert abs(kinds[0] - kinds[1]) <= 1
    assert 60 <= sum(kinds.values()) <= 125, "no more than were due"


def test_groups_have_as_many_each() -> None:
    counts = Counter(group_of(number) for number in range(IN_TURN * OF_A_GROUP * 3))
    assert len(counts) == IN_TURN * 3 and set(counts.values()) == {OF_A_GROUP}


def test_a_server_that_is_gone_is_an_error_and_the_others_go_on(fakes: list[Fake]) -> None:
    """A connection that breaks goes to the next server; one that is pinned doesn't."""
    dying, living = started(fakes, most=20), started(fakes)
    streams = [
        stream("mix", [(0, READING)], rate=60, lanes=4),
        stream("steady", [(0, READING)], rate=10, lanes=2, pinned=True),
    ]
    reports = list(lines([target(dying), target(living)], streams, seconds=4, serial=1))
    errors = told(reports, "mix", "errors")
    assert 1 <= len(errors) <= 4, "a connection that can't be made is no error of a request"
    assert {what for _, _, _, what, _ in errors} == {"closed"}
    last = reports[-2]["streams"]
    assert last["mix"]["taken"] and not last["mix"]["errors"], "at the other server"
    assert last["steady"]["taken"], "the connection to the other server goes on"
    assert len(dying.seen) < len(living.seen)


def test_what_cannot_be_sent_in_time_is_counted_and_times_are_from_when_it_was_due(fakes: list[Fake]) -> None:
    slow = started(fakes, seconds=0.5)
    reports = list(lines([target(slow)], [stream("mix", [(0, READING)], rate=10, lanes=1)], seconds=4, serial=1))
    taken = [took for _, took in told(reports, "mix", "taken")]
    assert sum(line["streams"]["mix"]["skipped"] for line in reports) > 10
    assert max(taken) > 1.0, "half a second to answer, and the wait before"


def test_a_refusal_is_an_error_with_its_body(fakes: list[Fake]) -> None:
    refusing = started(fakes, status=503)
    reports = list(lines([target(refusing)], [stream("mix", [(7, READING)], rate=5, lanes=1)], seconds=2, serial=1))
    errors = told(reports, "mix", "errors")
    assert not told(reports, "mix", "taken") and len(errors) > 2
    kind, _, _, what, body = errors[0]
    assert (kind, what, json.loads(body)) == (7, "503", {"id": 1})


def test_each_kind_has_its_share() -> None:
    kinds = [Kind("many", ["a", "b"], 90), Kind("few", ["c"], 10), Kind("rare", ["d"], 0.0001)]
    counts = Counter(kind for kind, _ in mixed(kinds))
    assert counts[0] == 9 * endurance_workload.TURN // 10
    assert counts[2] == 1, "at least once"
    assert Counter(text for kind, text in mixed(kinds) if kind == 0) == {"a": counts[0] / 2, "b": counts[0] / 2}


# -- what is said of it -------------------------------------------------------------------------------------------------


def error(what: str, text: str = "") -> Error:
    return Error(0.0, 0.0, what, text)


@pytest.mark.parametrize(
    ("item", "is_told"),
    [
        (error("500", '{"error_code": 50001, "message": "Error in the backend data store"}'), True),
        (error("500"), False),
        (error("500", "Internal Server Error"), False),
        (error("503", "<!doctype html><HTML lang=en>"), True),
        (error("closed", "closed after 0 bytes of an answer"), True),
        (error("no answer", "none in 45 s"), False),
    ],
)
def test_an_error_says_what_is_wrong(item: Error, is_told: bool) -> None:
    assert item.is_told is is_told


def test_growth_is_that_of_a_line_through_all_samples() -> None:
    assert growth_of([(0, 10), (1, 10), (2, 10)]) == (0, 10)
    growth, mean = growth_of([(10, 100.0), (20, 110.0), (30, 120.0)])
    assert (growth, mean) == (pytest.approx(20), pytest.approx(110))


@pytest.mark.parametrize(
    ("megabytes", "rises", "is_held"),
    [
        (200, lambda at: 0.0, True),
        (200, lambda at: min(at, 70), True),  # while caches fill
        (200, lambda at: max(0, at - 70), False),
        (200, lambda at: 0.3 * at, True),  # by less than a twentieth in the last quarter
        (3, lambda at: 0.1 * at, True),  # of little that is much, and nothing
    ],
)
def test_memory_that_rises_in_the_last_quarter_is_missed(
    megabytes: int, rises: Callable[[int], float], is_held: bool
) -> None:
    record = RunRecord(memory=[(float(at), {"web": int((megabytes + rises(at)) * 2**20)}) for at in range(100)])
    assert endurance._flat("web", record, 100.0).is_held is is_held


@pytest.mark.parametrize(("last", "is_held"), [(0.014, True), (0.016, False)])
def test_the_last_quarter_is_held_against_the_second(last: float, is_held: bool) -> None:
    seconds = [Second(float(at), array("d", [0.010 if at <= 50 else last] * 10), 0, 0, 0) for at in range(1, 101)]
    assert endurance._steady_p99(RunRecord(seconds=seconds), 100.0, []).is_held is is_held


def test_what_was_missed_is_said() -> None:
    assert endurance.cells(Verdict("x", "y", False)) == ("x:", "y (missed)")
    assert endurance.cells(Verdict("x", "y", True)) == endurance.cells(Verdict("x", "y")) == ("x:", "y")


AWAY = '{"error_code": 50001, "message": "The database is unavailable. Try again in 2 seconds."}'


@pytest.mark.parametrize(
    ("number", "errors", "is_held", "sentence"),
    [
        (0, [error("503", AWAY)] * 2, True, "2 answers as documented: 2 × 503"),
        (0, [error("503", AWAY), error("500", AWAY)], False, "1 other errors: 1 × 500"),
        (0, [error("503", "")], False, "1 other errors: 1 × 503"),
        (0, [error("closed", "")], False, "1 other errors: 1 × closed"),
        (1, [error("503", AWAY)], False, "0 answers as documented, 1 other errors"),
        (2, [error("closed", "")], True, "1 answers as documented: 1 × closed"),
        (2, [], True, "no error"),
    ],
)
def test_what_was_answered_while_a_part_was_away_is_held_against_what_is_documented(
    number: int, errors: list[Error], is_held: bool, sentence: str
) -> None:
    trouble = Trouble(FAULTS[number], 0.0, 2.0, 3.0, tuple(errors), longest=1.0, read=1, read_errors=0)
    verdict = endurance._fault(trouble)
    assert verdict.is_held is is_held and sentence in verdict.text


class Told:
    """Parts of which it is known when they were ready again."""

    def __init__(self, back: float | None) -> None:
        self.back = back

    def ready_after(self, part: str, moment: float) -> float | None:
        return self.back


@pytest.mark.parametrize(
    ("back", "error_after", "is_over"),
    [(None, None, False), (-0.5, None, False), (-5.0, None, True), (-5.0, -0.5, False), (-5.0, -3.0, True)],
)
def test_a_fault_is_over_when_its_part_is_back_and_nothing_is_wrong(
    back: float | None, error_after: float | None, is_over: bool
) -> None:
    now = time.monotonic()
    record = RunRecord(faults=[(FAULTS[0], now - 10)])
    record.errors += [Error(now + error_after, 0.1, "503", AWAY)] if error_after is not None else []
    site: Any = Told(None if back is None else now + back)
    assert endurance._is_over(record, site) is is_over
    assert endurance._is_over(RunRecord(), site)


@pytest.mark.parametrize("options", [["--minutes=0"], ["--subjects=1"], ["--maximum-seconds=0"]])
def test_sizes_out_of_range_are_refused(options: list[str]) -> None:
    with pytest.raises(CommandError, match="a number from"):
        call_command(Bench(), "endurance", *options)


@whole_benchmark
@pytest.mark.slow
@pytest.mark.usefixtures("django_db_setup")
def test_a_short_run_with_all_its_faults_loses_nothing(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endurance, "SHARE", 0.25)  # faults take their time: what runs beside gets the rest of it
    size = endurance.Size(minutes=0.5, subjects=10, maximum_seconds=4)
    with django_db_blocker.unblock():  # it connects to a database of its own
        results = list(endurance.measure(size, print))
    shown = capsys.readouterr().out
    verdicts = {verdict.what: verdict for verdict in results if isinstance(verdict, Verdict)}
    rows = [verdict for verdict in results if isinstance(verdict, endurance.Row)]
    assert len(rows) == endurance.STEPS
    assert sum(row.per_second for row in rows) > 0
    assert all(memory > 0 for memory in rows[0].memory.values()), rows[0].memory
    assert verdicts["registrations"].is_held, verdicts["registrations"]
    for fault in FAULTS:
        assert verdicts[fault.name].is_held, verdicts[fault.name]
        assert "back after" in verdicts[fault.name].text
    assert "still away" not in shown
    text = endurance.section(results, size, "A note.")
    assert "A note." in text and text.count("\n| ") == 1 + len(rows)
