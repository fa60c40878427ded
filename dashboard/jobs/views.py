"""What runs in the background: what waits, what failed, when it ran last and when it comes next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
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
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Problem
from dashboard.home.panels import readable
from dashboard.jobs.runs import (
    APPLY,
    DELIVER,
    SCAN,
    SYNC,
    JobGroup,
    JobRow,
    JobsPage,
    Runs,
    last_runs,
    log_urls,
    queue_rows,
    run_page,
    schedule_rows,
    took,
)
from dashboard.sources.labels import lasting, scan_refusal
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may, require
from registry.audit import hash_chain
from registry.drift.selectors import ScanInfo, SourceInfo, list_sources
from registry.notifications.job_log import RunInfo
from registry.notifications.models import FAILED
from registry.notifications.selectors import DeliveryUnderWay, deliveries_under_way
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import RequestInfo, list_requests
from registry.search.services import MOST, backlog
from registry.subjects.policy.registries import MirrorState, list_mirrors

logger = logging.getLogger(__name__)

SHOWN: Final = 50
#: an event that waits longer than this wasn't sealed when it should have been: the sealing runs twice a minute
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


def jobs_page(request: HttpRequest) -> JobsPage:
    """The parts, each with what the person may read; those that are of no registry for whoever may read the whole audit."""
    readable_parts = _PARTS if may(page_actor(request), "audit.read") else {key: _PARTS[key] for key in _OF_REGISTRIES}
    return JobsPage(
        frame=make_frame(request, title=gettext("Jobs")),
        groups=tuple(_part(request, key, title, about, read) for key, (title, about, read) in readable_parts.items()),
    )


def _part(
    request: HttpRequest, key: str, title: str, about: str, read: Callable[[HttpRequest], tuple[list[JobRow], str]]
) -> JobGroup:
    # outside of a transaction, one failed statement doesn't affect the next
    kept = transaction.atomic() if connection.in_atomic_block else nullcontext()
    try:
        with kept:
            rows, nothing = read(request)
    except Exception as error:  # whatever is wrong with one part, the others are what an operator needs then
        logger.exception("jobs: %s", key)
        problem = Problem(
            what=gettext("This section can’t be loaded."),
            where=str(title),
            cure=gettext("The error is in the log of the web process. The other sections are not affected."),
            detail=type(error).__name__,
        )
        return JobGroup(key=key, title=title, about=about, problem=problem)
    ordered = sorted(rows, key=lambda row: _URGENT.index(row.state) if row.state in _URGENT else len(_URGENT))
    return JobGroup(
        key=key, title=title, about=about, rows=tuple(ordered[:SHOWN]), nothing=nothing, more=max(0, len(rows) - SHOWN)
    )


def _scans(request: HttpRequest) -> tuple[list[JobRow], str]:
    sources = list_sources(by=page_actor(request))
    logs = _logs(request, SCAN)
    return [_scan(request, source, logs) for source in sources], gettext("No sources have been scanned yet.")


def _scan(request: HttpRequest, source: SourceInfo, logs: Mapping[str, str]) -> JobRow:
    scan, refused = source.last_scan, scan_refusal(page_actor(request), source)
    return JobRow(
        name=source.name,
        state=_SCANS.get(scan.state, JobState.WELL) if scan else JobState.NEVER,
        url=reverse("ui:source", args=[source.id]),
        about=source.registry,
        last_at=scan.finished_at if scan else None,
        took=_took(scan) if scan else "",
        next_at=source.next_scan_at,
        error=scan.error if scan else "",
        retry=Action(
            label=gettext("Scan now"),
            url=reverse("ui:source_scan", args=[source.id]),
            method="post",
            allowed=not refused,
            reason=refused,
            icon="scan-search",
        ),
        log_url=logs.get(str(scan.id), "") if scan else "",
    )


def _took(scan: ScanInfo) -> str:
    if scan.started_at is None or scan.finished_at is None:
        return ""
    return took((scan.finished_at - scan.started_at).total_seconds())


def _mirrors(request: HttpRequest) -> tuple[list[JobRow], str]:
    actor = page_actor(request)
    runs, mirrors = _runs(request), readable(list_mirrors(), actor)
    return [_mirror(mirror, actor, runs.get((SYNC, str(mirror.number)))) for mirror in mirrors], gettext(
        "No mirrored registries."
    )


def _mirror(mirror: MirrorState, actor: Actor, run: RunInfo | None) -> JobRow:
    if mirror.is_running:
        state = JobState.RUNNING
    elif mirror.is_queued:
        state = JobState.WAITING
    elif mirror.error:
        state = JobState.FAILED
    else:
        state = JobState.WELL if mirror.synced_at else JobState.NEVER
    return JobRow(
        name=mirror.registry,
        state=state,
        url=subjects_url(mirror.registry),
        about=gettext("every %(time)s") % {"time": lasting(mirror.every_seconds)},
        last_at=mirror.synced_at,
        took=took(run.seconds) if run else "",
        next_at=mirror.next_at,
        error=mirror.error,
        retry=refresh_action(mirror, actor),
        log_url=reverse("ui:job_run", args=[run.id]) if run else "",
    )


def _applies(request: HttpRequest) -> tuple[list[JobRow], str]:
    actor = page_actor(request)
    requests = [info for state in _REQUESTS for info in list_requests(state=state, limit=SHOWN, by=actor)]
    logs = _logs(request, APPLY)
    return [_apply(info, logs.get(str(info.id), "")) for info in requests], gettext(
        "No requests are scheduled or being applied."
    )


def _apply(info: RequestInfo, log_url: str) -> JobRow:
    url = reverse("ui:promotion", args=[info.id])
    failed = info.state == PromotionRequest.FAILED
    return JobRow(
        name=gettext("Request %(id)s") % {"id": info.id},
        state=_REQUESTS[info.state],
        url=url,
        about=gettext("%(subject)s to %(target)s") % {"subject": info.subject.qualified, "target": info.target},
        next_at=info.apply_at,
        error=info.failure,
        retry=Action(label=gettext("Resume or give up"), url=url, icon="play") if failed else None,
        log_url=log_url,
    )


def _deliveries(request: HttpRequest) -> tuple[list[JobRow], str]:
    actor = page_actor(request)
    deliveries = deliveries_under_way(actor, limit=SHOWN)
    logs = _logs(request, DELIVER)
    return [_delivery(delivery, logs.get(str(delivery.id), "")) for delivery in deliveries], gettext(
        "No pending or failed deliveries."
    )


def _delivery(delivery: DeliveryUnderWay, log_url: str) -> JobRow:
    states = {FAILED: JobState.FAILED, "sending": JobState.RUNNING}
    again = Action(
        label=gettext("Resend"),
        url=reverse("ui:webhook_replay", args=[delivery.webhook, delivery.id]),
        method="post",
        icon="send",
    )
    return JobRow(
        name=delivery.event,
        state=states.get(delivery.state, JobState.WAITING),
        url=reverse("ui:webhook", args=[delivery.webhook]),
        about=_joined(
            [delivery.webhook_name, counted(delivery.attempts, "%(n)s attempt", "%(n)s attempts")],
        ),
        last_at=delivery.created_at,
        next_at=delivery.next_attempt_at,
        error=delivery.error,
        retry=again if delivery.state == FAILED else None,
        log_url=log_url,
    )


def _joined(parts: Iterable[str]) -> str:
    return " · ".join(parts)


def _schedule(request: HttpRequest) -> tuple[list[JobRow], str]:
    return schedule_rows(_runs(request)), ""


def _queues(request: HttpRequest) -> tuple[list[JobRow], str]:
    return queue_rows(), ""


def _index(request: HttpRequest) -> tuple[list[JobRow], str]:
    behind = backlog()
    sentence = counted(behind, "%(n)s entry is out of date.", "%(n)s entries are out of date.")
    if behind >= MOST:
        sentence = gettext("More than %(n)s entries are out of date.") % {"n": f"{MOST:,}"}
    return [
        JobRow(
            name=gettext("Search index"),
            state=JobState.WAITING if behind else JobState.WELL,
            url=reverse("ui:search"),
            about=sentence if behind else gettext("Up to date."),
        )
    ], ""


def _sealing(request: HttpRequest) -> tuple[list[JobRow], str]:
    (waiting, oldest), head = hash_chain.tail(), hash_chain.head()
    late = oldest is not None and timezone.now() - oldest > SEALED_WITHIN
    sentence = counted(waiting, "%(n)s event is not sealed yet", "%(n)s events are not sealed yet")
    problem = hash_chain.truncation()
    if not problem and late and oldest is not None:
        problem = gettext(
            "The oldest has been waiting since %(at)s UTC, so no worker is sealing. Check that the worker"
            " and beat are running."
        ) % {"at": f"{oldest:%Y-%m-%d %H:%M}"}
    return [
        JobRow(
            name=gettext("Audit log seals"),
            state=JobState.FAILED if problem else JobState.WAITING if waiting else JobState.WELL,
            url=reverse("ui:audit"),
            about=_joined(
                [gettext("sealed up to position %(position)s") % {"position": f"{head.position:,}"}]
                + ([sentence] if waiting else [])
            ),
            error=problem,
        )
    ], ""


def _logs(request: HttpRequest, kind: str) -> Mapping[str, str]:
    """The addresses of logs, for whoever may open them."""
    return log_urls(_runs(request), kind)


def _runs(request: HttpRequest) -> Runs:
    """The last runs of all jobs, read once for all parts; none for who may not read the whole audit."""
    runs: Runs | None = getattr(request, "job_runs", None)
    if runs is None:
        runs = last_runs() if may(page_actor(request), "audit.read") else {}
        request.job_runs = runs  # type: ignore[attr-defined]
    return runs


_OF_REGISTRIES: Final = ("scans", "mirrors", "applies", "deliveries")
_PARTS: Final = {
    "scans": (later("Scans"), later("The last scan of each source and when the next is due."), _scans),
    "mirrors": (later("Mirrors"), later("Remote registries that are synced on a schedule."), _mirrors),
    "applies": (later("Promotions"), later("Requests that are scheduled, being applied or partly applied."), _applies),
    "deliveries": (later("Deliveries"), later("Pending and failed deliveries to your webhooks."), _deliveries),
    "index": (later("Search"), later("The index that subject search uses."), _index),
    "queues": (later("Queues"), later("Tasks that wait for a free worker."), _queues),
    "schedule": (later("Schedule"), later("Recurring jobs and the result of their last run."), _schedule),
    "sealing": (later("Audit"), later("Each committed event is added to the chain of seals."), _sealing),
}


@require_safe
def job_run(request: HttpRequest, number: int) -> HttpResponse:
    """The end of what the last run of a job logged; for who may read the whole audit, since a log is of no registry."""
    require(page_actor(request), "audit.read")
    return render(request, "jobs/run.html", {"page": run_page(request, number)})


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """What runs in the background, for who may read the audit of anything: each part with what they may read."""
    require_extent(page_actor(request), "audit.read")
    return render(request, "jobs/jobs.html", {"page": jobs_page(request)})
