"""Who waits for a database that is away, and how long: the pool's attempts are played by the test."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from dashboard.database import circuit_breaker
from dashboard.database.circuit_breaker import (
    DatabaseUnreachable,
    LogThrottle,
    Reach,
    Replies,
    WatchedConnection,
    hangs,
    is_ended,
)
from tests.waiting import PATIENCE, ends_soon, until

pytestmark = pytest.mark.requirement("CARD-1")


def waits(found: Reach, seconds: float) -> tuple[threading.Thread, list[str]]:
    """Somebody who waits in a thread, and what came of it."""
    said: list[str] = []

    def work() -> None:
        try:
            found.wait(seconds)
            said.append("there")
        except DatabaseUnreachable:
            said.append("away")

    thread = threading.Thread(target=work)
    thread.start()
    return thread, said


def test_who_waits_goes_on_as_soon_as_it_is_back() -> None:
    found = Reach()
    found.wait(0.01)  # it is there
    found.note_away()
    threads = [waits(found, PATIENCE * 10) for _ in range(3)]
    found.note_there()
    with ends_soon():
        for thread, said in threads:
            thread.join()
            assert said == ["there"]


def test_after_its_time_nobody_waits_any_more() -> None:
    found = Reach()
    found.note_away()
    thread, said = waits(found, 0.05)
    thread.join()
    assert said == ["away"]
    found.note_away()  # of another attempt: it has been away since the first
    with pytest.raises(DatabaseUnreachable):
        found.wait(0.05)
    found.note_there()
    found.wait(0.05)


@pytest.fixture
def parameters(db: None) -> Iterator[dict[str, Any]]:
    yield {**connection.get_connection_params(), "autocommit": True}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Reach:
    found = Reach()
    monkeypatch.setattr(circuit_breaker, "REACH", found)
    return found


def test_the_pool_tries_again_without_a_growing_pause_until_it_is_back(
    parameters: dict[str, Any], known: Reach
) -> None:
    """The server's address is wrong at first: attempts go on without anybody asking, and the first right one ends it."""
    tries: list[bool] = []
    is_there = threading.Event()

    def current() -> dict[str, Any]:
        tries.append(is_there.is_set())
        return parameters if is_there.is_set() else {**parameters, "host": "/nowhere"}

    pool = ConnectionPool(
        kwargs=current, min_size=1, max_size=2, open=False, timeout=5, reconnect_timeout=circuit_breaker.BETWEEN,
        reconnect_failed=circuit_breaker.try_again, configure=lambda _: known.note_there(),
    )  # fmt: skip
    with pool:
        until(lambda: len(tries) > 8)
        with pytest.raises(DatabaseUnreachable):
            known.wait(0.01)
        is_there.set()
        with ends_soon():
            known.wait(PATIENCE)
            with pool.connection(PATIENCE) as found:
                assert found.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("is_hung", [False, True])
def test_a_long_statement_goes_on_unless_the_server_hangs(
    parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch, is_hung: bool
) -> None:
    reach = Reach()
    replies = Replies(reach)
    monkeypatch.setattr(circuit_breaker, "REPLIES", replies)
    monkeypatch.setattr(circuit_breaker, "OVERDUE", 0.1)
    with WatchedConnection.connect(**parameters) as connection, ThreadPoolExecutor(1) as threads:
        lasting = threads.submit(connection.execute, "SELECT pg_sleep(%s)", [PATIENCE if is_hung else 0.5])
        if is_hung:
            monkeypatch.setattr(circuit_breaker, "hangs", lambda address, seconds: True)
        while not (lasting.done() or reach.is_away()):
            replies.look(2)
            time.sleep(0.05)
        if not is_hung:
            assert lasting.result().fetchone() == ("",) and not reach.is_away()
            return
        with ends_soon(), pytest.raises(psycopg.OperationalError):
            lasting.result()
        with pytest.raises(DatabaseUnreachable), ends_soon():
            reach.wait(0.01)
        monkeypatch.setattr(circuit_breaker, "hangs", lambda address, seconds: False)
        replies.look(2)
        reach.wait(0.01)


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replies]:
    """Replies that are looked after all the time."""
    found, over = Replies(Reach()), threading.Event()
    monkeypatch.setattr(circuit_breaker, "REPLIES", found)
    monkeypatch.setattr(circuit_breaker, "OVERDUE", 0.1)

    def look() -> None:
        while not over.wait(0.05):
            found.look(2)

    thread = threading.Thread(target=look)
    thread.start()
    yield found
    over.set()
    thread.join()


@pytest.mark.slow
def test_a_server_process_that_hangs_alone_ends_only_its_own_wait(parameters: dict[str, Any], replies: Replies) -> None:
    with WatchedConnection.connect(**parameters) as working, ThreadPoolExecutor(1) as threads:
        stopped = WatchedConnection.connect(**parameters)
        process = stopped.info.backend_pid  # 0 once the connection has ended
        os.kill(process, signal.SIGSTOP)
        try:
            lasting = threads.submit(working.execute, "SELECT pg_sleep(4)")
            with ends_soon(), pytest.raises(psycopg.OperationalError):
                stopped.execute("SELECT 1")
        finally:
            os.kill(process, signal.SIGCONT)
        assert lasting.result().fetchone() == ("",)


def test_a_read_over_its_limit_ends_and_so_does_its_statement(parameters: dict[str, Any], replies: Replies) -> None:
    connection = WatchedConnection.connect(**parameters)
    with replies.limited(0.3), ends_soon(), pytest.raises(psycopg.OperationalError) as caught:
        connection.execute("SELECT pg_sleep(%s)", [PATIENCE * 10])
    assert caught.value.sqlstate is None, "it counts as an outage"
    with psycopg.connect(**parameters) as other:
        asked = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        until(lambda: not other.execute(asked, [connection.info.backend_pid]).fetchone())


def test_a_server_hangs_that_takes_a_connection_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = (silent.family, silent.getsockname())
        assert hangs(address, 0.05)
    assert not hangs(address, 0.05), "it has ended"


def test_a_connection_that_the_server_ended_is_found_without_asking_it(parameters: dict[str, Any]) -> None:
    with psycopg.connect(**parameters) as first, psycopg.connect(**parameters) as second:
        assert not is_ended(first)
        second.execute("SELECT pg_terminate_backend(%s)", [first.info.backend_pid])
        until(lambda: is_ended(first))
        assert not is_ended(second)


def test_a_connection_to_which_the_server_only_said_something_is_kept(parameters: dict[str, Any]) -> None:
    with psycopg.connect(**parameters) as first, psycopg.connect(**parameters) as second:
        first.execute("LISTEN said")
        second.execute("NOTIFY said")
        for _ in range(3):
            assert not is_ended(first)


def test_the_log_says_each_line_once_in_a_while() -> None:
    sparing = LogThrottle()

    def record(text: str, value: str) -> logging.LogRecord:
        return logging.LogRecord("psycopg.pool", logging.WARNING, "", 0, text, (value,), None)

    said = [
        sparing.filter(record(text, value)) for text, value in (("lost %s", "a"), ("lost %s", "b"), ("back %s", "c"))
    ]
    assert said == [True, False, True]
