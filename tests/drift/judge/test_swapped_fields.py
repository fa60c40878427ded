"""Swapped fields: which pairs are found in generated messages, and which only look like it. No Spark, no database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from registry.drift.judge import FieldDay, FieldKey, JudgedFinding, Memory, Registered, judge
from registry.drift.judge.declared_fields import DeclaredField, DeclaredFields
from registry.drift.judge.field_history import day_of, day_of_profile
from registry.drift.judge.model import RegisteredVersion, SubjectSummary
from registry.drift.judge.swapped_fields import RULE
from registry.observations import FieldProfile, FramedMessages, Observation, RankedMessages, Span, TopicTotals
from registry.pipeline.workers.fields import magnitude, shown_magnitude
from registry.pipeline.workers.value_ranks import rank_of

pytestmark = pytest.mark.requirement("CARD-3")
DAY: Final = 86_400_000
NOW: Final = 20_000
Row = tuple[Any, Any]
#: two fields of one type: how a healthy message has them
PAIRS: Final[dict[str, Callable[[Random], Row]]] = {
    "quantity and cents": lambda random: (random.randint(1, 9), random.randint(2_000, 90_000)),
    "latitude and longitude": lambda random: (random.uniform(5, 15), random.uniform(47, 54)),
    "country and city": lambda random: (random.choice(["DE", "FR", "IT"]), random.choice(["Berlin", "Lyon", "Rome"])),
    "phone and name": lambda random: (f"{random.randrange(10**9):09}", random.choice(["Ada Lovelace", "Alan Turing", "Grace H"])),
    "debit and credit signs": lambda random: (-random.randint(1, 9_999), random.randint(1, 9_999)),
}  # fmt: skip
HEALTHY: Final[dict[str, Callable[[Random], Row]]] = {
    "overlapping numbers": lambda random: (random.randint(1, 900), random.randint(500, 90_000)),
    "numbers with far tails": lambda random: (1 + int(random.expovariate(0.5)), max(1, int(random.lognormvariate(3, 1)))),
    "two names": lambda random: ("a" * random.randint(3, 12), "b" * random.randint(3, 12)),
    "two numbers of one kind": lambda random: (random.randint(1, 5), random.randint(1, 5)),
    "a constant": lambda random: (5, random.randint(1, 99)),
    "two constants": lambda random: (5, 700),
    "one or the other is zero": lambda random: random.choice([(0, random.randint(100, 999)), (random.randint(100, 999), 0)]),
    "one or the other is empty": lambda random: random.choice([("", "ada@example.com"), ("ada@example.com", "")]),
    "one is null": lambda random: random.choice([(None, 700), (7, None)]),
    "a wide season": lambda random: (random.randint(1, 40), random.choice([random.randint(20, 90), random.randint(1_000, 9_000)])),
}  # fmt: skip


def masked(value: Any) -> str:
    return f"{len(value)} characters" if isinstance(value, str) else shown_magnitude(magnitude(value))


def profile(path: str, values: Sequence[Any], mark: str) -> FieldProfile:
    """What a scan counts of a field's values, as far as it concerns their range."""
    there = [value for value in values if value is not None]
    order = len if isinstance((there or [0])[0], str) else magnitude
    kind = "string" if isinstance((there or [0])[0], str) else "double"
    ends = [masked(end(there, key=order)) for end in (min, max)] if there else [None, None]
    nulls = len(values) - len(there)
    framing: Any = "id" if mark else None
    kinds = {kind: len(there)} | ({"null": nulls} if nulls else {})
    return FieldProfile("orders", "value", framing, mark, path, len(values), len(values), nulls, kinds, None, *ends, {})


