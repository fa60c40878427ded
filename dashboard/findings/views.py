"""Views of findings and of decisions on them, with their URLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.components.chart import chart_csv
from dashboard.components.forms import FormPage, FormPageView, ServiceForm, ServiceFormView
from dashboard.components.frame import page_actor, render_page
from dashboard.components.links import whole_number
from dashboard.components.translation import counted
from dashboard.findings import decisions
from dashboard.findings import finding_list as findings_table
from dashboard.findings import page as findings
from dashboard.findings.decisions import AcknowledgeForm, AssignForm, MuteForm, ReopenFindingForm
from registry.access.permission_filters import require_extent
from registry.drift import selectors, services
from registry.errors import Conflict, Forbidden, InvalidInput, NotFound

MOST_AT_ONCE: Final = 1_000


@require_safe
def finding_list(request: HttpRequest) -> HttpResponse:
    """Show the findings that need a decision; htmx gets only the list."""
    if request.GET.get("as") == "csv":
        require_extent(page_actor(request), "schema.read")
        return chart_csv(findings_table.over_time(page_actor(request)), "findings")
    return render_page(request, "drift/findings.html", findings_table.finding_list(request), {"list": "list"})


@require_safe
def finding_page(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Show a finding with its evidence."""
    return render(request, "drift/finding.html", {"page": findings.finding_page(request, finding_id)})


@require_safe
def finding_offsets(request: HttpRequest, finding_id: int) -> HttpResponse:
    """Download the offsets of a finding's messages."""
    form = request.GET.get("as", "csv")
    text = selectors.offsets_file(finding_id, form, by=page_actor(request))
    response = HttpResponse(text, content_type=selectors.MEDIA[form])
    response["Content-Disposition"] = f'attachment; filename="finding-{finding_id}-offsets.{form}"'
    return response


class FindingFormView(ServiceFormView):
    """A decision on a finding; it redirects to the finding, or to the home page if made there."""

    action = "finding.decide"

    def show(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Show the page with the form's errors."""
        page = findings.finding_page(self.request, route["finding_id"], form)
        return render(self.request, "drift/finding.html", {"page": page}, status=form.response_status)

    def after(self, **route: Any) -> HttpResponse:
        """Redirect to the page with the form."""
        is_home = self.request.POST.get("next") == reverse("ui:home")
        return redirect("ui:home") if is_home else redirect("ui:finding", route["finding_id"])


@require_POST
def findings_decide(request: HttpRequest) -> HttpResponse:
    """Acknowledge or assign all selected findings; report those that failed."""
    form = (AcknowledgeForm if request.POST.get("do") == "acknowledge" else AssignForm)(request.POST)
    texts = ",".join(request.POST.getlist("finding")).split(",")
    numbers = [number for text in texts if (number := whole_number(text)) is not None]
    try:
        if not numbers:
            raise InvalidInput(gettext("Select findings first."))
        if len(numbers) > MOST_AT_ONCE:
            raise InvalidInput(
                gettext("You can select up to %(most_at_once)s findings at once, not %(count)s.")
                % {"count": len(numbers), "most_at_once": MOST_AT_ONCE}
            )
        if form.problem:
            raise InvalidInput(form.problem.what)
        _decide_all(request, numbers, form)
    except InvalidInput as error:
        messages.error(request, error.message)
    return redirect(_back(request))


Counts = tuple[Callable[[int], str], Callable[[int], str]]
#: messages for the findings that were decided, and for those that failed
_ACKNOWLEDGED: Final[Counts] = (
    lambda number: counted(number, "%(n)s finding acknowledged.", "%(n)s findings acknowledged."),
    lambda number: counted(number, "%(n)s more couldn’t be acknowledged.", "%(n)s more couldn’t be acknowledged."),
)
_ASSIGNED: Final[Counts] = (
    lambda number: counted(number, "%(n)s finding assigned.", "%(n)s findings assigned."),
    lambda number: counted(number, "%(n)s more couldn’t be assigned.", "%(n)s more couldn’t be assigned."),
)


def _decide_all(request: HttpRequest, numbers: Sequence[int], form: ServiceForm) -> None:
    """Decide on each finding.

    Raises InvalidInput at the first, because it is about the input and would be the same for all.
    """
    done, left = 0, []
    for number in numbers:
        try:
            type(form).service(finding_id=number, by=page_actor(request), **form.arguments())
            done += 1
        except (Conflict, NotFound, Forbidden) as error:
            left.append(error.message)
    decided, more = _ACKNOWLEDGED if isinstance(form, AcknowledgeForm) else _ASSIGNED
    if done:
        messages.success(request, decided(done))
    for sentence in left[:3]:
        messages.warning(request, sentence)
    if len(left) > 3:
        messages.warning(request, more(len(left) - 3))


def _back(request: HttpRequest) -> str:
    """Return the URL in the form, if it is the home page or this site's list of findings."""
    back, base = request.POST.get("next", ""), reverse("ui:findings")
    if back == reverse("ui:home"):
        return back
    is_ours = url_has_allowed_host_and_scheme(back, allowed_hosts=None) and back.partition("?")[0] == base
    return back if is_ours else base


class MuteView(FormPageView):
    """The mutes, and the form of a new one with a preview."""

    action = "finding.mute"
    template = "drift/mutes.html"
    next_page = "ui:mutes"

    def make_form(self, data: Any, **route: Any) -> ServiceForm:
        """Return the form with the patterns in the URL. Raises NotAllowed."""
        return decisions.mute_form(data, self.request.GET.dict(), page_actor(self.request))

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page."""
        return decisions.mute_page(self.request, cast(MuteForm, form))


@require_POST
def mute_end(request: HttpRequest, mute_id: int) -> HttpResponse:
    """End a mute."""
    services.unmute(mute_id=mute_id, by=page_actor(request))
    messages.success(request, gettext("Mute removed. Its findings are shown again."))
    return redirect("ui:mutes")


_DECISIONS = (("acknowledge", AcknowledgeForm), ("reopen", ReopenFindingForm), ("assign", AssignForm))
urlpatterns = [
    path("findings", finding_list, name="findings"),
    path("findings/decide", findings_decide, name="findings_decide"),
    path("findings/<int:finding_id>", finding_page, name="finding"),
    path("findings/<int:finding_id>/offsets", finding_offsets, name="finding_offsets"),
    *(
        path(f"findings/<int:finding_id>/{name}", FindingFormView.as_view(form_class=form), name=f"finding_{name}")
        for name, form in _DECISIONS
    ),
    path("mutes", MuteView.as_view(), name="mutes"),
    path("mutes/<int:mute_id>/end", mute_end, name="mute_end"),
]
