"""The page of ghosts; they are adopted and quarantined by the addresses of their subjects."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.pages.ghosts import ghosts_page
from dashboard.travel import travels
from dashboard.views.parts import render_page


@require_safe
@travels
def ghosts(request: HttpRequest) -> HttpResponse:
    """Versions that came without a request; htmx gets the list alone."""
    return render_page(request, "promotions/ghosts.html", ghosts_page(request), {"list": "list"})
