"""The bench of registries: every row against our own server, and no row where a registry doesn't do what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command

from benchmarks import measurement, mixed, registry, site
from benchmarks.bench import Command as Bench
from benchmarks.registry_client import Call, Target, ask, ask_all, basic, cpu_seconds, load, server_pids
from benchmarks.registry_load import unchunked

TINY = ("--seconds=0.05", "--subjects=5", "--connections=3", "--conditions=cached,writes-1")
QUICK = ("--seconds=0.05", "--subjects=3", "--connections=2", "--conditions=cached")
READS = ("schema by id", "version", "latest", "look-up", "re-register", "compatibility check", "list of 5")  # fmt: skip
NAMES = ("fleet that starts", *READS[:-1], "register new", READS[-1])
CONDITIONS = ("cached", "writes-1")  # of two registries; our own server is measured under all four
ROWS = 2 + len(READS) * len(CONDITIONS)  # what is new, and a fleet that starts, are measured once


@pytest.fixture(scope="module")
def ours() -> Iterator[Target]:
    """Our web server as the bench starts it."""
    with site.own_server("admin") as started:
        yield started


@pytest.fixture
def token(ours: Target, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variable that has the token."""
    monkeypatch.setenv("BENCH_TOKEN", ours.authorization.removeprefix("Bearer "))
    return "BENCH_TOKEN"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page that --write writes."""
    path = tmp_path / "benchmarks.md"
    monkeypatch.setattr(
        "benchmarks.bench.write_section",
        lambda *arguments: measurement.write_section(*arguments, path),
    )
    return path


def lines_of(shown: str, name: str) -> list[list[str]]:
    """The cells of a registry's rows."""
    return [re.split(r"\s{2,}", line) for line in shown.splitlines() if line.startswith(f"{name} ")]


