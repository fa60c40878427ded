"""The forms of a request's page: reviewing, applying, scheduling, labels, acknowledgements and discussions."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import (
    CodeField,
    LongTextField,
    NameChoiceField,
    ServiceForm,
    UtcDateTimeField,
    field_value,
)
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.promotions.request_list import at_utc
from registry.errors import Conflict, InvalidInput, NotAllowed, NotFound, SchemadeskError, Unavailable
from registry.promotions import selectors, services
from registry.promotions.models.requests import MAX_LABELS, clean_labels, written_labels
from registry.promotions.requests.acknowledgements import MAX_NOTE
from registry.promotions.requests.infos import ItemInfo
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

MAX_LINES: Final = 500
LATEST: Final = "latest"
STATE_MESSAGES: Final = {
    "draft": _("Saved as your draft."),
    "in review": _("Submitted for review."),
    "approved": _("Approved. It can be applied now."),
    "scheduled": _("Scheduled."),
    "applying": _("Being applied. Reload this page in a moment."),
    "rejected": _("Rejected."),
    "applied": _("Applied. It is now live in the target."),
    "withdrawn": _("Withdrawn."),
    "failed": _("Failed after it was partly applied."),
}


def _hidden() -> forms.CharField:
    """Return a field that the page fills in and the service checks."""
    return forms.CharField(widget=forms.HiddenInput, required=False)


class RequestForm(ServiceForm):
    """A form about one request; it redirects to a part of the request's page."""

    refusals: ClassVar[tuple[type[SchemadeskError], ...]] = (Conflict, InvalidInput, NotAllowed, NotFound, Unavailable)
    anchor: ClassVar[str] = ""

    def place(self, **route: Any) -> str:
        """Return the part of the page, as the end of its URL."""
        return self.anchor


class StateForm(RequestForm):
    """A form whose service returns the request's new state."""

    def message(self, **route: Any) -> str:
        """Say what the new state means."""
        return STATE_MESSAGES[self.result]


class SubmitForm(StateForm):
    """A form that submits a draft for review."""

    service = staticmethod(services.submit)


class WithdrawForm(StateForm):
    """A form that withdraws the request."""

    service = staticmethod(services.withdraw)


class ApplyForm(StateForm):
    """A form that applies the approved plan."""

    service = staticmethod(services.apply)


class ResumeForm(StateForm):
    """A form that resumes a request that failed while it was applied."""

    service = staticmethod(services.resume)


class GiveUpForm(RequestForm):
    """A form that gives up a failed request; completed steps are kept."""

    service = staticmethod(services.give_up)
    success = _("Given up. Completed steps are kept.")


class UnscheduleForm(RequestForm):
    """A form that cancels the schedule."""

    service = staticmethod(services.unschedule)
    success = _("Schedule cancelled. The request must be applied by hand.")


class RecheckForm(RequestForm):
    """A form that runs the checks again."""

    service = staticmethod(services.recheck)
    success = _("The checks were run again. The request is %(result)s.")


class ResubmitForm(RequestForm):
    """A form that resubmits a request without changes."""

    service = staticmethod(services.ask_again)

    def message(self, **route: Any) -> str:
        """Say the new request's number."""
        return gettext("Request %(number)s is waiting for review.") % {"number": self.result}


class ReviewForm(RequestForm):
    """A reviewer's form: one comment for three buttons. `plan_hash` identifies the plan that was read."""

    conditional: tuple[str, ...] = ("comment", "typed")

    plan_hash = _hidden()
    comment = LongTextField(label=_("Comment"), rows=2, required=False)
    override = LongTextField(label=_("Reason to override failing checks"), rows=2, required=False)
    typed = CodeField(label=_("Type the name of the subject to approve"), required=False)


class ApproveForm(ReviewForm):
    """A form that approves the plan shown on the page."""

    service = staticmethod(services.approve)

    resolve = forms.BooleanField(widget=forms.HiddenInput, required=False)

    def message(self, **route: Any) -> str:
        """Say the new state, or that more approvals are needed."""
        if self.result == "in review":
            return gettext("Your approval is recorded. More approvals are needed.")
        return STATE_MESSAGES[self.result]


