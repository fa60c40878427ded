"""The file that processes share: no value comes back, and who was killed in a commit keeps the cache off."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from dashboard.response_cache.epoch import (
    GROUPS,
    SLOTS,
    Generation,
    Groups,
    generation_at,
    group_of,
    groups_in,
    is_quiet,
    now,
    words_in,
)
from registry.audit.triggers import SUBJECT_GROUP
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
    generation.end_later(seconds=0.05)
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


def test_a_file_of_another_kind_is_recreated(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"something else")
    assert is_quiet(Generation(path).snapshot())


class Model:
    """Commits that begin and end in one process, and what was seen of each group while none was under way there."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.under_way: list[Groups] = []
        self.changes = dict.fromkeys(SOME, 0)
        self.seen: dict[tuple[int, bytes], int] = {}

    def step(self, name: str, groups: Groups) -> None:
        if name == "begin":
            self.under_way.append(groups)
            self.generation.begin(groups)
        elif name == "bump":
            self.change(groups)
            self.generation.bump(groups)
        elif self.under_way:
            groups = self.under_way.pop()
            self.change(groups)
            self.generation.end(groups)
        for group in SOME:
            words, is_under_way = self.generation.words(group), any(group in commit for commit in self.under_way)
            assert words == words_in(self.generation.snapshot(), group)
            assert is_quiet(words) != is_under_way
            if not is_under_way:
                assert self.seen.setdefault((group, words), self.changes[group]) == self.changes[group], (
                    "a value came back"
                )

    def change(self, groups: Groups) -> None:
        for group in groups:
            self.changes[group] += 1


SOME = (0, 1, 2, 60, GROUPS - 1)
STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "end", "bump"]), st.sets(st.sampled_from(SOME), min_size=1).map(tuple)),
    max_size=60,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    return generation_at(tmp_path_factory.mktemp("generation") / "file")


@given(steps=STEPS)
def test_no_value_comes_back(shared: Generation, steps: list[tuple[str, Groups]]) -> None:
    model = Model(shared)
    try:
        for step in steps:
            model.step(*step)
    finally:
        for groups in model.under_way:
            shared.end(groups)


@pytest.mark.parametrize(
    ("told", "groups"),
    [
        ("+", (1,)), ("+ 0", (1, 2)), ("+ 7 116 7", (1, 118, 9)), ("*", (0,)), ("", (0,)), ("+ 117", (0,)), ("+ 7 *", (0,)),
        ("+7", (0,)), ("somebody", (0,)), ("+ -1", (0,)), ("+ 1000", (0,)),
    ],
)  # fmt: skip
def test_what_cannot_be_read_touches_everything(told: str, groups: Groups) -> None:
    assert set(groups_in(told)) == set(groups)


@pytest.mark.django_db
@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300))
def test_the_triggers_count_the_groups_of_subjects_likewise(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SUBJECT_GROUP.replace('%', '%%').format(name='%s::text')}", [name])
        assert groups_in(f"+ {cursor.fetchone()[0]}")[1:] == (group_of(name),)


def test_more_processes_than_slots_are_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard.response_cache import epoch as module

    generation_at(path)

    def taken(self: Any, slot: int) -> bool:
        return slot >= SLOTS

    monkeypatch.setattr(Generation, "_try", taken)
    with pytest.raises(module.NoSlot, match=f"{SLOTS} processes"):
        Generation(path.with_name("another"))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has that clock")
def test_times_go_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {time.CLOCK_MONOTONIC: 100.0, time.CLOCK_BOOTTIME: 3_700.0}
    monkeypatch.setattr(time, "monotonic", lambda: clocks[time.CLOCK_MONOTONIC])
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    assert now() == 3_700.0, "a lease would outlast the suspension"
