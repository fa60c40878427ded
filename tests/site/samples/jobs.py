"""Sample data of the page of jobs."""

from __future__ import annotations

from dataclasses import replace

from dashboard.components.badges import JobState
from dashboard.components.widgets import Action, Crumb, Problem, Section
from dashboard.jobs.runs import JobRow, RunPage
from dashboard.jobs.views import JobGroup, JobsPage
from registry.notifications.job_log import RunInfo
from tests.site.samples.cast import HOSTILE, LONG, ago, frame

SCAN = Action(label="Scan now", url="/ui/sources/1/scan", method="post", icon="scan-search")
LAST = RunInfo(
    id=17, task="registry.drift.tasks.run_scan", key="17", state="failed", started_at=ago(minutes=4), finished_at=ago(minutes=3), seconds=12.4,
    error="BrokerUnavailable: see the worker's log.", left_out=14,
    lines=(
        "14:26:01 INFO registry.drift.scan.runner: scan 17: reading orders, 0 of 4",
        f"14:26:04 WARNING registry.drift.scan.runner: {HOSTILE}",
        f"14:26:12 WARNING registry.drift.scan.runner: scan 17 failed: {LONG}",
    ),
)  # fmt: skip
SCANS = JobGroup(
    key="scans",
    title="Scans",
    about="The last scan of each source and when the next is due.",
    rows=(
        JobRow(
            name="orders", state=JobState.FAILED, url="/gallery/source", about="prod", last_at=ago(minutes=4),
            seconds=12.4, run=LAST, next_at=ago(minutes=-6), error="The broker is gone: Connection refused (broker:9092)", retry=SCAN,
        ),
        JobRow(
            name=HOSTILE, state=JobState.RUNNING, url="/gallery/source", about="dev", last_at=ago(hours=2), seconds=3.0,
            next_at=ago(minutes=-1), retry=replace(SCAN, reason="Scan 17 is running."),
        ),
        JobRow(name=LONG, state=JobState.WELL, about="dev", last_at=ago(days=1), seconds=1_204.9, retry=SCAN),
        JobRow(name="payments", state=JobState.NEVER, about="staging", retry=SCAN),
    ),
    more=12,
)  # fmt: skip
PAGE = JobsPage(
    frame=frame("Jobs", Section.NONE),
    groups=(
        SCANS,
        JobGroup(
            key="mirrors",
            title="Mirrors",
            about="Remote registries that are synced on a schedule.",
            rows=(JobRow(name="mirror-eu", state=JobState.FAILED, about="every 1 minute", last_at=ago(minutes=40), error=HOSTILE),),
        ),
        JobGroup(
            key="applies",
            title="Applying",
            about="Requests that are scheduled, being applied or partly applied.",
            rows=(JobRow(name="Request 13", state=JobState.WAITING, url="/gallery/promotion", about="orders-value to prod", next_at=ago(hours=-6)),),
        ),
        JobGroup(
            key="deliveries",
            title="Deliveries",
            about="Pending and failed deliveries to your webhooks.",
            rows=(
                JobRow(
                    name="finding.opened", state=JobState.FAILED, url="/gallery/webhook", about="slack · 8 attempts",
                    last_at=ago(hours=5), error="HTTP 500", retry=Action(label="Resend", url="/ui/webhooks/x/deliveries/1/replay", method="post", icon="send"),
                ),
            ),
        ),
        JobGroup(key="index", title="Search", about="The index that subject search uses.", rows=(JobRow(name="Search index", state=JobState.WELL, url="/ui/search", about="Up to date."),)),
        JobGroup(
            key="sealing",
            title="Audit",
            about="Each committed event is added to the chain of seals.",
            rows=(JobRow(name="Audit log seals", state=JobState.WAITING, url="/ui/audit", about="sealed up to position 912 · 3 events are not sealed yet"),),
        ),
    ),
)  # fmt: skip
PAGE_QUIET = replace(
    PAGE,
    groups=tuple(
        replace(group, rows=(), more=0, nothing="No requests are scheduled or being applied.") for group in PAGE.groups
    ),
)
PAGE_BROKEN = replace(
    PAGE,
    groups=(
        replace(
            SCANS,
            rows=(),
            more=0,
            problem=Problem(
                what="This section can’t be loaded.",
                where="Scans",
                cure="The error is in the log of the web process. The other sections are not affected.",
                detail="DataError",
            ),
        ),
        *PAGE.groups[1:],
    ),
)
RUN = RunPage(frame=frame("Scan 17", Section.NONE, Crumb(label="Jobs", url="/gallery/jobs")), info=LAST)
RUN_QUIET = replace(RUN, info=replace(LAST, state="done", error="", left_out=0, lines=()))
