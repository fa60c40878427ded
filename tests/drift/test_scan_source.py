"""`manage.py scan_source`: what CI learns of a scan."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from registry.drift import services, tasks
from registry.drift.models import Finding, Scan, Source
from registry.drift.services import scans
from registry.drift.sources import SOURCES
from registry.drift.sources.base import ScanResult
from registry.errors import BrokerUnavailable
from tests.drift.scans import READ, judged, make_source, topic
from tests.drift.test_scanning import Fake

pytestmark = pytest.mark.requirement("CARD-3")


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


def run(*words: str) -> tuple[int, str]:
    """The exit code and what was printed."""
    out = io.StringIO()
    try:
        call_command("scan_source", *words, stdout=out)
    except CommandError as error:
        return error.returncode, str(error)
    except SystemExit as error:
        return int(error.code or 0), out.getvalue()
    return 0, out.getvalue()


def finds(monkeypatch: pytest.MonkeyPatch, *found: Any, read: dict[str, Any] | None = None) -> None:
    result = ScanResult(found, read or READ, True, (topic(),))
    monkeypatch.setitem(SOURCES, "kafka", Fake(lambda _: result))


@pytest.mark.parametrize(
    ("severity", "words", "code"),
    [
        ("break", (), 1),
        ("risk", (), 0),
        ("risk", ("--fail-on", "risk"), 1),
        ("notice", ("--fail-on", "risk"), 0),
        ("break", ("--fail-on", "never"), 0),
    ],
)
def test_the_exit_code_tells_of_open_drift(
    source: Source, monkeypatch: pytest.MonkeyPatch, severity: str, words: tuple[str, ...], code: int
) -> None:
    finds(monkeypatch, judged(severity=severity))
    ended, said = run("topics", *words)
    assert ended == code
    assert "finding a" in said
    assert "1 open finding" in said


def test_what_is_decided_fails_nothing(source: Source, system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, judged())
    assert run("topics")[0] == 1
    services.acknowledge(finding_id=Finding.objects.get().pk, reason="known", by=system)
    assert run(str(source.pk))[0] == 0


def test_what_was_not_scanned_is_no_success(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, read=READ | {"nothing": True})
    assert run("topics", "--fail-on", "never")[0] == 3

    def away(_: Any) -> ScanResult:
        raise BrokerUnavailable("No Kafka broker answers at nowhere.")

    monkeypatch.setitem(SOURCES, "kafka", Fake(away))
    code, said = run("topics", "--timeout", "5")
    assert (code, "No Kafka broker answers" in said) == (3, True), "its next try is ten seconds away"
    assert run("other")[0] == 2
    assert run("topics", "--registry", "prod")[0] == 2


def test_a_scan_waits_for_a_broker_that_restarts(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def back_at_the_third(_: Any) -> ScanResult:
        tries.append(1)
        if len(tries) < 3:
            raise BrokerUnavailable("No Kafka broker answers at nowhere.")
        return ScanResult((), READ, True, (topic(),))

    monkeypatch.setattr(scans, "RETRIES", (0, 1))
    monkeypatch.setitem(SOURCES, "kafka", Fake(back_at_the_third))
    assert run("topics")[0] == 0
    tries.clear()
    monkeypatch.setattr(scans, "RETRIES", (0,))
    code, said = run("topics")
    assert (code, "No Kafka broker answers" in said, len(tries)) == (2, True, 2), "then it fails"


def test_json_has_the_scan_and_the_findings(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, judged())
    code, said = run("topics", "--format", "json")
    whole = json.loads(said)
    assert (code, whole["exit_code"], whole["scan"]["verdict"]) == (1, 1, "scanned")
    assert [finding["rule"] for finding in whole["findings"]] == ["UNKNOWN_SCHEMA_ID"]


def test_workers_do_it_and_one_waits(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(tasks.run_scan, "delay", sent.append)
    assert run("topics", "--queue")[0] == 0
    assert sent == [Scan.objects.get().pk]
    assert run("topics", "--wait", "--timeout", "0.1")[0] == 3, "not done in time"
