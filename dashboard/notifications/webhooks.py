"""The pages of webhooks and their delivery logs."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Look
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Crumb, Field, Problem
from dashboard.notifications.inbox import (
    DeliveryRow,
    TryRow,
    WebhookForm,
    WebhookPage,
    WebhookRow,
    WebhooksPage,
    number_in,
    older,
)
from dashboard.sources.presenters import ConfirmPage
from registry.access.roles import Actor, refusal
from registry.errors import SchemadeskError
from registry.notifications import selectors
from registry.notifications.events import EVENTS, FOR_WEBHOOKS
from registry.notifications.models import SIGNED, SLACK
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


KINDS: Final = {
    SIGNED: later("Signed JSON events, for a program"),
    SLACK: later("Messages, for Slack or Mattermost"),
}


def webhooks_page(request: HttpRequest) -> WebhooksPage:
    """The visible webhooks. Raises NotSignedIn."""
    actor = page_actor(request)
    rows = selectors.list_webhooks(actor)
    return WebhooksPage(
        frame=make_frame(request, title=gettext("Webhooks")),
        rows=tuple(
            WebhookRow(
                name=info.name,
                url=reverse("ui:webhook", args=[info.id]),
                host=info.host,
                owner=info.owner,
                kind=KINDS[info.kind],
                events=_events(info),
                scope=_scope(info),
                state=_state(info),
            )
            for info in rows
        ),
        add=Action(label=gettext("Add webhook"), url=reverse("ui:webhook_add"), tone="primary", icon="plus"),
    )


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


def webhook_form(request: HttpRequest, webhook: str = "", *, problem: SchemadeskError | None = None) -> WebhookForm:
    """The form of a new or existing webhook. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    selectors.person_of(actor)
    info = selectors.get_webhook(actor, webhook) if webhook else None
    values = sent_fields(request) if request.method == "POST" else _stored(info)
    url = reverse("ui:webhook_edit", args=[info.id]) if info else reverse("ui:webhook_add")
    return WebhookForm(
        frame=make_frame(request, title=gettext("Edit %(info)s") % {"info": info.name} if info else gettext("Add webhook"), crumbs=_crumbs(info)),
        fields=(
            Field(name="name", label=gettext("Name"), value=values["name"], required=True, help=gettext("A name that people here recognize.")),
            Field(
                name="url", label=gettext("Address"), value=values["url"], required=True, code=True,
                placeholder="https://ci.example.com/hooks/schemas",
                help=gettext("Starts with http:// or https://, without a query string. Redirects are not followed."),
            ),
            Field(
                name="kind", label=gettext("Sends"), kind="select", required=True,
                choices=tuple(Choice(value=kind, label=label, selected=kind == values["kind"]) for kind, label in KINDS.items()),
                help=gettext("Chat programs don’t read JSON events or check signatures. Keep the address of a chat webhook"
            " secret."),
            ),
            Field(name="registry_pattern", label=gettext("Registries"), value=values["registry_pattern"], required=True, code=True),
            Field(
                name="subject_pattern", label=gettext("Subjects"), value=values["subject_pattern"], required=True, code=True,
                help=gettext("A pattern: * matches any text, ? matches one character."),
            ),
        ),
        events=tuple(
            Choice(value=event, label=EVENTS[event].title, selected=event in values["events"])
            for event in FOR_WEBHOOKS
        ),
        submit=Action(label=gettext("Save webhook") if info else gettext("Add webhook"), url=url, method="post", tone="primary"),
        back_url=reverse("ui:webhook", args=[info.id]) if info else reverse("ui:webhooks"),
        problem=Problem(what=problem.message, cure=gettext("Nothing was saved. Correct the form below.")) if problem else None,
    )  # fmt: skip


def sent_fields(request: HttpRequest) -> dict[str, Any]:
    """A webhook's fields as the form sent them."""
    names = ("name", "url", "registry_pattern", "subject_pattern")
    kind = request.POST.get("kind", SIGNED)
    return {
        **{name: request.POST.get(name, "") for name in names},
        "kind": kind,
        "events": request.POST.getlist("events"),
    }


def _stored(info: WebhookInfo | None) -> dict[str, Any]:
    if info is None:
        return {"name": "", "url": "", "kind": SIGNED, "registry_pattern": "*", "subject_pattern": "*", "events": ()}
    return {
        "name": info.name,
        "url": info.url,
        "kind": info.kind,
        "registry_pattern": info.registry_pattern,
        "subject_pattern": info.subject_pattern,
        "events": info.events,
    }


