"""Changes from the pages of subjects: descriptions, statuses of versions, renames, bulk changes."""

from __future__ import annotations

import io
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.components.forms import ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor
from dashboard.components.links import subject_url, subjects_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.subjects import bulk, lifecycle
from dashboard.subjects.descriptions import NoteForm
from dashboard.subjects.page import subject_page
from registry.access.roles import Actor, may_somewhere, require
from registry.promotions.requests.schema_changes import ACTION as RENAME
from registry.promotions.requests.schema_changes import decide_rename, undecide_rename
from registry.subjects.lifecycle.bulk import export_subjects
from registry.subjects.lifecycle.retirement import DEPRECATE, RIGHTS
from registry.subjects.versions.qualified_names import parse_subject

TEMPLATE: Final = "subjects/deprecate.html"


def _decide(*, decision: str, reason: str, **pair: Any) -> bool:
    if decision == "back":
        return undecide_rename(**pair)
    return decide_rename(is_rename=decision == "yes", reason=reason, **pair)


class RenameForm(lifecycle.SubjectForm):
    """A form that decides whether two names belong to one renamed field, or withdraws that decision."""

    service = staticmethod(_decide)
    success = _("The decision was saved. It applies wherever this pair of fields appears.")
    permission = RENAME

    from_path = forms.CharField()
    to_path = forms.CharField()
    reason = forms.CharField(required=False)
    decision = forms.ChoiceField(
        choices=[(value, value) for value in ("yes", "no", "back")],
        error_messages={"invalid_choice": _("Choose whether this is a rename.")},
    )

    def message(self, **route: Any) -> str:
        """Say what was done."""
        is_back = self.cleaned_data["decision"] == "back"
        return gettext("The decision was removed.") if is_back else str(self.success)


class SubjectFormView(ServiceFormView):
    """A form on a subject's page. It redirects back there with the result, or with the reason for a refusal."""

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the subject."""
        return {"registry": route["registry"], "subject": parse_subject(route["subject"])}

    def check(self, actor: Actor, **route: Any) -> None:
        """Raise NotAllowed unless the actor may change the subject."""
        name = parse_subject(route["subject"]).qualified
        require(actor, self.form_class.permission, registry=route["registry"], subject=name)

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Return to the page with the reason for the refusal."""
        if form.problem:
            messages.error(self.request, form.problem.what)
        return self.back(form, **route)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Return to the page with the result; show a request that was created."""
        messages.success(self.request, form.message(**route))
        if isinstance(form, lifecycle.AdoptForm):
            return redirect("ui:promotion", form.result)
        return self.back(form, **route)

    def back(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the form's `next` page if it is on this site, else to the form's part of the subject's page."""
        page = self.request.POST.get("next", "")
        if page and url_has_allowed_host_and_scheme(page, allowed_hosts={self.request.get_host()}):
            return redirect(f"{page}#renames-title" if isinstance(form, RenameForm) else page)
        place, anchor = (form.place(), form.anchor) if isinstance(form, lifecycle.SubjectForm) else ({}, "")
        return redirect(subject_url(route["registry"], parse_subject(route["subject"]).qualified, **place) + anchor)


class NoteFormView(SubjectFormView):
    """The form of a subject's note; a refused form keeps its input."""

    form_class = NoteForm

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        if form.problem:
            messages.error(self.request, form.problem.what)
        page = subject_page(self.request, route["registry"], route["subject"], sent=form)
        return render(self.request, "subjects/subject.html", {"page": page}, status=422)


_FORMS: Final[tuple[tuple[str, str, type[ServiceForm]], ...]] = (
    ("renames", "rename", RenameForm),
    ("standing", "standing", lifecycle.StandingForm),
    ("reactivate", "reactivate", lifecycle.ReactivateForm),
    ("adopt", "adopt", lifecycle.AdoptForm),
    ("roll-back", "roll_back", lifecycle.RollBackForm),
    ("least-version", "least_version", lifecycle.MinimumForm),
    ("least-version/clear", "least_version_clear", lifecycle.ClearMinimumForm),
)
#: path below the subject's URL, name, view
SUBJECT_FORMS: Final = (
    ("describe", "describe", NoteFormView.as_view()),
    *((route, name, SubjectFormView.as_view(form_class=form)) for route, name, form in _FORMS),
)


@require_POST
def describe_several(request: HttpRequest, registry: str) -> HttpResponse:
    """Preview a bulk change; make it if confirmed."""
    actor, form = page_actor(request), bulk.ChangeSeveralForm(request.POST)
    require(actor, "schema.read", registry=registry)
    is_valid = form.is_valid()
    bulk.require_change(form, registry, actor)
    if is_valid and request.POST.get("confirmed") == "yes" and form.run(actor, registry=registry):
        messages.success(request, form.message())
        return redirect(subjects_url(registry))
    page = bulk.change_page(request, registry, form, actor)
    return render(request, "subjects/describe.html", {"page": page}, status=422 if form.errors else 200)


@require_POST
def export(request: HttpRequest, registry: str) -> HttpResponse:
    """Download the selected subjects as a zip file."""
    actor = page_actor(request)
    require(actor, "schema.read", registry=registry)
    file, names = io.BytesIO(), bulk.chosen_subjects(request.POST.getlist("subject"))
    export_subjects(registry=registry, subjects=names, file=file, by=actor)
    headers = {"Content-Disposition": 'attachment; filename="subjects.zip"'}
    return HttpResponse(file.getvalue(), content_type="application/zip", headers=headers)


@require_POST
def deprecate(request: HttpRequest, registry: str) -> HttpResponse:
    """Preview the deprecation of the selected subjects; if confirmed, do it and show the outcomes."""
    actor, form = page_actor(request), bulk.DeprecateSeveralForm(request.POST)
    require(actor, "schema.read", registry=registry)
    if not may_somewhere(actor, RIGHTS[DEPRECATE]):
        require(actor, RIGHTS[DEPRECATE], registry=registry)
    if "subject" not in form.errors:
        if request.POST.get("confirmed") != "yes":
            form = bulk.DeprecateSeveralForm(initial={"subject": request.POST.getlist("subject")})
        elif form.run(actor, registry=registry):
            return render(request, TEMPLATE, {"page": bulk.done_page(request, registry, form)})
    page = bulk.deprecate_page(request, registry, form, actor)
    return render(request, TEMPLATE, {"page": page}, status=422 if form.errors else 200)
