"""Runs one scan: claim, observe, judge, store. Spark reports observations; the domain decides what is drift."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque

from django.conf import settings
from django.db import connection

from registry.drift import services
from registry.drift.models import Source
from registry.drift.scan.db_retry import GONE, retry_while_database_away
from registry.drift.scan.persistence import keep_result
from registry.drift.services import ScanClaim
from registry.drift.sources import kind_of
from registry.drift.sources.base import session_of
from registry.errors import (
    BrokerUnavailable,
    InvalidSource,
    RemoteUnavailable,
    ScanInterrupted,
    SchemadeskError,
    SparkUnavailable,
)

logger = logging.getLogger(__name__)
HEARTBEAT_SECONDS = 10
PROGRESS_SECONDS = 0.5
MOST_LOGGED = 20  # topics that couldn't be read
SERVERS_FAULT = 500  # the lowest HTTP status of a server error


def perform_scan(scan_id: int) -> str:
    """Run a queued scan and return its final state, or `not claimed` if another worker has it.

    A scan of a source with a backlog also stays queued while this process runs LARGE_AT_ONCE of those: beat enqueues it
    again. So a thread is always left for sources with few new messages.

    `waiting`: its broker or Spark is away, as in a restart, and the scan is queued again for later. An expected error
    fails the scan with its reason. An unexpected one does too, and is raised so that the worker's log has its trace. A
    scan that was cancelled meanwhile, or given to another worker, stores nothing.
    """
    is_large = retry_while_database_away(lambda: services.has_backlog(scan_id))
    if is_large and not _large_slots.acquire(blocking=False):
        return "not claimed"
    try:
        return _perform_in_session(scan_id)
    finally:
        if is_large:
            _large_slots.release()


LARGE_AT_ONCE = 2  # the worker that `up` starts has one thread more (dashboard/runtime/parts.py)
_large_slots = threading.BoundedSemaphore(LARGE_AT_ONCE)


def _perform_in_session(scan_id: int) -> str:
    try:
        session = _idle_sessions.pop()
    except IndexError:
        session = uuid.uuid4().hex[:12]
    state = _perform(scan_id, session)
    if state in ("done", "not claimed"):
        _idle_sessions.append(session)
    return state


_idle_sessions: deque[str] = deque()  # names of this process's Spark sessions that no scan uses


def _perform(scan_id: int, session: str) -> str:
    claim = retry_while_database_away(lambda: services.claim_scan(scan_id, session=session))
    if claim is None:
        return "not claimed"
    try:
        source = retry_while_database_away(
            lambda: Source.objects.select_related("registry", "cluster").get(pk=claim.source_id)
        )
        with _Watch(claim) as watch:
            result = kind_of(source.kind).scan(source, tag=claim.tag, on_progress=watch.note)
        for problem in [topic.problem for topic in result.topics if topic.problem][:MOST_LOGGED]:
            logger.warning("scan %s: %s", claim.scan_id, problem)
        stored = retry_while_database_away(lambda: keep_result(claim, result))
    except SchemadeskError as error:
        message = error.message
        if _may_pass(error) and retry_while_database_away(lambda: services.postpone_scan(claim, reason=message)):
            logger.warning("scan %s waits: %s", claim.scan_id, message)
            return "waiting"
        if isinstance(read := error.details.get("slice"), int):
            retry_while_database_away(lambda: services.shrink_first_slice(claim.source_id, read=read))
        logger.warning("scan %s failed: %s", claim.scan_id, error.message)
        return _failed(claim, error.message)
    except Exception as error:
        _failed(claim, f"The scan failed unexpectedly: {type(error).__name__}. Check the worker's log.")
        raise
    logger.info("scan %s: %s", claim.scan_id, "done" if stored else "cancelled")
    return "done" if stored else "cancelled"


def interrupt_scan(tag: str) -> None:
    """Interrupt a scan's work on Spark, from any process; does nothing if Spark or the session is gone."""
    from registry.pipeline.session import USER_ID, interrupt  # imported late: the web process doesn't need PySpark

    if not settings.SPARK_REMOTE:
        return
    try:
        ended = interrupt(settings.SPARK_REMOTE, session_of(tag), USER_ID, tag)
    except (SparkUnavailable, InvalidSource) as error:  # already released, or the server is gone
        logger.info("nothing to interrupt of %s: %s", tag, error.message)
    else:
        logger.info("interrupted %s: %d operations", tag, len(ended))


def _may_pass(error: SchemadeskError) -> bool:
    """Return whether a server is away that may soon be back, as after a restart."""
    if isinstance(error, RemoteUnavailable):
        return error.status is None or error.status >= SERVERS_FAULT
    return isinstance(error, BrokerUnavailable | SparkUnavailable) and not error.details.get("is_lasting")


def _failed(claim: ScanClaim, reason: str) -> str:
    return "failed" if retry_while_database_away(lambda: services.fail_scan(claim, reason=reason)) else "cancelled"


class _Watch:
    """Renews a running scan's lease and writes its progress, from a thread with its own database connection.

    A database that is away doesn't stop the scan: the next turn tries again; without any turn, another worker gets the
    scan.
    """

    def __init__(self, claim: ScanClaim) -> None:
        self.claim = claim
        self._progress: tuple[int, int, str] | None = None
        self._phase = ""
        self._stop, self._lost = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{claim.scan_id}", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def note(self, done: int, total: int, phase: str) -> None:
        """Record progress. Raises ScanInterrupted, which ends the work on Spark, once the claim is lost."""
        if self._lost.is_set():
            raise ScanInterrupted("the scan was cancelled, or given to another worker", reason="cancelled")
        if phase != self._phase:
            self._phase = phase
            logger.info("scan %s: %s, %d of %d", self.claim.scan_id, phase, done, total)
        self._progress = (done, total, phase)

    def _run(self) -> None:
        renew_at = time.monotonic() + HEARTBEAT_SECONDS
        while not self._stop.wait(PROGRESS_SECONDS) and not self._lost.is_set():
            progress, self._progress = self._progress, None
            renews = time.monotonic() >= renew_at
            try:
                if progress is not None and not self._write(*progress):
                    self._lost.set()
                if renews and not services.renew_lease(self.claim):
                    self._lost.set()
            except GONE:
                logger.warning("could not keep the lease of scan %s", self.claim.scan_id, exc_info=True)
                connection.close()
            else:
                renew_at = time.monotonic() + HEARTBEAT_SECONDS if renews else renew_at
        connection.close()

    def _write(self, done: int, total: int, phase: str) -> bool:
        return services.note_progress(self.claim, done=done, total=total, phase=phase)
