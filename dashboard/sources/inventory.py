"""The content of a source: its topics, filtered and paged, or a connector's tables in its last scan.

For a connector also its tasks and replication slot; for a registry its checklist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from dashboard.components.badges import BadgeState
from dashboard.components.links import chosen_value, offset_paging, subject_url, whole_number, with_query
from dashboard.components.translation import counted, joined, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import ActiveFilter, Choice, Fact, Filter, Link, Paging, SearchBox
from dashboard.sources.labels import format_duration, listed, patterns_of, sized
from registry.drift.selectors import ScanInfo, SourceInfo, TopicInfo

PAGE: Final = 50
SHOWN_PARTITIONS: Final = 4
STRATEGIES: Final = {"topic_name": "TopicName", "record_name": "RecordName", "topic_record_name": "TopicRecordName"}
SHOW: Final = {
    "": _("All topics"),
    "problem": _("Unreadable"),
    "findings": _("With findings"),
    "unread": _("Never read"),
    "gone": _("Gone"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSide:
    """The subjects and naming strategies found for a topic's keys or values."""

    side: str
    strategies: str
    subjects: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic of a source, and the registry that it is compared with."""

    info: TopicInfo
    registry: str

    @property
    def keeps(self) -> str:
        """The retention in words."""
        topic = self.info
        if topic.compacted:
            return gettext("compacted")
        if topic.retention_ms is None:
            return gettext("unknown")
        by_time = gettext("forever") if topic.retention_ms < 0 else format_duration(max(1, topic.retention_ms // 1000))
        if topic.retention_bytes is None or topic.retention_bytes < 0:
            return by_time
        size = sized(topic.retention_bytes)
        return gettext("%(by_time)s, %(sized)s per partition") % {"by_time": by_time, "sized": size}

    @property
    def read_to(self) -> str:
        """The positions of the first partitions, and the number of others."""
        parts = [f"{number}@{offset}" for number, offset in sorted(self.info.positions.items())]
        shown = " ".join(parts[:SHOWN_PARTITIONS])
        if len(parts) <= SHOWN_PARTITIONS:
            return shown
        more = len(parts) - SHOWN_PARTITIONS
        return counted(more, "%(shown)s and %(n)s more partition", "%(shown)s and %(n)s more partitions", shown=shown)

    @property
    def sides(self) -> list[TopicSide]:
        """The sides for which subjects were found."""
        topic = self.info
        return [
            TopicSide(
                side=side,
                strategies=listing(STRATEGIES.get(name, name) for name in topic.strategies.get(side, ())),
                subjects=tuple(
                    Link(label=name, url=subject_url(self.registry, name)) for name in topic.subjects.get(side, ())
                ),
            )
            for side in ("key", "value")
            if topic.subjects.get(side) or topic.strategies.get(side)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTable:
    """The topics of a source, filtered and paged; `total` counts all topics of the cluster."""

    search: SearchBox
    rows: tuple[TopicRow, ...]
    paging: Paging
    total: int
    patterns: str = ""


def topic_table(request: HttpRequest, source: SourceInfo, topics: list[TopicInfo]) -> TopicTable:
    """Return the topics that match the query."""
    base = reverse("ui:source", args=[source.id])
    query, show = request.GET.get("q", "").strip(), chosen_value(request.GET, "show", SHOW)
    matches = [topic for topic in topics if query.lower() in topic.name.lower() and _is_shown(topic, show)]
    offset = min(whole_number(request.GET.get("offset", "")) or 0, max(0, len(matches) - 1)) // PAGE * PAGE
    page = matches[offset : offset + PAGE]

    counts = {key: sum(1 for topic in topics if _is_shown(topic, key)) for key in SHOW}
    choices = tuple(
        Choice(value=key, label=label, selected=key == show, count=counts[key])
        for key, label in SHOW.items()
        if not key or counts[key] or key == show
    )
    chips = (("topic", query, {"show": show}), ("show", SHOW[show] if show else "", {"q": query}))
    active = tuple(
        ActiveFilter(label=f"{label}: {text}", url=with_query(base, left)) for label, text, left in chips if text
    )
    return TopicTable(
        search=SearchBox(
            url=base,
            query=query,
            label=gettext("Search topics"),
            filters=(Filter(name="show", label=gettext("Which topics"), choices=choices),),
            active=active,
        ),
        rows=tuple(TopicRow(info=topic, registry=source.registry) for topic in page),
        paging=offset_paging(
            offset,
            len(page),
            len(matches),
            PAGE,
            lambda number: with_query(base, {"q": query, "show": show, "offset": number}),
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


SHOWN_TABLES: Final = 200
OPERATIONS: Final = {"c": _("insert"), "u": _("update"), "d": _("delete"), "r": _("snapshot"), "t": _("truncate")}
SIDES: Final = {"table": _("the table"), "registered": _("the registered schema"), "events": _("the events")}


NEXT_ROW: Final = {
    "unchanged": _("no new version"),
    "registered": _("new version"),
    "refused": _("rejected"),
    "no_key": _("no key"),
    "no_schema": _("no schema"),
    "no_event": _("no event"),
    "not_checked": _("not checked"),
}
KEY_AND_VALUE: Final = {"value": _("Value"), "key": _("Key")}


class TableState(BadgeState):
    """Whether table, registered schema and events of a captured table agree; UNKNOWN is never green."""

    IN_STEP = ("in_step", "ok", "circle-check", _("In sync"))
    DRIFT = ("drift", "breaks", "octagon-x", _("Differ"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Not checked"))
    SHARED = ("shared", "unknown", "circle-slash", _("Not checked"))


class AdviceState(BadgeState):
    """Whether a piece of advice is followed."""

    NO = ("no", "breaks", "octagon-x", _("Not followed"))
    NOT_KNOWN = ("not known", "unknown", "circle-question-mark", _("Unknown"))
    YES = ("yes", "ok", "circle-check", _("Followed"))
    DOES_NOT_APPLY = ("does not apply", "unknown", "circle-slash", _("Not applicable"))


class TaskState(BadgeState):
    """The state of a connector or task, as reported by Kafka Connect; OTHER is an unknown one."""

    RUNNING = ("RUNNING", "ok", "circle-check", _("Running"))
    PAUSED = ("PAUSED", "care", "clock", _("Paused"))
    FAILED = ("FAILED", "breaks", "octagon-x", _("Failed"))
    STOPPED = ("STOPPED", "care", "ban", _("Stopped"))
    UNASSIGNED = ("UNASSIGNED", "care", "hourglass", _("Not assigned"))
    RESTARTING = ("RESTARTING", "info", "loader", _("Restarting"))
    OTHER = ("", "unknown", "circle-dashed", _("Unknown"))

    @classmethod
    def _missing_(cls, value: object) -> TaskState:
        return cls.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTable:
    """A captured table; `read` has the scan's values."""

    read: Mapping[str, Any]

    @property
    def state(self) -> TableState:
        """The agreement of its three sides."""
        return TableState.of(str(self.read.get("state", "unknown")))

    @property
    def known_sides(self) -> str:
        """The known sides in words."""
        return listed([SIDES.get(side, side) for side in self.read.get("known", ())])

    @property
    def behind(self) -> str:
        """The sides that are behind, in words; empty if none."""
        sides = [SIDES.get(side, side) for side in self.read.get("behind", ())]
        text = ngettext("%(sides)s is behind", "%(sides)s are behind", len(sides)) % {"sides": joined(sides)}
        return text if sides else ""

    @property
    def next_row(self) -> list[tuple[str, str, str]]:
        """What its next row does to the subject of each side, and why; empty in scans that didn't predict it."""
        rows = self.read.get("next_row", {})
        return [
            (label, NEXT_ROW.get(row["outcome"], row["outcome"]), row["reason"])
            for side, label in KEY_AND_VALUE.items()
            if (row := rows.get(side))
        ]

    @property
    def operations(self) -> list[tuple[str, int]]:
        """The operations on its rows, with counts."""
        events = self.read.get("events", {})
        counts = [(label, int(events.get(op, 0))) for op, label in OPERATIONS.items()]
        counts.append((gettext("tombstone"), int(self.read.get("tombstones", 0))))
        counts.append((gettext("key change"), int(self.read.get("key_changes", 0))))
        return [(label, number) for label, number in counts if number]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorView:
    """A Debezium connector in a scan that ended at `read_at`; `read` has the scan's values."""

    read: Mapping[str, Any]
    read_at: datetime | None = None

    @property
    def info(self) -> Mapping[str, Any]:
        """The connector itself."""
        return self.read["connector"]  # type: ignore[no-any-return]

    @property
    def state(self) -> TaskState:
        """The connector's state."""
        return _task_state(self.info)

    @property
    def tasks(self) -> list[tuple[Mapping[str, Any], TaskState]]:
        """The tasks with their states."""
        return [(task, _task_state(task)) for task in self.info.get("tasks", ())]

    @property
    def tables(self) -> list[CapturedTable]:
        """The captured tables to show."""
        return [CapturedTable(read=table) for table in self.read.get("tables", ())[:SHOWN_TABLES]]

    @property
    def tables_left_out(self) -> int:
        """The number of omitted tables."""
        return int(self.read.get("tables_left_out", 0) + max(0, len(self.read.get("tables", ())) - SHOWN_TABLES))

    @property
    def facts(self) -> list[Fact]:
        """The configuration."""
        info = self.info
        converters, skipped = info.get("converters", {}), info.get("skipped_operations", ())
        transforms = listing(map(_transform, info.get("transforms", ())))
        tombstones = gettext("written after deletes") if info.get("tombstones") else gettext("not written")
        facts = (
            (gettext("Worker"), info.get("worker"), True),
            (gettext("Topic prefix"), info.get("prefix"), True),
            (gettext("Key converter"), converters.get("key"), True),
            (gettext("Value converter"), converters.get("value"), True),
            (gettext("Transforms"), transforms or gettext("none"), bool(transforms)),
            (gettext("Skips"), listing(OPERATIONS.get(op, op) for op in skipped) or gettext("nothing"), False),
            (gettext("Tombstones"), tombstones, False),
            (gettext("Snapshot"), info.get("snapshot_mode"), False),
            (gettext("Database"), _database(self.read.get("database")), False),
        )
        return [Fact(label=label, value=str(value), code=code) for label, value, code in facts if value]

    @property
    def slot(self) -> list[Fact]:
        """The replication slot; empty if unknown."""
        slot = self.read.get("slot")
        if not slot:
            return []
        lag, safe, unknown = slot.get("lag_bytes"), slot.get("safe_bytes"), gettext("unknown")
        log = unknown if lag is None else gettext("%(sized)s of write-ahead log") % {"sized": sized(lag)}
        return [
            Fact(label=gettext("Slot"), value=str(slot.get("name")), code=True),
            Fact(label=gettext("In use"), value=gettext("yes") if slot.get("active") else gettext("no")),
            Fact(label=gettext("Lag"), value=log),
            Fact(label=gettext("Log"), value=str(slot.get("wal_status") or unknown)),
            Fact(label=gettext("Remaining log"), value=gettext("no limit") if safe is None else sized(safe)),
        ]

    @property
    def slot_care(self) -> str:
        """The problem of the slot; empty if none."""
        slot = self.read.get("slot")
        if slot and slot.get("wal_status") == "lost":
            return gettext("The log that the slot needs was removed. The connector must take a new snapshot.")
        if slot and not slot.get("active"):
            return gettext(
                "The slot has no reader: the database retains its log and its disk fills up until the slot is read."
            )
        return ""


