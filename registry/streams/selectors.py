"""Checks of planned state, for pages and programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.errors import StateCheckNotFound
from registry.streams.models import StateCheck


@dataclass(frozen=True)
class StateCheckInfo:
    """A check: `report` is docs/reference/state-check.schema.json, `text` and `markdown` say the same."""

    id: int
    created_at: datetime
    created_by: str
    checkpoint: str
    query_id: str
    verdict: str
    plan: str
    report: dict[str, Any]
    text: str
    markdown: str


def get_state_check(check_id: int) -> StateCheckInfo:
    """One check. Raises StateCheckNotFound."""
    row = StateCheck.objects.filter(pk=check_id).first() if check_id < 2**63 else None
    if row is None:
        raise StateCheckNotFound(f"There is no state check {check_id}.", check=check_id)
    return _info(row)


def list_state_checks(*, limit: int = 20) -> list[StateCheckInfo]:
    """The newest checks first."""
    return [_info(row) for row in StateCheck.objects.order_by("-id")[:limit]]


def _info(row: StateCheck) -> StateCheckInfo:
    report = dict(row.report)
    texts = report.pop("texts", {})
    return StateCheckInfo(
        id=row.pk,
        created_at=row.created_at,
        created_by=row.created_by,
        checkpoint=row.checkpoint,
        query_id=row.query_id,
        verdict=row.verdict,
        plan=row.plan,
        report=report,
        text=texts.get("text", ""),
        markdown=texts.get("markdown", ""),
    )
