"""JSON Pointers and the places they lead to."""

from __future__ import annotations

import pytest

from registry.formats.json_pointer import PositionIndex, escape, join, parent, position, unescape, without_comments

TEXT = """{ // {"no": 1}
  "a/b": [1, {"~": "x, \\"y\\" // z"},
    /* "c": 2 */ true],
  "a": {"b": {}}, "\\u0063": null
}"""


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", (1, 1)),
        ("/a~1b", (2, 10)),
        ("/a~1b/0", (2, 11)),
        ("/a~1b/1", (2, 14)),
        ("/a~1b/1/~0", (2, 20)),
        ("/a~1b/2", (3, 18)),
        ("/a", (4, 8)),
        ("/a/b", (4, 14)),
        ("/c", (4, 29)),
        ("/a/b/not/there", (4, 14)),
        ("/nowhere", (1, 1)),
    ],
)
def test_places(pointer: str, expected: tuple[int, int]) -> None:
    assert position(TEXT, pointer) == expected


def test_no_pointer_has_no_place() -> None:
    assert position(TEXT, None) is None
    assert position("", "/a") is None


def test_comments_are_blanked_and_nothing_moves() -> None:
    blanked = without_comments(TEXT)
    assert len(blanked) == len(TEXT)
    assert [len(line) for line in blanked.split("\n")] == [len(line) for line in TEXT.split("\n")]
    assert "no" not in blanked
    assert '// z"' in blanked


def test_duplicates_are_found() -> None:
    assert PositionIndex('{"a": {"b": 1, "b": 2}}').first_duplicate == ("b", 15)
    assert PositionIndex('[{"b": 1}, {"b": 2}]').first_duplicate is None


@pytest.mark.parametrize("text", ["}", "]", '{"a"', "[1,", ':"x"', ",,,", '{"a":}', "{{{", '"\\', "\x00"])
def test_broken_texts_raise_nothing(text: str) -> None:
    PositionIndex(text).find("/a/b")


def test_escapes() -> None:
    assert join("", "a/b~c", 0) == "/a~1b~0c/0"
    assert unescape(escape("~1/~0")) == "~1/~0"
    assert parent("/a/b") == "/a"
    assert parent("") == ""
