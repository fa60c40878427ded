"""Forms that run a service, and the view that runs one and shows its page again.

A form's fields are the service's arguments. What Django's fields can't check, the service checks; its error names the
argument in `details["field"]`, and the form adds the error to that field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any, ClassVar, Final, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views import View

from dashboard.components.frame import page_actor
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import LONGEST_CHOICE, Frame, Problem, readable
from registry.access.roles import Actor, may_somewhere, require
from registry.errors import (
    Conflict,
    InvalidInput,
    NotAllowed,
    NotFound,
    SchemadeskError,
    SecondPersonRequired,
    Unavailable,
)

_CLASSES: Final = {"textarea": "textarea", "select": "select", "checkbox": ""}
#: attributes of an input for names and code
CODE: Final = {"spellcheck": "false", "autocapitalize": "off", "autocomplete": "off", "class": "input-code"}
#: errors that a form may show: all except those of permissions
NOT_OF_RIGHTS: Final = (Conflict, InvalidInput, NotFound, Unavailable)
_NOT_UTC: Final = _("Enter a time in UTC, such as 2026-12-31T18:00.")


class StyledField(forms.BoundField):
    """A field with the site's CSS classes."""

    def build_widget_attrs(self, attrs: dict[str, Any], widget: forms.Widget | None = None) -> dict[str, Any]:
        """Return Django's attributes and the classes."""
        widget = widget or self.field.widget
        built: dict[str, Any] = super().build_widget_attrs(attrs, widget)
        kind = getattr(widget, "input_type", "textarea")
        css = f"{_CLASSES.get(kind, 'input')} {widget.attrs.get('class', '')}".strip()
        return {**built, "class": css} if css else built

    @property
    def is_optional(self) -> bool:
        """Whether to label the field as optional; a select has an empty choice instead."""
        is_needed = self.field.required or self.name in getattr(self.form, "conditional", ())
        return not is_needed and self.widget_type != "select"


class CodeField(forms.CharField):
    """A name or pattern, in monospace."""

    def __init__(self, *, placeholder: str = "", **options: Any) -> None:
        attrs = CODE | ({"placeholder": placeholder} if placeholder else {})
        super().__init__(widget=forms.TextInput(attrs=attrs), **options)


class NameChoiceField(forms.CharField):
    """A name from a list that the page fills in (`fill_choices`); the service checks it.

    `empty_label` is the choice of no name; it is first, or last if `is_first_usual`.
    """

    def __init__(self, *, empty_label: str = "", is_first_usual: bool = False, **options: Any) -> None:
        super().__init__(widget=forms.Select, required=not empty_label, **options)
        self.empty_label, self.is_first_usual = empty_label, is_first_usual
        self.fill(())

    def fill(self, names: Iterable[str]) -> None:
        """Set the choices to these names."""
        choices = [(name, readable(name)[:LONGEST_CHOICE]) for name in names]
        none = [("", self.empty_label)] if self.empty_label else []
        cast(forms.Select, self.widget).choices = [*choices, *none] if self.is_first_usual else [*none, *choices]
        if self.is_first_usual and choices:
            self.initial = choices[0][0]


class LongTextField(forms.CharField):
    """A multi-line text; code is in monospace without wrapping."""

    def __init__(self, *, rows: int = 3, code: bool = False, placeholder: str = "", **options: Any) -> None:
        attrs = {"rows": rows} | (CODE | {"wrap": "off"} if code else {})
        super().__init__(
            widget=forms.Textarea(attrs=attrs | ({"placeholder": placeholder} if placeholder else {})), **options
        )


