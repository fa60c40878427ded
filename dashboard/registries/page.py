"""The registries, ours and remote ones, with how fresh their mirrors are, and the forms that connect a remote one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Shown, format_name
from dashboard.components.frame import environment_of, make_frame, page_actor, refresh_action
from dashboard.components.links import subjects_url, whole_number
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Crumb, Environment, Field, Frame, Problem
from dashboard.sources.labels import lasting
from dashboard.sources.presenters import ConfirmPage, FieldGroup
from registry.access.http_client import PREFIX
from registry.access.roles import Actor, refusal
from registry.errors import InvalidInput, SchemadeskError
from registry.promotions.selectors import list_environments
from registry.subjects.policy import registries
from registry.subjects.policy.registries import MirrorState, RegistryEntry, registries_for
from registry.subjects.remote import connection_test as probing
from registry.subjects.remote.connection_test import Capability, Probe, Step
from registry.subjects.remote.mirrors import EVERY_SECONDS, get_mirror


class RegistryState(Shown):
    """Where a registry stands; one of ours is up as long as the page is."""

    OURS = ("ours", "ok", "circle-check", later("Local"))
    FRESH = ("fresh", "ok", "circle-check", later("In sync"))
    RUNNING = ("running", "info", "loader", later("Running"))
    QUEUED = ("queued", "info", "clock", later("Queued"))
    STALE = ("stale", "care", "triangle-alert", later("Out of date"))
    FAILING = ("failing", "breaks", "octagon-x", later("Failing"))
    NEVER = ("never", "unknown", "circle-dashed", later("Not synced yet"))


class StepState(Shown):
    """How a step of a test ended, or what a server can."""

    OK = ("ok", "ok", "circle-check", later("OK"))
    FAILED = ("failed", "breaks", "octagon-x", later("Failed"))
    SKIPPED = ("skipped", "unknown", "circle-slash", later("Skipped"))
    HAS = ("has", "ok", "circle-check", later("Available"))
    LACKS = ("lacks", "unknown", "ban", later("Not available"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Unknown"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRow:
    """A registry. `url` is its subjects; `address` where it is mirrored from, "" for one of ours.

    `problem` is the other server's message or ours about it, `since` when it began.
    """

    environment: Environment
    url: str
    state: RegistryState
    subjects: int
    versions: int
    address: str = ""
    every: str = ""
    synced_at: datetime | None = None
    problem: str = ""
    since: datetime | None = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistriesPage:
    """All registries that the reader may see."""

    frame: Frame
    rows: tuple[RegistryRow, ...]
    connect: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class TestLine:
    """A step or a capability in words."""

    label: str
    state: StepState
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTest:
    """What a test found: its steps in order, then what the server can."""

    sentence: str
    ok: bool
    steps: tuple[TestLine, ...]
    capabilities: tuple[TestLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryForm:
    """The form that connects a registry or changes how it is reached; `secrets` are the places of secrets."""

    frame: Frame
    groups: tuple[FieldGroup, ...]
    submit: Action
    secrets: tuple[str, ...] = ()
    tested: ConnectionTest | None = None
    disconnect: Action | None = None
    problem: Problem | None = None


def registries_page(request: HttpRequest) -> RegistriesPage:
    """All registries that the reader may read something of."""
    actor, order = page_actor(request), list_environments()
    reason = refusal(actor, "registry.manage")
    return RegistriesPage(
        frame=make_frame(request, title=gettext("Registries"), order=order),
        rows=tuple(_row(entry, order, actor) for entry in registries_for(actor)),
        connect=Action(
            label=gettext("Connect a registry"),
            url=reverse("ui:registry_connect"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
    )


def _row(entry: RegistryEntry, order: list[str], actor: Actor) -> RegistryRow:
    mirror = entry.mirror
    environment = environment_of(entry.name, order)
    if mirror is None:
        return RegistryRow(
            environment=environment,
            url=subjects_url(entry.name),
            state=RegistryState.OURS,
            subjects=entry.subjects,
            versions=entry.versions,
            actions=(_moving(entry.name),),
        )
    return RegistryRow(
        environment=environment,
        url=subjects_url(entry.name),
        state=state_of(mirror),
        subjects=entry.subjects,
        versions=entry.versions,
        address=mirror.url,
        every=gettext("every %(time)s") % {"time": lasting(mirror.every_seconds)},
        synced_at=mirror.synced_at,
        problem=mirror.error,
        since=mirror.failing_since,
        actions=_actions(mirror, actor),
    )


def state_of(mirror: MirrorState) -> RegistryState:
    """Where a mirror stands: what is wrong comes before what is under way."""
    if mirror.is_running:
        return RegistryState.RUNNING
    if mirror.is_queued:
        return RegistryState.QUEUED
    if mirror.error:
        return RegistryState.FAILING
    if mirror.synced_at is None:
        return RegistryState.NEVER
    return RegistryState.STALE if mirror.is_stale else RegistryState.FRESH


def _actions(mirror: MirrorState, actor: Actor) -> tuple[Action, ...]:
    reason = refusal(actor, "registry.manage", registry=mirror.registry)

    def act(label: str, page: str, icon: str, *, method: str = "get") -> Action:
        url = reverse(f"ui:{page}", args=[mirror.registry])
        return Action(label=label, url=url, method=method, icon=icon, allowed=not reason, reason=reason)

    return (
        refresh_action(mirror, actor),
        act(gettext("Test connection"), "registry_test", "play", method="post"),
        act(gettext("Change"), "registry_connection", "pencil"),
        _moving(mirror.registry),
        act(gettext("Disconnect"), "registry_disconnect", "x"),
    )


def _moving(registry: str) -> Action:
    return Action(label=gettext("Export and import"), url=reverse("ui:moving", args=[registry]), icon="file-text")


ADDRESS: Final = ("url", "user", "secret")
STEPS: Final = {
    probing.ADDRESS: later("Address allowed"),
    probing.REACHED: later("Server reached"),
    probing.SIGNED_IN: later("Sign-in accepted"),
    probing.SUBJECTS: later("Subjects listed"),
}
CAPABILITIES: Final = {
    probing.CONTEXTS: later("Contexts"),
    probing.IMPORT: later("Mode IMPORT (versions keep their ids)"),
    probing.REFERENCES: later("References"),
    probing.DELETED: later("Soft-deleted versions"),
}


def sent_address(post: Mapping[str, str]) -> dict[str, str]:
    """Address, user and secret's name as a form sent them."""
    return {name: post.get(name, "").strip() for name in ADDRESS}


