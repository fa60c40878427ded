"""Shares that depart: never by chance, never by little, never on little."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.drift.judge.statistics import MIN_NOW, NULL_FLOOR, Share, departure, usable, vanished, z_score

SHARE = st.builds(lambda whole, part: Share(round(whole * part), whole), st.integers(0, 10**9), st.floats(0, 1))


def test_the_z_score_is_that_of_the_textbook() -> None:
    # Two samples of 200 with 30 % and 20 %: pooled 25 %, error sqrt(0.1875 / 100).
    assert z_score(Share(60, 200), Share(40, 200)) == pytest.approx(0.1 / (0.25 * 0.75 / 100) ** 0.5)
    assert z_score(Share(1, 1), Share(0, 0)) == z_score(Share(5, 5), Share(9, 9)) == 0.0


@given(SHARE, st.lists(SHARE, max_size=30))
def test_any_shares_are_judged(now: Share, days: list[Share]) -> None:
    for found in (departure(now, days, floor=NULL_FLOOR, usual=0), vanished(now, days, usual=0)):
        if found is not None:
            assert now.whole >= MIN_NOW
            assert found.days >= 7
            assert not found.least <= now.value <= found.most
    if days and now in days:
        assert departure(now, days, floor=NULL_FLOOR, usual=250) is None


@given(st.floats(0, 1), st.integers(0, 2**32))
def test_chance_alone_departs_from_nothing(share: float, seed: int) -> None:
    random = Random(seed)

    def draw(whole: int) -> Share:
        return Share(sum(random.random() < share for _ in range(whole)), whole)

    days = [draw(250) for _ in range(7)]
    assert departure(draw(250), days, floor=NULL_FLOOR, usual=250) is None
    assert vanished(draw(250), days, usual=250) is None


def test_what_is_enough() -> None:
    assert usable(200, [200] * 7, 200)
    assert not usable(199, [200] * 7, 200)
    assert not usable(200, [200] * 6, 200)
    assert not usable(200, [49] * 30, 49)
    assert not usable(200, [1_000] * 7, 1_000), "a fifth of a day may be its odd hours"
    assert usable(200, [1_000] * 7, 300), "a weekday with less than the others"
    assert departure(Share(80, 200), [Share(10, 200)] * 7, floor=NULL_FLOOR, usual=200) is not None
    assert vanished(Share(0, 200), [Share(30, 200)] * 7, usual=200) is not None
    assert vanished(Share(0, 200), [Share(10, 200)] * 7, usual=200) is None
