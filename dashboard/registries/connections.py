"""The list of local and remote registries with their mirrors' freshness, and the connection of a remote one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import BadgeState, format_name
from dashboard.components.forms import NOT_OF_RIGHTS, CodeField, ConfirmPage, FormPage, FormSection, ServiceForm
from dashboard.components.frame import environment_of, make_frame, page_actor, refresh_action
from dashboard.components.links import crumb
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Action, Crumb, Environment, Frame
from dashboard.sources.labels import format_duration
from registry.access.roles import Actor, may, refusal
from registry.errors import Conflict
from registry.promotions.selectors import list_environments
from registry.subjects.policy.registries import MirrorState, RegistryEntry, registries_for
from registry.subjects.remote import connection_test as probing
from registry.subjects.remote import mirrors
from registry.subjects.remote.connection_test import Probe


class RegistryState(BadgeState):
    """The state of a registry; a local one is up whenever the page is."""

    OURS = ("ours", "ok", "circle-check", _("Local"))
    FRESH = ("fresh", "ok", "circle-check", _("In sync"))
    RUNNING = ("running", "info", "loader", _("Running"))
    QUEUED = ("queued", "info", "clock", _("Queued"))
    STALE = ("stale", "care", "triangle-alert", _("Out of date"))
    FAILING = ("failing", "breaks", "octagon-x", _("Failing"))
    NEVER = ("never", "unknown", "circle-dashed", _("Not synced yet"))


class StepState(BadgeState):
    """The result of a test's step, or the availability of a server's capability."""

    OK = ("ok", "ok", "circle-check", _("OK"))
    FAILED = ("failed", "breaks", "octagon-x", _("Failed"))
    SKIPPED = ("skipped", "unknown", "circle-slash", _("Skipped"))
    HAS = ("has", "ok", "circle-check", _("Available"))
    LACKS = ("lacks", "unknown", "ban", _("Not available"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", _("Unknown"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRow:
    """A registry; `refused` says why the reader may not manage it, and `refresh` syncs its mirror."""

    info: RegistryEntry
    environment: Environment
    refused: str = ""
    refresh: Action | None = None
    is_whole: bool = True

    @property
    def state(self) -> RegistryState:
        """The state: a running or queued sync comes first, then a problem."""
        mirror = self.info.mirror
        if mirror is None:
            return RegistryState.OURS
        if mirror.is_running or mirror.is_queued:
            return RegistryState.RUNNING if mirror.is_running else RegistryState.QUEUED
        if mirror.error:
            return RegistryState.FAILING
        if mirror.synced_at is None:
            return RegistryState.NEVER
        return RegistryState.STALE if mirror.is_stale else RegistryState.FRESH

    @property
    def every(self) -> str:
        """The sync interval of its mirror, in words."""
        mirror = self.info.mirror
        return gettext("every %(time)s") % {"time": format_duration(mirror.every_seconds)} if mirror else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistriesPage:
    """The registries that the reader may see; `refused` says why they may not connect one."""

    frame: Frame
    rows: tuple[RegistryRow, ...]
    refused: str


def registries_page(request: HttpRequest) -> RegistriesPage:
    """Return the registries in which the reader may read something."""
    actor, order = page_actor(request), list_environments()
    return RegistriesPage(
        frame=make_frame(request, title=gettext("Registries"), order=order),
        rows=tuple(_row(entry, order, actor) for entry in registries_for(actor)),
        refused=refusal(actor, "registry.manage"),
    )


def _row(entry: RegistryEntry, order: list[str], actor: Actor) -> RegistryRow:
    return RegistryRow(
        info=entry,
        environment=environment_of(entry.name, order),
        refused=refusal(actor, "registry.manage", registry=entry.name) if entry.mirror else "",
        refresh=refresh_action(entry.mirror, actor) if entry.mirror else None,
        is_whole=may(actor, "schema.read", registry=entry.name),
    )


STEPS: Final = {
    probing.ADDRESS: _("Address allowed"),
    probing.REACHED: _("Server reached"),
    probing.SIGNED_IN: _("Sign-in accepted"),
    probing.SUBJECTS: _("Subjects listed"),
}
CAPABILITIES: Final = {
    probing.CONTEXTS: _("Contexts"),
    probing.IMPORT: _("Mode IMPORT (versions keep their ids)"),
    probing.REFERENCES: _("References"),
    probing.DELETED: _("Soft-deleted versions"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPage(FormPage):
    """The form that connects a registry or edits its connection, and the result of a test."""

    label: str
    registry: str = ""
    tested: Probe | None = None

    @property
    def steps(self) -> list[tuple[str, StepState, str]]:
        """The test's steps in order."""
        return [(STEPS[step.name], _ENDED[step.ok], step.said) for step in self.tested.steps] if self.tested else []

    @property
    def capabilities(self) -> list[tuple[str, StepState, str]]:
        """The server's capabilities."""
        return (
            [(_name(can.name), _KNOWN[can.known], can.said) for can in self.tested.capabilities] if self.tested else []
        )


