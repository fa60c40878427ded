"""Several subjects at once: exported into a file, and deprecated."""

from __future__ import annotations

import io

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from dashboard.pages import several as pages
from dashboard.pages.frame import page_actor
from dashboard.pages.notes import chosen_subjects
from dashboard.pages.sources_values import end_of_day
from dashboard.pages.sources_words import given_text
from registry.access.roles import require
from registry.errors import InvalidInput
from registry.subjects.services.several import deprecate_several, export_subjects

TEMPLATE = "subjects/deprecate.html"


@require_POST
def export(request: HttpRequest, registry: str) -> HttpResponse:
    """The chosen subjects as a zip."""
    actor = page_actor(request)
    require(actor, "schema.read", registry=registry)
    file = io.BytesIO()
    export_subjects(registry=registry, subjects=chosen_subjects(request.POST.getlist("subject")), file=file, by=actor)
    headers = {"Content-Disposition": 'attachment; filename="subjects.zip"'}
    return HttpResponse(file.getvalue(), content_type="application/zip", headers=headers)


@require_POST
def deprecate(request: HttpRequest, registry: str) -> HttpResponse:
    """Show what would become of the chosen subjects; confirmed, do it and say what became of each."""
    page, post = pages.deprecate_page(request, registry), request.POST
    if page.problem is not None or post.get("confirmed") != "yes":
        return render(request, TEMPLATE, {"page": page}, status=422 if page.problem else 200)
    try:
        done = deprecate_several(
            registry=registry,
            subjects=chosen_subjects(post.getlist("subject")),
            message=given_text(post, "message"),
            ends_at=end_of_day(post.get("ends_at", "")),
            by=page_actor(request),
        )
    except InvalidInput as error:
        page = pages.deprecate_page(request, registry, error=error.message)
        return render(request, TEMPLATE, {"page": page}, status=422)
    return render(request, TEMPLATE, {"page": pages.done_page(request, registry, done)})
