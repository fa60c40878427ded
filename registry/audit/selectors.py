"""Reading the audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.audit.models import AuditEvent


@dataclass(frozen=True)
class AuditEntry:
    """One change of one row; `before` and `after` hold only the columns that differ in an update."""

    id: int
    transaction_id: int
    at: datetime
    actor: str
    door: str
    why: str
    operation: str
    table: str
    row_id: str
    before: dict[str, Any]
    after: dict[str, Any]


def list_events(*, text: str = "", before_id: int | None = None, limit: int = 50) -> list[AuditEntry]:
    """The newest events first, `limit` at most, older than `before_id`, whose actor, table or reason holds `text`."""
    rows = AuditEvent.objects.order_by("-id")
    if before_id is not None:
        rows = rows.filter(id__lt=before_id)
    if text:
        rows = (
            rows.filter(actor__icontains=text) | rows.filter(table__icontains=text) | rows.filter(why__icontains=text)
        )
    return [_entry(row) for row in rows[:limit]]


def _entry(row: AuditEvent) -> AuditEntry:
    before, after = row.before or {}, row.after or {}
    if row.operation == "UPDATE":
        changed = [key for key in after if before.get(key) != after[key]]
        before, after = ({key: side.get(key) for key in changed} for side in (before, after))
    return AuditEntry(
        id=row.pk, transaction_id=row.transaction_id, at=row.at, actor=row.actor, door=row.door, why=row.why, operation=row.operation,
        table=row.table, row_id=row.row_id, before=before, after=after,
    )  # fmt: skip
