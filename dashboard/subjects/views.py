"""Views of subjects, of changes from their pages, and of a field."""

from __future__ import annotations

import io
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.compare import page as compare_page
from dashboard.compare.comparison import comparison_markdown
from dashboard.compatibility import report, simulator
from dashboard.components.forms import ServiceForm, ServiceFormView
from dashboard.components.frame import VARIES, page_actor, render_page
from dashboard.components.links import PAGES, form_text, subject_url, subjects_url
from dashboard.components.time_travel import PARAMETER, travels
from dashboard.components.translation import for_everybody
from dashboard.components.translation import gettext_lazy as _
from dashboard.subjects import bulk, lifecycle, references
from dashboard.subjects import page as subjects
from dashboard.subjects.descriptions import NoteForm
from dashboard.subjects.field_history import field_page
from dashboard.subjects.glossary import FieldTermForm
from dashboard.subjects.subject_list import subject_list as list_page
from dashboard.subjects.subject_list import subject_numbers
from registry.access.permission_filters import require_extent
from registry.access.roles import Actor, may, may_somewhere, require
from registry.errors import InvalidInput
from registry.promotions.requests.schema_changes import ACTION as RENAME
from registry.promotions.requests.schema_changes import decide_rename, undecide_rename
from registry.subjects.history.version_presence import is_registered
from registry.subjects.lifecycle.bulk import export_subjects
from registry.subjects.lifecycle.retirement import DEPRECATE, RIGHTS
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject


def _require_read(request: HttpRequest, registry: str, subject: str = "") -> None:
    name = parse_subject(subject).qualified if subject else ""
    require(page_actor(request), "schema.read", registry=registry, subject=name)


@require_safe
@travels
def subject_list(request: HttpRequest, registry: str) -> HttpResponse:
    """Show the readable subjects of a registry; htmx gets only the list or the counts."""
    require_extent(page_actor(request), "schema.read", registry=registry)
    htmx = getattr(request, "htmx", None)
    if htmx and htmx.target == "counts":
        response = render(request, "subjects/counted.html", {"numbers": subject_numbers(request, registry)})
        patch_vary_headers(response, VARIES)
        return response
    return render_page(request, "subjects/list.html", list_page(request, registry), {"list": "list"})


@require_safe
@travels
def switch(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Redirect to the same page of the subject in another registry, else to that registry's list with its name.

    A subject that the reader may not read there is treated as missing.
    """
    name, actor = parse_subject(subject), page_actor(request)
    page = request.GET.get("page", "")
    moment = {PARAMETER: request.GET[PARAMETER]} if PARAMETER in request.GET else {}
    registry_row = get_registry(registry)
    if may(actor, "schema.read", registry=registry_row.name, subject=name.qualified) and is_registered(
        registry_row, name
    ):
        return redirect(subject_url(registry_row.name, name.qualified, page if page in PAGES else "", **moment))
    require_extent(actor, "schema.read", registry=registry)
    return redirect(f"{subjects_url(registry_row.name)}?{urlencode({'q': name.qualified, **moment})}")


@require_safe
@travels
def subject_page(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show a subject; htmx gets only the version below the table."""
    _require_read(request, registry, subject)
    page = subjects.subject_page(request, registry, subject)
    return render_page(request, "subjects/subject.html", page, {"version": "version"})


@require_safe
@travels
def compare(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show two versions side by side."""
    _require_read(request, registry, subject)
    if request.GET.get("as") == "markdown":
        with for_everybody():
            page = compare_page.compare_page(request, registry, subject)
            if page.comparison:
                return _plain_text(comparison_markdown(page.subject, page.comparison))
    if request.GET.get("as") in (compare_page.OLD_TEXT, compare_page.NEW_TEXT):
        return _plain_text(compare_page.side_text(request, registry, subject))
    picked = compare_page.picked_url(request, registry, subject)
    if picked:
        return redirect(picked)
    page = compare_page.compare_page(request, registry, subject)
    response = render_page(request, "subjects/compare.html", page, {"text": "text"} if page.comparison else {})
    response.status_code = (422 if "pick" in request.GET else 404) if page.problem else 200
    return response


def _plain_text(text: str) -> HttpResponse:
    """Return a text to copy; lone surrogates, which UTF-8 lacks, are escaped."""
    return HttpResponse(text.encode("utf-8", "backslashreplace"), content_type="text/plain; charset=utf-8")


@require_http_methods(["GET", "HEAD", "POST"])
@travels
def compatibility_report(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Check a proposed schema against all versions, also those of a past moment; register nothing."""
    _require_read(request, registry, subject)
    with for_everybody():
        file = report.report_file(request, registry, subject) if request.method == "POST" else None
    if file:
        text, kind, name = file
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(text.encode("utf-8", "backslashreplace"), content_type=kind, headers=headers)
    page = report.report_page(request, registry, subject)
    return render(request, "subjects/report.html", {"page": page}, status=422 if page.form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def simulate(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Test data against versions of a subject; store nothing."""
    _require_read(request, registry, subject)
    page = simulator.simulator_page(request, registry, subject)
    return render(request, "subjects/simulate.html", {"page": page}, status=422 if page.has_errors else 200)


@require_safe
@travels
def reference_graph(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Show the references from and to the subject."""
    _require_read(request, registry, subject)
    page = references.references_page(request, registry, subject)
    return render(request, "subjects/references.html", {"page": page})


@require_safe
@travels
def field(request: HttpRequest) -> HttpResponse:
    """Show the history of the field at `path` of `subject` in `registry`."""
    registry, subject, path = (form_text(request.GET, name) for name in ("registry", "subject", "path"))
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)
    if not (registry and path):
        raise InvalidInput(
            gettext("Give a registry, a subject and the path of a field: /ui/fields?registry=…&subject=…&path=…")
        )
    page = field_page(request, registry, subject, path)
    return render(request, "fields/field.html", {"page": page}, status=200 if page.history.chapters else 404)


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
        return gettext("The decision was removed.") if is_back else super().message(**route)


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
        page = subjects.subject_page(self.request, route["registry"], route["subject"], sent=form)
        return render(self.request, "subjects/subject.html", {"page": page}, status=422)


_FORMS: Final[tuple[tuple[str, str, type[ServiceForm]], ...]] = (
    ("renames", "rename", RenameForm),
    ("term", "field_term", FieldTermForm),
    ("status", "version_status", lifecycle.StatusForm),
    ("reactivate", "reactivate", lifecycle.ReactivateForm),
    ("adopt", "adopt", lifecycle.AdoptForm),
    ("roll-back", "roll_back", lifecycle.RollBackForm),
    ("minimum-version", "minimum_version", lifecycle.MinimumForm),
    ("minimum-version/clear", "minimum_version_clear", lifecycle.ClearMinimumForm),
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
