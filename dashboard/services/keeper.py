"""One part under supervision: from waiting for others to ready, and back after it died."""

from __future__ import annotations

import enum
import os
import threading
import time
from concurrent.futures import Executor, Future
from pathlib import Path

from dashboard.services.errors import PartFailed
from dashboard.services.layout import Layout
from dashboard.services.part import Part, Step, how_it_ended
from dashboard.services.process import Child, start, tail

# A part that ran this long had started well; its end is bad luck, not a bad set-up.
GOOD_RUN = 10.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
BAD_STARTS = 3
PROBE_PACE = 0.1


class State(enum.Enum):
    """Where a part is on its way."""

    WAITING = "waiting for others"
    PREPARING = "preparing"
    STARTING = "starting"
    READY = "ready"
    PAUSED = "waiting before the next start"


class Keeper:
    """Starts a part when it may, finds out when it is ready, and starts it again when it ends."""

    def __init__(self, part: Part, layout: Layout, executor: Executor) -> None:
        self.part = part
        self.state = State.WAITING
        self.child: Child | None = None
        self._layout = layout
        self._executor = executor
        self._future: Future[str | None] | None = None
        self._began = time.monotonic()
        self._due = 0.0
        self._bad_starts = 0
        self._pause = FIRST_PAUSE

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def done(self) -> bool:
        """Whether those who wait for this part may start."""
        return self.state is State.READY

    def advance(self, ready: set[str], now: float) -> None:
        """Does what is due, without waiting. Raises PartFailed when the part can't be kept running."""
        match self.state:
            case State.WAITING:
                if ready.issuperset(self.part.after):
                    self._prepare(now)
            case State.PREPARING:
                if self._future and self._future.done():
                    self._future.result()
                    self._future = None
                    self._start(now)
            case State.PAUSED:
                if now >= self._due:
                    self._start(now)
            case State.STARTING | State.READY:
                self._look(now)

    def _prepare(self, now: float) -> None:
        self._began = now
        prepare = self.part.prepare
        if prepare is None:
            self._start(now)
            return
        self.state = State.PREPARING
        self._future = self._executor.submit(lambda: prepare(self._layout))

    def _start(self, now: float) -> None:
        if self.state is State.PAUSED:
            self._began = now
        self._started = now
        self._log_begin = _size(self._layout.log(self.name))
        self.child = start(self.part.command(self._layout), self._layout.log(self.name), self._layout.watchdog)
        self.state = State.STARTING

    def _look(self, now: float) -> None:
        if self.child is None:
            raise RuntimeError(f"{self.name} is {self.state.value} without a process")
        if (status := self.child.ended()) is not None:
            self._ended(how_it_ended(status), now)
        elif self.state is State.STARTING:
            self._ask(now)
        elif now - self._started > GOOD_RUN:
            self._bad_starts, self._pause = 0, FIRST_PAUSE

    def _ask(self, now: float) -> None:
        """Probes in the background: a probe may wait for an answer, the supervisor may not."""
        if self._future is None:
            if now >= self._due:
                self._future = self._executor.submit(lambda: self.part.probe(self._layout))
        elif self._future.done():
            line, self._future, self._due = self._future.result(), None, now + PROBE_PACE
            if line:
                self.state = State.READY
                self._layout.say(self.name, f"ready in {now - self._began:.1f} s   {line}")
        if self.state is State.STARTING and now - self._started > self.part.seconds:
            self._end_child()
            self._ended(f"was not ready after {self.part.seconds:.0f} s", now)

    def _ended(self, how: str, now: float) -> None:
        self._future = None
        self._end_child()
        lived = now - self._started
        self._bad_starts = self._bad_starts + 1 if lived < GOOD_RUN or self.state is State.STARTING else 1
        log = tail(self._layout.log(self.name), self._log_begin)
        if self._bad_starts >= BAD_STARTS:
            raise PartFailed(f"{self.name} {how}, {self._bad_starts} times in a row.\n{log}")
        self._layout.say(self.name, f"{how} after {lived:.1f} s; started again in {self._pause:.1f} s")
        self.state, self._due = State.PAUSED, now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _end_child(self) -> None:
        if self.child:
            self.child.end()
            self.child = None


class StepKeeper:
    """Runs a step once, when those it waits for are ready."""

    def __init__(self, step: Step, layout: Layout) -> None:
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
        """Whether those who wait for this step may start."""
        return self.state is State.READY

    def advance(self, ready: set[str], now: float) -> None:
        """Does what is due, without waiting. Raises PartFailed when a vital step fails."""
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
            self._layout.say(self.name, failure)


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


AnyKeeper = Keeper | StepKeeper
