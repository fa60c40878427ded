"""Pages of sources, scans and findings."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages import findings, sources
from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.views.parts import render_page
from registry.access.roles import require
from registry.drift import selectors, services
from registry.drift.tasks import run_scan
from registry.errors import Conflict, InvalidInput, NotSignedIn, SchemadeskError


@require_safe
def source_list(request: HttpRequest) -> HttpResponse:
    """All sources with their last scans."""
    require(page_actor(request), "schema.read")
    return render(request, "drift/sources.html", {"page": sources.source_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def source_add(request: HttpRequest) -> HttpResponse:
    """The form for a topic or a checkpoint; sent, it looks that it is there, adds it and scans it."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn("Sign in to add a source.")
    problem = None
    if request.method == "POST":
        try:
            every = request.POST.get("every_seconds", "").strip()
            seconds = whole_number(every)
            if every and seconds is None:
                raise InvalidInput(f"{every[:20]!r} is not a number of seconds.")
            number = services.add_source(
                registry=request.POST.get("registry", ""),
                kind=request.POST.get("kind", ""),
                name=request.POST.get("name", "").strip(),
                bootstrap=request.POST.get("bootstrap", "").strip(),
                every_seconds=seconds,
                by=actor,
            )
        except SchemadeskError as error:
            problem = error
        else:
            run_scan.delay_on_commit(services.queue_scan(source_id=number, by=actor))
            return redirect("ui:source", number)
    page = sources.source_form(request, problem)
    return render(request, "drift/source_add.html", {"page": page}, status=422 if problem else 200)


@require_safe
def source_page(request: HttpRequest, source_id: int) -> HttpResponse:
    """A source: its last scans, what they read, its findings."""
    require(page_actor(request), "schema.read")
    return render(request, "drift/source.html", {"page": sources.source_page(request, source_id)})


@require_POST
def source_scan(request: HttpRequest, source_id: int) -> HttpResponse:
    """Scan now; htmx gets the scan's progress, a browser without it the source's page."""
    scan_id = services.queue_scan(source_id=source_id, by=page_actor(request))
    run_scan.delay_on_commit(scan_id)
    return _progress(request, scan_id) if getattr(request, "htmx", None) else redirect("ui:source", source_id)


@require_safe
def scan_progress(request: HttpRequest, scan_id: int) -> HttpResponse:
    """The part of a source's page that shows a scan: it asks for itself again while the scan runs."""
    require(page_actor(request), "schema.read")
    return _progress(request, scan_id)


def _progress(request: HttpRequest, scan_id: int) -> HttpResponse:
    return render(request, "drift/progress.html", {"progress": sources.progress_of(selectors.get_scan(scan_id))})


@require_safe
def finding_list(request: HttpRequest) -> HttpResponse:
    """What needs a decision."""
    require(page_actor(request), "schema.read")
    return render_page(request, "drift/findings.html", findings.finding_list(request), {"list": "list"})


@require_safe
def finding_page(request: HttpRequest, finding_id: int) -> HttpResponse:
    """A finding with its evidence."""
    require(page_actor(request), "schema.read")
    return render(request, "drift/finding.html", {"page": findings.finding_page(request, finding_id)})


@require_POST
def finding_acknowledge(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Take note of it, with a reason."""
    try:
        services.acknowledge(finding_id=finding_id, reason=request.POST.get("reason", ""), by=page_actor(request))
        messages.success(request, "Acknowledged.")
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
    return redirect("ui:finding", finding_id)
