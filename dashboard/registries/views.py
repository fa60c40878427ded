"""Views of registries: connections, archives of their contents, and policy, with their URLs.

Every button works without JavaScript.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.forms import ConfirmView, FormPage, FormPageView, ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor, render_page
from dashboard.components.links import form_text, subject_url, subjects_url
from dashboard.components.time_travel import travels
from dashboard.components.translation import counted
from dashboard.registries import archive, connections
from dashboard.registries.connections import (
    ConnectForm,
    ConnectionForm,
    DisconnectForm,
    TestConnectForm,
    TestConnectionForm,
)
from dashboard.registries.policy import asked_scope, policy_page
from dashboard.registries.policy_forms import ConfigForm, ModeForm, ResetConfigForm, ResetModeForm, scoped_url
from dashboard.registries.policy_simulation import what_if_page
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may_somewhere, require
from registry.errors import Conflict, InvalidInput
from registry.subjects.archive.archive import RIGHTS, forget
from registry.subjects.archive.restore import apply_copy, send_file, write_copy
from registry.subjects.import_export.export_file import MEDIA_TYPE
from registry.subjects.import_export.registry_import import spooled_export
from registry.subjects.models import ArchivedCopy
from registry.subjects.policy.registries import mirror_of
from registry.subjects.remote.mirrors import get_mirror, request_sync
from registry.subjects.tasks import sync_remote
from registry.subjects.versions.qualified_names import SubjectName


@require_safe
def registry_list(request: HttpRequest) -> HttpResponse:
    """Show all registries with the freshness of their mirrors."""
    if not may_somewhere(page_actor(request), "schema.read"):
        require(page_actor(request), "schema.read")
    return render(request, "registries/list.html", {"page": connections.registries_page(request)})


class ConnectionView(FormPageView):
    """The form of a new registry or a mirror, which tests or saves the connection."""

    template = "registries/form.html"
    next_page = "ui:registries"

    def make_form(self, data: Any, **route: Any) -> ConnectionForm:
        """Return the form that connects, edits or tests. Raises RegistryNotFound, NotAllowed, WrongState."""
        actor, is_test = page_actor(self.request), bool(data and data.get("do") == "test")
        if not route:
            require(actor, "registry.manage")
            return TestConnectForm(data) if is_test else ConnectForm(data)
        mirror = mirror_of(get_mirror(route["registry"], actor, "registry.manage"))
        return (TestConnectionForm if is_test else ConnectionForm)(data, mirror=mirror)

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the mirror to edit; nothing for a test."""
        return {"name": route["registry"]} if route and self.request.POST.get("do") != "test" else {}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page of the form."""
        return connections.connection_page(self.request, form, **route)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the result of a test, or queue a sync and redirect to the list."""
        if isinstance(form, TestConnectionForm | TestConnectForm):
            return self.show(form, **route)
        number = request_sync(name=route["registry"], by=page_actor(self.request)) if route else form.result
        if number is not None:
            sync_remote.delay_on_commit(number)
        return super().done(form, **route)


class ConnectionTestView(ConnectionView):
    """A test of a mirror's stored connection."""

    http_method_names = ["post", "options"]

    def make_form(self, data: Any, **route: Any) -> ConnectionForm:
        """Return the form with the stored connection. Raises RegistryNotFound, NotAllowed, WrongState."""
        mirror = mirror_of(get_mirror(route["registry"], page_actor(self.request), "registry.manage"))
        return TestConnectionForm(asdict(mirror) if mirror else {})

    def target(self, **route: Any) -> dict[str, Any]:
        """Return nothing: the form has the connection."""
        return {}


class DisconnectView(ConfirmView):
    """The confirmation of ending a mirror."""

    form_class = DisconnectForm
    next_page = "ui:registries"

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the mirror."""
        return {"name": route["registry"]}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page."""
        return connections.disconnect_page(self.request, form, **route)


