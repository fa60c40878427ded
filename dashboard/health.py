"""Liveness and readiness."""

from __future__ import annotations

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from dashboard.demo.load import demo_failure
from dashboard.runtime.data_folder import missing_parts
from registry.api.confluent.schema_views import Root
from registry.api.outage import LAST_REFUSAL


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
