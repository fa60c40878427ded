"""Findings about tables and their events.

They concern replica identities, keys, columns that don't arrive, name collisions (before a row causes them), operations
and tombstones. Tombstones and primary key changes are normal and aren't findings; message events aren't rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from registry.drift.debezium.expected_columns import ExpectedShape, expected_of, key_of
from registry.drift.debezium.facts import ConnectorFacts, TopicFacts, counted, listed
from registry.drift.debezium.tables import (
    IdentityOf,
    Index,
    NameCollision,
    NamedTable,
    Table,
    field_name,
    identity_of,
    is_avro_full_name,
    is_avro_name,
    name_collisions,
    schema_name,
)
from registry.drift.judge.model import JudgedFinding, listing, make_finding
from registry.observations import ChangeEvents


def judge_tables(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    """Yield the findings of every captured table in the catalog."""
    for table in world.captured:
        topic = world.topic_of(table.schema, table.name) or ""
        yield from _identity(world, table, topic)
        yield from _columns(table, expected_of(table, world.config), topic)


def identity_in(world: ConnectorFacts, table: Table) -> IdentityOf:
    """Return the table's replica identity, given what its publications publish."""
    publications = world.catalog.publications if world.catalog else {}
    own = [publications[name] for name in table.publications if name in publications]
    return identity_of(
        table,
        key_of(table, world.config) or (),
        updates=any(publication.updates for publication in own),
        deletes=any(publication.deletes for publication in own),
    )


def _identity(world: ConnectorFacts, table: Table, topic: str) -> Iterator[JudgedFinding]:
    key = key_of(table, world.config)
    if key is None:  # message.key.columns isn't understood
        return
    identity = identity_in(world, table)
    names = {"table": table.full_name, "topic": topic or "its topic"}
    evidence = {"table": table.full_name, "identity": table.identity, "key": list(key), "meaning": identity.sentence}
    if identity.refuses:
        written = "REPLICA IDENTITY " + {"index": "USING INDEX"}.get(table.identity, table.identity.upper())
        without = ", and no primary key" if identity.case == "default_without_key" else ""
        dropped = " with a dropped index" if table.identity == "index" else ""
        yield make_finding(
            "REPLICA_IDENTITY_MISSING",
            {**names, "statements": listed(identity.refuses), "identity": f"{written}{dropped}{without}"},
            (table.full_name,),
            location=table.full_name,
            evidence={**evidence, "refused": list(identity.refuses), "publications": list(table.publications)},
        )
    if identity.case == "index_outside_key" and key and table.identity_index is not None:
        index = table.identity_index
        yield make_finding(
            "DELETE_KEYS_WRONG",
            {**names, "index": index.name, "columns": listed(index.columns), "key": listed(key)},
            (table.full_name,),
            location=table.full_name,
            evidence={**evidence, "index": index.name, "index_columns": list(index.columns)},
        )
    if weak := _weak_key(table, key):
        index, why = weak
        yield make_finding(
            "KEY_NOT_UNIQUE",
            {**names, "index": index.name, "key": listed(key), "why": why},
            (table.full_name,),
            location=table.full_name,
            evidence={**evidence, "index": index.name, "why": why},
        )
    if not key:
        yield make_finding("TABLE_WITHOUT_KEY", names, (table.full_name,), location=table.full_name, evidence=evidence)


def _weak_key(table: Table, key: tuple[str, ...]) -> tuple[Index, str] | None:
    """Return the unique index used as a key if it doesn't identify every row, and why it doesn't; None otherwise."""
    if table.primary_key or not key:
        return None
    index = next((unique_index for unique_index in table.unique if unique_index.columns == key), None)
    if index is None:  # message.key.columns
        return None
    if index.partial:
        return index, "which covers only some rows"
    nullable = [column.name for column in table.columns if column.name in key and column.nullable]
    return (index, f"where {listed(nullable)} may be null") if nullable else None


