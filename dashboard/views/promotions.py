"""Pages of promotions. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.pages import promotions as pages
from dashboard.pages.frame import page_actor
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput, NotAllowed, NotSignedIn, SchemadeskError
from registry.promotions import services
from registry.subjects.names import parse_subject

SAID = {
    "approved": "Approved. It can be applied now.",
    "in review": "Your approval is recorded; it needs another.",
    "rejected": "Turned down.",
    "applied": "Applied: the version is live in the target.",
    "withdrawn": "Withdrawn.",
}


@require_safe
def request_list(request: HttpRequest) -> HttpResponse:
    """All requests, open ones first."""
    require(page_actor(request), "schema.read")
    return render(request, "promotions/list.html", {"page": pages.request_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def promotion_request(request: HttpRequest) -> HttpResponse:
    """The form that asks for a promotion; sent, it leads to the new request."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn("Sign in to ask for a promotion.")
    problem = None
    if request.method == "POST":
        try:
            number = services.request_promotion(
                source=request.POST.get("source", ""),
                target=request.POST.get("target", ""),
                subject=parse_subject(request.POST.get("subject", "")),
                version=request.POST.get("version", ""),
                reason=request.POST.get("reason", "").strip(),
                by=actor,
            )
        except SchemadeskError as error:
            problem = error
        else:
            messages.success(request, f"Request {number} waits for a reviewer.")
            return redirect("ui:promotion", number)
    page = pages.request_form(request, problem)
    return render(request, "promotions/request.html", {"page": page}, status=422 if problem else 200)


@require_safe
def promotion(request: HttpRequest, request_id: int) -> HttpResponse:
    """One request, with everything that the decision needs."""
    require(page_actor(request), "schema.read")
    return render(request, "promotions/promotion.html", {"page": pages.promotion(request, request_id)})


def _act(request: HttpRequest, request_id: int, action: Callable[[], str]) -> HttpResponse:
    """Do it, say what came of it or why it wasn't done, and show the request again."""
    try:
        messages.success(request, SAID[action()])
    except (Conflict, InvalidInput, NotAllowed) as error:
        messages.error(request, error.message)
    return redirect("ui:promotion", request_id)


@require_POST
def approve(request: HttpRequest, request_id: int) -> HttpResponse:
    """Approve the plan that the page showed."""
    return _act(
        request,
        request_id,
        lambda: services.approve(
            request_id=request_id,
            by=page_actor(request),
            comment=request.POST.get("comment", ""),
            plan_hash=request.POST.get("plan_hash", ""),
        ),
    )


@require_POST
def reject(request: HttpRequest, request_id: int) -> HttpResponse:
    """Turn it down, with a reason."""
    comment = request.POST.get("comment", "")
    return _act(
        request, request_id, lambda: services.reject(request_id=request_id, by=page_actor(request), comment=comment)
    )


@require_POST
def withdraw(request: HttpRequest, request_id: int) -> HttpResponse:
    """Take it back."""
    return _act(request, request_id, lambda: services.withdraw(request_id=request_id, by=page_actor(request)))


@require_POST
def apply(request: HttpRequest, request_id: int) -> HttpResponse:
    """Run the approved plan."""
    return _act(request, request_id, lambda: services.apply(request_id=request_id, by=page_actor(request)))
