"""Home, the demo's button, the theme."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.pages import home as pages
from dashboard.pages.frame import page_actor
from dashboard.tasks import run_demo
from registry.access.extent import require_extent
from registry.errors import NotAllowed

THEMES = ("light", "dark", "system")
YEAR = 365 * 24 * 3600


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The inbox; or, where its own page asks so, only whether it is to be loaded again."""
    require_extent(page_actor(request), "schema.read")
    if getattr(request, "htmx", None) and "shown" in request.GET:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"} if pages.is_home_changed(request) else {})
    return render(request, "home/home.html", {"page": pages.home_page(request)})


@require_POST
def demo_load(request: HttpRequest) -> HttpResponse:
    """Start the demo in the background; only under `up` on one's own machine."""
    if not settings.UNDER_UP:
        raise NotAllowed(gettext("The demo is loaded under `manage.py up` alone."))
    run_demo.delay()
    messages.info(request, gettext("The demo is loading; its first findings come in about a minute."))
    return redirect("ui:home")


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the chosen theme in a cookie and go back to where the choice was made."""
    chosen = request.POST.get("theme", "")
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    response = redirect(back if safe else "ui:home")
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=YEAR, samesite="Lax", httponly=True, secure=request.is_secure())
    return response
