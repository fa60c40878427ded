"""Metrics for Prometheus: what is measured, and that alerts and the dashboard ask for metrics that there are."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from dashboard.metrics import STATE_METRICS, MeasuredApplication
from registry.drift.models import Scan
from registry.notifications.models import JobRun
from tests.drift.scans import make_source

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())["groups"][0]["rules"]
PANELS = json.loads((DEPLOY / "grafana/schemadesk.json").read_text())["panels"]
EXPRESSIONS = {rule["alert"]: rule["expr"] for rule in RULES} | {
    panel["title"]: target["expr"] for panel in PANELS for target in panel["targets"]
}
#: metrics of Prometheus itself, labels that it adds, and the words of its language
OTHERS = {"up", "job", "instance", "le"}


def samples() -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(Client().get("/metrics").content.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


@pytest.fixture
def installation(registries: None, settings: Any) -> None:
    """A scheduled source whose last scan failed, a task that ran, and a request that was answered."""
    settings.HOT_PATH = True
    source = make_source(name="orders")
    source.every_seconds = 300
    source.save()
    now = timezone.now()
    Scan.objects.create(source=source, state="done", queued_by="a", started_at=now, finished_at=now, read={})
    Scan.objects.create(source=source, state="failed", queued_by="a", started_at=now, finished_at=now, error="away")
    JobRun.objects.create(task="sync", state="failed", started_at=now)
    ask("/subjects", [200])


async def _answer(statuses: list[int], send: Any) -> None:
    for status in statuses:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def ask(path: str, statuses: list[int]) -> None:
    """One request; without a status, the client leaves before there is a response."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await _answer(statuses, send)

    async def send(message: Any) -> None:
        pass

    asyncio.run(MeasuredApplication(application)({"type": "http", "path": path}, None, send))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "statuses", "api", "status"),
    [
        ("/subjects/a/versions", [200], "confluent", "2xx"),
        ("/schemas/ids/1", [404], "confluent", "4xx"),
        ("/api/v1/findings", [503], "product", "5xx"),
        ("/v1/projects/p/locations/l", [200], "google", "2xx"),
        ("/spring/orders/avro", [200], "spring", "2xx"),
        ("/ui/", [302], "pages", "3xx"),
        ("/readyz", [200], "probes", "2xx"),
        ("/subjects", [], "confluent", "none"),
    ],
)
def test_a_request_counts_for_its_api_and_status(path: str, statuses: list[int], api: str, status: str) -> None:
    def count() -> float:
        return REGISTRY.get_sample_value("schemadesk_http_request_seconds_count", {"api": api, "status": status}) or 0

    before = count()
    ask(path, statuses)
    assert count() == before + 1


@pytest.mark.usefixtures("installation")
def test_every_metric_is_reported_with_its_labels() -> None:
    found = samples()
    assert {metric.name for metric in STATE_METRICS} <= set(found)
    wrong = {
        metric.name
        for metric in STATE_METRICS
        for labels, _ in found.get(metric.name, [])
        if set(labels) != set(metric.labels)
    }
    assert not wrong
    assert found["schemadesk_source_failed"] == [({"registry": "dev", "source": "orders"}, 1.0)]
    assert found["schemadesk_source_interval_seconds"] == [({"registry": "dev", "source": "orders"}, 300.0)]
    assert found["schemadesk_job_failed"] == [({"task": "sync"}, 1.0)]
    assert abs(found["schemadesk_source_scanned_timestamp_seconds"][0][1] - timezone.now().timestamp()) < 60
    assert found["schemadesk_valkey_up"] == [({}, 1.0)]
    assert {labels["queue"] for labels, _ in found["schemadesk_queue_tasks"]} == {"default", "scans"}


def _selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics of an expression, with the labels that select their samples."""
    for name, labels in re.findall(r"\b([a-z_]+)\{([^}]*)\}", expression):
        yield name, set(re.findall(r"(\w+)\s*=", labels))


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_alerts_and_panels_ask_for_metrics_and_labels_that_there_are(name: str) -> None:
    found = samples()
    asked = list(_selectors(EXPRESSIONS[name]))
    assert asked
    for metric, labels in asked:
        if metric == "up":
            continue
        assert metric in found, metric
        grouped = {label for by in re.findall(r"by \(([^)]*)\)", EXPRESSIONS[name]) for label in re.split(r",\s*", by)}
        known = set(found[metric][0][0]) | OTHERS
        assert labels <= known, (metric, labels - known)
        assert grouped <= known, (metric, grouped - known)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here")
def test_prometheus_accepts_the_alerts_and_each_fires_for_its_fault_alone() -> None:
    for arguments in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
        run = subprocess.run(
            ["promtool", *arguments], check=False, cwd=DEPLOY / "prometheus", capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout + run.stderr
    fired = yaml.safe_load((DEPLOY / "prometheus/alerts_test.yaml").read_text())["tests"][1]["promql_expr_test"]
    names = {re.search(r'"(\w+)"', sample["labels"])[1] for sample in fired[0]["exp_samples"]}  # type: ignore[index]
    assert names == {rule["alert"] for rule in RULES}


def test_each_alert_says_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["action"].endswith(".")
