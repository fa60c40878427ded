"""What a scan of a connector shows: the connector, its slot, and each table with its topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from registry.drift.debezium.facts import TopicFacts, World
from registry.drift.debezium.judge_columns import TableState, check_tables
from registry.drift.debezium.judge_connector import reason_of
from registry.drift.debezium.judge_tables import identity_in
from registry.drift.debezium.tables import Table
from registry.drift.debezium.threeway import SIDES

OPERATIONS: Final = "cudrt"
MAX_TABLES: Final = 1000


def summary_of(world: World) -> dict[str, Any]:
    """The connector, its tasks, the database and its slot, the tables, and the message events; as JSON.

    Without a catalog the tables are those of the events, and nothing is known of their replica identity. Tables are cut
    at 1,000, `tables_left_out` says how many aren't shown.
    """
    states = {state.table.full_name: state for state in check_tables(world)}
    tables = world.captured if world.catalog else [state.table for state in states.values()]
    return {
        "connector": _connector(world),
        "database": _database(world),
        "slot": _slot(world),
        "tables": [_table(world, table, states.get(table.full_name)) for table in tables[:MAX_TABLES]],
        "tables_left_out": max(0, len(tables) - MAX_TABLES),
        "message_events": _messages(world.topics.values()),
    }


def _connector(world: World) -> dict[str, Any]:
    config, status = world.config, world.status
    return {
        "name": config.name,
        "state": status.state,
        "worker": status.worker,
        "tasks": [
            {"number": task.number, "state": task.state, "worker": task.worker, "reason": reason_of(task.trace)}
            for task in status.tasks
        ],
        "prefix": config.prefix,
        "converters": {"key": config.key_converter, "value": config.value_converter},
        "transforms": [
            {"name": each.alias, "type": each.kind, "understood": each.understood} for each in config.transforms
        ],
        "skipped_operations": sorted(config.skipped),
        "tombstones": config.tombstones,
        "snapshot_mode": config.snapshot_mode,
        "schema_names": config.schema_names,
        "field_names": config.field_names,
        "not_understood": list(config.not_understood[:100]),
    }


def _database(world: World) -> dict[str, Any] | None:
    if world.catalog is None:
        return None
    return {
        "name": world.catalog.database,
        "version": world.catalog.server_version,
        "wal_level": world.catalog.wal_level,
        "cut": world.catalog.cut,
    }


def _slot(world: World) -> dict[str, Any] | None:
    slot = world.catalog.slots.get(world.config.slot) if world.catalog else None
    if slot is None:
        return None
    return {
        "name": slot.name,
        "active": slot.active,
        "wal_status": slot.wal_status,
        "lag_bytes": slot.lag_bytes,
        "safe_bytes": slot.safe_bytes,
    }


def _table(world: World, table: Table, state: TableState | None) -> dict[str, Any]:
    topic = state.topic if state else world.topic_of(table.schema, table.name)
    facts = world.topics.get(topic or "", TopicFacts(topic or ""))
    identity = identity_in(world, table) if world.catalog else None
    return {
        "table": table.full_name,
        "topic": topic,
        "partitions": facts.partitions,
        "identity": table.identity if identity else "",
        "identity_case": identity.case if identity else "",
        "identity_sentence": identity.sentence if identity else "",
        "refused": list(identity.refuses) if identity else [],
        "published": world.config.publication in table.publications,
        "row_filter": table.row_filters.get(world.config.publication, ""),
        "events": {op: facts.count(op) for op in OPERATIONS},
        "tombstones": facts.tombstones,
        "key_changes": facts.key_changes,
        **_three_way(state),
    }


def _three_way(state: TableState | None) -> dict[str, Any]:
    """What became of the three-way check: `state` is in_step, drift, unknown (one side alone told) or shared."""
    if state is None:
        return {"state": "shared", "known": [], "behind": [], "changes": [], "key": None, "left_out": []}
    compared = state.compared
    drifted = bool(compared.columns or compared.key)
    key = state.expected.key
    return {
        "state": "drift" if drifted else ("in_step" if compared.in_step else "unknown"),
        "known": [side for side in SIDES if side in compared.known],
        "behind": [side for side in SIDES if side in compared.behind],
        "changes": [_change(each.change, each.column, each.becomes) for each in compared.columns],
        "key": None if key is None else list(key.fields),
        "left_out": [{"column": each.column, "why": each.why} for each in state.expected.left_out],
    }


def _change(change: str, column: str, becomes: str) -> Mapping[str, str]:
    return {"change": change, "column": column, "becomes": becomes}


def _messages(topics: Iterable[TopicFacts]) -> list[dict[str, Any]]:
    """Logical messages, which are no rows: by topic, and how many of them came in a transaction."""
    return [
        {
            "topic": topic.topic,
            "messages": topic.count("m"),
            "in_transaction": sum(each.in_transaction for each in topic.changes if each.op == "m"),
        }
        for topic in topics
        if topic.count("m")
    ]