def webhook_page(request: HttpRequest, webhook: str, *, secret: str = "") -> WebhookPage:
    """One webhook with its log, and with its key if it was just created or rotated. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    info = selectors.get_webhook(actor, webhook)
    before = number_in(request.GET.get("before", ""))
    deliveries = selectors.list_deliveries(actor, webhook, before=before, limit=selectors.PAGE + 1)
    rows, more = deliveries[: selectors.PAGE], len(deliveries) > selectors.PAGE
    reason = _refusal(actor, info)
    return WebhookPage(
        frame=make_frame(request, title=info.name, crumbs=_crumbs()),
        id=info.id,
        url=info.url,
        owner=info.owner,
        events=_events(info),
        scope=_scope(info),
        kind=KINDS[info.kind],
        key_version=info.key_version if info.kind == SIGNED else 0,
        state=_state(info),
        disabled_reason=info.disabled_reason,
        failing_since=info.failing_since,
        actions=_actions(info, reason),
        rows=tuple(_delivery(item, info, reason) for item in rows),
        paging=older(reverse("ui:webhook", args=[info.id]), {}, [item.id for item in rows], more=more),
        secret=secret,
    )


def _refusal(actor: Actor, info: WebhookInfo) -> str:
    return refusal(actor, "webhook.manage", registry=info.registry_pattern, subject=info.subject_pattern)


def _actions(info: WebhookInfo, reason: str) -> tuple[Action, ...]:
    def act(label: str, page: str, *, method: str = "post", tone: str = "plain", why_not: str = "") -> Action:
        return Action(
            label=label, url=reverse(f"ui:{page}", args=[info.id]), method=method, tone=tone,
            allowed=not (reason or why_not), reason=reason or why_not,
        )  # fmt: skip

    off = "" if info.active else gettext("The webhook is turned off.")
    return (
        act(gettext("Send test message"), "webhook_test", why_not=off),
        act(gettext("Edit"), "webhook_edit", method="get"),
        act(gettext("Turn off") if info.active else gettext("Turn on"), "webhook_switch"),
        *((act(gettext("Rotate key"), "webhook_rotate"),) if info.kind == SIGNED else ()),
        act(gettext("Remove"), "webhook_remove", method="get", tone="danger"),
    )


def _delivery(item: DeliveryInfo, info: WebhookInfo, reason: str) -> DeliveryRow:
    done = item.state in ("delivered", "failed")
    return DeliveryRow(
        message_id=item.message_id,
        title=selectors.title_of(item.event),
        text=item.text,
        state=DELIVERIES[item.state],
        created_at=item.created_at,
        next_at=item.next_attempt_at if item.tries else None,
        tries=tuple(
            TryRow(
                at=one.at,
                result=one.error or gettext("The server answered %(status)s.") % {"status": one.status},
                excerpt=one.excerpt,
                seconds=f"{one.seconds:.2f} s",
            )
            for one in item.tries
        ),
        replay=Action(
            label=gettext("Resend"), url=reverse("ui:webhook_replay", args=[info.id, item.id]), method="post",
            allowed=not reason, reason=reason,
        )
        if done
        else None,
    )  # fmt: skip


def remove_page(request: HttpRequest, webhook: str) -> ConfirmPage:
    """The confirmation of removing a webhook. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    info = selectors.get_webhook(actor, webhook)
    reason = _refusal(actor, info)
    return ConfirmPage(
        frame=make_frame(request, title=gettext("Remove %(info)s") % {"info": info.name}, crumbs=_crumbs(info)),
        sentence=gettext("This webhook will send nothing more to %(host)s. Queued messages are dropped.") % {"host": info.host},
        losses=(gettext("The delivery log"), gettext("The signing key; a new webhook gets a new key")),
        stays=(gettext("Messages that were sent"), gettext("The removal’s entry in the audit log")),
        confirm=Action(
            label=gettext("Remove webhook"), url=reverse("ui:webhook_remove", args=[info.id]), method="post",
            allowed=not reason, reason=reason, tone="danger",
        ),
        back_url=reverse("ui:webhook", args=[info.id]),
    )  # fmt: skip