@require_POST
def refresh(request: HttpRequest, registry: str) -> HttpResponse:
    """Queue a sync of a mirror, unless one is queued or running."""
    number = request_sync(name=registry, by=page_actor(request))
    if number is None:
        messages.info(request, gettext("A sync of %(name)s is already running.") % {"name": registry})
    else:
        sync_remote.delay_on_commit(number)
        messages.success(request, gettext("A sync of %(name)s has started.") % {"name": registry})
    back = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return redirect(back if is_ours else "ui:registries")


@require_safe
def transfer(request: HttpRequest, registry: str) -> HttpResponse:
    """Show the export and import page of a registry."""
    require(page_actor(request), "schema.read", registry=registry)
    return render(request, "registries/transfer.html", {"page": archive.transfer_page(request, registry)})


@require_POST
def export(request: HttpRequest, registry: str) -> FileResponse:
    """Download the whole registry."""
    require(page_actor(request), "schema.read", registry=registry)
    file = spooled_export(registry=registry, by=page_actor(request))
    return FileResponse(file, as_attachment=True, filename=f"{registry}.jsonl", content_type=MEDIA_TYPE)


@require_POST
def send(request: HttpRequest, registry: str) -> HttpResponse:
    """Upload a file and redirect to its plan; nothing is imported yet."""
    actor, file = page_actor(request), request.FILES.get("file")
    require(actor, RIGHTS[ArchivedCopy.SENT], registry=registry)
    try:
        if file is None:
            raise InvalidInput(gettext("Choose a file first."), field="file")
        number = send_file(registry=registry, data=file.read(), size=file.size or 0, name=file.name or "", by=actor)
    except (Conflict, InvalidInput) as error:
        page = archive.transfer_page(request, registry, error=error.placed)
        return render(request, "registries/transfer.html", {"page": page}, status=422)
    return redirect(archive.copy_url(registry, number))


@require_safe
def deleted(request: HttpRequest, registry: str) -> HttpResponse:
    """Show the copies of permanently deleted versions."""
    require_extent(page_actor(request), RIGHTS[ArchivedCopy.DELETED], registry=registry)
    return render(request, "registries/deleted.html", {"page": archive.deleted_page(request, registry)})


@require_safe
def copy(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Show a copy and the plan of importing it."""
    return render(request, "registries/copy.html", {"page": archive.copy_page(request, registry, copy_id)})


@require_safe
def copy_file(request: HttpRequest, registry: str, copy_id: int) -> FileResponse:
    """Download a copy as an export file."""
    file = io.BytesIO()
    name = write_copy(registry=registry, number=copy_id, file=file, by=page_actor(request))
    file.seek(0)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:80].strip("._").removesuffix(".jsonl") or "copy"
    return FileResponse(file, as_attachment=True, filename=f"{plain}.jsonl", content_type=MEDIA_TYPE)


@require_POST
def copy_restore(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Import a copy according to the confirmed plan."""
    ways = archive.asked_ways(request)
    try:
        done = apply_copy(
            registry=registry, number=copy_id, ways=ways, digest=form_text(request.POST, "plan"), by=page_actor(request)
        )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.placed)
        query = {"only": "missing"} if ways.only_missing else {"as": "deleted"} if not ways.live else {}
        return redirect(archive.copy_url(registry, copy_id, **query))
    sentence = counted(done.count("created"), "%(n)s version imported", "%(n)s versions imported")
    messages.success(request, gettext("Done: %(said)s. The copy was deleted.") % {"said": sentence})
    names = {line.subject.qualified for line in done.lines}
    return redirect(subject_url(registry, names.pop()) if len(names) == 1 else subjects_url(registry))


