"""The file that processes share: no value comes back, and who was killed in a commit keeps the cache off."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.response_cache.epoch import SLOTS, Generation, generation_at, is_quiet
from tests.waiting import until

ROOT = Path(__file__).parents[2]
#: a process with a slot, that does what each line of its input says
PROCESS = """
import sys
from pathlib import Path
from dashboard.response_cache.epoch import generation_at
generation = generation_at(Path(sys.argv[1]))
print(generation.slot, flush=True)
for line in sys.stdin:
    getattr(generation, line.strip())()
    print("done", flush=True)
"""


class Other:
    """Another process with a slot."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        assert self.process.stdout
        self.slot = int(self.process.stdout.readline())

    def do(self, name: str) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "generation"


@pytest.fixture
def other(path: Path) -> Iterator[Callable[[], Other]]:
    made: list[Other] = []

    def make() -> Other:
        made.append(Other(path))
        return made[-1]

    yield make
    for process in made:
        if process.process.poll() is None:
            process.end()


def test_the_file_is_its_users_alone_and_one_a_process(path: Path) -> None:
    generation = generation_at(path)
    assert generation_at(path) is generation
    for file in (path, path.with_suffix(".lock")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(generation.host) == 32


def test_each_process_has_a_slot_and_sees_the_others(path: Path, other: Callable[[], Other]) -> None:
    generation, first, second = generation_at(path), other(), other()
    assert len({generation.slot, first.slot, second.slot}) == 3
    before = generation.snapshot()
    assert is_quiet(before)
    first.do("begin")
    during = generation.snapshot()
    assert during != before
    assert not is_quiet(during)
    second.do("bump")
    assert not is_quiet(generation.snapshot())
    first.do("end")
    after = generation.snapshot()
    assert is_quiet(after)
    assert after not in (before, during)
    first.end()
    third = other()
    assert generation.snapshot() == after, "who ends in order, and who takes the slot, changes nothing"
    third.do("bump")
    assert generation.snapshot() != after


def test_who_is_killed_in_a_commit_keeps_it_off_until_the_server_is_done(
    path: Path, other: Callable[[], Other]
) -> None:
    generation, killed = generation_at(path), other()
    before = generation.snapshot()
    killed.do("begin")
    assert generation.left() == [], "it lives"
    killed.end(signal.SIGKILL)
    assert generation.left() == [killed.slot]
    assert not is_quiet(generation.snapshot())
    assert other().slot != killed.slot, "nobody takes a slot in that state"
    assert generation.sweep(lambda slot: False) == 0
    assert not is_quiet(generation.snapshot())
    calls: list[int] = []
    assert generation.sweep(lambda slot: not calls.append(slot)) == 1
    assert calls == [killed.slot]
    assert is_quiet(generation.snapshot())
    assert generation.snapshot() != before
    assert generation.left() == []


def test_a_commit_that_nobody_knows_the_end_of_ends_later(path: Path) -> None:
    generation = generation_at(path)
    before = generation.snapshot()
    generation.begin()
    generation.end_later(0.05)
    until(lambda: is_quiet(generation.snapshot()))
    assert generation.snapshot() != before


def test_a_forked_child_takes_a_slot_of_its_own(path: Path) -> None:
    generation = generation_at(path)
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, b"%d" % generation_at(path).slot)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    number = int(os.read(receive, 16))
    for end in (receive, send):
        os.close(end)
    assert number != generation.slot
    assert generation.left() == []


def test_a_file_that_was_removed_is_noticed(path: Path) -> None:
    generation = generation_at(path)
    assert generation.is_in_place()
    path.unlink()
    assert not generation.is_in_place()
    Generation(path)
    assert not generation.is_in_place()


def test_threads_share_a_slot(path: Path) -> None:
    generation = generation_at(path)
    before = generation.snapshot()

    def work() -> None:
        for _ in range(2_000):
            generation.begin()
            generation.end()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_quiet(generation.snapshot())
    word = memoryview(generation.snapshot()).cast("Q")[generation.slot]
    assert word - memoryview(before).cast("Q")[generation.slot] == 8_000 << 16


def test_a_file_of_another_kind_is_made_anew(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"something else")
    assert is_quiet(Generation(path).snapshot())


class Model:
    """Commits that begin and end in one process, and what was seen while none was under way."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.under_way = 0
        self.changes = 0
        self.seen: dict[bytes, int] = {}

    def step(self, name: str) -> None:
        if name == "begin":
            self.under_way += 1
            self.generation.begin()
        elif name == "bump":
            self.changes += 1
            self.generation.bump()
        elif self.under_way:
            self.under_way -= 1
            self.changes += 1
            self.generation.end()
        snapshot = self.generation.snapshot()
        assert is_quiet(snapshot) == (self.under_way == 0)
        if self.under_way == 0:
            assert self.seen.setdefault(snapshot, self.changes) == self.changes, "a value came back"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    return generation_at(tmp_path_factory.mktemp("generation") / "file")


@given(steps=st.lists(st.sampled_from(["begin", "end", "bump"]), max_size=60))
def test_no_value_comes_back(shared: Generation, steps: list[str]) -> None:
    model = Model(shared)
    try:
        for step in steps:
            model.step(step)
    finally:
        for _ in range(model.under_way):
            shared.end()


def test_more_processes_than_slots_are_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard.response_cache import epoch as module

    generation_at(path)

    def taken(self: Any, slot: int) -> bool:
        return slot >= SLOTS

    monkeypatch.setattr(Generation, "_try", taken)
    with pytest.raises(module.NoSlot, match=f"{SLOTS} processes"):
        Generation(path.with_name("another"))
