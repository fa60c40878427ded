"""Runs the parts: starts them in order, restarts those that die or hang, ends them in order, reports on the
terminal.
"""

from __future__ import annotations

import enum
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from dashboard.runtime import PartFailed, ServiceError
from dashboard.runtime.data_folder import write_missing
from dashboard.runtime.layout import Layout
from dashboard.runtime.parts import Part, StartupStep, how_it_ended
from dashboard.runtime.process import Child, end_children, start, tail
from dashboard.runtime.watchdog import end_sessions

# A part that ran this long had started well; its end doesn't suggest a wrong setup.
GOOD_RUN = 10.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_ABSENCE = 300.0  # seconds, at most, between retries of a part that the others don't require
BAD_STARTS = 3
PROBE_PACE = 0.1
# For running parts. A loaded machine must not look like a hanging part: any reply within these times is enough.
WATCH_PACE = 10.0
TELL_AFTER = 60.0  # without a reply; doubled for a part that needs others, so that theirs is reported first
HUNG_AFTER = 180.0
LONGEST_STEP = 5.0


class State(enum.Enum):
    """The state of a part."""

    WAITING = "waiting for others"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    SILENT = "not answering"
    PAUSED = "waiting before the next start"


class PartSupervisor:
    """Starts a part when it may, detects when it is ready, and restarts it when it ends.

    `needs` names the parts that it requires. Its ends while one of them is away don't count as failures.
    """

    def __init__(self, part: Part, layout: Layout, executor: Executor, needs: frozenset[str] = frozenset()) -> None:
        self.part = part
        self.state = State.WAITING
        self.child: Child | None = None
        self.missing = ""  # why the others go on without it; "" if they needn't
        self._layout = layout
        self._executor = executor
        self._needs = needs
        self._future: Future[str | None] | None = None
        self._began = time.monotonic()
        self._due = 0.0
        self._started = 0.0
        self._is_prepared = False
        self._away: tuple[str, ...] = ()  # required parts that were last away, and when
        self._away_at = self._counted_at = -GOOD_RUN
        self._bad_starts: list[str] = []  # how each ended since the last good run
        self._pause = FIRST_PAUSE
        self._silence = self._seen_at = 0.0  # seconds without a reply, and the time until which they are counted
        self._tell_at = 0.0

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def done(self) -> bool:
        """Whether it has started."""
        return self.state in (State.READY, State.SILENT)

    def advance(self, ready: set[str], now: float) -> None:
        """Do what is due, without waiting.

        Raises PartFailed if the part can't be kept running and the others require it.
        """
        if away := self._needs - ready:
            self._away, self._away_at = tuple(sorted(away)), now
            self._forgive(now)
        match self.state:
            case State.WAITING:
                if ready.issuperset(self.part.after):
                    self._prepare(now)
            case State.PREPARING:
                if self._future and self._future.done():
                    self._prepared(self._future, now)
            case State.PAUSED:
                if now >= self._due and not away:
                    self._again(now)
            case State.STARTING | State.READY | State.SILENT:
                self._look(now, is_blocked=bool(away))

    def _forgive(self, now: float) -> None:
        """Discount a bad start that was counted just before a required part was found to be away."""
        if self.state is State.PAUSED and self._bad_starts and now - self._counted_at < GOOD_RUN:
            self._bad_starts.pop()
            self._counted_at = -GOOD_RUN

    def _prepare(self, now: float) -> None:
        self._began = now
        prepare = self.part.prepare
        if prepare is None:
            self._is_prepared = True
            self._start(now)
            return
        self.state = State.PREPARING
        self._future = self._executor.submit(lambda: prepare(self._layout))

    def _prepared(self, preparation: Future[str | None], now: float) -> None:
        self._future = None
        try:
            preparation.result()
        except (ServiceError, OSError) as error:
            self._go_on_without(_failure(self.name, error), now)
        else:
            self._is_prepared = True
            self._start(now)

    def _again(self, now: float) -> None:
        self._began = now
        if self._is_prepared:
            self._start(now)
        else:
            self._prepare(now)

    def _start(self, now: float) -> None:
        self._started = now
        self._log_begin = _size(self._layout.log(self.name))
        try:
            self.child = start(self.part.command(self._layout), self._layout.log(self.name), self._layout.watchdog)
        except (ServiceError, OSError) as error:
            self._go_on_without(_failure(self.name, error), now)
        else:
            self.state = State.STARTING

    def _look(self, now: float, *, is_blocked: bool) -> None:
        if self.child is None:
            raise RuntimeError(f"{self.name} is {self.state.value} without a process")
        if (status := self.child.ended()) is not None:
            self._ended(how_it_ended(status), now)
        elif self.state is State.STARTING:
            self._ask(now)
        else:
            if now - self._started > GOOD_RUN:
                self._bad_starts, self._pause = [], FIRST_PAUSE
            self._watch(now, is_blocked=is_blocked)

    def _ask(self, now: float) -> None:
        """Probe in the background, because a probe may wait for an answer and the supervisor must not."""
        if self._future is None:
            if now >= self._due:
                self._future = self._executor.submit(lambda: self.part.probe(self._layout))
        elif self._future.done():
            line, self._future, self._due = self._future.result(), None, now + PROBE_PACE
            if line:
                self._answered()
                self._seen_at, self._due = now, now + WATCH_PACE
                self._layout.say(self.name, f"ready in {now - self._began:.1f} s   {line}")
        if self.state is State.STARTING and now - max(self._started, self._away_at) > self.part.seconds:
            self._ended(f"was not ready after {self.part.seconds:.0f} s", now)

    def _watch(self, now: float, *, is_blocked: bool) -> None:
        """Probe a running part, report that it hangs, and restart it unless it keeps data.

        PostgreSQL, Valkey and the broker aren't restarted. What looks like a hang there may be a recovery or a slow
        disk, which a restart would prolong while it also aborts all transactions. A person can tell the difference.
        """
        if not is_blocked:  # otherwise the required part is the one that hangs
            # In limited steps, so that time while this process was suspended doesn't count.
            self._silence += min(now - self._seen_at, LONGEST_STEP)
        self._seen_at = now
        if self._future is None:
            if now >= self._due:
                self._future = self._executor.submit(self._probe_running)
        elif self._future.done():
            is_alive, self._future, self._due = self._future.result(), None, now + WATCH_PACE
            if is_alive:
                if self.state is State.SILENT:
                    self._layout.say(self.name, f"answers again after {self._silence:.0f} s")
                self._answered()
        if self._silence >= HUNG_AFTER and not self.part.keeps_data:
            self._ended(f"did not answer for {self._silence:.0f} s", now)
        elif self._silence >= self._tell_at:
            self._tell_silence()

    def _probe_running(self) -> str | None:
        try:
            return (self.part.answer or self.part.probe)(self._layout)
        except Exception as error:  # noqa: BLE001 - it says nothing about the part, and is no reason to end what runs
            self._layout.say(self.name, f"can't be probed: {error}")
            return "unknown"

    def _answered(self) -> None:
        self.state, self.missing = State.READY, ""
        self._silence, self._tell_at = 0.0, TELL_AFTER * 2 if self._needs else TELL_AFTER

    def _tell_silence(self) -> None:
        self.state, self._tell_at = State.SILENT, self._tell_at * 2
        self.missing = "doesn't answer" if self.part.without else ""
        cure = f"It is restarted after {HUNG_AFTER:.0f} s."
        if self.part.keeps_data and self.child:
            cure = f"It keeps data, so only you can restart it: end process {self.child.pid}."
        log = self._layout.log(self.name)
        self._layout.say(self.name, f"has not answered for {self._silence:.0f} s. {cure} Its log: {log}")

    def _ended(self, how: str, now: float) -> None:
        self._future = None
        self._end_child()
        lived = now - self._started
        if self._away_at >= self._started and now - self._away_at < GOOD_RUN:
            self._layout.say(self.name, f"{how} while {' and '.join(self._away)} was away; started again after that")
            self.state, self._due = State.PAUSED, now + FIRST_PAUSE
            return
        if lived >= GOOD_RUN and self.done:
            self._bad_starts, self._pause = [], FIRST_PAUSE  # this run was a good one
        else:
            self._bad_starts.append(how)
            self._counted_at = now
        log = tail(self._layout.log(self.name), self._log_begin)
        if self._bad_starts and self.part.without:
            self._go_on_without(PartFailed(f"{how}.\n{log}"), now)
        elif len(self._bad_starts) >= BAD_STARTS:
            raise PartFailed(f"{self.name} {_in_a_row(self._bad_starts)}.\n{log}")
        else:
            ran = "" if how.endswith(" s") else f" after {lived:.1f} s"  # some messages already have the duration
            self._layout.say(self.name, f"{how}{ran}; started again in {self._pause:.1f} s")
            self._wait(now, LONGEST_PAUSE)

    def _go_on_without(self, failure: ServiceError, now: float) -> None:
        """Report what doesn't work without the part, and retry later. Raises the failure if the others require it."""
        if not self.part.without:
            raise failure
        why, _, log = failure.message.partition("\n")
        why = why.removesuffix(".")
        is_known, self.missing = why == self.missing, why
        self._layout.say(self.name, f"{why}; tried again in {self._pause:.1f} s")
        if not is_known:
            said = f"NOT RUNNING. Schemadesk goes on without it: {self.part.without}."
            self._layout.say(self.name, f"{said}\n{log}" if log else said)
        self._wait(now, LONGEST_ABSENCE)

    def _wait(self, now: float, longest: float) -> None:
        self.state, self._due = State.PAUSED, now + self._pause
        self._pause = min(self._pause * 2, longest)

    def _end_child(self) -> None:
        if self.child:
            self.child.end()
            self.child = None


