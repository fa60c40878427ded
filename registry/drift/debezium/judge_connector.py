"""The connector, its tasks, its slot and its publication."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from registry.drift.debezium.facts import World
from registry.drift.debezium.finding import finding, listed, sized
from registry.drift.debezium.tables import Catalog, Slot
from registry.drift.judge.model import JudgedFinding
from registry.drift.rule import Severity

LAG_BYTES: Final[tuple[tuple[int, Severity], ...]] = ((10 * 1024**3, "break"), (1024**3, "risk"))
MAX_REASON: Final = 300
#: states in which the connector does what it should, or is about to
_FINE: Final = frozenset({"RUNNING", "RESTARTING", ""})


def judge_connector(world: World) -> Iterator[JudgedFinding]:
    """The findings of the connector itself and of what it reads through."""
    yield from _states(world)
    if world.config.not_understood:
        doubts = world.config.not_understood
        yield finding(
            "CONNECTOR_NOT_UNDERSTOOD",
            {"connector": world.config.name, "doubts": "; ".join(doubts[:5])},
            (world.config.name,),
            location=world.config.name,
            count=len(doubts),
            evidence={"connector": world.config.name, "not_understood": list(doubts[:100])},
        )
    if world.catalog is not None:
        yield from _slot(world, world.catalog)
        yield from _publication(world, world.catalog)


def _states(world: World) -> Iterator[JudgedFinding]:
    name, status = world.config.name, world.status
    names = {"connector": name, "state": status.state, "slot": world.config.slot}
    for task in status.failed_tasks:
        yield finding(
            "CONNECTOR_TASK_FAILED",
            {**names, "task": task.number, "reason": reason_of(task.trace)},
            (name, str(task.number)),
            location=f"{name} task {task.number}",
            evidence={"connector": name, "task": task.number, "state": status.state, "trace": task.trace},
        )
    if status.state not in _FINE:
        trace = {"trace": status.trace} if status.trace else {}
        yield finding(
            "CONNECTOR_NOT_RUNNING",
            names,
            (name,),
            location=name,
            severity="break" if status.state == "FAILED" else None,
            evidence={"connector": name, "state": status.state, **trace},
        )


def reason_of(trace: str) -> str:
    """The last cause of a Java trace, which says more than its first line."""
    lines = [line.strip() for line in trace.splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    cause = (causes or [line for line in lines if line] or [""])[-1 if causes else 0]
    return f"{cause[:MAX_REASON].rstrip('.')}." if cause else ""


def _slot(world: World, catalog: Catalog) -> Iterator[JudgedFinding]:
    config = world.config
    slot = catalog.slots.get(config.slot)
    names = {
        "connector": config.name,
        "slot": config.slot,
        "database": catalog.database,
        "state": world.status.state,
        "lag": "of unknown size",
    }
    if slot is None:
        rule, severity = "SLOT_MISSING", None
    else:
        if slot.lag_bytes is not None:
            names["lag"] = sized(slot.lag_bytes)
        rule, severity = _slot_rule(world, slot)
    if rule:
        yield finding(
            rule,
            names,
            (config.name, config.slot),
            location=f"slot {config.slot}",
            severity=severity,
            evidence={"connector": config.name, "slot": config.slot, **_slot_evidence(slot)},
        )


def _slot_rule(world: World, slot: Slot) -> tuple[str, Severity | None]:
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


def _publication(world: World, catalog: Catalog) -> Iterator[JudgedFinding]:
    config = world.config
    if config.plugin != "pgoutput":  # the other plugins know no publications
        return
    publication = catalog.publications.get(config.publication)
    names = {"connector": config.name, "publication": config.publication, "database": catalog.database}
    evidence = {"connector": config.name, "publication": config.publication}
    if publication is None:
        yield finding(
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
        yield finding(
            "OPERATIONS_NOT_PUBLISHED",
            {**names, "operations": listed(missing, "or")},
            (config.name,),
            location=f"publication {config.publication}",
            evidence={**evidence, "operations": missing},
        )
    for table in world.captured:
        if config.publication not in table.publications and not table.partitioned:
            yield finding(
                "TABLE_NOT_PUBLISHED",
                {**names, "table": table.full_name},
                (config.name, table.full_name),
                location=table.full_name,
                evidence={**evidence, "table": table.full_name},
            )
