"""The forms of the editor of a proposed schema, and their initial values: a version, draft, finding or request."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, ClassVar, Final, cast

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compatibility.forms import SchemaForm, typed_rows
from dashboard.components.forms import CodeField, LongTextField, NameChoiceField, field_value
from dashboard.components.links import form_text, whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.subjects.page import for_people
from registry import errors
from registry.access.roles import Actor, require
from registry.drift.proposals.observed_schema import can_propose, propose_from, subject_of
from registry.drift.selectors import get_finding
from registry.formats import FORMATS
from registry.formats.schema_format import format_of_file
from registry.promotions import selectors, services
from registry.promotions.hook_points import readable_findings
from registry.promotions.requests.selectors import readable_request
from registry.promotions.selectors import DraftInfo, RequestInfo
from registry.subjects import selectors as subjects
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

_FINDING: Final = "finding:"


def _accepted_files() -> str:
    endings = {".txt", *(end for item in FORMATS.values() for end in item.file_extensions)}
    return ", ".join([*sorted(endings), "application/json", "text/plain"])


class NumberField(forms.CharField):
    """A hidden field with a number."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> int | None:  # type: ignore[override]
        """Return the number; None if empty or invalid."""
        return whole_number(str(value or ""))


class SchemaFileField(forms.FileField):
    """A schema file; the value is its name and its text."""

    widget = forms.FileInput

    def to_python(self, data: Any) -> tuple[str, str] | None:  # type: ignore[override]
        """Return the name and the text; refuse a file that is too large or not text."""
        if data is None:
            return None
        most, size = settings.SCHEMA_MAX_BYTES, data.size or 0
        if size > most:
            message = gettext(
                "The file is too large. It has %(size)s bytes. The maximum is %(most)s (SCHEMA_MAX_BYTES)."
            )
            raise forms.ValidationError(message % {"size": size, "most": most})
        try:
            return data.name or "", data.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = gettext("The file is not valid UTF-8 at byte %(place)s. Save it as UTF-8 and upload it again.")
            raise forms.ValidationError(message % {"place": error.start + 1}) from error


class ProposalForm(SchemaForm):
    """The form of the editor; it checks a text.

    `draft_id` is its draft, `state_read` the draft's state when it was read. `finding` is the finding that it answers,
    `again_of` the request that it resubmits. A suggested fix (`fixed`) or a file replaces the text.
    """

    service: ClassVar[Callable[..., object]] = staticmethod(services.preview_proposal)
    #: form field → argument of the service
    names: ClassVar[dict[str, str]] = {"registry": "target", "subject": "subject", "finding": "finding"}

    registry = NameChoiceField(label=_("Environment"))
    subject = CodeField(label=_("Subject"))
    file = SchemaFileField(label=_("Or a schema file"), required=False)
    reason = LongTextField(label=_("Reason"), required=False, help_text=_("What reviewers should know."))
    origin = forms.CharField(widget=forms.HiddenInput, required=False)
    draft_id = NumberField(required=False)
    state_read = forms.CharField(widget=forms.HiddenInput, required=False)
    finding = NumberField(required=False)
    again_of = NumberField(required=False)

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["file"].widget.attrs["accept"] = _accepted_files()

    @classmethod
    def sent(cls, request: HttpRequest) -> ProposalForm:
        """Return the form for the button that was pressed."""
        data = request.POST.copy()
        fixed = data.get("fixed")
        if fixed:
            data["text"] = fixed
        form = _BY_BUTTON.get(data.get("do", ""), cls)(data, files=None if fixed else request.FILES)
        form.is_valid()
        return form

    def clean_subject(self) -> SubjectName:
        """Return the subject's name."""
        name: SubjectName = field_value(parse_subject, self.cleaned_data["subject"])
        return name

    def clean(self) -> None:
        """Read the text from the file; its extension can determine the format."""
        file = self.cleaned_data.pop("file", None)
        if not file:
            return
        name, text = file
        schema_type = format_of_file(name, self.cleaned_data.get("schema_type", ""))
        origin = gettext("from the file %(name)s") % {"name": name[:80]}
        self.fill(text=text.replace("\r\n", "\n"), schema_type=schema_type, origin=origin)

    def fill(self, **values: str) -> None:
        """Replace submitted values of the form."""
        self.cleaned_data |= values
        for name, value in values.items():
            cast(MutableMapping[str, Any], self.data)[name] = value

    def arguments(self) -> dict[str, Any]:
        """Return the schema and the fields in `names`."""
        return self.schema | {argument: self.cleaned_data[name] for name, argument in self.names.items()}

    def add_service_error(self, error: errors.SchemadeskError) -> None:
        """Let the next submission overwrite a changed draft, as the page says, and omit a missing finding."""
        super().add_service_error(error)
        if isinstance(error, errors.DraftChanged):
            self.fill(state_read=str(error.details["seen"]))
        if isinstance(error, errors.FindingNotFound):
            self.fill(finding="")

    def number(self, name: str) -> int | None:
        """Return the number in a hidden field."""
        return self.fields[name].to_python(self[name].value())  # type: ignore[no-any-return]


def _save(*, again_of: int | None, **values: Any) -> int:
    """Save the draft; if its subject or target was changed, it no longer resubmits a request."""
    try:
        return services.save_draft(again_of=again_of, **values)
    except errors.InvalidInput as error:
        if error.details.get("field") != "again_of":
            raise
        return services.save_draft(**values)


