"""Inboxes, subscriptions, webhooks and their deliveries, for pages and programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Prefetch

from registry.access.roles import Actor, may
from registry.errors import NotFound, NotSignedIn
from registry.notifications.events import EVENTS
from registry.notifications.models import Attempt, Delivery, InboxEntry, Notice, Subscription, Webhook

PAGE: Final = 50


@dataclass(frozen=True)
class EntryInfo:
    """A notice in an inbox."""

    id: int
    event: str
    title: str
    registry: str
    subject: str
    text: str
    url: str
    at: datetime
    read: bool


@dataclass(frozen=True)
class SubscriptionInfo:
    """A subscription."""

    id: int
    event: str
    title: str
    registry_pattern: str
    subject_pattern: str
    wanted: bool


@dataclass(frozen=True)
class WebhookInfo:
    """A webhook. Its key stands nowhere."""

    id: str
    name: str
    owner: str
    url: str
    host: str
    kind: str
    events: tuple[str, ...]
    registry_pattern: str
    subject_pattern: str
    active: bool
    key_version: int
    disabled_reason: str
    failing_since: datetime | None
    created_at: datetime


@dataclass(frozen=True)
class AttemptInfo:
    """One try: an HTTP status or what went wrong, and how the answer began."""

    at: datetime
    status: int | None
    error: str
    excerpt: str
    seconds: float


@dataclass(frozen=True)
class DeliveryInfo:
    """A message on its way; `next_attempt_at` counts while it is queued."""

    id: int
    message_id: str
    event: str
    text: str
    state: str
    attempts: int
    created_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None
    tries: tuple[AttemptInfo, ...]


def person_of(actor: Actor) -> int:
    """The number of the person who acts. Raises NotSignedIn."""
    if actor.user_id is None:
        raise NotSignedIn("An inbox belongs to a person: sign in.")
    return actor.user_id


def count_unread(user_id: int) -> int:
    """How many notices a person hasn't read."""
    return InboxEntry.objects.filter(user=user_id, read_at=None).count()


def list_entries(
    actor: Actor, *, unread: bool = False, before: int | None = None, limit: int = PAGE
) -> list[EntryInfo]:
    """A person's notices, newest first; `before` is the number of an entry. What they may no longer read is left out.

    Raises NotSignedIn.
    """
    rows = InboxEntry.objects.filter(user=person_of(actor)).select_related("notice").order_by("-id")
    if unread:
        rows = rows.filter(read_at=None)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return [_hidden_or_shown(row, actor) for row in rows[:limit]]


def _hidden_or_shown(row: InboxEntry, actor: Actor) -> EntryInfo:
    """The entry; without its words where the right to read them was taken away since."""
    notice: Notice = row.notice
    shown = may(actor, "schema.read", registry=notice.registry, subject=notice.subject)
    return EntryInfo(
        id=row.pk,
        event=notice.event,
        title=title_of(notice.event),
        registry=notice.registry if shown else "",
        subject=notice.subject if shown else "",
        text=notice.text if shown else "You may no longer read what this was about.",
        url=notice.url if shown else "",
        at=notice.at,
        read=row.read_at is not None,
    )


def title_of(event: str) -> str:
    """The event's title; its id where a later release has dropped it."""
    return EVENTS[event].title if event in EVENTS else event


def list_subscriptions(actor: Actor) -> list[SubscriptionInfo]:
    """A person's subscriptions. Raises NotSignedIn."""
    return [
        SubscriptionInfo(
            id=row.pk,
            event=row.event,
            title="Everything" if row.event == "*" else title_of(row.event),
            registry_pattern=row.registry_pattern,
            subject_pattern=row.subject_pattern,
            wanted=row.wanted,
        )
        for row in Subscription.objects.filter(user=person_of(actor))
    ]


def may_see_all(actor: Actor) -> bool:
    """Whether somebody sees the webhooks of others too."""
    return may(actor, "registry.manage")


def webhook_row(actor: Actor, public_id: str) -> Webhook:
    """The webhook if it is the actor's own, or they see all. Raises NotFound (also for others' webhooks), NotSignedIn."""
    user_id = person_of(actor)
    row = Webhook.objects.select_related("owner").filter(public_id=public_id).first()
    if row is None or (row.owner_id != user_id and not may_see_all(actor)):
        raise NotFound("There is no such webhook.", webhook=public_id[:40])
    return row


def list_webhooks(actor: Actor) -> list[WebhookInfo]:
    """The actor's own webhooks, or all of them for who manages registries. Raises NotSignedIn."""
    user_id = person_of(actor)
    rows = Webhook.objects.select_related("owner")
    return [webhook_info(row) for row in (rows if may_see_all(actor) else rows.filter(owner=user_id))]


def get_webhook(actor: Actor, public_id: str) -> WebhookInfo:
    """One webhook. Raises NotFound, NotSignedIn."""
    return webhook_info(webhook_row(actor, public_id))


def list_deliveries(
    actor: Actor, public_id: str, *, before: int | None = None, limit: int = PAGE
) -> list[DeliveryInfo]:
    """A webhook's deliveries with their attempts, newest first. Raises NotFound, NotSignedIn."""
    row = webhook_row(actor, public_id)
    deliveries = Delivery.objects.filter(webhook=row).select_related("notice").order_by("-id")
    if before is not None:
        deliveries = deliveries.filter(pk__lt=before)
    tries = Prefetch("tries", Attempt.objects.order_by("id"))
    return [_delivery_info(item) for item in deliveries.prefetch_related(tries)[:limit]]


def webhook_info(row: Webhook) -> WebhookInfo:
    """The row as it is shown."""
    return WebhookInfo(
        id=row.public_id,
        name=row.name,
        owner=row.owner.get_username(),
        url=row.url,
        host=row.host,
        kind=row.kind,
        events=tuple(row.events),
        registry_pattern=row.registry_pattern,
        subject_pattern=row.subject_pattern,
        active=row.active,
        key_version=row.key_version,
        disabled_reason=row.disabled_reason,
        failing_since=row.failing_since,
        created_at=row.created_at,
    )


def _delivery_info(row: Delivery) -> DeliveryInfo:
    return DeliveryInfo(
        id=row.pk,
        message_id=row.message_id,
        event=row.notice.event,
        text=row.notice.text,
        state=row.state,
        attempts=row.attempts,
        created_at=row.created_at,
        next_attempt_at=row.next_attempt_at if row.state == "queued" else None,
        finished_at=row.finished_at,
        tries=tuple(
            AttemptInfo(item.at, item.status, item.error, item.excerpt, item.seconds) for item in row.tries.all()
        ),
    )


def event_rows() -> list[dict[str, Any]]:
    """The table of events, for programs."""
    return [
        {"id": row.id, "title": row.title, "told_without_subscription": row.concerns, "told_to_owners": row.for_owners}
        for row in EVENTS.values()
    ]
