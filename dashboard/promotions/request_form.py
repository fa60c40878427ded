"""The form of a new request with its plan, and resubmitting a rejected or withdrawn request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Verdict
from dashboard.components.forms import fill_choices
from dashboard.components.frame import page_actor
from dashboard.components.links import form_text, whole_number
from dashboard.components.translation import counted
from dashboard.components.widgets import Action, Frame, Problem
from dashboard.promotions.decision import action
from dashboard.promotions.forms import LATEST, MAX_LINES, NewRequestForm
from dashboard.promotions.plan import IdPlan, StepRow, id_plan, plan_steps, promotion_frame, who_overrides, worst
from dashboard.promotions.presenters import LinkedRow
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.errors import InvalidInput, SchemadeskError
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import Plan
from registry.promotions.requests.preconditions import refused
from registry.promotions.requests.resubmit import resubmissions_of
from registry.promotions.requests.selectors import AGAIN, readable_request
from registry.promotions.selectors import RequestInfo

#: kinds of requests that are resubmitted with a form → its page
_FORMS = {PromotionRequest.PROMOTE: "ui:promotion_request", PromotionRequest.PROPOSE: "ui:propose"}


def again_action(info: RequestInfo, actor: Actor) -> Action | None:
    """Return the action that resubmits: a form if its values can be changed, else a button; None for other states."""
    if info.state not in AGAIN:
        return None
    label, icon = gettext("Request again"), "refresh-cw"
    reason = refused(actor, "promotion.request", info, [item.subject.qualified for item in info.items])
    form = _FORMS.get(info.kind)
    if form is None:
        return action(info, "again", label, reason, icon=icon)
    url = f"{reverse(form)}?{urlencode({'again_of': info.id})}"
    return Action(label=gettext("Request again…"), url=url, reason=reason, icon=icon)


def again_rows(info: RequestInfo, actor: Actor) -> tuple[LinkedRow, ...]:
    """Return the request that this one resubmits, and its own resubmissions, newest first."""
    resubmissions = resubmissions_of([info], actor)[info.id]
    later = tuple(
        LinkedRow(request=summary, sentence=gettext("It requests this again."))
        for summary in reversed(resubmissions.later)
    )
    if resubmissions.earlier is None:
        return later
    return (LinkedRow(request=resubmissions.earlier, sentence=gettext("An earlier request for the same.")), *later)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionForm:
    """The form of a new request, and its plan once enough is selected (`plan_hash` identifies it).

    `headline` is the result in words; `export_url` is the plan as a file. `refused` says why the reader may not
    request.
    """

    frame: Frame
    form: NewRequestForm
    refused: str = ""
    headline: str = ""
    sentence: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    checks: tuple[Mapping[str, Any], ...] = ()
    plan: tuple[StepRow, ...] = ()
    ids: IdPlan | None = None
    plan_hash: str = ""
    export_url: str = ""
    problem: Problem | None = None


#: separates the two environments of a `way` from the board
WAY: Final = ">"
#: the fields that the plan depends on
_PLANNED: Final = {"items", "source", "target"}


def form_data(query: QueryDict, order: Sequence[str]) -> dict[str, Any]:
    """Return the form's values: its own, a single `subject` with `version`, or the board's selection."""
    source, _, target = form_text(query, "way").partition(WAY)
    source = source or form_text(query, "source") or (order[0] if order else "")
    after = order[order.index(source) + 1 :] if source in order else order
    lines = query.get("items", "").replace("\0", "").replace("\r\n", "\n").strip("\n")
    if not lines.strip():
        single = f"{form_text(query, 'subject')} {form_text(query, 'version', LATEST)}".strip()
        marked = [text.replace("\0", "") for text in query.getlist("item")[:MAX_LINES]]
        lines = "\n".join([*([single] if form_text(query, "subject") else []), *marked])
    return {
        "items": lines,
        "source": source,
        "target": target or form_text(query, "target") or next(iter(after), ""),
        "reason": form_text(query, "reason"),
        "labels": form_text(query, "labels"),
        "with_config": query.get("with_config") in ("1", "on"),
        "again_of": whole_number(form_text(query, "again_of")),
        "draft": query.get("draft") == "1",
    }


def _filled(data: dict[str, Any], actor: Actor) -> dict[str, Any]:
    """Return the values, completed from the resubmitted request if they name nothing else. Raises RequestNotFound."""
    if data["again_of"] is None or data["items"].strip():
        return data
    info = readable_request(data["again_of"], actor)
    return data | {
        "items": "\n".join(f"{item.subject.qualified} {item.version}" for item in info.items if item.version),
        "source": info.source or data["source"],
        "target": info.target,
        "reason": info.reason,
        "with_config": info.with_config,
        "labels": ", ".join(info.labels),
    }


def request_form(request: HttpRequest, sent: NewRequestForm | None = None) -> PromotionForm:
    """Return the form, filled from the URL or as sent, with the plan if it has items."""
    actor, order = page_actor(request), selectors.list_environments()
    form = sent or _form_of(_filled(form_data(request.GET, order), actor))
    readable = extent_of(actor, "schema.read")
    names = [name for name in order if readable.has(name)]
    fill_choices([form], source=[n for n in names if n in order[:-1]], target=[n for n in names if n in order[1:]])
    plan = _plan_of(form, actor)
    return PromotionForm(
        frame=promotion_frame(request, gettext("Request a promotion"), order=order),
        form=form,
        refused="" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request"),
        problem=form.problem,
        **(_preview(plan, form) if plan else {}),
    )


def _form_of(data: dict[str, Any]) -> NewRequestForm:
    """Return the form with these values, bound if it has items."""
    return NewRequestForm(data) if data["items"].strip() else NewRequestForm(initial=data)


def _plan_of(form: NewRequestForm, actor: Actor) -> Plan | None:
    """Return the plan for the form's values; its error is added to the form if that has none."""
    if not form.is_bound or form.errors.keys() & _PLANNED:
        return None
    try:
        return previewed(form, actor)
    except SchemadeskError as error:
        if not form.errors:
            form.add_service_error(error)
        return None


