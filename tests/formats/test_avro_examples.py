"""The values that hazards change, shown as examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from registry.formats.avro import AVRO
from registry.formats.compatibility import check


def decimal(scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}


def long(logical: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": logical}


@pytest.mark.parametrize(
    ("writer", "reader", "example"),
    [
        (decimal(2), decimal(3), "12345 on the wire means 123.45 to the writer and 12.345 to the reader"),
        (
            long("timestamp-millis"),
            long("timestamp-micros"),
            "1700000000000 on the wire means 2023-11-14T22:13:20+00:00 to the writer and 1970-01-20T16:13:20+00:00 "
            "to the reader",
        ),
        (
            long("timestamp-nanos"),
            long("timestamp-millis"),
            "1700000000000000000 on the wire means 2023-11-14T22:13:20+00:00 to the writer and a moment beyond the "
            "year 9999 to the reader",
        ),
        (
            {"type": "int", "logicalType": "date"},
            {"type": "int", "logicalType": "time-millis"},
            "19675 on the wire means 2023-11-14 to the writer and 00:00:19.675 to the reader",
        ),
        ("long", "double", "9007199254740993 is read as 9007199254740992"),
        ("int", "float", "16777217 is read as 16777216"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
            "B is read as A",
        ),
        ("bytes", "string", ""),
        (long("timestamp-millis"), "long", ""),
    ],
)
def test_the_changed_value(writer: Any, reader: Any, example: str) -> None:
    old, new = (
        AVRO.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}))
        for type_ in (writer, reader)
    )
    report = check(AVRO, new, [(1, old)], "BACKWARD")
    assert report.is_compatible
    assert [item.example for item in report.hazards] == [example]
    assert report.to_dict()["items"][0]["example"] == example


TIMES = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    long("time-micros"),
    *(long(f"{kind}-{unit}") for kind in ("timestamp", "local-timestamp") for unit in ("millis", "micros", "nanos")),
)


@pytest.mark.parametrize("writer", TIMES, ids=[item["logicalType"] for item in TIMES])
@pytest.mark.parametrize("reader", TIMES, ids=[item["logicalType"] for item in TIMES])
def test_every_pair_of_times_is_judged(writer: dict[str, Any], reader: dict[str, Any]) -> None:
    judgement = AVRO.judge(AVRO.parse(json.dumps(reader)), AVRO.parse(json.dumps(writer)))
    for item in judgement.hazards:
        assert item.example or item.rule == "LOGICAL_TYPE_CHANGED"
    if judgement.is_compatible and writer != reader:
        assert judgement.hazards
