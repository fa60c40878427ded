"""The forms of decisions on findings, and of a mute."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import (
    NOT_OF_RIGHTS,
    CodeField,
    EndOfDayField,
    LongTextField,
    NameChoiceField,
    ServiceForm,
)
from dashboard.components.translation import later
from registry.access.roles import Actor
from registry.drift import services
from registry.drift.findings.promotion_check import decided_breaks_block
from registry.drift.selectors import FindingInfo

#: pattern of a mute → its label
PATTERNS: Final = {"rule": later("Rule"), "subject": later("Subject"), "location": later("Place")}


def still_blocking(registry: str) -> str:
    """That breaks of a closed environment block even after one person's decision, as sentences; "" elsewhere."""
    if not decided_breaks_block(registry):
        return ""
    return gettext(
        "%(registry)s is a closed environment: a break still fails requests afterwards, until it is resolved. A reviewer"
        " can override the check with a reason."
    ) % {"registry": registry}


class AcknowledgeForm(ServiceForm):
    """Takes note of a finding."""

    service = staticmethod(services.acknowledge)
    label = later("Acknowledge")
    success = later("Acknowledged.")

    reason = LongTextField(label=later("Reason to acknowledge it"), rows=2)
    until = EndOfDayField(
        label=later("Until"),
        help_text=later("The finding reopens after that day (UTC). Empty: acknowledged as long as it is seen."),
    )

    @classmethod
    def of(cls, info: FindingInfo) -> AcknowledgeForm:
        """The empty form for that finding."""
        form = cls()
        form.fields["reason"].help_text = still_blocking(info.registry) if info.severity == "break" else ""
        return form


class AssignForm(ServiceForm):
    """Gives a finding to somebody, or to nobody."""

    service = staticmethod(services.assign)
    label = later("Assign")

    to = forms.CharField(
        label=later("Assigned to"), required=False, help_text=later("Account name. Empty: nobody. Not assigned yet.")
    )

    @classmethod
    def of(cls, info: FindingInfo, actor: Actor) -> AssignForm:
        """The form with who has that finding, else with the reader."""
        form = cls(initial={"to": info.assigned_to or (actor.name if actor.user_id else "")})
        if info.assigned_to:
            form.fields["to"].help_text = gettext("Account name. Empty: nobody.")
        return form

    def message(self, **route: Any) -> str:
        """What is said when it ran."""
        to = self.cleaned_data["to"]
        return gettext("Assigned to %(to)s.") % {"to": to} if to else gettext("Assigned to nobody.")


class ReopenFindingForm(ServiceForm):
    """Opens a finding again."""

    service = staticmethod(services.reopen)
    label = later("Reopen finding")
    success = later("Finding reopened.")


class MuteForm(ServiceForm):
    """Mutes findings by patterns."""

    service = staticmethod(services.mute)
    label = later("Mute")
    success = later("Findings muted. They are kept and counted, but hidden from lists of open findings.")
    refusals = NOT_OF_RIGHTS

    registry = NameChoiceField(label=later("Registry"))
    rule = CodeField(label=PATTERNS["rule"], required=False, placeholder="UNKNOWN_SCHEMA_ID")
    subject = CodeField(label=PATTERNS["subject"], required=False, placeholder="test-*")
    location = CodeField(label=PATTERNS["location"], required=False, placeholder="orders:*")
    reason = LongTextField(label=later("Reason to mute them"), rows=2)
    until = EndOfDayField(label=later("Until"), help_text=later("Empty: until the mute is removed."))
