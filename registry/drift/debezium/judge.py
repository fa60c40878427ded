"""The findings of a connector: about itself, its tasks, slot, publication, tables, names, events and columns.

The summary of a scan shows the connector, its slot, and each table with its topic. Pure: no network, no database, no
clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from registry.drift.debezium.columns import SIDES
from registry.drift.debezium.connector import ConnectorStatus
from registry.drift.debezium.facts import ConnectorFacts, TopicFacts, listed, sized
from registry.drift.debezium.judge_columns import TableState, check_tables, judge_columns, next_schemas
from registry.drift.debezium.judge_tables import identity_in, judge_events, judge_names, judge_tables
from registry.drift.debezium.rules import RULES
from registry.drift.debezium.tables import Catalog, Slot, Table
from registry.drift.judge.model import JudgedFinding, listing, make_finding
from registry.drift.rules.rule import Severity

LAG_BYTES: Final[tuple[tuple[int, Severity], ...]] = ((10 * 1024**3, "break"), (1024**3, "risk"))
MAX_REASON: Final = 300
SHOWN: Final = 5  # doubts shown in a sentence; the evidence has more
#: states in which the connector works, or soon will
_FINE: Final = frozenset({"RUNNING", "RESTARTING", ""})


def judge_connector(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    """Yield the findings about the connector, its tasks, its slot and its publication."""
    yield from _states(world)
    if world.config.not_understood:
        doubts = world.config.not_understood
        yield make_finding(
            "CONNECTOR_NOT_UNDERSTOOD",
            {
                "connector": world.config.name,
                "doubts": "; ".join(doubts[:SHOWN])
                + (f"; and {len(doubts) - SHOWN:,} more" if len(doubts) > SHOWN else ""),
            },
            (world.config.name,),
            location=world.config.name,
            count=len(doubts),
            evidence={"connector": world.config.name, **listing("not_understood", doubts)},
        )
    if world.catalog is not None:
        yield from _slot(world, world.catalog)
        yield from _publication(world, world.catalog)


def _states(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    name, status = world.config.name, world.status
    names = {"connector": name, "state": status.state, "slot": world.config.slot}
    for task in status.failed_tasks:
        yield make_finding(
            "CONNECTOR_TASK_FAILED",
            {**names, "task": task.number, "reason": reason_of(task.trace)},
            (name, str(task.number)),
            location=f"{name} task {task.number}",
            evidence={"connector": name, "task": task.number, "state": status.state, "trace": task.trace},
        )
    idle = _idle_tasks(status)
    if status.state not in _FINE or idle:
        names["tasks"] = idle
        trace = {"trace": status.trace} if status.trace else {}
        yield make_finding(
            "CONNECTOR_NOT_RUNNING",
            names,
            (name,),
            location=name,
            severity="break" if status.state == "FAILED" else None,
            evidence={"connector": name, "state": status.state, **trace},
        )


def _idle_tasks(status: ConnectorStatus) -> str:
    """Return in words that no task of a running connector works; empty otherwise, also if they failed."""
    if status.state != "RUNNING" or any(task.state in _FINE or task.state == "FAILED" for task in status.tasks):
        return ""
    states = listed(sorted({task.state for task in status.tasks}))
    return f", but its tasks are {states}" if states else ", but has no task"


def removed_connector(name: str, where: str, slot_name: str, slot: str) -> JudgedFinding:
    """Return the finding of a connector that no longer exists; `slot` says what is known of its slot."""
    return make_finding(
        "CONNECTOR_REMOVED",
        {"connector": name, "where": where, "slot": slot},
        (name,),
        location=name,
        evidence={"connector": name, "slot": slot_name},
    )


def reason_of(trace: str) -> str:
    """Return the last cause of a Java trace, which says more than its first line."""
    lines = [line.strip() for line in trace.splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    cause = (causes or [line for line in lines if line] or [""])[-1 if causes else 0]
    return f"{cause[:MAX_REASON].rstrip('.')}." if cause else ""


def _slot(world: ConnectorFacts, catalog: Catalog) -> Iterator[JudgedFinding]:
    config = world.config
    slot = catalog.slots.get(config.slot)
    names = {
        "connector": config.name,
        "slot": config.slot,
        "database": catalog.database,
        "state": world.status.state,
        "lag": "unknown",
    }
    if slot is None:
        rule, severity = "SLOT_MISSING", None
    else:
        if slot.lag_bytes is not None:
            names["lag"] = sized(slot.lag_bytes)
        rule, severity = _slot_rule(world, slot)
    if rule:
        yield make_finding(
            rule,
            names,
            (config.name, config.slot),
            location=f"slot {config.slot}",
            severity=severity,
            evidence={"connector": config.name, "slot": config.slot, **_slot_evidence(slot)},
        )


def _slot_rule(world: ConnectorFacts, slot: Slot) -> tuple[str, Severity | None]:
    if slot.wal_status == "lost":
        return "SLOT_LOST", None
    if slot.wal_status == "unreserved":
        return "SLOT_AT_RISK", None
    running = world.status.state == "RUNNING" and not world.status.failed_tasks
    if running and not slot.active:
        return "SLOT_UNUSED", None
    for most, severity in LAG_BYTES:
        if slot.lag_bytes is not None and slot.lag_bytes >= most:
            return "SLOT_LAGS", severity
    return "", None


def _slot_evidence(slot: Slot | None) -> dict[str, object]:
    if slot is None:
        return {}
    return {
        "active": slot.active,
        "wal_status": slot.wal_status,
        "lag_bytes": slot.lag_bytes,
        "safe_bytes": slot.safe_bytes,
        "plugin": slot.plugin,
    }


def _publication(world: ConnectorFacts, catalog: Catalog) -> Iterator[JudgedFinding]:
    config = world.config
    if config.plugin != "pgoutput":  # the other plugins don't use publications
        return
    publication = catalog.publications.get(config.publication)
    names = {"connector": config.name, "publication": config.publication, "database": catalog.database}
    evidence = {"connector": config.name, "publication": config.publication}
    if publication is None:
        yield make_finding(
            "PUBLICATION_MISSING",
            names,
            (config.name,),
            location=f"publication {config.publication}",
            evidence=evidence,
        )
        return
    published = (
        ("c", "inserts", publication.inserts),
        ("u", "updates", publication.updates),
        ("d", "deletes", publication.deletes),
        ("t", "truncates", publication.truncates),
    )
    missing = [word for op, word, yes in published if not yes and op not in config.skipped]
    if missing:
        yield make_finding(
            "OPERATIONS_NOT_PUBLISHED",
            {**names, "operations": listed(missing, "or")},
            (config.name,),
            location=f"publication {config.publication}",
            evidence={**evidence, "operations": missing},
        )
    captured = {table.full_name: table for table in world.captured}
    partitions: dict[str, list[Table]] = defaultdict(list)
    for table in captured.values():
        for ancestor in table.ancestors if not table.partitioned else ():
            partitions[ancestor].append(table)
    for name, table in captured.items():
        if world.published_as(table) not in captured:
            yield _not_published(world, table, partitions[name])


def _not_published(world: ConnectorFacts, table: Table, partitions: Sequence[Table]) -> JudgedFinding:
    """Return the finding of a table whose changes never arrive, or arrive under the names of other tables."""
    config, under = world.config, world.published_as(table)
    rule, names = "TABLE_NOT_PUBLISHED", {"root": under or "", "consequence": ""}
    if under:
        rule = "PARTITION_PUBLISHED_AS_ROOT"
    elif table.partitioned:
        rule = "PARTITIONS_PUBLISHED_SEPARATELY"
        topics = [world.topic_of(part.schema, part.name) or "an unknown topic" for part in partitions]
        names["consequence"] = (
            f"they arrive in {listed(topics)}"
            if partitions
            else f"connector {config.name} captures none of them, so they never arrive"
        )
    names |= {"connector": config.name, "publication": config.publication, "table": table.full_name}
    return make_finding(
        rule,
        names,
        (config.name, table.full_name),
        location=table.full_name,
        evidence={"connector": config.name, "publication": config.publication, "table": table.full_name},
    )


_RANK = {"break": 0, "risk": 1, "notice": 2}


def judge_debezium(world: ConnectorFacts) -> list[JudgedFinding]:
    """Return all findings, worst first."""
    order = {rule: number for number, rule in enumerate(RULES)}
    return sorted(
        _all(world), key=lambda item: (_RANK[item.severity], order[item.rule], item.location, item.fingerprint)
    )


def _all(world: ConnectorFacts) -> Iterator[JudgedFinding]:
    for judge in (judge_connector, judge_names, judge_tables, judge_events, judge_columns):
        yield from judge(world)


OPERATIONS: Final = "cudrt"
MAX_TABLES: Final = 1000


def summary_of(world: ConnectorFacts) -> dict[str, Any]:
    """Return the connector, its tasks, the database, the slot, the tables, and the message events, as JSON.

    Without a catalog, the tables are those of the events, and their replica identity is unknown. At most 1,000 tables;
    `tables_left_out` counts the others.
    """
    states = {state.table.full_name: state for state in check_tables(world)}
    tables = world.captured if world.catalog else [state.table for state in states.values()]
    return {
        "connector": _connector(world),
        "database": _database(world),
        "slot": _slot_summary(world),
        "tables": [_table(world, table, states.get(table.full_name)) for table in tables[:MAX_TABLES]],
        "tables_left_out": max(0, len(tables) - MAX_TABLES),
        "message_events": _messages(world.topics.values()),
    }


def _connector(world: ConnectorFacts) -> dict[str, Any]:
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
            {"name": transform.alias, "type": transform.kind, "understood": transform.understood}
            for transform in config.transforms
        ],
        "skipped_operations": sorted(config.skipped),
        "tombstones": config.tombstones,
        "snapshot_mode": config.snapshot_mode,
        "schema_names": config.schema_names,
        "field_names": config.field_names,
        **listing("not_understood", config.not_understood),
    }


def _database(world: ConnectorFacts) -> dict[str, Any] | None:
    if world.catalog is None:
        return None
    return {
        "name": world.catalog.database,
        "version": world.catalog.server_version,
        "wal_level": world.catalog.wal_level,
        "cut": world.catalog.cut,
    }


def _slot_summary(world: ConnectorFacts) -> dict[str, Any] | None:
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


def _table(world: ConnectorFacts, table: Table, state: TableState | None) -> dict[str, Any]:
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
        "published": None if world.catalog is None else world.published_as(table) is not None,
        "row_filter": table.row_filters.get(world.config.publication, ""),
        "events": {op: facts.count(op) for op in OPERATIONS},
        "tombstones": facts.tombstones,
        "key_changes": facts.key_changes,
        **_three_way(state),
        **({} if topic else {"state": "unknown"}),
        "next_row": _next_row(world, state),
    }


def _next_row(world: ConnectorFacts, state: TableState | None) -> dict[str, Any]:
    """Return by side what the next row does to its subject; `reason` says why it is refused or not checked."""
    if state is None:
        why = "the topic is unknown, or other tables share it"
        return {side: {"outcome": "not_checked", "reason": why} for side in ("value", "key")}
    return {
        side: {"outcome": prediction.outcome, "reason": prediction.reason}
        for side, prediction in next_schemas(world, state).items()
    }


def _three_way(state: TableState | None) -> dict[str, Any]:
    """Return the three-way check: `state` is in_step, drift, unknown (only one side is known) or shared."""
    if state is None:
        return {"state": "shared", "known": [], "behind": [], "changes": [], "key": None, "left_out": []}
    compared = state.compared
    drifted = bool(compared.columns or compared.key)
    key = state.expected.key
    return {
        "state": "drift" if drifted else ("in_step" if compared.in_step else "unknown"),
        "known": [side for side in SIDES if side in compared.sides],
        "behind": [side for side in SIDES if side in compared.behind],
        "changes": [_change(item.change, item.column, item.becomes) for item in compared.columns],
        "key": None if key is None else list(key.fields),
        "left_out": [{"column": item.column, "why": item.why} for item in state.expected.left_out],
    }


def _change(change: str, column: str, becomes: str) -> Mapping[str, str]:
    return {"change": change, "column": column, "becomes": becomes}


def _messages(topics: Iterable[TopicFacts]) -> list[dict[str, Any]]:
    """Return the number of logical messages, which aren't rows, by topic, and how many were in a transaction."""
    return [
        {
            "topic": topic.topic,
            "messages": topic.count("m"),
            "in_transaction": sum(events.in_transaction for events in topic.changes if events.op == "m"),
        }
        for topic in topics
        if topic.count("m")
    ]
