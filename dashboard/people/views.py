"""Pages of people, groups and owners, of API tokens, and of signing in."""

from __future__ import annotations

from typing import Any

from allauth.account.views import LoginView
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.components.frame import page_actor
from dashboard.components.links import whole_number
from dashboard.environments.views import loosening_response
from dashboard.people.page import CHANGES, make_change, people_page
from dashboard.people.tokens import token_page
from registry.access.rights_changes import scope_warning
from registry.access.roles import require
from registry.access.services import make_token, revoke_token
from registry.access.tokens import refuse_stranger
from registry.errors import Conflict, InvalidInput, NotAllowed, NotFound, SecondPersonRequired


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """People with their roles, groups and owners."""
    require(page_actor(request), "people.manage")
    return render(request, "people/people.html", {"page": people_page(request)})


@never_cache
@require_POST
def change(request: HttpRequest) -> HttpResponse:
    """Make the change of one of the page's forms; a new person's password is shown once."""
    actor = page_actor(request)
    require(actor, "people.manage")
    do = request.POST.get("do", "")
    try:
        result = make_change(do, request.POST.dict(), by=actor)
    except SecondPersonRequired as error:
        return loosening_response(request, error)
    except (Conflict, InvalidInput, NotFound) as error:
        return render(request, "people/people.html", {"page": people_page(request, problem=error)}, status=422)
    if do == "add":
        made = (request.POST.get("username", "").strip(), result)
        return render(request, "people/people.html", {"page": people_page(request, made=made)}, status=201)
    messages.success(request, CHANGES[do].success)
    if "subject_pattern" in CHANGES[do].fields:
        warning = scope_warning(request.POST.get("registry", ""), request.POST.get("subject_pattern", ""), actor)
        if warning:
            messages.warning(request, warning)
    return redirect("ui:people")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list and the form; when sent, the page shows the new token once."""
    actor = page_actor(request)
    refuse_stranger(actor)
    if request.method != "POST":
        return render(request, "tokens/tokens.html", {"page": token_page(request)})
    try:
        made = make_token(
            username=actor.name,
            name=request.POST.get("name", ""),
            scope=request.POST.get("scope", ""),
            registry=request.POST.get("registry", ""),
            subject_pattern=request.POST.get("subject_pattern", ""),
            days=whole_number(request.POST.get("days", ""), digits=4) or 0,
            by=actor,
        )
    except (InvalidInput, Conflict) as error:
        return render(request, "tokens/tokens.html", {"page": token_page(request, problem=error)}, status=422)
    return render(request, "tokens/tokens.html", {"page": token_page(request, made=made)}, status=201)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke a token."""
    revoke_token(token_id=token_id, by=page_actor(request))
    messages.success(request, gettext("Token revoked. Calls with it are now refused."))
    return redirect("ui:tokens")


class SignIn(LoginView):  # type: ignore[misc]  # allauth has no types
    """allauth's page, with the issuer's button; it accepts no password if the issuer is required."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Sign in by password. Raises NotAllowed if that is disabled."""
        if settings.OIDC_REQUIRED:
            raise NotAllowed(gettext("Passwords are turned off. Sign in with %(name)s.") % {"name": settings.OIDC_NAME})
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The context of allauth's page, with the issuer."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        issuer = settings.OIDC_NAME if settings.OIDC_ISSUER else ""
        return {**context, "issuer_name": issuer, "issuer_required": settings.OIDC_REQUIRED}


login = sensitive_post_parameters("password")(SignIn.as_view())
