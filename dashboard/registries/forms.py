"""The forms that connect a remote registry, change and test how it is reached, and disconnect it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import NOT_OF_RIGHTS, CodeField, FormSection, ServiceForm
from dashboard.components.translation import later
from registry.errors import Conflict
from registry.subjects.policy.registries import MirrorState
from registry.subjects.remote.mirrors import (
    EVERY_SECONDS,
    add_remote_registry,
    remove_remote_registry,
    try_registry,
    update_remote_registry,
)


class ConnectionForm(ServiceForm):
    """Changes how a registry is reached."""

    service: ClassVar[Callable[..., object]] = staticmethod(update_remote_registry)
    label = later("Save")
    success = later("Saved. A sync has started.")
    refusals = NOT_OF_RIGHTS
    cure = later("Correct the form below. Nothing was saved.")

    url = CodeField(
        label=later("Address"),
        placeholder="https://registry.example.com",
        help_text=later("The base URL of Confluent’s REST API."),
    )
    every_seconds = forms.IntegerField(label=later("Sync interval in seconds"), initial=EVERY_SECONDS)
    user = CodeField(label=later("User"), required=False)
    secret = CodeField(
        label=later("Name of the secret"), required=False, help_text=later("Only the name, never the password.")
    )

    def __init__(self, data: Any = None, *, mirror: MirrorState | None = None) -> None:
        stored = ("url", "every_seconds", "user", "secret")
        super().__init__(data, initial={name: getattr(mirror, name) for name in stored if getattr(mirror, name, None)})
        where = [name for name in ("name", "url", "every_seconds") if name in self.fields]
        note = later("With a user, the secret is a password. Without a user, it is a bearer token.")
        self.sections = (
            FormSection(later("Location"), where),
            FormSection(later("Sign-in"), ("user", "secret"), note),
        )


class ConnectForm(ConnectionForm):
    """Connects a registry; the result is its number."""

    service: ClassVar[Callable[..., object]] = staticmethod(add_remote_registry)
    label = later("Connect")

    name = CodeField(label=later("Name"), help_text=later("Its name here and in URLs."))

    def message(self, **route: Any) -> str:
        """What is said when it ran."""
        return gettext("%(name)s is connected. The first sync has started.") % self.cleaned_data


class _TestForm(ConnectionForm):
    service: ClassVar[Callable[..., object]] = staticmethod(try_registry)
    conditional = ("name", "every_seconds")

    def __init__(self, data: Any = None, *, mirror: MirrorState | None = None) -> None:
        super().__init__(data, mirror=mirror)
        for name in set(self.fields) - {"url"}:
            self.fields[name].required = False

    def arguments(self) -> dict[str, Any]:
        """How the registry is reached."""
        return {name: self.cleaned_data[name] for name in ("url", "user", "secret")}


class TestConnectionForm(_TestForm):
    """Tests how a registry is reached; the result is what the test found."""


class TestConnectForm(_TestForm, ConnectForm):
    """Tests how a new registry would be reached."""


class DisconnectForm(ServiceForm):
    """Ends a mirror."""

    service = staticmethod(remove_remote_registry)
    label = later("Disconnect registry")
    refusals = (Conflict,)

    def message(self, **route: Any) -> str:
        """What is said when it ran."""
        return gettext("%(name)s was disconnected.") % {"name": route["registry"]}
