"""Pages of webhooks. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages import webhooks as pages
from dashboard.pages.frame import page_actor
from dashboard.views.notifications import status_of
from registry.errors import Conflict, InvalidInput, NotAllowed
from registry.notifications import selectors
from registry.notifications import webhooks as services


@require_safe
def webhook_list(request: HttpRequest) -> HttpResponse:
    """The webhooks that one sees."""
    return render(request, "notifications/webhooks.html", {"page": pages.webhooks_page(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_add(request: HttpRequest) -> HttpResponse:
    """The form of a new webhook; sent, the webhook with its key, this one time."""
    problem = None
    if request.method == "POST":
        try:
            made = services.create_webhook(by=page_actor(request), **pages.sent_fields(request))
        except (InvalidInput, Conflict, NotAllowed) as error:
            problem = error
        else:
            return _with_key(request, made)
    page = pages.webhook_form(request, problem=problem)
    return render(request, "notifications/webhook_form.html", {"page": page}, status=status_of(problem))


def _with_key(request: HttpRequest, made: services.NewKey) -> HttpResponse:
    """The webhook's page with its key: in no message and no session, so that it is kept nowhere."""
    page = pages.webhook_page(request, made.webhook, secret=made.secret)
    response = render(request, "notifications/webhook.html", {"page": page})
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def webhook_page(request: HttpRequest, webhook: str) -> HttpResponse:
    """One webhook with its log."""
    return render(request, "notifications/webhook.html", {"page": pages.webhook_page(request, webhook)})


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_edit(request: HttpRequest, webhook: str) -> HttpResponse:
    """The form of a webhook; sent, it is changed."""
    problem = None
    if request.method == "POST":
        try:
            services.update_webhook(webhook=webhook, changes=pages.sent_fields(request), by=page_actor(request))
        except (InvalidInput, Conflict, NotAllowed) as error:
            problem = error
        else:
            messages.success(request, gettext("Saved."))
            return redirect("ui:webhook", webhook)
    page = pages.webhook_form(request, webhook, problem=problem)
    return render(request, "notifications/webhook_form.html", {"page": page}, status=status_of(problem))


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_remove(request: HttpRequest, webhook: str) -> HttpResponse:
    """What removing means; sent, it is removed."""
    if request.method == "POST":
        services.remove_webhook(webhook=webhook, by=page_actor(request))
        messages.success(request, gettext("The webhook is removed."))
        return redirect("ui:webhooks")
    return render(request, "drift/confirm.html", {"page": pages.remove_page(request, webhook)})


@require_POST
def webhook_rotate(request: HttpRequest, webhook: str) -> HttpResponse:
    """A new key, shown this one time."""
    return _with_key(request, services.rotate_key(webhook=webhook, by=page_actor(request)))


def _act(request: HttpRequest, webhook: str, said: str, action: Callable[[], object]) -> HttpResponse:
    try:
        action()
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return redirect("ui:webhook", webhook)


@require_POST
def webhook_test(request: HttpRequest, webhook: str) -> HttpResponse:
    """Queue a test message."""
    return _act(
        request,
        webhook,
        gettext("A test message is on its way."),
        lambda: services.send_test(webhook=webhook, by=page_actor(request)),
    )


@require_POST
def webhook_switch(request: HttpRequest, webhook: str) -> HttpResponse:
    """Switch it off, or on again."""
    actor = page_actor(request)
    on = not selectors.get_webhook(actor, webhook).active
    said = gettext("Switched on: what waited is on its way.") if on else gettext("Switched off.")
    return _act(
        request,
        webhook,
        said,
        lambda: services.update_webhook(webhook=webhook, changes={"active": on}, by=actor),
    )


@require_POST
def webhook_replay(request: HttpRequest, webhook: str, delivery_id: int) -> HttpResponse:
    """Deliver a message again."""
    return _act(
        request,
        webhook,
        gettext("It is sent again, with the same webhook-id."),
        lambda: services.replay(webhook=webhook, delivery_id=delivery_id, by=page_actor(request)),
    )
