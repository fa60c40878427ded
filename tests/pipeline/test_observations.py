"""Observations and specifications as JSON lines, there and back, and everything that is none."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest

from registry.observations import (
    Bounds,
    FramedMessages,
    KafkaConnection,
    MalformedObservation,
    NullMessages,
    Observation,
    OtherGroups,
    PartitionRange,
    PartitionRead,
    ScanSpec,
    SchemaNotUsed,
    Span,
    StateFieldNulls,
    StateLimit,
    StateRows,
    StateScan,
    StateSchemaVersion,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
    TopicScan,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
    decode_observations,
    decode_spec,
    encode_observations,
    encode_spec,
)

SPAN = Span(3, 120, 10, 14, 1_780_000_000_000, 1_780_000_000_500)
ALL: list[Observation] = [
    PartitionRead(0, 10, 15, 0, 20, 3),
    FramedMessages("value", 0, 7, SPAN),
    UnframedMessages("key", 0, "json_object", SPAN),
    NullMessages("value", 0, SPAN),
    UndecodableMessages("value", 0, 7, SPAN),
    SchemaNotUsed(7, "wörter\nund\u2028mehr"),
    OtherGroups(0, 4, SPAN),
    TopicTotals("orders", 3, 120, None, 1.5),
    StateSchemaVersion(0, "totals", "value", 1, 0, None, "avro", "{}", "{}", None),
    StateLimit("value_schemas", 0, "totals", 2, 16),
    StateRows(0, None, 4, 10),
    StateFieldNulls(0, "totals", 4, "value.a", 10, 3),
    StateUnreadable(0, "totals", None, "gone"),
    StateTotals("/c", 1, 10, "deadline", 2.0),
]
SPECS: list[ScanSpec] = [
    TopicScan(
        KafkaConnection("a:1,b:2", "SASL_SSL", "PLAIN", "u", None, "pem"),
        "orders",
        (PartitionRange(0, 1, 5, 0, 9),),
        {7: '"string"'},
        Bounds(deadline_seconds=3.0),
    ),
    StateScan(
        "/c", (StateVariableRead(0, "totals", "value", 4), StateVariableRead(1, None, "join_rows", None, "left"))
    ),
]


def test_every_kind_comes_back_as_it_was() -> None:
    assert {type(seen) for seen in ALL} == set(typing.get_args(Observation))
    text = encode_observations(ALL)
    assert text.count("\n") == len(ALL)
    assert list(decode_observations(text)) == ALL
    assert [decode_spec(encode_spec(spec)) for spec in SPECS] == SPECS


def test_the_envelope_takes_no_name_that_a_field_has() -> None:
    for kind in [*typing.get_args(Observation), *typing.get_args(ScanSpec)]:
        assert not {field.name for field in dataclasses.fields(kind)} & {"v", "type"}


def test_a_password_is_neither_written_nor_shown() -> None:
    connection = KafkaConnection("a:1", "SASL_SSL", "PLAIN", "u", "hunter2")
    spec = TopicScan(connection, "orders", ())
    assert "hunter2" not in encode_spec(spec) + repr(spec)
    assert decode_spec(encode_spec(spec)).connection.password is None  # type: ignore[union-attr]


GOOD = json.loads(encode_observations([FramedMessages("value", 0, 7, SPAN)]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v": 2}, "format version 2"),
        ({"v": True}, "format version true"),
        ({"v": None}, "format version null"),
        ({"type": "Something"}, 'type "Something"'),
        ({"type": ["FramedMessages"]}, "type ["),
        ({"type": "TopicScan"}, 'type "TopicScan"'),
        ({"extra": 1}, "a field too many: extra"),
        ({"schema_id": "7"}, 'schema_id is "7", not int'),
        ({"schema_id": 7.0}, "schema_id is 7.0, not int"),
        ({"schema_id": True}, "schema_id is true, not int"),
        ({"schema_id": None}, "schema_id is null, not int"),
        ({"side": "header"}, 'side is "header", not one of key, value'),
        ({"span": [1, 2]}, "span is [1, 2], not an object"),
        ({"span": {**GOOD["span"], "bytes": "many"}}, 'span.bytes is "many", not int'),
    ],
)
def test_a_wrong_line_is_named_with_its_number_and_field(change: dict[str, object], words: str) -> None:
    lines = encode_observations(ALL[:2]) + "\n" + json.dumps({**GOOD, **change})
    with pytest.raises(MalformedObservation, match="line 4") as caught:
        list(decode_observations(lines))
    assert words in str(caught.value)


@pytest.mark.parametrize("missing", ["side", "span", "schema_id"])
def test_a_missing_field_is_named(missing: str) -> None:
    line = json.dumps({name: value for name, value in GOOD.items() if name != missing})
    with pytest.raises(MalformedObservation, match=f"has no field {missing}"):
        list(decode_observations(line))


@pytest.mark.parametrize("line", ["{", "[]", "7", "null", '"x"', "[" * 100_000, "NaN"])
def test_what_is_no_object_is_refused(line: str) -> None:
    with pytest.raises(MalformedObservation, match="line 1"):
        list(decode_observations(line))


def test_ids_of_writer_schemas_are_numbers() -> None:
    line = json.loads(encode_spec(SPECS[0]))
    line["writer_schemas"] = {"-1": '"string"'}
    with pytest.raises(MalformedObservation, match="not a schema id"):
        decode_spec(json.dumps(line))
