"""The forms that declare a client, decode a message, and retire a version or a subject."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import (
    NOT_OF_RIGHTS,
    CodeField,
    EndOfDayField,
    LongTextField,
    NameChoiceField,
    ServiceForm,
    fill_choices,
)
from dashboard.components.links import whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from registry.drift.selectors.messages import ENCODINGS, decode_message
from registry.errors import InvalidInput, VersionNotFound
from registry.subjects.lifecycle.retirement import DEPRECATE, HARD, RESTORE, SOFT, retire
from registry.subjects.usage.clients import ACTION, declare_client
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context

#: access of a client → whether it reads, whether it writes
_ACCESS: Final = {"reads": (True, False), "writes": (False, True), "both": (True, True)}
LABELS: Final = {
    DEPRECATE: _("Deprecate"),
    SOFT: _("Soft-delete"),
    HARD: _("Delete permanently"),
    RESTORE: _("Restore"),
}
ENCODING_LABELS: Final = {"auto": _("detect"), "hex": _("hexadecimal"), "base64": "base64", "text": _("text (JSON)")}


class DeclareClientForm(ServiceForm):
    """A form that declares a client; the result says whether it is new."""

    service = staticmethod(declare_client)
    label = _("Declare client")
    permission = ACTION
    refusals = (InvalidInput, VersionNotFound)

    name = forms.CharField(label=_("Name"), help_text=_("For example, the name of its consumer group or service."))
    does = forms.ChoiceField(
        label=_("Access"), choices=(("reads", _("reads")), ("writes", _("writes")), ("both", _("reads and writes")))
    )
    version = NameChoiceField(label=_("Version it was built with"), empty_label=_("newest at each start"))
    fields = LongTextField(  # type: ignore[assignment]  # Django removes it from the class
        label=_("Fields it uses"),
        rows=3,
        code=True,
        required=False,
        help_text=_("One path per line, such as Order.id. If empty, its fields are unknown."),
    )
    contact = forms.CharField(label=_("Contact"), required=False, help_text=_("A team, a channel or an address."))

    def offer_versions(self, numbers: Iterable[int]) -> None:
        """Set the choices to these versions, newest first."""
        fill_choices([self], version=map(str, sorted(numbers, reverse=True)))

    def clean_version(self) -> int | None:
        """Return the number; None for the newest."""
        text: str = self.cleaned_data["version"]
        number = whole_number(text, digits=10)
        if text and number is None:
            raise forms.ValidationError(gettext("The version is not a number."))
        return number

    def clean_fields(self) -> list[str]:
        """Return the paths."""
        text: str = self.cleaned_data["fields"]
        return text.replace(",", "\n").splitlines()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments, with the access as `reads` and `writes`."""
        values = dict(self.cleaned_data)
        reads, writes = _ACCESS[values.pop("does")]
        return {**values, "reads": reads, "writes": writes}

    def message(self, **route: Any) -> str:
        """Return the message on success."""
        text = gettext("%(name)s was declared.") if self.result else gettext("%(name)s was updated.")
        return text % self.cleaned_data


class DecodeForm(ServiceForm):
    """A form that decodes a message."""

    service = staticmethod(decode_message)
    label = _("Decode")
    refusals = NOT_OF_RIGHTS

    message = LongTextField(  # type: ignore[assignment]  # Django removes it from the class
        label=_("Message"),
        rows=8,
        code=True,
        required=False,
        strip=False,
        placeholder="00 00 00 00 09 02 06 61 62 63",
        help_text=_("Hexadecimal, base64, the output of a tool, or JSON. The message is not stored."),
    )
    registry = NameChoiceField(label=_("Registry"))
    side = forms.ChoiceField(label=_("Part"), choices=(("value", _("value")), ("key", _("key"))), required=False)
    encoding = forms.CharField(
        label=_("Encoding"),
        required=False,
        widget=forms.Select(choices=[(name, ENCODING_LABELS[name]) for name in ENCODINGS]),
    )
    headers = LongTextField(
        label=_("Headers"),
        rows=3,
        code=True,
        required=False,
        placeholder="contentType: application/vnd.orders.v2+avro",
        help_text=_("One header per line, as name: value. Only headers that identify a schema are used."),
    )
    context = CodeField(
        label=_("Context"),
        required=False,
        placeholder=".",
        help_text=_("The context of its schema ids. If empty, the default context."),
    )

    def __init__(self, data: Any = None, *, registries: list[str], **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["message"].widget.attrs["required"] = True
        fill_choices([self], registry=registries)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments: the registry's row, the context, and defaults. Raises RegistryNotFound, InvalidName."""
        values = dict(self.cleaned_data)
        return {
            "registry": get_registry(values["registry"]),
            "text": values["message"],
            "headers": values["headers"],
            "side": values["side"] or "value",
            "encoding": values["encoding"] or "auto",
            "context": check_context(values["context"]) if values["context"] else DEFAULT_CONTEXT,
        }


class RetireForm(ServiceForm):
    """A form of a step for a version or a subject; `what` it is in words, and the `subject` to type as confirmation."""

    service = staticmethod(retire)
    choice: ClassVar[str]
    tone: ClassVar[str] = "danger"
    conditional = ("force",)

    def __init__(self, data: Any = None, *, subject: str, what: str) -> None:
        super().__init__(data)
        self.label = lazy_format("%(step)s: %(what)s", step=LABELS[self.choice], what=what)
        if "confirmed" in self.fields:
            self.fields["confirmed"].label = lazy_format(_("Type %(qualified)s to confirm"), qualified=subject)

    def arguments(self) -> dict[str, Any]:
        """Return the step with its fields."""
        return {"choice": self.choice, **self.cleaned_data}


class DeprecateForm(RetireForm):
    """A form that deprecates."""

    choice = DEPRECATE
    tone = "primary"

    message = LongTextField(  # type: ignore[assignment]  # Django removes it from the class
        label=_("Reason, and what to use instead"),
        help_text=_("Shown to readers in a header, to people on pages, and to owners in their inbox."),
    )
    ends_at = EndOfDayField(label=_("End date"))


class SoftDeleteForm(RetireForm):
    """A form that soft-deletes."""

    choice = SOFT

    confirmed = CodeField()


class DeletePermanentlyForm(SoftDeleteForm):
    """A form that deletes permanently."""

    choice = HARD

    force = forms.CharField(
        label=_("Reason to force it"),
        required=False,
        help_text=_(
            "Needed if it is or may be in use. Requires the permission to force versions. The reason is recorded in the audit log."
        ),
    )


class RestoreForm(RetireForm):
    """A form that restores soft-deleted versions."""

    choice = RESTORE
    tone = "primary"

    force = forms.CharField(
        label=_("Reason to force it"),
        required=False,
        help_text=_(
            "Needed if the result is not compatible. Requires the permission to force versions. "
            "The reason is recorded in the audit log."
        ),
    )


RETIRE_FORMS: Final[dict[str, type[RetireForm]]] = {
    form.choice: form for form in (DeprecateForm, SoftDeleteForm, DeletePermanentlyForm, RestoreForm)
}
