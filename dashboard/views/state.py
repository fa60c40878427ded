"""Pages that check planned state before a restart."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.pages import state
from dashboard.pages.frame import page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_values import store_values
from registry.access.roles import require
from registry.errors import Forbidden, InvalidInput, SchemadeskError
from registry.streams.selectors import StateCheckInfo, get_state_check
from registry.streams.services import check_document, start_plan

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
    path = state.chosen_checkpoint(request.POST)
    try:
        if not path:
            raise InvalidInput(gettext("Choose a checkpoint, or give its folder."))
        given: dict[str, Any] = {"checkpoint": path, "store": store_values(request.POST), "by": page_actor(request)}
        if request.POST.get("do") == "load":
            return _form(request, state.check_form(request, plan=start_plan(**given)))
        number = check_document(plan=plan, **given)
    except Forbidden:
        raise
    except SchemadeskError as error:
        return _form(request, state.check_form(request, plan=plan, problem=error), status=422)
    return redirect("ui:state_check", number)


def _opened(request: HttpRequest) -> HttpResponse:
    again = whole_number(request.GET.get("again", ""))
    if again is None:
        return _form(request, state.check_form(request))
    info = get_state_check(again)
    return _form(request, state.check_form(request, plan=info.plan, checkpoint=info.checkpoint))


def _form(request: HttpRequest, page: object, status: int = 200) -> HttpResponse:
    return render(request, "streams/check_new.html", {"page": page}, status=status)


@require_safe
def check_page(request: HttpRequest, check_id: int) -> HttpResponse:
    """The report of a check."""
    require(page_actor(request), "schema.read")
    return render(request, "streams/check.html", {"page": state.report_page(request, check_id)})


@require_safe
def check_export(request: HttpRequest, check_id: int) -> HttpResponse:
    """The report as a file: JSON, Markdown or text."""
    require(page_actor(request), "schema.read")
    kind = request.GET.get("format", "json")
    if kind not in _TYPES:
        raise InvalidInput(
            gettext("A report comes as %(types)s, not as %(kind)s.")
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
