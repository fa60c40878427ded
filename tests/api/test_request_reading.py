"""Bodies of strangers: how many values are taken, and large ones one at a time."""

from __future__ import annotations

import json
import threading
import time

import pytest

from registry.api.request_reading import LARGE, MAX_VALUES, refuse_many_values, room_for
from registry.errors import InvalidInput

FEW = [
    b'{"schema": "' + b"[{," * 200_000 + b'"}',
    b'{"a": "' + b'\\"[,' * 100_000 + b'"}',
    b"[" + b"1," * 50_000 + b"1]",
]
MANY = [b"[" + b"{}," * 300_000 + b"{}]", b"[" * 300_000, b'{"a": 1' + b',"b":2' * 120_000 + b"}"]


@pytest.mark.parametrize("number", range(len(FEW)))
def test_signs_inside_of_strings_are_no_values(number: int) -> None:
    refuse_many_values(FEW[number])


@pytest.mark.parametrize("number", range(len(MANY)))
def test_too_many_values_are_refused_before_they_are_made(number: int) -> None:
    with pytest.raises(InvalidInput, match="100,000 values"):
        refuse_many_values(MANY[number])


def test_a_short_body_may_be_anything() -> None:
    refuse_many_values(b"[" * (LARGE - 1))
    assert len(json.loads("[" + "0," * MAX_VALUES + "0]")) > MAX_VALUES


def test_large_bodies_wait_for_each_other_and_short_ones_do_not() -> None:
    order: list[str] = []

    def read(length: int, name: str) -> None:
        with room_for(length):
            order.append(f"{name} begins")
            time.sleep(0.05)
            order.append(f"{name} ends")

    with room_for(LARGE + 1):
        waiting = threading.Thread(target=read, args=(LARGE + 1, "large"))
        waiting.start()
        short = threading.Thread(target=read, args=(LARGE, "short"))
        short.start()
        short.join()
        assert order == ["short begins", "short ends"]
    waiting.join()
    assert order[2:] == ["large begins", "large ends"]


@pytest.mark.parametrize("sign", [b",", b"[{", b"a", b'\\"', b"\\\\"])
def test_a_long_string_is_passed_over_quickly(sign: bytes) -> None:
    """Letter by letter, 6.4 MB of commas took most of a second before they were refused for their length."""
    body = b'{"schema": "' + sign * (6_400_000 // len(sign)) + b'"}'
    began = time.process_time()
    refuse_many_values(body)
    assert time.process_time() - began < 0.3
