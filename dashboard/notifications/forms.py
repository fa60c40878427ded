"""The forms of subscriptions, the email digest and webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from django import forms
from django.utils import timezone
from django.utils.functional import lazy
from django.utils.translation import gettext

from dashboard.components.forms import CodeField, ServiceForm
from dashboard.components.translation import gettext_lazy as _
from registry.errors import Conflict, InvalidInput, NotAllowed
from registry.notifications import services, webhooks
from registry.notifications.digests import choose_digest
from registry.notifications.events import ANY, EVENTS, FOR_WEBHOOKS, SUBSCRIBABLE
from registry.notifications.models import DAILY, OFF, SIGNED, SLACK, WEEKLY

KINDS: Final = {SIGNED: _("Signed JSON events, for a program"), SLACK: _("Messages, for Slack or Mattermost")}
_PATTERN: Final = _("A pattern: * matches any text, ? matches one character.")


class _PatternForm(ServiceForm):
    """A form that may be refused because of its patterns, if the reader has no permission there."""

    refusals = (Conflict, InvalidInput, NotAllowed)
    cure = _("Nothing was saved. Correct the form below.")

    registry_pattern = CodeField(label=_("Registries"), initial="*", help_text=_PATTERN)
    subject_pattern = CodeField(label=_("Subjects"), initial="*", help_text=_PATTERN)


class SubscribeForm(_PatternForm):
    """A form that subscribes to an event, or excludes it."""

    service = staticmethod(services.subscribe)
    label = _("Subscribe")
    success = _("Subscription saved.")

    wanted = forms.ChoiceField(
        label=_("Notices"), choices=(("yes", _("Notify me")), ("no", _("Don’t notify me"))), required=False
    )
    event = forms.ChoiceField(
        label=_("Event"), choices=[(ANY, _("All events")), *((name, EVENTS[name].title) for name in SUBSCRIBABLE)]
    )
    field_order = ("wanted", "event", "registry_pattern", "subject_pattern")

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments."""
        return {**self.cleaned_data, "wanted": self.cleaned_data["wanted"] != "no"}


class DigestForm(ServiceForm):
    """A form that schedules the digest at an hour in the page's time zone."""

    service = staticmethod(choose_digest)
    label = _("Save digest")
    success = _("Digest saved.")
    cure = _PatternForm.cure

    every = forms.ChoiceField(
        label=_("How often"), choices=((OFF, _("Never")), (DAILY, _("Every day")), (WEEKLY, _("Every Monday")))
    )
    hour = forms.TypedChoiceField(
        label=lazy(lambda: gettext("Time (%(zone)s)") % {"zone": timezone.get_current_timezone_name()}, str)(),
        choices=[(hour, f"{hour:02}:00") for hour in range(24)],
        coerce=int,
    )

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments."""
        return {**self.cleaned_data, "zone": timezone.get_current_timezone_name()}


class WebhookForm(_PatternForm):
    """A form that creates a webhook; the result is its key."""

    service: ClassVar[Callable[..., object]] = staticmethod(webhooks.create_webhook)
    label = _("Add webhook")

    name = forms.CharField(label=_("Name"), help_text=_("A name that people here recognize."))
    url = CodeField(
        label=_("Address"),
        help_text=_("Starts with http:// or https://, without a query string. Redirects are not followed."),
    )
    kind = forms.ChoiceField(
        label=_("Sends"),
        choices=list(KINDS.items()),
        help_text=_(
            "Chat programs don’t read JSON events or check signatures. Keep the address of a chat webhook secret."
        ),
    )
    events = forms.MultipleChoiceField(
        choices=[(event, EVENTS[event].title) for event in FOR_WEBHOOKS],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    field_order = ("name", "url", "kind", "registry_pattern", "subject_pattern", "events")

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["url"].widget.attrs["placeholder"] = "https://ci.example.com/hooks/schemas"
        self.fields["registry_pattern"].help_text = ""

    @property
    def texts(self) -> list[forms.BoundField]:
        """All fields except the events."""
        return [field for field in self if field.name != "events"]


class WebhookEditForm(WebhookForm):
    """A form that edits a webhook."""

    service = staticmethod(webhooks.update_webhook)
    label = _("Save webhook")
    success = _("Webhook saved.")

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments."""
        return {"changes": self.cleaned_data}


class RemoveWebhookForm(ServiceForm):
    """A form that removes a webhook."""

    service = staticmethod(webhooks.remove_webhook)
    label = _("Remove webhook")
    success = _("Webhook removed.")
