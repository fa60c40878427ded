"""Tables of evidence: what a scan read, rows of JSON, counts as bars, and hours with their deployments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.links import cursor_paging
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Link, Paging
from registry.drift.judge.field_history import ORDER, ORDER_OF_ONE, YEAR, end_of
from registry.drift.models import MOST_RANGES
from registry.drift.selectors import FindingOffsets

SHOWN_ROWS = 50
#: numbers that are identifiers: they get no thousands separators
NAMES = frozenset(
    {
        "partition", "start", "end", "first_offset", "last_offset", "offset", "schema_id", "operator", "version", "batch",
        "newer", "latest_in_use", "minimum_version", "batch_before", "batch_now", "task",
    }
)  # fmt: skip
#: columns with values from data, shown verbatim
CODE = frozenset({"value"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of an evidence table; `kind` is "text", "code" or "number" (aligned right)."""

    label: str
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayBar:
    """A day in a chart of 100 by 100: what it spans, from the top."""

    x: float
    width: float
    y: float
    height: float
    is_now: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChart:
    """Days as bars, the scan's last. The table below has the same as text."""

    label: str
    bars: tuple[DayBar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """Facts as a table: one text per cell, in the order of the columns. `hidden_rows` counts the omitted ones.

    For a topic: partition, first and last offset, messages, times. For state: operator, variable, field, batch, rows.
    `spans` are the rows' times as bars: left edge and width in percent of the total time. `chart` draws the rows.
    `files` download all rows; `paging` leads to more of them.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    hidden_rows: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    spans_label: str = ""
    chart: DayChart | None = None
    files: tuple[Link, ...] = ()
    paging: Paging | None = None

    @property
    def drawn(self) -> tuple[tuple[tuple[tuple[Column, str], ...], tuple[int, int] | None], ...]:
        """Return each row as columns with their texts, and its span."""
        spans = self.spans or (None,) * len(self.rows)
        return tuple(
            (tuple(zip(self.columns, row, strict=True)), span) for row, span in zip(self.rows, spans, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A count as a bar; `percent` is relative to the largest.

    `marks` are the deployments in that hour.
    """

    label: str
    count: int
    percent: int
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BarTable:
    """Counts by label, as a table with bars."""

    title: str
    label: str
    bars: tuple[Bar, ...]
    note: str = ""


#: columns of what a scan read → label
READ_COLUMNS: Final = {
    "topic": _("Topic"),
    "partition": _("Partition"),
    "side": _("Side"),
    "framing": _("Named by"),
    "schema_id": _("Schema"),
    "mark": _("Schema"),
    "hint": _("Looks like"),
    "start": _("From offset"),
    "end": _("To offset"),
    "limit": _("Limit"),
    "operator": _("Operator"),
    "variable": _("Variable"),
    "kind": _("Kind"),
    "encoding": _("Encoding"),
    "version": _("Schema version"),
    "batch": _("Since batch"),
    "rows": _("Rows"),
    "used": _("Used"),
    "allowed": _("Of"),
    "reason": _("Reason"),
    "messages": _("Messages"),
    "in_transaction": _("In a transaction"),
}
#: rows of what a scan read → title, columns, note
READ_TABLES: Final = {
    "partitions": (_("Positions"), ("topic", "partition", "start", "end", "messages"), ""),
    "ids": (_("Schemas seen"), ("topic", "side", "framing", "schema_id", "messages"), ""),
    "unframed": (_("Without a schema"), ("topic", "side", "hint", "messages"), ""),
    "message_events": (
        _("Message events"),
        ("topic", "messages", "in_transaction"),
        _("Written by pg_logical_emit_message, not rows of a table."),
    ),
    "expired": (_("Expired before a scan could read them"), ("topic", "partition", "start", "end"), ""),
    "schemas_not_used": (_("Schemas that couldn’t be used"), ("topic", "side", "framing", "mark", "reason"), ""),
    "settings_unknown": (_("Settings not known"), ("topic", "reason"), ""),
    "variables": (_("State variables"), ("operator", "variable", "kind", "encoding", "version", "batch", "rows"), ""),
    "limits": (_("Limits"), ("limit", "operator", "variable", "used", "allowed"), ""),
    "unreadable": (_("Not readable"), ("topic", "operator", "variable", "reason"), ""),
}


def read_tables(read: Mapping[str, Any]) -> tuple[EvidenceTable, ...]:
    """Return what a scan read, as tables."""
    tables = []
    dead = read.get("tombstones") or 0
    tombstones = counted(dead, "%(n)s tombstones, which are normal.", "%(n)s tombstones, which are normal.")
    for key, (title, names, note) in READ_TABLES.items():
        columns = tuple((READ_COLUMNS[name], name) for name in names)
        own_note = tombstones if dead and key == "ids" else note
        tables.append(rows_table(title, read.get(key, ()), columns, note=own_note))
    return tuple(table for table in tables if table.rows)


def rows_table(title: str, rows: Any, columns: tuple[tuple[str, str], ...], *, note: str = "") -> EvidenceTable:
    """Return JSON objects as a table; columns without values are omitted, and a column of integers is numeric."""
    columns = tuple((label, key) for label, key in columns if any(row.get(key) is not None for row in rows))
    kinds = [
        "number" if rows and all(isinstance(row.get(key), int) for row in rows) else "code" if key in CODE else "text"
        for _, key in columns
    ]
    return EvidenceTable(
        title=title,
        columns=tuple(Column(label=label, kind=kind) for (label, _), kind in zip(columns, kinds, strict=True)),
        rows=tuple(
            tuple(str(row[key]) if key in NAMES and key in row else cell(row.get(key)) for _, key in columns)
            for row in rows[:SHOWN_ROWS]
        ),
        note=note,
        hidden_rows=max(0, len(rows) - SHOWN_ROWS),
    )


def offset_table(offsets: FindingOffsets, url: str, file_url: str, after: str) -> EvidenceTable:
    """Return one page of a finding's messages by offset; `url` is that of the finding."""
    note = gettext(
        "%(listed)s of %(messages)s messages are listed. A finding keeps its newest %(most)s ranges of offsets."
    ) % {"listed": f"{offsets.listed:,}", "messages": f"{offsets.messages:,}", "most": f"{MOST_RANGES:,}"}
    table = rows_table(
        gettext("Messages by offset"),
        [asdict(item) | {"messages": item.messages} for item in offsets.ranges],
        (
            (gettext("Partition"), "partition"),
            (gettext("First offset"), "first_offset"),
            (gettext("Last offset"), "last_offset"),
            (gettext("Messages"), "messages"),
        ),
        note=note,
    )
    return replace(
        table,
        files=tuple(
            Link(label=label, url=f"{file_url}?as={form}")
            for label, form in ((gettext("Download CSV"), "csv"), (gettext("Download JSON"), "json"))
        ),
        paging=cursor_paging((), url, {}, is_first=not after, after=offsets.next),
    )


def day_chart(rule: str, rows: Sequence[Mapping[str, Any]]) -> DayChart | None:
    """Return the days as bars: from the least to the greatest value, or a number; None if one isn't known."""
    if rule == "DISTINCT_VALUES_CHANGED":
        label, spans = gettext("Different values by day"), [_number(row.get("distinct")) for row in rows]
    elif any("minimum" in row for row in rows):
        label, spans = gettext("Least and greatest value by day"), [_ends(row) for row in rows]
    else:
        label, spans = gettext("Messages by time"), [_number(row.get("messages")) for row in rows]
    known = [span for span in spans if span is not None]
    if len(known) < len(rows) or len(rows) < 2:
        return None
    low, high = min(span[0] for span in known), max(span[1] for span in known)
    scale = 90 / ((high - low) or 1)
    step = 100 / len(rows)
    bars = (
        DayBar(
            x=round(index * step, 2),
            width=round(step * 0.7, 2),
            y=round((high - top) * scale, 2),
            height=round((top - bottom) * scale + 10, 2),
            is_now=index == len(rows) - 1,
        )
        for index, (bottom, top) in enumerate(known)
    )
    return DayChart(label=label, bars=tuple(bars))


def _number(value: int | None) -> tuple[float, float] | None:
    """Return the span of a number: from zero; None if it is unknown."""
    return None if value is None else (0.0, float(value))


def _ends(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the span of a day's values; lengths as logarithms, as orders of magnitude are."""
    low, high = end_of(row.get("minimum", "")), end_of(row.get("maximum", ""))
    if low is None or high is None or low[0] != high[0]:
        return None
    if low[0] in (ORDER, YEAR):
        return tuple(_from_one(low[0], rank) for rank in (low[1], high[1]))  # type: ignore[return-value]  # two
    return math.log10(1 + low[1]), math.log10(1 + high[1])


def _from_one(unit: str, rank: int) -> float:
    """Return a rank for drawing: orders of magnitude count from below 1e0 on both sides of zero."""
    if unit == YEAR or rank == 0:
        return float(rank)
    return math.copysign(max(1, abs(rank) - ORDER_OF_ONE + 1), rank)


def cell(value: Any) -> str:
    """Format a value for a cell: a dash for None, thousands separators in numbers."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)[:500]


#: evidence with counts by name → title, label of the names
COUNTED: Final = {
    "ids_by_hour": (_("Messages by timestamp"), _("Hour (UTC)")),
    "ids_over_time": (_("Messages over time"), _("Seen by the scan of (UTC)")),
    "looks_like": (_("What the bytes look like"), _("Looks like")),
    "not_told": (_("Unidentified messages on this side"), _("Reason")),
    "framings": (_("Framing of messages"), _("Framing")),
    "framings_before": (_("Framing of earlier messages"), _("Framing")),
    "types": (_("Message types"), _("Type")),
    "kinds": (_("Types seen"), _("Type")),
    "values": (_("Values seen"), _("Value")),
    "by_reason": (_("Messages by reason"), _("Reason")),
    "by_reason_before": (_("Messages of earlier scans by reason"), _("Reason")),
}
#: those that are in order of time
IN_TIME: Final = frozenset({"ids_by_hour", "ids_over_time"})
SHOWN_BARS: Final = 24


def bar_tables(
    evidence: Mapping[str, Any], deployed: Mapping[str, Sequence[str]] | None = None
) -> tuple[BarTable, ...]:
    """Return counts by name as tables with bars.

    `deployed` has the deployments by hour (keys as in `ids_by_hour`): they are shown in their hour, even without
    messages.
    """
    tables = []
    for key, (title, label) in COUNTED.items():
        counts = evidence.get(key)
        if not isinstance(counts, Mapping) or not counts:
            continue
        marks = (deployed or {}) if key == "ids_by_hour" else {}
        empty = sorted(set(marks) - set(counts), reverse=True)[: max(0, SHOWN_BARS - len(counts))]
        bars, more = _bars(key, {**dict.fromkeys(empty, 0), **counts}, marks)
        if key == "ids_by_hour":
            more = _by_hour_note(evidence)
        if bars:
            tables.append(BarTable(title=title, label=label, bars=bars, note=more))
    return tuple(tables)


def _bars(key: str, counts: Mapping[Any, Any], marks: Mapping[str, Sequence[str]]) -> tuple[tuple[Bar, ...], str]:
    """Return the displayed bars, and a note about the omitted ones."""
    numbers = {str(name): number for name, number in counts.items() if isinstance(number, int)}
    most = max(numbers.values(), default=0)
    ordered = sorted(numbers.items(), key=lambda item: (key not in IN_TIME and -item[1], item[0]))
    bars = tuple(
        Bar(
            label=name.replace("_", " "),
            count=number,
            percent=max(1, number * 100 // most) if number > 0 else 0,
            marks=tuple(marks.get(name, ())),
        )
        for name, number in ordered[:SHOWN_BARS]
    )
    left = len(ordered) - SHOWN_BARS
    return bars, gettext("%(number)s more not shown") % {"number": left} if left > 0 else ""


def _by_hour_note(evidence: Mapping[str, Any]) -> str:
    """Say what the counts by hour are based on: scans record only the first and last time of what they read."""
    spread, earlier = evidence.get("ids_by_hour_spread", 0), evidence.get("ids_by_hour_earlier", 0)
    sentences = [gettext("Based on scanned messages.")]
    if spread:
        sentences.append(
            counted(
                spread,
                "%(n)s message is from a span of several hours and is distributed evenly over it.",
                "%(n)s messages are from spans of several hours and are distributed evenly over them.",
            )
        )
    if earlier:
        sentences.append(counted(earlier, "%(n)s earlier message not shown.", "%(n)s earlier messages not shown."))
    return " ".join(sentences)
