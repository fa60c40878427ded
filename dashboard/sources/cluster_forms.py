"""The forms that connect, edit, test and remove a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import NOT_OF_RIGHTS, CodeField, FormSection, LongTextField, ServiceForm
from dashboard.components.translation import counted, later
from registry.drift import services
from registry.drift.models import SASL_MECHANISMS
from registry.errors import Conflict


class ClusterForm(ServiceForm):
    """A form that connects a cluster."""

    service: ClassVar[Callable[..., object]] = staticmethod(services.connect_cluster)
    label = later("Connect")
    refusals = NOT_OF_RIGHTS
    cure = later("Correct the form below. Nothing was saved.")
    sections = (
        FormSection(later("Where"), ("name", "bootstrap", "security_protocol")),
        FormSection(
            later("Sign-in"), ("sasl_mechanism", "username", "secret"), later("For SASL_SSL and SASL_PLAINTEXT.")
        ),
        FormSection("TLS", ("ca_pem",), later("For SSL and SASL_SSL.")),
    )

    name = forms.CharField(label=later("Name"), help_text=later("The name shown here."))
    bootstrap = CodeField(label=later("Bootstrap servers"), placeholder="broker-1:9093,broker-2:9093")
    security_protocol = forms.ChoiceField(
        label=later("Security protocol"),
        choices=(
            ("PLAINTEXT", later("PLAINTEXT: no encryption, no authentication")),
            ("SSL", later("SSL: encryption")),
            ("SASL_PLAINTEXT", later("SASL_PLAINTEXT: authentication, no encryption")),
            ("SASL_SSL", later("SASL_SSL: encryption and authentication")),
        ),
    )
    sasl_mechanism = forms.ChoiceField(
        label=later("SASL mechanism"),
        choices=[("", later("none")), *((name, name) for name in SASL_MECHANISMS)],
        required=False,
    )
    username = CodeField(label=later("User"), required=False)
    secret = CodeField(
        label=later("Secret name"), required=False, help_text=later("Only the name, never the password.")
    )
    ca_pem = LongTextField(
        label=later("Certificate authority"),
        required=False,
        rows=5,
        code=True,
        placeholder="-----BEGIN CERTIFICATE-----",
        help_text=later("PEM. Empty: the system’s certificate authorities."),
    )

    def clean_ca_pem(self) -> str:
        """Return the certificate with Unix line endings."""
        return str(self.cleaned_data["ca_pem"]).replace("\r\n", "\n")

    def message(self, **route: Any) -> str:
        """Return the message on success."""
        return gettext("%(name)s connected.") % {"name": self.cleaned_data["name"]}


class ClusterEditForm(ClusterForm):
    """A form that edits or renames a cluster."""

    service = staticmethod(services.update_cluster)
    label = later("Save")

    def arguments(self) -> dict[str, Any]:
        """Return the new values; the target's `name` is the present name."""
        return {"rename" if name == "name" else name: value for name, value in self.cleaned_data.items()}

    def message(self, **route: Any) -> str:
        """Return the message on success."""
        return gettext("Saved.")


class ClusterTestForm(ClusterForm):
    """A form that tests a connection; the result is the number of brokers and topics."""

    service = staticmethod(services.try_cluster)

    @property
    def answer(self) -> str:
        """The result in words."""
        if self.result is None:
            return ""
        brokers, topics = self.result
        return gettext("Found %(brokers)s and %(topics)s. Nothing was saved.") % {
            "brokers": counted(brokers, "%(n)s broker", "%(n)s brokers"),
            "topics": counted(topics, "%(n)s topic", "%(n)s topics"),
        }


class RemoveClusterForm(ServiceForm):
    """A form that removes a cluster."""

    service = staticmethod(services.remove_cluster)
    label = later("Remove cluster")
    success = later("Cluster removed.")
    refusals = (Conflict,)
