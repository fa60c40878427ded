"""The evidence of a finding as facts and tables, according to its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, get_args, get_origin, is_typeddict

from django.utils.translation import gettext

from dashboard.components.translation import later
from dashboard.components.widgets import Fact
from dashboard.findings.evidence_tables import NAMES, SHOWN_ROWS, EvidenceTable, cell, rows_table
from registry.drift.evidence import UNREADABLE, fields_of_rule, value_types

#: labels of values and of lists of values, in display order
LABELS: Final = {
    "registry": later("Registry"),
    "topic": later("Topic"),
    "topic_id_before": later("Topic id before"),
    "topic_id": later("Topic id now"),
    "last_read_at": later("Last read before"),
    "noticed_at": later("Noticed"),
    "expired_left_out": later("Further ranges, not listed"),
    "unread_before": later("Unread by the last scan"),
    "side": later("Side"),
    "framing": later("Named by"),
    "mark": later("Schema mark"),
    "guid": later("GUID"),
    "schema_id": later("Schema id"),
    "schema_ids": later("Schema ids"),
    "expected": later("Expected subject"),
    "owners": later("Id belongs to"),
    "same_number_elsewhere": later("Same id elsewhere"),
    "contexts": later("Exists in contexts"),
    "subject": later("Subject"),
    "subjects": later("Subjects read by the query"),
    "version": later("Version"),
    "newer": later("Newer version"),
    "newer_in_use_since": later("Newer version in use since"),
    "latest_in_use": later("Newest version in use"),
    "least": later("Minimum version"),
    "limit": later("What is limited"),
    "most": later("Limit"),
    "left_out": later("Left out"),
    "not_listed": later("More, not listed"),
    "rule": later("Rule of the findings that aren’t listed"),
    "days_of_grace": later("Grace days"),
    "standing": later("Version status"),
    "since": later("Since"),
    "until": later("Until"),
    "live_versions": later("Live versions"),
    "was_there": later("Topic existed before"),
    "messages": later("Messages in the last scan"),
    "seen_before": later("Messages read by earlier scans"),
    "of_messages": later("Messages with this id"),
    "of_messages_read": later("Messages read by the last scan"),
    "parsed": later("Other messages valid as JSON"),
    "undecodable_messages": later("Not decodable"),
    "groups": later("Distinct ids"),
    "marks": later("Schemas"),
    "compacted": later("Compacted"),
    "types_before": later("Earlier message types"),
    "operator": later("Operator"),
    "variable": later("State variable"),
    "path": later("Path"),
    "problem": later("Problem"),
    "kind": later("Kind"),
    "encoding": later("Encoding"),
    "batch": later("Batch"),
    "began": later("Changed"),
    "versions": later("Versions"),
    "field": later("Field"),
    "added": later("New field"),
    "type": later("Type"),
    "rows_before": later("Rows before"),
    "filled_before": later("Filled rows before"),
    "batch_before": later("Rows before as of batch"),
    "rows_now": later("Rows now"),
    "null_now": later("Rows now null in the new field"),
    "batch_now": later("Rows now as of batch"),
    "rows_unread_since": later("Rows not readable since"),
    "used": later("Used"),
    "allowed": later("Of"),
    "reason": later("Reason"),
    "reasons": later("Reasons"),
    "other_reasons": later("For other or unknown reasons"),
    "other_reasons_before": later("In earlier scans for other or unknown reasons"),
    "decoded": later("Messages decoded"),
    "present": later("Messages with the field"),
    "nulls": later("Messages with null"),
    "missing": later("Messages without the field"),
    "names": later("Names"),
    "field_number": later("Field number"),
    "encodings": later("Encodings"),
    "declared": later("Declared types"),
    "different_values": later("Distinct values"),
    "lengths": later("Value lengths (the ten shortest at most)"),
    "value": later("Value"),
    "share": later("Share now"),
    "share_before": later("Share before"),
    "days": later("Days compared"),
    "z": later("Standard deviations from earlier data"),
    "registered_at": later("Registered at"),
    "registered_by": later("Registered by"),
    "door": later("Registered through"),
    "other": later("Other registry"),
    "fingerprint": later("Fingerprint"),
    "scope": later("Scope"),
    "setting": later("Setting"),
    "before": later("Before"),
    "after": later("After"),
    "now": later("Now"),
    "at": later("Changed at"),
    "by": later("By"),
    "level": later("Compatibility level"),
    "mode": later("Mode"),
    "accounts": later("Accounts"),
    "number": later("Total accounts"),
    "first_message_after_ms": later("First message after (ms)"),
    "connector": later("Connector"),
    "task": later("Task"),
    "state": later("State"),
    "trace": later("Error"),
    "not_understood": later("Unknown settings"),
    "slot": later("Slot"),
    "active": later("Active"),
    "wal_status": later("WAL status"),
    "lag_bytes": later("Lag in bytes"),
    "safe_bytes": later("Bytes left before the slot is lost"),
    "plugin": later("Plugin"),
    "publication": later("Publication"),
    "publications": later("Publications"),
    "operations": later("Unpublished operations"),
    "database": later("Database"),
    "table": later("Table"),
    "tables": later("Tables"),
    "column": later("Column"),
    "becomes": later("Becomes"),
    "behind": later("Behind the table"),
    "dimensions": later("Dimensions"),
    "identity": later("Replica identity"),
    "meaning": later("Meaning"),
    "key": later("Key"),
    "index": later("Index"),
    "index_columns": later("Index columns"),
    "refused": later("Rejected operations"),
    "why": later("Why"),
    "what": later("Not readable"),
    "schema": later("Schema"),
    "deletes": later("Deletes"),
    "topic_partitions": later("Topic partitions"),
}
#: names and texts from data, shown verbatim
CODE: Final = frozenset(
    {
        "topic",
        "variable",
        "field",
        "added",
        "type",
        "table",
        "column",
        "connector",
        "setting",
        "path",
        "subject",
        "schema",
    }
)
#: values shown elsewhere on the page: a variable's comparison, notes of bars, times of partitions
ELSEWHERE: Final = frozenset(
    {"old_schema", "new_schema", "ids_by_hour_spread", "ids_by_hour_earlier", "first_time", "last_time"}
)
#: list of objects → title
TITLES: Final = {
    "partitions": later("Where and when seen in the last scan"),
    "events": later("Where and when seen"),
    "samples": later("Samples, masked"),
    "example": later("Example"),
    "offsets": later("First messages of the last scan"),
    "expired": later("Offsets deleted unread"),
    "changes": later("What changed"),
    "fields": later("What differs"),
    "marks": later("Key schemas"),
    "registered": later("Registrations"),
    "versions": later("Versions"),
    "says": later("Comparison"),
}
#: type of a list's items → its columns
COLUMNS: Final = {
    value_types.PartitionRow: (
        (later("Partition"), "partition"),
        (later("First offset"), "first_offset"),
        (later("Last offset"), "last_offset"),
        (later("Messages"), "messages"),
        (later("First time"), "first_time"),
        (later("Last time"), "last_time"),
    ),
    value_types.SampleRow: (
        (later("Partition"), "partition"),
        (later("Offset"), "offset"),
        (later("Message"), "value"),
    ),
    value_types.MessageRow: ((later("Partition"), "partition"), (later("Offset"), "offset")),
    value_types.FailureRow: (
        (later("Partition"), "partition"),
        (later("Offset"), "offset"),
        (later("Reason"), "reason"),
    ),
    value_types.ExpiredRow: (
        (later("Partition"), "partition"),
        (later("From offset"), "start"),
        (later("To offset"), "end"),
    ),
    value_types.FieldChangeRow: ((later("Field"), "field"), (later("Before"), "before"), (later("After"), "after")),
    value_types.FieldDepartureRow: (
        (later("Field"), "field"),
        (later("Declared"), "before"),
        (later("In the state"), "after"),
    ),
    value_types.MarkRow: ((later("Schema"), "mark"), (later("First time"), "first_time")),
    value_types.RegistrationRow: ((later("Version"), "version"), (later("By"), "by"), (later("At"), "at")),
    value_types.VersionEntry: (
        (later("Subject"), "subject"),
        (later("Version"), "version"),
        (later("Schema id"), "schema_id"),
        (later("By"), "registered_by"),
        (later("Through"), "door"),
        (later("At"), "registered_at"),
    ),
}
#: key of `says` → label
SIDES: Final = {"table": later("the table"), "registered": later("the registry"), "events": later("the events")}


def row_of(kind: Any) -> Any:
    """Return the type of a list's items; None if they aren't objects."""
    inner = get_args(kind)[0] if get_origin(kind) is list else None
    return inner if is_typeddict(inner) else None


def is_counted(kind: Any) -> bool:
    """Return whether the type is counts by name, shown as bars."""
    return get_origin(kind) is dict and get_args(kind)[1] is int


def evidence_facts(rule: str, evidence: Mapping[str, Any]) -> tuple[Fact, ...]:
    """Return the single values of a finding's evidence, with their labels."""
    kinds = fields_of_rule(rule) or dict.fromkeys(evidence)
    facts = [
        Fact(label=label, value=_text(key, evidence[key], kinds[key]), code=key in CODE)
        for key, label in LABELS.items()
        if key in kinds and row_of(kinds[key]) is None and evidence.get(key) not in (None, "", [])
    ]
    if evidence.get(UNREADABLE):
        value = gettext("%(names)s: stored in the format of an earlier release") % {
            "names": cell_list(evidence[UNREADABLE])
        }
        facts.append(Fact(label=gettext("Omitted"), value=value))
    return tuple(facts)