class SaveForm(ProposalForm):
    """A form that saves the text as a draft, which may be incomplete."""

    service = staticmethod(_save)
    success = _("Draft saved. Only you can see it.")
    refusals = (errors.Conflict, errors.InvalidInput, errors.NotAllowed, errors.NotFound, errors.Unavailable)
    names = {name: name for name in ("registry", "subject", "reason", "origin", "finding", "again_of")}

    def arguments(self) -> dict[str, Any]:
        """Return all fields; without `state_read`, the draft is overwritten in any state."""
        state = self.cleaned_data["state_read"] if "state_read" in self.data else None
        return {**super().arguments(), "state_read": state}


class ProposeForm(ProposalForm):
    """A form that requests the review of the text."""

    service = staticmethod(services.propose_version)
    refusals = SaveForm.refusals
    names = ProposalForm.names | {"draft_id": "draft_id", "again_of": "again_of"}

    def arguments(self) -> dict[str, Any]:
        """Return all fields; without a reason, the draft's reason is kept."""
        reason = self.cleaned_data["reason"] if "reason" in self.data else None
        return {**super().arguments(), "reason": reason}

    def message(self, **route: Any) -> str:
        """Say the request's number."""
        return gettext("Request %(number)s is waiting for review.") % {"number": self.result}


_BY_BUTTON: Final[dict[str, type[ProposalForm]]] = {"save": SaveForm, "autosave": SaveForm, "submit": ProposeForm}


def draft_values(info: DraftInfo) -> dict[str, Any]:
    """Return the editor's values for a draft."""
    return {
        "registry": info.registry,
        "subject": info.subject.qualified,
        "text": info.text,
        "schema_type": info.schema_type,
        "references": typed_rows(info.references),
        "reason": info.reason,
        "origin": info.origin,
        "draft_id": info.id,
        "state_read": info.state,
        "finding": info.finding,
        "again_of": info.again_of,
    }


def first_values(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """Return the editor's initial values for a URL.

    These are empty, a version (`from=prod:3`, `from=3`), for a finding, or a request's text (`again_of=12`). Raises
    NotAllowed, SubjectNotFound, VersionNotFound, FindingNotFound, RequestNotFound, InvalidInput.
    """
    order = selectors.list_environments()
    start = form_text(request.GET, "from")
    if start.startswith(_FINDING):
        return _finding_values(start.removeprefix(_FINDING), actor, order)
    again_of = whole_number(form_text(request.GET, "again_of"))
    if again_of is not None:
        return _request_values(readable_request(again_of, actor), actor)
    values = {
        "registry": form_text(request.GET, "registry") or (order[0] if order else ""),
        "subject": form_text(request.GET, "subject"),
    }
    if not values["subject"]:
        return values
    registry, _, version = start.rpartition(":")
    place = registry or values["registry"]
    return values | _version_values(values["subject"], place, version or "latest", actor, required=bool(start))


def _request_values(info: RequestInfo, actor: Actor) -> dict[str, Any]:
    """Return the text that a request proposed; for another kind of request, the target's newest version."""
    name = info.subject.qualified
    values = {"registry": info.target, "subject": name, "reason": info.reason, "again_of": info.id}
    item = info.items[0] if info.items else None
    if item is None or not item.text:
        return values | _version_values(name, info.target, "latest", actor, required=False)
    return values | {
        "text": item.text,
        "schema_type": item.schema_type,
        "references": [(str(ref["name"]), str(ref["subject"]), str(ref["version"])) for ref in item.references],
        "origin": gettext("from request %(number)s") % {"number": info.id},
        "finding": info.finding if readable_findings([info.finding], actor) else None,
    }


def _version_values(subject: str, registry: str, version: str, actor: Actor, *, required: bool) -> dict[str, Any]:
    """Return a version's text; none if the version is missing and not `required`."""
    name = parse_subject(subject)
    require(actor, "schema.read", registry=registry, subject=name.qualified)
    try:
        info = subjects.get_version(get_registry(registry), name, version)
    except errors.NotFound:
        if required:
            raise
        return {}
    return {
        "text": for_people(info),
        "schema_type": info.schema.schema_type,
        "references": typed_rows(info.schema.references),
        "origin": gettext("from version %(version)s of %(place)s") % {"version": info.version, "place": registry},
    }


def _finding_values(number: str, actor: Actor, order: Sequence[str]) -> dict[str, Any]:
    """Return the declared schema, changed to the observed data if possible, with the finding's text as the reason."""
    finding = get_finding(whole_number(number) or 0, by=actor)
    observed = (
        gettext("Seen in the data at %(location)s: %(sentence)s %(remedy)s")
        % {"location": finding.location, "sentence": finding.sentence, "remedy": finding.remedy}
    ).strip()
    values = {
        "registry": finding.registry if finding.registry in order else next(iter(order), ""),
        "subject": subject_of(finding),
        "reason": observed,
        # who can read only the subject may start from the observed data, but not refer to the finding
        "finding": finding.id if finding.id in readable_findings([finding.id], actor) else None,
    }
    origin = {"origin": gettext("after finding %(id)s") % {"id": finding.id}}
    if not values["subject"]:
        return values | origin
    values |= _version_values(subject_of(finding), finding.registry, "latest", actor, required=False) | origin
    if can_propose(finding):
        try:
            proposed = propose_from(finding)
            values |= {"text": proposed.text, "schema_type": proposed.schema_type}
            note = proposed.note
        except errors.InvalidInput as error:
            note = error.message
        values["reason"] = f"{observed} {note}".strip()
    return values
