"""When a keeper gives a part up, over a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.runtime import PartFailed, PartMissing
from dashboard.runtime import supervisor as keepers
from dashboard.runtime.layout import Layout
from dashboard.runtime.parts import Part
from dashboard.runtime.process import Command, Watchdog
from dashboard.runtime.supervisor import GOOD_RUN, HUNG_AFTER, PartSupervisor, State

PART = Part("web", lambda layout: Command([], {}, layout.data), lambda layout: "there", seconds=60)


class AtOnce(Executor):
    """Does what is submitted at once."""

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*given, **named))
        except (PartMissing, OSError) as error:
            future.set_exception(error)
        return future


class Process:
    """A child that ends when the test says so."""

    status: int | None = None

    def ended(self) -> int | None:
        return self.status

    def end(self) -> None:
        pass


class Clock:
    """A keeper, driven by a clock that the test moves; the parts it needs are `ready`."""

    def __init__(self, tmp_path: Path, part: Part = PART, needs: frozenset[str] = frozenset()) -> None:
        self.said: list[str] = []
        layout = Layout.at(tmp_path, Watchdog(), say=lambda name, text: self.said.append(text))
        self.keeper = PartSupervisor(part, layout, AtOnce(), needs)
        self.now, self.ready = 1000.0, set(needs)

    def go(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            self.keeper.advance(self.ready, self.now)

    def run(self, seconds: float, status: int, *, within: float = 400) -> None:
        """From the next start on, a run of so many seconds that ends with a status."""
        ends = self.now + within
        while self.keeper.child is None and self.now < ends:
            self.go(0.1)
        assert self.keeper.child is not None, "it isn't started again"
        self.go(seconds)
        self.keeper.child.status = status  # type: ignore[attr-defined]
        self.go(0.1)


@pytest.fixture(autouse=True)
def processes_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "start", lambda command, log, watchdog: Process())


def test_a_good_run_is_no_bad_start(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    clock.run(GOOD_RUN + 5, -9)
    clock.run(1, 1)
    clock.run(1, 1)
    with pytest.raises(PartFailed, match=r"web ended with status 1, 3 times in a row\."):
        clock.run(1, 1)


def test_all_the_reasons_are_said(tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    clock.run(1, 1)
    clock.run(2, -9)
    wanted = "web ended with status 1, then was stopped by signal 9, then ended with status 7: 3 bad starts in a row"
    with pytest.raises(PartFailed, match=wanted):
        clock.run(1, 7)


def test_the_time_to_become_ready_begins_when_what_it_needs_is_back(tmp_path: Path) -> None:
    clock = Clock(tmp_path, replace(PART, probe=lambda layout: None), frozenset({"postgres"}))
    clock.go(30)
    clock.ready.clear()
    clock.go(300)
    assert clock.keeper.state is State.STARTING, clock.said
    clock.ready.add("postgres")
    clock.go(59)
    assert clock.keeper.state is State.STARTING, clock.said
    clock.go(2)
    assert clock.said[-1] == "was not ready after 60 s; started again in 0.5 s"


def test_an_end_just_before_the_part_it_needs_is_seen_to_be_away_is_forgiven(tmp_path: Path) -> None:
    clock = Clock(tmp_path, needs=frozenset({"postgres"}))
    for _ in range(4):
        clock.run(1, 1)
        clock.ready.clear()
        clock.go(30)
        assert clock.keeper.child is None, "it isn't started while postgres is away"
        clock.ready.add("postgres")
        clock.go(0.2)
    assert clock.keeper.child is not None


def test_a_part_that_was_away_long_ago_is_no_excuse(tmp_path: Path) -> None:
    clock = Clock(tmp_path, needs=frozenset({"postgres"}))
    clock.go(1)
    clock.ready.clear()
    clock.go(1)
    clock.ready.add("postgres")
    clock.run(100, 1)
    assert "away" not in clock.said[-1]


def test_a_preparation_that_fails_is_tried_again_where_the_others_do_without(tmp_path: Path) -> None:
    tries = []

    def prepare(layout: Layout) -> None:
        tries.append(layout)
        if len(tries) < 3:
            raise PartMissing("No Java was found.")

    clock = Clock(tmp_path, replace(PART, prepare=prepare, without="nothing is scanned"))
    clock.go(0.2)
    assert clock.keeper.missing == "No Java was found"
    assert "nothing is scanned" in clock.said[-1]
    clock.go(10)
    assert (len(tries), clock.keeper.state, clock.keeper.missing) == (3, State.READY, "")
    with pytest.raises(PartMissing):
        Clock(tmp_path, replace(PART, prepare=_never)).go(1)


def _never(layout: Layout) -> None:
    raise PartMissing("No Java was found.")


def test_the_pauses_between_tries_grow_to_minutes(tmp_path: Path) -> None:
    clock = Clock(tmp_path, replace(PART, probe=lambda layout: None, without="nothing is scanned"))
    for _ in range(12):
        clock.run(0.5, 1)
    assert clock.said[-1] == "ended with status 1; tried again in 300.0 s"


def test_a_file_that_cannot_be_read_ends_nothing_that_others_do_without(tmp_path: Path) -> None:
    def unreadable(layout: Layout) -> None:
        raise PermissionError(13, "Permission denied", "spark.jar")

    clock = Clock(tmp_path, replace(PART, name="spark", prepare=unreadable, without="nothing is scanned"))
    clock.go(1)
    assert clock.keeper.missing == "spark can't start: [Errno 13] Permission denied: 'spark.jar'"
    assert any("NOT RUNNING" in text for text in clock.said)
    vital = Clock(tmp_path, replace(PART, prepare=unreadable))
    with pytest.raises(PartFailed, match=r"web can't start: .*spark\.jar"):
        vital.go(1)


class Replies:
    """The probe of a part that answers when the test says so."""

    is_there = True

    def __call__(self, layout: Layout) -> str | None:
        return "there" if self.is_there else None


def test_a_part_that_runs_but_hangs_is_reported_and_restarted_like_one_that_ends(tmp_path: Path) -> None:
    replies = Replies()
    clock = Clock(tmp_path, replace(PART, answer=replies, without="nothing is queued"))
    clock.go(100)
    hung, replies.is_there = clock.keeper.child, False
    clock.go(HUNG_AFTER - 12)
    log = tmp_path / "logs" / "web.log"
    assert clock.said[1].startswith("has not answered for 60 s.")
    assert all(text.endswith(f"It is restarted after 180 s. Its log: {log}") for text in clock.said[1:])
    assert (clock.keeper.missing, clock.keeper.done, clock.keeper.child) == ("doesn't answer", True, hung)
    clock.go(12)
    assert "did not answer for 180 s; started again in 0.5 s" in clock.said
    replies.is_there = True
    clock.go(1)
    assert (clock.keeper.state, clock.keeper.missing) == (State.READY, "")
    assert clock.keeper.child is not hung


def test_a_slow_reply_now_and_then_is_no_hang(tmp_path: Path) -> None:
    replies = Replies()
    clock = Clock(tmp_path, replace(PART, answer=replies))
    clock.go(1)
    for _ in range(5):
        replies.is_there = False
        clock.go(HUNG_AFTER - 20)
        replies.is_there = True
        clock.go(20)
        assert "answers again after" in clock.said[-1]
    assert not any("started again" in text for text in clock.said)


def test_time_in_which_the_supervisor_was_suspended_does_not_count(tmp_path: Path) -> None:
    replies = Replies()
    clock = Clock(tmp_path, replace(PART, answer=replies))
    clock.go(1)
    replies.is_there = False
    clock.now += 3600
    clock.go(20)
    assert clock.said == clock.said[:1]


def test_a_part_that_hangs_because_of_another_is_left_alone(tmp_path: Path) -> None:
    replies = Replies()
    clock = Clock(tmp_path, replace(PART, answer=replies), frozenset({"postgres"}))
    clock.go(1)
    replies.is_there = False
    clock.go(100)  # by then postgres is told
    clock.ready.clear()
    clock.go(1000)
    assert clock.said == clock.said[:1], "it is told after twice the time"
    clock.ready.add("postgres")
    clock.go(100)
    assert "did not answer for 180 s; started again in 0.5 s" in clock.said


def test_a_probe_that_fails_itself_ends_nothing(tmp_path: Path) -> None:
    def broken(layout: Layout) -> str | None:
        raise FileNotFoundError(2, "No such file or directory", "beat")

    clock = Clock(tmp_path, replace(PART, answer=broken))
    clock.go(300)
    assert clock.keeper.state is State.READY
    assert clock.said[-1] == "can't be probed: [Errno 2] No such file or directory: 'beat'"
