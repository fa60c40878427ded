"""What the data folder says of a running `up`: one at a time, how other commands find what it runs, which parts don't run."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.runtime import AlreadyRunning
from dashboard.runtime.layout import default_data_folder, private_folder, write_private
from dashboard.runtime.watchdog import processes

STATE = "up.json"
LOCK = "up.lock"
PATIENCE = 20.0  # seconds for a watchdog to end what a killed `up` has left


@dataclass
class DataFolderLock:
    """The right to run on a data folder. `descriptor` is the lock: whoever holds it open keeps others out."""

    data: Path
    descriptor: int

    def publish(self, **facts: Any) -> None:
        """Tells others of this `up`: its process, and what is given (address, environment)."""
        me = processes()[os.getpid()]
        write_private(self.data / STATE, json.dumps({"pid": me.pid, "start": me.start, **facts}))

    def release(self) -> None:
        """Gives the folder free."""
        (self.data / STATE).unlink(missing_ok=True)
        os.close(self.descriptor)


def claim(data: Path, say: Callable[[str], None]) -> DataFolderLock:
    """Takes the data folder for this process.

    Raises AlreadyRunning, naming the folder and the other's process id and address. What a killed `up` has left is
    being ended by its watchdog, which holds the lock: that is waited for.
    """
    descriptor = os.open(private_folder(data) / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + PATIENCE
    waiting = False
    while not _lock(descriptor):
        other = read_state(data)
        if other or time.monotonic() > deadline:
            os.close(descriptor)
            raise AlreadyRunning(_refusal(data, other))
        if not waiting:
            waiting = True
            say(f"waiting for processes of a killed `up` to end in {data}")
        time.sleep(0.2)
    owner = DataFolderLock(data, descriptor)
    owner.publish()
    return owner


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refusal(data: Path, other: Mapping[str, Any] | None) -> str:
    if not other:
        return f"{data} is locked by processes of a killed `up` that haven't ended. See {data / 'logs'}."
    where = other.get("address") or "still starting"
    return (
        f"`up` is already running on {data}: process {other['pid']}, {where}. Stop it, or use another folder with "
        "--data DIR."
    )


def read_state(data: Path) -> dict[str, Any] | None:
    """What the `up` that runs on `data` has published; None when there is none."""
    try:
        state = json.loads((data / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    process = processes().get(state.get("pid"))
    return state if process and process.start == state.get("start") else None


def adopt_running(data: str = "") -> str:
    """Gives a command that is run by hand the database, queue and servers of the `up` that runs on the default folder.

    What the environment names already is left alone; a child of `up` has all it may have. `data` is a folder that the
    command line names, which comes first: returns why it can't be used, "" if it can.
    """
    if data:
        folder = Path(data).expanduser().absolute()
        given = (read_state(folder) or {}).get("environment")
        os.environ.update(given or {})
        return "" if given else f"No `up` runs on {folder}. Start `up --data {folder}`, or name its folder with --data."
    if "SCHEMADESK_UP" in os.environ or "DATABASE_URL" in os.environ:
        return ""
    running = read_state(default_data_folder()) or {}
    for name, value in running.get("environment", {}).items():
        os.environ.setdefault(name, value)
    return ""


MISSING = "missing.json"


def write_missing(data: Path, parts: Mapping[str, str]) -> None:
    """Leaves word of each part that doesn't run, with the reason."""
    if parts:
        write_private(data / MISSING, json.dumps(dict(parts)))
    else:
        (data / MISSING).unlink(missing_ok=True)


def missing_parts(data: Path) -> dict[str, str]:
    """The parts that don't run, by name, each with the reason; none where no `up` has left word."""
    try:
        text = (data / MISSING).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return {str(name): str(reason) for name, reason in json.loads(text).items()}