def _columns(table: Table, expected: ExpectedShape, topic: str) -> Iterator[JudgedFinding]:
    columns = {column.name: column for column in table.columns}
    for omission in expected.left_out:
        if omission.lost:
            yield make_finding(
                "COLUMN_NOT_IN_EVENTS",
                {
                    "table": table.full_name,
                    "column": omission.column,
                    "type": columns[omission.column].declared,
                    "why": omission.why,
                },
                (table.full_name, omission.column),
                location=f"{table.full_name}.{omission.column}",
                evidence={"table": table.full_name, "column": omission.column, "why": omission.why},
            )
    carried = set(expected.columns.values())
    for column in table.columns:
        if column.dimensions > 1 and column.name in carried:
            yield make_finding(
                "ARRAY_ARRIVES_AS_NULL",
                {
                    "table": table.full_name,
                    "column": column.name,
                    "type": column.declared,
                    "dimensions": column.dimensions,
                },
                (table.full_name, column.name),
                location=f"{table.full_name}.{column.name}",
                evidence={"table": table.full_name, "column": column.name, "dimensions": column.dimensions},
            )


_RULES: Final = {
    "topic": "TOPIC_SHARED",
    "broker": "TOPIC_NAMES_COLLIDE",
    "full_name": "SCHEMA_NAMES_COLLIDE",
    "field": "FIELD_NAMES_COLLIDE",
    "case": "COLUMNS_DIFFER_BY_CASE",
}
_AVRO: Final = frozenset({"avro"})


def named_tables(world: ConnectorFacts) -> list[NamedTable]:
    """Return the captured tables with the connector's names for them, without those whose topic is unknown."""
    named = []
    for table in world.captured:
        topic = world.topic_of(table.schema, table.name)
        if topic is None:
            continue
        left_out = {omission.column for omission in expected_of(table, world.config).left_out}
        fields = {
            column.name: field_name(column.name, world.config.field_names)
            for column in table.columns
            if column.name not in left_out
        }
        raw = world.raw_topic_of(table.schema, table.name)
        full_name = schema_name(f"{raw}.Value", world.config.schema_names)
        named.append(NamedTable(table.full_name, topic, full_name, fields))
    return named


