"""Short forms of what a judgement is made of, as case files write them, and the columns of recorded events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from registry.drift.debezium.columns import RowShape
from registry.drift.debezium.connector import ConnectorConfig, read_config, read_status
from registry.drift.debezium.facts import ConnectorFacts, Guard, TopicFacts
from registry.drift.debezium.last_rows import SIDES, LastRows, TableColumns
from registry.drift.debezium.row_schemas import SchemaText, row_of, row_of_profiles
from registry.drift.debezium.tables import Catalog, Column, Index, Publication, Slot, Table
from registry.observations import ChangeEvents, FieldProfile, Side, Span
from tests.debezium.events import Event, recorded, recorded_schemas

CONFIG = {
    "name": "shop",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "topic.prefix": "shop",
    "slot.name": "shop",
    "publication.name": "everything",
    "skipped.operations": "none",
}
#: a column as SQL declares it → its type in the catalog, and what its modifier says
_TYPES: dict[str, dict[str, Any]] = {
    "int": {"type": "int4"},
    "bigint": {"type": "int8"},
    "text": {"type": "text"},
    "varchar(255)": {"type": "varchar", "length": 255},
    "numeric(10,2)": {"type": "numeric", "precision": 10, "scale": 2},
    "numeric(12,4)": {"type": "numeric", "precision": 12, "scale": 4},
    "int[]": {"type": "_int4", "dimensions": 1},
    "int[][]": {"type": "_int4", "dimensions": 2},
    "point[]": {"type": "_point", "dimensions": 1},
    "timestamptz": {"type": "timestamptz"},
    "inet": {"type": "inet"},
    "mood": {"type": "mood", "kind": "enum", "labels": ("sad", "ok")},
}


def column(name: str, text: str) -> Column:
    """`int not null default 5`, `text`, `bigint generated`."""
    type_text, _, default = text.partition(" default ")
    declared = type_text.replace(" not null", "").replace(" generated", "")
    return Column(
        name=name,
        declared=declared,
        nullable=" not null" not in type_text,
        default=default or None,
        generated=" generated" in type_text,
        **_TYPES[declared],
    )


def table(name: str, values: dict[str, Any]) -> Table:
    """A table of a case: columns, key, identity (with `index`), unique, publications, published, dropped, partitioned,
    ancestors."""
    schema, _, short = name.partition(".")
    key = tuple(values.get("key", ()))
    unique = [Index(f"{short}_pkey", key, primary=True)] if key else []
    if "index" in values:
        unique.append(Index(f"{short}_index", tuple(values["index"]), replica_identity=True))
    unique += [
        Index(index, tuple(item["columns"]), partial=item.get("partial", False))
        for index, item in values.get("unique", {}).items()
    ]
    return Table(
        schema=schema,
        name=short,
        columns=tuple(
            replace(column(item, text), number=number)
            for number, (item, text) in enumerate(values["columns"].items(), start=1)
        ),
        primary_key=key,
        unique=tuple(unique),
        identity=values.get("identity", "default"),
        publications=tuple(values.get("publications", ["everything"])),
        dropped_columns=values.get("dropped", 0),
        partitioned=values.get("partitioned", False),
        ancestors=tuple(values.get("ancestors", ())),
        published_columns={"everything": tuple(values["published"])} if "published" in values else {},
    )


def catalog(values: dict[str, Any]) -> Catalog:
    """The catalog of a case."""
    publish = values.get("publish", "insert update delete truncate").split()
    operations = [word in publish for word in ("insert", "update", "delete", "truncate")]
    tables = tuple(table(name, item) for name, item in values.get("tables", {}).items())
    published = frozenset(item.full_name for item in tables if "everything" in item.publications)
    publication = Publication("everything", *operations, published)
    slot = {
        "active": True,
        "wal_status": "reserved",
        "lag_bytes": 1000,
        "safe_bytes": None,
        **(values.get("slot") or {}),
    }
    return Catalog(
        database="shop_db",
        server_version=180000,
        wal_level="logical",
        tables=tables,
        publications={} if values.get("publication") is False else {"everything": publication},
        slots={} if values.get("slot") is False else {"shop": Slot("shop", "pgoutput", **slot)},
    )


def span(messages: int) -> Span:
    """So many messages from offset 0 on."""
    return Span(messages, messages * 100, 0, messages - 1, 1_000, 2_000)


def changes(topic: str, values: dict[str, Any]) -> tuple[ChangeEvents, ...]:
    """`{"public.customers c": 3, "public.customers d": {messages: 2, newkey: 1}}`."""
    result = []
    for where, what in values.items():
        name, _, op = where.rpartition(" ")
        schema, _, short = name.partition(".")
        more = what if isinstance(what, dict) else {"messages": what}
        counts = {
            "with_before": 0,
            "newkey": 0,
            "oldkey": 0,
            "snapshot": 0,
            "in_transaction": 0,
            "unavailable": 0,
            **more,
        }
        number = counts.pop("messages")
        result.append(ChangeEvents(topic, 0, op, "shop_db", schema, short, span(number), **counts))  # type: ignore[arg-type]
    return tuple(result)


def connect_text(fields: dict[str, str], *, envelope: bool) -> str:
    """A Connect schema: `{id: int32, name: "string~"}`."""
    row = {
        "type": "struct",
        "optional": envelope,
        "fields": [
            {"type": kind.rstrip("~"), "optional": kind.endswith("~"), "field": name} for name, kind in fields.items()
        ],
    }
    if not envelope:
        return json.dumps(row)
    op = {"type": "string", "optional": False, "field": "op"}
    return json.dumps({"type": "struct", "fields": [{**row, "field": "before"}, {**row, "field": "after"}, op]})


_AVRO = {"int32": "int", "int64": "long", "string": "string", "boolean": "boolean"}


def avro_text(fields: dict[str, str], *, envelope: bool) -> str:
    """An Avro schema as Connect's converters write it."""
    listed = []
    for name, kind in fields.items():
        plain = _AVRO[kind.rstrip("~")]
        optional = {"type": ["null", plain], "default": None}
        listed.append({"name": name, **(optional if kind.endswith("~") else {"type": plain})})
    row = {"type": "record", "name": "Value", "namespace": "shop.t", "fields": listed, "connect.name": "shop.t.Value"}
    if not envelope:
        return json.dumps({**row, "name": "Key", "connect.name": "shop.t.Key"})
    parts = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ]
    return json.dumps({"type": "record", "name": "Envelope", "namespace": "shop.t", "fields": parts})