def observed(**rows_by_mark: Sequence[Row]) -> list[Observation]:
    """A scan of messages: id (after a letter; none: JSON) → rows of the fields `a` and `b`."""
    made: list[Observation] = []
    first = 0
    for name, rows in rows_by_mark.items():
        mark = name[1:]
        framing: Any = "id" if mark else None
        made += [profile(path, [row[number] for row in rows], mark) for number, path in enumerate("ab")]
        ranked = tuple((0, first + number, tuple(map(rank_of, row))) for number, row in enumerate(rows))
        made.append(RankedMessages("orders", "value", framing, mark, ("a", "b"), ranked))
        if mark:
            span = Span(len(rows), 1, first, first + len(rows) - 1, NOW * DAY, NOW * DAY)
            made.append(FramedMessages("orders", "value", 0, "id", mark, span))
        first += len(rows)
    return [*made, TopicTotals("orders", first, first, None)]


def registered(*orders: str) -> Registered:
    """Versions of `orders-value` with ids from 1 on, each with its fields in this order."""
    rows = tuple(
        RegisteredVersion("orders-value", number, schema_id=number, released=True, schema_type="AVRO")
        for number in range(1, len(orders) + 1)
    )
    kind = DeclaredField(frozenset({"string"}))
    return Registered(
        registry="dev",
        versions={("id", str(row.schema_id)): (row,) for row in rows},
        subjects={"orders-value": SubjectSummary("orders-value", len(rows))},
        histories={"orders-value": rows},
        declared={
            (row.subject, row.version): DeclaredFields(dict.fromkeys(order, kind))
            for row, order in zip(rows, orders, strict=True)
        },
    )


def memory(rows: Sequence[Row], days: int, mark: str = "1") -> Memory:
    """Healthy days like these rows."""
    framing = "id" if mark else ""
    baselines: dict[FieldKey, tuple[FieldDay, ...]] = {
        FieldKey("orders", "value", framing, mark, path): tuple(
            day_of_profile(profile(path, [row[number] for row in rows], mark), day_of((NOW - day) * DAY))
            for day in range(days, 0, -1)
        )
        for number, path in enumerate("ab")
    }
    return Memory(as_of=NOW * DAY, all_topics=frozenset({"orders"}), baselines=baselines)


def found(observations: list[Observation], here: Registered, before: Memory | None = None) -> list[JudgedFinding]:
    return [item for item in judge(observations, here, before or memory([], 0)) if item.rule == RULE]


def drawn(draw: Callable[[Random], Row], number: int, seed: int = 1) -> list[Row]:
    random = Random(seed)
    return [draw(random) for _ in range(number)]


def swap(rows: Sequence[Row]) -> list[Row]:
    return [(b, a) for a, b in rows]


@pytest.mark.parametrize("name", PAIRS)
def test_messages_with_another_id_than_their_bytes_are_found_in_a_first_scan(name: str) -> None:
    rows = drawn(PAIRS[name], 360)
    (finding,) = found(observed(m2=rows[:300], m1=swap(rows[300:])), registered("abx", "bax"))
    evidence = finding.evidence
    assert (finding.count, evidence["swapped_messages"], evidence["compared_messages"]) == (60, 60, 360)
    assert (evidence["field"], evidence["other_field"], evidence["schemas"]) == ("a", "b", ["schema id 1"])
    assert (evidence["fits"], evidence["example"][0]) == (["orders-value version 2"], {"partition": 0, "offset": 300})
    assert [(part.partition, part.ranges) for part in finding.offending] == [(0, ((300, 359),))]
    assert evidence["confidence"] > 0.99


@pytest.mark.parametrize("name", PAIRS)
def test_messages_of_one_id_are_found_between_the_others(name: str) -> None:
    rows = drawn(PAIRS[name], 360)
    mixed = [(b, a) if number % 6 == 5 else (a, b) for number, (a, b) in enumerate(rows)]
    (finding,) = found(observed(m1=mixed), registered("ab", "ba"))
    assert (finding.count, len(finding.offending[0].ranges)) == (60, 60)
    assert not found(observed(m1=mixed), registered("ab", "abc")), "without a reason it may be what the data is like"


