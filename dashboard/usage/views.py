"""Pages of the use of versions, declared clients, pasted messages, and of retiring a version or a subject."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.forms import end_of_day
from dashboard.components.frame import page_actor, render_page
from dashboard.sources.labels import given_text
from dashboard.usage import message_decoder as pasted
from dashboard.usage import page as uses
from dashboard.usage import retirement as pages
from dashboard.usage import retirement_result
from dashboard.usage.page import given_client
from registry.access.roles import require
from registry.errors import ClientNotFound, Conflict, InvalidInput, VersionNotFound
from registry.promotions.requests.state_machine import refuse_strangers
from registry.subjects.lifecycle.retirement import RIGHTS, retire
from registry.subjects.usage.clients import ACTION, declare_client, withdraw_client
from registry.subjects.versions.qualified_names import parse_subject


@require_safe
def usage(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Whether versions can be retired; htmx gets the answer alone, with what the clusters say now."""
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)
    return render_page(request, "subjects/usage.html", uses.usage_page(request, registry, subject), {"usage": "usage"})


@require_POST
def client_declare(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Declare a client, or change what is said of one; what is refused stays in the form."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, ACTION, registry=registry, subject=name.qualified)
    try:
        values = given_client(request)
        is_new = declare_client(registry=registry, subject=name, by=actor, **values)
    except (InvalidInput, VersionNotFound) as error:
        page = uses.usage_page(request, registry, subject, refused_values=request.POST.dict(), refused=error.message)
        return render(request, "subjects/usage.html", {"page": page}, status=422)
    message = gettext("%(name)s was declared.") if is_new else gettext("%(name)s was updated.")
    messages.success(request, message % {"name": values["name"]})
    return redirect(f"{uses.usage_url(registry, name.qualified)}#clients-title")


@require_POST
def client_withdraw(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """A client is gone; that it was withdrawn already is no error."""
    name, client = parse_subject(subject), given_text(request.POST, "name")
    try:
        withdraw_client(registry=registry, subject=name, name=client, by=page_actor(request))
    except ClientNotFound as error:
        messages.info(request, error.message)
    else:
        messages.success(request, gettext("%(name)s was withdrawn.") % {"name": client})
    return redirect(f"{uses.usage_url(registry, name.qualified)}#clients-title")


@sensitive_post_parameters("message", "headers")
@require_http_methods(["GET", "HEAD", "POST"])
def decode(request: HttpRequest) -> HttpResponse:
    """From a message to its schema and value; nothing of it is kept."""
    page = pasted.decode_page(request)
    return render(request, "drift/decode.html", {"page": page}, status=422 if page.problem else 200)


TEMPLATE = "subjects/retire.html"


def _require_reader(request: HttpRequest, registry: str, subject: str) -> None:
    require(page_actor(request), "schema.read", registry=registry, subject=parse_subject(subject).qualified)


@require_safe
def evidence(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 1: what is known of the use."""
    _require_reader(request, registry, subject)
    return render(
        request, TEMPLATE, {"page": pages.evidence_page(request, pages.retirement_target(request, registry, subject))}
    )


@require_safe
def choose(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 2: what to do."""
    _require_reader(request, registry, subject)
    return render(
        request, TEMPLATE, {"page": pages.choose_page(request, pages.retirement_target(request, registry, subject))}
    )


@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Step 3: the form, and doing it."""
    _require_reader(request, registry, subject)
    choice = given_text(request.GET, "do")
    if request.method != "POST":
        page = pages.confirm_page(request, pages.retirement_target(request, registry, subject), choice)
        return render(request, TEMPLATE, {"page": page})
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, RIGHTS.get(choice, "version.delete"), registry=registry, subject=name.qualified)
    what = pages.retirement_target(request, registry, subject)
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
    return redirect(retirement_result.done_url(what.registry, name, done))


@require_safe
def done(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """What there is now."""
    _require_reader(request, registry, subject)
    return render(request, TEMPLATE, {"page": retirement_result.done_page(request, registry, subject)})


@require_safe
def orphans(request: HttpRequest, registry: str) -> HttpResponse:
    """The subjects that nothing is known to need."""
    refuse_strangers(page_actor(request))
    return render(request, "subjects/orphans.html", {"page": retirement_result.orphans_page(request, registry)})
