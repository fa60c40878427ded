"""`/metrics` for Prometheus: requests of this process, and the state of the whole installation.

Requests are measured where they leave the web process (`MeasuredApplication`). The state comes from the database at each
scrape, one statement per metric; a metric is a row of `STATE_METRICS`. Every host reports the same state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    generate_latest,
)
from redis.exceptions import RedisError

from dashboard.database.base import own_generation
from dashboard.jobs.runs import count_waiting_tasks
from registry.access.request_origin import is_local
from registry.access.roles import may
from registry.api.authentication import authenticate
from registry.drift.models import FINDING_STATES
from registry.drift.selectors import count_findings
from registry.errors import NotSignedIn
from registry.subjects.selectors import list_registries

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

#: seconds; the goals of the benchmarks are between them
BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
REQUEST_SECONDS: Final = Histogram(
    "schemadesk_http_request_seconds",
    "Time from the whole request to the end of the response. Responses from the response cache aren't counted.",
    ["api", "status"],
    buckets=BUCKETS,
)
INFO: Final = Info("schemadesk", "The version of Schemadesk.")
INFO.info({"version": settings.PRODUCT_VERSION})


class MeasuredApplication:
    """Passes requests on, and measures each by the API and the class of its status ("none": the client left before)."""

    def __init__(self, application: Application) -> None:
        self._application = application
        #: prefix of the path → API; any other path is Confluent's
        self._prefixes = [("/ui/", "pages"), ("/api/v1/", "product"), ("/v1/projects/", "google")]
        self._prefixes += [(path, "probes") for path in ("/healthz", "/readyz", "/metrics")]
        if spring := settings.SPRING_PATH.strip("/"):
            self._prefixes.append((f"/{spring}", "spring"))

    async def __call__(self, scope: Message, receive: Any, send: Callable[[Message], Awaitable[None]]) -> None:
        """Answer a request; a lifespan event only passes through."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        status, start = "none", perf_counter()

        async def observe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = f"{message['status'] // 100}xx"
            await send(message)

        try:
            await self._application(scope, receive, observe)
        finally:
            REQUEST_SECONDS.labels(self._api(scope["path"]), status).observe(perf_counter() - start)

    def _api(self, path: str) -> str:
        return next((api for prefix, api in self._prefixes if path.startswith(prefix)), "confluent")


@dataclass(frozen=True, slots=True)
class StateMetric:
    """A gauge. Each row of its statement is a sample: the value of each label, then the number."""

    name: str
    about: str
    labels: tuple[str, ...]
    statement: str