def test_a_subject_that_shares_a_schema_with_another_keeps_its_versions_together() -> None:
    own = registered("abx", "bax")
    shared = replace(own.histories["orders-value"][0], subject="sales-value")
    here = replace(
        own,
        versions={**own.versions, ("id", "1"): (own.histories["orders-value"][0], shared)},
        subjects={**own.subjects, "sales-value": SubjectSummary("sales-value", 1)},
        histories={**own.histories, "sales-value": (shared,)},
        declared={**own.declared, ("sales-value", 1): own.declared["orders-value", 1]},
    )
    rows = drawn(PAIRS["quantity and cents"], 360)
    (finding,) = found(observed(m2=rows[:300], m1=swap(rows[300:])), here)
    assert (finding.evidence["mark"], finding.evidence["fits"]) == ("orders-value", ["orders-value version 2"])
    moved = observed(m2=[(a * 1000, b) for a, b in rows])  # type: ignore[operator]  # numbers
    rules = [item.rule for item in judge(moved, here, memory(rows, 8))]
    assert "UNIT_CHANGED" in rules, "the days of the shared schema are those of the topic's subject"


def test_the_sentence_says_what_is_usual_and_what_fits() -> None:
    rows = drawn(PAIRS["quantity and cents"], 360)
    (finding,) = found(observed(m2=rows[:300], m1=swap(rows[300:])), registered("ab", "ba"))
    assert finding.sentence == (
        "The values of the fields a and b are swapped in 60 of 360 compared messages of orders (value), with schema id 1: "
        "a is usually 1e0 and b 1e3 to 1e4, and there it is the other way round. The bytes fit orders-value version 2, "
        "which has the two fields in each other's place. Confidence: 99.7 %."
    )


@pytest.mark.parametrize("name", ["quantity and cents", "country and city"])
@pytest.mark.parametrize("mark", ["1", ""])
def test_the_days_before_are_a_reason_too_also_if_all_messages_are_swapped(name: str, mark: str) -> None:
    rows, before = drawn(PAIRS[name], 360), memory(drawn(PAIRS[name], 900, 2), 14, mark)
    for changed in ([*rows[:300], *swap(rows[300:])], swap(rows)):
        (finding,) = found(observed(**{f"m{mark}": changed}), registered("ab"), before)
        assert finding.count == (60 if changed[0] == rows[0] else 360)
        reason = "No registered version has" if mark else "The messages name their fields"
        assert reason in finding.sentence
    assert not found(observed(**{f"m{mark}": rows}), registered("ab"), before)
    few = replace(before, baselines={key: days[-6:] for key, days in before.baselines.items()})
    assert not found(observed(**{f"m{mark}": [*rows[:300], *swap(rows[300:])]}), registered("ab"), few)


def test_an_open_finding_stays_while_its_own_days_are_like_it() -> None:
    rows = drawn(PAIRS["quantity and cents"], 360)
    mixed = [*rows[:300], *swap(rows[300:])]
    for seed in range(3):
        before = memory(mixed, 14)
        assert found(observed(m1=mixed), registered("ab", "ba"), before), seed


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_fields_are_never_swapped(name: str) -> None:
    for seed in range(25):
        rows = drawn(HEALTHY[name], 400, seed)
        for before in (memory([], 0), memory(drawn(HEALTHY[name], 900, seed + 100), 21)):
            scan = observed(m2=rows[:200], m1=rows[200:])
            assert not found(scan, registered("ab", "ba"), before), f"{name}, seed {seed}"


@pytest.mark.parametrize("name", [*PAIRS, *HEALTHY])
def test_a_moved_field_alone_is_no_swap(name: str) -> None:
    """Two versions have the fields in another order, and every producer writes what its id says."""
    draw = (PAIRS | HEALTHY)[name]
    assert not found(observed(m2=drawn(draw, 300), m1=drawn(draw, 60, 2)), registered("ab", "ba"))


def test_few_messages_prove_nothing() -> None:
    rows = drawn(PAIRS["quantity and cents"], 360)
    assert not found(observed(m1=[*rows[:300], *swap(rows[300:309])]), registered("ab", "ba"))
    assert not found(observed(m1=[*rows[:30], *swap(rows[30:45])]), registered("ab", "ba"))
