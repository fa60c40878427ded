"""What a scan read, as tables; and how rows of JSON become one."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext

from dashboard.presenters.drift import Column, EvidenceTable
from dashboard.texts import counted

SHOWN_ROWS = 50
#: numbers that name something; a separator of thousands would spoil them
NAMES = frozenset(
    {
        "partition", "start", "end", "first_offset", "last_offset", "offset", "schema_id", "operator", "version", "batch",
        "newer", "latest_in_use", "least", "batch_before", "batch_now", "task",
    }
)  # fmt: skip
#: columns that hold what stands in data, letter by letter
CODE = frozenset({"value"})


def read_tables(read: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    """What a scan read, as tables."""
    tables = (
        rows_table(
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
        rows_table(
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
        rows_table(
            gettext("Without a schema"),
            read.get("unframed", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Side"), "side"),
                (gettext("Looks like"), "hint"),
                (gettext("Messages"), "messages"),
            ),
        ),
        rows_table(
            gettext("Message events"),
            read.get("message_events", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Messages"), "messages"),
                (gettext("In a transaction"), "in_transaction"),
            ),
            note=gettext("pg_logical_emit_message: they are no rows of a table."),
        ),
        rows_table(
            gettext("Expired before a scan could read them"),
            read.get("expired", ()),
            (
                (gettext("Topic"), "topic"),
                (gettext("Partition"), "partition"),
                (gettext("From offset"), "start"),
                (gettext("To offset"), "end"),
            ),
        ),
        rows_table(
            gettext("Schemas that couldn’t be used"),
            read.get("schemas_not_used", ()),
            ((gettext("Named by"), "framing"), (gettext("Schema"), "mark"), (gettext("Reason"), "reason")),
        ),
        rows_table(
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
        rows_table(
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
        rows_table(
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


def rows_table(title: str, rows: Any, columns: tuple[tuple[str, str], ...], *, note: str = "") -> EvidenceTable:
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
            tuple(str(row[key]) if key in NAMES and key in row else cell(row.get(key)) for _, key in columns)
            for row in rows[:SHOWN_ROWS]
        ),
        note=note,
        hidden_rows=max(0, len(rows) - SHOWN_ROWS),
    )


def cell(value: Any) -> str:
    """A value as a cell shows it: a dash where there is none, numbers with separators of thousands."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)[:500]