def sent_fields(post: Mapping[str, str]) -> dict[str, Any]:
    """All fields as a form sent them. Raises InvalidInput for an interval that is no number."""
    every = whole_number(post.get("every_seconds", ""), digits=9)
    if every is None:
        raise InvalidInput(gettext("Enter the sync interval as a number of seconds."))
    return {**sent_address(post), "every_seconds": every}


def stored_address(request: HttpRequest, registry: str) -> dict[str, str]:
    """Address, user and secret's name of a mirror. Raises RegistryNotFound, NotAllowed, WrongState."""
    row = get_mirror(registry, page_actor(request), "registry.manage")
    return {"url": row.url, "user": row.user, "secret": row.secret}


def registry_form(
    request: HttpRequest,
    registry: str = "",
    *,
    problem: SchemadeskError | None = None,
    probe: Probe | None = None,
) -> RegistryForm:
    """The form of a new registry, or of that mirror. Raises RegistryNotFound, NotAllowed, WrongState."""
    sent = request.method == "POST" and "url" in request.POST
    values: Mapping[str, str] = request.POST if sent else _stored(request, registry)
    reason = refusal(page_actor(request), "registry.manage", registry=registry)
    label = gettext("Save") if registry else gettext("Connect")
    url = reverse("ui:registry_connection", args=[registry]) if registry else reverse("ui:registry_connect")
    title = (
        gettext("Connection of %(registry)s") % {"registry": registry} if registry else gettext("Connect a registry")
    )
    return RegistryForm(
        frame=make_frame(request, title=title, crumbs=_crumbs()),
        groups=_groups(values, is_new=not registry),
        submit=Action(label=label, url=url, method="post", allowed=not reason, reason=reason, tone="primary"),
        secrets=(f"{settings.SECRETS_DIR}/NAME" if settings.SECRETS_DIR else "", f"{PREFIX}NAME"),
        tested=test_in_words(probe) if probe else None,
        disconnect=Action(label=gettext("Disconnect"), url=reverse("ui:registry_disconnect", args=[registry]))
        if registry
        else None,
        problem=Problem(what=problem.message, cure=gettext("Correct the form below. Nothing was saved."))
        if problem
        else None,
    )


