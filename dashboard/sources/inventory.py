"""What a source contains: its topics, filtered and paged, or the tables of a connector as its last scan read them.

Of a connector also its tasks, its replication slot, and the checklist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from dashboard.components.badges import ScanState
from dashboard.components.links import subject_url, whole_number
from dashboard.components.translation import counted, joined, later, listing
from dashboard.components.widgets import ActiveFilter, Choice, Fact, Filter, Link, Paging, SearchBox
from dashboard.sources.labels import lasting, listed, patterns_of, sized
from dashboard.sources.presenters import (
    AdviceLine,
    AdviceState,
    CapturedTable,
    ConnectorView,
    TableState,
    TaskRow,
    TaskState,
    TopicRow,
    TopicSide,
    TopicTable,
)
from registry.drift.selectors import ScanInfo, SourceInfo, TopicInfo

PAGE: Final = 50
SHOWN_PARTITIONS: Final = 4
STRATEGIES: Final = {
    "topic_name": "TopicName",
    "record_name": "RecordName",
    "topic_record_name": "TopicRecordName",
}
SHOW: Final = {
    "": later("All topics"),
    "problem": later("Unreadable"),
    "findings": later("With findings"),
    "unread": later("Never read"),
    "gone": later("Gone"),
}


def topic_table(request: HttpRequest, source: SourceInfo, topics: list[TopicInfo]) -> TopicTable:
    """The topics that the query asks for."""
    base = reverse("ui:source", args=[source.id])
    query, show = request.GET.get("q", "").strip(), request.GET.get("show", "")
    show = show if show in SHOW else ""
    matches = [topic for topic in topics if query.lower() in topic.name.lower() and _is_shown(topic, show)]
    offset = min(whole_number(request.GET.get("offset", "")) or 0, max(0, len(matches) - 1)) // PAGE * PAGE
    page = matches[offset : offset + PAGE]

    def at(number: int) -> str:
        parameters = {"q": query, "show": show, "offset": number or ""}
        return f"{base}?{urlencode({name: value for name, value in parameters.items() if value})}"

    counts = {key: sum(1 for topic in topics if _is_shown(topic, key)) for key in SHOW}
    choices = tuple(
        Choice(value=key, label=label, selected=key == show, count=counts[key])
        for key, label in SHOW.items()
        if not key or counts[key] or key == show
    )
    chips = (("topic", query, {"show": show}), ("show", SHOW[show] if show else "", {"q": query}))
    active = tuple(
        ActiveFilter(label=f"{label}: {text}", url=f"{base}?{urlencode({k: v for k, v in left.items() if v})}")
        for label, text, left in chips
        if text
    )
    return TopicTable(
        search=SearchBox(
            url=base,
            query=query,
            label=gettext("Search topics"),
            filters=(Filter(name="show", label=gettext("Which topics"), choices=choices),),
            active=active,
        ),
        rows=tuple(_row(source, topic) for topic in page),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            total=len(matches),
            previous_url=at(offset - PAGE) if offset else "",
            next_url=at(offset + PAGE) if offset + PAGE < len(matches) else "",
        ),
        total=len(topics),
        patterns=patterns_of(source),
    )


def _is_shown(topic: TopicInfo, show: str) -> bool:
    return {
        "problem": bool(topic.problem),
        "findings": topic.open_findings > 0,
        "unread": topic.read_at is None and topic.gone_at is None,
        "gone": topic.gone_at is not None,
    }.get(show, True)


def _row(source: SourceInfo, topic: TopicInfo) -> TopicRow:
    chosen = {"source": source.id, "topic": topic.name}
    return TopicRow(
        name=topic.name,
        partitions=topic.partitions,
        keeps=keeps(topic),
        messages=topic.messages,
        read_to=_read_to(topic),
        sides=tuple(
            TopicSide(
                side=side,
                strategies=listing(STRATEGIES.get(name, name) for name in topic.strategies.get(side, ())),
                subjects=tuple(
                    Link(label=name, url=subject_url(source.registry, name)) for name in topic.subjects.get(side, ())
                ),
            )
            for side in ("key", "value")
            if topic.subjects.get(side) or topic.strategies.get(side)
        ),
        checked_at=topic.checked_at,
        read_at=topic.read_at,
        gone_at=topic.gone_at,
        problem=topic.problem,
        open_findings=topic.open_findings,
        findings_url=f"{reverse('ui:findings')}?{urlencode(chosen)}",
        state=_state(topic),
    )


def _state(topic: TopicInfo) -> ScanState:
    if topic.problem:
        return ScanState.FAILED
    return ScanState.DONE if topic.read_at else ScanState.NEVER


def keeps(topic: TopicInfo) -> str:
    """What lets a topic's data go, in words."""
    if topic.compacted:
        return gettext("compacted")
    if topic.retention_ms is None:
        return gettext("unknown")
    by_time = gettext("forever") if topic.retention_ms < 0 else lasting(max(1, topic.retention_ms // 1000))
    if topic.retention_bytes is not None and topic.retention_bytes >= 0:
        return gettext("%(by_time)s, %(sized)s per partition") % {
            "by_time": by_time,
            "sized": sized(topic.retention_bytes),
        }
    return by_time


def _read_to(topic: TopicInfo) -> str:
    """Positions of the first partitions, and how many more there are."""
    parts = [f"{number}@{offset}" for number, offset in sorted(topic.positions.items())]
    if len(parts) <= SHOWN_PARTITIONS:
        return " ".join(parts)
    return counted(
        len(parts) - SHOWN_PARTITIONS,
        "%(shown)s and %(n)s more partition",
        "%(shown)s and %(n)s more partitions",
        shown=" ".join(parts[:SHOWN_PARTITIONS]),
    )


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


def task_state(name: Any) -> TaskState:
    """The state that Kafka Connect names; OTHER for one that isn't known."""
    try:
        return TaskState.of(str(name or "").upper())
    except ValueError:
        return TaskState.OTHER


def _facts(connector: Mapping[str, Any], database: Mapping[str, Any] | None) -> tuple[Fact, ...]:
    converters = connector.get("converters", {})
    transforms = listing(
        transform["type"]
        if transform.get("understood")
        else gettext("%(type)s (unknown)") % {"type": transform["type"]}
        for transform in connector.get("transforms", ())
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
        return gettext("catalog not read")
    text = f"{database.get('name')}, PostgreSQL {database.get('version')}, wal_level {database.get('wal_level')}"
    return gettext("%(said)s; only partly read") % {"said": text} if database.get("cut") else text


def _slot(slot: Mapping[str, Any]) -> tuple[Fact, ...]:
    lag, safe = slot.get("lag_bytes"), slot.get("safe_bytes")
    return (
        Fact(label=gettext("Slot"), value=str(slot.get("name")), code=True),
        Fact(label=gettext("In use"), value=gettext("yes") if slot.get("active") else gettext("no")),
        Fact(
            label=gettext("Lag"),
            value=gettext("unknown")
            if lag is None
            else gettext("%(sized)s of write-ahead log") % {"sized": sized(lag)},
        ),
        Fact(label=gettext("Log"), value=str(slot.get("wal_status") or gettext("unknown"))),
        Fact(label=gettext("Remaining log"), value=gettext("no limit") if safe is None else sized(safe)),
    )


def _slot_care(slot: Mapping[str, Any]) -> str:
    """What is wrong with the slot; empty where nothing is."""
    if slot.get("wal_status") == "lost":
        return gettext("The log that the slot needs was removed. The connector must take a new snapshot.")
    if not slot.get("active"):
        return gettext(
            "The slot has no reader: the database retains its log and its disk fills up until the slot is read."
        )
    return ""


def _table(table: Mapping[str, Any]) -> CapturedTable:
    events = table.get("events", {})
    counts = [(label, int(events.get(op, 0))) for op, label in OPERATIONS.items()]
    counts += [
        (gettext("tombstone"), int(table.get("tombstones", 0))),
        (gettext("key change"), int(table.get("key_changes", 0))),
    ]
    behind = [SIDES.get(side, side) for side in table.get("behind", ())]
    sides = [SIDES.get(side, side) for side in table.get("known", ())]
    return CapturedTable(
        name=str(table["table"]),
        topic=str(table.get("topic") or ""),
        state=TableState.of(str(table.get("state", "unknown"))),
        identity=str(table.get("identity", "")),
        identity_sentence=str(table.get("identity_sentence", "")),
        published=bool(table.get("published")),
        refused=tuple(map(str, table.get("refused", ()))),
        known_sides=listed(sides),
        behind=ngettext("%(sides)s is behind", "%(sides)s are behind", len(behind)) % {"sides": joined(behind)}
        if behind
        else "",
        changes=tuple(_change(change) for change in table.get("changes", ())),
        left_out=tuple(f"{column['column']}: {column['why']}" for column in table.get("left_out", ())),
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
            followed=AdviceState.of(line["followed"]),
            known_from=str(line["known_from"]),
            findings=int(line.get("findings", 0)),
        )
        for line in lines
    )
