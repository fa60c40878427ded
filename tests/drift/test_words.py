"""Numbers, times and lists as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.drift.judge.model import storable
from registry.drift.judge.words import (
    both,
    counted,
    either,
    kind_words,
    mark_words,
    moment,
    percent,
    share_of,
    span_of_time,
)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (counted(1, "message"), "1 message"),
        (counted(1_234_567, "message"), "1,234,567 messages"),
        (percent(0), "0 %"),
        (percent(1), "100 %"),
        (percent(0.00001), "under 0.1 %"),
        (percent(0.99999), "over 99.9 %"),
        (percent(0.034), "3.4 %"),
        (percent(0.34), "34 %"),
        (share_of(41, 5000), "41 of 5,000 messages"),
        (share_of(5000, 5000), "all 5,000 messages"),
        (share_of(1, 1), "1 message"),
        (moment(1_728_000_000_000), "2024-10-04 00:00 UTC"),
        (moment(-1), "time -1"),
        (moment(10**18), "time 1,000,000,000,000,000,000"),
        (span_of_time(0), "less than a second"),
        (span_of_time(180_000), "3 minutes"),
        (span_of_time(90_000_000), "1 day"),
        (either(["a"]), "a"),
        (either(["a", "b", "c"]), "a, b or c"),
        (both([str(n) for n in range(9)]), "0, 1, 2, 3 and 5 more"),
        (either([]), ""),
        (kind_words(["null", "string"]), "a string or null"),
        (mark_words(("id", "7")), "schema id 7"),
    ],
)
def test_words(said: str, text: str) -> None:
    assert said == text


@given(st.floats(0, 1), st.integers(-(10**20), 10**20))
def test_any_number_has_words(share: float, number: int) -> None:
    assert percent(share).endswith("%")
    assert moment(number)
    assert span_of_time(number)


def test_what_no_database_holds_is_replaced() -> None:
    assert storable({"a\0": ["\ud800", ("b", 1, None)]}) == {
        "a\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}", ["b", 1, None]]
    }
