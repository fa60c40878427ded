"""The audit as a file: JSON lines, or a table for a spreadsheet; written while it is read, whatever its length."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.audit.selectors import AuditFilter, stream_events
from registry.errors import InvalidInput

COLUMNS: Final = (
    "id", "at", "actor", "door", "origin", "why", "operation", "table", "row_id", "before", "after",
    "transaction_id", "position", "seal",
)  # fmt: skip
# A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Export:
    """A file: what it is called, of which media type, and its text piece by piece."""

    name: str
    media: str
    text: Iterator[str]


def export_events(chosen: AuditFilter, form: str) -> Export:
    """All events that the filter names, oldest first. Raises InvalidInput for a form that there isn't."""
    if form not in FORMS:
        raise InvalidInput(f"The audit comes as {' or '.join(FORMS)}, not as {form[:20]!r}.")
    media, write = FORMS[form]
    return Export(f"audit.{form}", media, write(stream_events(chosen)))


def _json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield _csv_line(COLUMNS)
    for row in rows:
        yield _csv_line([_cell(row[name]) for name in COLUMNS])


def _csv_line(cells: Any) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(FORMULA) else text


FORMS: Final[Mapping[str, tuple[str, Callable[[Iterator[dict[str, Any]]], Iterator[str]]]]] = {
    "jsonl": ("application/x-ndjson; charset=utf-8", _json_lines),
    "csv": ("text/csv; charset=utf-8", _csv),
}
