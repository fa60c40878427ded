"""Deliveries to webhooks that wait or failed, over all webhooks that somebody may see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery

from registry.access.roles import Actor
from registry.notifications.models import FAILED, QUEUED, SENDING, Attempt, Delivery
from registry.notifications.selectors import may_see_all


@dataclass(frozen=True)
class DeliveryUnderWay:
    """A delivery, its webhook, and what its last attempt met; `next_attempt_at` of a queued one alone."""

    id: int
    webhook: str
    webhook_name: str
    event: str
    state: str
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None
    error: str


def deliveries_under_way(actor: Actor, *, limit: int) -> list[DeliveryUnderWay]:
    """Those that wait or are sent, then those that failed, the newest first; nobody's for who isn't signed in. Two queries."""
    if actor.user_id is None:
        return []
    rows = Delivery.objects.select_related("webhook", "notice").order_by("-id")
    if not may_see_all(actor):
        rows = rows.filter(webhook__owner_id=actor.user_id)
    tries = Attempt.objects.filter(delivery=OuterRef("pk")).order_by("-id")
    rows = rows.annotate(last_error=Subquery(tries.values("error")[:1]))
    waiting = rows.filter(state__in=(QUEUED, SENDING))[:limit]
    failed = rows.filter(state=FAILED)[:limit]
    return [_info(row) for row in (*waiting, *failed)]


def _info(row: Delivery) -> DeliveryUnderWay:
    return DeliveryUnderWay(
        id=row.pk,
        webhook=row.webhook.public_id,
        webhook_name=row.webhook.name,
        event=row.notice.event,
        state=row.state,
        attempts=row.attempts,
        created_at=row.created_at,
        next_attempt_at=row.next_attempt_at if row.state == QUEUED else None,
        error=getattr(row, "last_error", None) or "",
    )