_ENDED: Final = {True: StepState.OK, False: StepState.FAILED, None: StepState.SKIPPED}
_KNOWN: Final = {True: StepState.HAS, False: StepState.LACKS, None: StepState.UNKNOWN}


def _name(capability: str) -> str:
    return CAPABILITIES.get(capability) or format_name(capability.removeprefix(probing.FORMAT))


def connection_page(request: HttpRequest, form: ServiceForm, registry: str = "") -> ConnectionPage:
    """Return the form of a new registry, or of an existing mirror."""
    words = {"registry": registry}
    title = gettext("Connection of %(registry)s") % words if registry else gettext("Connect a registry")
    return ConnectionPage(
        frame=make_frame(request, title=title, crumbs=_crumbs()),
        form=form,
        label=gettext("Save") if registry else gettext("Connect"),
        back_url=reverse("ui:registries"),
        registry=registry,
        tested=form.result if isinstance(form.result, Probe) else None,
    )


def _crumbs() -> tuple[Crumb, ...]:
    return (crumb(gettext("Registries"), "registries"),)


def disconnect_page(request: HttpRequest, form: ServiceForm, registry: str) -> ConfirmPage:
    """Return the confirmation of ending a mirror. Raises RegistryNotFound, NotAllowed, WrongState."""
    actor = page_actor(request)
    row = mirrors.get_mirror(registry, actor, "registry.manage")
    entry = next(entry_row for entry_row in registries_for(actor) if entry_row.name == row.name)
    subjects = counted(entry.subjects, "the mirror of %(n)s subject", "the mirrors of %(n)s subjects")
    return ConfirmPage(
        frame=make_frame(request, title=gettext("Disconnect %(registry)s") % {"registry": row.name}, crumbs=_crumbs()),
        form=form,
        back_url=reverse("ui:registries"),
        sentence=gettext("Schemadesk stops reading %(address)s and deletes its mirror.") % {"address": row.url},
        losses=(
            f"{subjects} {counted(entry.versions, 'with %(n)s version', 'with %(n)s versions')}",
            gettext("descriptions, tags and owners’ notes that were added here"),
            gettext("its address, user and secret name"),
        ),
        stays=(
            gettext("the remote registry: nothing is written to it"),
            gettext("the secret, which is managed by the operator"),
            gettext("the audit log"),
        ),
    )


class ConnectionForm(ServiceForm):
    """A form that edits a registry's connection."""

    service: ClassVar[Callable[..., object]] = staticmethod(mirrors.update_remote_registry)
    label = _("Save")
    success = _("Saved. A sync has started.")
    refusals = NOT_OF_RIGHTS
    cure = _("Correct the form below. Nothing was saved.")

    url = CodeField(
        label=_("Address"),
        placeholder="https://registry.example.com",
        help_text=_("The base URL of Confluent’s REST API."),
    )
    every_seconds = forms.IntegerField(label=_("Sync interval in seconds"), initial=mirrors.EVERY_SECONDS)
    user = CodeField(label=_("User"), required=False)
    secret = CodeField(label=_("Name of the secret"), required=False, help_text=_("Only the name, never the password."))

    def __init__(self, data: Any = None, *, mirror: MirrorState | None = None) -> None:
        stored = ("url", "every_seconds", "user", "secret")
        super().__init__(data, initial={name: getattr(mirror, name) for name in stored if getattr(mirror, name, None)})
        where = [name for name in ("name", "url", "every_seconds") if name in self.fields]
        note = _("With a user, the secret is a password. Without a user, it is a bearer token.")
        self.sections = (FormSection(_("Location"), where), FormSection(_("Sign-in"), ("user", "secret"), note))


class ConnectForm(ConnectionForm):
    """A form that connects a registry; the result is its number."""

    service: ClassVar[Callable[..., object]] = staticmethod(mirrors.add_remote_registry)
    label = _("Connect")
    success = _("%(name)s is connected. The first sync has started.")

    name = CodeField(label=_("Name"), help_text=_("Its name here and in URLs."))


class _TestForm(ConnectionForm):
    service: ClassVar[Callable[..., object]] = staticmethod(mirrors.try_registry)
    conditional = ("name", "every_seconds")

    def __init__(self, data: Any = None, *, mirror: MirrorState | None = None) -> None:
        super().__init__(data, mirror=mirror)
        for name in set(self.fields) - {"url"}:
            self.fields[name].required = False

    def arguments(self) -> dict[str, Any]:
        """Return the connection."""
        return {name: self.cleaned_data[name] for name in ("url", "user", "secret")}


class TestConnectionForm(_TestForm):
    """A form that tests a registry's connection."""


class TestConnectForm(_TestForm, ConnectForm):
    """A form that tests a new registry's connection."""


class DisconnectForm(ServiceForm):
    """A form that ends a mirror."""

    service = staticmethod(mirrors.remove_remote_registry)
    label = _("Disconnect registry")
    success = _("%(registry)s was disconnected.")
    refusals = (Conflict,)
