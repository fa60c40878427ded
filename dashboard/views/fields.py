"""The page of one field."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.pages.fields import field_page
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from dashboard.travel import travels
from registry.access.roles import require
from registry.errors import InvalidInput
from registry.subjects.names import parse_subject


@require_safe
@travels
def field(request: HttpRequest) -> HttpResponse:
    """The biography of the field at `path` of `subject` in `registry`."""
    registry, subject, path = (given_text(request.GET, name) for name in ("registry", "subject", "path"))
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)
    if not (registry and path):
        raise InvalidInput(
            gettext("Name a registry, a subject and the path of a field: /ui/fields?registry=…&subject=…&path=…")
        )
    page = field_page(request, registry, subject, path)
    return render(request, "fields/field.html", {"page": page}, status=404 if page.problem else 200)
