"""Names that meet, found before their rows do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from registry.drift.debezium.expected import expected_of
from registry.drift.debezium.facts import World
from registry.drift.debezium.finding import finding, listed
from registry.drift.debezium.names import (
    Meeting,
    NamedTable,
    field_name,
    is_avro_full_name,
    is_avro_name,
    meetings,
    schema_name,
)
from registry.drift.judge.model import JudgedFinding

_RULES: Final = {
    "topic": "TOPIC_SHARED",
    "broker": "TOPICS_CLASH",
    "full_name": "SCHEMA_NAMES_MEET",
    "field": "FIELDS_MEET",
    "case": "COLUMNS_DIFFER_BY_CASE",
}
_AVRO: Final = frozenset({"avro"})


def named_tables(world: World) -> list[NamedTable]:
    """The captured tables with the names that the connector gives them; without those whose topic nobody can tell."""
    found = []
    for table in world.captured:
        topic = world.topic_of(table.schema, table.name)
        if topic is None:
            continue
        left_out = {each.column for each in expected_of(table, world.config).left_out}
        fields = {
            column.name: field_name(column.name, world.config.field_names)
            for column in table.columns
            if column.name not in left_out
        }
        raw = world.raw_topic_of(table.schema, table.name)
        full_name = schema_name(f"{raw}.Value", world.config.schema_names)
        found.append(NamedTable(table.full_name, topic, full_name, fields))
    return found


def judge_names(world: World) -> Iterator[JudgedFinding]:
    """Topics, full names and fields that several tables or columns share, and names that Avro doesn't take."""
    tables = named_tables(world)
    raw = {table.full_name: world.raw_topic_of(table.schema, table.name) for table in world.captured}
    merging = any(transform.merges for transform in world.config.transforms)
    for meeting in meetings(tables):
        if meeting.kind == "topic" and merging and len({raw[name] for name in meeting.names}) == len(meeting.names):
            continue  # a transform puts these tables onto one topic: that is meant
        yield _meeting(world, meeting)
    if _AVRO & {world.config.key_converter, world.config.value_converter}:
        yield from _not_avro(world, tables)


def _meeting(world: World, meeting: Meeting) -> JudgedFinding:
    config = world.config
    mode = config.field_names if meeting.kind == "field" else config.schema_names
    topic = meeting.becomes if meeting.kind == "topic" else ""
    return finding(
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
        evidence={"names": list(meeting.names[:100]), "becomes": meeting.becomes, "mode": mode},
    )


def _not_avro(world: World, tables: list[NamedTable]) -> Iterator[JudgedFinding]:
    for table in tables:
        wrong = [name for name in table.fields.values() if not is_avro_name(name)]
        if not is_avro_full_name(table.full_name):
            wrong.insert(0, table.full_name)
        if wrong:
            yield finding(
                "NAME_NOT_AVRO",
                {"becomes": listed(wrong), "connector": world.config.name, "table": table.table},
                (world.config.name, table.table),
                location=table.table,
                evidence={"names": wrong[:100], "table": table.table},
            )
