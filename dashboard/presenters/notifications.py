"""What the pages of the inbox, of subscriptions and of webhooks show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Choice, Field, Frame, Paging, Problem
from dashboard.presenters.looks import Look


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRow:
    """A notice; `url` is "" where there is no page, or none that may still be read."""

    number: int
    title: str
    registry: str
    subject: str
    text: str
    url: str
    at: datetime
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """The inbox; `newest` is the number of the newest entry shown, up to which all can be marked as read."""

    frame: Frame
    rows: tuple[NoticeRow, ...]
    unread: int
    only_unread: bool
    paging: Paging
    newest: int
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """A subscription."""

    title: str
    registry_pattern: str
    subject_pattern: str
    wanted: bool
    remove: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRow:
    """An event that comes without a subscription, and to whom."""

    title: str
    concerns: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionsPage:
    """One's subscriptions, and the form of a new one."""

    frame: Frame
    rows: tuple[SubscriptionRow, ...]
    fields: tuple[Field, ...]
    submit: Action
    defaults: tuple[DefaultRow, ...]
    digest: DigestChoice
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestChoice:
    """One's digest by mail: its form, where it goes, why none would be sent ("" for none), and how the last ended."""

    fields: tuple[Field, ...]
    submit: Action
    address: str = ""
    reason: str = ""
    next_at: datetime | None = None
    last: str = ""
    last_at: datetime | None = None
    last_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPage:
    """What the link in a digest leads to: the button that ends them, or (None) that they are ended."""

    frame: Frame
    stop: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """A webhook in the list."""

    name: str
    url: str
    host: str
    owner: str
    events: str
    place: str
    state: Look
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksPage:
    """The webhooks that one sees."""

    frame: Frame
    rows: tuple[WebhookRow, ...]
    add: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookForm:
    """The form of a webhook; no chosen event means all."""

    frame: Frame
    fields: tuple[Field, ...]
    events: tuple[Choice, ...]
    submit: Action
    back_url: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRow:
    """One attempt."""

    at: datetime
    result: str
    excerpt: str
    seconds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """A message in the log; `next_at` while it is queued."""

    message_id: str
    title: str
    text: str
    state: Look
    created_at: datetime
    next_at: datetime | None
    tries: tuple[TryRow, ...]
    replay: Action | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPage:
    """One webhook with its log; `secret` only right after it was made; `key_version` 0 where nothing is signed."""

    frame: Frame
    id: str
    url: str
    owner: str
    events: str
    place: str
    key_version: int
    state: Look
    disabled_reason: str
    failing_since: datetime | None
    actions: tuple[Action, ...]
    rows: tuple[DeliveryRow, ...]
    paging: Paging
    kind: str = ""
    secret: str = ""
