"""The pages of the inbox and of subscriptions, and the page objects of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Crumb, Field, Frame, Paging, Problem
from registry.access.roles import ACTION_WORDS
from registry.errors import NotFound, SchemadeskError
from registry.notifications import selectors
from registry.notifications.digests import digest_of, person_in
from registry.notifications.events import ANY, EVENTS, SUBSCRIBABLE
from registry.notifications.models import DAILY, OFF, WEEKLY


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRow:
    """A notice; `url` is "" if there is no page, or none that the person may still read."""

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
    is_wanted: bool
    remove: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRow:
    """An event type that is sent without a subscription, and to whom."""

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
    """One's digest by mail: the form, the address, why none would be sent ("" if it would), and the last result."""

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
    """The page behind the link in a digest: the button that ends digests, or None once they are ended."""

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
    scope: str
    state: Look
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksPage:
    """The visible webhooks."""

    frame: Frame
    rows: tuple[WebhookRow, ...]
    add: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookForm:
    """The form of a webhook; no selected event means all."""

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
    """A delivery in the log; `next_at` while it is queued."""

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
    """One webhook with its log; `secret` only right after it was created; `key_version` 0 if nothing is signed."""

    frame: Frame
    id: str
    url: str
    owner: str
    events: str
    scope: str
    key_version: int
    state: Look
    disabled_reason: str
    failing_since: datetime | None
    actions: tuple[Action, ...]
    rows: tuple[DeliveryRow, ...]
    paging: Paging
    kind: str = ""
    secret: str = ""


LONGEST_NUMBER = 18


def number_in(text: str) -> int | None:
    """A row's number from a query parameter; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def inbox_page(request: HttpRequest) -> InboxPage:
    """One's notices, newest first. Raises NotSignedIn."""
    actor = page_actor(request)
    only_unread = request.GET.get("show") == "unread"
    before = number_in(request.GET.get("before", ""))
    page_and_next = selectors.list_entries(actor, unread=only_unread, before=before, limit=selectors.PAGE + 1)
    entries, more = page_and_next[: selectors.PAGE], len(page_and_next) > selectors.PAGE
    frame = make_frame(request, title=gettext("Inbox"))
    return InboxPage(
        frame=frame,
        rows=tuple(
            NoticeRow(
                number=entry.id,
                title=entry.title,
                registry=entry.registry,
                subject=entry.subject,
                text=entry.text,
                url=entry.url,
                at=entry.at,
                read=entry.read,
            )
            for entry in entries
        ),
        unread=frame.unread,
        only_unread=only_unread,
        paging=older(request.path, request.GET.dict(), [entry.id for entry in entries], more=more),
        newest=entries[0].id if entries else 0,
        back=request.get_full_path(),
    )


def older(path: str, query: Mapping[str, str], numbers: list[int], *, more: bool) -> Paging:
    """Paging by number: how many rows are shown, and the address of older ones."""
    after = {**query, "before": str(numbers[-1])} if numbers else {}
    return Paging(first=1, last=len(numbers), next_url=f"{path}?{urlencode(after)}" if more else "")


def subscriptions_page(request: HttpRequest, problem: SchemadeskError | None = None) -> SubscriptionsPage:
    """One's subscriptions and the form of a new one. Raises NotSignedIn."""
    query = request.POST if request.method == "POST" else request.GET
    rows = selectors.list_subscriptions(page_actor(request))
    return SubscriptionsPage(
        frame=make_frame(request, title=gettext("Subscriptions"), crumbs=(Crumb(label=gettext("Inbox"), url=reverse("ui:inbox")),)),
        rows=tuple(
            SubscriptionRow(
                title=row.title,
                registry_pattern=row.registry_pattern,
                subject_pattern=row.subject_pattern,
                is_wanted=row.wanted,
                remove=Action(label=gettext("Remove"), url=reverse("ui:unsubscribe", args=[row.id]), method="post"),
            )
            for row in rows
        ),
        fields=(
            _select("wanted", gettext("Notices"), {"yes": gettext("Notify me"), "no": gettext("Don’t notify me")}, query.get("wanted", "yes")),
            _select(
                "event", gettext("Event"), {ANY: gettext("All events"), **{name: EVENTS[name].title for name in SUBSCRIBABLE}},
                query.get("event", ANY),
            ),
            _pattern("registry_pattern", gettext("Registries"), query.get("registry_pattern", "*")),
            _pattern("subject_pattern", gettext("Subjects"), query.get("subject_pattern", "*")),
        ),
        submit=Action(label=gettext("Subscribe"), url=reverse("ui:subscriptions"), method="post", tone="primary"),
        defaults=tuple(
            DefaultRow(title=event.title, concerns=ACTION_WORDS[event.concerns])
            for event in EVENTS.values()
            if event.concerns
        )
        + tuple(DefaultRow(title=event.title, concerns=gettext("own the subject")) for event in EVENTS.values() if event.for_owners),
        digest=_digest(request),
        problem=Problem(what=problem.message, cure=gettext("Nothing was saved. Correct the form below.")) if problem else None,
    )  # fmt: skip


EVERY: Final = {OFF: later("Never"), DAILY: later("Every day"), WEEKLY: later("Every Monday")}
LAST: Final = {
    "delivered": later("Last email sent"),
    "failed": later("The last email couldn’t be sent"),
    "queued": later("The next email is being sent"),
    "sending": later("The next email is being sent"),
}


def _digest(request: HttpRequest) -> DigestChoice:
    """One's digest by mail. Raises NotSignedIn."""
    info = digest_of(page_actor(request))
    reason = ""
    if not info.is_sent:
        reason = gettext(
            "No mail server is configured (SCHEMADESK_MAIL_HOST), so no email is sent, whatever you choose here."
        )
    elif not info.address:
        reason = gettext("Your account has no email address. An admin can set one on the People and groups page.")
    hours = {str(hour): f"{hour:02}:00" for hour in range(24)}
    zone = timezone.get_current_timezone_name()
    return DigestChoice(
        fields=(
            _select("every", gettext("How often"), {key: str(label) for key, label in EVERY.items()}, info.every),
            _select("hour", gettext("Time (%(zone)s)") % {"zone": zone}, hours, str(info.hour)),
        ),
        submit=Action(label=gettext("Save digest"), url=reverse("ui:digest"), method="post", tone="primary"),
        address=info.address,
        reason=reason,
        next_at=info.next_at,
        last=str(LAST.get(info.last_state, "")),
        last_error=info.last_error,
        last_at=info.last_at,
    )


def stop_page(request: HttpRequest, token: str, *, done: bool = False) -> StopPage:
    """The page behind the link in a digest. Raises NotFound for an invalid token."""
    if not done and person_in(token) is None:
        raise NotFound(gettext("This link doesn’t work. It is incomplete, or the account no longer exists."))
    url = reverse("ui:digest_stop", args=[token])
    return StopPage(
        frame=make_frame(
            request, title=gettext("Email digest turned off") if done else gettext("Turn off the email digest?")
        ),
        stop=None if done else Action(label=gettext("Turn off digest"), url=url, method="post", tone="primary"),
    )


def _select(name: str, label: str, choices: dict[str, str], chosen: str) -> Field:
    shown = tuple(Choice(value=value, label=text, selected=value == chosen) for value, text in choices.items())
    return Field(name=name, label=label, kind="select", choices=shown, required=True)


def _pattern(name: str, label: str, value: str) -> Field:
    return Field(
        name=name,
        label=label,
        value=value,
        code=True,
        required=True,
        help=gettext("A pattern: * matches any text, ? matches one character."),
    )
