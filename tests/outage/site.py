"""The product's parts as real processes, each of which a test may stop and start again."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil

from benchmarks.endurance_site import signed_in
from benchmarks.site import closed_web_command, issued_token, product
from dashboard.runtime.layout import LOOPBACK, Layout, free_port
from dashboard.runtime.parts import BEAT, POSTGRES, VALKEY, WEB, WORKERS, Part, wait_until_ready
from dashboard.runtime.process import Child, Watchdog, end_children, run, start
from dashboard.runtime.programs import migrate_command, prepare_command
from tests.waiting import PATIENCE, until

START = 300.0  # seconds for each to be ready
PARTS = {
    "valkey": VALKEY,
    "postgres": POSTGRES,
    "web": replace(WEB, command=closed_web_command),
    "worker": next(part for part in WORKERS if part.name == "worker-default"),
    "beat": BEAT,
}


@dataclass(frozen=True)
class Answer:
    """What came back, and after how many seconds."""

    status: int
    headers: Mapping[str, str]
    text: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Site:
    """What runs."""

    layout: Layout
    children: dict[str, Child] = field(default_factory=dict)
    token: str = ""
    cookie: str = ""

    def start(self, *names: str) -> None:
        """Start parts; returns when all are ready."""
        parts = {name: self._part(name) for name in names}
        for name, part in parts.items():
            self.children[name] = start(part.command(self.layout), self.layout.log(part.name), self.layout.watchdog)
        for name, part in parts.items():
            wait_until_ready(part, self.children[name], self.layout)

    def stop(self, name: str) -> None:
        """End a part as its operator would; returns when it is gone."""
        end_children([self.children.pop(name)])

    def crash(self, name: str) -> None:
        """End a part without notice."""
        child = self.children.pop(name)
        os.kill(child.pid, signal.SIGQUIT)
        until(lambda: child.ended() is not None)
        end_children([child])

    @contextmanager
    def hanging(self, name: str, title: str = "") -> Iterator[None]:
        """A part and its processes do nothing meanwhile, and keep their connections; or only processes with that title."""
        found = psutil.Process(self.children[name].pid)
        children = found.children(recursive=True)
        processes = [child for child in children if title in " ".join(child.cmdline())] if title else [found, *children]
        assert processes
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def end(self) -> None:
        for name in reversed(PARTS):
            if name in self.children:
                self.stop(name)

    def ask(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] = {}, is_signed_in: bool = False
    ) -> Answer:
        """One request, on a connection of its own."""
        sent = {"Accept": "application/json", **headers}
        sent |= {"Cookie": self.cookie} if is_signed_in else {"Authorization": f"Bearer {self.token}"}
        text = None
        if body is not None:
            sent["Content-Type"], text = "application/json", json.dumps(body)
        return self._send(method, path, text, sent)

    def send_form(self, path: str, cookie: str, **fields: str) -> Answer:
        """A form of somebody who isn't signed in."""
        sent = {"Accept": "text/html", "Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", path, urlencode(fields), sent)

    def _send(self, method: str, path: str, text: str | None, sent: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(LOOPBACK, self.layout.ports["web"], timeout=PATIENCE)
        began = time.monotonic()
        try:
            connection.request(method, path, text, dict(sent))
            response = connection.getresponse()
            told = response.read().decode()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, told, time.monotonic() - began)
        finally:
            connection.close()

    def ask_at_once(self, number: int, path: Callable[[int], str]) -> Sequence[Answer]:
        """So many GETs at the same time, each with a path of its own."""
        found: dict[int, Answer] = {}

        def work(index: int) -> None:
            found[index] = self.ask("GET", path(index))

        threads = [threading.Thread(target=work, args=(index,)) for index in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == number, "a request got no answer"
        return [found[index] for index in range(number)]

    def _part(self, name: str) -> Part:
        return replace(PARTS[name], seconds=START)


@contextmanager
def running_site(folder: Path) -> Iterator[Site]:
    """All parts, over files in that folder."""
    watchdog = Watchdog()
    watchdog.start()
    layout = Layout.at(folder / "data", watchdog, ports={"web": free_port()}, durable=True)
    layout.secret("django")
    site = Site(replace(layout, product=product(layout)))
    try:
        for name in ("valkey", "postgres"):
            if prepare := PARTS[name].prepare:
                prepare(site.layout)
        site.start("valkey", "postgres")
        for command in (migrate_command(site.layout), prepare_command(site.layout)):
            run(command, site.layout.log("setup"), watchdog, seconds=START)
        site.token = issued_token(site.layout, "admin")
        site.cookie = signed_in(site.layout, "admin")
        site.start("web", "worker", "beat")
        yield site
    finally:
        site.end()
        watchdog.close()
        shutil.rmtree(layout.sockets, ignore_errors=True)
