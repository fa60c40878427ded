"""Pages that connect, change and remove clusters."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from dashboard.pages import clusters
from dashboard.pages.frame import page_actor
from registry.access.roles import require
from registry.drift import services
from registry.errors import Conflict, Forbidden, NotSignedIn, SchemadeskError


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
        messages.success(request, gettext("%(name)s is connected.") % {"name": fields["name"]})
    else:
        known = clusters.cluster_at(number)
        changes = {**fields, "rename": fields["name"]}
        services.update_cluster(by=actor, **{**changes, "name": known.name})
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
            messages.success(request, gettext("The cluster is removed."))
            return redirect("ui:sources")
    page = clusters.remove_page(request, cluster_id, problem)
    return render(request, "drift/confirm.html", {"page": page}, status=409 if problem else 200)
