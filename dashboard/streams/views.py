"""Pages of streaming queries and their state, and of checks of planned state before a restart."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.components.frame import page_actor
from dashboard.components.links import whole_number
from dashboard.sources.forms import StoreForm
from dashboard.streams import queries, restart_check, variables
from registry.access.roles import require
from registry.errors import Forbidden, InvalidInput, SchemadeskError
from registry.streams.selectors import StateCheckInfo, get_state_check
from registry.streams.services import check_document, start_plan


@require_safe
def query_list(request: HttpRequest) -> HttpResponse:
    """All queries, budgets at a glance."""
    return render(request, "streams/queries.html", {"page": queries.query_list(request)})


@require_safe
def query_page(request: HttpRequest, query_id: int) -> HttpResponse:
    """One query with its operators and state variables."""
    return render(request, "streams/query.html", {"page": queries.query_page(request, query_id)})


@require_safe
def variable_page(request: HttpRequest, query_id: int, variable_id: int) -> HttpResponse:
    """A state variable with its timeline."""
    page = variables.variable_page(request, query_id, variable_id)
    return render(request, "streams/variable.html", {"page": page})


@require_safe
def variable_compare(request: HttpRequest, query_id: int, variable_id: int) -> HttpResponse:
    """Two versions of a state variable's schema."""
    page = variables.compare_page(request, query_id, variable_id)
    return render(request, "streams/compare.html", {"page": page})


_TYPES: Final = {
    "json": ("application/json", "json"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "text": ("text/plain; charset=utf-8", "txt"),
}


@require_http_methods(["GET", "HEAD", "POST"])
def check_new(request: HttpRequest) -> HttpResponse:
    """The form; sent, it checks the plan and goes to the report, or fills in what the checkpoint holds now."""
    require(page_actor(request), "schema.read")
    if request.method != "POST":
        return _opened(request)
    # A browser sends line ends as CRLF; places in the text are counted as they were typed.
    plan = request.POST.get("plan", "").replace("\r\n", "\n")
    path = restart_check.chosen_checkpoint(request.POST)
    try:
        if not path:
            raise InvalidInput(gettext("Select a checkpoint, or give its folder."))
        form = StoreForm(request.POST)
        store = form.store() if form.is_valid() else None
        arguments: dict[str, Any] = {"checkpoint": path, "store": store, "by": page_actor(request)}
        if request.POST.get("do") == "load":
            return _form(request, restart_check.check_form(request, plan=start_plan(**arguments)))
        number = check_document(plan=plan, **arguments)
    except Forbidden:
        raise
    except SchemadeskError as error:
        return _form(request, restart_check.check_form(request, plan=plan, problem=error), status=422)
    return redirect("ui:state_check", number)


def _opened(request: HttpRequest) -> HttpResponse:
    again = whole_number(request.GET.get("again", ""))
    if again is None:
        return _form(request, restart_check.check_form(request))
    info = get_state_check(again)
    return _form(request, restart_check.check_form(request, plan=info.plan, checkpoint=info.checkpoint))


def _form(request: HttpRequest, page: object, status: int = 200) -> HttpResponse:
    return render(request, "streams/check_new.html", {"page": page}, status=status)


@require_safe
def check_page(request: HttpRequest, check_id: int) -> HttpResponse:
    """The report of a check."""
    require(page_actor(request), "schema.read")
    return render(request, "streams/check.html", {"page": restart_check.report_page(request, check_id)})


@require_safe
def check_export(request: HttpRequest, check_id: int) -> HttpResponse:
    """The report as a file: JSON, Markdown or text."""
    require(page_actor(request), "schema.read")
    kind = request.GET.get("format", "json")
    if kind not in _TYPES:
        raise InvalidInput(
            gettext("Reports are available as %(types)s, not as %(kind)s.")
            % {"types": ", ".join(_TYPES), "kind": repr(kind[:40])}
        )
    content_type, suffix = _TYPES[kind]
    response = HttpResponse(_content(get_state_check(check_id), kind), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="state-check-{check_id}.{suffix}"'
    return response


def _content(info: StateCheckInfo, kind: str) -> str:
    if kind == "json":
        return json.dumps(info.report, indent=2, ensure_ascii=False)
    return info.markdown if kind == "markdown" else info.text
