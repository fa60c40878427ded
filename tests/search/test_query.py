"""The language of the search box."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidInput
from registry.search.query import MAX_CHARACTERS, OPERATORS, Query, Term, is_id, parse_query
from registry.search.selectors import looks_pasted

pytestmark = pytest.mark.requirement("CARD-2")

#: query → (operator, value) of its parts
PARTS: list[tuple[str, list[tuple[str, str]]]] = [
    ("", []),
    ("   \t ", []),
    ("orders value", [("", "orders"), ("", "value")]),
    ('"orders value"', [("", "orders value")]),
    ("field:email", [("field", "email")]),
    ("FIELD:Email", [("field", "Email")]),
    ('doc:"gdpr relevant" tag:pii', [("doc", "gdpr relevant"), ("tag", "pii")]),
    (r'"say \"hi\" \\ there"', [("", r'say "hi" \ there')]),
    ("compat:none", [("compat", "NONE")]),
    ("drift:YES", [("drift", "yes")]),
    ("id:0042", [("id", "0042")]),
    (":.eu:orders-value", [("", ":.eu:orders-value")]),
    ('"http://x"', [("", "http://x")]),
    ("100% a_b [x]* (y|z)", [("", "100%"), ("", "a_b"), ("", "[x]*"), ("", "(y|z)")]),
    ("\u202eevil \u200f", [("", "\u202eevil"), ("", "\u200f")]),
    ("a a field:x field:x", [("", "a"), ("field", "x")]),
    ('""', []),
    ("field:email,type:string", [("field", "email,type:string")]),
]
#: query → what the message says
REFUSED: list[tuple[str, str]] = [
    (
        "colour:red",
        "'colour:' is not an operator. The operators are field:, id:, type:, doc:, tag:, compat:, drift:, ref:",
    ),
    ("http://example.org", "put it in quotes"),
    ('field:"open', "The quote at character 7 isn't closed"),
    ("field:", "field: needs a value, for example field:address.email"),
    ('type:""', "type: needs a value"),
    ("field: email", "field: needs a value"),
    ("id:0", "id: needs a schema id"),
    ("id:2147483648", "id: needs a schema id"),
    ("compat:EVER", "BACKWARD_TRANSITIVE"),
    ("drift:1", "yes or no"),
    ("a\0b", r"Character 2 of the query is U\+0000"),
    ("a\ud800", r"U\+D800"),
    ("x" * 10_000, "10,000 characters. At most 2,000"),
    (" ".join(f"w{n}" for n in range(13)), "13 terms. At most 12"),
]


def test_the_page_of_the_docs_has_the_operators() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "search.md").read_text()
    for operator in OPERATORS.values():
        assert re.search(rf"^\| `{operator.name}:` \| .+ \| `{re.escape(operator.example)}` \|$", page, re.MULTILINE)
        assert parse_query(operator.example).terms[0].operator == operator.name


@pytest.mark.parametrize(("text", "parts"), PARTS, ids=[text for text, _ in PARTS])
def test_a_query_has_parts(text: str, parts: list[tuple[str, str]]) -> None:
    assert [(term.operator, term.value) for term in parse_query(text).terms] == parts


@pytest.mark.parametrize(("text", "said"), REFUSED, ids=[ascii(text[:20]) for text, _ in REFUSED])
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said if "\\" in said else None) as refused:
        parse_query(text)
    assert "\\" in said or said in refused.value.message


@given(st.text(max_size=200) | st.text(alphabet='abf:"\\ %_*\u202e\x00id', max_size=60))
def test_any_text_is_a_query_or_is_refused_with_words(text: str) -> None:
    try:
        query = parse_query(text)
    except InvalidInput as error:
        assert error.message
        return
    assert parse_query(query.text) == query
    assert all(term.operator in ("", *OPERATORS) and term.value for term in query.terms)


_VALUES = (
    st.text(min_size=1, max_size=40)
    .map(str.strip)
    .filter(lambda text: text and "\0" not in text and text.isprintable())
)


@given(
    st.lists(
        st.builds(Term, st.sampled_from(["", "field", "type", "doc", "tag", "ref"]), _VALUES), max_size=8, unique=True
    )
)
def test_a_query_written_out_is_read_as_the_same(terms: list[Term]) -> None:
    query = Query(tuple(terms))
    assert len(query.text) > MAX_CHARACTERS or parse_query(query.text) == query
    for number in range(len(terms)):
        assert query.without(number).terms == tuple(terms[:number] + terms[number + 1 :])


@pytest.mark.parametrize(
    ("text", "is_pasted"),
    [
        ("orders", False),
        ("field:email", False),
        ("12345", False),
        ("00000001", False),
        ("0000000001", True),
        ("00 00 00 00 09 02 06 61 62 63", True),
        ("0x0000000001ff", True),
        ("01" + "ab" * 16, True),
        ("01abcdef", False),
        ("AAAAAAECBg==", True),
        ("AAPL", False),
        ("deadbeefdeadbeef", False),
        ('{"type": "string"}', True),
        ('["null", "string"]', True),
        ('syntax = "proto3"; message A { }', True),
        ("message", False),
    ],
)
def test_what_looks_pasted(text: str, is_pasted: bool) -> None:
    assert looks_pasted(text) == is_pasted


@pytest.mark.parametrize(
    ("text", "known"),
    [("1", True), ("0", False), ("１２", False), ("a" * 64, True), ("A" * 64, True), ("g" * 64, False),
     ("12345678-1234-1234-1234-1234567890ab", True), ("12345678123412341234123456789012", False)],
)  # fmt: skip
def test_what_an_id_is(text: str, known: bool) -> None:
    assert is_id(text) == known
