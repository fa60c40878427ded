"""Java's regular expressions, held against what Java itself answered (java_matches.json), and against hostile ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.drift.debezium.filters import MAX_ALL_STEPS, PatternNotUnderstood, StepBudget, compile_pattern
from registry.drift.debezium.java_regex_parser import MAX_PATTERN
from tests.waiting import costs_little

#: pattern, `i` for CASE_INSENSITIVE, text, replacement; what Pattern.matches and Matcher.replaceFirst said (JDK 17,
#: random patterns and some by hand), null for a pattern or replacement that Java refuses
JAVA = json.loads((Path(__file__).parent / "java_matches.json").read_text("utf-8"))
NOT_UNDERSTOOD = {
    r"(a)\1": "a back reference",
    r"a++": "possessive",
    "a" + "*" * 1_500: "a repetition of a repetition",
    "a{1}" * 400 + "{1}" * 100: "a repetition of a repetition",
    r"(?>a)": r"the group \(\?>",
    r"(?<=a)b": r"the group \(\?<",
    r"[a&&b]": "intersection",
    r"\p{IsGreek}": "character class",
    r"(?=(a))": "capturing group inside a look-ahead",
    r"(a": "unmatched '\\('",
    r"a)": "unmatched '\\)'",
    r"[a": "unmatched '\\['",
    r"*a": "nothing to repeat",
    r"a{x}": "without numbers",
    r"a{99999}": "too long",
    r"(a{100}){100}": "too long",
    "a\\": "backslash at the end",
    "(?x)a": r"the group \(\?x",
    "(?<a>x)(?<a>y)": "two groups with the same name",
    "(" * 60 + ")" * 60: "nested too deeply",
    "[" * 60 + "a" + "]" * 60: "nested too deeply",
    "a" * (MAX_PATTERN + 1): "more than",
    r"[b-a]": "empty range",
    r"\b": r"\\b",
}


def test_java_answers_the_same() -> None:
    compared = 0
    for pattern, flag, text, replacement, matches, replaced in JAVA:
        try:
            ours = compile_pattern(pattern, ignore_case=flag == "i")
        except PatternNotUnderstood:
            continue
        assert matches is not None, pattern
        assert ours.matches(text) is matches, (pattern, text)
        if replaced is not None:
            assert ours.replace_first(text, replacement) == replaced, (pattern, text)
        compared += 1
    assert compared > 450


@pytest.mark.parametrize("pattern", NOT_UNDERSTOOD, ids=lambda pattern: pattern[:20])
def test_what_is_not_understood_is_said(pattern: str) -> None:
    with pytest.raises(PatternNotUnderstood, match=NOT_UNDERSTOOD[pattern]):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b", r"(a*)*b", r"(.*)(.*)(.*)(.*)(.*)x", r"(?!(?:a|a)*b)a*c"])
def test_no_pattern_costs_more_than_its_bound(pattern: str) -> None:
    """Patterns on which a backtracking engine takes years."""
    with costs_little():  # one or two
        ours = compile_pattern(pattern)
        assert ours.matches("a" * 400 + "!") is False


def test_many_matches_out_of_one_purse_end_too() -> None:
    budget = StepBudget(1_000_000)
    hostile = [compile_pattern("(?:" + "a?" * number + ")*z", budget=budget) for number in (300, 700)]
    for number in range(10):
        for ours in hostile:
            with pytest.raises(PatternNotUnderstood, match="too costly"):
                ours.matches(f"{'a' * 900}{number}")
    assert budget.left == 0
    with pytest.raises(PatternNotUnderstood, match="too costly"):
        compile_pattern("a", budget=budget).matches("a")


def test_a_plain_filter_over_very_many_columns_stays_within_its_purse() -> None:
    ours = compile_pattern(r"public\..*\.(secret|password)_.*", ignore_case=True)
    for number in range(20_000):
        assert not ours.matches(f"public.a_table_with_a_long_name_{number % 100}.a_column_of_it_{number}")
    assert ours.budget.left > MAX_ALL_STEPS / 2


def test_a_replacement_with_a_group_that_is_not_there_is_refused() -> None:
    ours = compile_pattern("(a)(?<name>b)")
    assert ours.replace_first("ab", r"$2$1${name}\$$11") == "bab$a1"
    for replacement in ("$3", "$x", "${other}", "$"):
        with pytest.raises(PatternNotUnderstood):
            ours.replace_first("ab", replacement)


NAME = st.text(st.sampled_from("abAB_.$-1"), min_size=1, max_size=8)


@given(NAME, NAME)
def test_a_quoted_name_matches_itself_alone(name: str, other: str) -> None:
    for quoted in (rf"\Q{name}\E", re.escape(name)):
        assert compile_pattern(quoted).matches(name)
        assert compile_pattern(quoted).matches(other) is (other == name)


@given(st.text(st.sampled_from(r"ab(){}[]|*+?.\^$-,1&:<>=!iQEdwpu"), max_size=30), st.text("ab1", max_size=8))
def test_any_text_is_a_pattern_or_is_said_not_to_be(pattern: str, text: str) -> None:
    try:
        is_match = compile_pattern(pattern, ignore_case=True).matches(text)
    except PatternNotUnderstood as error:
        assert str(error)
    else:
        assert is_match in (True, False)
