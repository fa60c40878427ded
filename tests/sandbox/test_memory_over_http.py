"""The web server with all of its children stays within 512 MB, whatever is sent to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psutil
import pytest

from tests.sandbox.test_hostile_over_http import CASES, Server, server, text_of, warm_up

__all__ = ["server"]  # the fixture

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

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


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
            schemas = list(pool.map(lambda case: hurt(server, *case), CASES))
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


def hurt(server: Server, kind: str, what: str) -> int:
    """The worst status of what can be asked of a hostile schema; 503 where the children are busy with others."""
    body = {"schema": text_of(kind, what), "schemaType": kind}
    targets = (f"/compatibility/subjects/{kind}/versions?verbose=true", f"/subjects/{kind}-{what[:3]}/versions")
    answers = [server.ask("POST", target.replace(" ", "%20"), body) for target in targets]
    return max(BUSY if said.get("error_code") == TIMEOUT else status for status, said in answers)


def test_the_bodies_are_near_the_limit() -> None:
    assert all(7_500_000 < len(body) < 9_100_000 for body in HUGE.values())
    assert json.loads(HUGE["many names"])["0599999"] == 0
