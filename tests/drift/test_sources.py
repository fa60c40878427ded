"""Sources: how far behind they are, how much of them was scanned, and `manage.py scan_source`."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from dashboard.sources.coverage import coverage_of
from dashboard.sources.labels import notes_on, what_was_read
from registry.drift import selectors, services, tasks
from registry.drift.models import Finding, Scan, Source, Topic
from registry.drift.rules import RULES
from registry.drift.selectors import ScanInfo
from registry.drift.selectors.sources import MOST_UNREADABLE, missing_right
from registry.drift.services import scans
from registry.drift.sources import SOURCES
from registry.drift.sources.base import ScanResult
from registry.drift.sources.kafka_offsets import Backlog, behind
from registry.errors import BrokerUnavailable
from registry.observations import PartitionRead
from tests.drift.scans import READ, judged, make_source, topic
from tests.drift.test_scan_runner import Fake

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
pytestmark = pytest.mark.requirement("CARD-3")


def read(end: int, high: int, partition: int = 0, topic: str = "orders", start: int = 0) -> PartitionRead:
    return PartitionRead(topic, partition, start, end, 0, high, end - start)


def told(*reads: PartitionRead, before: Any = None, seconds: float | None = 100, interval: float | None = 60) -> Any:
    return behind(reads, before or {}, now=NOW, seconds_between=seconds, interval=interval)


def test_what_is_read_to_its_end_is_not_behind() -> None:
    assert told() is None
    assert told(read(9, 9), read(0, 0, 1)) is None


def test_without_an_earlier_scan_nobody_knows_when() -> None:
    assert told(read(10, 30), read(5, 10, 1), read(0, 7, topic="cats"), seconds=None) == Backlog(32, 2)
    assert told(read(10, 30), before={("cats", 0): 3}) == Backlog(20, 1)


def test_the_time_goes_by_what_arrives_and_what_a_scan_reads() -> None:
    # 100 came in 100 s; a scan reads 160 a minute, of which 60 make up for what arrives.
    result = told(read(160, 360), before={("orders", 0): 260})
    assert result == Backlog(200, 1, 1.0, 2, "2026-11-24T12:02:00+00:00")


@pytest.mark.parametrize("came", [160 / 60 * 100, 100_000])
def test_more_arrives_than_is_read(came: float) -> None:
    result = told(read(160, 1_000_000), before={("orders", 0): 1_000_000 - round(came + 1)})
    assert (result.falls_back, result.scans, result.caught_up_at) == (True, None, None)


def test_on_demand_nothing_is_promised() -> None:
    assert told(read(160, 360), before={("orders", 0): 260}, interval=None) == Backlog(200, 1, 1.0)


def test_a_time_beyond_the_calendar_is_none() -> None:
    assert told(read(1, 10**15), before={("orders", 0): 10**15}).falls_back


@pytest.mark.parametrize(
    ("backlog", "phrases"),
    [
        (Backlog(1, 1), "The source is 1 message behind. It is not yet known when it will catch up."),
        (
            Backlog(2_000, 1, 1.0, 2, "2026-11-24T12:02:00+00:00"),
            ("2,000 messages behind. At this rate, it catches up at about 2026-11-24 12:02 UTC, after 2 more scans."),
        ),
        (Backlog(5, 1, 9.0, falls_back=True), "It won’t catch up at this rate"),
    ],
)
def test_it_is_said_on_the_page(backlog: Backlog, phrases: str) -> None:
    (note,) = notes_on({"behind": backlog.__dict__})
    assert phrases in note


@pytest.mark.parametrize(
    ("unreadable", "sentence"),
    [
        ([], "nothing to read"),
        (["a"], "nothing read: 1 topic couldn’t be read"),
        (["a", "b"], "nothing read: 2 topics couldn’t be read"),
    ],
)
def test_what_could_not_be_read_is_never_nothing_to_read(unreadable: list[str], sentence: str) -> None:
    at = NOW
    read = {"nothing": True, "messages": 0, "unreadable": [{"topic": name, "reason": "away"} for name in unreadable]}
    assert what_was_read("kafka", ScanInfo(1, 1, "done", at, "tests", at, at, "", 0, 0, read, "")) == sentence


@pytest.fixture
def source(registries: None) -> Source:
    return make_source()


#: what the cluster or Spark said of a topic, the user → the entry that is missing
RIGHTS = [
    (
        "The cluster's user can't describe topic orders. Grant it Describe and Read on that topic.",
        "scan",
        "kafka-acls --add --allow-principal User:scan --operation Describe --operation Read --topic orders",
    ),
    (
        "Topic orders couldn't be read: its reading isn't allowed to this user; grant it Read.",
        "",
        "kafka-acls --add --allow-principal User:ANONYMOUS --operation Read --topic orders",
    ),
    (
        "Topic orders couldn't be read: its offsets are unknown: it was deleted, or this user lacks Describe.",
        "scan",
        "kafka-acls --add --allow-principal User:scan --operation Describe --topic orders",
    ),
    ("Topic orders couldn't be read: its messages are gone: it was deleted meanwhile.", "scan", ""),
    ("Topic orders: Broker: Leader not available. Read it later.", "scan", ""),
]


@pytest.mark.parametrize(("problem", "user", "expected_right"), RIGHTS)
def test_the_missing_right_is_named_where_it_is_one(problem: str, user: str, expected_right: str) -> None:
    assert missing_right("orders", problem, user) == expected_right


def test_a_name_stays_one_word_of_the_command() -> None:
    command = missing_right("a'; rm -rf x", RIGHTS[0][0], "b c")
    assert command.endswith("""--topic 'a'"'"'; rm -rf x'""") and "'User:b c'" in command


def test_the_drift_page_tells_what_could_not_be_read(source: Source, look: Callable[[str], Client]) -> None:
    Topic.objects.create(source=source, name="orders", problem=RIGHTS[0][0])
    Topic.objects.create(source=source, name="customers", checked_at=timezone.now(), read_at=timezone.now())
    Topic.objects.create(source=source, name="gone", problem="x", gone_at=timezone.now())
    broken = make_source(name="other")
    Scan.objects.create(source=broken, state="failed", queued_by="x", error="The cluster didn't answer.")
    empty = make_source(name="empty")
    Scan.objects.create(source=empty, state="done", queued_by="x", read={"nothing": True}, finished_at=timezone.now())
    response = look("reader").get("/ui/findings")
    page, text = response.context["page"], html.unescape(response.content.decode())
    assert page.coverage.startswith("1 of 2 topics scanned in the last 24 h; 1 unreadable: orders")
    assert [(item.name, item.reason, bool(item.right)) for item in page.unreadable] == [
        ("orders", RIGHTS[0][0], True),
        ("other", "The cluster didn't answer.", False),
        ("empty", "The last scan read nothing, so the source counts as not scanned, not clean.", False),
    ]
    assert "--allow-principal User:ANONYMOUS --operation Describe --operation Read --topic orders" in text
    assert "pending, not drift" in text


def test_many_are_counted_and_some_reported(source: Source) -> None:
    Topic.objects.bulk_create(
        [Topic(source=source, name=f"t-{number:03}", problem="no leader") for number in range(MOST_UNREADABLE + 15)]
    )
    coverage = selectors.topic_coverage([source.pk])
    assert (coverage.unreadable_count, len(coverage.unreadable)) == (MOST_UNREADABLE + 15, MOST_UNREADABLE)


def test_a_topic_that_no_scan_has_read_is_not_counted_as_scanned(source: Source) -> None:
    now = timezone.now()
    Topic.objects.create(source=source, name="unread", checked_at=now)
    Topic.objects.create(source=source, name="read", checked_at=now, read_at=now - timedelta(days=3))
    assert (coverage := selectors.topic_coverage([source.pk])).fresh == 1
    assert coverage_of(selectors.list_sources(), coverage).startswith("1 of 2 topics scanned")


@pytest.mark.parametrize("state", ["queued", "running", "cancelled"])
def test_the_last_scan_that_ended_counts_while_another_is_queued(source: Source, state: str) -> None:
    read = {"rows": 3, "variables": [{}]}
    ended = Scan.objects.create(source=source, state="done", queued_by="x", read=read, finished_at=timezone.now())
    lease = timezone.now() if state == "running" else None
    Scan.objects.create(source=source, state=state, queued_by="x", lease_until=lease)
    (info,) = selectors.list_sources()
    assert (info.last_ended and info.last_ended.id, info.last_scan and info.last_scan.state) == (ended.pk, state)
    assert coverage_of([info]) == "1 of 1 source scanned in the last 24 h."


#: each kind of drift that there is to find → the rules that find it
KINDS = {
    "unknown id": ("UNKNOWN_SCHEMA_ID",),
    "id of other subject": ("ID_OF_OTHER_SUBJECT", "ID_OF_OTHER_CONTEXT"),
    "id registered without a request": ("ID_NOT_RELEASED", "ID_QUARANTINED", "REGISTERED_WITHOUT_PROMOTION"),
    "id below minimum or retired": (
        "ID_BELOW_MINIMUM_VERSION", "ID_RETIRED", "ID_DEPRECATED", "OLD_VERSION_WRITTEN", "ID_DELETED",
    ),
    "unframed or wrong magic byte": ("UNFRAMED_DATA", "FRAME_TRUNCATED", "FRAMED_TWICE", "FRAMING_MIXED"),
    "undecodable": ("UNDECODABLE", "SCHEMA_VIOLATED", "MESSAGE_NOT_READ", "NOT_JSON"),
    "undeclared field": ("FIELD_UNDECLARED",),
    "type, null-rate, enum drift": (
        "FIELD_TYPE_WRONG", "FIELD_TYPE_NEW", "NULL_SHARE_INCREASED", "ENUM_VALUE_UNDECLARED", "ENUM_SHARE_SHIFTED",
    ),
    "field never populated any more": ("FIELD_NEVER_FILLED",),
    "state differs from input": ("STATE_DIFFERS_FROM_SUBJECT", "STATE_FIELD_DROPPED", "STATE_EVOLVED_UNRELEASED"),
    "state value or key incompatible": ("STATE_CANNOT_EVOLVE", "STATE_KEY_AT_RISK"),
    "DDL changed but no new schema": ("COLUMN_ADDED", "COLUMN_DROPPED", "COLUMN_TYPE_CHANGED", "COLUMN_RENAMED"),
    "compatibility or mode changed": ("LEVEL_RELAXED", "MODE_RELAXED"),
    "same subject differs between environments": ("ENVIRONMENTS_DIFFER",),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_drift_has_rules(kind: str) -> None:
    assert set(KINDS[kind]) <= set(RULES)


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and what was printed."""
    out = io.StringIO()
    try:
        call_command("scan_source", *arguments, stdout=out)
    except CommandError as error:
        return error.returncode, str(error)
    except SystemExit as error:
        return int(error.code or 0), out.getvalue()
    return 0, out.getvalue()


