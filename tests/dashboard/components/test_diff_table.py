"""Two texts compared as the page draws them: every line with its number, its sign and what changed in it; harmless."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from dashboard.components.diff import Row, TextDiff, text_diff

pytestmark = pytest.mark.requirement("CARD-2")

#: those with markup, and one with a word that may be broken and is more than a text node
PLAIN = st.lists(
    st.sampled_from(["{", "}", '  "a": 1,', '  "a": 2,', "<b>&amp;</b>", "", "'x'", "y" * 60]), max_size=30
)
SIGNS = {"same": "", "removed": "−", "added": "+"}


class _Cells(HTMLParser):
    """The rows of a table, each cell with its classes and its text; what is marked stands in brackets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[tuple[set[str], str]]] = []
        self.tags: set[str] = set()
        self.is_inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.is_inside = True
            self.rows[-1].append((set((dict(attrs).get("class") or "").split()), ""))
        elif tag in ("ins", "del"):
            self.handle_data("[")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("ins", "del"):
            self.handle_data("]")
        self.is_inside = self.is_inside and tag != "td"

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            classes, text = self.rows[-1][-1]
            self.rows[-1][-1] = (classes, text + data)


def drawn(diff: TextDiff, view: str) -> _Cells:
    return _Cells(render_to_string("components/diff_rows.html", {"diff": diff, "view": view}))


def half(row: Row, side: str) -> list[str]:
    """What one side of a row shows: its number, its sign, its text."""
    line = getattr(row, side)
    if line is None:
        return [""]
    mark = "same" if row.kind == "same" else "removed" if side == "old" else "added"
    text = "".join(f"[{piece.text}]" if piece.changed else piece.text for piece in line.segments)
    return [str(line.number), SIGNS[mark], text]


@given(PLAIN, PLAIN)
def test_side_by_side_each_line_is_drawn_with_its_number_and_sign(old: list[str], new: list[str]) -> None:
    diff = text_diff("\n".join(old), "\n".join(new))
    shown = drawn(diff, "split")
    assert [[text for _, text in cells] for cells in shown.rows] == [
        [f"{row.skipped} unchanged lines"] if row.kind == "skip" else [*half(row, "old"), *half(row, "new")]
        for row in diff.rows
    ]
    assert "b" not in shown.tags


@given(PLAIN, PLAIN)
def test_one_below_the_other_too(old: list[str], new: list[str]) -> None:
    diff = text_diff("\n".join(old), "\n".join(new))
    expected = []
    for row in diff.unified:
        if row.kind == "skip":
            expected.append([f"{row.skipped} unchanged lines"])
            continue
        numbers = [str(line.number) if line else "" for line in (row.old, row.new)]
        expected.append([*numbers, *half(row, "new" if row.new else "old")[1:]])
    shown = drawn(diff, "unified")
    assert [[text for _, text in cells] for cells in shown.rows] == expected
    assert "b" not in shown.tags


@pytest.mark.parametrize("view", ["split", "unified"])
def test_colours_say_what_signs_say(view: str) -> None:
    for cells in drawn(text_diff("a\nb: 1\nc", "a\nb: 2\nc\nd"), view).rows:
        for sign, colour in (("−", "is-removed"), ("+", "is-added")):
            at = [index for index, (classes, text) in enumerate(cells) if "sign" in classes and text == sign]
            assert all(colour in cells[index][0] and colour in cells[index + 1][0] for index in at)
        assert len(cells) == (6 if view == "split" else 4) or "is-void" in cells[0][0] | cells[-1][0]


def test_what_would_hide_or_reorder_a_line_is_shown() -> None:
    for view in ("split", "unified"):
        html = render_to_string("components/diff_rows.html", {"diff": text_diff("a", "\u202eb"), "view": view})
        assert "\u202e" not in html and "U+202E" in html
