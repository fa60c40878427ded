"""Delivering to webhooks: at least once, each by one worker at a time, with patience and an end to it.

A worker claims a delivery by a conditional update, with a tag and a lease, sends it outside of any transaction, and
writes what came of it if the claim is still its own. A worker that dies after it sent leaves a message that is sent
again: receivers tell by `webhook-id`. The order of messages isn't promised.
"""

from __future__ import annotations

import logging
import secrets
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from registry.access.outgoing import Limits
from registry.access.roles import system_actor
from registry.audit.services import record
from registry.notifications.events import DISABLED
from registry.notifications.models import (
    DELIVERED,
    FAILED,
    QUEUED,
    SENDING,
    Attempt,
    Delivery,
    InboxEntry,
    Notice,
    Webhook,
)
from registry.notifications.sending import LIMITS, Claim, Outcome, send
from registry.notifications.services import notify

logger = logging.getLogger(__name__)
#: longer than any attempt: to resolve a name, four addresses to connect to, one exchange
LEASE: Final = timedelta(seconds=120)
#: seconds before the second attempt, the third, …; the last failed one ends it, after about two days
DELAYS: Final = (5, 30, 120, 600, 1800, 7200, 21600, 43200, 86400)
JITTER: Final = 0.2  # of a delay, added or taken off, so that a server that comes back isn't met by all at once
#: a message that was handed to a worker and not claimed is handed out again after this long
HANDED: Final = timedelta(seconds=60)
#: of one webhook that are handed out at a time, so that a slow server doesn't take all workers; one where it fails
AT_A_TIME, AT_A_TIME_FAILING = 10, 1
MAX_WEBHOOKS_A_SWEEP: Final = 200


def deliver(delivery_id: int, *, limits: Limits = LIMITS) -> str:
    """Try once to deliver; gives the delivery's state after it, or "" where it isn't this worker's to do."""
    claim = take(delivery_id)
    if claim is None:
        return ""
    outcome = send(claim, limits)
    logger.info("delivery %s, attempt %d: %s", delivery_id, claim.attempt, outcome.error or f"HTTP {outcome.status}")
    return finish(claim, outcome)


def take(delivery_id: int) -> Claim | None:
    """Claim a delivery that is due; None where another worker has it, or it waits, or its webhook is switched off."""
    row = Delivery.objects.select_related("webhook", "notice").filter(pk=delivery_id, webhook__active=True).first()
    if row is None:
        return None
    now, tag = timezone.now(), secrets.token_hex(16)
    # The conditions are on this table's own columns: only those does PostgreSQL test again after it waited for a lock.
    claimed = Delivery.objects.filter(pk=delivery_id, state=QUEUED, next_attempt_at__lte=now).update(
        state=SENDING, tag=tag, lease_until=now + LEASE, attempts=F("attempts") + 1
    )
    if not claimed:
        return None
    return Claim(row.pk, tag, row.attempts + 1, row.message_id, row.webhook, row.notice)


def finish(claim: Claim, outcome: Outcome) -> str:
    """Write what came of an attempt; gives the state, "" where the claim was lost meanwhile."""
    now = timezone.now()
    with transaction.atomic():
        row = Delivery.objects.select_for_update().filter(pk=claim.delivery_id, tag=claim.tag, state=SENDING).first()
        if row is None:
            return ""
        row.tag, row.lease_until, row.enqueued_at = "", None, None
        if outcome.taken:
            row.state, row.finished_at = DELIVERED, now
        elif row.attempts > len(DELAYS) or outcome.status == 410:
            row.state, row.finished_at = FAILED, now
        else:
            row.state, row.next_attempt_at = QUEUED, now + delay_before(row.attempts + 1)
        row.save()
        Attempt.objects.create(
            delivery=row,
            status=outcome.status,
            error=outcome.error,
            excerpt=outcome.excerpt,
            seconds=outcome.seconds,
        )
        _note_health(row.webhook_id, outcome, now)
    return row.state


def delay_before(attempt: int) -> timedelta:
    """How long to wait before the attempt of that number (from 2), with jitter."""
    seconds = DELAYS[min(attempt - 2, len(DELAYS) - 1)]
    return timedelta(seconds=seconds * (1 - JITTER + 2 * JITTER * secrets.randbelow(1001) / 1000))


def _note_health(webhook_id: int, outcome: Outcome, now: datetime) -> None:
    """Keep since when a webhook fails; switch it off after days of failure, or when its server says it is gone."""
    rows = Webhook.objects.filter(pk=webhook_id)
    if outcome.taken:
        rows.exclude(failing_since=None).update(failing_since=None)
        return
    rows.filter(failing_since=None).update(failing_since=now)
    row = rows.select_for_update().get()
    days = settings.WEBHOOK_DISABLE_DAYS
    gone = outcome.status == 410
    if not row.active or row.failing_since is None:
        return
    if not gone and now - row.failing_since < timedelta(days=days):
        return
    why = "Its server answered 410 Gone." if gone else f"Every attempt failed for {days} days: {outcome.error}"
    record(by=system_actor("webhooks"), why=f"switch off webhook {row.name}")
    row.active, row.disabled_reason = False, why
    row.save(update_fields=["active", "disabled_reason"])
    notify(
        event=DISABLED,
        registry="",
        subject="",
        text=f"Webhook {row.name} was switched off. {why}",
        url=f"/ui/webhooks/{row.public_id}",
        to=[row.owner_id],
        data={"webhook": row.public_id},
    )


def due_deliveries() -> list[int]:
    """Numbers of deliveries to hand to workers now, marked as handed; lost ones are given back first.

    Few of each webhook at a time, and one of those that fail, so that no server of others holds up the rest.
    """
    now = timezone.now()
    Delivery.objects.filter(state=SENDING, lease_until__lt=now).update(
        state=QUEUED, tag="", lease_until=None, enqueued_at=None, next_attempt_at=now
    )
    not_handed = Q(enqueued_at=None) | Q(enqueued_at__lt=now - HANDED)
    due = Delivery.objects.filter(not_handed, state=QUEUED, next_attempt_at__lte=now)
    waiting = Webhook.objects.filter(active=True, pk__in=due.values("webhook")).order_by("id")[:MAX_WEBHOOKS_A_SWEEP]
    chosen: list[int] = []
    for webhook in waiting:
        most = AT_A_TIME_FAILING if webhook.failing_since else AT_A_TIME
        chosen += due.filter(webhook=webhook).order_by("next_attempt_at", "id").values_list("pk", flat=True)[:most]
    return [
        number
        for number in chosen
        if Delivery.objects.filter(not_handed, pk=number, state=QUEUED).update(enqueued_at=now)
    ]


def prune(*, batch: int = 5000) -> int:
    """Remove notices older than the setting NOTIFICATION_DAYS that nothing is to be delivered of; gives how many."""
    before = timezone.now() - timedelta(days=settings.NOTIFICATION_DAYS)
    under_way = Delivery.objects.filter(state__in=(QUEUED, SENDING), webhook__active=True)
    old = Notice.objects.filter(at__lt=before).exclude(pk__in=under_way.values("notice"))
    numbers = list(old.order_by("id").values_list("pk", flat=True)[:batch])
    InboxEntry.objects.filter(notice__in=numbers).delete()
    Notice.objects.filter(pk__in=numbers).delete()
    return len(numbers)
