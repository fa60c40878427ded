"""The hunt for stale reads: its model, and a short hunt that finds none, but finds those of a broken cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from benchmarks import stale, stale_model
from benchmarks.bench import Command as Bench
from benchmarks.stale import APPLICATION, Row, hunting, running_hosts
from benchmarks.stale_model import Answer, Tracked
from benchmarks.stale_objects import mark

pytestmark = pytest.mark.requirement("GOO-2")

BOTH = frozenset("ab")


class Place:
    """A client of a host whose answers the test says."""

    server = "web"

    def __init__(self, name: str) -> None:
        self.host: Any = self
        self.name = name
        self.is_cut = False
        self.headers: dict[str, str] = {}
        self.shows: Any = 0


def thing(*statuses: int, reached: bool = True) -> Tracked:
    """Something whose writes have these statuses."""
    left = list(statuses)

    def write(tracked: Tracked, client: Any, number: int) -> Answer:
        client.shows = number if reached else client.shows
        return Answer(left.pop(0), "")

    return Tracked("thing", write, {"value": lambda tracked, client: client.shows})


def verdict(tracked: Tracked, place: Any, shows: Any) -> str:
    place.shows = shows
    return tracked.check(place, "value")[0]


@pytest.fixture
def places() -> tuple[Any, Any]:
    return Place("a"), Place("b")


def test_what_was_confirmed_is_shown_everywhere(places: tuple[Any, Any]) -> None:
    here, there = places
    tracked = thing(200, 200)
    assert [verdict(tracked, place, 0) for place in places] == ["right", "right"]
    assert tracked.step(here, BOTH, bool) == "confirmed"
    assert [verdict(tracked, place, 0) for place in places] == ["stale", "stale"]
    assert [verdict(tracked, place, 1) for place in places] == ["right", "right"]
    assert verdict(tracked, there, 2) == "stale", "nobody has written that"
    assert verdict(tracked, there, None) == "unanswered"
    assert any("write 1 at web: 200" in line for line in tracked.history)


def test_an_unknown_outcome_may_be_late_elsewhere_and_not_at_its_host(
    places: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = places
    tracked = thing(0)
    assert tracked.step(here, BOTH, bool) == "unknown"
    assert verdict(tracked, here, 0) == "stale"
    assert verdict(tracked, there, 0) == "late"
    monkeypatch.setattr(stale_model, "LATE", -1.0)
    assert verdict(tracked, there, 0) == "stale"


def test_what_was_seen_once_stays(places: tuple[Any, Any]) -> None:
    here, there = places
    tracked = thing()
    tracked.begun, tracked.by = 1, "a"
    assert [verdict(tracked, here, shown) for shown in (0, 1, 0)] == ["right", "right", "stale"]
    assert verdict(tracked, there, 0) == "late"


def test_a_host_that_is_cut_off_confirms_for_itself(places: tuple[Any, Any]) -> None:
    here, _ = places
    here.is_cut = True
    tracked = thing(200)
    assert tracked.step(here, BOTH, bool) == "confirmed"
    assert [verdict(tracked, place, 0) for place in places] == ["stale", "late"]


def test_the_highest_mark_of_an_answer_counts() -> None:
    assert Answer(200, f"{mark(3)} {mark(12)}").numbers == 12
    assert [Answer(status, mark(3)).numbers for status in (0, 503, 404, 200)] == [None, None, 0, 3]


def test_a_length_out_of_range_is_refused() -> None:
    with pytest.raises(CommandError, match="a number from"):
        call_command(Bench(), "stale", "--minutes=0")
    options = {"minutes": 1, "without": "Valkey,paused,crashed"}
    assert stale.size_of(options).faults == ("a web process killed", "PostgreSQL restarted")


@pytest.fixture(scope="module")
def site(django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
    deaf = "tests.benchmarks.deaf_application:application"
    with django_db_blocker.unblock(), running_hosts({"a": APPLICATION, "b": APPLICATION, "c": deaf}, webs=1) as running:
        yield running


def hunted(site: Any, hosts: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> tuple[Row, str]:
    """The row of a hunt over some of the hosts, and what it said."""
    monkeypatch.setattr(stale, "PAUSE", 0.05)
    said: list[str] = []
    some = replace(site, hosts={name: site.hosts[name] for name in hosts})
    (row,) = hunting(some, [("a hunt", seconds, None)], said.append, prefix=hosts)
    return row, "\n".join(said)


@pytest.mark.slow
def test_a_short_hunt_finds_no_stale_read(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row, said = hunted(site, "ab", 12, monkeypatch)
    assert (row.counts["stale"], said) == (0, "")
    assert min(row.cached, row.counts["writes"], row.counts["killed"]) > 0, row
    assert "| a hunt |" in stale.section([row])


@pytest.mark.slow
def test_a_host_that_ignores_changes_is_found(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row, said = hunted(site, "ac", 20, monkeypatch)
    assert row.counts["stale"] > 0
    assert "at web-c-1 shows" in said and "write 1 at " in said, said
