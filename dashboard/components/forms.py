"""Forms that run a service, and the view that runs one and shows its page again.

A form's fields are the service's arguments. What Django's fields can't check, the service does; its error names the
argument in `details["field"]`, and the form puts the error there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views import View

from dashboard.components.frame import page_actor
from dashboard.components.translation import later
from dashboard.components.widgets import LONGEST_CHOICE, Problem, readable
from registry.access.roles import Actor, require
from registry.errors import Conflict, InvalidInput, NotAllowed, SchemadeskError, SecondPersonRequired

_CLASSES: Final = {"textarea": "textarea", "select": "select", "checkbox": ""}
#: attributes of an input for names and code
CODE: Final = {"spellcheck": "false", "autocapitalize": "off", "autocomplete": "off", "class": "input-code"}
_NOT_UTC: Final = later("Enter a time in UTC, such as 2026-12-31T18:00.")


class StyledField(forms.BoundField):
    """A field with the site's classes."""

    def build_widget_attrs(self, attrs: dict[str, Any], widget: forms.Widget | None = None) -> dict[str, Any]:
        """Django's attributes, and the classes."""
        widget = widget or self.field.widget
        built: dict[str, Any] = super().build_widget_attrs(attrs, widget)
        kind = getattr(widget, "input_type", "textarea")
        css = f"{_CLASSES.get(kind, 'input')} {widget.attrs.get('class', '')}".strip()
        return {**built, "class": css} if css else built

    @property
    def is_optional(self) -> bool:
        """Whether it may always be left empty, as its label then says; a select shows that by a choice."""
        is_needed = self.field.required or self.name in getattr(self.form, "conditional", ())
        return not is_needed and self.widget_type != "select"


class CodeField(forms.CharField):
    """A name or pattern, in monospace."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.TextInput(attrs=CODE), **options)


class NameChoiceField(forms.CharField):
    """A name from a list that the page fills in (`fill_choices`); the service checks it. `empty_label` stands for no name."""

    def __init__(self, *, empty_label: str = "", **options: Any) -> None:
        super().__init__(widget=forms.Select, required=not empty_label, **options)
        self.empty_label = empty_label
        self.fill(())

    def fill(self, names: Iterable[str]) -> None:
        """Offer these names."""
        choices = [(name, readable(name)[:LONGEST_CHOICE]) for name in names]
        cast(forms.Select, self.widget).choices = [("", self.empty_label), *choices] if self.empty_label else choices


class LongTextField(forms.CharField):
    """A text of several lines; code is in monospace, without line breaks of the browser's."""

    def __init__(self, *, rows: int = 3, code: bool = False, placeholder: str = "", **options: Any) -> None:
        attrs = {"rows": rows} | (CODE | {"wrap": "off"} if code else {})
        super().__init__(
            widget=forms.Textarea(attrs=attrs | ({"placeholder": placeholder} if placeholder else {})), **options
        )


class UtcDateTimeField(forms.DateTimeField):
    """A moment in UTC, in whichever zone the page is read."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
        super().__init__(widget=widget, error_messages={"invalid": _NOT_UTC}, **options)

    def to_python(self, value: Any) -> datetime | None:
        """The moment, aware."""
        with timezone.override(UTC):
            return super().to_python(value)

    def prepare_value(self, value: Any) -> Any:
        """The moment for the input, in UTC."""
        with timezone.override(UTC):
            return super().prepare_value(value)


class ServiceForm(forms.Form):
    """A form that runs `service` with its fields as arguments.

    `label` is the button's, `success` the message after it ran, and `result` what the service returned. `permission` is checked
    before the fields, where the service would only check it after them. `conditional` names the fields that only some values or
    buttons of the form require. `refusals` are errors that are shown on the form with the `cure`
    and `status`; others pass.
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
    result: Any = None
    status = 422
    bound_field_class = StyledField

    def __init__(self, data: Any = None, *, key: object = "", **options: Any) -> None:
        """`key` tells apart the ids of forms of one class on a page."""
        super().__init__(data, label_suffix="", auto_id=f"{type(self).__name__}{key}_%s", **options)

    def arguments(self) -> dict[str, Any]:
        """The service's arguments, from valid fields."""
        return self.cleaned_data

    def run(self, by: Actor, **target: Any) -> bool:
        """Run the service; False if it or a field refused, with the errors on the form.

        Other errors pass, and so does SecondPersonRequired, which leads to another form.
        """
        if not self.is_valid():
            return False
        try:
            self.result = type(self).service(by=by, **target, **self.arguments())
        except SecondPersonRequired:
            raise
        except self.refusals as error:
            self.status = 403 if isinstance(error, NotAllowed) else 422
            self.add_service_error(error)
            return False
        return True

    def add_service_error(self, error: SchemadeskError) -> None:
        """Put the error on its field, where the field's label replaces the argument's name."""
        name = str(error.details.get("field", ""))
        if name not in self.fields or isinstance(self.fields[name].widget, forms.HiddenInput):
            self.add_error(None, error.message)
            return
        text, label = error.message, gettext("“%(label)s”") % {"label": self.fields[name].label}
        is_named = "_" in name or text.startswith(f"{name} ")  # a single word may also be meant as a word
        self.add_error(name, text.replace(f"{name} ", f"{label} ", 1) if is_named else text)

    def message(self, **route: Any) -> str:
        """What is said when it ran."""
        return self.success

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
    """Runs a form: then its page again, with the message, or with the errors and 422."""

    http_method_names = ["post", "options"]  # as Django declares it
    form_class: type[ServiceForm] = ServiceForm

    def target(self, **route: Any) -> dict[str, Any]:
        """What the service is run on, from the address."""
        return route

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """The page with the form's errors."""
        raise NotImplementedError

    def after(self, **route: Any) -> HttpResponse:
        """Where the form leads when it ran."""
        raise NotImplementedError

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """The answer when it ran: its message, on the page where it leads."""
        messages.success(self.request, form.message(**route))
        return self.after(**route)

    def post(self, request: HttpRequest, **route: Any) -> HttpResponse:
        """Run the form."""
        actor = page_actor(request)
        if self.form_class.permission:
            require(actor, self.form_class.permission, registry=route.get("registry", ""))
        form = self.form_class(request.POST)
        if not form.run(actor, **self.target(**route)):
            return self.show(form, **route)
        return self.done(form, **route)


def field_value(parse: Callable[..., Any], *given: Any) -> Any:
    """What a function of the domain makes of a field's value. Raises ValidationError with its message."""
    try:
        return parse(*given)
    except InvalidInput as error:
        raise forms.ValidationError(error.message) from error


def forms_by_name(classes: Iterable[type[ServiceForm]], sent: ServiceForm | None = None) -> dict[str, ServiceForm]:
    """A page's forms by the names of their classes; `sent` replaces the empty form of its class."""
    return {kind.__name__: sent if type(sent) is kind else kind() for kind in classes}  # type: ignore[misc]


def fill_choices(forms_of_page: Iterable[ServiceForm], **names: Iterable[str]) -> None:
    """Offer in the forms' fields of these names (`username`, `registry` …) what there is."""
    for form in forms_of_page:
        for name, field in form.fields.items():
            if isinstance(field, NameChoiceField) and name in names:
                field.fill(names[name])
