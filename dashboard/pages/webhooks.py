"""The pages of webhooks and their delivery logs."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.notifications import number_in, older
from dashboard.presenters.drift_parts import ConfirmPage
from dashboard.presenters.frame import Action, Choice, Crumb, Field, Problem
from dashboard.presenters.looks import Look
from dashboard.presenters.notifications import (
    DeliveryRow,
    TryRow,
    WebhookForm,
    WebhookPage,
    WebhookRow,
    WebhooksPage,
)
from registry.access.roles import Actor, refusal
from registry.errors import SchemadeskError
from registry.notifications import selectors
from registry.notifications.events import DISABLED, EVENTS, SUBSCRIBABLE
from registry.notifications.selectors import DeliveryInfo, WebhookInfo

ON: Final = Look("ok", "circle-check", "On")
FAILING: Final = Look("care", "triangle-alert", "Failing")
OFF: Final = Look("unknown", "circle-slash", "Off")
DELIVERIES: Final = {
    "queued": Look("unknown", "hourglass", "Queued"),
    "sending": Look("unknown", "send", "Sending"),
    "delivered": Look("ok", "circle-check", "Delivered"),
    "failed": Look("breaks", "octagon-x", "Given up"),
}


def webhooks_page(request: HttpRequest) -> WebhooksPage:
    """The webhooks that one sees. Raises NotSignedIn."""
    actor = page_actor(request)
    rows = selectors.list_webhooks(actor)
    return WebhooksPage(
        frame=make_frame(request, title="Webhooks"),
        rows=tuple(
            WebhookRow(
                name=info.name,
                url=reverse("ui:webhook", args=[info.id]),
                host=info.host,
                owner=info.owner,
                events=_events(info),
                place=_place(info),
                state=_state(info),
            )
            for info in rows
        ),
        add=Action(label="Add a webhook", url=reverse("ui:webhook_add"), tone="primary", icon="plus"),
    )


def _state(info: WebhookInfo) -> Look:
    if not info.active:
        return OFF
    return FAILING if info.failing_since else ON


def _events(info: WebhookInfo) -> str:
    return ", ".join(selectors.title_of(event) for event in info.events) or "All events"


def _place(info: WebhookInfo) -> str:
    subjects = "all subjects" if info.subject_pattern == "*" else f"subjects {info.subject_pattern}"
    return f"{subjects} in {'all registries' if info.registry_pattern == '*' else info.registry_pattern}"


def _crumbs(info: WebhookInfo | None = None) -> tuple[Crumb, ...]:
    top = (Crumb(label="Webhooks", url=reverse("ui:webhooks")),)
    return (*top, Crumb(label=info.name, url=reverse("ui:webhook", args=[info.id]))) if info else top


def webhook_form(request: HttpRequest, webhook: str = "", *, problem: SchemadeskError | None = None) -> WebhookForm:
    """The form of a new webhook, or of that one. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    selectors.person_of(actor)
    info = selectors.get_webhook(actor, webhook) if webhook else None
    given = sent_fields(request) if request.method == "POST" else _stored(info)
    url = reverse("ui:webhook_edit", args=[info.id]) if info else reverse("ui:webhook_add")
    return WebhookForm(
        frame=make_frame(request, title=f"Change {info.name}" if info else "Add a webhook", crumbs=_crumbs(info)),
        fields=(
            Field(name="name", label="Name", value=given["name"], required=True, help="How people call it here."),
            Field(
                name="url", label="Address", value=given["url"], required=True, code=True,
                placeholder="https://ci.example.com/hooks/schemas",
                help="http:// or https://, without a query. Redirects aren’t followed.",
            ),
            Field(name="registry_pattern", label="Registries", value=given["registry_pattern"], required=True, code=True),
            Field(
                name="subject_pattern", label="Subjects", value=given["subject_pattern"], required=True, code=True,
                help="A shell pattern: * is any, ? is one.",
            ),
        ),
        events=tuple(
            Choice(value=event, label=EVENTS[event].title, selected=event in given["events"])
            for event in (*SUBSCRIBABLE, DISABLED)
        ),
        submit=Action(label="Save" if info else "Add", url=url, method="post", tone="primary"),
        back_url=reverse("ui:webhook", args=[info.id]) if info else reverse("ui:webhooks"),
        problem=Problem(what=problem.message, cure="Nothing was saved.") if problem else None,
    )  # fmt: skip


def sent_fields(request: HttpRequest) -> dict[str, Any]:
    """A webhook's fields as the form sent them."""
    names = ("name", "url", "registry_pattern", "subject_pattern")
    return {**{name: request.POST.get(name, "") for name in names}, "events": request.POST.getlist("events")}


def _stored(info: WebhookInfo | None) -> dict[str, Any]:
    if info is None:
        return {"name": "", "url": "", "registry_pattern": "*", "subject_pattern": "*", "events": ()}
    return {
        "name": info.name,
        "url": info.url,
        "registry_pattern": info.registry_pattern,
        "subject_pattern": info.subject_pattern,
        "events": info.events,
    }


def webhook_page(request: HttpRequest, webhook: str, *, secret: str = "") -> WebhookPage:
    """One webhook with its log; with its key, where it was made or rotated just now. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    info = selectors.get_webhook(actor, webhook)
    before = number_in(request.GET.get("before", ""))
    found = selectors.list_deliveries(actor, webhook, before=before, limit=selectors.PAGE + 1)
    rows, more = found[: selectors.PAGE], len(found) > selectors.PAGE
    reason = _refusal(actor, info)
    return WebhookPage(
        frame=make_frame(request, title=info.name, crumbs=_crumbs()),
        id=info.id,
        url=info.url,
        owner=info.owner,
        events=_events(info),
        place=_place(info),
        key_version=info.key_version,
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

    off = "" if info.active else "It is switched off."
    return (
        act("Send a test message", "webhook_test", why_not=off),
        act("Change", "webhook_edit", method="get"),
        act("Switch off" if info.active else "Switch on", "webhook_switch"),
        act("Rotate the key", "webhook_rotate"),
        act("Remove", "webhook_remove", method="get", tone="danger"),
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
                result=one.error or f"The server answered {one.status}.",
                excerpt=one.excerpt,
                seconds=f"{one.seconds:.2f} s",
            )
            for one in item.tries
        ),
        replay=Action(
            label="Send again", url=reverse("ui:webhook_replay", args=[info.id, item.id]), method="post",
            allowed=not reason, reason=reason,
        )
        if done
        else None,
    )  # fmt: skip


def remove_page(request: HttpRequest, webhook: str) -> ConfirmPage:
    """What removing a webhook means. Raises NotFound, NotSignedIn."""
    actor = page_actor(request)
    info = selectors.get_webhook(actor, webhook)
    reason = _refusal(actor, info)
    return ConfirmPage(
        frame=make_frame(request, title=f"Remove {info.name}", crumbs=_crumbs(info)),
        sentence=f"Nothing more is sent to {info.host} through this webhook, messages that wait included.",
        losses=("its delivery log", "its key: a webhook that is made again has another"),
        stays=("what was sent", "the record of the removal in the audit log"),
        confirm=Action(
            label="Remove the webhook", url=reverse("ui:webhook_remove", args=[info.id]), method="post",
            allowed=not reason, reason=reason, tone="danger",
        ),
        back_url=reverse("ui:webhook", args=[info.id]),
    )  # fmt: skip
