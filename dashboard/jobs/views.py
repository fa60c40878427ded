"""Background jobs: waiting and failed ones, last and next runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.components.badges import JobState
from dashboard.components.frame import make_frame, page_actor, refresh_action
from dashboard.components.links import subjects_url
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Frame, Problem
from dashboard.home.panels import readable
from dashboard.jobs.runs import APPLY, DELIVER, SCAN, SYNC, JobRow, Runs, last_runs, queue_rows, run_page, schedule_rows
from dashboard.sources.labels import format_duration, scan_refusal
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may, require
from registry.audit import hash_chain
from registry.drift.selectors import list_sources
from registry.notifications.models import FAILED
from registry.notifications.selectors import deliveries_under_way
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import list_requests
from registry.search.services import MOST, backlog
from registry.subjects.policy.registries import MirrorState, list_mirrors

logger = logging.getLogger(__name__)

SHOWN: Final = 50
#: an event unsealed for longer is overdue: sealing runs twice a minute
SEALED_WITHIN: Final = timedelta(minutes=5)
_SCANS: Final = {
    "queued": JobState.WAITING,
    "running": JobState.RUNNING,
    "failed": JobState.FAILED,
    "cancelled": JobState.NEVER,
}
_REQUESTS: Final = {
    PromotionRequest.FAILED: JobState.FAILED,
    PromotionRequest.APPLYING: JobState.RUNNING,
    PromotionRequest.SCHEDULED: JobState.WAITING,
}
_URGENT: Final = (JobState.FAILED, JobState.RUNNING, JobState.WAITING)


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Jobs of a kind. `problem` replaces them if they couldn't be read; `more` counts omitted ones."""

    key: str
    title: str
    about: str
    nothing: str = ""
    rows: tuple[JobRow, ...] = ()
    more: int = 0
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsPage:
    """All kinds of jobs."""

    frame: Frame
    groups: tuple[JobGroup, ...]


def jobs_page(request: HttpRequest) -> JobsPage:
    """Return the jobs that the person may read; kinds without a registry only for readers of the whole audit."""
    actor = page_actor(request)
    is_whole = may(actor, "audit.read")
    runs = last_runs() if is_whole else {}
    parts = [(group, rows) for group, rows in _PARTS if is_whole or group.key in _OF_REGISTRIES]
    return JobsPage(
        frame=make_frame(request, title=gettext("Jobs")),
        groups=tuple(_part(group, rows, actor, runs) for group, rows in parts),
    )


def _part(group: JobGroup, read: Callable[[Actor, Runs], Iterable[JobRow]], actor: Actor, runs: Runs) -> JobGroup:
    # outside a transaction, one failed statement doesn't affect the next
    kept = transaction.atomic() if connection.in_atomic_block else nullcontext()
    try:
        with kept:
            rows = list(read(actor, runs))
    except Exception as error:  # any failure of one part must not hide the others from an operator
        logger.exception("jobs: %s", group.key)
        problem = Problem(
            what=gettext("This section can’t be loaded."),
            where=str(group.title),
            cure=gettext("The error is in the log of the web process. The other sections are not affected."),
            detail=type(error).__name__,
        )
        return replace(group, problem=problem)
    rows.sort(key=lambda row: _URGENT.index(row.state) if row.state in _URGENT else len(_URGENT))
    return replace(group, rows=tuple(rows[:SHOWN]), more=max(0, len(rows) - SHOWN))


def _scans(actor: Actor, runs: Runs) -> Iterable[JobRow]:
    for source in list_sources(by=actor):
        scan, refused = source.last_scan, scan_refusal(actor, source)
        url = reverse("ui:source_scan", args=[source.id])
        yield JobRow(
            name=source.name,
            state=_SCANS.get(scan.state, JobState.WELL) if scan else JobState.NEVER,
            url=reverse("ui:source", args=[source.id]),
            about=source.registry,
            last_at=scan.finished_at if scan else None,
            seconds=scan.seconds if scan else None,
            next_at=source.next_scan_at,
            error=scan.error if scan else "",
            retry=Action(label=gettext("Scan now"), url=url, method="post", reason=refused, icon="scan-search"),
            run=runs.get((SCAN, str(scan.id))) if scan else None,
        )


def _mirrors(actor: Actor, runs: Runs) -> Iterable[JobRow]:
    for mirror in readable(list_mirrors(), actor):
        run = runs.get((SYNC, str(mirror.number)))
        yield JobRow(
            name=mirror.registry,
            state=_mirror_state(mirror),
            url=subjects_url(mirror.registry),
            about=gettext("every %(time)s") % {"time": format_duration(mirror.every_seconds)},
            last_at=mirror.synced_at,
            seconds=run.seconds if run else None,
            next_at=mirror.next_at,
            error=mirror.error,
            retry=refresh_action(mirror, actor),
            run=run,
        )


def _mirror_state(mirror: MirrorState) -> JobState:
    if mirror.is_running or mirror.is_queued:
        return JobState.RUNNING if mirror.is_running else JobState.WAITING
    if mirror.error:
        return JobState.FAILED
    return JobState.WELL if mirror.synced_at else JobState.NEVER


