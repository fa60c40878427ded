"""The bridge from the server to Django: the raw target, bodies, streams, and clients that go away."""

from __future__ import annotations

import asyncio
import html
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import unquote

import pytest

from dashboard import asgi
from dashboard.asgi import THREADS, WRITE_THREADS, WsgiBridge, build_environ
from dashboard.runtime.layout import answers, free_port
from dashboard.runtime.programs import OPENING, most_files, web_arguments
from tests.runtime.conftest import ROOT
from tests.waiting import PATIENCE, until

Environ = dict[str, Any]


def scope(path: bytes = b"/", **more: Any) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "raw_path": path,
        "path": unquote(path.decode("ascii", "replace")),
        "query_string": b"",
        "headers": [(b"host", b"localhost:8081")],
        "client": ("127.0.0.1", "5555"),
        "server": ("127.0.0.1", "8081"),
        **more,
    }


def ask(
    application: Callable[..., Any], request_scope: dict[str, Any], *body: Any, **options: Any
) -> list[dict[str, Any]]:
    """The messages that the bridge sends for a request with these messages of its body."""
    sent: list[dict[str, Any]] = []

    async def run() -> None:
        messages = iter(body)

        async def receive() -> dict[str, Any]:
            if not (message := next(messages, None)):
                await asyncio.Event().wait()  # a client that stays
            return message or {}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await WsgiBridge(application, **options)(request_scope, receive, send)

    asyncio.run(run())
    return sent


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def echo(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
    body = environ["wsgi.input"].read()
    start_response("200 OK", [("X-Length", environ["CONTENT_LENGTH"])])
    return [body]


def test_a_read_does_not_wait_behind_registrations() -> None:
    """All threads for registrations are busy, and more registrations wait."""
    released, answered = threading.Event(), list[str]()

    def application(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        is_registration = environ["REQUEST_METHOD"] == "POST"
        if is_registration:
            released.wait(30)
        answered.append(environ["REQUEST_METHOD"])
        start_response("200 OK", [])
        return [b""]

    async def run() -> None:
        bridge, path = WsgiBridge(application), b"/subjects/a/versions"

        async def call(method: str) -> None:
            await bridge(scope(path, method=method), AsyncMock(return_value=part(b"")), AsyncMock())

        registrations = [asyncio.create_task(call("POST")) for _ in range(THREADS + WRITE_THREADS)]
        await asyncio.sleep(0)
        await call("GET")
        released.set()
        await asyncio.gather(*registrations)

    asyncio.run(run())
    assert answered[0] == "GET"


@pytest.mark.parametrize(
    ("method", "path", "threads"),
    [
        ("POST", "/subjects/orders/versions", "write"),
        ("POST", "/subjects/orders/versions/", "write"),
        ("POST", "/registries/dev/subjects/a/b/versions", "write"),
        ("PUT", "/config", "write"),
        ("DELETE", "/subjects/orders", "write"),
        ("POST", "/compatibility/subjects/orders/versions", "request"),
        ("POST", "/compatibility/subjects/orders/versions/latest", "request"),
        ("POST", "/subjects/orders", "request"),
        ("GET", "/subjects/orders/versions", "request"),
        ("GET", "/healthz", "apart"),
        ("GET", "/readyz", "ready"),
        ("HEAD", "/readyz", "ready"),
        ("POST", "/readyz", "request"),
    ],
)
def test_which_threads_a_request_gets(method: str, path: str, threads: str) -> None:
    assert WsgiBridge(echo)._threads_for(method, path)._thread_name_prefix == threads


@pytest.mark.requirement("CARD-1")
def test_probes_of_readiness_share_one_check_and_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the check hangs, each probe is answered 503 in time; afterwards a probe gets what its own check says."""
    monkeypatch.setattr(asgi, "READY_SECONDS", 0.2)
    released, checks = threading.Event(), list[str]()

    def application(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        checks.append(environ["REQUEST_METHOD"])
        assert released.wait(PATIENCE)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    async def run() -> None:
        bridge = WsgiBridge(application)

        async def probe(method: str = "GET") -> tuple[int, bytes]:
            sent = AsyncMock()
            await bridge(scope(b"/readyz", method=method), AsyncMock(return_value=part(b"")), sent)
            start, body = (call.args[0] for call in sent.call_args_list)
            return start["status"], body["body"]

        async with asyncio.timeout(PATIENCE):
            late = await asyncio.gather(*(probe() for _ in range(40)), probe("HEAD"))
            assert [status for status, _ in late] == [503] * 41 and late[-1][1] == b""
            assert json.loads(late[0][1])["status"] == "not ready" and checks == ["GET"]
            released.set()
            monkeypatch.setattr(asgi, "READY_SECONDS", PATIENCE)
            assert await probe() == (200, b"ok") and await probe("HEAD") == (200, b"")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("raw", "query", "target", "path"),
    [
        (b"/subjects/a%2Fversions%2F1", b"", "/subjects/a%2Fversions%2F1", "/subjects/a/versions/1"),
        (b"/subjects/a%252F", b"x=%2F&y=1", "/subjects/a%252F?x=%2F&y=1", "/subjects/a%2F"),
        (b"//a/../b/./%2e%2E", b"", "//a/../b/./%2e%2E", "//a/../b/./.."),
        (b"/%C3%BC", b"", "/%C3%BC", "/\xc3\xbc"),
        (b"/\xc3\xbc", b"", "/%C3%BC", "/\xc3\xbc"),
        (b"/%ff%zz%", b"", "/%ff%zz%", "/\xff%zz%"),
    ],
)
def test_the_target_is_reported_raw_and_decoded(raw: bytes, query: bytes, target: str, path: str) -> None:
    environ = build_environ(scope(raw, query_string=query), sys.stdin.buffer, 0)
    assert (environ["RAW_URI"], environ["PATH_INFO"]) == (target, path)
    assert environ["QUERY_STRING"] == query.decode()
    assert environ["SCRIPT_NAME"] == ""


def test_who_asks_whom_and_how() -> None:
    headers = [
        (b"host", b"registry.example:8081"),
        (b"content-type", b"application/json"),
        (b"accept", b"a/b"),
        (b"accept", b"c/d"),
        (b"cookie", b"a=1"),
        (b"cookie", b"b=2"),
        (b"content-length", b"999"),
        (b"remote_addr", b"10.0.0.1"),
        (b"x_forwarded_for", b"10.0.0.1"),
    ]
    environ = build_environ(scope(headers=headers), sys.stdin.buffer, 7)
    assert environ["HTTP_HOST"] == "registry.example:8081"
    assert environ["CONTENT_TYPE"] == "application/json"
    assert environ["HTTP_ACCEPT"] == "a/b,c/d"
    assert environ["HTTP_COOKIE"] == "a=1; b=2"
    assert environ["CONTENT_LENGTH"] == "7"  # what came, not what was said
    assert (environ["REMOTE_ADDR"], environ["REMOTE_PORT"]) == ("127.0.0.1", "5555")
    assert "HTTP_X_FORWARDED_FOR" not in environ  # nor is an underscore taken for a hyphen
    assert "HTTP_REMOTE_ADDR" not in environ


def test_a_body_in_pieces_is_read_whole_whatever_its_length() -> None:
    chunked = scope(method="POST", headers=[(b"transfer-encoding", b"chunked")])
    sizes = (700_000, 1, 300_000)
    start, body = ask(echo, chunked, *(part(b"x" * size, more=True) for size in sizes), part(b"end"))
    assert (b"x-length", b"1000004") in start["headers"]
    assert body["body"] == b"x" * 1_000_001 + b"end"


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_long_is_413_and_never_reaches_django(announced: bool) -> None:
    headers = [(b"content-length", b"101")] if announced else [(b"transfer-encoding", b"chunked")]
    request_scope = scope(method="POST", headers=headers)
    start, body, end = ask(_never, request_scope, part(b"x" * 60, more=True), part(b"x" * 41), max_body=100)
    assert (body["more_body"], end["more_body"]) == (True, False)
    assert start["status"] == 413
    assert (b"connection", b"close") in start["headers"]
    assert json.loads(body["body"] + end["body"]) == {
        "error_code": 413,
        "message": "A request's body may have up to 100 bytes.",
    }


@pytest.mark.parametrize("encoding", [b"gzip", b"x-unknown", b"GZIP, br"])
def test_an_encoded_body_is_415_and_never_reaches_django(encoding: bytes) -> None:
    headers = [(b"content-length", b"9"), (b"content-encoding", encoding)]
    start, body, end = ask(_never, scope(method="POST", headers=headers), part(b"x" * 9))
    assert start["status"] == 415 and (b"accept-encoding", b"identity") in start["headers"]
    assert json.loads(body["body"] + end["body"]) == {
        "error_code": 415,
        "message": f"The body's Content-Encoding is {encoding.decode()}. Send the body unencoded.",
    }


@pytest.mark.parametrize("headers", [[(b"content-length", b"9"), (b"content-encoding", b"Identity")], []])
def test_a_body_as_it_is_and_no_body_are_taken_whatever_the_header_says(headers: list[tuple[bytes, bytes]]) -> None:
    encoded = [*headers, *([] if headers else [(b"content-encoding", b"gzip")])]
    start, _ = ask(echo, scope(method="POST", headers=encoded), part(b"x" * 9))
    assert start["status"] == 200


def test_a_refusal_is_in_the_words_of_its_dialect() -> None:
    def refusal(status: int, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message}}

    request_scope = scope(b"/v1/projects/p/locations/l", method="POST", headers=[(b"content-length", b"101")])
    _, body, end = ask(_never, request_scope, part(b"x" * 101), max_body=100, refusals={b"/v1/projects/": refusal})
    assert json.loads(body["body"] + end["body"]) == {
        "error": {"code": 413, "message": "A request's body may have up to 100 bytes."}
    }


def test_a_body_at_the_limit_is_taken() -> None:
    request_scope = scope(method="POST", headers=[(b"content-length", b"100")])
    assert ask(echo, request_scope, part(b"x" * 100), max_body=100)[0]["status"] == 200


def test_a_body_that_breaks_off_is_400_and_never_reaches_django() -> None:
    """The server tells of a client that went away in the same way; that one reads no answer."""
    request_scope = scope(method="POST", headers=[(b"content-length", b"100")])
    start, _, _ = ask(_never, request_scope, part(b"x", more=True), {"type": "http.disconnect"})
    assert start["status"] == 400


def _never(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
    raise AssertionError("this request is not for the application")


def test_head_has_the_headers_and_no_body() -> None:
    start, body = ask(echo, scope(method="HEAD"))
    assert (start["status"], body["body"]) == (200, b"")


def test_an_application_that_fails_is_a_500_without_its_reason() -> None:
    start, body = ask(_never, scope())
    assert start["status"] == 500
    assert b"not for the application" not in body["body"]


class Stream:
    """A response whose parts are made one after the other; notes its end."""

    streaming = True

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.parts = parts
        self.closed_in = ""

    def __iter__(self) -> Iterator[bytes]:
        return self.parts

    def close(self) -> None:
        self.closed_in = threading.current_thread().name


def streaming(stream: Stream) -> Callable[..., Stream]:
    """An application that answers with that."""

    def application(environ: Environ, start_response: Callable[..., Any]) -> Stream:
        start_response("200 OK", [])
        return stream

    return application


@pytest.mark.parametrize("spooled", [4, 1_000_000], ids=["waiting for room", "at once"])
def test_a_stream_is_sent_piece_by_piece_and_closed_in_its_own_thread(
    monkeypatch: pytest.MonkeyPatch, spooled: int
) -> None:
    monkeypatch.setattr(asgi, "SPOOLED", spooled)
    monkeypatch.setattr(asgi, "PIECE", 3)
    stream = Stream(b"%d," % number for number in range(200))
    start, *pieces, end = ask(streaming(stream), scope())
    assert b"".join(message["body"] for message in pieces) == b"".join(b"%d," % number for number in range(200))
    assert all(message["more_body"] and len(message["body"]) <= 3 for message in pieces)
    assert (start["status"], end["body"], end["more_body"]) == (200, b"", False)
    assert stream.closed_in.startswith("stream")


def test_a_stream_that_fails_has_no_end() -> None:
    def parts() -> Iterator[bytes]:
        yield b"a"
        raise RuntimeError("no more")

    stream = Stream(parts())
    assert all(message.get("more_body", True) for message in ask(streaming(stream), scope()))
    assert stream.closed_in


def test_more_streams_than_the_server_holds_are_503_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "MOST_STREAMS", 0)
    stream = Stream(iter([b"a"]))
    start, body, end = ask(streaming(stream), scope())
    assert (start["status"], json.loads(body["body"] + end["body"])["message"]) == (503, asgi.BUSY)
    until(lambda: stream.closed_in.startswith("stream"))


@pytest.mark.parametrize("ending", ["by a message", "by an error"])
def test_a_stream_for_a_client_that_went_away_ends_early_and_is_closed(ending: str) -> None:
    stream, taken = Stream(itertools.repeat(b"x" * 65536)), []

    async def run() -> None:
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            taken.append(message)
            if len(taken) == 4 and ending == "by an error":
                raise RuntimeError("transport is closed")
            if len(taken) == 4:
                gone.set()
                await asyncio.sleep(0.01)

        await WsgiBridge(streaming(stream))(scope(), receive, send)

    asyncio.run(run())
    until(lambda: stream.closed_in)
    assert len(taken) == 4


# -- behind the real server -------------------------------------------------------------------------------------------

APPLICATION = """
import json, sys, types, time
wsgi = types.ModuleType("dashboard.wsgi")
def application(environ, start_response):
    body = environ["wsgi.input"].read()
    keys = ("RAW_URI", "PATH_INFO", "REMOTE_ADDR", "HTTP_HOST", "QUERY_STRING")
    answer = json.dumps({**{key: environ.get(key) for key in keys}, "length": len(body)}).encode()
    if environ["PATH_INFO"] == "/large":
        answer = b"x" * 20_000_000
    if environ["PATH_INFO"] == "/stream":
        start_response("200 OK", [])
        return Endless()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
class Endless:
    streaming = True
    def __iter__(self):
        while True:
            yield b"x" * 65536
    def close(self):
        print("stream closed", flush=True)
wsgi.application = application
sys.modules["dashboard.wsgi"] = wsgi
import django
django.setup()
from dashboard import asgi
from dashboard.asgi import application
limit = asgi.limit_unread
asgi.limit_unread = lambda: (limit(), print("limited", flush=True))
"""


@contextmanager
def served(folder: Path, **settings: int) -> Iterator[tuple[int, Path]]:
    """The port of a server of that application with the product's options, and the file of its output.

    `settings` are other numbers for options or for constants of the bridge.
    """
    constants = "".join(f"asgi.{name} = {value}\n" for name, value in settings.items() if name.isupper())
    (folder / "served.py").write_text(f"{APPLICATION}\n{constants}")
    port = free_port()
    options = web_arguments(port)
    for name, value in settings.items():
        if name.islower():
            options[options.index(f"--{name.replace('_', '-')}") + 1] = str(value)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SECRET_KEY": "of the tests",
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    argv = [*OPENING, str(most_files()), sys.executable, "-m", "granian", *options, "served:application"]
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            until(lambda: process.poll() is not None or answers(port), pause=0.05)
            assert process.poll() is None
            yield port, folder / "output"
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    with served(tmp_path_factory.mktemp("server")) as found:
        yield found


def request(port: int, method: str, target: str, body: Any = None, **options: Any) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, target, body, **options)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/subjects/a%2Fversions%2F1/versions?x=%2F", "/%E2%82%AC", "//x", "/a;b=1/%25"])
def test_the_server_hands_over_the_target_as_it_was_sent(server: tuple[int, Any], target: str) -> None:
    status, content = request(server[0], "GET", target)
    assert (status, content["RAW_URI"]) == (200, target)
    assert (content["REMOTE_ADDR"], content["HTTP_HOST"]) == ("127.0.0.1", f"127.0.0.1:{server[0]}")


@pytest.mark.slow
def test_the_server_hands_over_bodies_and_refuses_those_that_are_too_long(server: tuple[int, Any]) -> None:
    assert request(server[0], "POST", "/", b"x" * 3_000_000)[1]["length"] == 3_000_000
    pieces = iter([b"x" * 100_000] * 20)
    assert request(server[0], "POST", "/", pieces, encode_chunked=True)[1]["length"] == 2_000_000
    with socket.create_connection(("127.0.0.1", server[0]), timeout=PATIENCE) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.slow
@pytest.mark.parametrize("is_chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize("megabytes", [9, 10, 40])
def test_a_client_that_writes_all_of_its_body_first_reads_the_refusal(
    server: tuple[int, Any], megabytes: int, is_chunked: bool
) -> None:
    """As most do: a connection that is closed on them while they write is a broken pipe in place of the answer."""
    for _ in range(3):
        pieces = (b"x" * 1_000_000 for _ in range(megabytes))
        body = pieces if is_chunked else b"x" * (megabytes * 1_000_000)
        status, content = request(server[0], "POST", "/subjects/s/versions", body, encode_chunked=is_chunked)
        assert (status, content["error_code"]) == (413, 413)
    assert request(server[0], "GET", "/")[0] == 200


#: the beginning of a path → what its refusal says, of the JSON or the page
FORMS: dict[str, Callable[[Any, int, str], bool]] = {
    "/subjects/s/versions": lambda body, status, phrase: body["error_code"] == status,
    "/v1/projects/p/x": lambda body, status, phrase: body["error"].items() >= {"code": status, "status": "INVALID_ARGUMENT"}.items(),
    "/api/v1/drafts": lambda body, status, phrase: body["error"] == phrase and body["details"] == {},
    "/spring/": lambda body, status, phrase: body["status"] == status and "timestamp" in body,
    "/ui/proposals": lambda body, status, phrase: f"HTTP {status}" in body and "<h1>Bad request</h1>" in body,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    ("body", "headers", "status", "phrase", "sentence"),
    [
        (b"x" * 10_000_000, {}, 413, "RequestEntityTooLarge", "A request's body may have up to 8388608 bytes."),
        (b"x", {"Content-Encoding": "gzip"}, 415, "UnsupportedMediaType", "Send the body unencoded."),
    ],
    ids=["413", "415"],
)
def test_each_dialect_refuses_in_its_own_form(
    server: tuple[int, Any], path: str, body: bytes, headers: dict[str, str], status: int, phrase: str, sentence: str
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server[0], timeout=PATIENCE)
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    text, is_page = response.read().decode(), path.startswith("/ui/")
    connection.close()
    assert (response.status, response.headers.get_content_type()) == (
        status,
        "text/html" if is_page else "application/json",
    )
    assert FORMS[path](text if is_page else json.loads(text), status, phrase), text
    assert sentence in html.unescape(text)


@pytest.mark.slow
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(("more", "headers", "status"), [("a" * 70_000, {}, 414), ("", {"X-A": "a" * 700_000}, 431)])
def test_the_server_itself_refuses_a_request_that_it_cannot_read(
    server: tuple[int, Any], path: str, more: str, headers: dict[str, str], status: int
) -> None:
    """Before it knows the path's dialect, hence without a body."""
    connection = http.client.HTTPConnection("127.0.0.1", server[0], timeout=PATIENCE)
    connection.request("GET", path + more, headers=headers)
    response = connection.getresponse()
    assert (response.status, response.read()) == (status, b"")
    connection.close()


MALFORMED = {
    "size of a chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "empty size": b"Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n",
    "too large a size": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\nabc\r\n",
    "longer than its size": b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    "second chunk": b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n-1\r\nabc\r\n",
    "trailer": b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\x01\x02\r\n\r\n",
    "length": b"Content-Length: zz\r\n\r\nabc",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "encoding": b"Transfer-Encoding: gzip\r\n\r\nabc",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_body_is_400_and_logs_nothing(server: tuple[int, Path], name: str) -> None:
    port, output = server
    before = output.read_text()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /subjects/s/versions HTTP/1.1\r\nHost: x\r\n" + MALFORMED[name])
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        text = answer.read()
    assert answer.status == 400, text
    # What the server can't parse at all it refuses itself, without a body.
    if text:
        message = "The body ended early, or its chunks are malformed."
        assert json.loads(text) == {"error_code": 400, "message": message}
    assert output.read_text().replace("limited\n", "") == before.replace("limited\n", "")
    assert request(port, "GET", "/")[0] == 200


@pytest.mark.slow
def test_a_body_that_its_client_ends_early_is_no_500(server: tuple[int, Path]) -> None:
    with socket.create_connection(("127.0.0.1", server[0]), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /ui/proposals HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100)[:12] in (b"HTTP/1.1 400", b"")


@pytest.mark.slow
def test_a_body_without_an_end_is_not_read_for_ever(server: tuple[int, Any]) -> None:
    with socket.create_connection(("127.0.0.1", server[0]), timeout=PATIENCE) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000\r\n\r\n")
        sent = 0
        with pytest.raises(OSError):
            while sent < 1_000_000_000:
                connection.sendall(b"x" * 1_000_000)
                sent += 1_000_000
    assert sent < 200_000_000


@pytest.mark.slow
def test_a_client_that_leaves_a_stream_ends_it_and_the_server_goes_on(server: tuple[int, Any]) -> None:
    port, output = server
    for _ in range(10):  # more than there are threads
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            connection.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
    until(lambda: output.read_text().count("stream closed") == 10, pause=0.05)
    assert request(port, "GET", "/")[0] == 200