def previewed(form: NewRequestForm, actor: Actor) -> Plan:
    """Return the plan of a form with valid items and environments. Raises the errors of the preview."""
    given = {name: form.cleaned_data[name] for name in (*_PLANNED, "with_config")}
    return services.preview_promotion(by=actor, **given)


def _preview(plan: Plan, form: NewRequestForm) -> dict[str, Any]:
    stored = plan.to_dict()
    source, target = form.cleaned_data["source"], form.cleaned_data["target"]
    verdict = Verdict.BREAKS if plan.failing else worst(stored["checks"])
    return {
        "headline": _headline(plan, target, is_careful=verdict is Verdict.CARE),
        "sentence": _sentence(plan, target),
        "verdict": verdict,
        "checks": tuple(stored["checks"]),
        "plan": plan_steps(plan.steps, source, target),
        "ids": id_plan(plan.steps, source, target),
        "plan_hash": plan.hash,
        "export_url": f"{reverse('ui:promotion_plan')}?{_query(form)}",
    }


def _headline(plan: Plan, target: str, *, is_careful: bool) -> str:
    if not plan.has_work:
        return gettext("%(target)s already has all of this") % {"target": target}
    if plan.failing:
        overridable = all(check.overridable for check in plan.failing)
        said = gettext("Checks fail")
        return f"{said} ({who_overrides(check.code for check in plan.failing)})" if overridable else said
    if is_careful:
        return gettext("Can be promoted to %(target)s with care") % {"target": target}
    return gettext("Can be promoted to %(target)s") % {"target": target}


def _sentence(plan: Plan, target: str) -> str:
    if plan.failing and plan.has_work:
        return plan.failing[0].sentence
    return counted(
        sum(step.adds for step in plan.steps),
        "%(n)s version would be written to %(target)s.",
        "%(n)s versions would be written to %(target)s.",
        target=target,
    )


def _query(form: NewRequestForm) -> str:
    query = {name: form[name].value() for name in ("items", "source", "target")}
    return urlencode(query | ({"with_config": "1"} if form["with_config"].value() else {}))


def plan_file(request: HttpRequest) -> str:
    """Return the plan for the URL's parameters, as JSON with its hash. Raises the errors of the preview."""
    form = NewRequestForm(form_data(request.GET, selectors.list_environments()))
    if form.problem:
        raise InvalidInput(form.problem.what)
    plan, given = previewed(form, page_actor(request)), form.cleaned_data
    document = {
        "source": given["source"],
        "target": given["target"],
        "items": [{"subject": name.qualified, "version": version} for name, version in given["items"]],
        "plan_hash": plan.hash,
        "can_run": plan.can_run,
        **plan.to_dict(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, default=str)
