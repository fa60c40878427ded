"""Views of promotion requests, with their URLs. Every button is a POST that works without JavaScript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.components.forms import ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor, render_page
from dashboard.components.time_travel import travels
from dashboard.components.translation import listing
from dashboard.promotions import forms, history, replay, request_form
from dashboard.promotions import page as promotions
from dashboard.promotions import request_list as pages
from dashboard.promotions.forms import NewRequestForm, RequestForm, ResubmitForm
from registry.errors import InvalidInput, NotSignedIn
from registry.promotions import selectors, services
from registry.promotions.requests.evidence_pack import evidence_of
from registry.promotions.requests.state_machine import require_any_permission
from registry.promotions.reviews.decisions import Approval

PAGE: Final = "promotions/promotion.html"


@require_safe
@travels
def request_list(request: HttpRequest) -> HttpResponse:
    """Show all requests, newest first; htmx gets only the list."""
    require_any_permission(page_actor(request))
    return render_page(request, "promotions/list.html", pages.request_list(request), {"list": "list"})


@require_http_methods(["GET", "HEAD", "POST"])
def promotion_request(request: HttpRequest) -> HttpResponse:
    """Show the form of a new request with a preview of its plan; on POST, create it and redirect to it."""
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to request a promotion."))
    if request.method != "POST":
        return render(request, "promotions/request.html", {"page": request_form.request_form(request)})
    form = NewRequestForm(request_form.form_data(request.POST, selectors.list_environments()))
    if form.run(actor):
        messages.success(request, form.message())
        return redirect("ui:promotion", form.result)
    page = request_form.request_form(request, form)
    return render(request, "promotions/request.html", {"page": page}, status=422)


@require_safe
def plan(request: HttpRequest) -> HttpResponse:
    """Download the plan for the URL's parameters."""
    require_any_permission(page_actor(request))
    return _file(request_form.plan_file(request), "application/json", "plan.json")


@require_safe
@travels
def promotion(request: HttpRequest, request_id: int) -> HttpResponse:
    """Show the page of a request; htmx gets its text, or its changes in brief for a row of the bulk approval."""
    page = promotions.promotion(request, request_id)
    comparison = page.changes.comparison
    parts = {f"changes-{request_id}": "brief"}
    if comparison and comparison.text:
        parts["text"] = "text"
    return render_page(request, PAGE, page, parts)


@require_safe
def evidence_html(request: HttpRequest, request_id: int) -> HttpResponse:
    """Download the evidence pack as one HTML file."""
    text = history.as_html(evidence_of(request_id, page_actor(request)))
    return _file(text, "text/html; charset=utf-8", f"request-{request_id}.html")


@require_safe
def evidence_json(request: HttpRequest, request_id: int) -> HttpResponse:
    """Download the evidence pack as JSON."""
    text = history.as_json(evidence_of(request_id, page_actor(request)))
    return _file(text, "application/json", f"request-{request_id}.json")


def _file(text: str, kind: str, name: str) -> HttpResponse:
    return HttpResponse(text, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


class RequestFormView(ServiceFormView):
    """A form on a request's page."""

    def target(self, **route: Any) -> dict[str, Any]:
        """Return the discussion, or else the request."""
        return {"thread_id": route["thread_id"]} if "thread_id" in route else route

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        page = promotions.promotion(self.request, route["request_id"], form, route.get("thread_id", 0))
        return render(self.request, PAGE, {"page": page}, status=422)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the form's part of the page, or to the resubmitted request."""
        messages.success(self.request, form.message(**route))
        number = form.result if isinstance(form, ResubmitForm) else route["request_id"]
        place = form.place(**route) if isinstance(form, RequestForm) else ""
        return redirect(f"{reverse('ui:promotion', args=[number])}{place}")


@require_http_methods(["GET", "HEAD", "POST"])
def approve_together(request: HttpRequest) -> HttpResponse:
    """Show the bulk approval page; on POST, approve each request separately and report the results."""
    actor = page_actor(request)
    require_any_permission(actor)
    if request.method != "POST":
        return render(request, "promotions/together.html", {"page": pages.bulk_approval_page(request)})
    try:
        plans = pages.plans_of(request.POST.getlist("plan"))
        _tell_approvals(request, services.approve_together(plans=plans, by=actor))
    except InvalidInput as error:
        messages.error(request, error.message)
    return redirect(f"{reverse('ui:promotions')}?{urlencode({'who': 'waiting'})}")


def _tell_approvals(request: HttpRequest, approvals: Sequence[Approval]) -> None:
    """Report the approved requests in one sentence, and each one left out with its reason."""
    enough = [f"#{approval.request}" for approval in approvals if approval.state == "approved"]
    begun = [f"#{approval.request}" for approval in approvals if approval.state and approval.state != "approved"]
    if enough:
        messages.success(request, gettext("Approved and ready to apply: %(which)s.") % {"which": listing(enough)})
    if begun:
        message = gettext("Your approval is recorded. More approvals are needed: %(which)s.")
        messages.success(request, message % {"which": listing(begun)})
    for approval in approvals:
        if approval.refused:
            message = gettext("#%(number)s is left out: %(reason)s") % {
                "number": approval.request,
                "reason": approval.refused,
            }
            messages.warning(request, message)


#: path below the request's URL, name, form
_FORMS: Final[tuple[tuple[str, str, type[forms.RequestForm]], ...]] = (
    ("approve", "approve", forms.ApproveForm),
    ("changes", "changes", forms.ChangesForm),
    ("reject", "reject", forms.RejectForm),
    ("submit", "submit", forms.SubmitForm),
    ("again", "again", forms.ResubmitForm),
    ("recheck", "recheck", forms.RecheckForm),
    ("withdraw", "withdraw", forms.WithdrawForm),
    ("apply", "apply", forms.ApplyForm),
    ("schedule", "schedule", forms.ScheduleForm),
    ("unschedule", "unschedule", forms.UnscheduleForm),
    ("resume", "resume", forms.ResumeForm),
    ("give-up", "give_up", forms.GiveUpForm),
    ("acknowledge", "acknowledge", forms.AcknowledgeForm),
    ("acknowledge/take-back", "take_back", forms.TakeBackForm),
    ("labels", "labels", forms.LabelsForm),
    ("threads", "threads", forms.ThreadForm),
    ("threads/<int:thread_id>/answer", "thread_answer", forms.ReplyForm),
    ("threads/<int:thread_id>/resolve", "thread_resolve", forms.ResolveForm),
    ("threads/<int:thread_id>/reopen", "thread_reopen", forms.ReopenForm),
    ("threads/<int:thread_id>/take", "thread_take", forms.TakeForm),
)
urlpatterns = [
    path("promotions", request_list, name="promotions"),
    path("promotions/request", promotion_request, name="promotion_request"),
    path("promotions/approve", approve_together, name="promotions_approve"),
    path("promotions/plan.json", plan, name="promotion_plan"),
    path("promotions/<int:request_id>", promotion, name="promotion"),
    path("promotions/<int:request_id>/evidence.html", evidence_html, name="promotion_evidence_html"),
    path("promotions/<int:request_id>/evidence.json", evidence_json, name="promotion_evidence_json"),
    path("promotions/<int:request_id>/replay", replay.replay, name="promotion_replay"),
    *(
        path(f"promotions/<int:request_id>/{route}", RequestFormView.as_view(form_class=form), name=f"promotion_{name}")
        for route, name, form in _FORMS
    ),
]
