"""The forms of an environment's page: its rules, freezes, break-glass, and changes that need a second person."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext

from dashboard.components.forms import CodeField, LongTextField, ServiceForm, UtcDateTimeField
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.environments.board import rule_sentence
from registry.access.roles import ROLES
from registry.errors import SecondPersonRequired
from registry.promotions import services
from registry.promotions.environments.services import MAX_MINUTES
from registry.promotions.models import RecurringFreeze, ReviewRule
from registry.promotions.selectors import EnvironmentInfo

MANAGE: Final = "registry.manage"
#: 0 is Monday, as in the service
_DAYS: Final = tuple(
    enumerate((_("Monday"), _("Tuesday"), _("Wednesday"), _("Thursday"), _("Friday"), _("Saturday"), _("Sunday")))
)


class RulesForm(ServiceForm):
    """A form with the rules that apply to every request."""

    service = staticmethod(services.change_environment)
    label = _("Save rules")
    success = _("Rules saved.")
    permission = MANAGE

    is_closed = forms.BooleanField(
        label=_("Closed: only releases can change versions, settings, modes and aliases"), required=False
    )
    own_approval_allowed = forms.BooleanField(label=_("Requesters can approve their own requests"), required=False)
    owners_only = forms.BooleanField(label=_("Only owners of a subject can request its promotion"), required=False)
    drift_blocks = forms.BooleanField(label=_("Open drift findings for a subject fail its requests"), required=False)
    threads_block = forms.BooleanField(label=_("Unresolved discussions block the release"), required=False)
    clients_block = forms.BooleanField(
        label=_("Affected clients block the release until they are acknowledged"), required=False
    )
    evidence_required = forms.BooleanField(label=_("Releases need evidence from data"), required=False)
    reviews_needed = forms.IntegerField(label=_("Approvals required"))
    max_evidence_hours = forms.IntegerField(
        label=_("Maximum age of evidence (hours)"),
        required=False,
        help_text=_(
            "Older evidence voids approvals and blocks the release until the topic is scanned again. Leave"
            " empty for no limit."
        ),
    )

    def clean_max_evidence_hours(self) -> int:
        """Return the limit; 0 for none."""
        return self.cleaned_data["max_evidence_hours"] or 0

    @classmethod
    def of(cls, info: EnvironmentInfo) -> RulesForm:
        """Return the form with the environment's present rules."""
        form = cls(initial={**info.settings, "max_evidence_hours": info.settings["max_evidence_hours"] or None})
        form.fields["reviews_needed"].help_text = lazy(rule_sentence, str)(info)
        return form

    @property
    def switches(self) -> list[forms.BoundField]:
        """The rules that are on or off."""
        return [field for field in self if isinstance(field.field, forms.BooleanField)]

    @property
    def numbers(self) -> list[forms.BoundField]:
        """The other rules."""
        return [field for field in self if not isinstance(field.field, forms.BooleanField)]


class ReviewRuleForm(ServiceForm):
    """A form that adds a review rule."""

    service = staticmethod(services.add_review_rule)
    label = _("Add rule")
    success = _("Rule added.")
    permission = MANAGE
    conditional = ("name",)

    subject_pattern = CodeField(
        label=_("Subjects"),
        initial="*",
        help_text=_(
            "A pattern of qualified names: * for all subjects, payments-* for names that start with payments-."
        ),
    )
    verdict = forms.ChoiceField(
        label=_("Applies to"),
        choices=((ReviewRule.ANY, _("Every request")), (ReviewRule.BREAKING, _("Breaking requests"))),
    )
    reviewers = forms.ChoiceField(
        label=_("Approved by"),
        choices=(
            (ReviewRule.OWNERS, _("Owners of the subject")),
            (ReviewRule.ROLE, _("People with a role")),
            (ReviewRule.GROUP, _("Members of a group")),
        ),
    )
    name = forms.CharField(
        label=_("Role or group"), required=False, help_text=lazy_format(_("Roles: %(roles)s."), roles=", ".join(ROLES))
    )
    count = forms.IntegerField(label=_("Number of approvals"), initial=1)


class FreezeForm(ServiceForm):
    """A form that adds a freeze, in UTC."""

    service = staticmethod(services.add_freeze)
    label = _("Add freeze window")
    success = _("Freeze window added.")
    permission = MANAGE

    starts_at = UtcDateTimeField(label=_("From (UTC)"))
    ends_at = UtcDateTimeField(label=_("To (UTC)"))
    reason = forms.CharField(label=_("Reason"))


