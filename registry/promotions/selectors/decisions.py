"""What was decided last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from registry.access.roles import Actor, may
from registry.promotions.models import PromotionRequest
from registry.subjects.names import SubjectName

LOOKED_AT: Final = 20


@dataclass(frozen=True)
class DecisionInfo:
    """A request that is closed: how it ended and when."""

    request: int
    subject: SubjectName
    target: str
    state: str
    at: datetime


def last_decision(by: Actor) -> DecisionInfo | None:
    """The request that was closed last, of the newest twenty that `by` may read; one query."""
    rows = (
        PromotionRequest.objects.filter(closed_at__isnull=False)
        .select_related("target__registry")
        .defer("plan")
        .order_by("-closed_at", "-pk")
    )
    for row in rows[:LOOKED_AT]:
        subject, target = SubjectName(row.context_name, row.subject_name), row.target.registry.name
        if row.closed_at and may(by, "schema.read", registry=target, subject=subject.qualified):
            return DecisionInfo(row.pk, subject, target, row.state, row.closed_at)
    return None
