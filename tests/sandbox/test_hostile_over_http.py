"""Schemas made to hurt, sent to the real server: each ends soon with a clear sentence, and nobody else notices."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from dashboard.services.ports import free_port
from dashboard.services.programs import THRIFTY
from registry.formats import FORMATS
from tests.amounts import how_many
from tests.sandbox.bombs import exploding
from tests.waiting import PATIENCE, until

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