def _applies(actor: Actor, runs: Runs) -> Iterable[JobRow]:
    for info in (info for state in _REQUESTS for info in list_requests(state=state, limit=SHOWN, by=actor)):
        url, failed = reverse("ui:promotion", args=[info.id]), info.state == PromotionRequest.FAILED
        yield JobRow(
            name=gettext("Request %(id)s") % {"id": info.id},
            state=_REQUESTS[info.state],
            url=url,
            about=gettext("%(subject)s to %(target)s") % {"subject": info.subject.qualified, "target": info.target},
            next_at=info.apply_at,
            error=info.failure,
            retry=Action(label=gettext("Resume or give up"), url=url, icon="play") if failed else None,
            run=runs.get((APPLY, str(info.id))),
        )


def _deliveries(actor: Actor, runs: Runs) -> Iterable[JobRow]:
    states = {FAILED: JobState.FAILED, "sending": JobState.RUNNING}
    for delivery in deliveries_under_way(actor, limit=SHOWN):
        attempts = counted(delivery.attempts, "%(n)s attempt", "%(n)s attempts")
        url = reverse("ui:webhook_replay", args=[delivery.webhook, delivery.id])
        again = Action(label=gettext("Resend"), url=url, method="post", icon="send")
        yield JobRow(
            name=delivery.event,
            state=states.get(delivery.state, JobState.WAITING),
            url=reverse("ui:webhook", args=[delivery.webhook]),
            about=f"{delivery.webhook_name} · {attempts}",
            last_at=delivery.created_at,
            next_at=delivery.next_attempt_at,
            error=delivery.error,
            retry=again if delivery.state == FAILED else None,
            run=runs.get((DELIVER, str(delivery.id))),
        )


def _index(actor: Actor, runs: Runs) -> Iterable[JobRow]:
    behind = backlog()
    sentence = counted(behind, "%(n)s entry is out of date.", "%(n)s entries are out of date.")
    if behind >= MOST:
        sentence = gettext("More than %(n)s entries are out of date.") % {"n": f"{MOST:,}"}
    yield JobRow(
        name=gettext("Search index"),
        state=JobState.WAITING if behind else JobState.WELL,
        url=reverse("ui:search"),
        about=sentence if behind else gettext("Up to date."),
    )


def _sealing(actor: Actor, runs: Runs) -> Iterable[JobRow]:
    (waiting, oldest), head = hash_chain.tail(), hash_chain.head()
    problem = hash_chain.truncation()
    if not problem and oldest is not None and timezone.now() - oldest > SEALED_WITHIN:
        problem = gettext(
            "The oldest has been waiting since %(at)s UTC, so no worker is sealing. Check that the worker"
            " and beat are running."
        ) % {"at": f"{oldest:%Y-%m-%d %H:%M}"}
    sealed = gettext("sealed up to position %(position)s") % {"position": f"{head.position:,}"}
    behind = counted(waiting, "%(n)s event is not sealed yet", "%(n)s events are not sealed yet")
    yield JobRow(
        name=gettext("Audit log seals"),
        state=JobState.FAILED if problem else JobState.WAITING if waiting else JobState.WELL,
        url=reverse("ui:audit"),
        about=f"{sealed} · {behind}" if waiting else sealed,
        error=problem,
    )


_OF_REGISTRIES: Final = ("scans", "mirrors", "applies", "deliveries")
_PARTS: Final[tuple[tuple[JobGroup, Callable[[Actor, Runs], Iterable[JobRow]]], ...]] = (
    (
        JobGroup(
            "scans",
            _("Scans"),
            _("The last scan of each source and when the next is due."),
            _("No sources have been scanned yet."),
        ),
        _scans,
    ),
    (
        JobGroup(
            "mirrors", _("Mirrors"), _("Remote registries that are synced on a schedule."), _("No mirrored registries.")
        ),
        _mirrors,
    ),
    (
        JobGroup(
            "applies",
            _("Promotions"),
            _("Requests that are scheduled, being applied or partly applied."),
            _("No requests are scheduled or being applied."),
        ),
        _applies,
    ),
    (
        JobGroup(
            "deliveries",
            _("Deliveries"),
            _("Pending and failed deliveries to your webhooks."),
            _("No pending or failed deliveries."),
        ),
        _deliveries,
    ),
    (JobGroup("index", _("Search"), _("The index that subject search uses.")), _index),
    (JobGroup("queues", _("Queues"), _("Tasks that wait for a free worker.")), lambda actor, runs: queue_rows()),
    (
        JobGroup("schedule", _("Schedule"), _("Recurring jobs and the result of their last run.")),
        lambda actor, runs: schedule_rows(runs),
    ),
    (JobGroup("sealing", _("Audit"), _("Each committed event is added to the chain of seals.")), _sealing),
)


@require_safe
def job_run(request: HttpRequest, number: int) -> HttpResponse:
    """Show the end of the last run's log; only for readers of the whole audit, because a log has no registry."""
    require(page_actor(request), "audit.read")
    return render(request, "jobs/run.html", {"page": run_page(request, number)})


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """Show background jobs to readers of any audit events, each kind as far as they may read it."""
    require_extent(page_actor(request), "audit.read")
    return render(request, "jobs/jobs.html", {"page": jobs_page(request)})
