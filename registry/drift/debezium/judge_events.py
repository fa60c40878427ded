"""What the events of a scan say by themselves: operations, tombstones, tables that meet on a topic.

Tombstones and changes of a primary key are normal, and so no findings; message events are no rows of a table.
"""

from __future__ import annotations

from collections.abc import Iterator

from registry.drift.debezium.facts import TopicFacts, World
from registry.drift.debezium.finding import counted, finding, listed
from registry.drift.judge.model import JudgedFinding
from registry.observations import ChangeEvents


def tables_of(topic: TopicFacts) -> list[str]:
    """The tables whose rows the topic carries, as `schema.table`."""
    return sorted({f"{each.schema}.{each.table}" for each in topic.changes if each.op != "m" and each.table})


def judge_events(world: World) -> Iterator[JudgedFinding]:
    """The findings of every topic's events."""
    merging = any(transform.merges for transform in world.config.transforms)
    for topic in world.topics.values():
        tables = tables_of(topic)
        if len(tables) > 1 and not merging:
            yield finding(
                "EVENTS_OF_SEVERAL_TABLES",
                {"topic": topic.topic, "names": listed(tables)},
                (topic.topic,),
                location=topic.topic,
                count=topic.messages,
                topic=topic.topic,
                evidence={"topic": topic.topic, "tables": tables[:100]},
            )
        yield from _truncated(topic)
        yield from _unavailable(topic, tables)
        yield from _deletes(world, topic)
        yield from _gone(world, topic)


def _places(changes: list[ChangeEvents]) -> list[dict[str, int]]:
    return [
        {
            "partition": each.partition,
            "messages": each.span.messages,
            "first_offset": each.span.first_offset,
            "last_offset": each.span.last_offset,
            "first_time": each.span.first_time,
            "last_time": each.span.last_time,
        }
        for each in changes[:100]
    ]


def _truncated(topic: TopicFacts) -> Iterator[JudgedFinding]:
    truncates = [each for each in topic.changes if each.op == "t"]
    if not truncates or topic.partitions < 2:
        return
    tables = sorted({f"{each.schema}.{each.table}" for each in truncates})
    yield finding(
        "TRUNCATE_OUT_OF_ORDER",
        {"table": listed(tables), "topic": topic.topic, "partitions": topic.partitions},
        (topic.topic,),
        location=topic.topic,
        count=topic.count("t"),
        topic=topic.topic,
        evidence={"topic": topic.topic, "topic_partitions": topic.partitions, "partitions": _places(truncates)},
    )


def _unavailable(topic: TopicFacts, tables: list[str]) -> Iterator[JudgedFinding]:
    affected = [each for each in topic.changes if each.unavailable]
    if affected:
        count = sum(each.unavailable for each in affected)
        yield finding(
            "VALUES_UNAVAILABLE",
            {"messages": counted(count), "topic": topic.topic, "table": listed(tables)},
            (topic.topic,),
            location=topic.topic,
            count=count,
            topic=topic.topic,
            evidence={"topic": topic.topic, "messages": count, "events": _places(affected)},
        )


def _deletes(world: World, topic: TopicFacts) -> Iterator[JudgedFinding]:
    kept = all(transform.keeps_tombstones for transform in world.config.transforms)
    if topic.compacted and topic.count("d") and not topic.tombstones and not (world.config.tombstones and kept):
        yield finding(
            "DELETES_STAY",
            {"topic": topic.topic, "connector": world.config.name},
            (topic.topic,),
            location=topic.topic,
            count=topic.count("d"),
            topic=topic.topic,
            evidence={"topic": topic.topic, "deletes": topic.count("d")},
        )


def _gone(world: World, topic: TopicFacts) -> Iterator[JudgedFinding]:
    """Tables of the topic that the catalog no longer has. A dropped table sends no event, so earlier scans say which."""
    if world.catalog is None or world.catalog.cut:
        return
    there = {(table.schema, table.name) for table in world.catalog.tables}
    database = world.catalog.database
    for of, schema, name in topic.tables:
        if of != database or (schema, name) in there or world.config.tables.takes(schema, name) is False:
            continue
        table = f"{schema}.{name}"
        yield finding(
            "TABLE_GONE",
            {"topic": topic.topic, "table": table, "database": database},
            (topic.topic, table),
            location=topic.topic,
            topic=topic.topic,
            evidence={"topic": topic.topic, "table": table, "database": database},
        )
