"""The last runs of background tasks: the schedule, the queues, and the end of a run's log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import redis
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.components.badges import JobState
from dashboard.components.frame import make_frame
from dashboard.components.links import crumb
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Frame
from dashboard.sources.labels import format_duration
from registry.errors import NotFound
from registry.notifications.job_log import RunInfo, get_run, runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job: its last end and duration in seconds, its next run, its error, and the action to retry it.

    `run` is its last run, for people who may read its log.
    """

    name: str
    state: JobState
    url: str = ""
    about: str = ""
    last_at: datetime | None = None
    seconds: float | None = None
    next_at: datetime | None = None
    error: str = ""
    retry: Action | None = None
    run: RunInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """The last run of a job, with the end of its log."""

    frame: Frame
    info: RunInfo

    @property
    def state(self) -> JobState:
        """The result of the run."""
        return _STATES[self.info.state]


#: timeout of a page for Valkey
SECONDS: Final = 1.0
SCAN: Final = "registry.drift.tasks.run_scan"
SYNC: Final = "registry.subjects.tasks.sync_remote"
DELIVER: Final = "registry.notifications.tasks.deliver"
APPLY: Final = "registry.promotions.tasks.apply_one"
QUEUES: Final = {"default": _("Syncs, deliveries, search index, promotions"), "scans": _("Scans")}
_STATES: Final = {"done": JobState.WELL, "failed": JobState.FAILED}
#: task with a key → title of its run's page
_TITLES: Final = {
    SCAN: _("Scan %(key)s"),
    SYNC: _("Sync of mirror %(key)s"),
    DELIVER: _("Delivery %(key)s"),
    APPLY: _("Apply request %(key)s"),
}
#: entry of beat's schedule → label
_WORDS: Final = {
    "queue-due-scans": _("Queue due scans"),
    "queue-due-syncs": _("Queue due mirror syncs"),
    "seal-audit": _("Seal the audit log"),
    "queue-due-deliveries": _("Send webhook deliveries"),
    "queue-due-digests": _("Send email digests"),
    "prune-notices": _("Remove old notices, digests and logs"),
    "prune-copies": _("Remove expired copies"),
    "prune-deployments": _("Remove old deployments"),
    "refresh-outlooks": _("Update the promotion board"),
    "apply-due": _("Apply scheduled requests"),
    "index-stale-subjects": _("Update the search index"),
    "sweep-search-index": _("Find missing search index entries"),
    "reclaim-lost-scans": _("Reassign lost scans"),
}


Runs = Mapping[tuple[str, str], RunInfo]


def last_runs() -> Runs:
    """Return the last runs of all jobs on the page, by task and key; one query."""
    scheduled = {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    return runs_of(sorted({SCAN, SYNC, APPLY, DELIVER, *scheduled}))


def schedule_rows(runs: Runs) -> list[JobRow]:
    """Return the scheduled jobs with their interval and last run."""
    plan: Mapping[str, Mapping[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    return [_scheduled(name, entry, runs.get((str(entry["task"]), ""))) for name, entry in plan.items()]


def _scheduled(name: str, entry: Mapping[str, Any], run: RunInfo | None) -> JobRow:
    seconds = entry["schedule"] if isinstance(entry["schedule"], int | float) else None
    about = gettext("every %(time)s") % {"time": format_duration(int(seconds))} if seconds else str(entry["schedule"])
    row = JobRow(name=str(_WORDS.get(name, name)), state=JobState.NEVER, about=about)
    if run is None:
        return row
    next_at = run.started_at + timedelta(seconds=seconds) if seconds else None
    row = replace(row, state=_STATES[run.state], last_at=run.finished_at, seconds=run.seconds)
    return replace(row, next_at=next_at, error=run.error, run=run)


def count_waiting_tasks() -> dict[str, int]:
    """Return the number of waiting tasks by queue; raise RedisError or OSError if Valkey is away."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS) as client:
        return {name: int(client.llen(name)) for name in QUEUES}  # type: ignore[arg-type]  # not awaited


def queue_rows() -> list[JobRow]:
    """Return the queues with the number of waiting tasks; an error row if Valkey is away."""
    try:
        waiting = count_waiting_tasks()
    except (redis.exceptions.RedisError, OSError) as error:
        sentence = gettext(
            "Can’t read the queues from Valkey: %(error)s. Workers receive no tasks until this is fixed."
        )
        said = sentence % {"error": type(error).__name__}
        return [JobRow(name=gettext("Queues"), state=JobState.FAILED, error=said)]
    return [_queue(name, number) for name, number in waiting.items()]


def _queue(name: str, waiting: int) -> JobRow:
    sentence = counted(waiting, "%(n)s task queued.", "%(n)s tasks queued.") if waiting else gettext("No tasks queued.")
    state = JobState.WAITING if waiting else JobState.WELL
    return JobRow(name=str(QUEUES[name]), state=state, about=f"{name} · {sentence}")


def _title(run: RunInfo) -> str:
    if run.task in _TITLES:
        return _TITLES[run.task] % {"key": run.key}
    plan: Mapping[str, Mapping[str, Any]] = settings.CELERY_BEAT_SCHEDULE
    named = {str(entry["task"]): str(_WORDS.get(name, name)) for name, entry in plan.items()}
    return named.get(run.task, f"{run.task.rpartition('.')[2]} {run.key}".strip())


def run_page(request: HttpRequest, number: int) -> RunPage:
    """Return the last run of a job. Raises NotFound."""
    run = get_run(number)
    if run is None:
        raise NotFound(gettext("Run not found. Logs are kept for two weeks."))
    crumbs = (crumb(gettext("Jobs"), "jobs"),)
    return RunPage(frame=make_frame(request, title=_title(run), crumbs=crumbs), info=run)