class UtcDateTimeField(forms.DateTimeField):
    """A moment in UTC, regardless of the viewer's time zone."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
        super().__init__(widget=widget, error_messages={"invalid": _NOT_UTC}, **options)

    def to_python(self, value: Any) -> datetime | None:
        """Return the aware moment."""
        with timezone.override(UTC):
            return super().to_python(value)

    def prepare_value(self, value: Any) -> Any:
        """Return the moment in UTC for the input."""
        with timezone.override(UTC):
            return super().prepare_value(value)


@dataclass(frozen=True, slots=True)
class FormSection:
    """Fields of a long form under a title, by their names; a folded section is collapsed."""

    title: str
    names: Sequence[str]
    note: str = ""
    is_folded: bool = False


class EndOfDayField(forms.DateField):
    """A date; the value is the end of that day in UTC."""

    def __init__(self, **options: Any) -> None:
        message = _("Write the date as 2026-12-31.")
        widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
        super().__init__(widget=widget, required=False, error_messages={"invalid": message}, **options)

    def clean(self, value: Any) -> datetime | None:
        """Return the end of the day; None if empty."""
        day = super().clean(value)
        return datetime.combine(day, time.max, tzinfo=UTC) if day else None


class ServiceForm(forms.Form):
    """A form that runs `service` with its fields as arguments.

    `label` is the button's, `success` the message on success, in which `%(result)s` is the service's result. `permission` is
    checked before the fields if the service would check it only after them. `conditional` names the fields that are
    required only by some values or buttons. `refusals` are errors shown on the form with the `cure` and
    `response_status`; others propagate. `sections` divide a long form.
    """

    service: ClassVar[Callable[..., object]]
    label: str = ""
    #: a sentence above the fields
    lede: ClassVar[str] = ""
    success: ClassVar[str] = ""
    permission: ClassVar[str] = ""
    conditional: tuple[str, ...] = ()
    cure: ClassVar[str] = ""
    refusals: ClassVar[tuple[type[SchemadeskError], ...]] = (Conflict, InvalidInput)
    sections: Sequence[FormSection] = ()
    result: Any = None
    response_status = 422
    bound_field_class = StyledField

    def __init__(self, data: Any = None, *, key: object = "", **options: Any) -> None:
        """Create the form; `key` makes the ids unique if a page has several forms of one class."""
        super().__init__(data, label_suffix="", auto_id=f"{type(self).__name__}{key}_%s", **options)

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments from valid fields."""
        return self.cleaned_data

    def run(self, by: Actor, **target: Any) -> bool:
        """Run the service; return False with the errors on the form if it or a field is invalid.

        Other errors propagate, and so does SecondPersonRequired, which opens another form.
        """
        if not self.is_valid():
            return False
        try:
            self.result = type(self).service(by=by, **target, **self.arguments())
        except SecondPersonRequired:
            raise
        except self.refusals as error:
            self.response_status = 403 if isinstance(error, NotAllowed) else 422
            self.add_service_error(error)
            return False
        return True

    def add_service_error(self, error: SchemadeskError) -> None:
        """Add the error to its field, with the field's label in place of the argument's name."""
        name = str(error.details.get("field", ""))
        if name not in self.fields or isinstance(self.fields[name].widget, forms.HiddenInput):
            self.add_error(None, error.message)
            return
        text, label = error.message, gettext("“%(label)s”") % {"label": self.fields[name].label}
        is_named = "_" in name or text.startswith(f"{name} ")  # a single word may also be an ordinary word
        self.add_error(name, text.replace(f"{name} ", f"{label} ", 1) if is_named else text)

    def message(self, **route: Any) -> str:
        """Return `success` with the values of the URL and the fields, and with the service's `result`."""
        return str(self.success) % {**route, **self.cleaned_data, "result": self.result}

    @property
    def drawn_sections(self) -> list[tuple[FormSection, list[forms.BoundField], bool]]:
        """Return each section with its fields, and whether it is expanded: an error expands it."""
        drawn = ((section, [self[name] for name in section.names]) for section in self.sections)
        return [(part, fields, not part.is_folded or any(field.errors for field in fields)) for part, fields in drawn]

    @property
    def problem(self) -> Problem | None:
        """The first error, for the top of the page."""
        for name, errors in self.errors.items():
            label = self.fields[name].label if name in self.fields else ""
            first = str(errors[0])
            is_named = not label or str(label) in first
            what = first if is_named else gettext("“%(label)s”: %(error)s") % {"label": label, "error": first}
            return Problem(what=what, cure=self.cure)
        return None


class ServiceFormView(View):
    """A view that runs a form, then shows its page with the message, or with the errors and status 422."""

    http_method_names = ["post", "options"]  # same type as in Django
    form_class: type[ServiceForm] = ServiceForm
    #: permission that the sender needs somewhere, checked before the input; the service checks the scope
    action: ClassVar[str] = ""
    #: URL name of the page to redirect to after success
    next_page: ClassVar[str] = ""

    def make_form(self, data: Any, **route: Any) -> ServiceForm:
        """Return the bound form."""
        return self.form_class(data)

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the service's arguments from the URL."""
        return route

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        raise NotImplementedError

    def after(self, **route: Any) -> HttpResponse:
        """Redirect after success."""
        return redirect(self.next_page)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Add the success message and redirect."""
        messages.success(self.request, form.message(**route))
        return self.after(**route)

    def check(self, actor: Actor, **route: Any) -> None:
        """Check that the actor may send the form. Raises NotAllowed, NotSignedIn."""
        if self.form_class.permission:
            require(actor, self.form_class.permission, registry=route.get("registry", ""))
        if self.action and not may_somewhere(actor, self.action):
            require(actor, self.action)

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form."""
        actor = page_actor(request)
        self.check(actor, **route)
        form = self.make_form(request.POST, **route)
        if not form.run(actor, **self.target(**route)):
            return self.show(form, **route)
        return self.done(form, **route)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """A page with a form; `refused` says why the reader may not send it, `back_url` is the link to cancel."""

    frame: Frame
    form: ServiceForm
    back_url: str
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPage(FormPage):
    """The confirmation of an irreversible step: what is lost and what stays."""

    sentence: str
    losses: tuple[str, ...]
    stays: tuple[str, ...]


class FormPageView(ServiceFormView):
    """A page with a form: GET shows it, POST runs it; `template` renders the result of `page`."""

    http_method_names = ["get", "head", "post", "options"]
    template: ClassVar[str] = "components/confirm.html"
    error_status: ClassVar[int] = 422

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page with the form."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Show the page with the initial form."""
        return self.show(self.make_form(None, **route), **route)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form."""
        page = self.page(form, **route)
        return render(self.request, self.template, {"page": page}, status=self.error_status if form.errors else 200)


class ConfirmView(FormPageView):
    """A page that confirms an irreversible step; a refusal has status 409."""

    error_status = 409


def field_value(parse: Callable[..., Any], *given: Any) -> Any:
    """Parse a field's value with a function of the domain. Raises ValidationError with the function's message."""
    try:
        return parse(*given)
    except InvalidInput as error:
        raise forms.ValidationError(error.message) from error


def forms_by_name(classes: Iterable[type[ServiceForm]], sent: ServiceForm | None = None) -> dict[str, ServiceForm]:
    """Return a page's forms by their class names; `sent` replaces the empty form of its class."""
    return {kind.__name__: sent if type(sent) is kind else kind() for kind in classes}  # type: ignore[misc]


def fill_choices(forms_of_page: Iterable[ServiceForm], **names: Iterable[str]) -> None:
    """Set the choices of the forms' fields with these names (`username`, `registry` …)."""
    for form in forms_of_page:
        for name, field in form.fields.items():
            if isinstance(field, NameChoiceField) and name in names:
                field.fill(names[name])
