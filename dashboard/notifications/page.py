"""The pages of the inbox, of subscriptions, of ending a digest, and of webhooks with their delivery logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.forms import ConfirmPage, ServiceForm
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import chosen_value, crumb, cursor_paging
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Crumb, Fact, Frame, Paging, Problem
from dashboard.notifications.forms import KINDS, DigestForm, SubscribeForm, WebhookEditForm, WebhookForm
from registry.access.roles import ACTION_WORDS, Actor, refusal
from registry.errors import NotFound
from registry.notifications import selectors
from registry.notifications.digests import DigestInfo, digest_of, person_in
from registry.notifications.events import EVENTS
from registry.notifications.models import SIGNED
from registry.notifications.selectors import DeliveryInfo, EntryInfo, SubscriptionInfo, WebhookInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """The inbox; `newest` is the number of the newest entry shown, up to which all can be marked as read."""

    frame: Frame
    entries: Sequence[EntryInfo]
    unread: int
    only_unread: bool
    paging: Paging
    newest: int
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionsPage:
    """A person's subscriptions and digest, with forms; `defaults` are events sent without one, and their recipients."""

    frame: Frame
    subscriptions: Sequence[SubscriptionInfo]
    defaults: tuple[Fact, ...]
    digest: DigestInfo
    form: ServiceForm
    digest_form: ServiceForm
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPage:
    """The page that the link in a digest opens: a button that ends digests, or None once they are ended."""

    frame: Frame
    stop: Action | None = None


LONGEST_NUMBER = 18


def number_in(text: str) -> int | None:
    """Parse a row's number in a query parameter; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def inbox_page(request: HttpRequest) -> InboxPage:
    """Return a person's notices, newest first. Raises NotSignedIn, InvalidInput."""
    actor = page_actor(request)
    only_unread = chosen_value(request.GET, "show", ["unread"]) == "unread"
    before = number_in(request.GET.get("before", ""))
    page_and_next = selectors.list_entries(actor, unread=only_unread, before=before, limit=selectors.PAGE + 1)
    entries, more = page_and_next[: selectors.PAGE], len(page_and_next) > selectors.PAGE
    frame = make_frame(request, title=gettext("Inbox"))
    return InboxPage(
        frame=frame,
        entries=entries,
        unread=frame.unread,
        only_unread=only_unread,
        paging=older(request.path, entries, request.GET.dict(), more=more),
        newest=entries[0].id if entries else 0,
        back=request.get_full_path(),
    )


def older(path: str, rows: Sequence[EntryInfo | DeliveryInfo], query: Mapping[str, str], *, more: bool) -> Paging:
    """Return the paging by number: how many rows are shown, and the URL of older ones."""
    return cursor_paging(rows, path, query, is_first=True, before=rows[-1].id if more else None)


def subscriptions_page(request: HttpRequest, sent: ServiceForm | None = None) -> SubscriptionsPage:
    """Return a person's subscriptions and digest; `sent` is a refused form. Raises NotSignedIn."""
    actor = page_actor(request)
    digest = digest_of(actor)
    to_owners = [event for event in EVENTS.values() if event.for_owners]
    return SubscriptionsPage(
        frame=make_frame(request, title=gettext("Subscriptions"), crumbs=(crumb(gettext("Inbox"), "inbox"),)),
        subscriptions=selectors.list_subscriptions(actor),
        defaults=(
            *(Fact(label=row.title, value=ACTION_WORDS[row.concerns]) for row in EVENTS.values() if row.concerns),
            *(Fact(label=event.title, value=gettext("own the subject")) for event in to_owners),
        ),
        digest=digest,
        form=sent if isinstance(sent, SubscribeForm) else SubscribeForm(initial=request.GET.dict()),
        digest_form=sent
        if isinstance(sent, DigestForm)
        else DigestForm(initial={"every": digest.every, "hour": digest.hour}),
        problem=sent.problem if sent else None,
    )


def stop_page(request: HttpRequest, token: str, *, done: bool = False) -> StopPage:
    """Return the page that the link in a digest opens. Raises NotFound for an invalid token."""
    if not done and person_in(token) is None:
        raise NotFound(gettext("This link doesn’t work. It is incomplete, or the account no longer exists."))
    url = reverse("ui:digest_stop", args=[token])
    return StopPage(
        frame=make_frame(
            request, title=gettext("Email digest turned off") if done else gettext("Turn off the email digest?")
        ),
        stop=None if done else Action(label=gettext("Turn off digest"), url=url, method="post", tone="primary"),
    )


