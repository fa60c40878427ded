"""The judgement of topics and states, case by case; every rule has one where it speaks and one where it is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.drift.judge import JudgedFinding, Memory, belongings, judge, nothing_read, pending
from registry.drift.rules import RULES, TABLES
from registry.observations import FramedMessages, TopicTotals, decode_observations, encode_observations
from tests.drift.judging import GUID, load_cases, memory, observation, observations, registered, span, version_of

TOPICS = load_cases("judge_cases_topics.yaml")
FIELDS = load_cases("judge_cases_fields.yaml")
STATES = load_cases("judge_cases_states.yaml")
CASES = TOPICS + FIELDS + STATES


def check(finding: JudgedFinding, expected: dict[str, Any]) -> None:
    assert (finding.rule, finding.severity) == (expected["rule"], expected["severity"])
    assert finding.location == expected.get("location", finding.location)
    for part in expected.get("says", []):
        assert part in finding.sentence
    assert {name: finding.evidence[name] for name in expected.get("evidence", {})} == expected.get("evidence", {})
    for name in ("subject", "cause", "count", "topic"):
        assert getattr(finding, name) == expected.get(name, getattr(finding, name))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    seen, held, kept = observations(case), registered(case), memory(case)
    found = judge(seen, held, kept)
    assert [finding.rule for finding in found] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(found, case["findings"], strict=True):
        check(finding, expected)
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
        for secret in case.get("never_says", []):
            assert secret not in json.dumps([finding.sentence, finding.remedy, finding.location, finding.evidence])
    assert nothing_read(seen) is case.get("nothing_read", False)
    assert len({finding.fingerprint for finding in found}) == len(found)
    waiting = [[each.topic, each.subject, each.version] for each in pending(seen, held, kept)]
    assert waiting == case.get("pending", waiting)
    # What came as JSON lines is judged the same, in any order.
    assert judge(reversed(list(decode_observations(encode_observations(seen)))), held, kept) == found


@pytest.mark.parametrize("table", ["Topics", "Fields of decoded messages"])
def test_every_rule_has_a_case(table: str) -> None:
    told = {expected["rule"] for case in CASES for expected in case["findings"]}
    assert {rule.id for rule in TABLES[table]} - told == set()
    silent = {rule for case in CASES for rule in case.get("not", [])}
    assert {rule.id for rule in TABLES[table]} - silent == set(), "each rule has a case that looks like it and isn't"
    assert silent <= set(RULES)


@pytest.mark.parametrize("case", [case for case in CASES if "not" in case], ids=lambda case: case["name"])
def test_a_case_against_a_rule_has_no_finding_of_it(case: dict[str, Any]) -> None:
    assert not {expected["rule"] for expected in case["findings"]} & set(case["not"])


def one(*forms: list[Any]) -> JudgedFinding:
    case = {**TOPICS[0], "observations": [*forms, ["totals", 9]]}
    (finding,) = judge(observations(case), registered(case), memory(case))
    return finding


def test_a_fingerprint_stays_while_offsets_and_counts_move() -> None:
    before = one(["framed", "value", 0, 77, 1, 5, 5])
    later = one(["framed", "value", 0, 77, 3, 5, 90], ["framed", "value", 1, 77, 8, 0, 7])
    assert before.fingerprint == later.fingerprint
    assert (before.count, later.count) == (1, 11)
    assert one(["framed", "value", 0, 78, 1, 5, 5]).fingerprint != before.fingerprint


def test_many_partitions_are_named_in_the_evidence_and_counted_in_the_location() -> None:
    finding = one(*(["framed", "value", part, 77, 1, part, part] for part in range(30)))
    assert finding.location == "orders:0@0, orders:1@1, orders:2@2, orders:3@3, and 26 more partitions (value)"
    assert [part["partition"] for part in finding.evidence["partitions"]] == list(range(30))


def test_names_with_braces_are_no_templates() -> None:
    held = registered({"registered": {"ids": {7: [["{registry}-{0}", 1]], 8: [["{t}-value", 1]]}}})
    seen = [FramedMessages("{t}", "value", 0, "id", "7", span(1)), TopicTotals("{t}", 1, 50, None)]
    (finding,) = judge(seen, held)
    assert "{registry}-{0} version 1, not to {t}-value" in finding.sentence


@pytest.mark.parametrize(
    ("given_", "strategies", "subjects"),
    [
        ({"ids": {1: [["orders-value", 1]]}}, ["TopicName"], ["orders-value"]),
        ({"ids": {1: [["shop.Order", 1, {"record": "shop.Order"}]]}}, ["RecordName"], ["shop.Order"]),
        (
            {"ids": {1: [["orders-shop.Order", 1, {"record": "shop.Order"}]]}},
            ["TopicRecordName"],
            ["orders-shop.Order"],
        ),
        ({"ids": {1: [["other-value", 1, {"record": "shop.Order"}]]}}, [], []),
        (
            {"ids": {1: [["x", 1]]}, "associated": {"value": ["x"]}},
            ["association"],
            ["x"],
        ),
        # The topic's own subject is what counts beside one that is called like the record.
        (
            {"ids": {1: [["shop.Order", 1, {"record": "shop.Order"}]], 2: [["orders-value", 1]]}},
            ["TopicName"],
            ["orders-value"],
        ),
    ],
)
def test_strategies_are_found_from_the_data(given_: dict[str, Any], strategies: list[str], subjects: list[str]) -> None:
    seen = [observation("framed", ["value", 0, 1, 5]), observation("totals", [5])]
    found = belongings(seen, registered({"registered": given_}))["orders", "value"]
    assert (list(found.strategies), list(found.subjects)) == (strategies, subjects)


@pytest.mark.requirement("SCS-3")
def test_a_content_type_names_its_subject_itself() -> None:
    seen = [observation("framed", ["value", 0, "vnd.sensor.v2", 5]), observation("totals", [5])]
    held = registered({"registered": {"ids": {"vnd.sensor.v2": [["sensor", 2]]}}})
    assert belongings(seen, held)["orders", "value"].subjects == ("sensor",)
    assert judge(seen, held) == []


# ---- any observations ---------------------------------------------------------------------------------------------

SIDE = st.sampled_from(["key", "value"])
COUNT = st.integers(0, 10**12)
TEXT = st.text(max_size=8)
MARK = st.one_of(st.integers(0, 12), st.just("guid"), st.sampled_from(["vnd.orders.v1", "", "{x}", "\0" * 300]))
PATH = st.sampled_from(["a", "a.b", "a[]", "a[].c", "b", "", "q{}", "a..b", "{side}", "x" * 300, "\0", "\ud800"])
KINDS = st.dictionaries(st.sampled_from(["string", "integer", "number", "object", "null", "odd"]), COUNT, max_size=4)
WHERE = st.tuples(COUNT, COUNT, COUNT, st.integers(-(10**6), 10**6)).map(list)
FORM = st.one_of(
    st.tuples(st.just("framed"), SIDE, st.integers(0, 2), MARK, WHERE),
    st.tuples(st.just("undecodable"), SIDE, st.integers(0, 2), MARK, st.just([3, 1, 5])),
    st.tuples(st.just("undecodable"), SIDE, st.integers(0, 2), st.none(), st.just([3, 1, 5])),
    st.tuples(st.just("twice"), SIDE, st.integers(0, 2), st.integers(0, 9), WHERE),
    st.tuples(
        st.just("unframed"), SIDE, st.integers(0, 2), st.sampled_from(["text", "cut_frame", "json_object"]), WHERE
    ),
    st.tuples(st.just("indexes"), SIDE, st.integers(0, 2), MARK, st.sampled_from(["0", "1", "9.9"]), WHERE),
    st.tuples(st.just("profile"), SIDE, st.one_of(st.none(), MARK), PATH, COUNT, COUNT, COUNT, KINDS, KINDS),
    st.tuples(st.just("sample"), SIDE, st.integers(0, 2), st.one_of(st.none(), MARK), COUNT, TEXT),
    st.tuples(st.just("other"), st.integers(0, 2), COUNT, COUNT),
    st.tuples(st.just("not_used"), MARK, TEXT),
    st.tuples(st.just("read"), st.integers(0, 2), COUNT, COUNT),
    st.tuples(st.sampled_from(["totals", "totals@{topic}"]), COUNT),
    st.tuples(st.just("lost@gone"), TEXT),
)


def _flat(form: tuple[Any, ...]) -> list[Any]:
    *first, last = form
    return [*first, *last] if isinstance(last, list) else [*first, last]


RICH = next(case for case in FIELDS if case["name"].startswith("plain JSON against"))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(FORM, max_size=25), st.randoms(use_true_random=False), st.booleans())
def test_any_observations_are_judged_to_an_end_and_in_any_order_alike(
    forms: list[tuple[Any, ...]], random: Any, rich: bool
) -> None:
    case = {**(RICH if rich else TOPICS[0]), "observations": [_flat(form) for form in forms]}
    seen, held, kept = observations(case), registered(case), memory(case)
    found = judge(seen, held, kept)
    random.shuffle(seen)
    assert judge(seen, held, kept) == found
    for finding in found:
        stored = json.dumps([finding.sentence, finding.location, finding.evidence], allow_nan=False)
        assert "\\u0000" not in stored
        assert "\\ud800" not in stored
        assert len(finding.sentence) < 2_000
        assert finding.count >= 1
        assert finding.rule in RULES
    if nothing_read(seen):
        assert found == []
    pending(seen, held, kept)


def test_memory_may_be_empty() -> None:
    held = registered({"registered": {"ids": {1: [["orders-value", 1]]}}})
    assert judge([observation("framed", ["value", 0, 1, 5]), observation("totals", [5])], held, Memory()) == []
    assert version_of("a", 1, {}).registered_by == "ci"
    assert len(GUID) == 36
