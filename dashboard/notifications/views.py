"""Views of the inbox, subscriptions and webhooks. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.forms import ConfirmView, FormPage, ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor
from dashboard.notifications import page as pages
from dashboard.notifications.forms import RemoveWebhookForm, SubscribeForm, WebhookEditForm, WebhookForm
from registry.access.roles import may_somewhere, require
from registry.errors import Conflict, InvalidInput
from registry.notifications import selectors
from registry.notifications import services as inbox_services
from registry.notifications import webhooks as webhook_services
from registry.notifications.digests import stop_digest

SUBSCRIPTIONS: Final = "notifications/subscriptions.html"
FORM: Final = "notifications/webhook_form.html"
SUBSCRIBE: Final = "notification.subscribe"


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Show the inbox."""
    return render(request, "notifications/inbox.html", {"page": pages.inbox_page(request)})


@require_POST
def mark_read(request: HttpRequest) -> HttpResponse:
    """Mark an entry as read, or all up to the newest that the page showed."""
    entry = pages.number_in(request.POST.get("entry", ""))
    up_to = pages.number_in(request.POST.get("up_to", ""))
    if (entry is None) == (up_to is None):
        raise InvalidInput(gettext("Name one entry, or the newest entry up to which all are read."))
    inbox_services.mark_read(by=page_actor(request), entries=None if entry is None else [entry], up_to=up_to)
    back = request.POST.get("next", "")
    return redirect(back if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}) else "ui:inbox")


class SubscriptionFormView(ServiceFormView):
    """A form on the page of subscriptions; the first form's URL also shows the page."""

    http_method_names = ["get", "head", "post"]
    form_class = SubscribeForm
    next_page = "ui:subscriptions"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the page."""
        return render(request, SUBSCRIPTIONS, {"page": pages.subscriptions_page(request)})

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form if the person may subscribe to anything."""
        if not may_somewhere(page_actor(request), SUBSCRIBE):
            require(page_actor(request), SUBSCRIBE)
        return super().post(request, **route)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        page = pages.subscriptions_page(self.request, form)
        return render(self.request, SUBSCRIPTIONS, {"page": page}, status=form.response_status)


@csrf_exempt  # mail clients post without one of our pages; the signed token in the URL authorizes the request
@require_http_methods(["GET", "HEAD", "POST"])
def digest_stop(request: HttpRequest, token: str) -> HttpResponse:
    """Ask before ending digests, because mail clients open links automatically; end them on POST."""
    if request.method == "POST":
        stop_digest(token=token)
        return render(request, "notifications/stopped.html", {"page": pages.stop_page(request, token, done=True)})
    return render(request, "notifications/stopped.html", {"page": pages.stop_page(request, token)})


@require_POST
def unsubscribe(request: HttpRequest, subscription_id: int) -> HttpResponse:
    """Remove a subscription."""
    inbox_services.unsubscribe(subscription_id=subscription_id, by=page_actor(request))
    messages.success(request, gettext("Subscription removed."))
    return redirect("ui:subscriptions")


@require_safe
def webhook_list(request: HttpRequest) -> HttpResponse:
    """Show the webhooks that the reader may see."""
    return render(request, "notifications/webhooks.html", {"page": pages.webhooks_page(request)})


class WebhookFormView(ServiceFormView):
    """The form of a new webhook; on POST, it shows the webhook with its key, once."""

    http_method_names = ["get", "head", "post"]
    form_class = WebhookForm

    def get(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Show the form."""
        return render(request, FORM, {"page": pages.webhook_form(request, **route)})

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the form with its errors."""
        page = pages.webhook_form(self.request, **route, sent=form)
        return render(self.request, FORM, {"page": page}, status=form.response_status)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the webhook with its key."""
        return _with_key(self.request, form.result)


class WebhookEditView(WebhookFormView):
    """The form that edits a webhook."""

    form_class = WebhookEditForm

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the webhook."""
        messages.success(self.request, form.success)
        return redirect("ui:webhook", route["webhook"])


def _with_key(request: HttpRequest, made: webhook_services.NewKey) -> HttpResponse:
    """Show the webhook's page with its key, which isn't stored in a message or session."""
    page = pages.webhook_page(request, made.webhook, secret=made.secret)
    response = render(request, "notifications/webhook.html", {"page": page})
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def webhook_page(request: HttpRequest, webhook: str) -> HttpResponse:
    """Show a webhook with its log."""
    return render(request, "notifications/webhook.html", {"page": pages.webhook_page(request, webhook)})


class WebhookRemoveView(ConfirmView):
    """The confirmation of removing a webhook."""

    form_class = RemoveWebhookForm
    next_page = "ui:webhooks"

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page."""
        return pages.remove_page(self.request, form, **route)


@require_POST
def webhook_rotate(request: HttpRequest, webhook: str) -> HttpResponse:
    """Rotate the key; the new one is shown once."""
    return _with_key(request, webhook_services.rotate_key(webhook=webhook, by=page_actor(request)))


def _act(request: HttpRequest, webhook: str, message: str, action: Callable[[], object]) -> HttpResponse:
    try:
        action()
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, message)
    return redirect("ui:webhook", webhook)


@require_POST
def webhook_test(request: HttpRequest, webhook: str) -> HttpResponse:
    """Queue a test message."""
    test = partial(webhook_services.send_test, webhook=webhook, by=page_actor(request))
    return _act(request, webhook, gettext("Test message queued."), test)


@require_POST
def webhook_switch(request: HttpRequest, webhook: str) -> HttpResponse:
    """Turn a webhook on or off."""
    actor = page_actor(request)
    on = not selectors.get_webhook(actor, webhook).active
    message = gettext("Webhook turned on. Queued messages will be sent.") if on else gettext("Webhook turned off.")
    switch = partial(webhook_services.update_webhook, webhook=webhook, changes={"active": on}, by=actor)
    return _act(request, webhook, message, switch)


@require_POST
def webhook_replay(request: HttpRequest, webhook: str, delivery_id: int) -> HttpResponse:
    """Deliver a message again."""
    replay = partial(webhook_services.replay, webhook=webhook, delivery_id=delivery_id, by=page_actor(request))
    return _act(request, webhook, gettext("Delivery queued again, with the same webhook-id."), replay)
