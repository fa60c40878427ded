"""Hosts over the Valkey of the tests: a write is answered when no other host has an answer of before."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from dashboard.response_cache import hosts
from dashboard.response_cache.epoch import Generation, generation_at, now
from dashboard.response_cache.hosts import ALONE_UNTIL, EPOCH, JOIN, LEASE, MEMBERS, WAIT, Agent, Hosts
from dashboard.runtime import valkey
from dashboard.runtime.layout import Layout
from dashboard.runtime.process import Watchdog
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def url() -> str:
    return os.environ["REDIS_URL"]


@pytest.fixture(autouse=True)
def nobody_is_there(url: str) -> None:
    """Valkey has remembered for long that nobody is."""
    with Redis.from_url(url) as client:
        client.delete(MEMBERS)
        client.set(EPOCH, f"{client.info('server')['run_id']} 1")  # type: ignore[index]


@pytest.fixture
def host(tmp_path: Path, url: str) -> Iterator[Callable[[str], tuple[Generation, Agent]]]:
    """Begins a host with a cache."""
    agents: list[Agent] = []

    def begin(name: str) -> tuple[Generation, Agent]:
        generation = generation_at(tmp_path / name)
        agent = Agent(generation, url)
        agent.start()
        agents.append(agent)
        return generation, agent

    yield begin
    for agent in agents:
        agent.stop()


def serves(agent: Agent) -> bool:
    return now() < agent.until


def test_a_host_waits_before_it_answers_and_then_each_write_reaches_it(
    host: Callable[[str], tuple[Generation, Agent]], tmp_path: Path, url: str
) -> None:
    began = now()
    generation, agent = host("one")
    until(lambda: serves(agent))
    assert now() - began >= JOIN
    writer = Hosts(generation_at(tmp_path / "writer"), url)
    for _ in range(20):
        before = generation.snapshot()
        writer.tell()
        assert generation.snapshot() != before
    assert serves(agent)


def test_a_host_that_knows_it_is_alone_asks_nobody(
    host: Callable[[str], tuple[Generation, Agent]], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation, _ = host("one")
    until(lambda: generation.times[ALONE_UNTIL] > now() + 1)
    writer = Hosts(generation, url)

    def others(renewed: str = "") -> Any:
        raise AssertionError("it asked")

    monkeypatch.setattr(writer, "others", others)
    writer.tell()
    other, agent = host("two")
    until(lambda: serves(agent))
    with pytest.raises(AssertionError, match="it asked"):
        writer.tell()
    assert other.host != generation.host


def test_a_host_that_went_is_waited_for_until_its_lease_is_over(
    host: Callable[[str], tuple[Generation, Agent]], tmp_path: Path, url: str
) -> None:
    generation, agent = host("one")
    until(lambda: serves(agent))
    agent.stop()
    writer, before = Hosts(generation_at(tmp_path / "writer"), url), generation.snapshot()
    writer.tell()
    assert not serves(agent)
    assert generation.snapshot() == before, "nobody was there to say so"
    again = Agent(generation, url)
    again.start()
    try:
        until(lambda: generation.snapshot() != before)
        until(lambda: serves(again))
    finally:
        again.stop()


def test_a_valkey_that_forgot_who_is_there_is_not_believed(tmp_path: Path, url: str) -> None:
    writer = Hosts(generation_at(tmp_path / "writer"), url)
    writer.tell()
    with Redis.from_url(url) as client:
        client.delete(EPOCH)
    began = now()
    writer.tell()
    assert now() - began >= WAIT - 0.1


def test_a_valkey_that_restarted_with_an_older_state_is_not_believed(tmp_path: Path) -> None:
    """A host that joined after the last snapshot still has its lease."""
    layout = Layout.at(tmp_path / "data", Watchdog(), durable=False)
    url = valkey.url(layout)
    writer = Hosts(generation_at(tmp_path / "writer"), url)
    with _valkey(layout) as process:
        writer.tell()
        with Redis.from_url(url) as client:
            client.set(EPOCH, f"{client.info('server')['run_id']} 1")  # type: ignore[index]
            client.save()
        Hosts(generation_at(tmp_path / "other"), url).others(generation_at(tmp_path / "other").host)
        began = now()
        process.kill()
    with _valkey(layout):
        writer.tell()
        assert now() - began >= LEASE


@contextmanager
def _valkey(layout: Layout) -> Iterator[subprocess.Popen[bytes]]:
    command = valkey.command(layout)
    with subprocess.Popen(
        command.argv, env=command.environment, cwd=command.folder, stdout=subprocess.DEVNULL
    ) as process:
        try:
            until(lambda: valkey.probe(layout))
            yield process
        finally:
            process.kill()


def test_without_valkey_a_write_waits_for_leases_and_later_ones_do_not(tmp_path: Path) -> None:
    generation = generation_at(tmp_path / "alone")
    writer = Hosts(generation, "unix:///nowhere/at/all")
    began = now()
    writer.tell()
    first = now() - began
    assert first >= WAIT
    end = threading.Event()

    def attend() -> None:
        while not end.wait(hosts.BEAT):
            writer.note_away()

    thread = threading.Thread(target=attend)
    thread.start()
    try:
        waits: list[float] = []
        while not waits or (waits[-1] >= WAIT and len(waits) < 20):
            time.sleep(hosts.BEAT)
            began = now()
            writer.tell()
            waits.append(now() - began)
        assert waits[-1] < WAIT
    finally:
        end.set()
        thread.join()
