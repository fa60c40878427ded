"""Traces and metrics by OpenTelemetry, sent by OTLP over HTTP: off unless an endpoint is set.

The libraries instrument Django, psycopg and Celery. A request's span has its statements below it, and a task's span
belongs to the trace of the request that queued it. `OTEL_…` variables set everything else, as in any program.
While it is off, nothing here is imported, and requests pass no further code.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from dashboard.request_ids import TELEMETRY

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: in a request's scope: a list that isn't empty once Django answers the request
REACHED: Final = "schemadesk.reached"
VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def is_on() -> bool:
    """Return whether an endpoint is set."""
    return any(os.environ.get(name) for name in VARIABLES) and os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true"


def start() -> None:
    """Instrument this program, if an endpoint is set; before Django loads its middlewares."""
    if not is_on():
        return
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    os.environ.setdefault("OTEL_SERVICE_NAME", "schemadesk")
    resource = Resource.create()
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracers)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    metrics.set_meter_provider(MeterProvider([reader], resource=resource))
    _instrument()


def _instrument() -> None:
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.instrumentation.django import DjangoInstrumentor
    from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor

    DjangoInstrumentor().instrument(response_hook=_note_request_id)
    PsycopgInstrumentor().instrument()
    CeleryInstrumentor().instrument()


def _note_request_id(span: Any, request: Any, response: Any) -> None:
    number = request.META.get(TELEMETRY)
    if number and span.is_recording():
        span.set_attribute(TELEMETRY, number)


def marking(application: Application) -> Application:
    """Return the application; it marks in the scope that the request reached it."""
    if not is_on():
        return application

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if (reached := scope.get(REACHED)) is not None:
            reached.append(True)
        await application(scope, receive, send)

    return answer


def traced(cache: Application) -> Application:
    """Return the application; requests that don't reach Django get a span too, once they are answered."""
    if not is_on():
        return cache
    from opentelemetry import trace
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    tracer = trace.get_tracer(__name__)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await cache(scope, receive, send)
        reached: list[bool] = []
        statuses: list[int] = []

        async def noting(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        began = time.time_ns()
        await cache({**scope, REACHED: reached}, receive, noting)
        if not reached:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            values = {
                "http.request.method": scope["method"],
                "url.path": scope["path"],
                "http.response.status_code": statuses[0] if statuses else 0,
                "schemadesk.cached": True,
            }
            name = f"{scope['method']} cached"
            span = tracer.start_span(
                name, context=extract(headers), kind=SpanKind.SERVER, attributes=values, start_time=began
            )
            span.end()
        return None

    return answer
