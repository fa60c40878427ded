"""What was read and what proves a finding, as facts and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext

from dashboard.presenters.drift import Column, EvidenceTable
from dashboard.presenters.frame import Fact
from dashboard.texts import counted, later

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
            gettext("Positions"),
            read.get("partitions", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Partition"), "partition"),
                (gettext("From offset"), "start"),
                (gettext("To offset"), "end"),
                (gettext("Messages"), "messages"),
            ),
        ),
        _table(
            gettext("Schemas seen"),
            read.get("ids", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Side"), "side"),
                (gettext("Named by"), "framing"),
                (gettext("Schema"), "schema_id"),
                (gettext("Messages"), "messages"),
            ),
            note=counted(
                read["tombstones"], "%(n)s tombstones, which are normal.", "%(n)s tombstones, which are normal."
            )
            if read.get("tombstones")
            else "",
        ),
        _table(
            gettext("Without a schema"),
            read.get("unframed", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Side"), "side"),
                (gettext("Looks like"), "hint"),
                (gettext("Messages"), "messages"),
            ),
        ),
        _table(
            gettext("Message events"),
            read.get("message_events", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Messages"), "messages"),
                (gettext("In a transaction"), "in_transaction"),
            ),
            note=gettext("pg_logical_emit_message: they are no rows of a table."),
        ),
        _table(
            gettext("Expired before a scan could read them"),
            read.get("expired", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Partition"), "partition"),
                (gettext("From offset"), "start"),
                (gettext("To offset"), "end"),
            ),
        ),
        _table(
            gettext("Schemas that couldn’t be used"),
            read.get("schemas_not_used", ()),
            ((gettext("Named by"), "framing"), (gettext("Schema"), "mark"), (gettext("Reason"), "reason")),
        ),
        _table(
            gettext("State variables"),
            read.get("variables", ()),
            (
                (gettext("Operator"), "operator"),
                (gettext("Variable"), "variable"),
                (gettext("Kind"), "kind"),
                (gettext("Encoding"), "encoding"),
                (gettext("Schema version"), "version"),
                (gettext("Since batch"), "batch"),
                (gettext("Rows"), "rows"),
            ),
        ),
        _table(
            gettext("Limits"),
            read.get("limits", ()),
            (
                (gettext("Limit"), "limit"),
                (gettext("Operator"), "operator"),
                (gettext("Variable"), "variable"),
                (gettext("Used"), "used"),
                (gettext("Of"), "allowed"),
            ),
        ),
        _table(
            gettext("Not readable"),
            read.get("unreadable", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Operator"), "operator"),
                (gettext("Variable"), "variable"),
                (gettext("Reason"), "reason"),
            ),
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
    "topic": later("Topic"),
    "side": later("Side"),
    "schema_id": later("Schema id"),
    "schema_ids": later("Schema ids"),
    "expected": later("Expected subject"),
    "owners": later("The id belongs to"),
    "messages": later("Messages"),
    "of_messages": later("Of messages with this id"),
    "of_messages_read": later("Of messages read"),
    "undecodable_messages": later("Of them not decodable"),
    "groups": later("Different ids"),
    "operator": later("Operator"),
    "variable": later("State variable"),
    "kind": later("Kind"),
    "encoding": later("Encoding"),
    "batch": later("Batch"),
    "versions": later("Schema versions"),
    "field": later("Field"),
    "added": later("New field"),
    "type": later("Type"),
    "rows_before": later("Rows before"),
    "filled_before": later("Of them filled"),
    "batch_before": later("As of batch"),
    "rows_unread_since": later("Rows not readable here since"),
    "used": later("Used"),
    "allowed": later("Of"),
    "reason": later("Reason"),
    "mark": later("Schema’s mark"),
    "version": later("Version seen"),
    "newer": later("Newer version"),
    "decoded": later("Messages decoded"),
    "present": later("Of them with the field"),
    "nulls": later("Of them null"),
    "share": later("Share now"),
    "share_before": later("Share before"),
    "days": later("Days compared"),
    "contexts": later("Known in contexts"),
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
        {**row, "first": _moment(row.get("first_time")), "last": _moment(row.get("last_time"))}
        for row in evidence.get("partitions", ())
    ]
    where = _table(
        gettext("Where and when it was seen"),
        partitions,
        (
            (gettext("Partition"), "partition"),
            (gettext("First offset"), "first_offset"),
            (gettext("Last offset"), "last_offset"),
            (gettext("Messages"), "messages"),
            (gettext("First time"), "first"),
            (gettext("Last time"), "last"),
        ),
    )
    tables = (
        replace(where, spans=_spans(partitions[:SHOWN_ROWS]), spans_label=gettext("When")),
        _table(
            gettext("Samples, masked"),
            evidence.get("samples", ()),
            ((gettext("Partition"), "partition"), (gettext("Offset"), "offset"), (gettext("Message"), "value")),
            note=gettext(
                "Of each value its form alone: the length and the classes of a text’s characters, a number’s magnitude."
            ),
        ),
        _table(
            gettext("The first that couldn’t be read"),
            [{**row, "listed": ", ".join(map(str, row["offsets"]))} for row in evidence.get("offsets", ())],
            ((gettext("Partition"), "partition"), (gettext("Offsets"), "listed"), (gettext("Reason"), "reason")),
        ),
        _table(
            gettext("What changed"),
            evidence.get("changes", ()),
            ((gettext("Field"), "field"), (gettext("Before"), "before"), (gettext("After"), "after")),
        ),
    )
    return tuple(table for table in tables if table.rows)


def _spans(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, int], ...]:
    """Of each row the part of the whole time that it took: left edge and width in percent, at least 1 wide.

    None where a time isn't known: beside the others such a row would look like one of no time.
    """
    if not rows or any(row.get("first_time") is None or row.get("last_time") is None for row in rows):
        return ()
    begin, end = min(row["first_time"] for row in rows), max(row["last_time"] for row in rows)
    whole = max(1, end - begin)
    spans = []
    for row in rows:
        left = min(99, (row["first_time"] - begin) * 100 // whole)
        spans.append((left, max(1, min(100 - left, (row["last_time"] - row["first_time"]) * 100 // whole))))
    return tuple(spans)


def _moment(milliseconds: int | None) -> str | None:
    """A time in UTC; the number itself where no calendar has it, None where it isn't known."""
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"
