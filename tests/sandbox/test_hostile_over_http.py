"""Schemas made to hurt, sent to the real server: each ends soon with a clear error, nobody else notices, memory is bounded."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from dashboard.runtime.layout import free_port
from dashboard.runtime.programs import THRIFTY
from registry.formats import FORMATS
from tests.amounts import how_many
from tests.sandbox.bombs import exploding
from tests.waiting import PATIENCE, until

__all__ = ["server"]


ROOT = Path(__file__).resolve().parents[2]
#: of one call: the server's limit is 2 s, without it some of these take minutes and others have no end
MOST_SECONDS = 20.0
#: of 95 in 100 simple requests, which take milliseconds: behind calls that hold the server they take as long as those
MOST_LATENCY_SECONDS = 1.5
MOST_GROWTH = 48 * 1024 * 1024

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def record(fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    listed = [{"name": key, "type": type_} for key, type_ in fields.items()]
    return {"type": "record", "name": name, "fields": listed, **more}


def nested(depth: int, opening: str, inner: str, closing: str) -> str:
    return opening * depth + inner + closing * depth


def enums(count: int, symbols: list[str]) -> list[Any]:
    return [{"type": "enum", "name": f"n{number}.E", "symbols": symbols} for number in range(count)]


def proto(body: str) -> str:
    return f'syntax = "proto3";\n{body}\n'


def exploding_with(keyword: str, blocks: int) -> dict[str, Any]:
    return {"allOf": [{keyword: item["anyOf"]} for item in exploding(blocks)["allOf"]]}


def chained(blocks: int) -> dict[str, Any]:
    """Alternatives behind references, each used twice by the next."""
    definitions: dict[str, Any] = {"d0": {"anyOf": [{"type": "string"}, {"required": ["x"]}]}}
    for number in range(1, blocks):
        inner = {"$ref": f"#/definitions/d{number - 1}"}
        definitions[f"d{number}"] = {"allOf": [inner, {"properties": {"a": inner, f"b{number}": inner}}]}
    return {"$ref": f"#/definitions/d{blocks - 1}", "definitions": definitions}


HOSTILE: dict[str, dict[str, Callable[[], Any]]] = {
    "AVRO": {
        "nested arrays": lambda: nested(5_000, '{"type":"array","items":', '"int"', "}"),
        "brackets alone": lambda: "[" * 900_000,
        "a union of 10,000": lambda: enums(10_000, ["A"]),
        "a union of 120,000": lambda: ["null"] + [f"n.R{number}" for number in range(120_000)],
        "a cycle without an end": lambda: record({"self": "R"}),
        "wide unions of one simple name": lambda: record({f"f{i}": enums(300, ["A", "B"]) if i == 0 else "int" for i in range(9)}),
        "defaults with many readings": lambda: record({"f": [
            record({"x": ["null", "A"]}, "A"), record({"x": ["A", "null", "B"]}, "B")]}) | {"x": nested(150, '{"x":', "1", "}")},
        "a name used everywhere": lambda: record({"a": record({f"g{i}": "int" for i in range(900)}, "Q"), **{f"x{i}": ["null", "Q"] for i in range(9_000)}}),
        "2 MB of text": lambda: json.dumps(record({f"f{i}": "int" for i in range(10)}, doc="x" * 2_000_000)),
        "half a string": lambda: '{"type":"' + '\\"' * 400_000,
    },
    "JSON": {
        "13 blocks of anyOf": lambda: exploding(13),
        "13 blocks of oneOf": lambda: exploding_with("oneOf", 13),
        "blocks behind references": lambda: chained(14),
        "escaped keywords": lambda: json.dumps(exploding(13)).replace("anyOf", "any\\u004ff"),
        "a union of 10,000": lambda: {"anyOf": [{"type": "object", "required": [f"p{i}"]} for i in range(10_000)]},
        "nested objects": lambda: nested(4_000, '{"properties":{"a":', "{}", "}}"),
        "a cycle of references": lambda: {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}},
        "a pattern that never ends": lambda: {"type": "string", "pattern": "^(((a+)+)+)+$", "minLength": 30},
        "a pattern of huge counts": lambda: {"type": "string", "pattern": "((a{1000}){1000}){1000}"},
        "a remote reference": lambda: {"$ref": "http://169.254.169.254/latest/meta-data"},
    },
    "PROTOBUF": {
        "nested messages": lambda: proto("".join(f"message M{i} {{" for i in range(2_000)) + "}" * 2_000),
        "30,000 fields": lambda: proto("message M {" + "".join(f"int32 f{i} = {i + 20_000};" for i in range(30_000)) + "}"),
        "10,000 members of a oneof": lambda: proto("message M { oneof o {" + "".join(f"int32 f{i} = {i + 1};" for i in range(10_000)) + "} }"),
        "an import outside": lambda: proto('import "../../etc/passwd";'),
        "itself imported": lambda: proto('import "schema.proto"; import "main.proto";'),
        "brackets alone": lambda: "{" * 900_000,
        "options nested deep": lambda: proto("option (x) = " + "{ a " * 3_000 + "}" * 3_000 + ";"),
    },
}  # fmt: skip
CASES = [(kind, what) for kind, schemas in HOSTILE.items() for what in schemas if kind in FORMATS]


@dataclass
class Server:
    """A running web server, and how to ask it."""

    port: int
    token: str
    process: subprocess.Popen[bytes]
    latencies: list[float] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    def ask(self, method: str, target: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of one call on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def memory(self) -> int:
        """Bytes of the server's own processes, without the children for costly schemas."""
        processes = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        own = [process for process in processes if "registry.sandbox.child" not in process.cmdline()]
        return sum(process.memory_info().rss for process in own)

    def keep_asking(self, stop: threading.Event) -> None:
        """Something simple, over and over, with the time that each answer took."""
        while not stop.wait(0.02):
            begin = time.perf_counter()
            status, _ = self.ask("GET", "/subjects")
            self.latencies.append(time.perf_counter() - begin)
            if status != 200:
                self.refusals.append(status)


