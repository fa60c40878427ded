"""Bulk changes of subjects selected in the list: tags, owners, deprecation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.forms import EndOfDayField, LongTextField, ServiceForm, field_value
from dashboard.components.frame import make_frame
from dashboard.components.links import subjects_crumb
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Choice, Frame, Section
from dashboard.subjects.descriptions import OwnerChip, TagChip, owner_chips, tag_chips
from registry.access.name_patterns import pattern_of
from registry.access.roles import Actor, may_somewhere, refusal, require
from registry.access.selectors import owners_of_many
from registry.access.services import add_owner
from registry.errors import Conflict, InvalidInput, NotFound
from registry.subjects.lifecycle.bulk import Outcome, deprecate_several
from registry.subjects.lifecycle.notes import MOST, Note, change_tags, clean_tags, notes_of
from registry.subjects.lifecycle.retirement import DEPRECATE, RIGHTS
from registry.subjects.models import SubjectActivity
from registry.subjects.versions.lookup import Registry, among, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

ADD, REMOVE, OWN_USER, OWN_GROUP = "add", "remove", "own_user", "own_group"
#: code of a bulk change → its label in the form, and the permission that it needs
CHANGES: Final = {
    ADD: (_("Add tag"), "subject.describe"),
    REMOVE: (_("Remove tag"), "subject.describe"),
    OWN_USER: (_("Add person as owner"), "people.manage"),
    OWN_GROUP: (_("Add group as owner"), "people.manage"),
}
_CURE: Final = _("Go back to the list and select again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForm:
    """The bulk changes that a person may make; a URL is "" if they may not."""

    url: str = ""
    choices: tuple[Choice, ...] = ()
    export_url: str = ""
    deprecate_url: str = ""


def chosen_subjects(texts: Sequence[str]) -> list[SubjectName]:
    """Return the subjects named in a form without duplicates, in their order. Raises InvalidName."""
    return list(dict.fromkeys(parse_subject(text) for text in texts))


class SubjectsField(forms.Field):
    """The selected subjects without duplicates, in their order."""

    widget = forms.MultipleHiddenInput

    def clean(self, value: Any) -> list[SubjectName]:
        """Return the names; refuse an empty or too long selection."""
        names: list[SubjectName] = field_value(chosen_subjects, value or ())
        if not 1 <= len(names) <= MOST:
            message = gettext("Select 1 to %(most)s subjects in the list. You selected %(count)s.")
            raise forms.ValidationError(message % {"most": MOST, "count": len(names)})
        return names


class BulkSubjectForm(ServiceForm):
    """A form about the subjects selected in the list; `confirmed` says that the preview was shown."""

    cure = _CURE

    subject = SubjectsField()

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments."""
        values = dict(self.cleaned_data)
        return {"subjects": values.pop("subject"), **values}


@transaction.atomic
def change_subjects(
    *, registry: str, subjects: Sequence[SubjectName], change: str, value: str, reason: str, by: Actor
) -> None:
    """Change the tags, or add an owner to each subject by a rule for its literal name; all or nothing."""
    if change in (ADD, REMOVE):
        change_tags(
            registry=registry,
            subjects=subjects,
            by=by,
            reason=reason,
            add=[value] if change == ADD else (),
            remove=[value] if change == REMOVE else (),
        )
        return
    owner = {"username" if change == OWN_USER else "group": value}
    for name in subjects:
        add_owner(subject_pattern=pattern_of(name.qualified), registry=registry, by=by, **owner)


class ChangeSeveralForm(BulkSubjectForm):
    """A form that adds or removes a tag, or adds an owner."""

    service = staticmethod(change_subjects)
    refusals = (Conflict, InvalidInput, NotFound)

    change = forms.ChoiceField(
        choices=[(code, label) for code, (label, _) in CHANGES.items()],
        widget=forms.HiddenInput,
        error_messages={name: _("Choose an action.") for name in ("required", "invalid_choice")},
    )
    value = forms.CharField(widget=forms.HiddenInput, error_messages={"required": _("Enter the name of the owner.")})
    reason = LongTextField(label=_("Reason"), rows=2, required=False, help_text=_("For the audit log."))

    def clean(self) -> None:
        """Refuse an invalid tag."""
        if self.cleaned_data.get("change") in (ADD, REMOVE) and "value" in self.cleaned_data:
            field_value(clean_tags, [self.cleaned_data["value"]])

    @property
    def sentence(self) -> str:
        """Say what is done to each subject."""
        given = self.cleaned_data
        return f"{CHANGES[given['change']][0]} “{given['value']}”" if {"change", "value"} <= given.keys() else ""

    def message(self, **route: Any) -> str:
        """Say what was done."""
        number = len(self.cleaned_data["subject"])
        return counted(number, "%(n)s subject: %(change)s.", "%(n)s subjects: %(change)s.", change=self.sentence)


