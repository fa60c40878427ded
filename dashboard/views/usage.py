"""Pages of the use of versions, and of a pasted message."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.pages import decode as pasted
from dashboard.pages import usage as uses
from dashboard.pages.frame import page_actor
from dashboard.views.parts import render_page
from registry.access.roles import require
from registry.subjects.names import parse_subject


@require_safe
def usage(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Whether versions can be retired; htmx gets the answer alone, with what the clusters say now."""
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)
    return render_page(request, "subjects/usage.html", uses.usage_page(request, registry, subject), {"usage": "usage"})


@sensitive_post_parameters("message", "headers")
@require_http_methods(["GET", "HEAD", "POST"])
def decode(request: HttpRequest) -> HttpResponse:
    """From a message to its schema and value; nothing of it is kept."""
    page = pasted.decode_page(request)
    return render(request, "drift/decode.html", {"page": page}, status=422 if page.problem else 200)
