"""Ends everything that a supervisor started once the supervisor is gone, even after `kill -9`.

It runs as a separate script with only the standard library, in its own session. The supervisor holds the write end of
its stdin and writes a line per child:

    + 4711 INT:5,QUIT:3 6f1c…   watch the session that process 4711 leads; to end it: SIGINT, 5 s, SIGQUIT, 3 s, SIGKILL
    - 4711                      its session has ended completely

The end of the stream means that the supervisor is gone. (PR_SET_PDEATHSIG isn't enough: it is lost when a child
changes its user, and doesn't apply to grandchildren such as Spark's Python workers.)
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PACE = 0.05  # seconds between polls of the process table while something is being ended
GIVE_UP = 15.0  # seconds after the last SIGKILL; a process that still exists hangs in the kernel


class Process(NamedTuple):
    """A row of the process table; `start` distinguishes a process from a later one with the same id."""

    pid: int
    parent: int
    session: int
    start: str


class SignalStep(NamedTuple):
    """A step of a ladder: the signal, and the seconds to wait after it."""

    signal: int
    seconds: float


Ladder = tuple[SignalStep, ...]
MARK = "SCHEMADESK_CHILD"  # the environment variable


class WatchedSession(NamedTuple):
    """The ladder that ends a session, and the mark in the environment of its processes."""

    ladder: Ladder
    mark: str


def parse_ladder(text: str) -> Ladder:
    """Parse a ladder such as `INT:5,QUIT:3`. Raises ValueError for anything else."""
    rungs = []
    for step in text.split(","):
        name, _, seconds = step.partition(":")
        if name not in ("INT", "TERM", "QUIT", "HUP", "KILL"):
            raise ValueError(f"{text!r} is not a ladder of signals like INT:5,QUIT:3")
        rungs.append(SignalStep(getattr(signal, f"SIG{name}"), float(seconds)))
    return tuple(rungs)


def processes() -> dict[int, Process]:
    """Return all processes that this user can see, by id, without zombies."""
    rows = _from_proc() if sys.platform == "linux" else _from_ps()
    return {row.pid: row for row in rows}


def _from_proc() -> Iterable[Process]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        # The command's name is in parentheses and may contain anything, including parentheses.
        fields = text[text.rindex(b")") + 2 :].split()
        if fields[0] not in (b"Z", b"X"):
            yield Process(int(folder.name), int(fields[1]), int(fields[3]), fields[19].decode())


def _from_ps() -> Iterable[Process]:
    listing = subprocess.run(
        ["/bin/ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "stat=", "-o", "lstart="],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C"},
    ).stdout
    for line in listing.splitlines():
        pid, parent, state, start = line.split(None, 3)
        if state.startswith("Z"):
            continue
        try:
            yield Process(int(pid), int(parent), os.getsid(int(pid)), start)
        except OSError:
            continue  # it ended meanwhile, or belongs to somebody else


def with_descendants(roots: set[Process], table: Mapping[int, Process]) -> set[Process]:
    """Return `roots` and all their descendants."""
    pids = {row.pid for row in roots}
    more = pids
    while more:
        more = {pid for pid, row in table.items() if row.parent in more and pid not in pids}
        pids = pids | more
    return roots | {table[pid] for pid in pids if pid in table}


def marked(mark: str, table: Mapping[int, Process]) -> set[Process]:
    """Return the processes started with the mark in their environment; none outside Linux."""
    if sys.platform != "linux":
        return set()
    entry = f"{MARK}={mark}".encode()
    processes = set()
    for row in table.values():
        with suppress(OSError):  # it ended meanwhile, or belongs to somebody else
            if entry in Path(f"/proc/{row.pid}/environ").read_bytes().split(b"\0"):
                processes.add(row)
    return processes


def end_sessions(sessions: Mapping[int, WatchedSession]) -> list[int]:
    """End the sessions of the given leaders and all that they started; return the leaders of those that didn't end.

    A leader gets the signals of its ladder; what it leaves behind, or everything at the end of the ladder, is killed.
    """
    ends = [_EndingSession(leader, watched) for leader, watched in sessions.items()]
    while ends:
        table = processes()
        now = time.monotonic()
        ends = [ending for ending in ends if ending.advance(table, now)]
        if ends and all(ending.hopeless(now) for ending in ends):
            return [ending.leader for ending in ends]
        if ends:
            time.sleep(PACE)
    return []


class _EndingSession:
    """A session that is being ended."""

    def __init__(self, leader: int, watched: WatchedSession) -> None:
        self.leader = leader
        self._mark = watched.mark
        self._rungs = list(watched.ladder)
        self._due = 0.0
        self._killed_at: float | None = None
        self._processes: set[Process] = set()

    def advance(self, table: Mapping[int, Process], now: float) -> bool:
        """Send the signal that is due; return whether any process is left."""
        # A descendant in its own session is found only while its parents live: remember it.
        alive = self._processes & set(table.values())
        members = {row for row in table.values() if row.session == self.leader}
        self._processes = with_descendants(alive | members, table)
        if self.leader in table and table[self.leader] in members and (self._rungs or now < self._due):
            if now >= self._due:
                rung = self._rungs.pop(0)
                self._due = now + rung.seconds
                _send(self.leader, rung.signal)
            return True
        self._processes |= with_descendants(marked(self._mark, table), table)
        if not self._processes:
            return False
        self._killed_at = self._killed_at or now
        for row in self._processes:
            _send(row.pid, signal.SIGKILL)
        return True

    def hopeless(self, now: float) -> bool:
        return self._killed_at is not None and now - self._killed_at > GIVE_UP


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it ended meanwhile, as intended
        os.kill(pid, number)


def main() -> int:
    """Read what to watch until the supervisor is gone, then end all of it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    watched: dict[int, WatchedSession] = {}
    # An incomplete line has no running child: children wait for their line.
    for line in sys.stdin:
        if not line.endswith("\n"):
            break
        verb, leader, *rest = line.split()
        if verb == "+":
            watched[int(leader)] = WatchedSession(parse_ladder(rest[0]), rest[1])
        else:
            watched.pop(int(leader), None)
    return 1 if end_sessions(watched) else 0


if __name__ == "__main__":
    sys.exit(main())
