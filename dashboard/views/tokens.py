"""Pages of API tokens."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.tokens import token_page
from registry.access.services import make_token, revoke_token
from registry.access.services.tokens import refuse_stranger
from registry.errors import Conflict, InvalidInput


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The list and the form; sent, the page shows the new token this one time."""
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
    """End a token at once."""
    revoke_token(token_id=token_id, by=page_actor(request))
    messages.success(request, gettext("Revoked: the next call with it is refused."))
    return redirect("ui:tokens")