STATE_METRICS: Final = (
    StateMetric(
        "schemadesk_source_interval_seconds",
        "How often a source is scanned; sources without a schedule are left out.",
        ("registry", "source"),
        "SELECT r.name, s.name, s.every_seconds FROM drift_source s JOIN subjects_registry r ON r.id = s.registry_id"
        " WHERE s.every_seconds IS NOT NULL",
    ),
    StateMetric(
        "schemadesk_source_scanned_timestamp_seconds",
        "When the last complete scan of a source ended; its creation, if none did.",
        ("registry", "source"),
        "SELECT r.name, s.name, extract(epoch FROM coalesce((SELECT max(c.finished_at) FROM drift_scan c"
        " WHERE c.source_id = s.id AND c.state = 'done'), s.created_at))"
        " FROM drift_source s JOIN subjects_registry r ON r.id = s.registry_id",
    ),
    StateMetric(
        "schemadesk_source_failed",
        "1 if the last scan of a source failed, 0 if it didn't.",
        ("registry", "source"),
        "SELECT r.name, s.name, (last.state = 'failed')::int FROM drift_source s"
        " JOIN subjects_registry r ON r.id = s.registry_id CROSS JOIN LATERAL (SELECT c.state FROM drift_scan c"
        " WHERE c.source_id = s.id AND c.state IN ('done', 'failed') ORDER BY c.id DESC LIMIT 1) last",
    ),
    StateMetric(
        "schemadesk_scans",
        "Scans that are queued or running.",
        ("state",),
        "SELECT state, (SELECT count(*) FROM drift_scan c WHERE c.state = k.state)"
        " FROM (VALUES ('queued'), ('running')) k(state)",
    ),
    StateMetric(
        "schemadesk_requests",
        "Open promotion requests by state.",
        ("state",),
        "SELECT state, (SELECT count(*) FROM promotions_promotionrequest r WHERE r.state = k.state)"
        " FROM (VALUES ('draft'), ('in review'), ('approved'), ('scheduled'), ('applying'), ('failed')) k(state)",
    ),
    StateMetric(
        "schemadesk_webhook_messages_waiting",
        "Messages of webhooks that aren't delivered yet.",
        (),
        "SELECT count(*) FROM notifications_delivery WHERE state IN ('queued', 'sending')",
    ),
    StateMetric(
        "schemadesk_webhook_oldest_waiting_seconds",
        "Age of the oldest of these messages.",
        (),
        "SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0) FROM notifications_delivery"
        " WHERE state IN ('queued', 'sending')",
    ),
    StateMetric(
        "schemadesk_webhooks_failing",
        "Active webhooks of which every recent attempt failed.",
        (),
        "SELECT count(*) FROM notifications_webhook WHERE active AND failing_since IS NOT NULL",
    ),
    StateMetric(
        "schemadesk_job_started_timestamp_seconds",
        "When a background task last began.",
        ("task",),
        "SELECT task, extract(epoch FROM max(started_at)) FROM notifications_jobrun GROUP BY 1",
    ),
    StateMetric(
        "schemadesk_job_failed",
        "1 if the last run of a background task failed, 0 if it didn't.",
        ("task",),
        "SELECT DISTINCT ON (task) task, (state = 'failed')::int FROM notifications_jobrun ORDER BY task, started_at DESC",
    ),
    StateMetric(
        "schemadesk_mirrors_failing",
        "Remote registries whose last sync failed.",
        (),
        "SELECT count(*) FROM subjects_registry WHERE kind = 'remote' AND sync_error <> ''",
    ),
    StateMetric(
        "schemadesk_audit_unsealed_seconds",
        "Age of the oldest audit event that isn't sealed yet.",
        (),
        "SELECT coalesce(extract(epoch FROM now() - min(at)), 0) FROM audit_auditevent WHERE position IS NULL",
    ),
)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics to callers on loopback, and to tokens that may read the audit."""
    if not is_local(request.META):
        try:
            allowed = may(authenticate(request.META, channel="product"), "audit.read")
        except NotSignedIn:
            allowed = False
        if not allowed:
            return HttpResponse("Metrics are for loopback or a token.\n", status=401, content_type="text/plain")
    state = CollectorRegistry()
    _add_state(state)
    if settings.HOT_PATH:
        _add_cache(state)
    return HttpResponse(generate_latest(REGISTRY) + generate_latest(state), content_type=CONTENT_TYPE_LATEST)


def _add_state(figures: CollectorRegistry) -> None:
    with connection.cursor() as cursor:
        for metric in STATE_METRICS:
            gauge = Gauge(metric.name, metric.about, metric.labels, registry=figures)
            cursor.execute(metric.statement)
            for *labels, value in cursor.fetchall():
                (gauge.labels(*labels) if labels else gauge).set(float(value))
    findings = Gauge("schemadesk_findings", "Findings by state.", ["state"], registry=figures)
    for state, number in {**dict.fromkeys((*FINDING_STATES, "muted"), 0), **count_findings()}.items():
        findings.labels(state).set(number)
    subjects = Gauge("schemadesk_subjects", "Subjects by registry.", ["registry"], registry=figures)
    for info in list_registries():
        subjects.labels(info.name).set(info.subjects)
    up = Gauge("schemadesk_valkey_up", "1 if Valkey answers, 0 if it doesn't.", registry=figures)
    tasks = Gauge("schemadesk_queue_tasks", "Tasks that no worker has taken yet.", ["queue"], registry=figures)
    try:
        for queue, waiting in count_waiting_tasks().items():
            tasks.labels(queue).set(waiting)
        up.set(1)
    except (RedisError, OSError):
        up.set(0)


def _add_cache(figures: CollectorRegistry) -> None:
    """Add the number of requests answered before Django, by all processes of this host."""
    about = "Requests that may be answered before Django, by whether they were."
    answers = Counter("schemadesk_answers_before_django", about, ["outcome"], registry=figures)
    hits, misses = own_generation().counted()
    answers.labels("hit").inc(hits)
    answers.labels("miss").inc(misses)