def connector_of(scan: ScanInfo | None) -> ConnectorView | None:
    """Return the connector in a scan; None for a scan of another kind of source."""
    read = scan.read if scan else None
    return ConnectorView(read=read, read_at=scan.finished_at) if scan and read and "connector" in read else None


def _task_state(of: Mapping[str, Any]) -> TaskState:
    return TaskState.of(str(of.get("state") or "").upper())


def _transform(transform: Mapping[str, Any]) -> str:
    if transform.get("understood"):
        return str(transform["type"])
    return gettext("%(type)s (unknown)") % {"type": transform["type"]}


def _database(database: Mapping[str, Any] | None) -> str:
    if database is None:
        return gettext("catalog not read")
    text = f"{database.get('name')}, PostgreSQL {database.get('version')}, wal_level {database.get('wal_level')}"
    return gettext("%(said)s; only partly read") % {"said": text} if database.get("cut") else text


def advice_of(scan: ScanInfo | None) -> list[tuple[AdviceState, Mapping[str, Any]]]:
    """Return the checklist of a registry, items not followed first."""
    read = scan.read if scan else None
    lines = [(AdviceState.of(line["followed"]), line) for line in (read or {}).get("advice", ())]
    order = list(AdviceState)
    return sorted(lines, key=lambda line: order.index(line[0]))
