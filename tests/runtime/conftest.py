"""Supervisors as programs of their own, and what they leave behind."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


class Supervised:
    """A supervisor that runs as a program, with what it says line by line."""

    def __init__(self, argv: list[str], environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment or dict(os.environ),
            text=True,
            # Ctrl-C of the person at the tests is not for it.
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self._seen: set[psutil.Process] = set()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def wait_for(self, text: str, seconds: float = PATIENCE) -> str:
        """The next line with `text` in it."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._queue.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                break
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"no {text!r} within {seconds} s in:\n" + "\n".join(self.lines))

    def end(self, number: int, seconds: float = PATIENCE) -> int:
        """Sends a signal and gives the exit status."""
        self.remember()
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def remember(self) -> set[psutil.Process]:
        """Notes all its descendants; gives those of now."""
        descendants = set(psutil.Process(self.process.pid).children(recursive=True))
        self._seen |= descendants
        return descendants

    def left(self, seconds: float) -> list[psutil.Process]:
        """Those of its noted descendants that are still there after at most `seconds`."""
        deadline = time.monotonic() + seconds
        while (alive := [process for process in self._seen if is_alive(process)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        return alive

    def child(self, word: str) -> psutil.Process:
        """Its descendant with `word` in its command line, the shortest one if there are several."""
        lines = {process: " ".join(command_line(process)) for process in self.remember()}
        matches = sorted(
            (process for process, line in lines.items() if word in line), key=lambda process: len(lines[process])
        )
        assert matches, f"no process with {word!r}"
        return matches[0]


def command_line(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def is_alive(process: psutil.Process) -> bool:
    """A zombie is not: it waits for its parent only, which in a container may be nobody."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(autouse=True, scope="session")
def sockets_of_their_own() -> Iterator[None]:
    """The folders for sockets go into one that is removed; a temporary folder of pytest's has too long a path."""
    with (
        tempfile.TemporaryDirectory(prefix="sd-", dir="/tmp") as folder,
        mock.patch.dict(os.environ, XDG_RUNTIME_DIR=folder),
    ):
        yield


@pytest.fixture
def supervised() -> Iterator[Callable[..., Supervised]]:
    """Starts programs that supervise; whatever is left of them at the end of the test is killed."""
    started: list[Supervised] = []

    def start(*argv: str, environment: dict[str, str] | None = None) -> Supervised:
        started.append(Supervised(list(argv), environment))
        return started[-1]

    yield start
    for supervisor in started:
        if supervisor.process.poll() is None:
            supervisor.remember()
            supervisor.process.kill()
            supervisor.process.wait()
        for process in supervisor.left(15):
            process.kill()


@pytest.fixture
def stand_in(tmp_path: Path, supervised: Callable[..., Supervised]) -> Callable[..., Supervised]:
    """Starts a supervisor over stand-in parts, given as rows of `stand_in.py`, on the test's data folder."""

    def start(*rows: dict[str, Any]) -> Supervised:
        table = tmp_path / "parts.json"
        table.write_text(json.dumps(rows))
        return supervised(sys.executable, "-m", "tests.runtime.stand_in", str(tmp_path / "data"), str(table))

    return start


def part(name: str, script: str = "sleep 600", **more: Any) -> dict[str, Any]:
    """A stand-in part: a shell that says it is ready and goes on with `script`."""
    return {"name": name, "argv": ["sh", "-c", f"touch {{data}}/{name}.ready; {script}"], **more}


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