def _failure(part: str, error: ServiceError | OSError) -> ServiceError:
    """Return a part's failure, also for errors with its files."""
    return error if isinstance(error, ServiceError) else PartFailed(f"{part} can't start: {error}.")


def _in_a_row(reasons: Sequence[str]) -> str:
    """Describe how several runs ended: once if they are equal, else each."""
    if len(set(reasons)) == 1:
        return f"{reasons[0]}, {len(reasons)} times in a row"
    return f"{', then '.join(reasons)}: {len(reasons)} bad starts in a row"


class StepKeeper:
    """Runs a step once, when the parts and steps before it are ready."""

    def __init__(self, step: StartupStep, layout: Layout) -> None:
        self.part = step
        self.state = State.WAITING
        self.child: Child | None = None
        self._layout = layout
        self._relay: threading.Thread | None = None

    @property
    def name(self) -> str:
        """The step's name."""
        return self.part.name

    @property
    def done(self) -> bool:
        """Whether those that wait for this step may start."""
        return self.state is State.READY

    def advance(self, ready: set[str], now: float) -> None:
        """Do what is due, without waiting. Raises PartFailed if a vital step fails."""
        if self.state is State.WAITING and ready.issuperset(self.part.after):
            self._began = now
            self._start()
        elif self.state is State.STARTING and self.child:
            status = self.child.ended()
            if status is not None:
                self._finish(f"{how_it_ended(status)}" if status else "", now)
            elif now - self._began > self.part.seconds:
                self._finish(f"was not done after {self.part.seconds:.0f} s", now)

    def _start(self) -> None:
        command, log = self.part.command(self._layout), self._layout.log(self.name)
        self.state = State.STARTING
        if not self.part.relay:
            self.child = start(command, log, self._layout.watchdog)
            return
        reading, writing = os.pipe()
        try:
            self.child = start(command, writing, self._layout.watchdog)
        finally:
            os.close(writing)
        self._relay = threading.Thread(target=self._show, args=(reading,), daemon=True)
        self._relay.start()

    def _show(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._layout.say(self.name, line.rstrip())

    def _finish(self, failure: str, now: float) -> None:
        if self.child:
            self.child.end()
            self.child = None
        if self._relay:
            self._relay.join(2)
        self.state = State.READY
        if not failure:
            self._layout.say(self.name, f"done in {now - self._began:.1f} s")
        elif self.part.vital:
            raise PartFailed(f"{self.name} {failure}.\n{tail(self._layout.log(self.name))}")
        else:
            self._layout.say(self.name, f"FAILED: {failure}. Schemadesk goes on without it.")


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


AnyKeeper = PartSupervisor | StepKeeper


WIDTH = 15  # the longest part name and a space


class Console:
    """Prints lines from several threads; a closed terminal isn't an error."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._status = ""
        self._next_word = time.monotonic() + 2

    def say(self, part: str, text: str) -> None:
        """Print a line about `part`; an empty name means all parts."""
        line = f"{part:<{WIDTH}}{text}" if part else text
        with self._lock:
            self._write(f"\r\033[K{line}\n{self._status}" if self._status else f"{line}\n")

    def wait(self, text: str) -> None:
        """Show what is being waited for: in the terminal's last line, or else as a line every ten seconds."""
        with self._lock:
            if self._terminal:
                # A wrapped line could not be erased.
                text = text[: shutil.get_terminal_size().columns - 1]
                if text != self._status:
                    self._status = text
                    self._write(f"\r\033[K{text}")
            elif text and time.monotonic() >= self._next_word:
                self._next_word = time.monotonic() + 10
                self._write(text + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # The terminal was closed; SIGHUP will follow, and an orderly stop needs no terminal.
            self._status = ""


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUICK, SLOW = 0.05, 1.0  # polling interval in seconds while something is starting, and later
LOG_PACE = 60.0


class Supervisor:
    """Runs the parts and steps until a signal; it prints `ready` once, when all are ready."""

    def __init__(self, layout: Layout, items: Sequence[Part | StartupStep], console: Console, ready: str) -> None:
        self._layout = layout
        self._console = console
        self._ready = ready
        self._executor = ThreadPoolExecutor(max_workers=8, thread_name_prefix="part")
        self._stop_signal = 0
        self._wake = -1
        by_name = {item.name: item for item in items}
        self._keepers: list[AnyKeeper] = []
        self._needs: dict[str, frozenset[str]] = {}
        self._missing: dict[str, str] = {}
        for item in items:
            if unknown := set(item.after) - set(by_name):
                raise ValueError(f"{item.name} waits for {unknown}, which isn't among the parts")
        for item in items:
            needs = self._needs[item.name] = _needed_parts(item, by_name)
            keeper = (
                PartSupervisor(item, layout, self._executor, needs)
                if isinstance(item, Part)
                else StepKeeper(item, layout)
            )
            self._keepers.append(keeper)

    def run(self) -> int:
        """Run until a signal, then return 0. Raises PartFailed if a part can't run, after ending everything."""
        for keeper in self._keepers:
            self._layout.rotate_log(keeper.name)
        write_missing(self._layout.data, {})
        self._console.say("", f"starting {', '.join(keeper.name for keeper in self._keepers if not keeper.part.late)}")
        with self._signals():
            try:
                self._loop()
            finally:
                self._console.wait("")
                self._end()
        return 0

    def _loop(self) -> None:
        began = time.monotonic()
        announced, logs_due = False, began + LOG_PACE
        while not self._stop_signal:
            now = time.monotonic()
            for keeper in self._keepers:
                # Computed for each keeper: a part that ended with one it needs is handled after it, in the same turn.
                keeper.advance({other.name for other in self._keepers if other.state is State.READY}, now)
            self._report_missing()
            if self._layout.watchdog.revive():
                self._console.say("watchdog", "ended; started again")
            if now >= logs_due:
                logs_due = now + LOG_PACE
                self._trim_logs()
            pending = [keeper for keeper in self._keepers if not keeper.done and not self._is_given_up(keeper.name)]
            names = [keeper.name for keeper in pending if not keeper.part.late]
            self._console.wait(f"waiting for {', '.join(names)} … {now - began:.0f} s" if names else "")
            if not names and not announced:
                announced = True
                self._console.say("", self._ready)
            self._sleep(QUICK if pending else SLOW)

    def _is_given_up(self, name: str) -> bool:
        """Return whether the others go on without this part, or without one that it needs."""
        return not self._missing.keys().isdisjoint({name, *self._needs[name]})

    def _report_missing(self) -> None:
        """Record the parts that the others go on without, for `/readyz` and the home page."""
        missing = {
            keeper.name: keeper.missing
            for keeper in self._keepers
            if isinstance(keeper, PartSupervisor) and keeper.missing
        }
        if missing == self._missing:
            return
        for name in missing.keys() - self._missing.keys():
            waiting = [other.name for other in self._keepers if name in self._needs[other.name] and not other.done]
            if waiting:
                self._console.say(name, f"until then these wait: {', '.join(waiting)}")
        self._missing = missing
        try:
            write_missing(self._layout.data, missing)
        except OSError as error:  # a full disk must not end running parts
            self._console.say("", f"/readyz may not tell which parts don't run: {error}")

    def _trim_logs(self) -> None:
        for keeper in self._keepers:
            try:
                self._layout.trim_log(keeper.name)
            except OSError as error:
                self._console.say(keeper.name, f"the log wasn't cut: {error}")

    def _sleep(self, seconds: float) -> None:
        """Wait for a signal, the end of a child, or the timeout."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Wake the loop through a pipe on signals: a handler that takes locks could deadlock."""
        self._wake, wakes = os.pipe()
        os.set_blocking(wakes, False)
        earlier_wake = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        earlier = {number: signal.signal(number, self._on_stop) for number in STOP_SIGNALS}
        earlier[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(earlier_wake)
            os.close(self._wake)
            os.close(wakes)

    def _on_stop(self, number: int, _frame: object) -> None:
        if self._stop_signal and number == signal.SIGINT:
            # A second Ctrl-C: stop waiting. PostgreSQL and Kafka recover at the next start.
            for keeper in self._keepers:
                if child := keeper.child:
                    with suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
        self._stop_signal = self._stop_signal or number

    def _end(self) -> None:
        """End the parts that no other depends on, then those only they depended on, and so on."""
        self._stop_signal = self._stop_signal or signal.SIGTERM
        began = time.monotonic()
        self._console.say("", "stopping")
        left = list(self._keepers)
        while left:
            needed = {name for keeper in left for name in keeper.part.after}
            wave = [keeper for keeper in left if keeper.name not in needed]
            end_children([keeper.child for keeper in wave if keeper.child])
            left = [keeper for keeper in left if keeper not in wave]
        # Work before a part's start (initdb, downloads) isn't a keeper's child.
        watchdog = self._layout.watchdog
        while remaining := watchdog.watched():
            end_sessions(remaining)
            for leader in remaining:
                watchdog.forget(leader)
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._console.say("", f"stopped in {time.monotonic() - began:.1f} s")


def _needed_parts(item: Part | StartupStep, by_name: Mapping[str, Part | StartupStep]) -> frozenset[str]:
    """Return the parts that an item requires, directly or through other steps and parts."""
    parts: set[str] = set()
    pending = list(item.after)
    while pending:
        needed = by_name[pending.pop()]
        pending += needed.after
        if isinstance(needed, Part):
            parts.add(needed.name)
    return frozenset(parts)
