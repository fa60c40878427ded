"""The forms that connect a registry elsewhere, change how it is reached and end it, and the test of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.presenters.drift_parts import ConfirmPage, FieldGroup
from dashboard.presenters.frame import Action, Crumb, Field, Problem
from dashboard.presenters.registries import ConnectionTest, RegistryForm, StepState, TestLine
from dashboard.texts import counted, later
from registry.access.credentials import PREFIX
from registry.access.roles import refusal
from registry.errors import InvalidInput, SchemadeskError
from registry.subjects import remote_probe as probing
from registry.subjects.remote_probe import Capability, Probe, Step
from registry.subjects.selectors import registries
from registry.subjects.services.sync_queue import EVERY_SECONDS, get_mirror

ADDRESS: Final = ("url", "user", "secret")
STEPS: Final = {
    probing.ADDRESS: later("Its address may be connected to"),
    probing.REACHED: later("It is reached"),
    probing.SIGNED_IN: later("The sign-in is taken"),
    probing.SUBJECTS: later("It lists its subjects"),
}
CAPABILITIES: Final = {
    probing.CONTEXTS: later("Contexts"),
    probing.IMPORT: later("Mode IMPORT: versions keep their ids"),
    probing.REFERENCES: later("References"),
    probing.DELETED: later("Versions that are deleted softly"),
    "format:AVRO": later("Avro"),
    "format:PROTOBUF": later("Protobuf"),
    "format:JSON": later("JSON Schema"),
}


def sent_address(post: Mapping[str, str]) -> dict[str, str]:
    """Address, user and secret's name as a form sent them."""
    return {name: post.get(name, "").strip() for name in ADDRESS}


def sent_fields(post: Mapping[str, str]) -> dict[str, Any]:
    """All fields as a form sent them. Raises InvalidInput for an interval that is no number."""
    every = whole_number(post.get("every_seconds", ""), digits=9)
    if every is None:
        raise InvalidInput(gettext("How often it is read is a number of seconds."))
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
    found: Probe | None = None,
) -> RegistryForm:
    """The form of a new registry, or of that mirror. Raises RegistryNotFound, NotAllowed, WrongState."""
    sent = request.method == "POST" and "url" in request.POST
    given: Mapping[str, str] = request.POST if sent else _stored(request, registry)
    reason = refusal(page_actor(request), "registry.manage", registry=registry)
    label = gettext("Save") if registry else gettext("Connect")
    url = reverse("ui:registry_connection", args=[registry]) if registry else reverse("ui:registry_connect")
    title = (
        gettext("Connection of %(registry)s") % {"registry": registry} if registry else gettext("Connect a registry")
    )
    return RegistryForm(
        frame=make_frame(request, title=title, crumbs=_crumbs()),
        groups=_groups(given, is_new=not registry),
        submit=Action(label=label, url=url, method="post", allowed=not reason, reason=reason, tone="primary"),
        secrets=(f"{settings.SECRETS_DIR}/NAME" if settings.SECRETS_DIR else "", f"{PREFIX}NAME"),
        tested=test_in_words(found) if found else None,
        disconnect=Action(label=gettext("Disconnect"), url=reverse("ui:registry_disconnect", args=[registry]))
        if registry
        else None,
        problem=Problem(what=problem.message, cure=gettext("Change the form below. Nothing was saved."))
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


def _groups(given: Mapping[str, str], *, is_new: bool) -> tuple[FieldGroup, ...]:
    def text(name: str, label: str, **more: Any) -> Field:
        return Field(name=name, label=label, value=given.get(name, ""), code=True, **more)

    name = text("name", gettext("Name"), required=True, help=gettext("How it is called here, and in addresses."))
    where = (
        *((name,) if is_new else ()),
        text(
            "url",
            gettext("Address"),
            required=True,
            placeholder="https://registry.example.com",
            help=gettext("Where Confluent’s REST API begins."),
        ),
        text("every_seconds", gettext("Read every … seconds"), required=True),
    )
    sign_in = (
        text("user", gettext("User")),
        text("secret", gettext("Secret’s name"), help=gettext("The name alone, never the password.")),
    )
    return (
        FieldGroup(title=gettext("Where"), fields=where),
        FieldGroup(
            title=gettext("Sign-in"),
            fields=sign_in,
            note=gettext("With a user the secret is a password, without one a bearer token."),
        ),
    )


def test_in_words(found: Probe) -> ConnectionTest:
    """A test as it is shown."""
    failed = next((step for step in found.steps if step.ok is False), None)
    return ConnectionTest(
        ok=found.ok,
        sentence=gettext("It can be mirrored. Nothing was saved.")
        if found.ok or failed is None
        else gettext("It can’t be mirrored like this. Nothing was saved."),
        steps=tuple(map(_step, found.steps)),
        capabilities=tuple(map(_capability, found.capabilities)),
    )


def _step(step: Step) -> TestLine:
    states = {True: StepState.OK, False: StepState.FAILED, None: StepState.SKIPPED}
    return TestLine(label=STEPS[step.name], state=states[step.ok], said=step.said)


def _capability(each: Capability) -> TestLine:
    states = {True: StepState.HAS, False: StepState.LACKS, None: StepState.UNKNOWN}
    return TestLine(label=CAPABILITIES[each.name], state=states[each.known], said=each.said)


def disconnect_page(request: HttpRequest, registry: str, problem: SchemadeskError | None) -> ConfirmPage:
    """What ending a mirror loses. Raises RegistryNotFound, NotAllowed, WrongState."""
    actor = page_actor(request)
    row = get_mirror(registry, actor, "registry.manage")
    entry = next(each for each in registries.registries_for(actor) if each.name == row.name)
    return ConfirmPage(
        frame=make_frame(request, title=gettext("Disconnect %(registry)s") % {"registry": row.name}, crumbs=_crumbs()),
        sentence=gettext("%(address)s is no longer read, and what was mirrored of it is removed here.")
        % {"address": row.url},
        losses=(
            counted(entry.subjects, "the mirror of %(n)s subject", "the mirrors of %(n)s subjects")
            + " "
            + counted(entry.versions, "with %(n)s version", "with %(n)s versions"),
            gettext("what people wrote about them here: descriptions, tags, owners’ notes"),
            gettext("its address, its user and the name of its secret"),
        ),
        stays=(
            gettext("the registry itself: nothing is written to it"),
            gettext("the secret, which the operator keeps"),
            gettext("the record of all that was done here, in the audit"),
        ),
        confirm=Action(
            label=gettext("Disconnect the registry"),
            url=reverse("ui:registry_disconnect", args=[row.name]),
            method="post",
            tone="danger",
        ),
        back_url=reverse("ui:registries"),
        problem=Problem(what=problem.message) if problem else None,
    )
