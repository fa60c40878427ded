"""The whole product, started as a person starts it, with the demo; and a real browser in front of it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browsing import windows

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 600
#: what the embedded parts replace: the tests' own services must not leak into the product that is started here
REPLACED = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "REDIS_URL",
    "KAFKA_BOOTSTRAP",
    "SPARK_REMOTE",
    "CONNECT_URL",
    "DJANGO_SETTINGS_MODULE",
)


@dataclass(frozen=True)
class House:
    """The running product: its address, the passwords it printed, and all its lines."""

    url: str
    passwords: dict[str, str]
    lines: Callable[[], str]
    process: subprocess.Popen[bytes]
    data: Path

    def get(self, path: str) -> Any:
        """The JSON at an address."""
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return json.load(answer)

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
        """Wait until it holds; fail with the product's own lines."""
        ends = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"the product ended:\n{self.lines()}"
            assert time.monotonic() < ends, f"{what} didn't happen in {seconds} s:\n{self.lines()}"
            time.sleep(0.5)


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """`manage.py up --demo` on an empty folder, the demo done and scanned."""
    data, log = tmp_path_factory.mktemp("house"), tmp_path_factory.mktemp("log") / "up.log"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name not in REPLACED}
    command = [sys.executable, "manage.py", "up", "--demo", "--data", str(data), "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        running = House(f"http://127.0.0.1:{port}", {}, log.read_text, process, data)
        running.wait_for(lambda: bool(re.search(r"^demo +done", log.read_text(), re.MULTILINE)), "the demo")
        running.wait_for(lambda: len(scanned(running)) == 3, "a scan of each source", 180)
        passwords = dict(
            re.findall(r"^prepare +(reader|steward|approver|admin) +(\S+)$", log.read_text(), re.MULTILINE)
        )
        yield House(running.url, passwords, log.read_text, process, data)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def scanned(house: House) -> list[str]:
    """Names of the sources whose last scan is done."""
    sources = house.get("/api/v1/sources")
    return [source["name"] for source in sources if (source["last_scan"] or {}).get("state") == "done"]


@pytest.fixture(scope="session")
def sessions() -> dict[str, Any]:
    """Account → the cookies that its sign-in gave."""
    return {}


@pytest.fixture
def sign_in(house: House, browser: Browser, sessions: dict[str, Any]) -> Iterator[Callable[..., Page]]:
    """Opens windows of one of the cast, or of nobody (see `windows`)."""

    def cookies_of(name: str) -> Any:
        if name not in sessions:
            with browser.new_page(base_url=house.url) as page:
                page.goto("/ui/accounts/login/")
                page.fill("input[name=login]", name)
                page.fill("input[name=password]", house.passwords[name])
                page.click("main form button")
                page.wait_for_url("**/ui/")
                sessions[name] = page.context.cookies()
        return sessions[name]

    with windows(browser, house.url, cookies_of, usual="") as make:
        yield make
