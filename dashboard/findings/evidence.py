"""The evidence of a finding as facts and tables, according to its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, get_args, get_origin, is_typeddict

from django.utils.translation import gettext

from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Fact
from dashboard.findings.evidence_tables import NAMES, SHOWN_ROWS, EvidenceTable, cell, day_chart, rows_table
from registry.drift.evidence import UNREADABLE, fields_of_rule, value_types

#: labels of values and of lists of values, in display order
LABELS: Final = {
    "registry": _("Registry"),
    "topic": _("Topic"),
    "topic_id_before": _("Topic id before"),
    "topic_id": _("Topic id now"),
    "last_read_at": _("Last read before"),
    "noticed_at": _("Noticed"),
    "expired_left_out": _("Further ranges, not listed"),
    "unread_before": _("Unread by the last scan"),
    "side": _("Side"),
    "framing": _("Named by"),
    "mark": _("Schema mark"),
    "guid": _("GUID"),
    "schema_id": _("Schema id"),
    "schema_ids": _("Schema ids"),
    "expected": _("Expected subject"),
    "owners": _("Id belongs to"),
    "same_number_elsewhere": _("Same id elsewhere"),
    "contexts": _("Exists in contexts"),
    "subject": _("Subject"),
    "subjects": _("Subjects read by the query"),
    "version": _("Version"),
    "newer": _("Newer version"),
    "newer_in_use_since": _("Newer version in use since"),
    "latest_in_use": _("Newest version in use"),
    "minimum_version": _("Minimum version"),
    "limit": _("What is limited"),
    "most": _("Limit"),
    "left_out": _("Left out"),
    "not_listed": _("More, not listed"),
    "contract_rule": _("Data contract rule"),
    "rule_type": _("Type of the rule"),
    "expression": _("Expression"),
    "rule_mode": _("Mode of the rule"),
    "on_failure": _("Action of readers"),
    "evaluated_messages": _("Messages evaluated"),
    "paths": _("Fields, with messages"),
    "rule": _("Rule of the findings that aren’t listed"),
    "days_of_grace": _("Grace days"),
    "status": _("Version status"),
    "since": _("Since"),
    "until": _("Until"),
    "live_versions": _("Live versions"),
    "was_there": _("Topic existed before"),
    "messages": _("Messages in the last scan"),
    "seen_before": _("Messages read by earlier scans"),
    "of_messages": _("Messages with this id"),
    "of_messages_read": _("Messages read by the last scan"),
    "parsed": _("Other messages valid as JSON"),
    "undecodable_messages": _("Not decodable"),
    "groups": _("Distinct ids"),
    "marks": _("Schemas"),
    "compacted": _("Compacted"),
    "types_before": _("Earlier message types"),
    "operator": _("Operator"),
    "variable": _("State variable"),
    "path": _("Path"),
    "problem": _("Problem"),
    "kind": _("Kind"),
    "encoding": _("Encoding"),
    "batch": _("Batch"),
    "began": _("Changed"),
    "versions": _("Versions"),
    "field": _("Field"),
    "other_field": _("Swapped with"),
    "usual": _("Usual values"),
    "usual_other": _("Usual values of the other field"),
    "compared_messages": _("Messages compared"),
    "swapped_messages": _("Of these, swapped"),
    "schemas": _("Schemas that these messages name"),
    "fits": _("Versions that fit the bytes"),
    "added": _("New field"),
    "type": _("Type"),
    "rows_before": _("Rows before"),
    "filled_before": _("Filled rows before"),
    "batch_before": _("Rows before as of batch"),
    "rows_now": _("Rows now"),
    "null_now": _("Rows now null in the new field"),
    "batch_now": _("Rows now as of batch"),
    "rows_unread_since": _("Rows not readable since"),
    "used": _("Used"),
    "allowed": _("Of"),
    "reason": _("Reason"),
    "reasons": _("Reasons"),
    "other_reasons": _("For other or unknown reasons"),
    "other_reasons_before": _("In earlier scans for other or unknown reasons"),
    "decoded": _("Messages decoded"),
    "present": _("Messages with the field"),
    "nulls": _("Messages with null"),
    "missing": _("Messages without the field"),
    "names": _("Names"),
    "field_number": _("Field number"),
    "encodings": _("Encodings"),
    "declared": _("Declared types"),
    "different_values": _("Distinct values"),
    "lengths": _("Value lengths (the ten shortest at most)"),
    "value": _("Value"),
    "share": _("Share now"),
    "share_before": _("Share before"),
    "change": _("What changed"),
    "confidence": _("Confidence, at least (0 to 1)"),
    "days": _("Days compared"),
    "periods": _("Weeks or days compared"),
    "z": _("Standard deviations from earlier data"),
    "registered_at": _("Registered at"),
    "registered_by": _("Registered by"),
    "door": _("Registered through"),
    "other": _("Other registry"),
    "fingerprint": _("Fingerprint"),
    "scope": _("Scope"),
    "setting": _("Setting"),
    "before": _("Before"),
    "after": _("After"),
    "now": _("Now"),
    "at": _("Changed at"),
    "by": _("By"),
    "level": _("Compatibility level"),
    "mode": _("Mode"),
    "accounts": _("Accounts"),
    "number": _("Total accounts"),
    "first_message_after_ms": _("First message after (ms)"),
    "connector": _("Connector"),
    "task": _("Task"),
    "state": _("State"),
    "trace": _("Error"),
    "not_understood": _("Unknown settings"),
    "slot": _("Slot"),
    "active": _("Active"),
    "wal_status": _("WAL status"),
    "lag_bytes": _("Lag in bytes"),
    "safe_bytes": _("Bytes left before the slot is lost"),
    "plugin": _("Plugin"),
    "publication": _("Publication"),
    "publications": _("Publications"),
    "operations": _("Unpublished operations"),
    "database": _("Database"),
    "table": _("Table"),
    "tables": _("Tables"),
    "column": _("Column"),
    "becomes": _("Becomes"),
    "behind": _("Behind the table"),
    "dimensions": _("Dimensions"),
    "identity": _("Replica identity"),
    "meaning": _("Meaning"),
    "key": _("Key"),
    "index": _("Index"),
    "index_columns": _("Index columns"),
    "refused": _("Rejected operations"),
    "why": _("Why"),
    "what": _("Not readable"),
    "schema": _("Schema"),
    "deletes": _("Deletes"),
    "topic_partitions": _("Topic partitions"),
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
        "contract_rule",
        "expression",
    }
)
#: list of objects → title
TITLES: Final = {
    "partitions": _("Where and when seen in the last scan"),
    "events": _("Where and when seen"),
    "samples": _("Samples, masked"),
    "example": _("Example"),
    "offsets": _("First messages of the last scan"),
    "expired": _("Offsets deleted unread"),
    "by_day": _("Before and now"),
    "changes": _("What changed"),
    "fields": _("What differs"),
    "marks": _("Key schemas"),
    "registered": _("Registrations"),
    "versions": _("Versions"),
    "says": _("Comparison"),
}
#: type of a list's items → its columns
COLUMNS: Final = {
    value_types.PartitionRow: (
        (_("Partition"), "partition"),
        (_("First offset"), "first_offset"),
        (_("Last offset"), "last_offset"),
        (_("Messages"), "messages"),
        (_("First time"), "first_time"),
        (_("Last time"), "last_time"),
    ),
    value_types.SampleRow: ((_("Partition"), "partition"), (_("Offset"), "offset"), (_("Message"), "value")),
    value_types.MessageRow: ((_("Partition"), "partition"), (_("Offset"), "offset")),
    value_types.FailureRow: ((_("Partition"), "partition"), (_("Offset"), "offset"), (_("Reason"), "reason")),
    value_types.ExpiredRow: ((_("Partition"), "partition"), (_("From offset"), "start"), (_("To offset"), "end")),
    value_types.FieldChangeRow: ((_("Field"), "field"), (_("Before"), "before"), (_("After"), "after")),
    value_types.FieldDepartureRow: ((_("Field"), "field"), (_("Declared"), "before"), (_("In the state"), "after")),
    value_types.DayRow: (
        (_("When"), "when"),
        (_("Messages"), "messages"),
        (_("Different values"), "distinct"),
        (_("Least"), "minimum"),
        (_("Greatest"), "maximum"),
    ),
    value_types.MarkRow: ((_("Schema"), "mark"), (_("First time"), "first_time")),
    value_types.RegistrationRow: ((_("Version"), "version"), (_("By"), "by"), (_("At"), "at")),
    value_types.VersionEntry: (
        (_("Subject"), "subject"),
        (_("Version"), "version"),
        (_("Schema id"), "schema_id"),
        (_("By"), "registered_by"),
        (_("Through"), "door"),
        (_("At"), "registered_at"),
    ),
}
#: key of `says` → label
SIDES: Final = {"table": _("the table"), "registered": _("the registry"), "events": _("the events")}


def row_of(kind: Any) -> Any:
    """Return the type of a list's items; None if they aren't objects."""
    inner = get_args(kind)[0] if get_origin(kind) is list else None
    return inner if is_typeddict(inner) else None


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
        replace(
            _listed(key, str(title), row_of(kinds[key]), evidence[key], is_of_more=_is_of_more(kinds, evidence)),
            chart=day_chart(rule, evidence[key]) if key == "by_day" else None,
        )
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

    For a field or a data contract's rule they include all messages with its schema.
    """
    of_partitions = sum(row["messages"] for row in evidence.get("partitions", ()))
    return ("field" in kinds or "contract_rule" in kinds) and of_partitions > evidence.get("messages", of_partitions)


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
    if key == "by_day" and any("minimum" in row for row in values):
        notes.append(gettext("Of values only orders of magnitude, lengths and years are stored."))
    if is_of_more and key in ("partitions", "samples"):
        notes.append(
            gettext("Covers all messages written with the same schema, also those that the finding isn’t about.")
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