ON: Final = Look("ok", "circle-check", _("On"))
FAILING: Final = Look("care", "triangle-alert", _("Failing"))
OFF: Final = Look("unknown", "circle-slash", _("Off"))
DELIVERIES: Final = {
    "queued": Look("unknown", "hourglass", _("Queued")),
    "sending": Look("unknown", "send", _("Sending")),
    "delivered": Look("ok", "circle-check", _("Delivered")),
    "failed": Look("breaks", "octagon-x", _("Given up")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """A webhook, with its settings in words."""

    info: WebhookInfo
    kind: str
    events: str
    scope: str
    state: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksPage:
    """The webhooks that the reader may see."""

    frame: Frame
    rows: tuple[WebhookRow, ...]
    add: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFormPage:
    """The form of a webhook, and the URL to cancel it."""

    frame: Frame
    form: ServiceForm
    url: str
    back_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """A delivery in the log; `is_done` says that it can be sent again."""

    info: DeliveryInfo
    state: Look
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPage:
    """A webhook with its log; `refused` says why the reader may not edit it; `secret` is a new key."""

    frame: Frame
    webhook: WebhookRow
    refused: str
    deliveries: tuple[DeliveryRow, ...]
    paging: Paging
    secret: str = ""

    @property
    def is_signed(self) -> bool:
        """Whether its messages are signed."""
        return self.webhook.info.kind == SIGNED


def webhooks_page(request: HttpRequest) -> WebhooksPage:
    """Return the webhooks that the reader may see. Raises NotSignedIn."""
    return WebhooksPage(
        frame=make_frame(request, title=gettext("Webhooks")),
        rows=tuple(map(webhook_row, selectors.list_webhooks(page_actor(request)))),
        add=Action(label=gettext("Add webhook"), url=reverse("ui:webhook_add"), tone="primary", icon="plus"),
    )


def webhook_row(info: WebhookInfo) -> WebhookRow:
    """Return the row of a webhook."""
    return WebhookRow(info=info, kind=KINDS[info.kind], events=_events(info), scope=_scope(info), state=_state(info))


def _state(info: WebhookInfo) -> Look:
    if not info.active:
        return OFF
    return FAILING if info.failing_since else ON


def _events(info: WebhookInfo) -> str:
    return ", ".join(selectors.title_of(event) for event in info.events) or gettext("All events")


def _scope(info: WebhookInfo) -> str:
    subjects = (
        gettext("all subjects")
        if info.subject_pattern == "*"
        else gettext("subjects %(pattern)s") % {"pattern": info.subject_pattern}
    )
    registries = gettext("all registries") if info.registry_pattern == "*" else info.registry_pattern
    return gettext("%(subjects)s in %(registries)s") % {"subjects": subjects, "registries": registries}


def _crumbs(info: WebhookInfo | None = None) -> tuple[Crumb, ...]:
    top = (crumb(gettext("Webhooks"), "webhooks"),)
    return (*top, crumb(info.name, "webhook", info.id)) if info else top


def webhook_form(request: HttpRequest, webhook: str = "", sent: ServiceForm | None = None) -> WebhookFormPage:
    """Return the form of a new or existing webhook; `sent` is a refused form. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    selectors.person_of(actor)
    info = selectors.get_webhook(actor, webhook) if webhook else None
    form = WebhookEditForm(initial=asdict(info)) if info else WebhookForm()
    title = gettext("Edit %(info)s") % {"info": info.name} if info else gettext("Add webhook")
    return WebhookFormPage(
        frame=make_frame(request, title=title, crumbs=_crumbs(info)),
        form=sent or form,
        url=reverse("ui:webhook_edit", args=[info.id]) if info else reverse("ui:webhook_add"),
        back_url=reverse("ui:webhook", args=[info.id]) if info else reverse("ui:webhooks"),
    )


def webhook_page(request: HttpRequest, webhook: str, *, secret: str = "") -> WebhookPage:
    """Return a webhook with its log, and with its key if it was just created or rotated.

    Raises NotFound, NotSignedIn.
    """
    actor = page_actor(request)
    info = selectors.get_webhook(actor, webhook)
    before = number_in(request.GET.get("before", ""))
    deliveries = selectors.list_deliveries(actor, webhook, before=before, limit=selectors.PAGE + 1)
    rows, more = deliveries[: selectors.PAGE], len(deliveries) > selectors.PAGE
    return WebhookPage(
        frame=make_frame(request, title=info.name, crumbs=_crumbs()),
        webhook=webhook_row(info),
        refused=_refusal(actor, info),
        deliveries=tuple(
            DeliveryRow(info=row, state=DELIVERIES[row.state], is_done=row.state in ("delivered", "failed"))
            for row in rows
        ),
        paging=older(reverse("ui:webhook", args=[info.id]), rows, {}, more=more),
        secret=secret,
    )


def _refusal(actor: Actor, info: WebhookInfo) -> str:
    return refusal(actor, "webhook.manage", registry=info.registry_pattern, subject=info.subject_pattern)


def remove_page(request: HttpRequest, form: ServiceForm, webhook: str) -> ConfirmPage:
    """Return the confirmation of removing a webhook. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    info = selectors.get_webhook(actor, webhook)
    return ConfirmPage(
        frame=make_frame(request, title=gettext("Remove %(info)s") % {"info": info.name}, crumbs=_crumbs(info)),
        form=form,
        refused=_refusal(actor, info),
        sentence=gettext("This webhook will send nothing more to %(host)s. Queued messages are dropped.") % {"host": info.host},
        losses=(gettext("The delivery log"), gettext("The signing key; a new webhook gets a new key")),
        stays=(gettext("Messages that were sent"), gettext("The removal’s entry in the audit log")),
        back_url=reverse("ui:webhook", args=[info.id]),
    )  # fmt: skip
