"""The events of Debezium's real connector, recorded and sent through a real broker, in its three forms."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from registry.observations import ChangeEvents, ChangeShape, Profile, SchemaNotUsed, UndecodableMessages, WriterSchema
from registry.pipeline import run
from tests.debezium.events import recorded, recorded_schemas
from tests.pipeline.test_topic_scan import only
from tests.pipeline.topics import Message, make_topic, scan_of

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.slow]

SCENARIOS = ("inventory", "key_change", "truncated", "messages", "identities", "types")
# op, schema, table → events, with a row before, with newkey, with oldkey, unavailable
Counts = dict[tuple[str, str, str], tuple[int, ...]]


def counts_of(found: list[ChangeEvents]) -> Counts:
    summed: dict[tuple[str, str, str], list[int]] = {}
    for each in found:
        row = (each.span.messages, each.with_before, each.newkey, each.oldkey, each.unavailable)
        before = summed.setdefault((each.op, each.schema, each.table), [0] * 5)
        summed[each.op, each.schema, each.table] = [one + other for one, other in zip(before, row, strict=True)]
    return {key: tuple(row) for key, row in summed.items()}


def expected_counts() -> Counts:
    """Counted by hand from the events in JSON, which need no decoder but Python's."""
    counted: dict[tuple[str, str, str], Counter[int]] = {}
    for scenario in SCENARIOS:
        for event in recorded(scenario, "json"):
            value: Any = json.loads(event.value) if event.value is not None else None
            if value is None or "op" not in value:
                continue
            source = value["source"]
            table = "" if value["op"] == "m" else source["table"]
            marks = (
                1,
                value["before"] is not None if "before" in value else 0,
                event.header("__debezium.newkey") is not None,
                event.header("__debezium.oldkey") is not None,
                "__debezium_unavailable_value" in json.dumps([value.get("before"), value.get("after")]),
            )
            at = counted.setdefault((value["op"], source["schema"], table), Counter())
            at.update({place: int(mark) for place, mark in enumerate(marks)})
    return {key: tuple(row[place] for place in range(5)) for key, row in counted.items()}


@pytest.mark.requirement("DEB-2", "DEB-3")
@pytest.mark.parametrize("converter", ["json", "json_schema", "avro"])
def test_changes_are_counted_in_every_form(kafka_bootstrap: str, spark_remote: str, converter: str) -> None:
    messages: list[Message] = [
        (event.partition, event.key, event.value, list(event.headers))
        for scenario in SCENARIOS
        for event in recorded(scenario, converter)
    ]
    topic = make_topic(kafka_bootstrap, messages, partitions=3)
    writers = tuple(
        WriterSchema("id", str(number), "AVRO", schema["schema"]) for number, schema in recorded_schemas().items()
    )
    spec = scan_of(kafka_bootstrap, topic, more=writers if converter == "avro" else (), profile=Profile(changes=True))
    seen = run(spec, remote=spark_remote)
    assert only(UndecodableMessages, seen) == []
    assert only(SchemaNotUsed, seen) == []
    assert counts_of(only(ChangeEvents, seen)) == expected_counts()
    shapes = only(ChangeShape, seen)
    assert bool(shapes) == (converter == "json_schema")
    for shape in shapes:
        assert json.loads(shape.text)["type"] == "struct"
