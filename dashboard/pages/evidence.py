"""What was read and what proves a finding, as facts and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dashboard.presenters.drift import Column, EvidenceTable
from dashboard.presenters.drift_parts import Bar, BarTable
from dashboard.presenters.frame import Fact

SHOWN_ROWS = 50
#: numbers that name something; a separator of thousands would spoil them
NAMES = frozenset(
    {"partition", "start", "end", "first_offset", "last_offset", "offset", "schema_id", "operator", "version", "batch"}
)
#: columns that hold what stands in data, letter by letter
CODE = frozenset({"value"})


def read_tables(read: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    """What a scan read, as tables."""
    tables = (
        _table(
            "Positions",
            read.get("partitions", ()),
            (
                ("Topic", "topic"),
                ("Partition", "partition"),
                ("From offset", "start"),
                ("To offset", "end"),
                ("Messages", "messages"),
            ),
        ),
        _table(
            "Schemas seen",
            read.get("ids", ()),
            (
                ("Topic", "topic"),
                ("Side", "side"),
                ("Named by", "framing"),
                ("Schema", "schema_id"),
                ("Messages", "messages"),
            ),
            note=f"{read['tombstones']:,} tombstones, which are normal." if read.get("tombstones") else "",
        ),
        _table(
            "Without a schema",
            read.get("unframed", ()),
            (("Topic", "topic"), ("Side", "side"), ("Looks like", "hint"), ("Messages", "messages")),
        ),
        _table(
            "Message events",
            read.get("message_events", ()),
            (("Topic", "topic"), ("Messages", "messages"), ("In a transaction", "in_transaction")),
            note="pg_logical_emit_message: they are no rows of a table.",
        ),
        _table(
            "Expired before a scan could read them",
            read.get("expired", ()),
            (("Topic", "topic"), ("Partition", "partition"), ("From offset", "start"), ("To offset", "end")),
        ),
        _table(
            "Schemas that couldn’t be used",
            read.get("schemas_not_used", ()),
            (("Named by", "framing"), ("Schema", "mark"), ("Reason", "reason")),
        ),
        _table(
            "State variables",
            read.get("variables", ()),
            (
                ("Operator", "operator"),
                ("Variable", "variable"),
                ("Kind", "kind"),
                ("Encoding", "encoding"),
                ("Schema version", "version"),
                ("Since batch", "batch"),
                ("Rows", "rows"),
            ),
        ),
        _table(
            "Limits",
            read.get("limits", ()),
            (
                ("Limit", "limit"),
                ("Operator", "operator"),
                ("Variable", "variable"),
                ("Used", "used"),
                ("Of", "allowed"),
            ),
        ),
        _table(
            "Not readable",
            read.get("unreadable", ()),
            (("Topic", "topic"), ("Operator", "operator"), ("Variable", "variable"), ("Reason", "reason")),
        ),
    )
    return tuple(table for table in tables if table.rows)


def _table(title: str, rows: Any, columns: tuple[tuple[str, str], ...], *, note: str = "") -> EvidenceTable:
    """Rows of JSON objects as a table: of the columns those that a row has; one is a number where all its values are."""
    columns = tuple((label, key) for label, key in columns if any(row.get(key) is not None for row in rows))
    kinds = [
        "number" if rows and all(isinstance(row.get(key), int) for row in rows) else "code" if key in CODE else "text"
        for _, key in columns
    ]
    return EvidenceTable(
        title=title,
        columns=tuple(Column(label=label, kind=kind) for (label, _), kind in zip(columns, kinds, strict=True)),
        rows=tuple(
            tuple(str(row[key]) if key in NAMES and key in row else _cell(row.get(key)) for _, key in columns)
            for row in rows[:SHOWN_ROWS]
        ),
        note=note,
        hidden_rows=max(0, len(rows) - SHOWN_ROWS),
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)[:500]


FACT_LABELS = {
    "topic": "Topic",
    "side": "Side",
    "schema_id": "Schema id",
    "schema_ids": "Schema ids",
    "expected": "Expected subject",
    "owners": "The id belongs to",
    "messages": "Messages",
    "of_messages": "Of messages with this id",
    "of_messages_read": "Of messages read",
    "undecodable_messages": "Of them not decodable",
    "groups": "Different ids",
    "operator": "Operator",
    "variable": "State variable",
    "kind": "Kind",
    "encoding": "Encoding",
    "batch": "Batch",
    "versions": "Schema versions",
    "field": "Field",
    "added": "New field",
    "type": "Type",
    "rows_before": "Rows before",
    "filled_before": "Of them filled",
    "batch_before": "As of batch",
    "used": "Used",
    "allowed": "Of",
    "reason": "Reason",
    "mark": "Schema’s mark",
    "version": "Version seen",
    "newer": "Newer version",
    "decoded": "Messages decoded",
    "present": "Of them with the field",
    "nulls": "Of them null",
    "share": "Share now",
    "share_before": "Share before",
    "days": "Days compared",
    "contexts": "Known in contexts",
}


def evidence_facts(evidence: dict[str, Any]) -> tuple[Fact, ...]:
    """The single values of a finding's evidence, with their labels."""
    facts = [
        Fact(
            label=label,
            value=str(evidence[key]) if key in NAMES else _fact(evidence[key]),
            code=key in ("topic", "variable", "field", "added", "type"),
        )
        for key, label in FACT_LABELS.items()
        if evidence.get(key) not in (None, "", [])
    ]
    return tuple(facts)


