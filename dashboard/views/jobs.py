"""What runs in the background."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.pages.frame import page_actor
from dashboard.pages.job_runs import run_page
from dashboard.pages.jobs import jobs_page
from registry.access.extent import require_extent
from registry.access.roles import require


@require_safe
def job_run(request: HttpRequest, number: int) -> HttpResponse:
    """The end of what the last run of a job logged; for who may read the whole audit, since a log is of no registry."""
    require(page_actor(request), "audit.read")
    return render(request, "jobs/run.html", {"page": run_page(request, number)})


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """What runs in the background, for who may read the audit of anything: each part with what they may read."""
    require_extent(page_actor(request), "audit.read")
    return render(request, "jobs/jobs.html", {"page": jobs_page(request)})
