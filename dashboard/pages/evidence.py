"""What was read and what proves a finding, as facts and tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dashboard.presenters.drift import (
    Column,
    EvidenceTable,
)
from dashboard.presenters.frame import (
    Fact,
)

SHOWN_ROWS = 50
#: numbers that name something; a separator of thousands would spoil them
NAMES = frozenset(
    {"partition", "start", "end", "first_offset", "last_offset", "schema_id", "operator", "version", "batch"}
)


def read_tables(read: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    """What a scan read, as tables."""
    tables = (
        _table(
            "Positions",
            read.get("partitions", ()),
            (("Partition", "partition"), ("From offset", "start"), ("To offset", "end"), ("Messages", "messages")),
        ),
        _table(
            "Schema ids seen",
            read.get("ids", ()),
            (("Side", "side"), ("Schema id", "schema_id"), ("Messages", "messages")),
            note=f"{read['tombstones']:,} tombstones, which are normal." if read.get("tombstones") else "",
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
            (("Operator", "operator"), ("Variable", "variable"), ("Reason", "reason")),
        ),
    )
    return tuple(table for table in tables if table.rows)


def _table(title: str, rows: Any, columns: tuple[tuple[str, str], ...], *, note: str = "") -> EvidenceTable:
    """Rows of JSON objects as a table; a column is a number where all its values are."""
    kinds = ["number" if rows and all(isinstance(row.get(key), int) for row in rows) else "text" for _, key in columns]
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
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


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
    for key, number in evidence.get("looks_like", {}).items():
        facts.append(Fact(label=f"Looks like {key.replace('_', ' ')}", value=_cell(number)))
    return tuple(facts)


def _fact(value: Any) -> str:
    return ", ".join(_cell(item) for item in value) if isinstance(value, list) else _cell(value)


def evidence_tables(evidence: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    """The places that a finding's evidence names: partitions with offsets, or the spot in a state store."""
    partitions = [
        {**row, "first": _moment(row["first_time"]), "last": _moment(row["last_time"])}
        for row in evidence.get("partitions", ())
    ]
    tables = (
        _table(
            "Where in the topic",
            partitions,
            (
                ("Partition", "partition"),
                ("First offset", "first_offset"),
                ("Last offset", "last_offset"),
                ("Messages", "messages"),
                ("First time", "first"),
                ("Last time", "last"),
            ),
        ),
        _table(
            "What changed", evidence.get("changes", ()), (("Field", "field"), ("Before", "before"), ("After", "after"))
        ),
    )
    return tuple(table for table in tables if table.rows)


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
