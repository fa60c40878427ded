"""How long the engine takes, in processor time, with room for a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from registry.formats.protobuf import PROTOBUF

pytestmark = pytest.mark.slow


def wide(count: int, change: Callable[[int], str]) -> str:
    fields = "".join(f"  {change(number)} f{number} = {number};\n" for number in range(1, count + 1))
    return f'syntax = "proto3";\nmessage A {{\n{fields}}}\n'


def best(run: Callable[[], object]) -> float:
    """The shortest of ten runs, in milliseconds."""
    times = []
    for _ in range(10):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times) * 1_000


def test_a_pair_of_200_fields_is_judged_in_2_ms() -> None:
    old = PROTOBUF.parse(wide(200, lambda n: "int32"))
    new = PROTOBUF.parse(wide(200, lambda n: "string" if n % 20 == 0 else "int64"))
    assert len(PROTOBUF.judge(new, old).breaks) == 10
    assert best(lambda: PROTOBUF.judge(new, old)) < 2
    assert best(lambda: PROTOBUF.judge(old, old)) < 2


def test_2000_fields_are_compared_in_100_ms() -> None:
    old = PROTOBUF.parse(wide(2_000, lambda n: "int32"))
    new = PROTOBUF.parse(wide(2_000, lambda n: "string" if n % 20 == 0 else "int64"))
    assert len(PROTOBUF.diff(old, new)) == 2_000
    assert best(lambda: PROTOBUF.diff(old, new)) < 100