@require_POST
def copy_delete(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Delete a copy now."""
    name = forget(registry=registry, number=copy_id, by=page_actor(request))
    messages.success(request, gettext("The copy of %(name)s was deleted.") % {"name": name[:200]})
    return redirect("ui:transfer", registry)


#: (page, part) → form of a scope
_POLICY_FORMS: Final[Mapping[tuple[str, str], type[ServiceForm]]] = {
    ("change", "config"): ConfigForm,
    ("change", "mode"): ModeForm,
    ("reset", "config"): ResetConfigForm,
    ("reset", "mode"): ResetModeForm,
}


@require_safe
@travels
def policy(request: HttpRequest, registry: str) -> HttpResponse:
    """Show the tree of settings, and with `change` the forms of a scope."""
    require(page_actor(request), "schema.read", registry=registry)
    return render(request, "policy/policy.html", {"page": policy_page(request, registry)})


@require_safe
def what_if(request: HttpRequest, registry: str) -> HttpResponse:
    """Simulate a level on past versions; htmx gets only the result."""
    scope = asked_scope(request.GET)
    name = scope.qualified if scope and scope.subject else ""
    require(page_actor(request), "schema.read", registry=registry, subject=name)
    page = what_if_page(request, registry, scope)
    response = render_page(request, "policy/what_if.html", page, {"what-if": "outcome"})
    response.status_code = 422 if page.error else 200
    return response


class PolicyFormView(ServiceFormView):
    """Sets or resets the settings of a scope; the next page shows errors."""

    page = ""

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form for the scope that it names. Raises NotSignedIn, NotAllowed, InvalidName."""
        return super().post(request, scope=asked_scope(request.POST), **route)

    def make_form(self, data: Any, **route: Any) -> ServiceForm:
        """Return the form of the part, by default of the settings."""
        part = "mode" if form_text(data, "part") == "mode" else "config"
        return _POLICY_FORMS[self.page, part](data)

    def check(self, actor: Actor, **route: Any) -> None:
        """Check that the actor may change this part of the scope."""
        scope: SubjectName | None = route["scope"]
        permission = self.make_form(self.request.POST).permission
        require(actor, permission, registry=route["registry"], subject=scope.qualified if scope else "")

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the scope."""
        return {"registry": route["registry"], "subject": route["scope"]}

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the page with the errors."""
        messages.error(self.request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
        return self.after(**route)

    def after(self, **route: Any) -> HttpResponse:
        """Redirect to the forms of the scope."""
        return redirect(f"{scoped_url('ui:policy', route['registry'], route['scope'], change='1')}#change")


urlpatterns = [
    path("registries", registry_list, name="registries"),
    path("registries/connect", ConnectionView.as_view(), name="registry_connect"),
    path("registries/<segment:registry>/connection", ConnectionView.as_view(), name="registry_connection"),
    path("registries/<segment:registry>/test", ConnectionTestView.as_view(), name="registry_test"),
    path("registries/<segment:registry>/refresh", refresh, name="registry_refresh"),
    path("registries/<segment:registry>/disconnect", DisconnectView.as_view(), name="registry_disconnect"),
    path("registries/<segment:registry>/transfer", transfer, name="transfer"),
    path("registries/<segment:registry>/transfer/export", export, name="registry_export"),
    path("registries/<segment:registry>/transfer/import", send, name="registry_import"),
    path("registries/<segment:registry>/deleted", deleted, name="deleted"),
    path("registries/<segment:registry>/copies/<int:copy_id>", copy, name="copy"),
    path("registries/<segment:registry>/copies/<int:copy_id>/file", copy_file, name="copy_file"),
    path("registries/<segment:registry>/copies/<int:copy_id>/restore", copy_restore, name="copy_restore"),
    path("registries/<segment:registry>/copies/<int:copy_id>/delete", copy_delete, name="copy_delete"),
    path("registries/<segment:registry>/policy", policy, name="policy"),
    path("registries/<segment:registry>/policy/change", PolicyFormView.as_view(page="change"), name="policy_change"),
    path("registries/<segment:registry>/policy/reset", PolicyFormView.as_view(page="reset"), name="policy_reset"),
    path("registries/<segment:registry>/what-if", what_if, name="what_if"),
]
