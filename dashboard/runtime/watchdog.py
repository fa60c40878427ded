"""Ends everything that a supervisor started once the supervisor is gone, even by `kill -9`.

Runs as a script of its own, with the standard library alone and in a session of its own. The supervisor holds the
write end of this process's stdin and writes a line a child:

    + 4711 INT:5,QUIT:3 6f1c…   watch the session that process 4711 leads; to end it: SIGINT, 5 s, SIGQUIT, 3 s, SIGKILL
    - 4711                      it has ended, nothing of it is left

The end of the stream says that the supervisor is gone. (PR_SET_PDEATHSIG would not do: it is lost when a child
changes its user, and does not reach grandchildren such as Spark's Python workers.)
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

PACE = 0.05  # seconds between two looks at the process table while something is being ended
GIVE_UP = 15.0  # seconds after the last SIGKILL; a process that is still there hangs in the kernel


class Process(NamedTuple):
    """A row of the process table; `start` tells a process from a later one with the same number."""

    pid: int
    parent: int
    session: int
    start: str


class SignalStep(NamedTuple):
    """A step of a ladder: the signal, and how many seconds it is given."""

    signal: int
    seconds: float


Ladder = tuple[SignalStep, ...]
MARK = "SCHEMADESK_CHILD"  # the environment variable


class WatchedSession(NamedTuple):
    """How a session is ended, and the mark in the environment of its processes."""

    ladder: Ladder
    mark: str


def parse_ladder(text: str) -> Ladder:
    """`INT:5,QUIT:3` as rungs. Raises ValueError for anything else."""
    rungs = []
    for step in text.split(","):
        name, _, seconds = step.partition(":")
        if name not in ("INT", "TERM", "QUIT", "HUP", "KILL"):
            raise ValueError(f"{text!r} is not a ladder of signals like INT:5,QUIT:3")
        rungs.append(SignalStep(getattr(signal, f"SIG{name}"), float(seconds)))
    return tuple(rungs)


def processes() -> dict[int, Process]:
    """All living processes that this user can see, by number; zombies are left out."""
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
        # The command's name stands in parentheses and may hold anything, parentheses too.
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
    """`roots` and all that descend from them."""
    pids = {row.pid for row in roots}
    more = pids
    while more:
        more = {pid for pid, row in table.items() if row.parent in more and pid not in pids}
        pids = pids | more
    return roots | {table[pid] for pid in pids if pid in table}


def marked(mark: str, table: Mapping[int, Process]) -> set[Process]:
    """The processes with the mark in their environment, as it was when their program started; none outside Linux."""
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
    """Ends the sessions led by the given processes and all that they started; gives those that would not go.

    The leader gets the signals of its ladder; what it leaves behind, or all of it when the ladder is at its end, is
    killed.
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
    """One session on its way out."""

    def __init__(self, leader: int, watched: WatchedSession) -> None:
        self.leader = leader
        self._mark = watched.mark
        self._rungs = list(watched.ladder)
        self._due = 0.0
        self._killed_at: float | None = None
        self._processes: set[Process] = set()

    def advance(self, table: Mapping[int, Process], now: float) -> bool:
        """Sends what is due; says whether anything is left."""
        # A descendant in a session of its own is found through its parents only while they live: remember it.
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
    with suppress(ProcessLookupError):  # it ended meanwhile: what was wanted
        os.kill(pid, number)


def main() -> int:
    """Reads what to watch until the supervisor is gone, then ends it."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    watched: dict[int, WatchedSession] = {}
    # A line that the supervisor could not finish is not followed by a child: children wait for their line.
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
