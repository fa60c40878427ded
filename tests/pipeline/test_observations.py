"""Observations and specifications as JSON lines, there and back, and everything that is none."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest

from registry.observations import (
    Bounds,
    ChangeEvents,
    ConnectSchema,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    KafkaConnection,
    LimitExceeded,
    MalformedObservation,
    MessageIndexes,
    NullMessages,
    Observation,
    OffsetsExpired,
    OtherGroups,
    PartitionRange,
    PartitionRead,
    Profile,
    Sample,
    ScanSpec,
    ScanTotals,
    SchemaNotUsed,
    Span,
    StateExpiry,
    StateFieldNulls,
    StateFieldRange,
    StateKeys,
    StateLimit,
    StateRows,
    StateScan,
    StateSchemaVersion,
    StateTimers,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
    TopicLost,
    TopicRead,
    TopicRemade,
    TopicScan,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
    WriterSchema,
    decode_observations,
    decode_spec,
    encode_observations,
    encode_spec,
)

GUID = "0190b6d5-5f83-7d6e-a1b2-c3d4e5f60718"
SPAN = Span(3, 120, 10, 14, 1_780_000_000_000, 1_780_000_000_500)
ALL: list[Observation] = [
    PartitionRead("orders", 0, 10, 15, 0, 20, 3),
    FramedMessages("orders", "value", 0, "id", "7", SPAN),
    FramedTwice("orders", "value", 0, GUID, 7, SPAN),
    UnframedMessages("orders", "key", 0, "json_object", SPAN),
    NullMessages("orders", "value", 0, SPAN),
    UndecodableMessages(
        "orders",
        "value",
        0,
        "guid",
        GUID,
        SPAN,
        (10, 12),
        ("the body ends before its schema does", ""),
        "malformed",
        {"the body ends before its schema does": 1},
    ),
    UndecodableMessages("orders", "value", 0, None, "", SPAN, (), (), by_reason={"the text isn't JSON": 3}),
    UndecodableMessages("orders", "value", 0, "id", "7", SPAN, (3,), ("at type",), "violates"),
    OffsetsExpired("orders", 0, 3, 9),
    MessageIndexes("orders", "value", 0, "id", "7", "1.0", SPAN),
    FieldProfile("orders", "value", "id", "7", "a[].b", 9, 8, 1, {"string": 8}, 5, "1 characters", None, {"A": 1}),
    FieldProfile(
        "orders",
        "value",
        "id",
        "7",
        "#7",
        9,
        1,
        0,
        {"unknown": 1},
        1,
        None,
        None,
        {"varint": 1},
        (0, 8),
        "",
        {"unknown": (0, 8)},
        (1, 0),
    ),
    LimitExceeded("orders", "value", "id", "7", "fields", 500, None, 3),
    ChangeEvents("orders", 0, "u", "shop", "public", "orders", SPAN, 1, 2, 3, 4, 5, 6),
    ConnectSchema("orders", "value", "ab12", "{}", SPAN, 0),
    Sample("orders", "value", 0, 10, 1_780_000_000_000, None, "", '{"a": "aa (2)"}', False),
    SchemaNotUsed("content_type", "vnd.user.v1", "wörter\nund\u2028mehr"),
    SchemaNotUsed("id", "7", "given up", "orders", "value"),
    OtherGroups("orders", 0, 4, SPAN),
    TopicLost("gone", "it was deleted"),
    TopicLost("away", "no broker leads it", may_pass=True),
    TopicRemade("orders", "", "Jv5e0Kc1QkeI0SL4Yv8sHA", 1_780_000_000_000, None),
    TopicRemade("orders", "", "", 1_780_000_000_000, 7),
    TopicTotals("orders", 3, 120, "groups"),
    ScanTotals(2, 3, 120, None, 1.5),
    StateSchemaVersion(0, "totals", "value", 1, 0, None, "avro", "{}", "{}", None),
    StateLimit("value_schemas", 0, "totals", 2, 16),
    StateRows(0, None, 4, 10),
    StateFieldNulls(0, "totals", 4, "value.a", 10, 3),
    StateKeys(0, None, 4, 9, 1200),
    StateFieldRange(0, "totals", 4, "value.a", "bigint", "+10^2", None, 80),
    StateExpiry(0, "totals", 4, 1, 1_780_000_000_000, None),
    StateTimers(0, 4, 2, None, 1_780_000_000_500),
    StateUnreadable(0, "totals", None, "gone"),
    StateTotals("/c", 1, 10, "deadline", 2.0),
]
SPECS: list[ScanSpec] = [
    TopicScan(
        KafkaConnection("a:1,b:2", "SASL_SSL", "PLAIN", "u", None, "pem"),
        (TopicRead("orders", (PartitionRange(0, 1, 5, 0, 9),)), TopicRead("users", ())),
        (WriterSchema("id", "7", "AVRO", '"string"'), WriterSchema("guid", GUID, "PROTOBUF", "Cg==")),
        Profile(fields=False, changes=True, samples=3, reveal=True),
        Bounds(deadline_seconds=3.0),
    ),
    StateScan(
        "/c", (StateVariableRead(0, "totals", "value", 4), StateVariableRead(1, None, "join_rows", None, "left"))
    ),
]


def test_every_kind_comes_back_as_it_was() -> None:
    assert {type(observation) for observation in ALL} == set(typing.get_args(Observation))
    text = encode_observations(ALL)
    assert text.count("\n") == len(ALL)
    assert list(decode_observations(text)) == ALL
    assert [decode_spec(encode_spec(spec)) for spec in SPECS] == SPECS


def test_the_envelope_takes_no_name_that_a_field_has() -> None:
    for kind in [*typing.get_args(Observation), *typing.get_args(ScanSpec)]:
        assert not {field.name for field in dataclasses.fields(kind)} & {"v", "type"}


def test_a_password_is_neither_written_nor_shown() -> None:
    connection = KafkaConnection("a:1", "SASL_SSL", "PLAIN", "u", "hunter2")
    spec = TopicScan(connection, ())
    assert "hunter2" not in encode_spec(spec) + repr(spec)
    assert decode_spec(encode_spec(spec)).connection.password is None  # type: ignore[union-attr]


GOOD = json.loads(encode_observations([FramedMessages("orders", "value", 0, "id", "7", SPAN)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v": 1}, "format version 1"),
        ({"v": True}, "format version true"),
        ({"v": None}, "format version null"),
        ({"type": "Something"}, 'type "Something"'),
        ({"type": ["FramedMessages"]}, "type ["),
        ({"type": "TopicScan"}, 'type "TopicScan"'),
        ({"extra": 1}, "a field too many: extra"),
        ({"partition": "7"}, 'partition is "7", not int'),
        ({"partition": 7.0}, "partition is 7.0, not int"),
        ({"partition": True}, "partition is true, not int"),
        ({"partition": None}, "partition is null, not int"),
        ({"mark": 7}, "mark is 7, not str"),
        ({"framing": "magic"}, 'framing is "magic", not one of id, guid, content_type'),
        ({"side": "header"}, 'side is "header", not one of key, value'),
        ({"span": [1, 2]}, "span is [1, 2], not an object"),
        ({"span": {**GOOD["span"], "bytes": "many"}}, 'span.bytes is "many", not int'),
    ],
)
def test_a_wrong_line_is_named_with_its_number_and_field(change: dict[str, object], message: str) -> None:
    lines = encode_observations(ALL[:2]) + "\n" + json.dumps({**GOOD, **change})
    with pytest.raises(MalformedObservation, match="line 4") as caught:
        list(decode_observations(lines))
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", ["side", "span", "mark"])
def test_a_missing_field_is_named(missing: str) -> None:
    line = json.dumps({name: value for name, value in GOOD.items() if name != missing})
    with pytest.raises(MalformedObservation, match=f"has no field {missing}"):
        list(decode_observations(line))


@pytest.mark.parametrize("line", ["{", "[]", "7", "null", '"x"', "[" * 100_000, "NaN"])
def test_what_is_no_object_is_refused(line: str) -> None:
    with pytest.raises(MalformedObservation, match="line 1"):
        list(decode_observations(line))


def test_a_schema_id_is_a_number_of_its_framing_alone() -> None:
    assert FramedMessages("t", "value", 0, "id", "7", SPAN).schema_id == 7
    assert FramedMessages("t", "value", 0, "guid", GUID, SPAN).schema_id is None