class RecurringFreezeForm(ServiceForm):
    """A form that adds a recurring freeze in a time zone."""

    service = staticmethod(services.add_recurring_freeze)
    label = _("Add recurring freeze")
    success = _("Recurring freeze added.")
    permission = MANAGE
    conditional = ("last_days",)

    kind = forms.ChoiceField(
        label=_("Repeats"),
        choices=(
            (RecurringFreeze.WEEKLY, _("Every week")),
            (RecurringFreeze.MONTHLY, _("On the last days of every month")),
        ),
    )
    zone = CodeField(
        label=_("Time zone"),
        initial="UTC",
        help_text=_("A name such as Europe/Berlin. Daylight saving time is taken into account."),
    )
    from_day = forms.TypedChoiceField(
        label=_("Start day (weekly)"), choices=_DAYS, coerce=int, initial=4, required=False, empty_value=None
    )
    from_time = forms.TimeField(label=_("Start time"), initial="16:00", widget=forms.TimeInput(attrs={"type": "time"}))
    to_day = forms.TypedChoiceField(
        label=_("End day (weekly)"), choices=_DAYS, coerce=int, initial=0, required=False, empty_value=None
    )
    to_time = forms.TimeField(label=_("End time"), initial="07:00", widget=forms.TimeInput(attrs={"type": "time"}))
    last_days = forms.IntegerField(
        label=_("Number of last days (monthly)"),
        required=False,
        help_text=_("The freeze ends on the first day of the next month."),
    )
    reason = forms.CharField(label=_("Reason"))


class BreakGlassForm(ServiceForm):
    """A form that opens break-glass for the reader."""

    service = staticmethod(services.open_break_glass)
    label = _("Open break-glass")
    success = _("Break-glass is open. Your changes here are counted and reported.")
    permission = MANAGE

    reason = LongTextField(label=_("Why it can’t wait for a release"))
    minutes = forms.IntegerField(
        label=_("Duration (minutes)"),
        initial=60,
        help_text=lazy_format(
            _("Up to %(max_minutes)s. Everyone who follows this environment is notified."), max_minutes=MAX_MINUTES
        ),
    )


class LooseningForm(ServiceForm):
    """A form that requests another person's approval of a refused change, given by `action` and `values`."""

    service = staticmethod(services.request_environment_change)
    label = _("Request approval")
    success = _("Approval requested. Another reviewer of this environment must approve the change.")

    action = forms.CharField(widget=forms.HiddenInput)
    values = forms.CharField(widget=forms.HiddenInput)
    reason = LongTextField(
        label=_("Reason"), help_text=_("The environment’s reviewers are notified, and the audit log records it.")
    )

    @classmethod
    def of(cls, error: SecondPersonRequired) -> LooseningForm:
        """Return the form for the change that the error refused."""
        values = json.dumps(error.details["values"], ensure_ascii=False)
        return cls(initial={"action": error.details["action"], "values": values})

    def clean_values(self) -> dict[str, Any]:
        """Return the refused service's arguments."""
        try:
            values = json.loads(self.cleaned_data["values"])
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise ValidationError(gettext("The form is damaged. Start the change again."))
        return values


class RemoveRuleForm(ServiceForm):
    """A form that removes a review rule."""

    service = staticmethod(services.remove_review_rule)
    success = _("Rule removed.")


class RemoveFreezeForm(ServiceForm):
    """A form that ends or cancels a freeze."""

    service = staticmethod(services.remove_freeze)
    success = _("Freeze window removed.")


class RemoveRecurringFreezeForm(ServiceForm):
    """A form that removes a recurring freeze."""

    service = staticmethod(services.remove_recurring_freeze)
    success = _("Recurring freeze removed.")


class CloseBreakGlassForm(ServiceForm):
    """A form that closes break-glass early."""

    service = staticmethod(services.close_break_glass)
    success = _("Break-glass closed. Another person must confirm it within a day of its opening.")


class _CommentForm(ServiceForm):
    comment = forms.CharField(label=_("Comment"), required=False)


class ConfirmBreakGlassForm(_CommentForm):
    """A form that confirms break-glass as a second person."""

    service = staticmethod(services.confirm_break_glass)
    success = _("Break-glass confirmed.")


class ApproveChangeForm(_CommentForm):
    """A form that approves and makes a change as a second person."""

    service = staticmethod(services.approve_environment_change)
    success = _("Change approved. The new rules are in force.")


class RejectChangeForm(_CommentForm):
    """A form that rejects a change as a second person."""

    service = staticmethod(services.reject_environment_change)
    success = _("Change rejected. The rules stay the same.")


class WithdrawChangeForm(ServiceForm):
    """A form that withdraws a change."""

    service = staticmethod(services.withdraw_environment_change)
    success = _("Change withdrawn. The rules stay the same.")


#: the forms that the page shows
SHOWN: Final[Iterable[type[ServiceForm]]] = (RulesForm, ReviewRuleForm, FreezeForm, RecurringFreezeForm, BreakGlassForm)
