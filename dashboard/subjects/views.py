"""Views of subjects and of a field."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.compare import page as compare_page
from dashboard.compare.comparison import comparison_markdown
from dashboard.compatibility import report, simulator
from dashboard.components.frame import VARIES, page_actor, render_page
from dashboard.components.links import PAGES, form_text, subject_url, subjects_url
from dashboard.components.time_travel import PARAMETER, travels
from dashboard.components.translation import for_everybody
from dashboard.subjects import page as subjects
from dashboard.subjects import references
from dashboard.subjects.field_history import field_page
from dashboard.subjects.subject_list import subject_list as list_page
from dashboard.subjects.subject_list import subject_numbers
from registry.access.permission_filters import require_extent
from registry.access.roles import may, require
from registry.errors import InvalidInput
from registry.subjects.history.version_presence import is_registered
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
    return render(request, "fields/field.html", {"page": page}, status=404 if page.problem else 200)
