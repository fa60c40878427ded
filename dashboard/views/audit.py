"""The audit log, as a page and as a file."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.pages import audit as pages
from dashboard.travel import travels


@require_safe
@travels
def audit(request: HttpRequest) -> HttpResponse:
    """The log of every change, as far as the reader may see it."""
    return render(request, "audit/list.html", {"page": pages.audit_list(request)})


@require_safe
def audit_export(request: HttpRequest) -> StreamingHttpResponse:
    """All of it that the filters leave, to be saved."""
    export = pages.audit_export(request)
    response = StreamingHttpResponse(export.text, content_type=export.media)
    response["Content-Disposition"] = f'attachment; filename="{export.name}"'
    return response