def judge_names(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    """Yield topics, full names and fields shared by several tables or columns, and names that are invalid in Avro."""
    tables = named_tables(world)
    raw = {table.full_name: world.raw_topic_of(table.schema, table.name) for table in world.captured}
    merging = any(transform.merges for transform in world.config.transforms)
    for meeting in name_collisions(tables):
        if meeting.kind == "topic" and merging and len({raw[name] for name in meeting.names}) == len(meeting.names):
            continue  # a transform routes these tables to one topic on purpose
        yield _meeting(world, meeting)
    if _AVRO & {world.config.key_converter, world.config.value_converter}:
        yield from _not_avro(world, tables)


def _meeting(world: ConnectorFacts, meeting: NameCollision) -> JudgedFinding:
    config = world.config
    mode = config.field_names if meeting.kind == "field" else config.schema_names
    topic = meeting.becomes if meeting.kind == "topic" else ""
    return make_finding(
        _RULES[meeting.kind],
        {
            "names": listed([repr(name) if meeting.table else name for name in meeting.names]),
            "topic": topic,
            "becomes": meeting.becomes,
            "table": meeting.table,
            "mode": mode,
        },
        (config.name, meeting.becomes, meeting.table),
        location=meeting.table or meeting.becomes,
        count=len(meeting.names),
        evidence={**listing("names", meeting.names), "becomes": meeting.becomes, "mode": mode},
    )


def _not_avro(world: ConnectorFacts, tables: list[NamedTable]) -> Iterator[JudgedFinding]:
    for table in tables:
        invalid = [name for name in table.fields.values() if not is_avro_name(name)]
        if not is_avro_full_name(table.full_name):
            invalid.insert(0, table.full_name)
        if invalid:
            yield make_finding(
                "NAME_INVALID_IN_AVRO",
                {"becomes": listed(invalid), "connector": world.config.name, "table": table.table},
                (world.config.name, table.table),
                location=table.table,
                evidence={**listing("names", invalid), "table": table.table},
            )


def tables_of(topic: TopicFacts) -> list[str]:
    """Return the tables with rows in the topic, as `schema.table`."""
    return sorted({f"{events.schema}.{events.table}" for events in topic.changes if events.op != "m" and events.table})


def judge_events(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    """Yield the findings about every topic's events."""
    merging = any(transform.merges for transform in world.config.transforms)
    for topic in world.topics.values():
        tables = tables_of(topic)
        if len(tables) > 1 and not merging:
            yield make_finding(
                "EVENTS_OF_SEVERAL_TABLES",
                {"topic": topic.topic, "names": listed(tables)},
                (topic.topic,),
                location=topic.topic,
                count=topic.messages,
                topic=topic.topic,
                evidence={"topic": topic.topic, **listing("tables", tables)},
            )
        yield from _truncated(topic)
        yield from _unavailable(topic, tables)
        yield from _deletes(world, topic)
        yield from _gone(world, topic)


def _partition_rows(changes: list[ChangeEvents]) -> list[dict[str, int]]:
    return [
        {
            "partition": events.partition,
            "messages": events.span.messages,
            "first_offset": events.span.first_offset,
            "last_offset": events.span.last_offset,
            "first_time": events.span.first_time,
            "last_time": events.span.last_time,
        }
        for events in changes
    ]


def _truncated(topic: TopicFacts) -> Iterator[JudgedFinding]:
    truncates = [events for events in topic.changes if events.op == "t"]
    if not truncates or topic.partitions < 2:
        return
    tables = sorted({f"{events.schema}.{events.table}" for events in truncates})
    yield make_finding(
        "TRUNCATE_OUT_OF_ORDER",
        {"table": listed(tables), "topic": topic.topic, "partitions": topic.partitions},
        (topic.topic,),
        location=topic.topic,
        count=topic.count("t"),
        topic=topic.topic,
        evidence={"topic": topic.topic, "topic_partitions": topic.partitions, "partitions": _partition_rows(truncates)},
    )


def _unavailable(topic: TopicFacts, tables: list[str]) -> Iterator[JudgedFinding]:
    affected = [events for events in topic.changes if events.unavailable]
    if affected:
        count = sum(events.unavailable for events in affected)
        yield make_finding(
            "VALUES_UNAVAILABLE",
            {"messages": counted(count), "topic": topic.topic, "table": listed(tables)},
            (topic.topic,),
            location=topic.topic,
            count=count,
            topic=topic.topic,
            evidence={"topic": topic.topic, "messages": count, "events": _partition_rows(affected)},
        )


def _deletes(world: ConnectorFacts, topic: TopicFacts) -> Iterator[JudgedFinding]:
    keeps_tombstones = all(transform.keeps_tombstones for transform in world.config.transforms)
    if (
        topic.compacted
        and topic.count("d")
        and not topic.tombstones
        and not (world.config.tombstones and keeps_tombstones)
    ):
        yield make_finding(
            "TOMBSTONES_NOT_WRITTEN",
            {"topic": topic.topic, "connector": world.config.name},
            (topic.topic,),
            location=topic.topic,
            count=topic.count("d"),
            topic=topic.topic,
            evidence={"topic": topic.topic, "deletes": topic.count("d")},
        )


def _gone(world: ConnectorFacts, topic: TopicFacts) -> Iterator[JudgedFinding]:
    """Yield tables of the topic that the catalog lacks. A dropped table sends no event; earlier scans name them."""
    if world.catalog is None or world.catalog.cut:
        return
    there = {(table.schema, table.name) for table in world.catalog.tables}
    database = world.catalog.database
    for of, schema, name in topic.tables:
        if of != database or (schema, name) in there or world.config.tables.takes(schema, name) is False:
            continue
        table = f"{schema}.{name}"
        yield make_finding(
            "TABLE_DROPPED",
            {"topic": topic.topic, "table": table, "database": database},
            (topic.topic, table),
            location=topic.topic,
            topic=topic.topic,
            evidence={"topic": topic.topic, "table": table, "database": database},
        )