@pytest.fixture
def server(token: Callable[[str], str], tmp_path: Path) -> Iterator[Server]:
    """The real web server on the test's database."""
    from django.db import connection
    from psycopg.conninfo import make_conninfo

    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    login = {ours: connection.settings_dict[name] for name, ours in names.items() if connection.settings_dict[name]}
    port = free_port()
    environment = {
        **os.environ,
        **THRIFTY,
        "DATABASE_URL": make_conninfo("", **login),
        "SECRET_KEY": "for this test alone",
    }
    words = ["--interface", "asgi", "--workers", "1", "--no-ws", "--port", str(port), "dashboard.asgi:application"]
    with (tmp_path / "server").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "granian", *words], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    started = Server(port, token("steward"), process)
    try:
        until(lambda: process.poll() is not None or is_ready(started), pause=0.1)
        assert process.poll() is None, (tmp_path / "server").read_text()
        yield started
    finally:
        process.terminate()
        process.wait(PATIENCE)


def is_ready(server: Server) -> bool:
    try:
        return server.ask("GET", "/subjects")[0] == 200
    except OSError:
        return False


def text_of(kind: str, what: str) -> str:
    made = HOSTILE[kind][what]()
    return made if isinstance(made, str) else json.dumps(made)


@pytest.mark.requirement("GOO-2")
def test_hostile_schemas_end_soon_and_nobody_else_notices(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """`SCHEMADESK_LONG=1` sends all of them twice (see amounts.py)."""
    warm_up(server)
    quiet, _ = meanwhile(server, lambda: time.sleep(2))
    memory = [server.memory()]
    rounds = []
    busy: list[float] = []
    again = CASES[:: -(-len(CASES) // how_many("hostile schemas of the second round"))]  # some of each kind
    for cases in (CASES, again):  # what the first round grows by is room that the second one uses again
        latencies, rows = meanwhile(server, lambda cases=cases: [row_of(server, *case) for case in cases])  # type: ignore[misc]
        rounds += rows
        busy += latencies
        memory.append(server.memory())
    with capsys.disabled():
        print_figures(rounds[: len(CASES)], quiet, busy, memory)
    assert [row for row in rounds if row[2] > MOST_SECONDS] == []
    assert [row for row in rounds if row[3] not in (200, 409, 422)] == []
    assert [row for row in rounds if row[3] == 422 and len(row[4]) < 20] == []
    assert memory[2] - memory[1] < MOST_GROWTH
    assert memory[2] - memory[0] < 4 * MOST_GROWTH
    assert server.refusals == []
    assert statistics.quantiles(busy, n=20)[-1] < MOST_LATENCY_SECONDS
    assert max(busy) < MOST_SECONDS


def meanwhile(server: Server, work: Callable[[], Any]) -> tuple[list[float], Any]:
    """What the simple requests took while `work` was done, and what that gave."""
    server.latencies.clear()
    stop = threading.Event()
    asking = threading.Thread(target=server.keep_asking, args=(stop,))
    asking.start()
    try:
        given = work()
    finally:
        stop.set()
        asking.join()
    return list(server.latencies), given


def row_of(server: Server, kind: str, what: str) -> tuple[str, str, float, int, str]:
    return (kind, what, *hurt(server, kind, text_of(kind, what)))


def warm_up(server: Server) -> None:
    """One version that a hostile one is held against, everything loaded, and a child at work."""
    first = {"AVRO": record({"a": "int"}), "JSON": {"type": "object"}, "PROTOBUF": proto("message M { int32 a = 1; }")}
    for kind in FORMATS:
        text = first[kind] if isinstance(first[kind], str) else json.dumps(first[kind])
        status, said = server.ask("POST", f"/subjects/{kind}/versions", {"schema": text, "schemaType": kind})
        assert status == 200, said
        for number in range(20):
            deeper = json.dumps(record({f"f{i}": "int" for i in range(200 + number)}))
            server.ask("POST", "/compatibility/subjects/AVRO/versions", {"schema": deeper})
    wide = json.dumps(enums(300, ["A"]))
    for _ in range(4):
        server.ask("POST", "/compatibility/subjects/AVRO/versions", {"schema": wide})


def hurt(server: Server, kind: str, text: str) -> tuple[float, int, str]:
    """The longest time of all that can be asked of a schema, and what the last refusal said.

    It is held against another one and registered there, then under a subject of its own and held against itself.
    """
    body = {"schema": text, "schemaType": kind}
    own = f"{kind}-{abs(hash(text))}-{time.monotonic_ns()}"
    calls = (
        (f"/compatibility/subjects/{kind}/versions?verbose=true", body),
        (f"/subjects/{kind}/versions", body),
        (f"/subjects/{own}/versions?normalize=true", body),
        (f"/compatibility/subjects/{own}/versions?verbose=true", {**body, "schema": text + " "}),
        ("/api/v1/compatibility-reports", {**body, "subject": own, "profile": "semantic"}),
        ("/api/v1/compatibility-reports", {**body, "subject": kind, "profile": "confluent"}),
    )
    longest, refusal = 0.0, (200, "")
    for target, sent in calls:
        begin = time.perf_counter()
        status, said = server.ask("POST", target, sent)
        longest = max(longest, time.perf_counter() - begin)
        if status == 422 and target.startswith(f"/subjects/{own}"):
            return longest, status, f"{said['message']}"[:150]  # nothing is there to be held against
        if status != 200:
            refusal = (status, f"{target}: {said.get('message', '')}"[:190])
    return longest, *refusal


def print_figures(rows: list[Any], quiet: list[float], busy: list[float], memory: list[int]) -> None:
    print()
    for kind, what, seconds, status, said in rows:
        print(f"{kind:9} {what:32} {seconds:6.2f} s  {status}  {said}")
    for name, latencies in (("before", quiet), ("meanwhile", busy)):
        ordered = sorted(latencies)
        shown = ", ".join(f"{part} {ordered[int(len(ordered) * share)] * 1000:.1f} ms" for part, share in QUANTILES)
        print(f"{len(ordered)} simple requests {name}: {shown}")
    print(
        "the server's memory before, after one round and two:", ", ".join(f"{size / 2**20:.0f} MiB" for size in memory)
    )


QUANTILES = (("median", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("longest", 0.99999))


MOST = 512 * 1000 * 1000  # of any one process
TOGETHER = 820 * 1000 * 1000  # of the server with its children, shared pages counted in each
SAMPLE_SECONDS = 0.02
AT_ONCE = 6
#: the error code of the established server for what takes too long
TIMEOUT = 50002
BUSY = 503
CONTENT = "application/vnd.schemaregistry.v1+json"
#: bodies around the limit of 8 MiB, for each dialect: what is sent where
HUGE = {
    "one long text": '{"schema": "' + "x" * 8_000_000 + '"}',
    "many small values": '{"references": [' + ",".join(["{}"] * 2_700_000) + "]}",
    "many names": "{" + ",".join(f'"{number:07}":0' for number in range(650_000)) + "}",
    "deep arrays": "[" * 8_000_000,
    "one number": '{"version": ' + "9" * 8_000_000 + "}",
    "more than is taken": '"' + "x" * 9_000_000 + '"',
}
TARGETS = (
    "/subjects/huge/versions",
    "/associations",
    "/spring/",
    "/v1/projects/p/locations/l/schemaRegistries/dev/subjects/huge/versions",
)


@dataclass
class Watch:
    """The highest that the memory of a process and all below it came to, in bytes, and `largest` that of any of them."""

    process: psutil.Process
    highest: int = 0
    largest: int = 0
    samples: int = 0
    at_most: list[str] = field(default_factory=list)

    def look(self) -> int:
        """The memory now (resident set sizes, shared pages counted in each process)."""
        sizes = []
        for process in [self.process, *self.process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):  # ended meanwhile
                sizes.append((process.memory_info().rss, " ".join(process.cmdline())[-60:]))
        total = sum(size for size, _ in sizes)
        self.largest = max(self.largest, *(size for size, _ in sizes))
        self.samples += 1
        if total > self.highest:
            self.highest = total
            self.at_most = [f"{size / 1e6:.0f} MB {words}" for size, words in sorted(sizes, reverse=True)]
        return total

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look all the time."""
        stop = threading.Event()

        def look_on() -> None:
            while not stop.wait(SAMPLE_SECONDS):
                self.look()

        thread = threading.Thread(target=look_on)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def send(server: Server, target: str, body: str) -> int:
    """The status of a call; 0 where the server closes the connection on a body that it doesn't take."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": CONTENT}
    if target.startswith(("/spring", "/v1/")):
        headers["Content-Type"] = "application/json"
    try:
        connection.request("POST", target, body.encode(), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (ConnectionError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


@pytest.mark.requirement("GOO-1")
def test_no_process_goes_beyond_512_mb_and_all_together_are_bounded(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (Watch(psutil.Process(server.process.pid)) for _ in range(2))
    warm_up(server)
    rest = first.look()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        with first.watching():
            schemas = list(pool.map(lambda case: hurt_repeatedly(server, *case), CASES))
        with second.watching():
            calls = [(target, body) for body in HUGE.values() for target in TARGETS]
            bodies = list(pool.map(lambda call: send(server, *call), calls))
    time.sleep(1)
    with capsys.disabled():
        print(f"\nmemory of all processes of the web server at rest: {rest / 1e6:.0f} MB")
        for what, watch in (("hostile schemas", first), ("huge bodies", second)):
            print(f"with {what}, {AT_ONCE} at once: {watch.highest / 1e6:.0f} MB at most in {watch.samples} looks")
            print("\n".join(f"  {line}" for line in watch.at_most))
        print(f"afterwards: {second.look() / 1e6:.0f} MB; statuses of the bodies: {sorted(set(bodies))}")
    assert not [status for status in (*schemas, *bodies) if status >= 500 and status != BUSY], "an unforeseen failure"
    assert first.samples > 20
    assert max(first.largest, second.largest) <= MOST
    assert max(first.highest, second.highest) <= TOGETHER
    assert server.ask("GET", "/subjects")[0] == 200


def hurt_repeatedly(server: Server, kind: str, what: str) -> int:
    """The worst status of what can be asked of a hostile schema; 503 where the children are busy with others."""
    body = {"schema": text_of(kind, what), "schemaType": kind}
    targets = (f"/compatibility/subjects/{kind}/versions?verbose=true", f"/subjects/{kind}-{what[:3]}/versions")
    answers = [server.ask("POST", target.replace(" ", "%20"), body) for target in targets]
    return max(BUSY if said.get("error_code") == TIMEOUT else status for status, said in answers)


def test_the_bodies_are_near_the_limit() -> None:
    assert all(7_500_000 < len(body) < 9_100_000 for body in HUGE.values())
    assert json.loads(HUGE["many names"])["0599999"] == 0