class DeprecateSeveralForm(BulkSubjectForm):
    """A form that deprecates all live versions of the subjects; the result has the outcome of each."""

    service = staticmethod(deprecate_several)

    message = LongTextField(label=_("Reason, and what to use instead"), rows=2)  # type: ignore[assignment]
    ends_at = EndOfDayField(label=_("End date"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRow:
    """A subject in the preview: its tags before and after."""

    name: str
    before: tuple[TagChip, ...] = ()
    after: tuple[TagChip, ...] = ()
    owners: tuple[OwnerChip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPage:
    """The confirmation page of a bulk change."""

    frame: Frame
    registry: str
    form: ChangeSeveralForm
    rows: tuple[BulkRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRow:
    """A selected subject and the number of versions to deprecate or deprecated; `why_not` if it can't be or failed."""

    name: str
    versions: int = 0
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralPage:
    """The deprecation of several subjects: the confirmation, or with `done` the outcomes."""

    frame: Frame
    registry: str
    form: DeprecateSeveralForm
    rows: tuple[SeveralRow, ...] = ()
    done: bool = False

    @property
    def possible(self) -> int:
        """The number of subjects that can be or were deprecated."""
        return sum(not row.why_not for row in self.rows)


def bulk_form(actor: Actor, registry: str) -> BulkForm | None:
    """Return the form below the list, with the changes that the person may make in some subject; None in the past.

    Everyone who can read the list can export from it. The past has no form because an export has current versions.
    """
    if actor.past:
        return None
    allowed = [code for code, (_, action) in CHANGES.items() if may_somewhere(actor, action)]
    may_deprecate = may_somewhere(actor, RIGHTS[DEPRECATE])
    return BulkForm(
        url=reverse("ui:subjects_describe", args=[registry]) if allowed else "",
        choices=tuple(Choice(value=code, label=CHANGES[code][0], selected=code == ADD) for code in allowed),
        export_url=reverse("ui:subjects_export", args=[registry]),
        deprecate_url=reverse("ui:subjects_deprecate", args=[registry]) if may_deprecate else "",
    )


def change_page(request: HttpRequest, registry: str, form: ChangeSeveralForm, actor: Actor) -> BulkPage:
    """Return the preview for the selected subjects. Raises NotAllowed, RegistryNotFound."""
    names = form.cleaned_data.get("subject", [])
    change, value = form.cleaned_data.get("change", ""), form.cleaned_data.get("value", "")
    notes = notes_of(get_registry(registry), names)
    owners = owners_of_many(registry, [name.qualified for name in names])
    rows = tuple(
        BulkRow(
            name=name.qualified,
            before=tag_chips(registry, notes.get(name, Note()).tags),
            after=tag_chips("", _after(change, value, notes.get(name, Note()).tags)),
            owners=owner_chips(registry, owners[name.qualified]),
        )
        for name in names
    )
    frame = _frame(request, registry, gettext("Change several subjects"))
    return BulkPage(frame=frame, registry=registry, form=form, rows=rows)


def require_change(form: ChangeSeveralForm, registry: str, actor: Actor) -> None:
    """Raise NotAllowed unless the actor may make this change to all selected subjects."""
    right = CHANGES.get(form.cleaned_data.get("change", ""), ("", "subject.describe"))[1]
    for name in form.cleaned_data.get("subject", []):
        require(actor, right, registry="" if right == "people.manage" else registry, subject=name.qualified)


def _after(change: str, value: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    if change == REMOVE:
        return tuple(tag for tag in tags if tag.lower() != value.lower())
    if change == ADD and value.lower() not in {tag.lower() for tag in tags}:
        return tuple(sorted((*tags, value)))
    return tags


def deprecate_page(request: HttpRequest, registry: str, form: DeprecateSeveralForm, actor: Actor) -> SeveralPage:
    """Return the preview for the selected subjects. Raises RegistryNotFound."""
    names = chosen_subjects(request.POST.getlist("subject"))[:MOST] if "subject" not in form.errors else []
    live = _live(get_registry(registry), names)
    rows = tuple(
        SeveralRow(
            name=name.qualified,
            versions=live.get(name, 0),
            why_not=refusal(actor, RIGHTS[DEPRECATE], registry=registry, subject=name.qualified)
            or ("" if name in live else gettext("No live version.")),
        )
        for name in names
    )
    frame = _frame(request, registry, gettext("Deprecate several subjects"))
    return SeveralPage(frame=frame, registry=registry, form=form, rows=rows)


def done_page(request: HttpRequest, registry: str, form: DeprecateSeveralForm) -> SeveralPage:
    """Return the outcome for each subject."""
    outcomes: Sequence[Outcome] = form.result
    rows = tuple(
        SeveralRow(name=outcome.subject.qualified, versions=len(outcome.versions), why_not=outcome.refusal)
        for outcome in outcomes
    )
    frame = _frame(request, registry, gettext("Deprecate several subjects"))
    return SeveralPage(frame=frame, registry=registry, form=form, rows=rows, done=True)


def _live(registry: Registry, names: Sequence[SubjectName]) -> dict[SubjectName, int]:
    """Count the live versions of each subject that has some, in one query."""
    rows = SubjectActivity.objects.filter(among(names, "subject__"), registry_id=registry.pk)
    counts = rows.values_list("subject__context__name", "subject__name", "live_versions")
    return {SubjectName(context, name): number for context, name, number in counts}


def _frame(request: HttpRequest, registry: str, title: str) -> Frame:
    crumbs = (subjects_crumb(registry),)
    return make_frame(request, title=title, section=Section.SUBJECTS, registry=registry, crumbs=crumbs)
