"""Pages of registries: connections, archives of their contents, and policy.

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
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.forms import ConfirmView, FormPage, FormPageView, ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor, render_page
from dashboard.components.links import given_text, subject_url, subjects_url
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
from registry.subjects.archive.restore import bring_copy, send_file, write_copy
from registry.subjects.import_export.export_file import MEDIA_TYPE
from registry.subjects.import_export.registry_import import spooled_export
from registry.subjects.models import KeptCopy
from registry.subjects.policy.registries import mirror_of
from registry.subjects.remote.mirrors import get_mirror, request_sync
from registry.subjects.tasks import sync_remote
from registry.subjects.versions.qualified_names import SubjectName


@require_safe
def registry_list(request: HttpRequest) -> HttpResponse:
    """All registries, with how fresh their mirrors are."""
    if not may_somewhere(page_actor(request), "schema.read"):
        require(page_actor(request), "schema.read")
    return render(request, "registries/list.html", {"page": connections.registries_page(request)})


class ConnectionView(FormPageView):
    """The form of a new registry, or of a mirror: it is tested, or kept."""

    template = "registries/form.html"

    def make_form(self, data: Any, **route: Any) -> ConnectionForm:
        """The form that connects, changes or tests. Raises RegistryNotFound, NotAllowed, WrongState."""
        actor, is_test = page_actor(self.request), bool(data and data.get("do") == "test")
        if not route:
            require(actor, "registry.manage")
            return TestConnectForm(data) if is_test else ConnectForm(data)
        mirror = mirror_of(get_mirror(route["registry"], actor, "registry.manage"))
        return (TestConnectionForm if is_test else ConnectionForm)(data, mirror=mirror)

    def target(self, **route: Any) -> dict[str, Any]:
        """The mirror that is changed; none of a test."""
        return {"name": route["registry"]} if route and self.request.POST.get("do") != "test" else {}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """The page of the form."""
        return connections.connection_page(self.request, form, **route)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """What a test found, or the list, once a sync is queued."""
        if isinstance(form, TestConnectionForm | TestConnectForm):
            return self.show(form, **route)
        number = request_sync(name=route["registry"], by=page_actor(self.request)) if route else form.result
        if number is not None:
            sync_remote.delay_on_commit(number)
        return super().done(form, **route)

    def after(self, **route: Any) -> HttpResponse:
        """The list."""
        return redirect("ui:registries")


class ConnectionTestView(ConnectionView):
    """Tests the connection of a mirror as it is."""

    http_method_names = ["post", "options"]

    def make_form(self, data: Any, **route: Any) -> ConnectionForm:
        """The form with what is stored. Raises RegistryNotFound, NotAllowed, WrongState."""
        mirror = mirror_of(get_mirror(route["registry"], page_actor(self.request), "registry.manage"))
        return TestConnectionForm(asdict(mirror) if mirror else {})

    def target(self, **route: Any) -> dict[str, Any]:
        """Nothing but the address."""
        return {}


class DisconnectView(ConfirmView):
    """What ending a mirror loses."""

    form_class = DisconnectForm

    def target(self, **route: Any) -> dict[str, Any]:
        """The mirror."""
        return {"name": route["registry"]}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """The page."""
        return connections.disconnect_page(self.request, form, **route)

    def after(self, **route: Any) -> HttpResponse:
        """The list."""
        return redirect("ui:registries")


@require_POST
def refresh(request: HttpRequest, registry: str) -> HttpResponse:
    """Have a mirror read now; once, however often it is asked for."""
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
def moving(request: HttpRequest, registry: str) -> HttpResponse:
    """The ways out of a registry and into it."""
    require(page_actor(request), "schema.read", registry=registry)
    return render(request, "registries/moving.html", {"page": archive.moving_page(request, registry)})


@require_POST
def export(request: HttpRequest, registry: str) -> FileResponse:
    """All that the registry holds, to be saved."""
    require(page_actor(request), "schema.read", registry=registry)
    file = spooled_export(registry=registry, by=page_actor(request))
    return FileResponse(file, as_attachment=True, filename=f"{registry}.jsonl", content_type=MEDIA_TYPE)


@require_POST
def send(request: HttpRequest, registry: str) -> HttpResponse:
    """Take a file and lead to its plan; nothing is brought in yet."""
    actor, file = page_actor(request), request.FILES.get("file")
    require(actor, RIGHTS[KeptCopy.SENT], registry=registry)
    try:
        if file is None:
            raise InvalidInput(gettext("Choose a file first."), field="file")
        number = send_file(registry=registry, data=file.read(), size=file.size or 0, name=file.name or "", by=actor)
    except (Conflict, InvalidInput) as error:
        page = archive.moving_page(request, registry, error=error.placed)
        return render(request, "registries/moving.html", {"page": page}, status=422)
    return redirect(archive.copy_url(registry, number))


@require_safe
def deleted(request: HttpRequest, registry: str) -> HttpResponse:
    """What was deleted for good and is kept still."""
    require_extent(page_actor(request), RIGHTS[KeptCopy.DELETED], registry=registry)
    return render(request, "registries/deleted.html", {"page": archive.deleted_page(request, registry)})


@require_safe
def copy(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """A copy, and what bringing it in would do."""
    return render(request, "registries/copy.html", {"page": archive.copy_page(request, registry, copy_id)})


@require_safe
def copy_file(request: HttpRequest, registry: str, copy_id: int) -> FileResponse:
    """A copy as an export file, to be saved."""
    file = io.BytesIO()
    name = write_copy(registry=registry, number=copy_id, file=file, by=page_actor(request))
    file.seek(0)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:80].strip("._").removesuffix(".jsonl") or "copy"
    return FileResponse(file, as_attachment=True, filename=f"{plain}.jsonl", content_type=MEDIA_TYPE)


@require_POST
def copy_bring(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Do what the plan said that was confirmed."""
    ways = archive.asked_ways(request)
    try:
        done = bring_copy(
            registry=registry,
            number=copy_id,
            ways=ways,
            digest=given_text(request.POST, "plan"),
            by=page_actor(request),
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
def copy_forget(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Remove a copy now."""
    name = forget(registry=registry, number=copy_id, by=page_actor(request))
    messages.success(request, gettext("The copy of %(name)s was deleted.") % {"name": name[:200]})
    return redirect("ui:moving", registry)


#: the two forms of a place by the page and the part that they are of
_POLICY_FORMS: Final[Mapping[tuple[str, str], type[ServiceForm]]] = {
    ("change", "config"): ConfigForm,
    ("change", "mode"): ModeForm,
    ("reset", "config"): ResetConfigForm,
    ("reset", "mode"): ResetModeForm,
}


@require_safe
@travels
def policy(request: HttpRequest, registry: str) -> HttpResponse:
    """The tree of settings, and with `change` the forms of one place."""
    require(page_actor(request), "schema.read", registry=registry)
    return render(request, "policy/policy.html", {"page": policy_page(request, registry)})


@require_safe
def what_if(request: HttpRequest, registry: str) -> HttpResponse:
    """A level tried on the past; htmx gets the outcome alone."""
    scope = asked_scope(request.GET)
    name = scope.qualified if scope and scope.subject else ""
    require(page_actor(request), "schema.read", registry=registry, subject=name)
    page = what_if_page(request, registry, scope)
    response = render_page(request, "policy/what_if.html", page, {"what-if": "outcome"})
    response.status_code = 422 if page.error else 200
    return response


class PolicyFormView(ServiceFormView):
    """Sets or resets what a place holds versions to; what is refused is said on the page that follows."""

    page = ""

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form of the place that it names. Raises NotSignedIn, NotAllowed, InvalidName."""
        return super().post(request, scope=asked_scope(request.POST), **route)

    def make_form(self, data: Any, **route: Any) -> ServiceForm:
        """The form of the part; settings where none is named."""
        part = "mode" if given_text(data, "part") == "mode" else "config"
        return _POLICY_FORMS[self.page, part](data)

    def check(self, actor: Actor, **route: Any) -> None:
        """Refuse who may not change this part of the place."""
        scope: SubjectName | None = route["scope"]
        permission = self.make_form(self.request.POST).permission
        require(actor, permission, registry=route["registry"], subject=scope.qualified if scope else "")

    def target(self, **route: Any) -> dict[str, Any]:
        """The place."""
        return {"registry": route["registry"], "subject": route["scope"]}

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """The page with what was refused."""
        messages.error(self.request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
        return self.after(**route)

    def after(self, **route: Any) -> HttpResponse:
        """The forms of the place again."""
        return redirect(f"{scoped_url('ui:policy', route['registry'], route['scope'], change='1')}#change")
