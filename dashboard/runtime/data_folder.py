"""The data folder's record of a running `up`: its lock, its address for other commands, and the parts that don't
run.
"""

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
    """The lock of a data folder. It is held as long as a process keeps `descriptor` open."""

    data: Path
    descriptor: int

    def publish(self, **facts: Any) -> None:
        """Write the state of this `up` for other commands: its process and the given facts (address, environment)."""
        me = processes()[os.getpid()]
        write_private(self.data / STATE, json.dumps({"pid": me.pid, "start": me.start, **facts}))

    def release(self) -> None:
        """Release the folder."""
        (self.data / STATE).unlink(missing_ok=True)
        os.close(self.descriptor)


def claim(data: Path, say: Callable[[str], None]) -> DataFolderLock:
    """Lock the data folder for this process.

    Raises AlreadyRunning with the folder and the other process's id and address. After a killed `up`, its watchdog
    holds the lock until it has ended the leftover processes: this waits for it.
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
    """Return the published state of the `up` that runs on `data`; None if none runs."""
    try:
        state = json.loads((data / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    process = processes().get(state.get("pid"))
    return state if process and process.start == state.get("start") else None


def adopt_running(data: str = "") -> str:
    """Give a manually run command the database, queue and servers of the `up` on the default folder.

    Variables that are already set aren't changed; a child of `up` already has everything. `data` is a folder from the
    command line, which takes precedence: return why it can't be used, "" if it can.
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
    """Record each part that doesn't run, with the reason."""
    if parts:
        write_private(data / MISSING, json.dumps(dict(parts)))
    else:
        (data / MISSING).unlink(missing_ok=True)


def missing_parts(data: Path) -> dict[str, str]:
    """Return the parts that don't run, with the reason, by name; empty if no `up` has recorded any."""
    try:
        text = (data / MISSING).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return {str(name): str(reason) for name, reason in json.loads(text).items()}
