"""The forms that connect, edit, test and remove a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import NOT_OF_RIGHTS, CodeField, FormSection, LongTextField, ServiceForm
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from registry.drift import services
from registry.drift.models import SASL_MECHANISMS
from registry.errors import Conflict

SIGN_IN = _("For SASL_SSL and SASL_PLAINTEXT. SSL uses only the secret, with the client’s key and certificate.")


class ClusterForm(ServiceForm):
    """A form that connects a cluster."""

    service: ClassVar[Callable[..., object]] = staticmethod(services.connect_cluster)
    label = _("Connect")
    success = _("%(name)s connected.")
    refusals = NOT_OF_RIGHTS
    cure = _("Correct the form below. Nothing was saved.")
    sections = (
        FormSection(_("Where"), ("name", "bootstrap", "security_protocol")),
        FormSection(_("Sign-in"), ("sasl_mechanism", "username", "secret"), SIGN_IN),
        FormSection("TLS", ("ca_pem",), _("For SSL and SASL_SSL.")),
    )

    name = forms.CharField(label=_("Name"), help_text=_("The name shown here."))
    bootstrap = CodeField(label=_("Bootstrap servers"), placeholder="broker-1:9093,broker-2:9093")
    security_protocol = forms.ChoiceField(
        label=_("Security protocol"),
        choices=(
            ("PLAINTEXT", _("PLAINTEXT: no encryption, no authentication")),
            ("SSL", _("SSL: encryption; with a secret, also authentication by certificate")),
            ("SASL_PLAINTEXT", _("SASL_PLAINTEXT: authentication, no encryption")),
            ("SASL_SSL", _("SASL_SSL: encryption and authentication")),
        ),
    )
    sasl_mechanism = forms.ChoiceField(
        label=_("SASL mechanism"),
        choices=[("", _("none")), *((name, name) for name in SASL_MECHANISMS)],
        required=False,
    )
    username = CodeField(label=_("User"), required=False)
    secret = CodeField(label=_("Secret name"), required=False, help_text=_("Only the name, never the password or key."))
    ca_pem = LongTextField(
        label=_("Certificate authority"),
        required=False,
        rows=5,
        code=True,
        placeholder="-----BEGIN CERTIFICATE-----",
        help_text=_("PEM. Empty: the system’s certificate authorities."),
    )

    def clean_ca_pem(self) -> str:
        """Return the certificate with Unix line endings."""
        return str(self.cleaned_data["ca_pem"]).replace("\r\n", "\n")


class ClusterEditForm(ClusterForm):
    """A form that edits or renames a cluster."""

    service = staticmethod(services.update_cluster)
    label = _("Save")
    success = _("Saved.")

    def arguments(self) -> dict[str, Any]:
        """Return the new values; the target's `name` is the present name."""
        return {"rename" if name == "name" else name: value for name, value in self.cleaned_data.items()}


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
    label = _("Remove cluster")
    success = _("Cluster removed.")
    refusals = (Conflict,)
