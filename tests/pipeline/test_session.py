"""Deadlines, interrupts and lost servers, with queries that would run for hours."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from registry.errors import ScanInterrupted, SparkUnavailable
from registry.pipeline import USER_ID, interrupt
from registry.pipeline.session import Control, close_session, kept_session, open_session, parse_remote, session_for
from tests.waiting import ends_soon

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def session(spark_remote: str) -> Iterator[Any]:
    opened = open_session(spark_remote)
    yield opened
    close_session(opened)


def endless(session: Any) -> Callable[[], Any]:
    """A query of many small tasks that together take hours."""
    return session.range(0, 10**13, 1, 100_000).selectExpr("sum(sqrt(id) * sin(id))").collect


def test_the_deadline_ends_what_runs(session: Any) -> None:
    with ends_soon(60):
        with (
            Control(session, seconds=2) as control,
            pytest.raises(ScanInterrupted, match="deadline of 2 s while counting") as caught,
        ):
            control.run("counting", endless(session))
    assert caught.value.details["reason"] == "deadline"
    assert session.range(3).count() == 3


def test_nothing_starts_after_the_deadline(session: Any) -> None:
    with Control(session, seconds=0.2) as control:
        time.sleep(0.4)
        with pytest.raises(ScanInterrupted):
            control.run("too late", lambda: pytest.fail("it ran"))


def test_another_process_ends_a_scan_by_its_tag(spark_remote: str) -> None:
    session_id, tag = str(uuid.uuid4()), "scan-of-a-test"
    own = open_session(spark_remote, session_id=session_id)
    started = threading.Event()
    ended: list[list[str]] = []

    def other() -> None:
        started.wait(60)
        time.sleep(1)
        ended.append(interrupt(spark_remote, session_id, USER_ID, tag))

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with Control(own, seconds=60, tag=tag, on_progress=lambda *_: started.set()) as control:
            with pytest.raises(ScanInterrupted, match="was cancelled while counting") as caught:
                control.run("counting", endless(own))
    finally:
        thread.join()
        close_session(own)
    assert caught.value.details["reason"] == "cancelled"
    assert len(ended[0]) == 1


def test_a_tag_ends_only_its_own_scan(session: Any, spark_remote: str) -> None:
    with Control(session, seconds=60, tag="mine") as control:
        assert interrupt(spark_remote, session.session_id, USER_ID, "another's") == []
        assert control.run("counting", session.range(5).count) == 5


def test_what_the_callers_progress_raises_ends_the_scan_and_comes_back(session: Any) -> None:
    class LeaseLostError(Exception):
        pass

    def report(done: int, total: int, phase: str) -> None:
        if total:
            raise LeaseLostError

    with ends_soon(60):
        with Control(session, seconds=60, on_progress=report) as control, pytest.raises(LeaseLostError):
            control.run("counting", endless(session))
    assert session.range(3).count() == 3


def test_a_server_that_does_not_heed_the_interrupt_is_given_up(
    session: Any, monkeypatch: pytest.MonkeyPatch, spark_remote: str
) -> None:
    monkeypatch.setattr("registry.pipeline.session.GIVE_UP_AFTER", 1.0)
    monkeypatch.setattr(Control, "_interrupt", lambda self: None)
    with ends_soon(60):
        with Control(session, seconds=2) as control, pytest.raises(ScanInterrupted, match="deadline of 2 s"):
            control.run("counting", endless(session))
    again = open_session(spark_remote)
    assert again.range(3).count() == 3
    close_session(again)


def test_a_wrong_token_is_refused_with_words_and_without_the_token(spark_remote: str) -> None:
    url = parse_remote(spark_remote).url(token="wrong-and-secret")
    with pytest.raises(SparkUnavailable, match="refused the session") as caught:
        open_session(url)
    assert "wrong-and-secret" not in caught.value.message


def test_a_session_is_kept_until_something_fails_in_it_and_then_has_a_successor(spark_remote: str) -> None:
    named = str(uuid.uuid4())
    with session_for(spark_remote, named) as first:
        assert first.session_id == named
    with session_for(spark_remote, named) as again:
        assert again is first, "it stays warm"
    with pytest.raises(LookupError), session_for(spark_remote, named):
        raise LookupError
    with session_for(spark_remote, named) as after, Control(after, seconds=60, tag="own") as control:
        assert first.client.is_closed
        assert after.session_id != named, "Spark doesn't open an id twice"
        assert control.run("counting", after.range(3).count) == 3
        assert interrupt(spark_remote, named, USER_ID, "own") == [], "others find the successor by the same id"
        after.client.release_session()  # as a server does with one that nobody uses
    with session_for(spark_remote, named) as last:
        assert last.range(3).count() == 3
        assert last.session_id not in (named, after.session_id)
    close_session(last)


def test_replays_keep_a_session_and_never_share_it(spark_remote: str) -> None:
    with kept_session(spark_remote) as first, kept_session(spark_remote) as second:
        ids = {first.session_id, second.session_id}
    assert len(ids) == 2
    with kept_session(spark_remote) as third:
        assert third.session_id in ids
        assert third.range(3).count() == 3
