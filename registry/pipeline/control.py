"""A scan's control: its deadline, its tag, and the progress that Spark reports while it runs."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

from registry.errors import ScanInterrupted, SparkUnavailable
from registry.pipeline.session import close_session, first_line

logger = logging.getLogger(__name__)

INTERRUPT_EVERY = 0.5  # seconds: an interrupt between two operations ends nothing, so it is repeated
# Spark takes one interrupt an operation. One that comes while a cold server still compiles the query works late (11 s
# were seen) or is lost, and no second one is taken: then the session is given up, so that the caller goes on.
GIVE_UP_AFTER = 20.0  # seconds
CANCELED = "OPERATION_CANCELED"
LOST = ("StatusCode.UNAVAILABLE", "INVALID_HANDLE.SESSION")
OnProgress = Callable[[int, int, str], None]
T = TypeVar("T")


class Control(ProgressHandler):
    """Runs Spark actions of one scan under a tag, interrupts them at the deadline, passes their progress on.

    Use as a context manager around the actions. `seconds` is counted from entering it. An exception that
    `on_progress` raises ends the scan: it is kept, what runs is interrupted, and it is raised from `run`.
    """

    def __init__(
        self, session: SparkSession, *, seconds: float, tag: str | None = None, on_progress: OnProgress | None = None
    ) -> None:
        self._session = session
        self._seconds = seconds
        self._tag = tag or f"scan-{uuid.uuid4()}"
        self._on_progress = on_progress
        self._phase = ""
        self._refused: Exception | None = None
        self._expired = threading.Event()
        self._finished = threading.Event()
        self._action_over = threading.Event()  # of the last action
        self._action_over.set()
        self._ends = time.monotonic() + seconds

    def __enter__(self) -> Self:
        self._ends = time.monotonic() + self._seconds
        self._session.addTag(self._tag)
        self._session.registerProgressHandler(self)
        self._start_watch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._finished.set()
        self._session.removeProgressHandler(self)
        self._session.removeTag(self._tag)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self._ends - time.monotonic()

    def allow(self, seconds: float) -> None:
        """Leave at least so many seconds from now, though the deadline be over: for what ends a scan and is short."""
        if self.seconds_left < seconds:
            self._ends = time.monotonic() + seconds
            self._expired.clear()
            self._start_watch()

    def run(self, phase: str, action: Callable[[], T]) -> T:
        """Do one Spark action; raises ScanInterrupted at the deadline or when cancelled, SparkUnavailable when the
        server is lost, what `on_progress` raised, and Spark's own PySparkException for anything else.
        """
        self._phase = phase
        self._raise_if_ended()
        over = self._action_over = threading.Event()
        try:
            self._notify(0, 0)
            self._raise_if_ended()
            result = action()
        except (PySparkException, ValueError) as error:  # ValueError: the session was given up
            self._raise_if_ended(error)
            text = str(error)
            if CANCELED in text:
                raise ScanInterrupted(
                    f"the scan was cancelled while {phase}", reason="cancelled", phase=phase
                ) from error
            if any(mark in text for mark in LOST):
                raise SparkUnavailable(
                    f"the Spark Connect server was lost while {phase}: {first_line(error)}; the scan can be repeated"
                ) from error
            raise
        finally:
            over.set()
        self._raise_if_ended()
        return result

    def _raise_if_ended(self, cause: BaseException | None = None) -> None:
        if self._refused is not None:
            raise self._refused
        if self._expired.is_set() or self.seconds_left <= 0:
            raise ScanInterrupted(
                f"the scan reached its deadline of {self._seconds:g} s while {self._phase or 'starting'}; "
                "allow more time, or read less at once",
                reason="deadline",
                phase=self._phase,
                deadline_seconds=self._seconds,
            ) from cause

    def __call__(
        self, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        """Spark's progress handler: called with exactly these names, and an exception in it would fail the query."""
        counted = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
        if counted:
            self._notify(sum(completed for completed, _ in counted), sum(total for _, total in counted))

    def _notify(self, done: int, total: int) -> None:
        if self._on_progress is None or self._refused is not None:
            return
        try:
            self._on_progress(done, total, self._phase)
        except Exception as error:  # noqa: BLE001  whatever the caller's own code raises ends the scan and goes back to it
            self._refused = error
            threading.Thread(target=self._end, name=f"end of {self._tag}", daemon=True).start()

    def _start_watch(self) -> None:
        threading.Thread(target=self._watch, name=f"deadline of {self._tag}", daemon=True).start()

    def _watch(self) -> None:
        while (left := self.seconds_left) > 0:
            if self._finished.wait(left):
                return
        self._expired.set()
        self._end()

    def _end(self) -> None:
        """Interrupt the action that runs until it has ended; give the session up when it doesn't."""
        give_up, over = time.monotonic() + GIVE_UP_AFTER, self._action_over
        while not (over.is_set() or self._finished.is_set()):
            if time.monotonic() >= give_up:
                logger.warning("%s doesn't end after its interrupt; its session is given up", self._tag)
                close_session(self._session)
                return
            self._interrupt()
            over.wait(INTERRUPT_EVERY)

    def _interrupt(self) -> None:
        # Where the server is gone or the session closed meanwhile, the action itself ends with that error.
        with suppress(PySparkException, ValueError):
            self._session.interruptTag(self._tag)
