"""Starting programs so that nothing of them outlives their supervisor."""

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

# The child waits for a line before it becomes the program: it is sent once the watchdog knows the child, and never
# comes when the supervisor is killed between the two.
WAIT_THEN_RUN = 'read -r go && exec "$@" </dev/null'
DEFAULT_LADDER = "TERM:5"


@dataclass(frozen=True)
class Command:
    """A program to run; `environment` is the whole of it."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    ladder: str = DEFAULT_LADDER


@dataclass
class Watchdog:
    """The process that ends all children when this one is gone; started again when it dies itself.

    `keep` are descriptors that it holds open as long as it runs, such as the data folder's lock.
    """

    keep: tuple[int, ...] = ()
    _watched: dict[int, tuple[str, str]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it, and tells it of every living child."""
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
        """The process number of the running watchdog."""
        return self._process.pid if self._process else None

    def revive(self) -> bool:
        """Starts it again if it died; says whether it had."""
        with self._lock:
            if self._process is None or self._process.poll() is None:
                return False
            self.start()
            return True

    def watch(self, leader: int, ladder: str, mark: str) -> None:
        """Has the session of `leader`, and all with `mark`, ended with `ladder` when this process is gone."""
        parse_ladder(ladder)
        with self._lock:
            self._watched[leader] = (ladder, mark)
            self._tell(f"+ {leader} {ladder} {mark}")

    def forget(self, leader: int) -> None:
        """The session of `leader` is over."""
        with self._lock:
            if self._watched.pop(leader, None):
                self._tell(f"- {leader}")

    def watched(self) -> dict[int, WatchedSession]:
        """The leaders of all watched sessions, and how each is to be ended."""
        with self._lock:
            return {leader: WatchedSession(parse_ladder(text), mark) for leader, (text, mark) in self._watched.items()}

    def close(self) -> None:
        """Ends the watchdog, and with it whatever is still watched."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(BrokenPipeError):  # it died before: there is nothing to flush
                process.stdin.close()
            process.wait()

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the watchdog has not been started")
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            # It died. The line is in the table already, so the new one hears of it.
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
        """Its process number, which is its session's too."""
        return self.process.pid

    def ended(self) -> int | None:
        """Its exit status once it has ended, None while it runs."""
        return self.process.poll()

    def end(self) -> None:
        """Ends it and everything of it; returns when nothing is left."""
        end_children([self])


def start(command: Command, output_to: Path | int, watchdog: Watchdog) -> Child:
    """Starts `command`, its output appended to a file or going to a descriptor.

    Raises PartFailed when it can't be started at all.
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
        pass  # the shell was killed already; its end is seen by whoever watches the child
    return Child(process, WatchedSession(parse_ladder(command.ladder), mark), watchdog)


def run(command: Command, log: Path, watchdog: Watchdog, *, seconds: float = 300.0) -> None:
    """Runs `command` to its end.

    Raises PartFailed with the end of its log when it takes more than `seconds` or its status isn't 0.
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
    """Ends all of them at the same time."""
    end_sessions({child.pid: child.watched for child in children})
    for child in children:
        child.process.wait()
        child.watchdog.forget(child.pid)


def describe(command: Command) -> str:
    """The program and its first words, for messages."""
    return " ".join([Path(command.argv[0]).name, *command.argv[1:3]])


def tail(log: Path, begin: int = 0, *, lines: int = 25) -> str:
    """The last lines of `log` that were written after the byte `begin`, indented; says so when there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(begin, file.seek(0, os.SEEK_END) - 16_384))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    last_lines = [f"    {line.rstrip()}" for line in text.splitlines()[-lines:] if line.strip()]
    return "\n".join([f"The end of {log}:", *last_lines]) if last_lines else f"{log} is empty."
