"""The text comparison: what is drawn is the whole truth of the two texts."""

from __future__ import annotations

import json
from itertools import pairwise, takewhile
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dashboard.components.diff import MAX_ROWS, Row, laid_out, laid_out_diff, lines_of, match_lines, text_diff
from tests.waiting import costs_little

pytestmark = pytest.mark.requirement("CARD-2")

LINES = st.lists(st.sampled_from(["{", "}", '  "a": 1,', '  "a": 2,', '  "b": 1', "", "x" * 500]), max_size=30)


def text_of(rows: tuple[Row, ...], side: str) -> list[tuple[int, str]]:
    lines = [getattr(row, side) for row in rows if getattr(row, side) is not None]
    return [(line.number, "".join(piece.text for piece in line.segments)) for line in lines]


@given(LINES, LINES)
def test_both_texts_can_be_read_back(old: list[str], new: list[str]) -> None:
    assume(lines_of("\n".join(old)) != lines_of("\n".join(new)))
    diff = text_diff("\n".join(old), "\n".join(new), context=1000)
    for side, text in (("old", "\n".join(old)), ("new", "\n".join(new))):
        assert text_of(diff.rows, side) == list(enumerate(lines_of(text), start=1))
        assert sorted(text_of(diff.unified, side)) == list(enumerate(lines_of(text), start=1))


@given(LINES, LINES)
def test_skipped_lines_are_counted(old: list[str], new: list[str]) -> None:
    diff = text_diff("\n".join(old), "\n".join(new))
    skipped = sum(row.skipped for row in diff.rows)
    assert len(text_of(diff.rows, "old")) + skipped == len(lines_of("\n".join(old)))
    assert len(text_of(diff.rows, "new")) + skipped == len(lines_of("\n".join(new)))
    assert diff.added == sum(1 for row in diff.unified if row.kind == "added")
    assert diff.removed == sum(1 for row in diff.unified if row.kind == "removed")


def test_alike_lines_face_each_other_and_the_changed_word_is_marked() -> None:
    diff = text_diff('fax: string\namount: "int", cents', 'amount: "long", cents')
    assert [row.kind for row in diff.rows] == ["removed", "changed"]
    changed = diff.rows[1]
    assert changed.old is not None and changed.new is not None
    assert [piece.text for piece in changed.old.segments if piece.changed] == ["int"]
    assert [piece.text for piece in changed.new.segments if piece.changed] == ["long"]


