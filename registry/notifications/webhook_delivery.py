"""Delivery to webhooks: at least once, each by one worker at a time, with a limited number of retries.

A worker claims a delivery by a conditional update, with a tag and a lease, sends it outside any transaction, and writes
the outcome if the claim is still its own. If a worker dies after sending, the message is sent again: receivers recognize
it by `webhook-id`. The order of messages isn't guaranteed.

Chat programs get messages in Slack's format, which Mattermost accepts too. Names and sentences come from other people, so
links, mentions and markup are escaped; the lengths are Slack's limits.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from registry.access.egress import parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient
from registry.access.roles import system_actor
from registry.access.selectors import actor_of_user
from registry.audit.context import record
from registry.errors import SchemadeskError
from registry.notifications.events import DISABLED, EVENTS
from registry.notifications.models import (
    DELIVERED,
    FAILED,
    QUEUED,
    SENDING,
    SLACK,
    Attempt,
    Delivery,
    InboxEntry,
    Notice,
    Webhook,
)
from registry.notifications.selectors import may_read_registry
from registry.notifications.services import notify, storable
from registry.notifications.webhooks import keys_in_force, signature

#: characters of a block's text, and of the text that chat notifications show
MAX_BLOCK: Final = 3000
MAX_TEXT: Final = 3000
MAX_NAME: Final = 200
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
#: an invisible character, put after a character that would start a mention or markup
_JOINER: Final = "\u2060"
_SIGNS: Final = frozenset("@#*_~`")


def chat_body(notice: Notice) -> bytes:
    """Return the chat message: the same bytes at every attempt."""
    event = EVENTS[notice.event].title if notice.event in EVENTS else notice.event
    title, text = plain(event, MAX_NAME), plain(notice.text, MAX_TEXT - 2 * MAX_NAME)
    blocks: list[dict[str, Any]] = [_section(f"*{title}*\n{text}")]
    where = " · ".join(plain(part, MAX_NAME) for part in (notice.registry, notice.subject) if part)
    link = _link(notice.url)
    if where or link:
        parts = " · ".join(part for part in (where, link) if part)
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": parts[:MAX_BLOCK]}]})
    return json.dumps({"text": f"{title}: {text}", "blocks": blocks}, separators=(",", ":")).encode()


def plain(text: str, longest: int) -> str:
    """Escape the text and cut it to a number of characters, but never within an entity."""
    pieces: list[str] = []
    left = longest - 1
    for char in text:
        shown = char if char.isprintable() else " "
        piece = _ENTITIES.get(shown, f"{shown}{_JOINER}" if shown in _SIGNS else shown)
        left -= len(piece)
        if left < 0:
            return f"{''.join(pieces)}…"
        pieces.append(piece)
    return "".join(pieces)


def _section(text: str) -> dict[str, Any]:
    """Return a block of text in which links, names and channels aren't detected."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _link(url: str) -> str:
    """Return a link to the page; "" if the site's address isn't configured."""
    if not url or not settings.SITE_URL:
        return ""
    whole = settings.SITE_URL + quote(url, safe="/:?=&%#,;@!$'()*+~.-_").replace("&", "&amp;")
    return f"<{whole}|Open>" if len(whole) <= MAX_BLOCK - 2 * MAX_NAME - 20 else ""


LIMITS: Final = HttpLimits(connect_seconds=5.0, read_seconds=10.0, total_seconds=15.0, max_bytes=64 * 1024)
EXCERPT: Final = 300
SECRET_LIKE: Final = re.compile(r"[A-Za-z0-9_\-+/=.]{16,}")


