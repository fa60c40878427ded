"""Changes that loosen a closed environment, for pages and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.promotions.models import EnvironmentChange


@dataclass(frozen=True)
class EnvironmentChangeInfo:
    """A change with who asked for it, and who decided; `values` are the arguments of its `action`."""

    id: int
    environment: str
    action: str
    values: Mapping[str, Any]
    before: Mapping[str, Any]
    sentence: str
    reason: str
    state: str
    requested_by: str
    requested_by_id: int
    requested_at: datetime
    decided_by: str
    decided_at: datetime | None
    comment: str


def environment_changes(name: str, *, limit: int = 100) -> list[EnvironmentChangeInfo]:
    """The last changes of an environment: those that wait first, then the newest."""
    rows = EnvironmentChange.objects.filter(environment__registry__name=name).select_related(
        "environment__registry", "requested_by", "decided_by"
    )
    newest = sorted(rows.order_by("-pk")[:limit], key=lambda row: row.state != EnvironmentChange.OPEN)
    return [info_of(row) for row in newest]


def info_of(row: EnvironmentChange) -> EnvironmentChangeInfo:
    """One of them; what it names should be joined."""
    return EnvironmentChangeInfo(
        id=row.pk,
        environment=row.environment.registry.name,
        action=row.action,
        values=row.values,
        before=row.before,
        sentence=row.sentence,
        reason=row.reason,
        state=row.state,
        requested_by=row.requested_by.get_username(),
        requested_by_id=row.requested_by_id,
        requested_at=row.requested_at,
        decided_by=row.decided_by.get_username() if row.decided_by else "",
        decided_at=row.decided_at,
        comment=row.comment,
    )
