"""Pages of registries: what is there, and connecting those elsewhere. Every button works without JavaScript."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages import registries as pages
from dashboard.pages import registries_form as forms
from dashboard.pages.frame import page_actor
from registry.access.roles import may_somewhere, require
from registry.errors import Conflict, Forbidden, SchemadeskError
from registry.subjects.services.remotes import (
    add_remote_registry,
    remove_remote_registry,
    try_registry,
    update_remote_registry,
)
from registry.subjects.services.sync_queue import request_sync
from registry.subjects.tasks import sync_remote


@require_safe
def registry_list(request: HttpRequest) -> HttpResponse:
    """All registries, with how fresh their mirrors are."""
    if not may_somewhere(page_actor(request), "schema.read"):
        require(page_actor(request), "schema.read")
    return render(request, "registries/list.html", {"page": pages.registries_page(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """The form of a new registry; sent, it is tested, or connected."""
    return _form(request, "")


@require_http_methods(["GET", "HEAD", "POST"])
def connection(request: HttpRequest, registry: str) -> HttpResponse:
    """The form of a mirror; sent, it is tested, or changed."""
    return _form(request, registry)


def _form(request: HttpRequest, registry: str) -> HttpResponse:
    actor = page_actor(request)
    require(actor, "registry.manage", registry=registry)
    problem, found = None, None
    if request.method == "POST":
        try:
            if request.POST.get("do") == "test":
                found = try_registry(by=actor, **forms.sent_address(request.POST))
            else:
                return _keep(request, registry)
        except Forbidden:
            raise
        except SchemadeskError as error:
            problem = error
    page = forms.registry_form(request, registry, problem=problem, found=found)
    return render(request, "registries/form.html", {"page": page}, status=422 if problem else 200)


def _keep(request: HttpRequest, registry: str) -> HttpResponse:
    actor, fields = page_actor(request), forms.sent_fields(request.POST)
    if registry:
        update_remote_registry(name=registry, by=actor, **fields)
        number = request_sync(name=registry, by=actor)
        messages.success(request, gettext("Saved. It is read anew now."))
    else:
        name = request.POST.get("name", "").strip()
        number = add_remote_registry(name=name, by=actor, **fields)
        messages.success(request, gettext("%(name)s is connected and read for the first time.") % {"name": name})
    if number is not None:
        sync_remote.delay_on_commit(number)
    return redirect("ui:registries")


@require_POST
def test(request: HttpRequest, registry: str) -> HttpResponse:
    """Test the connection of a mirror as it is."""
    found = try_registry(by=page_actor(request), **forms.stored_address(request, registry))
    page = forms.registry_form(request, registry, found=found)
    return render(request, "registries/form.html", {"page": page})


@require_POST
def refresh(request: HttpRequest, registry: str) -> HttpResponse:
    """Have a mirror read now; once, however often it is asked for."""
    number = request_sync(name=registry, by=page_actor(request))
    if number is None:
        messages.info(request, gettext("A sync of %(name)s is under way already.") % {"name": registry})
    else:
        sync_remote.delay_on_commit(number)
        messages.success(request, gettext("%(name)s is read anew now.") % {"name": registry})
    back = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return redirect(back if is_ours else "ui:registries")


@require_http_methods(["GET", "HEAD", "POST"])
def disconnect(request: HttpRequest, registry: str) -> HttpResponse:
    """What ending a mirror loses; sent, it is ended."""
    problem = None
    require(page_actor(request), "registry.manage", registry=registry)
    if request.method == "POST":
        try:
            remove_remote_registry(name=registry, by=page_actor(request))
        except Conflict as error:
            problem = error
        else:
            messages.success(request, gettext("%(name)s is disconnected.") % {"name": registry})
            return redirect("ui:registries")
    page = forms.disconnect_page(request, registry, problem)
    return render(request, "drift/confirm.html", {"page": page}, status=409 if problem else 200)