@pytest.mark.requirement("GOO-2")
def test_every_row_of_two_registries_and_nothing_is_left(
    ours: Target, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = ours.address[1]
    options = (
        "--url",
        ours.url,
        "--token-from",
        token,
        "--large",
        "12",
        "--database-pid",
        *map(str, ours.database_pids),
    )
    beside = ("--compare", f"http://localhost:{port}/", "--compare-token-from", token)
    call_command(Bench(), "registry", *TINY, *options, *beside)
    shown = capsys.readouterr().out
    for name in (f"127.0.0.1:{port}", f"localhost:{port}"):
        rows = lines_of(shown, name)
        assert list(dict.fromkeys(row[1] for row in rows)) == [*NAMES, "list of 12"]
        assert [row[2] for row in rows if row[1] == "look-up"] == list(CONDITIONS)
        assert [row[3] for row in rows] == ["3"] * (ROWS + len(CONDITIONS))
        assert "failed" not in shown
        assert sum(float(row[7]) for row in rows) > 0, "CPU time was counted"
        assert f"{name}: asks who is there" in shown
        assert f"processes {', '.join(map(str, server_pids(ours) or ()))};" in shown, "found by its port"
    assert sum(float(row[8]) for row in lines_of(shown, f"127.0.0.1:{port}")) > 0
    for query in ("", "?deleted=true"):
        assert not [
            name for name in ask_all(ours, [Call("GET", f"/subjects{query}", is_right=is_list)])[0] if "bench-" in name
        ]


@pytest.mark.requirement("GOO-2")
def test_without_an_address_our_own_server_is_measured_and_its_section_written(
    ours: Target, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def started() -> Iterator[Target]:
        yield ours

    monkeypatch.setattr(site, "own_server", started)
    call_command(Bench(), "registry", "--seconds=0.1", "--subjects=3", "--connections=32", "--write", "--note=A note.")
    text = written.read_text()
    assert text.count("\n| ours | ") == len(NAMES)
    assert "3 subjects with Avro schemas" in text
    assert "A note." in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ours | ")]
    cells = {row[1]: row[3:] for row in rows if row[2] == "32"}
    assert [bool(re.search(r"\(× [0-9.]+\)", cell)) for cell in cells["look-up"]] == [True, True, False, True]
    assert [cell.strip(" |") != "" for cell in cells["register new"]] == [False, True, False, False]
    assert "(×" not in "".join(cells["list of 3"]), "the goal of a list is for 1,000"


@pytest.mark.requirement("GOO-2")
def test_a_mixed_load_is_measured_alone_and_beside_pages(
    ours: Target, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "own_server", lambda: nullcontext(ours))
    call_command(Bench(), "mixed", "--seconds=1.5", "--subjects=3", "--write", "--note=A note.")
    text = written.read_text()
    assert "3 subjects of ten fields" in text and "A note." in text
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(("| cached", "| uncached"))]
    programs = [name for name in READS if not name.startswith("list")] + ["register new", mixed.TOGETHER]
    for condition in mixed.CONDITIONS:
        counts = {row[1]: int(row[2].replace(",", "")) for row in rows if row[0] == condition.name}
        assert list(counts) == programs + ["page"] * condition.has_pages
        assert min(counts.values()) > 0
        assert counts[mixed.TOGETHER] == sum(counts[name] for name in programs[:-1])
    with pytest.raises(CommandError, match=r"--seconds 0\.0: a number from 1"):
        call_command(Bench(), "mixed", "--seconds=0")


def test_who_listens_is_found_and_nobody_comes_in_without_a_token(ours: Target) -> None:
    pids = server_pids(replace(ours, pids=None))
    assert pids and ours.pids
    main = psutil.Process(ours.pids[0])
    assert set(pids) <= {main.pid, *(child.pid for child in main.children())}, "the server, or its workers"
    assert ask(ours, [Call("GET", "/subjects")], signed=False)[0][0] == 401
    assert server_pids(Target("x", "http://192.0.2.1:8081")) is None


# -- a registry that can be broken --------------------------------------------------------------------------------------


def is_list(content: Any) -> bool:
    return isinstance(content, list)


class Fake(ThreadingHTTPServer):
    """As much of a registry as is measured; `broken` maps a method and the beginning of a path to what is answered."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.subjects: dict[str, list[str]] = {}
        self.ids: dict[str, int] = {}
        self.broken: dict[tuple[str, str], tuple[int, Any]] = {}
        self.framing = "length"
        self.forgets = False
        self.refuses_after = 10**9
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away aren't of interest."""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = path.partition("?")[0].strip("/").split("/")
        if method == "POST":
            text = json.dumps(json.loads(body["schema"]))
            return self.posted(parts, text)
        if method == "DELETE":
            return (200, [1]) if "permanent" not in path or self.subjects.pop(parts[1], None) else (404, {})
        match parts:
            case ["config"]:
                return 200, {"compatibilityLevel": "NONE"}
            case ["subjects"]:
                return 200, sorted(self.subjects)
            case ["schemas", "ids", number]:
                return 200, {"schema": next(text for text, id in self.ids.items() if str(id) == number)}
            case ["subjects", name, "versions"]:
                return 200, list(range(1, len(self.subjects[name]) + 1))
            case ["subjects", name, "versions", number]:
                return 200, self.version(name, len(self.subjects[name]) if number == "latest" else int(number))
        return 404, {}

    def version(self, name: str, number: int) -> dict[str, Any]:
        text = self.subjects[name][number - 1]
        return {"subject": name, "version": number, "id": self.ids[text], "schema": text}

    def posted(self, parts: list[str], text: str) -> tuple[int, Any]:
        if parts[0] == "compatibility":
            return 200, {"is_compatible": True}
        texts = self.subjects.setdefault(parts[1], [])
        if len(parts) == 2:
            return 200, self.version(parts[1], texts.index(text) + 1)
        number = self.ids.setdefault(text, len(self.ids) + 1)
        if text not in texts and not (self.forgets and "added_0000" in text):
            texts.append(text)
        return 200, {"id": number}


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with a length, in chunks, or until the connection is closed."""

    protocol_version = "HTTP/1.1"
    server: Fake

    def handle_one(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        with self.server.lock:
            self.server.seen.append(self.headers.get("Authorization") or "")
            broken = (
                what for (verb, path), what in self.server.broken.items() if verb == self.command and path in self.path
            )
            if len(self.server.seen) > self.server.refuses_after:
                status, content = 503, {"message": "away"}
            else:
                status, content = next(broken, None) or self.server.answer(self.command, self.path, body)
        text = json.dumps(content).encode()
        self.send_response(status)
        if self.server.framing == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            pieces = [text[begin : begin + 7] for begin in range(0, len(text), 7)]
            text = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        elif self.server.framing == "length":
            self.send_header("Content-Length", str(len(text)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = handle_one  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("framing", ["length", "chunks", "until closed"])
def test_any_framing_is_read_and_an_unknown_process_is_said(
    fake: Fake, framing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.framing = framing
    monkeypatch.setenv("BENCH_PASSWORD", "p:ä".encode("ascii", "ignore").decode())
    call_command(Bench(), "registry", *QUICK, "--url", fake.url, "--user=u", "--password-env=BENCH_PASSWORD")
    shown = capsys.readouterr().out
    rows = lines_of(shown, fake.url.removeprefix("http://"))
    assert len(rows) == len(NAMES)
    assert all("unknown" in row for row in rows)
    assert "answers everybody" in shown
    assert ("connections made again" in shown) == (framing == "until closed")
    assert fake.subjects == {}
    assert set(fake.seen) == {basic("u", "p:"), ""}
    assert fake.seen.count("") == 1, "credentials are left out once, to see whether they are asked for"


BROKEN: dict[str, tuple[Callable[[Fake], object], str]] = {
    "errors while it is measured": (
        lambda fake: fake.broken.update({("GET", "/schemas/ids/"): (500, {"message": "no"})}),
        r"failed: \d+ of \d+ requests were no success; the first: 500: .*no",
    ),
    "a wrong schema": (
        lambda fake: fake.broken.update({("GET", "/schemas/ids/"): (200, {"schema": '"int"'})}),
        r"failed: .*GET /schemas/ids/\d+ was answered with something else than was asked for",
    ),
    "an empty answer": (
        lambda fake: fake.broken.update({("GET", "/versions/latest"): (200, {})}),
        "latest .*failed: .* was answered with something else",
    ),
    "no verdict": (
        lambda fake: fake.broken.update({("POST", "/compatibility"): (200, {"is_compatible": False})}),
        "compatibility check .*failed",
    ),
    "registrations that it forgets": (
        lambda fake: setattr(fake, "forgets", True),
        r"register new .*failed: \d+ registrations were answered and 0 versions are there",
    ),
}
#: what one run can show: each spoils a row of its own
TOGETHER = (set(BROKEN) - {"a wrong schema"}, {"a wrong schema"})


@pytest.mark.parametrize("broken", TOGETHER, ids=len)
def test_a_row_that_measured_something_else_fails_and_nothing_is_written(
    fake: Fake, broken: set[str], written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what in broken:
        BROKEN[what][0](fake)
    with pytest.raises(CommandError, match=rf"\d of {len(NAMES)} rows failed; nothing written"):
        call_command(Bench(), "registry", *QUICK, "--url", fake.url, "--write")
    shown = capsys.readouterr().out
    assert [what for what in broken if not re.search(BROKEN[what][1], shown)] == []
    assert len(re.findall("failed:", shown)) < len(NAMES), "the other rows are as they should be"
    assert not written.exists()
    assert fake.subjects == {}, "what was made is removed all the same"


def test_a_registry_that_answers_500_fails_before_anything_is_written(fake: Fake) -> None:
    fake.broken = {(verb, "/"): (500, {"message": "out of order"}) for verb in ("GET", "POST", "DELETE")}
    with pytest.raises(CommandError, match=r"GET /subjects\?subjectPrefix=bench- was answered 500: .*out of order"):
        call_command(Bench(), "registry", *QUICK, "--url", fake.url)
    assert len(fake.seen) <= 2


def test_who_may_not_remove_is_refused_before_anything_is_measured(fake: Fake) -> None:
    fake.broken = {("DELETE", "?permanent=true"): (403, {"message": "it takes the role admin"})}
    with pytest.raises(
        CommandError, match=r"answered 403: .*role admin.* It takes credentials that may delete for good"
    ):
        call_command(Bench(), "registry", *QUICK, "--url", fake.url)
    assert len(fake.subjects) == 1
    assert len(fake.seen) == 6


def test_one_that_goes_away_in_the_middle_says_what_is_left(fake: Fake) -> None:
    fake.refuses_after = 40
    with pytest.raises(CommandError, match=r"(?s)answered 503.*\n.*Remove what is left of the subjects bench-\w+-\*"):
        call_command(Bench(), "registry", *QUICK, "--url", fake.url)


def test_what_is_kept_stays(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    call_command(Bench(), "registry", "--seconds=0.1", "--subjects=2", "--connections=1", "--keep", "--url", fake.url)
    assert len(fake.subjects) == 2 + 32
    assert re.search(r"the subjects bench-\w+-\* stay", capsys.readouterr().out)


def test_every_numbered_request_is_another_one(fake: Fake) -> None:
    call = Call("POST", "/subjects/a/versions", {"schema": '{"a":"000000000000"}'})
    done = load(Target("x", fake.url), [call], connections=3, seconds=0.2, serial=7, quiet=lambda: None)
    assert done.failed == ""
    assert done.answered > 0
    assert sorted(fake.subjects["a"]) == [json.dumps({"a": f"{number:012d}"}) for number in range(8, 8 + done.sent)]


def test_a_server_that_closes_in_the_middle_of_an_answer_is_no_success() -> None:
    script = (
        "import socket\nserver = socket.create_server(('127.0.0.1', 0))\nprint(server.getsockname()[1], flush=True)\n"
        "while True:\n  c, _ = server.accept(); c.recv(9999); c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\n[1'); c.close()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        target = Target("x", f"http://127.0.0.1:{int(process.stdout.readline())}")
        try:
            assert server_pids(target) == (process.pid,)
            done = load(target, [Call("GET", "/")], connections=1, seconds=0.1, serial=0, quiet=lambda: None)
        finally:
            process.kill()
    assert done.answered == 0
    assert "closed after" in done.failed


# -- its parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "body"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"3;x=1\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"5\r\n0\r\n\r\n\r\n", None),  # ends as the last chunk does, and isn't
        (b"5\r\n0\r\n\r\n\r\n0\r\n\r\n", b"0\r\n\r\n"),
        (b"3\r\nab", None),
        (b"0\r\n\r\n", b""),
    ],
)
def test_chunks(text: bytes, body: bytes | None) -> None:
    assert unchunked(bytearray(b"head" + text), 4) == body


SPENDS = "import time\nwhile time.process_time() < 0.4: pass\n"


def test_cpu_time_is_that_of_the_tree_with_what_has_ended_in_it() -> None:
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPENDS!r}])\nprint('done', flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()
        counted = cpu_seconds([process.pid])
        assert counted >= 0.35
        assert cpu_seconds([process.pid, process.pid]) < counted + 0.35, "each counts once"
        assert cpu_seconds([process.pid], leaving_out=[process.pid]) == 0
        process.stdin.close()


#: words after `bench registry` → what is said
WRONG = {
    "--url ftp://127.0.0.1": "is no base URL",
    "--url 127.0.0.1:8081": "is no base URL",
    "--url http://127.0.0.1:x": "base URL such as",
    "--url http://u:p@127.0.0.1:8081": "credentials come by --token-from",
    "--url http://127.0.0.1:8081/?a=b": "scheme, host, port and path alone",
    "--url http://127.0.0.1:8081/ü": "percent-encode",
    "--url http://192.0.2.1:8081": "isn't on this machine.*Say --yes",
    "--compare http://192.0.2.1:8081": "isn't on this machine.*Say --yes",
    "--url http://127.0.0.1:1 --seconds 0": "--seconds 0.0: a number from 0.05",
    "--url http://127.0.0.1:1 --conditions cached,warm": "--conditions warm: use cached, uncached, writes-1",
    "--url http://127.0.0.1:1 --subjects 0": "--subjects 0: a number from 1",
    "--url http://127.0.0.1:1 --large -1": "--large -1: a number from 0",
    "--url http://127.0.0.1:1 --connections 1,": "--connections 1,: numbers from 1 to 512",
    "--url http://127.0.0.1:1 --connections 513": "numbers from 1 to 512",
    "--url http://127.0.0.1:1 --token-from NOT_SET_HERE": "NOT_SET_HERE has no token",
    "--url http://127.0.0.1:1 --user u": "go together",
    "--url http://127.0.0.1:1 --password-env HOME": "go together",
    "--url http://127.0.0.1:1 --token-from HOME --user u --password-env HOME": "not both",
    "--url http://127.0.0.1:1 --server-pid 999999999": "the CPU time of its processes can't be read",
    "--url http://127.0.0.1:1": "can't be reached",
    "--server-pid 1": "--server-pid is about a registry that --url names",
    "--token-from HOME": "--token-from is about",
    "--url http://127.0.0.1:1 --compare-token-from HOME": "that --compare names",
}


@pytest.mark.parametrize("options", WRONG)
def test_wrong_words_are_reported(options: str) -> None:
    with pytest.raises(CommandError, match=f"(?s){WRONG[options]}"):
        call_command(Bench(), "registry", *options.split())


def test_a_generator_at_its_limit_is_said() -> None:
    done = registry.Measured(9_000.0, 0.001, 0.002, 9, 9, 0.97, 2, "")
    row = registry.Row("x", "version", "cached", 32, done, 0.00005, 0.00004, 0.06)
    assert registry.cells(row)[4:] == (
        "9,000", "1.0 ms", "2.0 ms", "0.050", "0.040", "0.06 (× 1.5)", "97% (its limit), 2 connections made again"
    )  # fmt: skip
    assert registry.cells(replace(row, goal=0.1))[9] == "0.10"
    assert registry.cells(replace(row, cpu=None, database_cpu=None))[7:10] == ("unknown", "", "")
