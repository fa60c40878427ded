"""The shapes of recorded events: what Debezium's real connector wrote, as the product reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from registry.drift.debezium.connector import ConnectorConfig
from registry.drift.debezium.reading import SchemaText, row_of
from registry.drift.debezium.shapes import RowShape
from registry.observations import Side
from tests.debezium.events import Event, recorded, recorded_schemas

CONVERTERS = ("json_schema", "avro")


def config_of(converter: str) -> ConnectorConfig:
    """The configuration that the events were recorded with, as far as it shapes them."""
    names = "avro" if converter == "avro" else "none"
    return ConnectorConfig("shop", f"shop_{converter}", schema_names=names, field_names=names)  # type: ignore[arg-type]


def schema_of(event: Event, side: Side) -> SchemaText | None:
    """The schema of a recorded key or value; None of a null."""
    body = event.key if side == "key" else event.value
    if body is None:
        return None
    if body[:1] == b"\x00":
        return SchemaText("AVRO", recorded_schemas()[int.from_bytes(body[1:5], "big")]["schema"])
    schema = json.loads(body)["schema"]
    return None if schema is None else SchemaText("CONNECT", json.dumps(schema))


#: tables whose rows have a null key; elsewhere that is a truncate's, which is no row
WITHOUT_KEY = ("log", "log_full", "key_dropped")


def events_of(scenario: str, converter: str, table: str) -> Iterator[Event]:
    """The events of a table that have a row, in their order."""
    for event in recorded(scenario, converter):
        if event.topic == f"shop_{converter}.{scenario}.{table}" and event.value is not None:
            if event.key is None and table not in WITHOUT_KEY:
                continue
            yield event


def shapes_of(scenario: str, converter: str, table: str) -> Iterator[tuple[RowShape, RowShape]]:
    """Row and key of every event of a table that has a row; a null key is one without fields."""
    for event in events_of(scenario, converter, table):
        value, key = schema_of(event, "value"), schema_of(event, "key")
        assert value is not None
        yield row_of(value, "value"), row_of(key, "key") if key else RowShape({})
