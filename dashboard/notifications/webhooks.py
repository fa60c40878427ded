"""The pages of webhooks and their delivery logs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.forms import ConfirmPage, ServiceForm
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Crumb, Frame, Paging
from dashboard.notifications.forms import KINDS, WebhookEditForm, WebhookForm
from dashboard.notifications.inbox import number_in, older
from registry.access.roles import Actor, refusal
from registry.notifications import selectors
from registry.notifications.models import SIGNED
from registry.notifications.selectors import DeliveryInfo, WebhookInfo

ON: Final = Look("ok", "circle-check", later("On"))
FAILING: Final = Look("care", "triangle-alert", later("Failing"))
OFF: Final = Look("unknown", "circle-slash", later("Off"))
DELIVERIES: Final = {
    "queued": Look("unknown", "hourglass", later("Queued")),
    "sending": Look("unknown", "send", later("Sending")),
    "delivered": Look("ok", "circle-check", later("Delivered")),
    "failed": Look("breaks", "octagon-x", later("Given up")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """A webhook, with what it sends in words."""

    info: WebhookInfo
    kind: str
    events: str
    scope: str
    state: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksPage:
    """The visible webhooks."""

    frame: Frame
    rows: tuple[WebhookRow, ...]
    add: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFormPage:
    """The form of a webhook, and where it leads when it isn't sent."""

    frame: Frame
    form: ServiceForm
    url: str
    back_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """A delivery in the log; `is_done` when it can be sent again."""

    info: DeliveryInfo
    state: Look
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPage:
    """One webhook with its log; `refused` says why the reader may not change it, `secret` is there right after its creation."""

    frame: Frame
    webhook: WebhookRow
    refused: str
    deliveries: tuple[DeliveryRow, ...]
    paging: Paging
    secret: str = ""

    @property
    def is_signed(self) -> bool:
        """Whether it has a key."""
        return self.webhook.info.kind == SIGNED


def webhooks_page(request: HttpRequest) -> WebhooksPage:
    """The visible webhooks. Raises NotSignedIn."""
    return WebhooksPage(
        frame=make_frame(request, title=gettext("Webhooks")),
        rows=tuple(map(webhook_row, selectors.list_webhooks(page_actor(request)))),
        add=Action(label=gettext("Add webhook"), url=reverse("ui:webhook_add"), tone="primary", icon="plus"),
    )


def webhook_row(info: WebhookInfo) -> WebhookRow:
    """The row of a webhook."""
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
    top = (Crumb(label=gettext("Webhooks"), url=reverse("ui:webhooks")),)
    return (*top, Crumb(label=info.name, url=reverse("ui:webhook", args=[info.id]))) if info else top


def webhook_form(request: HttpRequest, webhook: str = "", sent: ServiceForm | None = None) -> WebhookFormPage:
    """The form of a new or existing webhook; `sent` was refused. Raises NotFound, NotSignedIn."""
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
    """One webhook with its log, and with its key if it was just created or rotated. Raises NotFound, NotSignedIn."""
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
        paging=older(reverse("ui:webhook", args=[info.id]), {}, [row.id for row in rows], more=more),
        secret=secret,
    )


def _refusal(actor: Actor, info: WebhookInfo) -> str:
    return refusal(actor, "webhook.manage", registry=info.registry_pattern, subject=info.subject_pattern)


def remove_page(request: HttpRequest, form: ServiceForm, webhook: str) -> ConfirmPage:
    """The confirmation of removing a webhook. Raises NotFound, NotSignedIn."""
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
