"""Liveness, readiness, and metrics for Prometheus."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest
from redis.exceptions import RedisError

from dashboard.database.base import own_generation
from dashboard.demo.load import demo_failure
from dashboard.runtime.data_folder import missing_parts
from registry.access.request_origin import is_local
from registry.access.roles import may
from registry.api.authentication import authenticate
from registry.api.confluent.schema_views import Root
from registry.api.outage import LAST_REFUSAL
from registry.drift.selectors import count_findings
from registry.errors import NotSignedIn
from registry.subjects.selectors import list_registries


@require_safe
def alive(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process runs."""
    return JsonResponse({"status": "alive"})


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Answer 200 if the database and Valkey answer, else 503 with the state of each.

    A write refused by the database counts as a failure for a while. A part that `up` goes on without, such as Spark, is
    reported as degraded without changing the status.
    """
    states = {"database": _database(), "valkey": _valkey()}
    ok = all(state == "ok" for state in states.values())
    missing = missing_parts(settings.DATA_DIR) if settings.UNDER_UP else {}
    degraded = {name: f"degraded: doesn't run ({reason})" for name, reason in missing.items()}
    if settings.UNDER_UP and demo_failure():
        degraded["demo"] = "degraded: failed to load (the home page says why)"
    return JsonResponse({**states, **degraded}, status=200 if ok else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('transaction_read_only') FROM django_migrations LIMIT 1")
            (read_only,) = cursor.fetchone()
    except DatabaseError as error:
        return f"doesn't answer ({type(error).__name__})"
    reason = "read-only" if read_only == "on" else LAST_REFUSAL.recent()
    return f"can't save ({reason})" if reason else "ok"


def _valkey() -> str:
    try:
        cache.get("readyz")
    except (RedisError, OSError) as error:
        return f"doesn't answer ({type(error).__name__})"
    return "ok"


@csrf_exempt
def site_or_api(request: HttpRequest) -> HttpResponse:
    """Redirect a browser from the root to the pages; give a program the API's answer."""
    if request.method == "GET" and "text/html" in request.META.get("HTTP_ACCEPT", ""):
        return redirect("ui:home")
    return Root.as_view()(request)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return Prometheus metrics to callers on loopback, and to tokens that may read the audit."""
    if not is_local(request.META):
        try:
            allowed = may(authenticate(request.META, channel="product"), "audit.read")
        except NotSignedIn:
            allowed = False
        if not allowed:
            return HttpResponse("Metrics are for loopback or a token.\n", status=401, content_type="text/plain")
    figures = CollectorRegistry()
    findings = Gauge("schemadesk_findings", "Findings by state", ["state"], registry=figures)
    for state, number in count_findings().items():
        findings.labels(state).set(number)
    subjects = Gauge("schemadesk_subjects", "Subjects by registry", ["registry"], registry=figures)
    for info in list_registries():
        subjects.labels(info.name).set(info.subjects)
    if settings.HOT_PATH:
        _count_answers(figures)
    return HttpResponse(generate_latest(figures), content_type=CONTENT_TYPE_LATEST)


def _count_answers(figures: CollectorRegistry) -> None:
    """Add the number of requests answered before Django, by all processes of this host."""
    name, about = (
        "schemadesk_answers_before_django",
        "Requests that may be answered before Django, by whether they were",
    )
    answers = Counter(name, about, ["outcome"], registry=figures)
    hits, misses = own_generation().counted()
    answers.labels("hit").inc(hits)
    answers.labels("miss").inc(misses)
