"""Pages of the inbox and of subscriptions. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages import notifications as pages
from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from registry.errors import InvalidInput, NotAllowed, SchemadeskError
from registry.notifications import inbox as services
from registry.notifications.digests import choose_digest, stop_digest


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """What one was told."""
    return render(request, "notifications/inbox.html", {"page": pages.inbox_page(request)})


@require_POST
def mark_read(request: HttpRequest) -> HttpResponse:
    """Mark one entry as read, or all up to the newest that the page showed."""
    entry = pages.number_in(request.POST.get("entry", ""))
    up_to = pages.number_in(request.POST.get("up_to", ""))
    if (entry is None) == (up_to is None):
        raise InvalidInput(gettext("Name one entry, or up to which all were read."))
    services.mark_read(by=page_actor(request), entries=None if entry is None else [entry], up_to=up_to)
    back = request.POST.get("next", "")
    return redirect(back if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}) else "ui:inbox")


@require_http_methods(["GET", "HEAD", "POST"])
def subscriptions(request: HttpRequest) -> HttpResponse:
    """One's subscriptions; the form sent, a new one."""
    problem = None
    if request.method == "POST":
        try:
            services.subscribe(
                event=request.POST.get("event", ""),
                registry_pattern=request.POST.get("registry_pattern", ""),
                subject_pattern=request.POST.get("subject_pattern", ""),
                wanted=request.POST.get("wanted") != "no",
                by=page_actor(request),
            )
        except (InvalidInput, NotAllowed) as error:
            problem = error
        else:
            messages.success(request, gettext("Saved."))
            return redirect("ui:subscriptions")
    page = pages.subscriptions_page(request, problem)
    return render(request, "notifications/subscriptions.html", {"page": page}, status=status_of(problem))


@require_POST
def digest(request: HttpRequest) -> HttpResponse:
    """Choose one's digest by mail, at an hour of the zone that the page is shown in."""
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
        messages.success(request, gettext("Saved."))
        return redirect("ui:subscriptions")
    page = pages.subscriptions_page(request, problem)
    return render(request, "notifications/subscriptions.html", {"page": page}, status=422)


@csrf_exempt  # mail programs send it without a page of ours; the signed token in the address is what allows it
@require_http_methods(["GET", "HEAD", "POST"])
def digest_stop(request: HttpRequest, token: str) -> HttpResponse:
    """The link in a digest: asks, as programs open links by themselves; sent, there are no more."""
    if request.method == "POST":
        stop_digest(token=token)
        return render(request, "notifications/stopped.html", {"page": pages.stop_page(request, token, done=True)})
    return render(request, "notifications/stopped.html", {"page": pages.stop_page(request, token)})


def status_of(problem: SchemadeskError | None) -> int:
    """The status of a form's page."""
    if problem is None:
        return 200
    return 403 if isinstance(problem, NotAllowed) else 422


@require_POST
def unsubscribe(request: HttpRequest, subscription_id: int) -> HttpResponse:
    """Remove a subscription."""
    services.unsubscribe(subscription_id=subscription_id, by=page_actor(request))
    messages.success(request, gettext("Removed."))
    return redirect("ui:subscriptions")