class ChangesForm(ReviewForm):
    """A form that requests changes."""

    service = staticmethod(services.request_changes)
    success = _("Changes requested. The requester is notified.")

    def arguments(self) -> dict[str, Any]:
        """Return only the comment."""
        return {"comment": self.cleaned_data["comment"]}


class RejectForm(ChangesForm):
    """A form that rejects the request."""

    service = staticmethod(services.reject)
    success = STATE_MESSAGES["rejected"]


class ScheduleForm(RequestForm):
    """A form that schedules the request."""

    service = staticmethod(services.schedule)
    label = _("Schedule")

    at = UtcDateTimeField(label=_("Scheduled time (UTC)"))
    move_on = forms.BooleanField(label=_("If the target is frozen then, apply it when the freeze ends"), required=False)

    def message(self, **route: Any) -> str:
        """Say when it will be applied, and if a freeze moved the chosen time."""
        at = self.cleaned_data["at"]
        apply_at = selectors.get_request(route["request_id"]).apply_at or at
        message = gettext("It will be applied at %(at)s.") % {"at": at_utc(apply_at)}
        if apply_at == at:
            return message
        return f"{message} {gettext('%(at)s is frozen there.') % {'at': at_utc(at)}}"


class LabelledForm(ServiceForm):
    """A form with the labels of a request, separated by commas."""

    labels = forms.CharField(
        label=_("Labels"),
        required=False,
        help_text=lazy_format(
            _("Up to %(most)s, separated by commas. Everyone who can read the request sees them."), most=MAX_LABELS
        ),
    )

    def clean_labels(self) -> list[str]:
        """Return the list of labels."""
        cleaned: list[str] = field_value(clean_labels, written_labels(self.cleaned_data["labels"]))
        return cleaned


class LabelsForm(LabelledForm, RequestForm):
    """A form that replaces the labels."""

    service = staticmethod(services.set_labels)
    label = _("Save labels")
    success = _("Labels saved.")
    anchor = "#labels"


class NewRequestForm(LabelledForm):
    """The form of a new request or draft; each line of `items` is a subject with its version."""

    service = staticmethod(services.request_promotion)
    refusals = (SchemadeskError,)
    field_order = ("items", "source", "target", "reason", "labels", "with_config")

    items = LongTextField(
        label=_("Subjects"),
        code=True,
        placeholder="orders-value 3",
        help_text=_(
            "One subject per line, optionally followed by a space and a version. Without a version, the"
            " latest is used. Referenced schemas are included automatically."
        ),
    )
    source = NameChoiceField(label=_("From"))
    target = NameChoiceField(label=_("To"))
    reason = LongTextField(label=_("Reason"), required=False, help_text=_("What reviewers should know."))
    with_config = forms.BooleanField(
        label=_("Include the subjects’ own settings"),
        required=False,
        help_text=_("Compatibility level, rules, metadata and description, as set on the subjects themselves."),
    )
    again_of = forms.IntegerField(widget=forms.HiddenInput, required=False)
    draft = forms.BooleanField(widget=forms.HiddenInput, required=False)

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        lines = str(self["items"].value() or "").count("\n")
        self.fields["items"].widget.attrs["rows"] = max(3, min(12, lines + 2))

    def clean_items(self) -> list[tuple[SubjectName, int | str]]:
        """Return pairs of subject and version."""
        pairs: list[tuple[SubjectName, int | str]] = field_value(items_of, self.cleaned_data["items"])
        return pairs

    def message(self, **route: Any) -> str:
        """Say the new request's number, and whether it is a draft or waits for review."""
        if self.cleaned_data["draft"]:
            return gettext("Request %(number)s is your draft.") % {"number": self.result}
        return gettext("Request %(number)s is waiting for review.") % {"number": self.result}


