"""Pages of the inbox, of subscriptions and of webhooks. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor
from dashboard.components.links import whole_number
from dashboard.notifications import inbox as inbox_pages
from dashboard.notifications import webhooks as webhook_pages
from registry.errors import Conflict, InvalidInput, NotAllowed, SchemadeskError
from registry.notifications import selectors
from registry.notifications import services as inbox_services
from registry.notifications import webhooks as webhook_services
from registry.notifications.digests import choose_digest, stop_digest


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """The inbox."""
    return render(request, "notifications/inbox.html", {"page": inbox_pages.inbox_page(request)})


@require_POST
def mark_read(request: HttpRequest) -> HttpResponse:
    """Mark one entry as read, or all up to the newest that the page showed."""
    entry = inbox_pages.number_in(request.POST.get("entry", ""))
    up_to = inbox_pages.number_in(request.POST.get("up_to", ""))
    if (entry is None) == (up_to is None):
        raise InvalidInput(gettext("Name one entry, or the newest entry up to which all are read."))
    inbox_services.mark_read(by=page_actor(request), entries=None if entry is None else [entry], up_to=up_to)
    back = request.POST.get("next", "")
    return redirect(back if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}) else "ui:inbox")


@require_http_methods(["GET", "HEAD", "POST"])
def subscriptions(request: HttpRequest) -> HttpResponse:
    """One's subscriptions; the sent form adds one."""
    problem = None
    if request.method == "POST":
        try:
            inbox_services.subscribe(
                event=request.POST.get("event", ""),
                registry_pattern=request.POST.get("registry_pattern", ""),
                subject_pattern=request.POST.get("subject_pattern", ""),
                wanted=request.POST.get("wanted") != "no",
                by=page_actor(request),
            )
        except (InvalidInput, NotAllowed) as error:
            problem = error
        else:
            messages.success(request, gettext("Subscription saved."))
            return redirect("ui:subscriptions")
    page = inbox_pages.subscriptions_page(request, problem)
    return render(request, "notifications/subscriptions.html", {"page": page}, status=status_of(problem))


@require_POST
def digest(request: HttpRequest) -> HttpResponse:
    """Set one's digest by mail, at an hour in the page's time zone."""
    problem = None
    try:
        choose_digest(
            every=request.POST.get("every", ""),
            hour=whole_number(request.POST.get("hour", ""), digits=2) or 0,
            zone=timezone.get_current_timezone_name(),
            by=page_actor(request),
        )
    except InvalidInput as error:
        problem = error
    else:
        messages.success(request, gettext("Digest saved."))
        return redirect("ui:subscriptions")
    page = inbox_pages.subscriptions_page(request, problem)
    return render(request, "notifications/subscriptions.html", {"page": page}, status=422)


@csrf_exempt  # mail programs send it without a page of ours; the signed token in the address authorizes it
@require_http_methods(["GET", "HEAD", "POST"])
def digest_stop(request: HttpRequest, token: str) -> HttpResponse:
    """The link in a digest: it asks first, since programs open links by themselves; when sent, digests end."""
    if request.method == "POST":
        stop_digest(token=token)
        return render(request, "notifications/stopped.html", {"page": inbox_pages.stop_page(request, token, done=True)})
    return render(request, "notifications/stopped.html", {"page": inbox_pages.stop_page(request, token)})


def status_of(problem: SchemadeskError | None) -> int:
    """The HTTP status of a form's page."""
    if problem is None:
        return 200
    return 403 if isinstance(problem, NotAllowed) else 422


@require_POST
def unsubscribe(request: HttpRequest, subscription_id: int) -> HttpResponse:
    """Remove a subscription."""
    inbox_services.unsubscribe(subscription_id=subscription_id, by=page_actor(request))
    messages.success(request, gettext("Subscription removed."))
    return redirect("ui:subscriptions")


@require_safe
def webhook_list(request: HttpRequest) -> HttpResponse:
    """The visible webhooks."""
    return render(request, "notifications/webhooks.html", {"page": webhook_pages.webhooks_page(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_add(request: HttpRequest) -> HttpResponse:
    """The form of a new webhook; when sent, the webhook with its key, shown once."""
    problem = None
    if request.method == "POST":
        try:
            made = webhook_services.create_webhook(by=page_actor(request), **webhook_pages.sent_fields(request))
        except (InvalidInput, Conflict, NotAllowed) as error:
            problem = error
        else:
            return _with_key(request, made)
    page = webhook_pages.webhook_form(request, problem=problem)
    return render(request, "notifications/webhook_form.html", {"page": page}, status=status_of(problem))


def _with_key(request: HttpRequest, made: webhook_services.NewKey) -> HttpResponse:
    """The webhook's page with its key, which no message or session stores."""
    page = webhook_pages.webhook_page(request, made.webhook, secret=made.secret)
    response = render(request, "notifications/webhook.html", {"page": page})
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def webhook_page(request: HttpRequest, webhook: str) -> HttpResponse:
    """One webhook with its log."""
    return render(request, "notifications/webhook.html", {"page": webhook_pages.webhook_page(request, webhook)})


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_edit(request: HttpRequest, webhook: str) -> HttpResponse:
    """The form of a webhook; when sent, the webhook is changed."""
    problem = None
    if request.method == "POST":
        try:
            webhook_services.update_webhook(
                webhook=webhook, changes=webhook_pages.sent_fields(request), by=page_actor(request)
            )
        except (InvalidInput, Conflict, NotAllowed) as error:
            problem = error
        else:
            messages.success(request, gettext("Webhook saved."))
            return redirect("ui:webhook", webhook)
    page = webhook_pages.webhook_form(request, webhook, problem=problem)
    return render(request, "notifications/webhook_form.html", {"page": page}, status=status_of(problem))


@require_http_methods(["GET", "HEAD", "POST"])
def webhook_remove(request: HttpRequest, webhook: str) -> HttpResponse:
    """The confirmation of a removal; when sent, the webhook is removed."""
    if request.method == "POST":
        webhook_services.remove_webhook(webhook=webhook, by=page_actor(request))
        messages.success(request, gettext("Webhook removed."))
        return redirect("ui:webhooks")
    return render(request, "drift/confirm.html", {"page": webhook_pages.remove_page(request, webhook)})


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
    return _act(
        request,
        webhook,
        gettext("Test message queued."),
        lambda: webhook_services.send_test(webhook=webhook, by=page_actor(request)),
    )


@require_POST
def webhook_switch(request: HttpRequest, webhook: str) -> HttpResponse:
    """Switch a webhook off or on."""
    actor = page_actor(request)
    on = not selectors.get_webhook(actor, webhook).active
    message = gettext("Webhook turned on. Queued messages will be sent.") if on else gettext("Webhook turned off.")
    return _act(
        request,
        webhook,
        message,
        lambda: webhook_services.update_webhook(webhook=webhook, changes={"active": on}, by=actor),
    )


@require_POST
def webhook_replay(request: HttpRequest, webhook: str, delivery_id: int) -> HttpResponse:
    """Deliver a message again."""
    return _act(
        request,
        webhook,
        gettext("Delivery queued again, with the same webhook-id."),
        lambda: webhook_services.replay(webhook=webhook, delivery_id=delivery_id, by=page_actor(request)),
    )
