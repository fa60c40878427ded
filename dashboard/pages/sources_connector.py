"""What the last scan of a connector, or of a registry, read: tasks, slot, tables with their three sides; the checklist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext, ngettext

from dashboard.pages.sources_words import listed, sized
from dashboard.presenters.drift_parts import (
    AdviceLine,
    CapturedTable,
    ConnectorView,
    Followed,
    TableState,
    TaskRow,
    TaskState,
)
from dashboard.presenters.frame import Fact
from dashboard.texts import joined, later, listing
from registry.drift.selectors import ScanInfo

SHOWN_TABLES: Final = 200
OPERATIONS: Final = {
    "c": later("insert"),
    "u": later("update"),
    "d": later("delete"),
    "r": later("snapshot"),
    "t": later("truncate"),
}
SIDES: Final = {
    "table": later("the table"),
    "registered": later("the registered schema"),
    "events": later("the events"),
}


def connector_of(scan: ScanInfo) -> ConnectorView | None:
    """The connector as a scan of it saw it; None for a scan of something else."""
    read = scan.read or {}
    if "connector" not in read:
        return None
    connector, slot = read["connector"], read.get("slot")
    tables = read.get("tables", ())
    return ConnectorView(
        name=str(connector["name"]),
        state=task_state(connector.get("state")),
        tasks=tuple(
            TaskRow(
                number=task["number"],
                state=task_state(task.get("state")),
                worker=str(task.get("worker") or ""),
                trace=str(task.get("reason") or ""),
            )
            for task in connector.get("tasks", ())
        ),
        facts=_facts(connector, read.get("database")),
        slot=_slot(slot) if slot else (),
        slot_care=_slot_care(slot) if slot else "",
        tables=tuple(_table(table) for table in tables[:SHOWN_TABLES]),
        tables_left_out=read.get("tables_left_out", 0) + max(0, len(tables) - SHOWN_TABLES),
        not_understood=tuple(map(str, connector.get("not_understood", ()))),
        read_at=scan.finished_at,
    )


def task_state(told: Any) -> TaskState:
    """The state that Kafka Connect names; OTHER for one that isn't known."""
    try:
        return TaskState.of(str(told or "").upper())
    except ValueError:
        return TaskState.OTHER


def _facts(connector: Mapping[str, Any], database: Mapping[str, Any] | None) -> tuple[Fact, ...]:
    converters = connector.get("converters", {})
    transforms = listing(
        each["type"] if each.get("understood") else gettext("%(type)s (not understood)") % {"type": each["type"]}
        for each in connector.get("transforms", ())
    )
    skipped = listing(OPERATIONS.get(op, op) for op in connector.get("skipped_operations", ()))
    facts = (
        (gettext("Worker"), connector.get("worker"), True),
        (gettext("Topic prefix"), connector.get("prefix"), True),
        (gettext("Key converter"), converters.get("key"), True),
        (gettext("Value converter"), converters.get("value"), True),
        (gettext("Transforms"), transforms or gettext("none"), bool(transforms)),
        (gettext("Skips"), skipped or gettext("nothing"), False),
        (
            gettext("Tombstones"),
            gettext("written after deletes") if connector.get("tombstones") else gettext("not written"),
            False,
        ),
        (gettext("Snapshot"), connector.get("snapshot_mode"), False),
        (gettext("Database"), _database(database), False),
    )
    return tuple(Fact(label=label, value=str(value), code=code) for label, value, code in facts if value)


def _database(database: Mapping[str, Any] | None) -> str:
    if database is None:
        return gettext("its catalog isn’t read")
    said = f"{database.get('name')}, PostgreSQL {database.get('version')}, wal_level {database.get('wal_level')}"
    return gettext("%(said)s; not all of it was read") % {"said": said} if database.get("cut") else said


def _slot(slot: Mapping[str, Any]) -> tuple[Fact, ...]:
    lag, safe = slot.get("lag_bytes"), slot.get("safe_bytes")
    return (
        Fact(label=gettext("Slot"), value=str(slot.get("name")), code=True),
        Fact(label=gettext("In use"), value=gettext("yes") if slot.get("active") else gettext("no")),
        Fact(
            label=gettext("Lag"),
            value=gettext("not known")
            if lag is None
            else gettext("%(sized)s of write-ahead log") % {"sized": sized(lag)},
        ),
        Fact(label=gettext("Log"), value=str(slot.get("wal_status") or gettext("not known"))),
        Fact(label=gettext("Room left"), value=gettext("no limit is set") if safe is None else sized(safe)),
    )


def _slot_care(slot: Mapping[str, Any]) -> str:
    """What is wrong with the slot; empty where nothing is."""
    if slot.get("wal_status") == "lost":
        return gettext("The log that the slot needs is gone: the connector has to take a new snapshot.")
    if not slot.get("active"):
        return gettext("Nobody reads the slot: the database keeps its log, and its disk fills, until somebody does.")
    return ""


def _table(table: Mapping[str, Any]) -> CapturedTable:
    events = table.get("events", {})
    counts = [(label, int(events.get(op, 0))) for op, label in OPERATIONS.items()]
    counts += [
        (gettext("tombstone"), int(table.get("tombstones", 0))),
        (gettext("key change"), int(table.get("key_changes", 0))),
    ]
    behind = [SIDES.get(side, side) for side in table.get("behind", ())]
    known = [SIDES.get(side, side) for side in table.get("known", ())]
    return CapturedTable(
        name=str(table["table"]),
        topic=str(table.get("topic") or ""),
        state=TableState.of(str(table.get("state", "unknown"))),
        identity=str(table.get("identity", "")),
        identity_sentence=str(table.get("identity_sentence", "")),
        published=bool(table.get("published")),
        refused=tuple(map(str, table.get("refused", ()))),
        known=listed(known),
        behind=ngettext("%(sides)s is behind", "%(sides)s are behind", len(behind)) % {"sides": joined(behind)}
        if behind
        else "",
        changes=tuple(_change(change) for change in table.get("changes", ())),
        left_out=tuple(f"{each['column']}: {each['why']}" for each in table.get("left_out", ())),
        operations=tuple((label, number) for label, number in counts if number),
        row_filter=str(table.get("row_filter") or ""),
    )


def _change(change: Mapping[str, Any]) -> str:
    becomes = f" → {change['becomes']}" if change.get("becomes") else ""
    return f"{change.get('column')} {change.get('change')}{becomes}"


def advice_of(scan: ScanInfo) -> tuple[AdviceLine, ...]:
    """The checklist of a registry, what isn't followed first."""
    order = ("no", "not known", "yes", "does not apply")
    lines = sorted((scan.read or {}).get("advice", ()), key=lambda line: order.index(line["followed"]))
    return tuple(
        AdviceLine(
            sentence=str(line["sentence"]),
            followed=Followed.of(line["followed"]),
            known_from=str(line["known_from"]),
            findings=int(line.get("findings", 0)),
        )
        for line in lines
    )