def _crumbs() -> tuple[Crumb, ...]:
    return (Crumb(label=gettext("Registries"), url=reverse("ui:registries")),)


def _stored(request: HttpRequest, registry: str) -> dict[str, str]:
    if not registry:
        return {"every_seconds": str(EVERY_SECONDS)}
    row = get_mirror(registry, page_actor(request), "registry.manage")
    every = row.every_seconds or EVERY_SECONDS
    return {"url": row.url, "user": row.user, "secret": row.secret, "every_seconds": str(every)}


def _groups(values: Mapping[str, str], *, is_new: bool) -> tuple[FieldGroup, ...]:
    def text(name: str, label: str, **more: Any) -> Field:
        return Field(name=name, label=label, value=values.get(name, ""), code=True, **more)

    name = text("name", gettext("Name"), required=True, help=gettext("Its name here and in URLs."))
    where = (
        *((name,) if is_new else ()),
        text(
            "url",
            gettext("Address"),
            required=True,
            placeholder="https://registry.example.com",
            help=gettext("The base URL of Confluent’s REST API."),
        ),
        text("every_seconds", gettext("Sync interval in seconds"), required=True),
    )
    sign_in = (
        text("user", gettext("User")),
        text("secret", gettext("Name of the secret"), help=gettext("Only the name, never the password.")),
    )
    return (
        FieldGroup(title=gettext("Location"), fields=where),
        FieldGroup(
            title=gettext("Sign-in"),
            fields=sign_in,
            note=gettext("With a user, the secret is a password. Without a user, it is a bearer token."),
        ),
    )


def test_in_words(probe: Probe) -> ConnectionTest:
    """A test as it is shown."""
    failed = next((step for step in probe.steps if step.ok is False), None)
    return ConnectionTest(
        ok=probe.ok,
        sentence=gettext("This registry can be mirrored. Nothing was saved.")
        if probe.ok or failed is None
        else gettext("This registry can’t be mirrored with these settings. Nothing was saved."),
        steps=tuple(map(_step, probe.steps)),
        capabilities=tuple(map(_capability, probe.capabilities)),
    )


def _step(step: Step) -> TestLine:
    states = {True: StepState.OK, False: StepState.FAILED, None: StepState.SKIPPED}
    return TestLine(label=STEPS[step.name], state=states[step.ok], sentence=step.said)


def _capability(capability: Capability) -> TestLine:
    states = {True: StepState.HAS, False: StepState.LACKS, None: StepState.UNKNOWN}
    return TestLine(
        label=CAPABILITIES.get(capability.name) or format_name(capability.name.removeprefix(probing.FORMAT)),
        state=states[capability.known],
        sentence=capability.said,
    )


def disconnect_page(request: HttpRequest, registry: str, problem: SchemadeskError | None) -> ConfirmPage:
    """What ending a mirror loses. Raises RegistryNotFound, NotAllowed, WrongState."""
    actor = page_actor(request)
    row = get_mirror(registry, actor, "registry.manage")
    entry = next(entry_row for entry_row in registries.registries_for(actor) if entry_row.name == row.name)
    return ConfirmPage(
        frame=make_frame(request, title=gettext("Disconnect %(registry)s") % {"registry": row.name}, crumbs=_crumbs()),
        sentence=gettext("Schemadesk stops reading %(address)s and deletes its mirror.") % {"address": row.url},
        losses=(
            counted(entry.subjects, "the mirror of %(n)s subject", "the mirrors of %(n)s subjects")
            + " "
            + counted(entry.versions, "with %(n)s version", "with %(n)s versions"),
            gettext("descriptions, tags and owners’ notes that were added here"),
            gettext("its address, user and secret name"),
        ),
        stays=(
            gettext("the remote registry: nothing is written to it"),
            gettext("the secret, which is managed by the operator"),
            gettext("the audit log"),
        ),
        confirm=Action(
            label=gettext("Disconnect registry"),
            url=reverse("ui:registry_disconnect", args=[row.name]),
            method="post",
            tone="danger",
        ),
        back_url=reverse("ui:registries"),
        problem=Problem(what=problem.message) if problem else None,
    )
