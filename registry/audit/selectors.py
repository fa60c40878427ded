"""Reading the audit: events for pages, and a streamed export as JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from time import monotonic
from typing import Any, Final

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from registry.audit.models import AuditEvent
from registry.errors import InvalidInput
from registry.frozen_rows import row_info

CHUNK = 2_000
#: events that one statement reads if it has to check a condition on each of them
LOOKED_AT: Final = 50_000
#: seconds below which the next statement of an export reads twice as many events, and above which half as many
_QUICK, _SLOW = 0.1, 0.5
_TABLES: Final = """
WITH RECURSIVE found(name) AS (
    SELECT min("table") FROM audit_auditevent
    UNION ALL
    SELECT (SELECT min("table") FROM audit_auditevent WHERE "table" > found.name) FROM found WHERE name IS NOT NULL
) SELECT name FROM found WHERE name IS NOT NULL ORDER BY name"""


@dataclass(frozen=True)
class AuditFilter:
    """A filter of events: empty means all. `since` is inclusive.

    `text` is searched for in actor, table, reason and origin. `about` is a condition from another app.
    """

    text: str = ""
    actor: str = ""
    channel: str = ""
    table: str = ""
    row_id: str = ""
    since: datetime | None = None
    until: datetime | None = None
    about: Q | None = None


@dataclass(frozen=True)
class AuditEntry:
    """One change of one row; for an update, `before` and `after` contain only the columns that differ."""

    id: int
    transaction_id: int
    at: datetime
    actor: str
    channel: str
    origin: str
    why: str
    operation: str
    table: str
    row_id: str
    before: dict[str, Any]
    after: dict[str, Any]
    position: int | None
    seal: str


def list_events(
    *, chosen: AuditFilter | None = None, before_id: int | None = None, limit: int = 50, after_id: int = 0
) -> list[AuditEntry]:
    """List events, newest first, `limit` at most, older than `before_id` and newer than `after_id`."""
    rows = _rows(chosen or AuditFilter()).order_by("-id")
    if before_id is not None:
        rows = rows.filter(id__lt=before_id)
    if after_id:
        rows = rows.filter(id__gt=after_id)
    return [_entry(row) for row in rows[:limit]]


def newest_event(*, until: datetime | None = None) -> int:
    """Return the id of the newest event, or of the newest before a time; 0 if there is none. One query."""
    rows = (
        AuditEvent.objects.order_by("-id") if until is None else AuditEvent.objects.filter(at__lt=until).order_by("-at")
    )
    return rows.values_list("id", flat=True).first() or 0


def stream_events(chosen: AuditFilter) -> Iterator[dict[str, Any]]:
    """Yield all matching events, oldest first, as JSON-ready rows, read a few thousand at a time.

    Each statement reads only a part of the log, however few events match, so that none runs for long.
    """
    rows, numbers = _rows(chosen).order_by("id"), AuditEvent.objects.order_by("id").values_list("id", flat=True)
    after, last, step = (numbers.first() or 0) - 1, numbers.last() or 0, LOOKED_AT
    while after < last:
        end, began = min(after + step, last), monotonic()
        chunk = list(rows.filter(id__gt=after, id__lte=end)[:CHUNK])
        took = monotonic() - began
        for row in chunk:
            values = asdict(_entry(row)) | {"at": row.at.isoformat()}
            yield {"door" if name == "channel" else name: value for name, value in values.items()}  # its name in files
        after = chunk[-1].pk if len(chunk) == CHUNK else end
        step = step * 2 if took < _QUICK else max(step // 2, CHUNK) if took > _SLOW else step


def events_of_rows(rows: Mapping[str, Collection[int]], *, limit: int) -> list[AuditEntry]:
    """Return the events of these rows (table → ids), oldest first, `limit` at most; one query."""
    condition = Q(pk__in=())
    for table, numbers in rows.items():
        condition |= Q(table=table, row_id__in=[str(number) for number in numbers])
    return [_entry(row) for row in AuditEvent.objects.filter(condition).order_by("id")[:limit]]


def columns_of_rows(events: Collection[int], columns: Collection[str]) -> dict[int, dict[str, str | None]]:
    """Map each event to these columns of its row after the event, or before a deletion, as texts; one query.

    A column that the table doesn't have is None. The rest of the row, such as a schema's text, isn't read.
    """
    annotations = {f"column_{name}": KeyTextTransform(name, Coalesce("after", "before")) for name in columns}
    rows = AuditEvent.objects.filter(pk__in=events).annotate(**annotations).values_list("pk", *annotations)
    return {pk: dict(zip(columns, values, strict=True)) for pk, *values in rows}


def tables_of_audit() -> list[str]:
    """Return the tables that have events, sorted, by a loose scan of the index on table and row."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        return [str(table) for (table,) in cursor.fetchall()]


def _rows(chosen: AuditFilter) -> QuerySet[AuditEvent]:
    exact = {"actor": chosen.actor, "channel": chosen.channel, "table": chosen.table, "row_id": chosen.row_id}
    times = {"at__gte": chosen.since, "at__lt": chosen.until}
    rows = AuditEvent.objects.filter(**{name: value for name, value in (exact | times).items() if value})
    if chosen.text:
        parts = [Q(**{f"{name}__icontains": chosen.text}) for name in ("actor", "table", "why", "origin")]
        rows = rows.filter(parts[0] | parts[1] | parts[2] | parts[3])
    return rows if chosen.about is None else rows.filter(chosen.about)


def _entry(row: AuditEvent) -> AuditEntry:
    before, after = row.before or {}, row.after or {}
    if row.operation == "UPDATE":
        changed = [key for key in after if before.get(key) != after[key]]
        before, after = ({key: side.get(key) for key in changed} for side in (before, after))
    return row_info(AuditEntry, row, before=before, after=after)  # fmt: skip


COLUMNS: Final = (
    "id", "at", "actor", "door", "origin", "why", "operation", "table", "row_id", "before", "after",
    "transaction_id", "position", "seal",
)  # fmt: skip
# A spreadsheet interprets a cell that begins with one of these as a formula.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\0")


@dataclass(frozen=True)
class Export:
    """An export file: its name, media type and streamed text."""

    name: str
    media: str
    text: Iterator[str]


def export_events(chosen: AuditFilter, form: str) -> Export:
    """Export all matching events as a file, oldest first. Raises InvalidInput for an unknown format."""
    if form not in FORMS:
        raise InvalidInput(f"The audit log can be exported as {' or '.join(FORMS)}, not as {form[:20]!r}.")
    media, write = FORMS[form]
    return Export(f"audit.{form}", media, write(stream_events(chosen)))


def _json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield _csv_line(COLUMNS)
    for row in rows:
        yield _csv_line([csv_cell(row[name]) for name in COLUMNS])


def _csv_line(cells: Any) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def csv_cell(value: Any) -> str:
    """Return the text of a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(FORMULA) else text


FORMS: Final[Mapping[str, tuple[str, Callable[[Iterator[dict[str, Any]]], Iterator[str]]]]] = {
    "jsonl": ("application/x-ndjson; charset=utf-8", _json_lines),
    "csv": ("text/csv; charset=utf-8", _csv),
}
