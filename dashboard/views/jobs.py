"""What runs in the background."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.pages.frame import page_actor
from dashboard.pages.jobs import jobs_page
from registry.access.roles import require


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """Scans, mirrors, what is applied and delivered, the index and the seals; for who may read the audit."""
    require(page_actor(request), "audit.read")
    return render(request, "jobs/jobs.html", {"page": jobs_page(request)})
