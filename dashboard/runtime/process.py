"""Starts programs so that none of them, nor their children, outlives the supervisor."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.runtime import PartFailed
from dashboard.runtime import watchdog as watchdog_script
from dashboard.runtime.watchdog import MARK, WatchedSession, end_sessions, parse_ladder

# The child waits for a line before it runs the program: it is sent after the watchdog knows the child, and never
# comes if the supervisor is killed in between.
WAIT_THEN_RUN = 'read -r go && exec "$@" </dev/null'
DEFAULT_LADDER = "TERM:5"


@dataclass(frozen=True)
class Command:
    """A program to run; `environment` is its complete environment."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    ladder: str = DEFAULT_LADDER


@dataclass
class Watchdog:
    """The process that ends all children when this process is gone; it is restarted if it dies.

    `keep` are descriptors that it keeps open while it runs, such as the data folder's lock.
    """

    keep: tuple[int, ...] = ()
    _watched: dict[int, tuple[str, str]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and tell it every living child."""
        with self._lock:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", watchdog_script.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                pass_fds=self.keep,
                text=True,
            )
            for leader, (ladder, mark) in self._watched.items():
                self._tell(f"+ {leader} {ladder} {mark}")

    @property
    def pid(self) -> int | None:
        """The process id of the running watchdog."""
        return self._process.pid if self._process else None

    def revive(self) -> bool:
        """Restart it if it died; return whether it had."""
        with self._lock:
            if self._process is None or self._process.poll() is None:
                return False
            self.start()
            return True

    def watch(self, leader: int, ladder: str, mark: str) -> None:
        """End the session of `leader`, and processes with `mark`, by `ladder` when this process is gone."""
        parse_ladder(ladder)
        with self._lock:
            self._watched[leader] = (ladder, mark)
            self._tell(f"+ {leader} {ladder} {mark}")

    def forget(self, leader: int) -> None:
        """Stop watching the session of `leader`, which has ended."""
        with self._lock:
            if self._watched.pop(leader, None):
                self._tell(f"- {leader}")

    def watched(self) -> dict[int, WatchedSession]:
        """Return the leaders of all watched sessions, and how to end each."""
        with self._lock:
            return {leader: WatchedSession(parse_ladder(text), mark) for leader, (text, mark) in self._watched.items()}

    def close(self) -> None:
        """End the watchdog, and with it everything still watched."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(BrokenPipeError):  # it died before, so there is nothing to flush
                process.stdin.close()
            process.wait()

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the watchdog has not been started")
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # It died. The table already has this line, so the new watchdog gets it.
            self._process.wait()
            self.start()


@dataclass
class Child:
    """A running program in a session of its own."""

    process: subprocess.Popen[bytes]
    watched: WatchedSession
    watchdog: Watchdog

    @property
    def pid(self) -> int:
        """The process id, which is also its session's."""
        return self.process.pid

    def ended(self) -> int | None:
        """Return the exit status, None while it runs."""
        return self.process.poll()

    def end(self) -> None:
        """End it and all its descendants; return when none is left."""
        end_children([self])


def start(command: Command, output_to: Path | int, watchdog: Watchdog) -> Child:
    """Start `command` with its output appended to a file or sent to a descriptor.

    Raises PartFailed if it can't be started.
    """
    mark = secrets.token_hex(8)
    with open(output_to, "ab", closefd=isinstance(output_to, Path)) as output:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", WAIT_THEN_RUN, "sh", *command.argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**command.environment, MARK: mark},
                cwd=command.folder,
                start_new_session=True,
                umask=0o077,
            )
        except OSError as error:
            raise PartFailed(f"{command.argv[0]} can't be started in {command.folder}: {error}") from error
    watchdog.watch(process.pid, command.ladder, mark)
    if process.stdin is None:
        raise RuntimeError("the requested pipe of a child is missing")
    try:
        with process.stdin:
            process.stdin.write(b"go\n")
    except BrokenPipeError:
        pass  # the shell was already killed; whoever watches the child notices
    return Child(process, WatchedSession(parse_ladder(command.ladder), mark), watchdog)


def run(command: Command, log: Path, watchdog: Watchdog, *, seconds: float = 300.0) -> None:
    """Run `command` to its end.

    Raises PartFailed with the end of its log if it takes more than `seconds` or its status isn't 0.
    """
    begin = log.stat().st_size if log.exists() else 0
    child = start(command, log, watchdog)
    try:
        status = child.process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise PartFailed(f"{describe(command)} took more than {seconds:.0f} s.\n{tail(log, begin)}") from None
    finally:
        child.end()
    if status != 0:
        raise PartFailed(f"{describe(command)} ended with status {status}.\n{tail(log, begin)}")


def end_children(children: Sequence[Child]) -> None:
    """End all of them together."""
    end_sessions({child.pid: child.watched for child in children})
    for child in children:
        child.process.wait()
        child.watchdog.forget(child.pid)


def describe(command: Command) -> str:
    """Return the program and its first arguments, for messages."""
    return " ".join([Path(command.argv[0]).name, *command.argv[1:3]])


def tail(log: Path, begin: int = 0, *, lines: int = 25) -> str:
    """Return the last lines of `log` after the byte `begin`, indented, or a note that there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(begin, file.seek(0, os.SEEK_END) - 16_384))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    last_lines = [f"    {line.rstrip()}" for line in text.splitlines()[-lines:] if line.strip()]
    return "\n".join([f"The end of {log}:", *last_lines]) if last_lines else f"{log} is empty."