@dataclass(frozen=True)
class DeliveryClaim:
    """A delivery that this worker has claimed, with everything needed to send it."""

    delivery_id: int
    tag: str
    attempt: int
    message_id: str
    webhook: Webhook
    notice: Notice


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt: `status` None without a response; `error` empty if it was accepted."""

    status: int | None
    error: str
    excerpt: str
    seconds: float

    @property
    def taken(self) -> bool:
        """Whether the receiver accepted it, with any 2xx status."""
        return self.status is not None and 200 <= self.status < 300


def body_of(notice: Notice) -> bytes:
    """Return the message: the same bytes at every attempt."""
    document = {
        "type": notice.event,
        "timestamp": notice.at.isoformat(),
        "data": {
            "registry": notice.registry,
            "subject": notice.subject,
            "text": notice.text,
            "url": notice.url,
            "details": notice.data,
        },
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def signed_headers(webhook: Webhook, message_id: str, body: bytes, now: datetime) -> dict[str, str]:
    """Return the signature headers. Source: the Standard Webhooks specification."""
    timestamp = int(now.timestamp())
    keys = keys_in_force(webhook, now)
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(keys=keys, message_id=message_id, timestamp=timestamp, body=body),
    }


def _message(claim: DeliveryClaim) -> tuple[bytes, dict[str, str]]:
    """Return body and headers in the webhook's format."""
    if claim.webhook.kind == SLACK:
        return chat_body(claim.notice), {"Content-Type": "application/json"}
    body = body_of(claim.notice)
    return body, signed_headers(claim.webhook, claim.message_id, body, timezone.now())


def send(claim: DeliveryClaim, limits: HttpLimits = LIMITS) -> Outcome:
    """Send the message once. A failure is an outcome, not an exception."""
    body, headers = _message(claim)
    started = time.monotonic()
    status: int | None
    try:
        # The client checks the address again here, and connects to the address that it checked.
        with OutgoingClient(parse_connection(claim.webhook.url), limits=limits) as client:
            path = "/" if claim.webhook.url.endswith("/") else ""
            response = client.call("POST", path, body=body, headers=headers)
        status, error, excerpt = response.status, "", excerpt_of(response.body)
        if not 200 <= status < 300:
            error = f"The server answered {status}."
    except SchemadeskError as problem:
        status, error, excerpt = getattr(problem, "status", None), storable(problem.message, 500), ""
    return Outcome(status, error, excerpt, round(time.monotonic() - started, 3))


