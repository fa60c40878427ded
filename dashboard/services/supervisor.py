"""Runs the parts: starts them in their order, keeps them running, and ends them in order."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from dashboard.services.console import Console
from dashboard.services.keeper import AnyKeeper, Keeper, StepKeeper
from dashboard.services.layout import Layout
from dashboard.services.part import Part, Step
from dashboard.services.process import end_children
from dashboard.services.watchdog import end_sessions

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUICK, SLOW = 0.05, 1.0  # seconds between two looks while something is starting, and later
LOG_PACE = 60.0


class Supervisor:
    """`ready` is said once, when every part and step is."""

    def __init__(self, layout: Layout, items: Sequence[Part | Step], console: Console, ready: str) -> None:
        self._layout = layout
        self._console = console
        self._ready = ready
        self._executor = ThreadPoolExecutor(max_workers=8, thread_name_prefix="part")
        self._stop_signal = 0
        self._wake = -1
        names = {item.name for item in items}
        self._keepers: list[AnyKeeper] = []
        for item in items:
            if unknown := set(item.after) - names:
                raise ValueError(f"{item.name} waits for {unknown}, which isn't among the parts")
            keeper = Keeper(item, layout, self._executor) if isinstance(item, Part) else StepKeeper(item, layout)
            self._keepers.append(keeper)

    def run(self) -> int:
        """Runs until a signal says stop; 0 then. Raises PartFailed, everything being ended, when a part can't run."""
        for keeper in self._keepers:
            self._layout.turn_log(keeper.name)
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
            done = {keeper.name for keeper in self._keepers if keeper.done}
            for keeper in self._keepers:
                keeper.advance(done, now)
            if self._layout.watchdog.revive():
                self._console.say("watchdog", "ended; started again")
            if now >= logs_due:
                logs_due = now + LOG_PACE
                for keeper in self._keepers:
                    self._layout.trim_log(keeper.name)
            pending = [keeper for keeper in self._keepers if not keeper.done]
            names = [keeper.name for keeper in pending if not keeper.part.late]
            self._console.wait(f"waiting for {', '.join(names)} … {now - began:.0f} s" if names else "")
            if not names and not announced:
                announced = True
                self._console.say("", self._ready)
            self._sleep(QUICK if pending else SLOW)

    def _sleep(self, seconds: float) -> None:
        """Until something happens: a signal, the end of a child, or the time is over."""
        if select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals wake the loop through a pipe: a handler that takes locks could meet the code that holds them."""
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
            # Asked again: no more waiting for anybody. PostgreSQL and Kafka repair themselves at the next start.
            for keeper in self._keepers:
                if child := keeper.child:
                    with suppress(ProcessLookupError):
                        os.killpg(child.pid, signal.SIGKILL)
        self._stop_signal = self._stop_signal or number

    def _end(self) -> None:
        """Ends what nobody depends on, then what only those depended on, and so on."""
        self._stop_signal = self._stop_signal or signal.SIGTERM
        began = time.monotonic()
        self._console.say("", "stopping")
        left = list(self._keepers)
        while left:
            needed = {name for keeper in left for name in keeper.part.after}
            wave = [keeper for keeper in left if keeper.name not in needed]
            end_children([keeper.child for keeper in wave if keeper.child])
            left = [keeper for keeper in left if keeper not in wave]
        # What a part was doing before its start (initdb, fetching) has no keeper's child.
        watchdog = self._layout.watchdog
        while remaining := watchdog.watched():
            end_sessions(remaining)
            for leader in remaining:
                watchdog.forget(leader)
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._console.say("", f"stopped in {time.monotonic() - began:.1f} s")
