"""Views of streaming queries and their state, and of restart checks."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.components.chart import chart_csv
from dashboard.components.forms import FormPage, FormPageView, ServiceForm
from dashboard.components.frame import page_actor
from dashboard.components.links import whole_number
from dashboard.streams import queries, restart_check, variables
from dashboard.streams.restart_check import CheckForm, LoadPlanForm
from registry.access.roles import require
from registry.errors import InvalidInput
from registry.streams.selectors import StateCheckInfo, get_state_check


@require_safe
def query_list(request: HttpRequest) -> HttpResponse:
    """Show all queries with their budgets."""
    return render(request, "streams/queries.html", {"page": queries.query_list(request)})


@require_safe
def query_page(request: HttpRequest, query_id: int) -> HttpResponse:
    """Show a query with its operators, its state variables and how it runs, or the numbers of a chart as CSV."""
    page = queries.query_page(request, query_id)
    if request.GET.get("as") == "csv":
        key = request.GET.get("chart", "")
        chart = next((chart for chart in page.progress.charts if chart.key == key), None)
        return chart_csv(chart, f"query-{query_id}-{chart.key if chart else 'none'}", step="time")
    return render(request, "streams/query.html", {"page": page})


@require_safe
def variable_page(request: HttpRequest, query_id: int, variable_id: int) -> HttpResponse:
    """Show a state variable with its versions."""
    page = variables.variable_page(request, query_id, variable_id)
    return render(request, "streams/variable.html", {"page": page})


@require_safe
def variable_compare(request: HttpRequest, query_id: int, variable_id: int) -> HttpResponse:
    """Compare two versions of a state variable's schema."""
    page = variables.compare_page(request, query_id, variable_id)
    return render(request, "streams/compare.html", {"page": page})


_TYPES: Final = {
    "json": ("application/json", "json"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "text": ("text/plain; charset=utf-8", "txt"),
    "script": ("text/x-python; charset=utf-8", "py"),
}


class StateCheckView(FormPageView):
    """The form; on POST, it checks the plan and redirects to the report, or loads the checkpoint's present state."""

    template = "streams/check_new.html"

    def make_form(self, data: Any, **route: Any) -> CheckForm:
        """Return the form as sent, of an earlier check, or of the URL. Raises NotAllowed, StateCheckNotFound."""
        require(page_actor(self.request), "schema.read")
        known = restart_check.known_checkpoints()
        if data is not None:
            kind = LoadPlanForm if data.get("do") == "load" else CheckForm
            return kind(data, known=known)
        initial: dict[str, str] = self.request.GET.dict()
        again = whole_number(initial.get("again", ""))
        if again is not None:
            info = get_state_check(again)
            initial |= {"plan": info.plan, "checkpoint": info.checkpoint}
        if initial.get("checkpoint") not in known:
            initial = {"path": initial.get("checkpoint", ""), **initial}
        return CheckForm(known=known, initial=initial)

    def page(self, form: ServiceForm, **route: Any) -> FormPage:
        """Return the page of the form."""
        assert isinstance(form, CheckForm)
        return restart_check.check_page(self.request, form)

    def done(self, form: ServiceForm, **route: Any) -> HttpResponse:
        """Redirect to the report, or show the form with the loaded plan."""
        if isinstance(form, LoadPlanForm):
            initial = {**self.request.POST.dict(), "plan": form.result}
            return self.show(CheckForm(known=restart_check.known_checkpoints(), initial=initial), **route)
        return redirect("ui:state_check", form.result)


@require_safe
def check_page(request: HttpRequest, check_id: int) -> HttpResponse:
    """Show the report of a check."""
    require(page_actor(request), "schema.read")
    return render(request, "streams/check.html", {"page": restart_check.report_page(request, check_id)})


@require_safe
def check_export(request: HttpRequest, check_id: int) -> HttpResponse:
    """Download the report as JSON, Markdown or text, or the script that carries the state over."""
    require(page_actor(request), "schema.read")
    kind = request.GET.get("format", "json")
    if kind not in _TYPES:
        raise InvalidInput(
            gettext("Reports are available as %(types)s, not as %(kind)s.")
            % {"types": ", ".join(_TYPES), "kind": repr(kind[:40])}
        )
    content_type, suffix = _TYPES[kind]
    content = _content(get_state_check(check_id), kind)
    if not content:
        raise InvalidInput(gettext("This check has no script: see what to do in its report."))
    response = HttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="state-check-{check_id}.{suffix}"'
    return response


def _content(info: StateCheckInfo, kind: str) -> str:
    if kind == "json":
        return json.dumps(info.report, indent=2, ensure_ascii=False)
    return {"markdown": info.markdown, "script": info.script}.get(kind, info.text)
