"""Pages of the wizard that retires a version or a subject, and of the subjects that nothing needs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.pages import retire as pages
from dashboard.pages import retire_done
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_values import end_of_day
from dashboard.pages.sources_words import given_text
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput
from registry.promotions.services.current import refuse_strangers
from registry.subjects.names import parse_subject
from registry.subjects.services.retiring import RIGHTS, retire

TEMPLATE = "subjects/retire.html"


def _require_reader(request: HttpRequest, registry: str, subject: str) -> None:
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)


@require_safe
def evidence(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 1: what is known of the use."""
    _require_reader(request, registry, subject)
    return render(request, TEMPLATE, {"page": pages.evidence_page(request, pages.meant(request, registry, subject))})


@require_safe
def choose(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 2: what to do."""
    _require_reader(request, registry, subject)
    return render(request, TEMPLATE, {"page": pages.choose_page(request, pages.meant(request, registry, subject))})


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 3: the form, and doing it."""
    _require_reader(request, registry, subject)
    choice = given_text(request.GET, "do")
    if request.method != "POST":
        page = pages.confirm_page(request, pages.meant(request, registry, subject), choice)
        return render(request, TEMPLATE, {"page": page})
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, RIGHTS.get(choice, "version.delete"), registry=registry, subject=name.qualified)
    what = pages.meant(request, registry, subject)
    try:
        done = retire(
            registry=registry,
            subject=name,
            choice=choice,
            by=actor,
            version=what.version,
            confirmed=given_text(request.POST, "confirmed"),
            message=given_text(request.POST, "message"),
            ends_at=end_of_day(request.POST.get("ends_at", "")),
            force=given_text(request.POST, "force"),
        )
    except (Conflict, InvalidInput) as error:
        page = pages.confirm_page(request, what, choice, error)
        return render(request, TEMPLATE, {"page": page}, status=422)
    return redirect(retire_done.done_url(what.place, name, done))


@require_safe
def done(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """What there is now."""
    _require_reader(request, registry, subject)
    return render(request, TEMPLATE, {"page": retire_done.done_page(request, registry, subject)})


@require_safe
def orphans(request: HttpRequest, registry: str) -> HttpResponse:
    """The subjects that nothing is known to need."""
    refuse_strangers(page_actor(request))
    return render(request, "subjects/orphans.html", {"page": retire_done.orphans_page(request, registry)})
