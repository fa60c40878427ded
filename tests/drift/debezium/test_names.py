"""Names of topics, schemas and fields, held against what the connector's own classes made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.drift.debezium.tables import (
    Mode,
    NamedTable,
    field_name,
    is_avro_full_name,
    is_avro_name,
    name_collisions,
    schema_name,
    topic_name,
)

pytestmark = pytest.mark.requirement("DEB-6")

#: a name, then what Debezium 3.7.0.Final makes of it: SchemaTopicNamingStrategy.sanitizedTopicName, SchemaNameAdjuster
#: with the replacement functions of `avro`, `avro_unicode`, and of fields under both
ADJUSTED = json.loads((Path(__file__).parent / "adjusted_names.json").read_text("utf-8"))
MODES: tuple[Mode, ...] = ("none", "avro", "avro_unicode")
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@pytest.mark.parametrize("row", ADJUSTED, ids=lambda row: row[0][:20])
def test_names_are_what_the_connector_makes_of_them(row: list[str]) -> None:
    name, topic, avro, unicode, field, field_unicode = row
    # What JSON gives as two surrogates is one character here.
    assert topic_name(name) == topic
    assert (schema_name(name, "avro"), schema_name(name, "avro_unicode")) == (avro, unicode)
    assert (field_name(name, "avro"), field_name(name, "avro_unicode")) == (field, field_unicode)
    assert schema_name(name, "none") == field_name(name, "none") == name


@given(NAMES)
def test_a_topic_is_one_that_the_broker_takes(name: str) -> None:
    topic = topic_name(name)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic)
    assert topic not in (".", "..")
    assert topic_name(topic) == topic


@given(NAMES.filter(lambda name: name[0].isascii() or not name[0].isdecimal()))
def test_an_adjusted_field_is_an_avro_name(name: str) -> None:
    """But one that begins with a digit of another script: the connector keeps it (see adjusted_names.json)."""
    for mode in ("avro", "avro_unicode"):
        assert is_avro_name(field_name(name, mode))  # type: ignore[arg-type]


@given(NAMES, NAMES)
def test_unicode_fields_never_meet_where_an_escape_is_as_long_as_four_digits(one: str, other: str) -> None:
    """Of characters below U+1000 an escape has three digits or four, which is where two names can still meet."""
    if one != other and all(ord(char) < 0x100 or 0x1000 <= ord(char) < 0xD800 for char in one + other):
        assert field_name(one, "avro_unicode") != field_name(other, "avro_unicode")


def table(name: str, topic: str = "", full_name: str = "", fields: dict[str, str] | None = None) -> NamedTable:
    return NamedTable(name, topic or name, full_name or topic or name, fields or {})


@given(st.lists(NAMES, unique=True, max_size=12))
def test_all_that_meets_is_found_and_nothing_else(columns: list[str]) -> None:
    fields = {column: field_name(column, "avro") for column in columns}
    collisions = [meeting for meeting in name_collisions([table("t", fields=fields)]) if meeting.kind == "field"]
    for meeting in collisions:
        assert meeting.table == "t"
        assert len(meeting.names) > 1
        assert {fields[column] for column in meeting.names} == {meeting.becomes}
    meeting_columns = {column for meeting in collisions for column in meeting.names}
    alone = [fields[column] for column in columns if column not in meeting_columns]
    assert len(set(alone)) == len(alone)
    assert not set(alone) & {meeting.becomes for meeting in collisions}


def test_one_topic_is_no_clash_and_a_shared_topic_no_clash_of_schemas() -> None:
    collisions = name_collisions([table("a b", "s.a_b", "s.a_b"), table("a_b", "s.a_b", "s.a_b")])
    assert [(meeting.kind, meeting.names) for meeting in collisions] == [("topic", ("a b", "a_b"))]


def test_a_part_that_begins_with_a_digit_is_no_avro_name_in_any_mode() -> None:
    for mode in MODES:
        assert not is_avro_full_name(schema_name("shop.digit.9lives.Value", mode))
