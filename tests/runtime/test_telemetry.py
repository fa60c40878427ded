"""Traces by OpenTelemetry: what a collector gets of a request, of the task that it queues, and of an answered repetition."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from opentelemetry import trace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dashboard import telemetry
from registry.access.roles import Actor
from registry.access.services import issue_token
from tests.waiting import until

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
#: sends requests to the web process's application, as its server would, and prints the responses
PROGRAM = f"""
import asyncio, json, os, sys
from dashboard.asgi import application

async def call(method, path, body=b"", **headers):
    sent = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    sent += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = dict(type="http", method=method, path=path, raw_path=path.encode(), query_string=b"", scheme="http",
                 http_version="1.1", headers=sent, server=("localhost", 80), client=("127.0.0.1", 1))
    received = []
    async def receive():
        return dict(type="http.request", body=body, more_body=False)
    async def send(message):
        received.append(message)
    await application(scope, receive, send)
    status, headers = received[0]["status"], {{k.decode(): v.decode() for k, v in received[0]["headers"]}}
    return status, headers, b"".join(message.get("body", b"") for message in received[1:]).decode()

async def main():
    who = {{"authorization": "Bearer " + os.environ["TOKEN"]}}
    mirror = json.dumps(dict(name="mirror", url=os.environ["REMOTE"])).encode()
    made = await call("POST", "/api/v1/registries", mirror, traceparent="00-{TRACE}-{CALLER}-01", **who)
    assert made[0] == 201, made
    from registry.api.product import registries
    def fail(*args):
        raise RuntimeError("unforeseen")
    registries.registries_for = fail
    failed = await call("GET", "/api/v1/registries", **who)
    assert failed[0] == 500, failed
    print(failed[1]["x-request-id"], flush=True)

asyncio.run(main())
"""


class Collector:
    """An OTLP collector over HTTP, which keeps what it gets."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                        collector.spans += [span for scope in resource.scope_spans for span in scope.spans]
                elif self.path == "/v1/metrics":
                    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                        collector.metrics += [metric for scope in resource.scope_metrics for metric in scope.metrics]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def named(self, pattern: str) -> list[Any]:
        return [span for span in self.spans if re.search(pattern, span.name)]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {
        item.key: item.value.string_value or item.value.int_value or item.value.bool_value for item in span.attributes
    }


@pytest.fixture
def environment(collector: Collector, tmp_path: Path) -> dict[str, str]:
    values = connection.settings_dict
    url = f"postgresql:///{values['NAME']}?host={values['HOST']}&user={values['USER']}&port={values['PORT']}"
    return {
        **os.environ,
        "DATABASE_URL": url,
        "SECRET_KEY": "x" * 50,
        "SCHEMADESK_DATA": str(tmp_path),
        "SCHEMADESK_EGRESS_ALLOW": collector.url.removeprefix("http://"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "LOG_FORMAT": "json",
    }


@pytest.mark.django_db(transaction=True)
def test_a_request_its_statements_its_task_and_its_number(
    person: Callable[[str], Actor], collector: Collector, environment: dict[str, str], system: Actor
) -> None:
    person("admin")
    environment |= {"TOKEN": issue_token(username="admin", name="t", by=system), "REMOTE": f"{collector.url}/registry"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "--app", "dashboard.celery:app", "worker", "--pool", "threads",
         "--concurrency", "1", "--queues", "default", "--without-mingle", "--without-gossip"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: collector.named("run/registry.subjects.tasks.sync_remote"))
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    (request,) = collector.named("^POST")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, CALLER), "the caller's trace goes on"
    of_trace = [span for span in collector.spans if span.trace_id == request.trace_id]
    statements = [attributes(span) for span in of_trace if "db.statement" in attributes(span)]
    assert any("INSERT INTO" in values["db.statement"] for values in statements)
    (task,) = collector.named("run/registry.subjects.tasks.sync_remote")
    assert task.trace_id == request.trace_id, "the task belongs to the request that queued it"
    below = [span for span in of_trace if span.parent_span_id == task.span_id and "db.statement" in attributes(span)]
    assert below, "the task has its statements"
    number = ran.stdout.strip()
    (failed,) = collector.named("^GET")
    assert attributes(failed)["schemadesk.request_id"] == number
    assert f'"request_id": "{number}"' in ran.stderr
    assert "http.server.duration" in {metric.name for metric in collector.metrics}


@pytest.mark.parametrize("is_cached", [True, False])
def test_an_answered_repetition_has_a_span_of_its_own(monkeypatch: pytest.MonkeyPatch, is_cached: bool) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    sent: list[Any] = []

    async def django(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    inner = telemetry.marking(django)

    async def cache(scope: Any, receive: Any, send: Any) -> None:
        await (django if is_cached else inner)({**scope}, receive, send)

    headers = [(b"traceparent", f"00-{TRACE}-{CALLER}-01".encode())]
    scope = {"type": "http", "method": "GET", "path": "/subjects", "headers": headers}
    asyncio.run(telemetry.traced(cache)(scope, None, send))  # type: ignore[arg-type]
    assert [message["status"] for message in sent] == [200]
    finished = spans.get_finished_spans()
    assert [span.name for span in finished] == (["GET cached"] if is_cached else [])
    for span in finished:
        assert f"{span.context.trace_id:032x}" == TRACE
        assert span.attributes["url.path"] == "/subjects"


def test_it_is_off_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in telemetry.VARIABLES:
        monkeypatch.delenv(name, raising=False)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        pass

    assert not telemetry.is_on()
    assert telemetry.traced(application) is application
    assert telemetry.marking(application) is application
    program = (
        "import django; django.setup(); import dashboard.asgi, sys; from django.conf import settings;"
        "print([name for name in [*sys.modules, *settings.MIDDLEWARE]"
        " if name.startswith(('opentelemetry.exporter', 'opentelemetry.instrumentation'))])"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "dashboard.settings", "SECRET_KEY": "x" * 50}
    shown = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert shown.stdout.strip() == "[]", shown.stderr[-2000:]
