"""The pages of the glossary: its terms, one term with its fields, and the term of a field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.forms import FormPage, FormPageView, LongTextField, ServiceForm, ServiceFormView
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import term_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Crumb, Link, Section
from dashboard.subjects.lifecycle import SubjectForm
from registry.access.roles import refusal
from registry.errors import InvalidInput
from registry.subjects.lifecycle.glossary import (
    TermInfo,
    fields_of_term,
    get_term,
    list_terms,
    remove_term,
    set_field_term,
    set_term,
)
from registry.subjects.lifecycle.notes import ACTION, NONE
from registry.subjects.models.glossary import MAX_MEANING, MAX_OWNER, MAX_TERM


class TermForm(ServiceForm):
    """A form that adds a term or changes it; `expected` is the state of the term that was read."""

    service = staticmethod(set_term)
    label = _("Save term")
    success = _("Term saved.")
    permission = ACTION

    expected = forms.CharField(widget=forms.HiddenInput, required=False)
    former = forms.CharField(widget=forms.HiddenInput, required=False)
    name = forms.CharField(label=_("Term"), max_length=2 * MAX_TERM)
    doc = LongTextField(
        label=_("Meaning"),
        rows=4,
        max_length=2 * MAX_MEANING,
        help_text=_("Markdown: **bold**, *italic*, `code`, [links](https://example.com) and lists with “-”."),
    )
    owner = forms.CharField(
        label=_("Owner"), required=False, max_length=2 * MAX_OWNER, help_text=_("The person or team that decides it.")
    )

    def clean_expected(self) -> str:
        """Return the state; a new term has none."""
        return self.cleaned_data["expected"] or NONE

    @classmethod
    def of(cls, term: TermInfo) -> TermForm:
        """Return the form with the current term."""
        values = {"former": term.name, "expected": term.state, "name": term.name, "doc": term.doc, "owner": term.owner}
        return cls(initial=values)


class RemoveTermForm(ServiceForm):
    """A form that removes a term after a confirmation."""

    service = staticmethod(remove_term)
    label = _("Remove term")
    success = _("Term removed.")
    permission = ACTION
    loses: ClassVar[str] = _("The term and its links to fields are removed. The fields stay.")


class FieldTermForm(SubjectForm):
    """A form that says which term a field means."""

    service = staticmethod(set_field_term)
    label = _("Save term")
    success = _("Term of the field saved.")
    permission = ACTION

    path = forms.CharField(widget=forms.HiddenInput)
    term = forms.CharField(
        label=_("Business term"),
        required=False,
        max_length=2 * MAX_TERM,
        help_text=_("A term of the glossary. Leave it empty to remove the link."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsPage(FormPage):
    """The terms with their numbers of fields; `total` counts those that match the text."""

    text: str
    rows: tuple[tuple[TermInfo, int, str], ...]
    total: int

    @property
    def more(self) -> int:
        """The number of terms that aren't listed."""
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermPage(FormPage):
    """A term, the fields that mean it, and the form that changes it."""

    term: TermInfo
    fields: tuple[tuple[Link, str], ...]
    remove: RemoveTermForm


class TermsView(FormPageView):
    """The glossary, with the form that adds a term."""

    template = "glossary/terms.html"
    form_class = TermForm

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page. Raises NotAllowed, NotSignedIn."""
        actor, text = page_actor(self.request), self.request.GET.get("q", "").strip()[:200]
        terms, total = list_terms(by=actor, text=text)
        return TermsPage(
            frame=_frame(self.request, gettext("Glossary")),
            form=form,
            refused=refusal(actor, ACTION),
            back_url="",
            text=text,
            rows=tuple((term, number, term_url(term.name)) for term, number in terms),
            total=total,
        )

    def after(self, **route: Any) -> HttpResponse:
        """Redirect to the glossary."""
        return redirect("ui:terms")


class TermView(FormPageView):
    """The page of a term, with the form that changes it."""

    template = "glossary/term.html"

    def make_form(self, data: Any, **route: Any) -> ServiceForm:
        """Return the form with the term. Raises NotFound, NotAllowed, NotSignedIn."""
        return TermForm(data) if data else TermForm.of(get_term(route["name"], by=page_actor(self.request)))

    def target(self, **route: Any) -> dict[str, Any]:
        """Return nothing: the form names the term."""
        return {}

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page. Raises NotFound, NotAllowed, NotSignedIn."""
        actor = page_actor(self.request)
        term = get_term(route["name"], by=actor)
        fields = fields_of_term(term, by=actor)
        return TermPage(
            frame=_frame(self.request, term.name, Crumb(label=gettext("Glossary"), url=reverse("ui:terms"))),
            form=form,
            refused=refusal(actor, ACTION),
            back_url=reverse("ui:terms"),
            term=term,
            fields=tuple(
                (
                    Link(label=field.path, url=_field_url(field.registry, field.subject, field.path)),
                    f"{field.subject} ({field.registry})",
                )
                for field in fields
            ),
            remove=RemoveTermForm(),
        )

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the term under its new name."""
        super().done(form, **route)
        return redirect(term_url(form.result.name))

    def after(self, **route: Any) -> HttpResponse:
        """Redirect to the glossary."""
        return redirect("ui:terms")


class TermRemoveView(ServiceFormView):
    """Removes a term."""

    form_class = RemoveTermForm
    next_page = "ui:terms"

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Return to the glossary."""
        raise InvalidInput(form.problem.what if form.problem else "")


def _field_url(registry: str, subject: str, path: str) -> str:
    return f"{reverse('ui:field')}?{urlencode({'registry': registry, 'subject': subject, 'path': path})}"


def _frame(request: HttpRequest, title: str, *crumbs: Crumb) -> Any:
    return make_frame(request, title=title, section=Section.SUBJECTS, crumbs=crumbs)