def items_of(lines: str) -> list[tuple[SubjectName, int | str]]:
    """Parse lines to pairs of subject and version. Raises InvalidInput, InvalidName."""
    written = [line.strip() for line in lines.splitlines() if line.strip()]
    if len(written) > MAX_LINES:
        raise InvalidInput(
            gettext("There are %(count)s lines. The maximum is %(max_lines)s.")
            % {"count": len(written), "max_lines": MAX_LINES}
        )
    return [_item(line) for line in written]


def _item(line: str) -> tuple[SubjectName, int | str]:
    """Parse a line. A name may contain spaces, so that only a number or `latest` at the end is a version."""
    name, _, version = line.rpartition(" ")
    if name and (version == LATEST or (version.isascii() and version.isdigit())):
        return parse_subject(name.strip()), version
    return parse_subject(line), LATEST


class AcknowledgeForm(RequestForm):
    """A form that acknowledges the request for an affected client."""

    service = staticmethod(services.acknowledge)
    label = _("Acknowledge")
    lede = _(
        "Acknowledging means that the people who run this client know the effects and accept the change. It applies to the"
        " current plan only."
    )
    anchor = "#consumers"

    subject = _hidden()
    client = _hidden()
    plan_hash = _hidden()
    note = LongTextField(label=_("Note"), rows=2, required=False, max_length=MAX_NOTE)

    def message(self, **route: Any) -> str:
        """Say whether the acknowledgement is new."""
        return gettext("Acknowledged.") if self.result else gettext("Already acknowledged.")


class TakeBackForm(RequestForm):
    """A form that withdraws an acknowledgement."""

    service = staticmethod(services.withdraw_acknowledgement)
    anchor = "#consumers"

    subject = _hidden()
    client = _hidden()

    def message(self, **route: Any) -> str:
        """Say whether there was one."""
        return gettext("Acknowledgement withdrawn.") if self.result else gettext("Not acknowledged.")


class ThreadForm(RequestForm):
    """A form that starts a discussion about a field, a subject or the whole request.

    `suggestion` is the proposed text, which may be changed; `proposed` is the request's item with it, None without one.
    """

    service = staticmethod(services.open_thread)
    label = _("Start discussion")
    success = _("Discussion started.")
    proposed: ItemInfo | None = None

    subject = _hidden()
    path = _hidden()
    text = LongTextField(label=_("Comment on this request"))
    suggestion = LongTextField(label=_("Suggested text"), code=True, rows=16, required=False, strip=False)

    def offer(self, proposed: ItemInfo | None) -> None:
        """Begin the suggestion with the proposed text."""
        self.proposed = proposed
        if proposed is None:
            del self.fields["suggestion"]
        else:
            self.initial["suggestion"] = proposed.text

    def place(self, **route: Any) -> str:
        """Return the discussions, with the subject's changes selected."""
        subject = self.cleaned_data["subject"]
        return f"?{urlencode({'item': subject})}#discussion" if subject else "#discussion"


class OfThreadForm(RequestForm):
    """A form about one discussion."""

    refusals = (Conflict, InvalidInput, NotAllowed)

    def place(self, **route: Any) -> str:
        """Return the discussion."""
        return f"#thread-{route['thread_id']}"


class ReplyForm(OfThreadForm):
    """A form that adds a comment to a discussion."""

    service = staticmethod(services.reply)
    label = _("Send")
    success = _("Reply sent.")

    text = LongTextField(label=_("Your reply"))


class ResolveForm(OfThreadForm):
    """A form that resolves a discussion."""

    service = staticmethod(services.resolve)
    success = _("Discussion resolved.")


class TakeForm(OfThreadForm):
    """A form that takes the suggestion of a discussion."""

    service = staticmethod(services.take_suggestion)
    success = _("Suggestion taken. The checks were run for the new text.")


class ReopenForm(OfThreadForm):
    """A form that reopens a discussion."""

    service = staticmethod(services.reopen)
    success = _("Discussion reopened.")
