"""Pages of sources, scans and clusters."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor, render_page
from dashboard.sources import clusters
from dashboard.sources import forms as sources_forms
from dashboard.sources import page as sources
from dashboard.sources.discovery import discover_page
from dashboard.sources.forms import config_values, scan_values
from dashboard.sources.labels import given_text
from registry.access.roles import Actor, require
from registry.drift import selectors, services
from registry.drift.sources import SOURCES, kind_of
from registry.drift.tasks import interrupt_scan, run_scan
from registry.errors import Conflict, Forbidden, NotSignedIn, SchemadeskError
from registry.streams.services import discover


@require_safe
def source_list(request: HttpRequest) -> HttpResponse:
    """All clusters and sources with their last scans."""
    return render(request, "drift/sources.html", {"page": sources.source_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def source_add(request: HttpRequest) -> HttpResponse:
    """The form for topics, a checkpoint, a connector or a registry; sent, it looks that it is there, and scans it."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to add a source."))
    problem = None
    if request.method == "POST":
        try:
            number = _add(request, actor)
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = error
        else:
            run_scan.delay_on_commit(services.queue_scan(source_id=number, by=actor))
            return redirect("ui:source", number)
    page = sources_forms.source_form(request, problem)
    return render(request, "drift/source_add.html", {"page": page}, status=422 if problem else 200)


def _add(request: HttpRequest, actor: Actor) -> int:
    """Add what the form names; topics without patterns are those of the source's name."""
    post = request.POST
    kind, name, cluster = (given_text(post, field) for field in ("kind", "name", "cluster"))
    values = scan_values(post) | config_values(kind_of(kind), post)
    if kind_of(kind).connects:
        values.setdefault("include", [name])
        cluster = cluster or services.cluster_at(bootstrap=given_text(post, "bootstrap"), by=actor)
    return services.add_source(
        registry=given_text(post, "registry"), kind=kind, name=name, cluster=cluster, by=actor, **values
    )


@require_http_methods(["GET", "HEAD", "POST"])
def source_discover(request: HttpRequest) -> HttpResponse:
    """The checkpoints below a folder or an address, each with a form that adds it as a source."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to find checkpoints."))
    discovery, problem = None, None
    if request.method == "POST":
        path, registry = given_text(request.POST, "path"), given_text(request.POST, "registry")
        try:
            values = config_values(SOURCES["state_store"], request.POST)
            discovery = discover(path=path, registry=registry, store=values.get("store"), by=actor)
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = error
    page = discover_page(request, discovery, problem)
    return render(request, "drift/discover.html", {"page": page}, status=422 if problem else 200)


@require_safe
def source_page(request: HttpRequest, source_id: int) -> HttpResponse:
    """A source: its topics, its last scans, what they read, its findings; htmx gets the topics alone."""
    return render_page(request, "drift/source.html", sources.source_page(request, source_id), {"topics": "topics"})


@require_http_methods(["GET", "HEAD", "POST"])
def source_edit(request: HttpRequest, source_id: int) -> HttpResponse:
    """How a source is scanned from now on."""
    problem = None
    if request.method == "POST":
        try:
            actor = page_actor(request)
            kind = kind_of(selectors.get_source(source_id, by=actor).kind)
            values = scan_values(request.POST) | config_values(kind, request.POST)
            services.update_source(source_id=source_id, by=actor, **values)
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = error
        else:
            messages.success(request, gettext("Saved."))
            return redirect("ui:source", source_id)
    page = sources_forms.edit_form(request, source_id, problem)
    return render(request, "drift/source_add.html", {"page": page}, status=422 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def source_remove(request: HttpRequest, source_id: int) -> HttpResponse:
    """What removing a source loses; sent, it is removed."""
    problem = None
    if request.method == "POST":
        try:
            services.remove_source(source_id=source_id, by=page_actor(request))
        except Conflict as error:
            problem = error
        else:
            messages.success(request, gettext("Source removed."))
            return redirect("ui:sources")
    page = sources_forms.remove_page(request, source_id, problem)
    return render(request, "drift/confirm.html", {"page": page}, status=409 if problem else 200)


@require_POST
def source_scan(request: HttpRequest, source_id: int) -> HttpResponse:
    """Scan now; htmx gets the scan's progress, a browser without it the source's page."""
    scan_id = services.queue_scan(source_id=source_id, by=page_actor(request))
    run_scan.delay_on_commit(scan_id)
    return _progress(request, scan_id) if getattr(request, "htmx", None) else redirect("ui:source", source_id)


@require_safe
def scan_progress(request: HttpRequest, scan_id: int) -> HttpResponse:
    """The part of a source's page that shows a scan: it asks for itself again while the scan runs."""
    return _progress(request, scan_id, watched=True)