def _text(key: str, value: Any, kind: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value_types.Milliseconds in (kind, *get_args(kind)):
        return _moment(value) or ""
    if isinstance(value, list):
        return ", ".join(map(str, value)) if key == "versions" else cell_list(value)
    return str(value) if key in NAMES else cell(value)


def cell_list(values: Sequence[Any]) -> str:
    """Format several values for one cell."""
    return ", ".join(map(cell, values))


def evidence_tables(rule: str, evidence: Mapping[str, Any]) -> tuple[EvidenceTable, ...]:
    """Return the lists in a finding's evidence: partitions with offsets, changes of a state variable, versions."""
    kinds = fields_of_rule(rule)
    tables = [
        _listed(key, str(title), row_of(kinds[key]), evidence[key], is_of_more=_is_of_more(kinds, evidence))
        for key, title in TITLES.items()
        if evidence.get(key) and row_of(kinds.get(key)) is not None
    ]
    if evidence.get("says"):
        says = [{"who": str(SIDES.get(who, who)), "what": _statement(what)} for who, what in evidence["says"].items()]
        columns = ((gettext("Who"), "who"), (gettext("Type"), "what"))
        tables.append(rows_table(str(TITLES["says"]), says, columns))
    return tuple(table for table in tables if table.rows)


def _statement(what: str | list[str]) -> str:
    return what if isinstance(what, str) else ", ".join(what) or gettext("none")


def _is_of_more(kinds: Mapping[str, Any], evidence: Mapping[str, Any]) -> bool:
    """Return whether positions and samples include messages that the finding isn't about.

    For a field they include all messages with its schema.
    """
    of_partitions = sum(row["messages"] for row in evidence.get("partitions", ()))
    return "field" in kinds and of_partitions > evidence.get("messages", of_partitions)


def _listed(
    key: str, title: str, kind: Any, values: Sequence[Mapping[str, Any]], *, is_of_more: bool = False
) -> EvidenceTable:
    times = {name for name, annotation in kind.__annotations__.items() if "Milliseconds" in str(annotation)}
    drawn = [
        {
            name: _moment(value) if name in times else cell_list(value) if isinstance(value, list) else value
            for name, value in row.items()
        }
        for row in values
    ]
    if kind is value_types.FailureRow:
        drawn = [{"reason": gettext("not known"), **row} for row in drawn]
    notes = []
    if key == "samples":
        notes.append(
            gettext("Only the form of each value: a text’s length and character classes, a number’s magnitude.")
        )
    if is_of_more and key in ("partitions", "samples"):
        notes.append(
            gettext(
                "Covers all messages written with the same schema. Which of them the finding is about isn’t recorded."
            )
        )
    table = rows_table(title, drawn, tuple((str(label), name) for label, name in COLUMNS[kind]), note=" ".join(notes))
    if kind is value_types.PartitionRow:
        return replace(table, spans=_spans(values[:SHOWN_ROWS]), spans_label=gettext("When"))
    return table


def _spans(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, int], ...]:
    """Return each row's part of the total time: left edge and width in percent, at least 1 wide.

    Empty if a time is unknown, because that row would look like one without duration.
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
    """Format a time in UTC; "… ms" if outside the calendar's range, None if unknown."""
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"