def schemas(fields_by_side: dict[str, Any], language: str) -> dict[str, SchemaText]:
    """`{key: {…}, value: {…}}` as schemas of that language; a text is taken as it is."""
    make = avro_text if language == "AVRO" else connect_text
    return {
        side: SchemaText(language, fields if isinstance(fields, str) else make(fields, envelope=side == "value"))  # type: ignore[arg-type]
        for side, fields in fields_by_side.items()
    }


def profiles(topic: str, values: dict[str, str], rows: int) -> tuple[FieldProfile, ...]:
    """`{after.id: integer, "after.name": "string 3"}`: the number is in how many messages the path is there."""
    result = []
    for path, text in values.items():
        kind, _, present = text.partition(" ")
        number = int(present or rows)
        side = "value"
        if path.startswith("key:"):
            side, path = "key", path.removeprefix("key:")  # noqa: PLW2901
        counts = {} if kind == "null" else {kind: number}
        nulls = number if kind == "null" else 0
        result.append(FieldProfile(topic, side, None, "", path, rows, number, nulls, counts, None, None, None, {}))  # type: ignore[arg-type]
    return tuple(result)


def json_rows(seen: tuple[FieldProfile, ...]) -> dict[Side, RowShape]:
    """The rows and keys of JSON without a schema."""
    return {side: row for side in SIDES if (row := row_of_profiles(seen, side)) is not None}


def topic(name: str, values: dict[str, Any]) -> TopicFacts:
    """The facts of a topic of a case."""
    change_events = changes(name, values.get("events", {}))
    rows = sum(events.span.messages for events in change_events)
    registered = schemas(values.get("registered", {}), "AVRO")
    guards = {}
    if "level" in values:
        guards = {
            side: Guard(
                values["level"],
                (schema.text,),
                mode=values.get("mode", "READWRITE"),
                is_closed=values.get("closed", False),
            )
            for side, schema in registered.items()
        }
    return TopicFacts(
        topic=name,
        partitions=values.get("partitions", 1),
        compacted=values.get("compacted", False),
        messages=values.get("messages", rows + values.get("tombstones", 0)),
        null_keys=values.get("null_keys", 0),
        tombstones=values.get("tombstones", 0),
        nulls_are_newest=values.get("nulls_are_newest", False),
        subjects={side: f"{name}-{side}" for side in registered},  # type: ignore[misc]
        registered=registered,  # type: ignore[arg-type]
        guards=guards,  # type: ignore[arg-type]
        event_schemas=schemas(values.get("seen", {}), values.get("written", "CONNECT")),  # type: ignore[arg-type]
        last_rows=LastRows(
            rows=json_rows(profiles(name, values.get("json", {}), rows)),
            columns=TableColumns("", 0, dict(enumerate(values["columns_before"], 1)))
            if "columns_before" in values
            else None,
        ),
        changes=change_events,
        tables=tuple(sorted({*map(tuple, values.get("tables", [])), *_tables(change_events)})),
    )


def _tables(change_events: tuple[ChangeEvents, ...]) -> set[tuple[str, str, str]]:
    return {(events.database, events.schema, events.table) for events in change_events if events.table}


def world(case: dict[str, Any]) -> ConnectorFacts:
    """The world of a case."""
    status = case.get("status", {"connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "RUNNING"}]})
    return ConnectorFacts(
        config=read_config({**CONFIG, **case.get("config", {})}),
        status=read_status(status),
        catalog=None if case.get("catalog") is False else catalog(case.get("catalog", {})),
        topics={name: topic(name, item) for name, item in case.get("topics", {}).items()},
    )


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
