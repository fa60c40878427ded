"""From a pasted message to its schema and its value."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.access.roles import Actor
from registry.drift.selectors.messages import MAX_BYTES, MAX_TEXT, DecodedMessage, decode_message, read_pasted
from registry.errors import InvalidInput
from registry.subjects.models import Schema
from registry.subjects.services import delete_version, register_version
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "message_cases.yaml").read_text())
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "string"}, {"name": "total", "type": ["null", "long"], "default": None}],
    }
)
PEOPLE = """syntax = "proto3"; package shop;
message Person { string name = 1; int32 age = 2; }
message Order { message Line { string sku = 1; } Line line = 1; }"""
THINGS = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
REGISTERED = {"orders": (ORDER, "AVRO"), "people": (PEOPLE, "PROTOBUF"), "things": (THINGS, "JSON")}


@pytest.fixture
def ids(registries: None, system: Actor) -> dict[str, int]:
    """Schema ids by topic."""
    by_topic = {}
    for topic, (text, kind) in REGISTERED.items():
        subject = parse_subject(f"{topic}-value")
        by_topic[topic] = register_version(
            registry="dev", subject=subject, text=text, schema_type=kind, by=system
        ).schema_id
    return by_topic


def filled(text: str, ids: dict[str, int]) -> str:
    """A case's text with the ids and the GUID that were given."""
    guid = Schema.objects.get(context__registry__name="dev", context__name=".", schema_id=ids["orders"]).guid
    for name, number in ids.items():
        text = text.replace(f"${name}", f"{number:08x}")
    return text.replace("0$id", f"{ids['orders']:02x}").replace("$guid", guid.hex).replace("$dashed", str(guid))


def message_of(case: dict[str, Any], ids: dict[str, int]) -> str:
    if "base64" in case:
        return base64.b64encode(bytes.fromhex(filled(case["base64"], ids))).decode()
    if "hex_of" in case:
        return f"00{ids['things']:08x}{case['hex_of'].encode().hex()}"
    return filled(case["text"], ids)


def decoded(case: dict[str, Any], ids: dict[str, int], by: Actor) -> DecodedMessage:
    return decode_message(
        get_registry("dev"),
        text=message_of(case, ids),
        headers=filled(case.get("headers", ""), ids),
        side=case.get("side", "value"),
        encoding=case.get("encoding", "auto"),
        by=by,
    )


@pytest.mark.requirement("SCS-3")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any], ids: dict[str, int], system: Actor) -> None:
    if "refused" in case:
        with pytest.raises(InvalidInput) as refusal:
            decoded(case, ids, system)
        assert case["refused"] in refusal.value.message
        return
    message = decoded(case, ids, system)
    values = json.loads(json.dumps(message.to_dict()))
    assert {name: values[name] for name in case["is"]} == case["is"]
    assert case.get("error", "") in message.error
    assert bool(message.error) == bool(case.get("error"))
    if "problem" in case:
        assert case["problem"] in message.problems[0]
    if "versions" in case:
        assert [[item.context, item.subject, item.version] for item in message.versions] == case["versions"]


def test_every_version_with_the_schema_is_reported_and_so_is_another_context(
    ids: dict[str, int], system: Actor
) -> None:
    for name in ("copies-value", ":.eu:orders-value"):
        register_version(registry="dev", subject=parse_subject(name), text=ORDER, by=system)
    delete_version(registry="dev", subject=parse_subject("copies-value"), version=1, by=system)
    case = {"text": "00$orders046f310254"}
    assert [(item.subject, item.deleted) for item in decoded(case, ids, system).versions] == [
        ("copies-value", True),
        ("orders-value", False),
    ]
    there = decode_message(get_registry("dev"), text="0000000001046f310254", context=".eu", by=system)
    assert [(item.context, item.subject) for item in there.versions] == [(".eu", ":.eu:orders-value")]
    elsewhere = decode_message(get_registry("staging"), text=message_of(case, ids), by=system)
    assert "dev ." in elsewhere.elsewhere


def test_sizes_are_bounded() -> None:
    assert len(read_pasted("00" * MAX_BYTES).data) == MAX_BYTES
    with pytest.raises(InvalidInput, match="the maximum is"):
        read_pasted("00" * (MAX_BYTES + 1))
    with pytest.raises(InvalidInput, match="characters"):
        read_pasted("A" * (MAX_TEXT + 1))


def test_a_few_bytes_that_declare_a_billion_items_are_refused(registries: None, system: Actor) -> None:
    subject = parse_subject("nulls-value")
    text = '{"type": "array", "items": "null"}'
    number = register_version(registry="dev", subject=subject, text=text, by=system).schema_id
    message = decode_message(get_registry("dev"), text=f"00{number:08x}80a8d6b90700", by=system)
    assert "a block declares 1,000,000,000 items" in message.error


def test_logical_values_are_reported_beside_the_raw_ones(registries: None, system: Actor) -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "Bill",
            "fields": [
                {
                    "name": "sum",
                    "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
                },
                {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                {"name": "at", "type": {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}}},
            ],
        }
    )
    name = parse_subject("bills-value")
    number = register_version(registry="dev", subject=name, text=text, schema_type="AVRO", by=system).schema_id
    body = "020232" + "8839" + "02f6a1abfef96200"
    message = decode_message(get_registry("dev"), text=f"00{number:08x}{body}", by=system)
    assert message.value == {"sum": "2", "day": 3652, "at": [1_700_000_000_123]}
    assert message.logical == {
        "Bill.sum": "0.50", "Bill.day": "1980-01-01", "Bill.at[0]": "2023-11-14T22:13:20.123000+00:00",
    }  # fmt: skip