def excerpt_of(body: bytes) -> str:
    """Return the start of a response on one line, with possible keys and tokens masked."""
    text = body[: EXCERPT * 8].decode("utf-8", "replace")
    shown = SECRET_LIKE.sub("…", " ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return storable(shown, EXCERPT)


logger = logging.getLogger(__name__)
#: longer than any attempt: resolving a name, connecting to four addresses, one exchange
LEASE: Final = timedelta(seconds=120)
#: seconds before the second attempt, the third, …; after the last failure, in about two days, the delivery has failed
DELAYS: Final = (5, 30, 120, 600, 1800, 7200, 21600, 43200, 86400)
JITTER: Final = 0.2  # share of a delay that is added or subtracted, so that not all deliveries retry at once
#: a delivery that was queued and not claimed is queued again after this time
HANDED: Final = timedelta(seconds=60)
#: deliveries per webhook at a time, so that a slow server doesn't take all workers; fewer while it fails
AT_A_TIME, AT_A_TIME_FAILING = 10, 1
MAX_WEBHOOKS_A_SWEEP: Final = 200


def deliver(delivery_id: int, *, limits: HttpLimits = LIMITS) -> str:
    """Attempt a delivery once; return its state, or "" if another worker has it."""
    claim = take(delivery_id)
    if claim is None:
        return ""
    outcome = send(claim, limits)
    logger.info("delivery %s, attempt %d: %s", delivery_id, claim.attempt, outcome.error or f"HTTP {outcome.status}")
    return finish(claim, outcome)


def take(delivery_id: int) -> DeliveryClaim | None:
    """Claim a due delivery; None if another worker has it, it isn't due, or its webhook is switched off.

    What its owner may no longer read isn't sent: the delivery has failed then.
    """
    rows = Delivery.objects.select_related("webhook__owner", "notice")
    row = rows.filter(pk=delivery_id, webhook__active=True).first()
    if row is None:
        return None
    now, tag = timezone.now(), secrets.token_hex(16)
    # The conditions use only this table's columns, which PostgreSQL checks again after waiting for a lock.
    claimed = Delivery.objects.filter(pk=delivery_id, state=QUEUED, next_attempt_at__lte=now).update(
        state=SENDING, tag=tag, lease_until=now + LEASE, attempts=F("attempts") + 1
    )
    if not claimed:
        return None
    if reason := _why_withheld(row):
        _withhold(row, tag, reason)
        return None
    return DeliveryClaim(row.pk, tag, row.attempts + 1, row.message_id, row.webhook, row.notice)


def _why_withheld(row: Delivery) -> str:
    """Why the message may no longer go to the webhook; "" if it may."""
    owner = row.webhook.owner
    if not owner.is_active:
        return "Not sent: the account of the webhook's owner is deactivated."
    if not may_read_registry(row.notice, actor_of_user(owner, channel="task")):
        return "Not sent: the webhook's owner may no longer read what this is about."
    return ""


@transaction.atomic
def _withhold(row: Delivery, tag: str, reason: str) -> None:
    """End a claimed delivery for good, with the reason. It says nothing about the receiver's health."""
    ended = {"state": FAILED, "finished_at": timezone.now(), "tag": "", "lease_until": None, "enqueued_at": None}
    if Delivery.objects.filter(pk=row.pk, tag=tag, state=SENDING).update(**ended):
        Attempt.objects.create(delivery=row, error=reason)


def finish(claim: DeliveryClaim, outcome: Outcome) -> str:
    """Store the outcome of an attempt; return the state, "" if the claim was lost meanwhile."""
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
            delivery=row, status=outcome.status, error=outcome.error, excerpt=outcome.excerpt, seconds=outcome.seconds
        )
        _note_health(row.webhook_id, outcome, now)
    return row.state


def delay_before(attempt: int) -> timedelta:
    """Return the delay before the attempt with that number (from 2), with jitter."""
    seconds = DELAYS[min(attempt - 2, len(DELAYS) - 1)]
    return timedelta(seconds=seconds * (1 - JITTER + 2 * JITTER * secrets.randbelow(1001) / 1000))


def _note_health(webhook_id: int, outcome: Outcome, now: datetime) -> None:
    """Store since when a webhook fails; turn it off after days of failure, or if its server answers 410 Gone."""
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
    why = "The server answered 410 Gone." if gone else f"Every attempt failed for {days} days: {outcome.error}"
    record(by=system_actor("webhooks"), why=f"turn off webhook {row.name}")
    row.active, row.disabled_reason = False, why
    row.save(update_fields=["active", "disabled_reason"])
    notify(
        event=DISABLED,
        registry="",
        subject="",
        text=f"Webhook {row.name} was turned off. {why}",
        url=f"/ui/webhooks/{row.public_id}",
        to=[row.owner_id],
        data={"webhook": row.public_id},
    )


def due_deliveries() -> list[int]:
    """Return the ids of deliveries to give to workers now, marked as given; lost ones are queued again first.

    A few per webhook at a time, and one for a failing webhook, so that no server delays the others.
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
    """Delete notices older than the setting NOTIFICATION_DAYS without pending deliveries; return how many."""
    before = timezone.now() - timedelta(days=settings.NOTIFICATION_DAYS)
    under_way = Delivery.objects.filter(state__in=(QUEUED, SENDING), webhook__active=True)
    old = Notice.objects.filter(at__lt=before).exclude(pk__in=under_way.values("notice"))
    numbers = list(old.order_by("id").values_list("pk", flat=True)[:batch])
    InboxEntry.objects.filter(notice__in=numbers).delete()
    Notice.objects.filter(pk__in=numbers).delete()
    return len(numbers)