def _fact(value: Any) -> str:
    return ", ".join(_cell(item) for item in value) if isinstance(value, list) else _cell(value)


def evidence_tables(evidence: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    """The places that a finding's evidence names: partitions with offsets, or the spot in a state store."""
    partitions = [
        {**row, "first": _moment(row["first_time"]), "last": _moment(row["last_time"])}
        for row in evidence.get("partitions", ())
    ]
    where = _table(
        "Where and when it was seen",
        partitions,
        (
            ("Partition", "partition"),
            ("First offset", "first_offset"),
            ("Last offset", "last_offset"),
            ("Messages", "messages"),
            ("First time", "first"),
            ("Last time", "last"),
        ),
    )
    tables = (
        replace(where, spans=_spans(partitions[:SHOWN_ROWS]), spans_label="When"),
        _table(
            "Samples, masked",
            evidence.get("samples", ()),
            (("Partition", "partition"), ("Offset", "offset"), ("Message", "value")),
            note="Of each value its form alone: the length and the classes of a text’s characters, a number’s magnitude.",
        ),
        _table(
            "The first that couldn’t be read",
            [{**row, "listed": ", ".join(map(str, row["offsets"]))} for row in evidence.get("offsets", ())],
            (("Partition", "partition"), ("Offsets", "listed"), ("Reason", "reason")),
        ),
        _table(
            "What changed", evidence.get("changes", ()), (("Field", "field"), ("Before", "before"), ("After", "after"))
        ),
    )
    return tuple(table for table in tables if table.rows)


def _spans(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, int], ...]:
    """Of each row the part of the whole time that it took: left edge and width in percent, at least 1 wide."""
    if not rows:
        return ()
    begin, end = min(row["first_time"] for row in rows), max(row["last_time"] for row in rows)
    whole = max(1, end - begin)
    spans = []
    for row in rows:
        left = min(99, (row["first_time"] - begin) * 100 // whole)
        spans.append((left, max(1, min(100 - left, (row["last_time"] - row["first_time"]) * 100 // whole))))
    return tuple(spans)


#: evidence that counts by name → title and what the names are
COUNTED = {
    "ids_over_time": ("Messages over time", "Seen by the scan of (UTC)"),
    "looks_like": ("What the bytes look like", "Looks like"),
    "framings": ("How messages name their schema", "Framing"),
    "framings_before": ("How earlier messages name it", "Framing"),
    "types": ("Message types", "Type"),
    "kinds": ("Types seen", "Type"),
    "values": ("Values seen", "Value"),
    "parsed": ("What the bytes are", "Bytes"),
}
SHOWN_BARS = 24


def bar_tables(evidence: Mapping[str, Any]) -> tuple[BarTable, ...]:
    """Counts by name as tables with bars; the largest has the longest."""
    tables = []
    for key, (title, label) in COUNTED.items():
        counts = evidence.get(key)
        if not isinstance(counts, Mapping):
            continue
        numbers = {str(name): number for name, number in counts.items() if isinstance(number, int)}
        most = max(numbers.values(), default=0)
        ordered = sorted(numbers.items(), key=lambda item: (key != "ids_over_time" and -item[1], item[0]))
        bars = tuple(
            Bar(label=name.replace("_", " "), count=number, percent=max(1, number * 100 // most) if number > 0 else 0)
            for name, number in ordered[:SHOWN_BARS]
        )
        more = f"{len(ordered) - SHOWN_BARS} more are not shown" if len(ordered) > SHOWN_BARS else ""
        if bars:
            tables.append(BarTable(title=title, label=label, bars=bars, note=more))
    return tuple(tables)


def _moment(milliseconds: int) -> str:
    """A time in UTC; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"
