"""Spark's DDL as this reads it: against Spark's own parser, back and forth, and hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.checkpoints.plans.ddl import parse_ddl
from registry.checkpoints.plans.model import to_ddl
from registry.errors import InvalidSchema
from tests.waiting import costs_little

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("ddl_recorded.json").read_text(encoding="utf-8"))

PLAIN = st.sampled_from(
    [
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp"),
        *("timestamp_ntz", "void", "variant", "interval", "interval day", "interval year to month", "char(3)"),
        *("varchar(9)", "time(3)", "decimal(10,2)", "decimal(38,0)"),
    ]
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
METADATA = st.one_of(
    st.just({}), st.builds(lambda text: {"comment": text}, st.text(st.characters(codec="ascii"), max_size=8))
)


def structs(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    field = st.builds(
        lambda name, kind, nullable, metadata: {
            "name": name, "type": kind, "nullable": nullable, "metadata": metadata,
        },
        NAMES, types, st.booleans(), METADATA,
    )  # fmt: skip
    return st.builds(lambda fields: {"type": "struct", "fields": fields}, st.lists(field, max_size=3))


def containers(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    array = st.builds(lambda kind: {"type": "array", "elementType": kind, "containsNull": True}, types)
    entries = st.builds(
        lambda key, kind: {"type": "map", "keyType": key, "valueType": kind, "valueContainsNull": True}, types, types
    )
    return st.one_of(array, entries, structs(types))


SCHEMAS = structs(st.recursive(PLAIN, containers, max_leaves=6))


def ours(text: str) -> Any:
    try:
        return parse_ddl(text)
    except InvalidSchema:
        return None


@pytest.mark.requirement("DBX-4")
def test_every_text_means_what_spark_reads_in_it() -> None:
    assert RECORDED["spark"] == "4.2.0"
    assert len(RECORDED["texts"]) > 500
    other = [text for text, theirs in RECORDED["texts"] if ours(text) != theirs]
    assert other == []


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS)
def test_a_schema_written_as_ddl_is_read_back(struct: dict[str, Any]) -> None:
    assert parse_ddl(to_ddl(struct)) == struct


@settings(deadline=None)
@given(st.text(st.sampled_from("ab<>(),:` '\"-/*\\1\nINTSTRUCTARRAYMAPDECIMAL NOT NULL COMMENT"), max_size=60))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        made = parse_ddl(text)
    except InvalidSchema as error:
        assert error.line is not None and error.column is not None
        assert 1 <= error.line <= text.count("\n") + 1
    else:
        assert made["type"] == "struct"


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a INT,\nb INTT", 2, 3, 'found "INTT"'),
        ("a ARRAY<INT", 1, 12, "found the end"),
        ("a INT NOT", 1, 10, "NULL after NOT"),
        ("a DECIMAL(40, 2)", 1, 3, "at most 38 digits"),
        ("a `INT`", 1, 3, "expected a type"),
        ("a INT COMMENT 'x", 1, 15, "never closed"),
        ("a STRUCT<b: INT DEFAULT 1>", 1, 17, "no defaults"),
        ("a GEOMETRY(4326)", 1, 3, "that Spark state supports"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(InvalidSchema, match=says.replace("(", r"\(")) as caught:
        parse_ddl(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a " + "ARRAY<" * 50_000,
        "a " + "STRUCT<a " * 20_000,
        ", ".join(f"a{number} INT" for number in range(30_000)),
        "a INT COMMENT '" + "\\" * 400_000,
        "/*" * 200_000,
        "a INT " + "-- \n" * 100_000 + "x",
        "x" * 2_000_000,
    ],
    ids=["deep arrays", "deep structs", "wide", "escapes", "comments", "many comments", "long"],
)
def test_hostile_texts_are_refused_soon(text: str) -> None:
    with costs_little():  # below two; a parser that looks at the rest of the text again and again takes minutes
        with pytest.raises(InvalidSchema):
            parse_ddl(text)
