"""Precision and recall of the rules on values and volume, with generated data: no Spark, no database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, Final

import pytest

from registry.drift.judge import JudgedFinding, judge
from tests.drift.judge.value_worlds import TOPICS, Values, ValueWorld, fields_of, registered

pytestmark = pytest.mark.requirement("CARD-3")
DAYS: Final = 44
WARM_UP: Final = 14
MOST_FALSE: Final = 3
LEAST_RECALL: Final = 0.9
NEW_RULES: Final = {"UNIT_CHANGED", "DISTINCT_VALUES_CHANGED", "VALUE_RANGE_LEFT"}
Change = Callable[[Values, Random], Values]


def each(one: Callable[[Any], Any]) -> Change:
    return lambda values, random: [None if value is None else one(value) for value in values]


def some(share: float, one: Callable[[Any], Any]) -> Change:
    return lambda values, random: [one(value) if random.random() < share else value for value in values]


#: 30 changes of values: field, what happens to its values, the rule
CHANGES: Final[tuple[tuple[str, str, Change, str], ...]] = (
    ("units to cents", "price", each(lambda value: value * 100), "UNIT_CHANGED"),
    ("kilometres to metres", "price", each(lambda value: value * 1000), "UNIT_CHANGED"),
    ("metres to kilometres", "price", each(lambda value: value / 1000), "UNIT_CHANGED"),
    ("cents to units", "amount", each(lambda value: max(1, value * 100)), "UNIT_CHANGED"),
    ("amounts times 1000", "amount", each(lambda value: value * 1000), "UNIT_CHANGED"),
    ("milliseconds to seconds", "created", each(lambda value: value // 1000), "UNIT_CHANGED"),
    ("milliseconds to microseconds", "created", each(lambda value: value * 1000), "UNIT_CHANGED"),
    ("milliseconds to nanoseconds", "created", each(lambda value: value * 10**6), "UNIT_CHANGED"),
    ("ids times 1000", "id", each(lambda value: value * 1000), "UNIT_CHANGED"),
    ("seconds to milliseconds", "seconds", each(lambda value: value * 1000), "UNIT_CHANGED"),
    ("seconds in a date", "at", each(lambda value: value // 1000), "UNIT_CHANGED"),
    ("microseconds in a date", "at", each(lambda value: value * 1000), "UNIT_CHANGED"),
    ("seconds in an expiry", "expires", each(lambda value: value // 1000), "UNIT_CHANGED"),
    ("ISO time to epoch milliseconds", "when", each(lambda value: f"{hash(value) % 10**13:013}"), "UNIT_CHANGED"),
    ("names to epoch seconds", "name", each(lambda value: f"17{value[-8:]}"), "UNIT_CHANGED"),
    ("a constant customer", "customer", each(lambda value: 1), "DISTINCT_VALUES_CHANGED"),
    ("a constant code", "code", each(lambda value: "00000000"), "DISTINCT_VALUES_CHANGED"),
    ("few names", "name", each(lambda value: "x" * 10 + str(len(value) % 4)), "DISTINCT_VALUES_CHANGED"),
    ("free text in a country", "country", lambda values, random: [f"c{random.randrange(400)}" for _ in values],
     "DISTINCT_VALUES_CHANGED"),
    ("random quantities", "quantity", lambda values, random: [random.randint(1, 9) * random.randint(1, 99) for _ in values],
     "DISTINCT_VALUES_CHANGED"),
    ("a new status", "status", some(0.2, lambda value: "LOST"), "DISTINCT_VALUES_CHANGED"),
    ("a new country", "country", some(0.1, lambda value: "zz"), "DISTINCT_VALUES_CHANGED"),
    ("a flipped sign", "amount", some(0.3, lambda value: -value), "VALUE_RANGE_LEFT"),
    ("a lost sign", "degrees", each(abs), "VALUE_RANGE_LEFT"),
    ("negative quantities", "quantity", some(0.05, lambda value: -value), "VALUE_RANGE_LEFT"),
    ("empty names", "name", some(0.1, lambda value: ""), "VALUE_RANGE_LEFT"),
    ("empty codes", "code", some(0.5, lambda value: ""), "VALUE_RANGE_LEFT"),
    ("empty lists", "tags", each(lambda value: []), "VALUE_RANGE_LEFT"),
    ("outliers", "quantity", some(0.01, lambda value: value * 10**5), "VALUE_RANGE_LEFT"),
    ("the end of time", "expires", some(0.05, lambda value: 253_402_000_000_000), "VALUE_RANGE_LEFT"),
)  # fmt: skip


def found(world: ValueWorld, topic: str, day: int, observed: list[Any]) -> list[JudgedFinding]:
    return [item for item in judge(observed, registered(day), world.memory(day)) if item.rule in NEW_RULES]


@cache
def healthy(seed: int) -> tuple[ValueWorld, tuple[tuple[int, str], ...]]:
    """The world after its days, and the false findings on them."""
    world, false = ValueWorld(seed), []
    for day in range(DAYS):
        observed = [item for topic in TOPICS for item in world.observe(topic, day, world.draws(topic, day))]
        false += [(day, f"{item.rule}: {item.sentence}") for item in found(world, "", day, observed)]
        world.remember(day, observed)
    return world, tuple(false)


def test_thirty_healthy_days_of_twenty_topics_have_at_most_three_false_findings() -> None:
    _, false = healthy(1)
    judged = [sentence for day, sentence in false if day >= WARM_UP]
    figures = (
        f"{len(judged)} false findings in {DAYS - WARM_UP} days of {len(TOPICS)} topics, {len(false)} with the warm-up"
    )
    assert len(judged) <= MOST_FALSE, "\n".join([figures, *(f"day {day}: {text}" for day, text in false)])


def test_forty_changes_are_found_within_two_scans() -> None:
    missed, by_rule = [], Counter[str]()
    for number, (name, path, change, rule) in enumerate(CHANGES):
        topic = [topic for topic in TOPICS if path in fields_of(topic)][number % 7]
        if rule in rules_found(topic, path, change, number):
            by_rule[rule] += 1
        else:
            missed.append(f"{name} ({rule})")
    recall = 1 - len(missed) / len(CHANGES)
    figures = f"recall {recall:.0%} of {len(CHANGES)} changes: {dict(by_rule)}; missed: {', '.join(missed) or 'none'}"
    assert recall >= LEAST_RECALL, figures


def rules_found(topic: str, path: str, change: Change, seed: int) -> set[str]:
    """The rules that two scans find at the field: every second change comes in the middle of the first one."""
    world, random = healthy(1)[0].copy(), Random(seed)
    rules: set[str] = set()
    for day, share in ((DAYS, 1.0 if seed % 2 else 0.6), (DAYS + 1, 1.0)):
        draws = world.draws(topic, day)
        values = draws[path]
        cut = round(len(values) * (1 - share))
        draws[path] = values[:cut] + change(values[cut:], random)
        observed = world.observe(topic, day, draws)
        rules |= {item.rule for item in found(world, topic, day, observed) if item.evidence["field"] == path}
        world.remember(day, observed)
    return rules
