"""The logs of background tasks.

The last lines of each task's last run are stored, so that people can read them without a shell. A worker records its
own tasks; web processes and commands don't. Possible secrets are masked before they are stored, and only the type of an
exception is stored, since its text may contain user data. If a log can't be written, that is only logged: a task never
fails because of its log.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from celery import signals
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from registry.frozen_rows import row_info
from registry.notifications.models import JobRun
from registry.notifications.services import storable

logger = logging.getLogger(__name__)
MOST_LINES: Final = 200
LONGEST_LINE: Final = 400
KEPT: Final = timedelta(days=14)
#: a task that succeeded without any output isn't stored again within this time: some run every few seconds
QUIET_SECONDS: Final = 30.0
#: these loggers log the start and end of each task, and whole exceptions
NOT_OURS: Final = ("celery.", "kombu.")
MASK: Final = "…"
_SECRET: Final = re.compile(
    r"(?i)((?:password|passwd|pwd|secret|token|api[_-]?key|authorization|credential)s?[\"']?\s*(?:[:=]|\bis\b)\s*)"
    r"(?:(?:basic|bearer)\s+)?[^\s,;&]+"
    r"|\b(bearer|basic)\s+[A-Za-z0-9+/=_.~-]{6,}"
    r"|(://)[^/\s@]+@"
    r"|\b(whsec_|sd_)[A-Za-z0-9+/=_-]+"
)


@dataclass
class _Run:
    """A running task, with the last lines that it logged."""

    task: str
    key: str
    started_at: datetime
    began: float
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    line_count: int = 0


class _CurrentRun(threading.local):
    """The run of this thread."""

    run: _Run | None = None


_here = _CurrentRun()
_noted: dict[tuple[str, str], tuple[str, float]] = {}


class TailHandler(logging.Handler):
    """A handler that stores what a task logs, in the thread that runs it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Store the masked line; an invalid line never fails the task."""
        run = _here.run
        if run is None or record.name.startswith(NOT_OURS):
            return
        try:
            run.lines.append(line_of(record))
            run.line_count += 1
        except (TypeError, ValueError, KeyError):  # a message that its arguments don't fit
            self.handleError(record)


def line_of(record: logging.LogRecord) -> str:
    """Format a record as one line: time, level, logger and message; of an exception only the type."""
    at = datetime.fromtimestamp(record.created, tz=timezone.get_default_timezone())
    error = f" ({record.exc_info[0].__name__})" if record.exc_info and record.exc_info[0] else ""
    line = masked(f"{at:%H:%M:%S} {record.levelname} {record.name}: {record.getMessage()}{error}")
    return storable(" ".join(line.split()), LONGEST_LINE)


def masked(text: str) -> str:
    """Mask anything like a password, key or token, and our own secrets."""
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, settings.EMAIL_HOST_PASSWORD):
        if secret:
            text = text.replace(secret, MASK)
    return _SECRET.sub(lambda match: f"{next((part for part in match.groups() if part), '')}{MASK}", text)


def listen() -> None:
    """Start storing what this process's tasks log; a worker calls this once, before it takes tasks."""
    logging.getLogger().addHandler(TailHandler(level=logging.INFO))
    # Celery sets the root logger's level to WARNING; ours use the level of the settings
    logging.getLogger("registry").setLevel(settings.LOG_LEVEL)
    signals.task_prerun.connect(_begin, weak=False, dispatch_uid="job_log_begin")
    signals.task_postrun.connect(_end, weak=False, dispatch_uid="job_log_end")


def _begin(task: Any = None, args: Any = (), **_: Any) -> None:
    key = str(args[0])[:100] if args else ""
    _here.run = _Run(task.name, storable(key, 100), timezone.now(), time.monotonic())


def _end(state: str = "", retval: Any = None, **_: Any) -> None:
    run, _here.run = _here.run, None
    if run is None:
        return
    failed = state not in ("SUCCESS", "IGNORED", "RETRY")
    error = f"{type(retval).__name__}: see the worker's log." if failed and isinstance(retval, BaseException) else ""
    ended = JobRun.FAILED if failed else JobRun.DONE
    last = _noted.get((run.task, run.key))
    now = time.monotonic()
    if last and last[0] == ended == JobRun.DONE and not run.line_count and now - last[1] < QUIET_SECONDS:
        return
    try:
        _keep(run, ended, error)
    except DatabaseError:
        logger.warning("what %s logged can't be kept", run.task)
        return
    if len(_noted) > 1000:
        _noted.clear()
    _noted[run.task, run.key] = ended, now


def _keep(run: _Run, state: str, error: str) -> None:
    """Store the run in place of the previous one. A run without output keeps the lines of the last one with output."""
    values: dict[str, Any] = {
        "state": state,
        "started_at": run.started_at,
        "finished_at": timezone.now(),
        "seconds": round(time.monotonic() - run.began, 3),
        "error": storable(error, 500),
    }
    if run.line_count:
        values |= {"lines": list(run.lines), "left_out": run.line_count - len(run.lines)}
    JobRun.objects.update_or_create(task=run.task, key=run.key, defaults=values)


def prune() -> None:
    """Delete old runs."""
    JobRun.objects.filter(started_at__lt=timezone.now() - KEPT).delete()


@dataclass(frozen=True)
class RunInfo:
    """A run; `lines` are the last that it logged, after `left_out` others."""

    id: int
    task: str
    key: str
    state: str
    started_at: datetime
    finished_at: datetime | None
    seconds: float
    error: str
    lines: tuple[str, ...] = ()
    left_out: int = 0


#: for all tasks together: a task has one run per key
MOST_RUNS: Final = 10_000


def runs_of(tasks: list[str]) -> dict[tuple[str, str], RunInfo]:
    """Return the last runs of the tasks, by task and key, without their lines; one query."""
    rows = JobRun.objects.filter(task__in=tasks).defer("lines").order_by("-started_at")[:MOST_RUNS]
    return {(row.task, row.key): _info(row, ()) for row in rows}


def get_run(number: int) -> RunInfo | None:
    """Return one run with its lines; None if it doesn't exist."""
    row = JobRun.objects.filter(pk=number).first()
    return _info(row, tuple(map(str, row.lines))) if row else None


def _info(row: JobRun, lines: tuple[str, ...]) -> RunInfo:
    return row_info(RunInfo, row, lines=lines)
