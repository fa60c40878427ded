"""Short forms of what a judgement is made of, as case files write them."""

from __future__ import annotations

import json
from typing import Any

from registry.drift.debezium.connector import read_config, read_status
from registry.drift.debezium.facts import Guard, TopicFacts, World
from registry.drift.debezium.reading import SchemaText
from registry.drift.debezium.tables import Catalog, Column, Index, Publication, Slot, Table
from registry.observations import ChangeEvents, FieldProfile, Span

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
    "mood": {"type": "mood", "kind": "enum", "labels": ("sad", "ok")},
}


def column(name: str, text: str) -> Column:
    """`int not null default 5`, `text`, `bigint generated`."""
    words, _, default = text.partition(" default ")
    declared = words.replace(" not null", "").replace(" generated", "")
    return Column(
        name=name,
        declared=declared,
        nullable=" not null" not in words,
        default=default or None,
        generated=" generated" in words,
        **_TYPES[declared],
    )


def table(name: str, given: dict[str, Any]) -> Table:
    """A table of a case: columns, key, identity (with `index`), unique, publications, published, dropped."""
    schema, _, short = name.partition(".")
    key = tuple(given.get("key", ()))
    unique = [Index(f"{short}_pkey", key, primary=True)] if key else []
    if "index" in given:
        unique.append(Index(f"{short}_index", tuple(given["index"]), replica_identity=True))
    unique += [
        Index(index, tuple(each["columns"]), partial=each.get("partial", False))
        for index, each in given.get("unique", {}).items()
    ]
    return Table(
        schema=schema,
        name=short,
        columns=tuple(column(each, text) for each, text in given["columns"].items()),
        primary_key=key,
        unique=tuple(unique),
        identity=given.get("identity", "default"),
        publications=tuple(given.get("publications", ["everything"])),
        dropped_columns=given.get("dropped", 0),
        published_columns={"everything": tuple(given["published"])} if "published" in given else {},
    )


def catalog(given: dict[str, Any]) -> Catalog:
    """The catalog of a case."""
    publish = given.get("publish", "insert update delete truncate").split()
    publication = Publication(
        "everything", True, *[word in publish for word in ("insert", "update", "delete", "truncate")]
    )
    slot = {
        "active": True,
        "wal_status": "reserved",
        "lag_bytes": 1000,
        "safe_bytes": None,
        **(given.get("slot") or {}),
    }
    return Catalog(
        database="shop_db",
        server_version=180000,
        wal_level="logical",
        tables=tuple(table(name, each) for name, each in given.get("tables", {}).items()),
        publications={} if given.get("publication") is False else {"everything": publication},
        slots={} if given.get("slot") is False else {"shop": Slot("shop", "pgoutput", **slot)},
    )


def span(messages: int) -> Span:
    """So many messages from offset 0 on."""
    return Span(messages, messages * 100, 0, messages - 1, 1_000, 2_000)


def changes(topic: str, given: dict[str, Any]) -> tuple[ChangeEvents, ...]:
    """`{"public.customers c": 3, "public.customers d": {messages: 2, newkey: 1}}`."""
    found = []
    for where, what in given.items():
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
        found.append(ChangeEvents(topic, 0, op, "shop_db", schema, short, span(number), **counts))  # type: ignore[arg-type]
    return tuple(found)


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


def schemas(given: dict[str, Any], language: str) -> dict[str, SchemaText]:
    """`{key: {…}, value: {…}}` as schemas of that language; a text is taken as it is."""
    make = avro_text if language == "AVRO" else connect_text
    return {
        side: SchemaText(language, fields if isinstance(fields, str) else make(fields, envelope=side == "value"))  # type: ignore[arg-type]
        for side, fields in given.items()
    }


def profiles(topic: str, given: dict[str, str], rows: int) -> tuple[FieldProfile, ...]:
    """`{after.id: integer, "after.name": "string 3"}`: the number is in how many messages the path is there."""
    found = []
    for path, text in given.items():
        kind, _, present = text.partition(" ")
        number = int(present or rows)
        side = "value"
        if path.startswith("key:"):
            side, path = "key", path.removeprefix("key:")  # noqa: PLW2901
        counts = {} if kind == "null" else {kind: number}
        nulls = number if kind == "null" else 0
        found.append(FieldProfile(topic, side, None, "", path, rows, number, nulls, counts, None, None, None, {}))  # type: ignore[arg-type]
    return tuple(found)


def topic(name: str, given: dict[str, Any]) -> TopicFacts:
    """The facts of a topic of a case."""
    seen = changes(name, given.get("events", {}))
    rows = sum(each.span.messages for each in seen)
    registered = schemas(given.get("registered", {}), "AVRO")
    guards = {}
    if "level" in given:
        guards = {side: Guard(given["level"], (schema.text,)) for side, schema in registered.items()}
    return TopicFacts(
        topic=name,
        partitions=given.get("partitions", 1),
        compacted=given.get("compacted", False),
        messages=given.get("messages", rows + given.get("tombstones", 0)),
        null_keys=given.get("null_keys", 0),
        tombstones=given.get("tombstones", 0),
        nulls_are_newest=given.get("nulls_are_newest", False),
        subjects={side: f"{name}-{side}" for side in registered},  # type: ignore[misc]
        registered=registered,  # type: ignore[arg-type]
        guards=guards,  # type: ignore[arg-type]
        seen=schemas(given.get("seen", {}), given.get("written", "CONNECT")),  # type: ignore[arg-type]
        profiles=profiles(name, given.get("json", {}), rows),
        changes=seen,
        tables=tuple(sorted({*map(tuple, given.get("tables", [])), *_tables(seen)})),
    )


def _tables(seen: tuple[ChangeEvents, ...]) -> set[tuple[str, str, str]]:
    return {(each.database, each.schema, each.table) for each in seen if each.table}


def world(case: dict[str, Any]) -> World:
    """The world of a case."""
    status = case.get("status", {"connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "RUNNING"}]})
    return World(
        config=read_config({**CONFIG, **case.get("config", {})}),
        status=read_status(status),
        catalog=None if case.get("catalog") is False else catalog(case.get("catalog", {})),
        topics={name: topic(name, each) for name, each in case.get("topics", {}).items()},
    )