def finds(monkeypatch: pytest.MonkeyPatch, *findings: Any, read: dict[str, Any] | None = None) -> None:
    result = ScanResult(findings, read or READ, True, (topic(),))
    monkeypatch.setitem(SOURCES, "kafka", Fake(lambda _: result))


@pytest.mark.parametrize(
    ("severity", "phrases", "code"),
    [
        ("break", (), 1),
        ("risk", (), 0),
        ("risk", ("--fail-on", "risk"), 1),
        ("notice", ("--fail-on", "risk"), 0),
        ("break", ("--fail-on", "never"), 0),
    ],
)
def test_the_exit_code_tells_of_open_drift(
    source: Source, monkeypatch: pytest.MonkeyPatch, severity: str, phrases: tuple[str, ...], code: int
) -> None:
    finds(monkeypatch, judged(severity=severity))
    ended, output = run("topics", *phrases)
    assert ended == code
    assert "finding a" in output
    assert "1 open finding" in output


def test_what_is_decided_fails_nothing(source: Source, system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, judged())
    assert run("topics")[0] == 1
    services.acknowledge(finding_id=Finding.objects.get().pk, reason="known", by=system)
    assert run(str(source.pk))[0] == 0


@pytest.mark.parametrize(
    ("messages", "asked", "read", "says"),
    [
        (0, 1, 0, ": no new messages in 1 topic\n"),
        (0, 2, 0, ": no new messages in 2 topics\n"),
        (5, 3, 1, ": 5 messages of 1 topic in"),
    ],
)
def test_how_much_was_read_is_said(
    source: Source, monkeypatch: pytest.MonkeyPatch, messages: int, asked: int, read: int, says: str
) -> None:
    finds(monkeypatch, read=READ | {"messages": messages, "topics_asked": asked, "topics_read": read})
    assert says in run("topics")[1]


def test_what_was_not_scanned_is_no_success(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, read=READ | {"nothing": True})
    assert run("topics", "--fail-on", "never")[0] == 3

    def away(_: Any) -> ScanResult:
        raise BrokerUnavailable("No Kafka broker answers at nowhere.")

    monkeypatch.setitem(SOURCES, "kafka", Fake(away))
    code, output = run("topics", "--timeout", "5")
    assert (code, "No Kafka broker answers" in output) == (3, True), "its next try is ten seconds away"
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
    code, output = run("topics")
    assert (code, "No Kafka broker answers" in output, len(tries)) == (2, True, 2), "then it fails"


def test_json_has_the_scan_and_the_findings(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, judged())
    code, output = run("topics", "--format", "json")
    whole = json.loads(output)
    assert (code, whole["exit_code"], whole["scan"]["verdict"]) == (1, 1, "scanned")
    assert [finding["rule"] for finding in whole["findings"]] == ["UNKNOWN_SCHEMA_ID"]


def test_workers_do_it_and_one_waits(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(tasks.run_scan, "delay", sent.append)
    assert run("topics", "--queue")[0] == 0
    assert sent == [Scan.objects.get().pk]
    assert run("topics", "--wait", "--timeout", "0.1")[0] == 3, "not done in time"
