"""Inboxes, subscriptions, webhooks and their deliveries, for pages and the API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import OuterRef, Prefetch, QuerySet, Subquery

from registry.access.roles import Actor, may, may_somewhere, require_whole_token
from registry.errors import NotFound, NotSignedIn
from registry.frozen_rows import row_info
from registry.notifications.events import EVENTS, TEST
from registry.notifications.models import (
    FAILED,
    QUEUED,
    SENDING,
    Attempt,
    Delivery,
    InboxEntry,
    Notice,
    Subscription,
    Webhook,
)

PAGE: Final = 50
HIDDEN: Final = "You no longer have permission to see what this was about."


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
    """A webhook, without its key."""

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
    """One attempt: the HTTP status or the error, and the start of the response."""

    at: datetime
    status: int | None
    error: str
    excerpt: str
    seconds: float


@dataclass(frozen=True)
class DeliveryInfo:
    """A delivery; `next_attempt_at` is set while it is queued."""

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

    @property
    def title(self) -> str:
        """The title of the event type."""
        return title_of(self.event)


def person_of(actor: Actor) -> int:
    """Return the actor's user id. Raises NotSignedIn."""
    if actor.user_id is None:
        raise NotSignedIn("Sign in to see your inbox.")
    return actor.user_id


def unread_entries(user_id: int) -> QuerySet[InboxEntry]:
    """Return a person's unread notices, for pages and programs to count."""
    return InboxEntry.objects.filter(user=user_id, read_at=None)


def list_entries(
    actor: Actor, *, unread: bool = False, before: int | None = None, limit: int = PAGE
) -> list[EntryInfo]:
    """List a person's notices, newest first, older than the entry `before`; hide texts that they may no longer read.

    Raises NotSignedIn.
    """
    rows = InboxEntry.objects.filter(user=person_of(actor)).select_related("notice").order_by("-id")
    if unread:
        rows = rows.filter(read_at=None)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return [_entry_info(row, actor) for row in rows[:limit]]


def _entry_info(row: InboxEntry, actor: Actor) -> EntryInfo:
    """Return the entry; without its text if the person may no longer read it."""
    notice: Notice = row.notice
    shown = may_read_registry(notice, actor)
    return EntryInfo(
        id=row.pk,
        event=notice.event,
        title=title_of(notice.event),
        registry=notice.registry if shown else "",
        subject=notice.subject if shown else "",
        text=notice.text if shown else HIDDEN,
        url=notice.url if shown else "",
        at=notice.at,
        read=row.read_at is not None,
    )


def may_read_registry(notice: Notice, actor: Actor) -> bool:
    """Whether the actor may still read what the notice is about; a test message is about nothing."""
    if notice.event == TEST:
        return may_somewhere(actor, "schema.read")
    return may(actor, "schema.read", registry=notice.registry, subject=notice.subject)


def title_of(event: str) -> str:
    """Return the title of an event type; its id if a later release has removed the type."""
    return EVENTS[event].title if event in EVENTS else event


def list_subscriptions(actor: Actor) -> list[SubscriptionInfo]:
    """List a person's subscriptions. Raises NotSignedIn, NotAllowed."""
    user_id = person_of(actor)
    require_whole_token(actor, "see subscriptions")
    return [subscription_info(row) for row in Subscription.objects.filter(user=user_id)]


def subscription_info(row: Subscription) -> SubscriptionInfo:
    """The info of a subscription's row."""
    return row_info(SubscriptionInfo, row, title="All events" if row.event == "*" else title_of(row.event))


def may_see_all(actor: Actor) -> bool:
    """Return whether the actor sees other people's webhooks too."""
    return may(actor, "registry.manage")


def webhook_row(actor: Actor, public_id: str) -> Webhook:
    """Return a webhook if it is the actor's own or they see all.

    Raises NotFound (also for others' webhooks), NotAllowed, NotSignedIn.
    """
    user_id = person_of(actor)
    require_whole_token(actor, "see webhooks")
    row = Webhook.objects.select_related("owner").filter(public_id=public_id).first()
    if row is None or (row.owner_id != user_id and not may_see_all(actor)):
        raise NotFound("Webhook not found.", webhook=public_id[:40])
    return row


def list_webhooks(actor: Actor) -> list[WebhookInfo]:
    """List the actor's own webhooks, or all with the right to manage registries. Raises NotSignedIn."""
    user_id = person_of(actor)
    require_whole_token(actor, "see webhooks")
    rows = Webhook.objects.select_related("owner")
    return [webhook_info(row) for row in (rows if may_see_all(actor) else rows.filter(owner=user_id))]


def get_webhook(actor: Actor, public_id: str) -> WebhookInfo:
    """Return one webhook. Raises NotFound, NotSignedIn."""
    return webhook_info(webhook_row(actor, public_id))


def list_deliveries(
    actor: Actor, public_id: str, *, before: int | None = None, limit: int = PAGE
) -> list[DeliveryInfo]:
    """List a webhook's deliveries, newest first; texts are hidden as in inboxes. Raises NotFound, NotSignedIn."""
    row = webhook_row(actor, public_id)
    deliveries = Delivery.objects.filter(webhook=row).select_related("notice").order_by("-id")
    if before is not None:
        deliveries = deliveries.filter(pk__lt=before)
    tries = Prefetch("tries", Attempt.objects.order_by("id"))
    return [_delivery_info(item, actor) for item in deliveries.prefetch_related(tries)[:limit]]


def webhook_info(row: Webhook) -> WebhookInfo:
    """Return the info for a webhook's row."""
    return row_info(WebhookInfo, row, id=row.public_id, owner=row.owner.get_username(), events=tuple(row.events))


def _delivery_info(row: Delivery, actor: Actor) -> DeliveryInfo:
    """The delivery; without text, and without what the receiver said of it, if the actor may no longer read what it is about."""
    shown = may_read_registry(row.notice, actor)
    return row_info(
        DeliveryInfo,
        row,
        event=row.notice.event,
        text=row.notice.text if shown else HIDDEN,
        next_attempt_at=row.next_attempt_at if row.state == "queued" else None,
        tries=tuple(
            AttemptInfo(item.at, item.status, item.error, item.excerpt if shown else "", item.seconds)
            for item in row.tries.all()
        ),
    )


def event_rows() -> list[dict[str, Any]]:
    """List the event types, for the API."""
    return [
        {"id": row.id, "title": row.title, "told_without_subscription": row.concerns, "told_to_owners": row.for_owners}
        for row in EVENTS.values()
    ]


@dataclass(frozen=True)
class DeliveryUnderWay:
    """A delivery, its webhook and the error of its last attempt; `next_attempt_at` is set while it is queued."""

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
    """List queued and running deliveries, then failed ones, newest first; none if nobody is signed in.

    Two queries.
    """
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
