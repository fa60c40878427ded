"""Pages of the use of versions, the clients that people declare there, and of a pasted message."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages import decode as pasted
from dashboard.pages import usage as uses
from dashboard.pages.clients import given_client
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from dashboard.views.parts import render_page
from registry.access.roles import require
from registry.errors import ClientNotFound, InvalidInput, VersionNotFound
from registry.subjects.names import parse_subject
from registry.subjects.services.clients import ACTION, declare_client, withdraw_client


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
        given = given_client(request)
        is_new = declare_client(registry=registry, subject=name, by=actor, **given)
    except (InvalidInput, VersionNotFound) as error:
        page = uses.usage_page(request, registry, subject, given=request.POST.dict(), refused=error.message)
        return render(request, "subjects/usage.html", {"page": page}, status=422)
    said = gettext("%(name)s is declared.") if is_new else gettext("What is said of %(name)s is saved.")
    messages.success(request, said % {"name": given["name"]})
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
        messages.success(request, gettext("%(name)s is withdrawn.") % {"name": client})
    return redirect(f"{uses.usage_url(registry, name.qualified)}#clients-title")


@sensitive_post_parameters("message", "headers")
@require_http_methods(["GET", "HEAD", "POST"])
def decode(request: HttpRequest) -> HttpResponse:
    """From a message to its schema and value; nothing of it is kept."""
    page = pasted.decode_page(request)
    return render(request, "drift/decode.html", {"page": page}, status=422 if page.problem else 200)