@given(LINES, LINES)
def test_lines_that_stay_are_equal_on_both_sides(old: list[str], new: list[str]) -> None:
    pairs = match_lines(old, new)
    assert all(old[i] == new[j] for i, j in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    common = len(list(takewhile(lambda both: both[0] == both[1], zip(old, new, strict=False))))
    assert [pair for pair in pairs if pair[0] < common][:common] == [(at, at) for at in range(common)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{\n}\n" * 5_000, "{\n{\n}\n" * 4_000),
        ("{\n}\n" * 499, "{\n{\n}\n" * 330),
        ("".join(f"a{n}\n" for n in range(20_000)), "".join(f"a{n}\n" for n in reversed(range(20_000)))),
        ("x" * 1_000_000, "y" * 1_000_000),
        (
            "".join(f"{n} " + "x y " * 90 + "\n" for n in range(2_000)),
            "".join(f"{n} " + "y x x " * 60 + "\n" for n in range(2_000)),
        ),
        ("".join(f"a{n}\n" + "x\n" * 45 for n in range(400)), "".join(f"a{n}\n" + "y\n" * 45 for n in range(400))),
    ],
    ids=["braces", "few braces", "reversed", "one long line", "many words", "many blocks"],
)
def test_hostile_texts_take_bounded_time(old: str, new: str) -> None:
    """Below a second each; a comparison of all with all takes minutes."""
    with costs_little():
        text_diff(old, new)


def test_equal_texts() -> None:
    assert text_diff("a\nb", "a\nb").identical
    assert not text_diff("a\nb", "a\nc").identical


def test_a_schema_of_2000_fields_takes_little_and_draws_a_bounded_page() -> None:
    old = "\n".join(f'    {{\n      "name": "f{index}",\n      "type": "int"\n    }},' for index in range(2_000))
    new = old.replace('"int"', '"long"')
    with costs_little():
        diff = text_diff(old, new)
    assert len(diff.rows) == MAX_ROWS
    assert diff.added == diff.removed == 2_000
    assert diff.hidden_rows > 0


def test_what_isnt_drawn_is_counted_line_by_line() -> None:
    old = "\n".join(f"line {number}" for number in range(100))
    new = old.replace("line", "row")
    diff = text_diff(old, new, limit=30)
    assert (len(diff.rows), diff.added, diff.removed) == (30, 100, 100)
    assert diff.hidden_rows == 200 - len(diff.unified)
    whole = text_diff(old, new)
    assert (whole.rows[:30], whole.hidden_rows) == (diff.rows, 0)


@given(LINES, LINES, st.integers(1, 20))
def test_a_part_is_the_beginning_of_the_whole(old: list[str], new: list[str], limit: int) -> None:
    part, whole = (text_diff("\n".join(old), "\n".join(new), limit=most) for most in (limit, 1_000))
    assert part.rows == whole.rows[:limit]
    assert (part.added, part.removed) == (whole.added, whole.removed)
    drawn, lines = (sum(row.kind != "skip" for row in diff.unified) for diff in (part, whole))
    assert (whole.hidden_rows, part.hidden_rows) == (0, lines - drawn)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(JSONS)
def test_a_json_text_is_laid_out_as_python_does(value: Any) -> None:
    assert laid_out(json.dumps(value)) == json.dumps(value, indent=2, ensure_ascii=False)


def longest_name(value: Any) -> int:
    """Characters of the longest name of a property with its quotes, as it is written."""
    if isinstance(value, dict):
        return max((max(len(json.dumps(name)), longest_name(inner)) for name, inner in value.items()), default=0)
    return max(map(longest_name, value), default=0) if isinstance(value, list) else 0


@given(JSONS, st.integers(10, 80))
@example({"0\x07": [None]}, 10)  # a name that is longer as it is written
def test_what_fits_stays_on_a_line(value: Any, width: int) -> None:
    text = json.dumps(value)
    brief, whole = laid_out(text, width=width), laid_out(text)
    assert laid_out(brief) == whole
    assert len(brief.split("\n")) <= len(whole.split("\n"))
    apart = set(whole.split("\n"))
    most = width + 1 + longest_name(value) + len(": ")
    assert all(len(line) <= most for line in brief.split("\n") if line not in apart)


def test_an_object_that_fits_is_a_line() -> None:
    text = '{"fields": [{"name": "id", "type": "long"}, {"name": "tags", "type": ["null", "string"]}]}'
    assert laid_out(text, width=60).split("\n") == [
        "{",
        '  "fields": [',
        '    { "name": "id", "type": "long" },',
        '    { "name": "tags", "type": ["null", "string"] }',
        "  ]",
        "}",
    ]
    assert laid_out(text, width=120) == text.replace("{", "{ ").replace("}", " }")


def test_texts_that_were_compared_are_distinguished_by_text_layout_and_limit() -> None:
    one, other = '{"a": [1, 2, 3]}', '{"a": [1, 2, 4]}'
    for _ in range(2):
        assert laid_out_diff(one, other, str) == text_diff(one, other)
        assert laid_out_diff(one, other, laid_out) == text_diff(laid_out(one), laid_out(other))
        assert laid_out_diff(one, other, laid_out, limit=2) == text_diff(laid_out(one), laid_out(other), limit=2)
        assert laid_out_diff(other, one, laid_out) == text_diff(laid_out(other), laid_out(one))
