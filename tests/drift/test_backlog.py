"""How far scans are behind, and when they will have caught up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dashboard.pages.sources_words import notes_on, what_was_read
from registry.drift.selectors import ScanInfo
from registry.drift.sources.backlog import Behind, behind
from registry.observations import PartitionRead

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
    assert told(read(10, 30), read(5, 10, 1), read(0, 7, topic="cats"), seconds=None) == Behind(32, 2)
    assert told(read(10, 30), before={("cats", 0): 3}) == Behind(20, 1)


def test_the_time_goes_by_what_arrives_and_what_a_scan_reads() -> None:
    # 100 came in 100 s; a scan reads 160 a minute, of which 60 make up for what arrives.
    found = told(read(160, 360), before={("orders", 0): 260})
    assert found == Behind(200, 1, 1.0, 2, "2026-11-24T12:02:00+00:00")


@pytest.mark.parametrize("came", [160 / 60 * 100, 100_000])
def test_more_arrives_than_is_read(came: float) -> None:
    found = told(read(160, 1_000_000), before={("orders", 0): 1_000_000 - round(came + 1)})
    assert (found.falls_back, found.scans, found.caught_up_at) == (True, None, None)


def test_on_demand_nothing_is_promised() -> None:
    assert told(read(160, 360), before={("orders", 0): 260}, interval=None) == Behind(200, 1, 1.0)


def test_a_time_beyond_the_calendar_is_none() -> None:
    assert told(read(1, 10**15), before={("orders", 0): 10**15}).falls_back


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Behind(1, 1), "The source is behind by 1 message. When it will have caught up can’t be told yet."),
        (
            Behind(2_000, 1, 1.0, 2, "2026-11-24T12:02:00+00:00"),
            "behind by 2,000 messages. At this pace it has caught up at about 2026-11-24 12:02 UTC, after 2 more scans.",
        ),
        (Behind(5, 1, 9.0, falls_back=True), "It won’t catch up at this pace"),
    ],
)
def test_it_is_said_on_the_page(found: Behind, words: str) -> None:
    (note,) = notes_on({"behind": found.__dict__})
    assert words in note


@pytest.mark.parametrize(
    ("unreadable", "said"),
    [
        ([], "nothing to read"),
        (["a"], "nothing read: 1 topic couldn’t be read"),
        (["a", "b"], "nothing read: 2 topics couldn’t be read"),
    ],
)
def test_what_could_not_be_read_is_never_nothing_to_read(unreadable: list[str], said: str) -> None:
    at = NOW
    read = {"nothing": True, "messages": 0, "unreadable": [{"topic": name, "reason": "away"} for name in unreadable]}
    assert what_was_read(ScanInfo(1, 1, "done", at, "tests", at, at, "", 0, 0, read, "")) == said
