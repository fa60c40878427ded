"""The judgement of topics, states and streaming queries, case by case; statistics; and numbers as people read them.

Every rule has a case where it speaks and one where it is silent.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random
from string import Formatter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.drift.judge import (
    JudgedFinding,
    Memory,
    declared_fields,
    in_order,
    judge,
    nothing_read,
    pending,
    subjects_by_side,
    unproved,
)
from registry.drift.judge.baselines import MIN_NOW, NULL_FLOOR, Share, departure, departure_to_zero, usable, z_score
from registry.drift.judge.declared_fields import DeclaredField, DeclaredFields
from registry.drift.judge.finding_builder import (
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
from registry.drift.judge.model import storable
from registry.drift.judge.streaming_queries import (
    QueryFacts,
    RunFacts,
    SchemaFacts,
    SubjectVersion,
    VariableFacts,
    judge_query,
)
from registry.drift.rules import RULES, TABLES
from registry.formats import FORMATS
from registry.formats.policies.spark_state import parse_struct
from registry.observations import FramedMessages, TopicTotals
from tests.drift.judge.cases import (
    DAY,
    GUID,
    NOW,
    load_cases,
    memory,
    observation,
    observations,
    registered,
    span,
    struct,
    version_of,
)

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
    assert not set(expected.get("lacks", [])) & set(finding.evidence)
    for name in ("subject", "cause", "cause_group", "count", "topic"):
        assert getattr(finding, name) == expected.get(name, getattr(finding, name))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    observed, versions, scan_memory = observations(case), registered(case), memory(case)
    findings = judge(observed, versions, scan_memory)
    assert [finding.rule for finding in findings] == [expected["rule"] for expected in case["findings"]]
    for finding, expected in zip(findings, case["findings"], strict=True):
        check(finding, expected)
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
        for secret in case.get("never_says", []):
            assert secret not in json.dumps([finding.sentence, finding.remedy, finding.location, finding.evidence])
    assert nothing_read(observed) is case.get("nothing_read", False)
    assert len({finding.fingerprint for finding in findings}) == len(findings)
    waiting = [
        [version.topic, version.subject, version.version] for version in pending(observed, versions, scan_memory)
    ]
    assert waiting == case.get("pending", waiting)
    assert judge(reversed(list(observed)), versions, scan_memory) == findings


def test_findings_beyond_the_limit_of_a_rule_are_counted() -> None:
    paths = [f"o{number // 15}.extra{number}" for number in range(52)]
    kinds = {"object": 9}
    parents = sorted({path.partition(".")[0] for path in paths})
    observed = [
        observation("framed", ["value", 0, 1, 9, 0, 8]),
        observation("profile", ["value", 1, "id", 9, 9, 0, {"integer": 9}]),
        *(observation("profile", ["value", 1, parent, 9, 9, 0, kinds]) for parent in parents),
        *(observation("profile", ["value", 1, path, 9, 9, 0, {"integer": 9}]) for path in paths),
        observation("totals", [9]),
    ]
    text = json.dumps({"properties": {"id": {}, **{parent: {"properties": {"x": {}}} for parent in parents}}})
    versions = registered({"registered": {"ids": {1: [["orders-value", 1, {"schema_type": "JSON"}]]}}})
    declared = declared_fields(FORMATS["JSON"].parse(text))
    assert declared is not None
    findings = judge(observed, replace(versions, declared={("orders-value", 1): declared}))
    assert Counter(finding.rule for finding in findings) == {"FIELD_UNDECLARED": 50, "CHECK_LIMITED": 1}
    (limited,) = (finding for finding in findings if finding.rule == "CHECK_LIMITED")
    assert limited.sentence == (
        "orders (value), schema id 1 was not checked in full: a scan lists at most 50 findings of FIELD_UNDECLARED "
        "here, and 2 more exist."
    )
    assert (limited.count, limited.evidence["left_out"]) == (2, 2)
    assert unproved(findings) == {("orders", "FIELD_UNDECLARED")}


def test_a_schema_that_is_read_in_part_says_so() -> None:
    observed = [
        observation("framed", ["value", 0, 1, 9, 0, 8]),
        observation("profile", ["value", 1, "id", 9, 9, 0, {"integer": 9}]),
        observation("totals", [9]),
    ]
    versions = registered({"registered": {"ids": {1: [["orders-value", 1, {"schema_type": "JSON"}]]}}})
    for is_cut in (False, True):
        declared = DeclaredFields({"id": DeclaredField(frozenset({"integer"}))}, is_cut=is_cut)
        findings = judge(observed, replace(versions, declared={("orders-value", 1): declared}))
        assert [finding.sentence for finding in findings] == is_cut * [
            "orders (value), schema id 1 was not checked in full: a scan reads at most 2,000 fields of orders-value "
            "version 1, 12 levels deep, and there are more."
        ]


@pytest.mark.parametrize("table", ["Topics", "Fields of decoded messages"])
def test_every_rule_has_a_case(table: str) -> None:
    reported = {expected["rule"] for case in CASES for expected in case["findings"]}
    assert {rule.id for rule in TABLES[table]} - reported == set()
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
    versions = registered({"registered": {"ids": {7: [["{registry}-{0}", 1]], 8: [["{t}-value", 1]]}}})
    observed = [FramedMessages("{t}", "value", 0, "id", "7", span(1)), TopicTotals("{t}", 1, 50, None)]
    (finding,) = judge(observed, versions)
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
    observed = [observation("framed", ["value", 0, 1, 5]), observation("totals", [5])]
    owner = subjects_by_side(observed, registered({"registered": given_}))["orders", "value"]
    assert (list(owner.strategies), list(owner.subjects)) == (strategies, subjects)


@pytest.mark.requirement("SCS-3")
def test_a_content_type_names_its_subject_itself() -> None:
    observed = [observation("framed", ["value", 0, "vnd.sensor.v2", 5]), observation("totals", [5])]
    versions = registered({"registered": {"ids": {"vnd.sensor.v2": [["sensor", 2]]}}})
    assert subjects_by_side(observed, versions)["orders", "value"].subjects == ("sensor",)
    assert judge(observed, versions) == []


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
    observed, versions, scan_memory = observations(case), registered(case), memory(case)
    findings = judge(observed, versions, scan_memory)
    random.shuffle(observed)
    assert judge(observed, versions, scan_memory) == findings
    for finding in findings:
        stored = json.dumps([finding.sentence, finding.location, finding.evidence], allow_nan=False)
        assert "\\u0000" not in stored
        assert "\\ud800" not in stored
        assert len(finding.sentence) < 2_000
        assert finding.count >= 1
        assert finding.rule in RULES
    if nothing_read(observed):
        assert findings == []
    pending(observed, versions, scan_memory)


def test_memory_may_be_empty() -> None:
    versions = registered({"registered": {"ids": {1: [["orders-value", 1]]}}})
    assert judge([observation("framed", ["value", 0, 1, 5]), observation("totals", [5])], versions, Memory()) == []
    assert version_of("a", 1, {}).registered_by == "ci"
    assert len(GUID) == 36


QUERY_CASES = load_cases("judge_cases_queries.yaml")
OURS = {
    "STATE_FILES_DAMAGED",
    "STATE_EVOLVED_UNRELEASED",
    "STATE_DIFFERS_FROM_SUBJECT",
    "STATE_KEY_AT_RISK",
    "STATE_CANNOT_EVOLVE",
    "STATE_CHECK_OFF",
    "STATE_SETTING_CHANGED",
    "CHECKPOINT_NOT_ADVANCING",
}
TIMES = ("last_batch_time", "last_message")


def variable(name: str, values: dict[str, Any]) -> VariableFacts:
    key, map_key = (struct(values[part]) if part in values else "" for part in ("key", "map_key"))
    versions = tuple(
        SchemaFacts(number, batch, int(day * DAY), struct(fields), key, map_key)
        for number, (batch, day, fields) in enumerate(values["versions"], start=1)
    )
    return VariableFacts(0, name, values.get("encoding", "avro"), values.get("evolvable", True), versions)


def facts(values: dict[str, Any]) -> QueryFacts:
    values_by_name = {key: int(value * DAY) if key in TIMES else value for key, value in values.items()}
    values_by_name["runs"] = tuple(RunFacts(*item) for item in values.get("runs", ()))
    values_by_name["variables"] = tuple(variable(*item) for item in values.get("variables", {}).items())
    values_by_name["subjects"] = tuple(
        SubjectVersion(subject, version, int(day * DAY), released, parse_struct(struct(fields)))
        for subject, version, day, released, fields in values.get("subjects", ())
    )
    for name in ("planned", "problems"):
        values_by_name[name] = tuple(values.get(name, ()))
    return QueryFacts(path="/state/q", observed_at=NOW * DAY, **values_by_name)


@pytest.mark.requirement("CARD-3", "DBX-3", "DBX-5")
@pytest.mark.parametrize("case", QUERY_CASES, ids=lambda case: case["name"])
def test_query_case(case: dict[str, Any]) -> None:
    findings = in_order(judge_query(facts(case["query"])))
    assert [finding.rule for finding in findings] == [finding["rule"] for finding in case["findings"]]
    assert not {finding.rule for finding in findings} & set(case.get("not", ()))
    for finding, expected in zip(findings, case["findings"], strict=True):
        assert finding.severity == expected["severity"]
        assert finding.location == expected.get("location", finding.location)
        assert finding.subject == expected.get("subject", finding.subject)
        for part in expected.get("says", ()):
            assert part in finding.sentence
        assert "{" not in finding.sentence + finding.remedy
        json.dumps(finding.evidence, allow_nan=False)
    assert len({finding.fingerprint for finding in findings}) == len(findings)


def test_every_rule_speaks_and_is_silent() -> None:
    assert set(RULES) >= OURS
    assert {finding["rule"] for case in QUERY_CASES for finding in case["findings"]} == OURS
    assert {rule for case in QUERY_CASES for rule in case.get("not", ())} == OURS


SHARE = st.builds(lambda whole, part: Share(round(whole * part), whole), st.integers(0, 10**9), st.floats(0, 1))


def test_the_z_score_is_that_of_the_textbook() -> None:
    # Two samples of 200 with 30 % and 20 %: pooled 25 %, error sqrt(0.1875 / 100).
    assert z_score(Share(60, 200), Share(40, 200)) == pytest.approx(0.1 / (0.25 * 0.75 / 100) ** 0.5)
    assert z_score(Share(1, 1), Share(0, 0)) == z_score(Share(5, 5), Share(9, 9)) == 0.0


@given(SHARE, st.lists(SHARE, max_size=30))
def test_any_shares_are_judged(now: Share, days: list[Share]) -> None:
    for departed in (departure(now, days, floor=NULL_FLOOR, usual=0), departure_to_zero(now, days, usual=0)):
        if departed is not None:
            assert now.whole >= MIN_NOW
            assert departed.days >= 7
            assert not departed.least <= now.value <= departed.most
    if days and now in days:
        assert departure(now, days, floor=NULL_FLOOR, usual=250) is None


@given(st.floats(0, 1), st.integers(0, 2**32))
def test_chance_alone_departs_from_nothing(share: float, seed: int) -> None:
    random = Random(seed)

    def draw(whole: int) -> Share:
        return Share(sum(random.random() < share for _ in range(whole)), whole)

    days = [draw(250) for _ in range(7)]
    assert departure(draw(250), days, floor=NULL_FLOOR, usual=250) is None
    assert departure_to_zero(draw(250), days, usual=250) is None


def test_what_is_enough() -> None:
    assert usable(200, [200] * 7, 200)
    assert not usable(199, [200] * 7, 200)
    assert not usable(200, [200] * 6, 200)
    assert not usable(200, [49] * 30, 49)
    assert not usable(200, [1_000] * 7, 1_000), "a fifth of a day may be its odd hours"
    assert usable(200, [1_000] * 7, 300), "a weekday with less than the others"
    assert departure(Share(80, 200), [Share(10, 200)] * 7, floor=NULL_FLOOR, usual=200) is not None
    assert departure_to_zero(Share(0, 200), [Share(30, 200)] * 7, usual=200) is not None
    assert departure_to_zero(Share(0, 200), [Share(10, 200)] * 7, usual=200) is None


@pytest.mark.parametrize(
    ("sentence", "text"),
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
def test_words(sentence: str, text: str) -> None:
    assert sentence == text


@given(st.floats(0, 1), st.integers(-(10**20), 10**20))
def test_any_number_has_words(share: float, number: int) -> None:
    assert percent(share).endswith("%")
    assert moment(number)
    assert span_of_time(number)


def test_what_no_database_holds_is_replaced() -> None:
    assert storable({"a\0": ["\ud800", ("b", 1, None)]}) == {
        "a\N{REPLACEMENT CHARACTER}": ["\N{REPLACEMENT CHARACTER}", ["b", 1, None]]
    }


def test_the_title_of_a_group_names_only_what_the_sentence_names() -> None:
    """The names that fill a sentence fill the title too."""
    names = {rule.id: (set(_placeholders(rule.sentence)), set(_placeholders(rule.group))) for rule in RULES.values()}
    assert {rule: group - sentence for rule, (sentence, group) in names.items() if group - sentence} == {}


def _placeholders(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name]