@require_POST
def scan_cancel(request: HttpRequest, scan_id: int) -> HttpResponse:
    """End a scan; what earlier scans found stays."""
    source_id = selectors.get_scan(scan_id, by=page_actor(request)).source_id
    try:
        tag = services.cancel_scan(scan_id=scan_id, by=page_actor(request))
    except Conflict as error:
        messages.warning(request, error.message)
    else:
        if tag:
            interrupt_scan.delay_on_commit(tag)
        messages.success(request, gettext("Scan cancelled. Findings of earlier scans don’t change."))
    return redirect("ui:source", source_id)


def _progress(request: HttpRequest, scan_id: int, *, watched: bool = False) -> HttpResponse:
    """A scan as it stands; with the end of one that was `watched` the whole page is other, so it is loaded again."""
    scan = selectors.get_scan(scan_id, by=page_actor(request))
    source = selectors.get_source(scan.source_id)
    response = render(request, "drift/progress.html", {"progress": sources.progress_of(request, scan, source)})
    if watched and getattr(request, "htmx", None) and not scan.unfinished:
        response["HX-Refresh"] = "true"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def cluster_add(request: HttpRequest) -> HttpResponse:
    """The form of a new cluster; sent, it is tested, or connected once it answers."""
    return _form(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
def cluster_edit(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """The form of a cluster; sent, it is tested, or changed once it answers."""
    return _form(request, cluster_id)


def _form(request: HttpRequest, number: int | None) -> HttpResponse:
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to connect a cluster."))
    require(actor, "schema.read")
    problem, answered = None, ""
    if request.method == "POST":
        try:
            fields = clusters.sent_fields(request.POST)
            if request.POST.get("do") == "test":
                answered = clusters.try_connection(request, fields)
            else:
                return _keep(request, number, fields)
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = error
    page = clusters.cluster_form(request, number, problem=problem, answered=answered)
    return render(request, "drift/cluster_form.html", {"page": page}, status=422 if problem else 200)


def _keep(request: HttpRequest, number: int | None, fields: dict[str, str]) -> HttpResponse:
    actor = page_actor(request)
    if number is None:
        services.connect_cluster(by=actor, **fields)
        messages.success(request, gettext("%(name)s connected.") % {"name": fields["name"]})
    else:
        cluster = clusters.cluster_at(number)
        changes = {**fields, "rename": fields["name"]}
        services.update_cluster(by=actor, **{**changes, "name": cluster.name})
        messages.success(request, gettext("Saved."))
    return redirect("ui:sources")


@require_http_methods(["GET", "HEAD", "POST"])
def cluster_remove(request: HttpRequest, cluster_id: int) -> HttpResponse:
    """What removing a cluster means; sent, it is removed."""
    require(page_actor(request), "schema.read")
    problem = None
    if request.method == "POST":
        try:
            services.remove_cluster(name=clusters.cluster_at(cluster_id).name, by=page_actor(request))
        except Conflict as error:
            problem = error
        else:
            messages.success(request, gettext("Cluster removed."))
            return redirect("ui:sources")
    page = clusters.remove_page(request, cluster_id, problem)
    return render(request, "drift/confirm.html", {"page": page}, status=409 if problem else 200)
