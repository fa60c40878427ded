"""The form of a new request with its plan, and resubmitting one that was rejected or withdrawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import Verdict
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import whole_number
from dashboard.components.translation import counted, later
from dashboard.components.widgets import Action, Choice, Crumb, Field, Link, Problem, Section
from dashboard.promotions.decision import action
from dashboard.promotions.plan import PromotionForm, id_plan, plan_steps, worst
from dashboard.promotions.presenters import LinkedRow
from dashboard.sources.labels import given_text
from registry.access.permission_filters import Extent, extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.errors import InvalidInput, SchemadeskError
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.models.requests import MAX_LABELS, clean_labels, written_labels
from registry.promotions.plan.types import Plan
from registry.promotions.requests.preconditions import refused
from registry.promotions.requests.resubmit import resubmissions_of
from registry.promotions.requests.selectors import AGAIN, readable_request
from registry.promotions.selectors import RequestInfo
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: kinds of requests that are resubmitted with a form → its page
_FORMS = {PromotionRequest.PROMOTE: "ui:promotion_request", PromotionRequest.PROPOSE: "ui:propose"}


def again_action(info: RequestInfo, actor: Actor) -> Action | None:
    """The action that resubmits: a form if something can be changed, else a button; None for other states."""
    if info.state not in AGAIN:
        return None
    label, icon = gettext("Request again"), "refresh-cw"
    reason = refused(actor, "promotion.request", info, [item.subject.qualified for item in info.items])
    form = _FORMS.get(info.kind)
    if form is None:
        return action(info, "again", label, reason, icon=icon)
    url = f"{reverse(form)}?{urlencode({'again_of': info.id})}"
    return Action(label=gettext("Request again…"), url=url, allowed=not reason, reason=reason, icon=icon)


def again_rows(info: RequestInfo, actor: Actor) -> tuple[LinkedRow, ...]:
    """The request that this one resubmits, and its own resubmissions, newest first."""
    resubmissions = resubmissions_of([info], actor)[info.id]
    later = tuple(
        LinkedRow(request=summary, sentence=gettext("It requests this again."))
        for summary in reversed(resubmissions.later)
    )
    if resubmissions.earlier is None:
        return later
    return (LinkedRow(request=resubmissions.earlier, sentence=gettext("An earlier request for the same.")), *later)


def again_link(number: int | None) -> Link | None:
    """The link to the request that a form resubmits; None if there is none."""
    if number is None:
        return None
    return Link(label=gettext("request %(request)s") % {"request": number}, url=reverse("ui:promotion", args=[number]))


MAX_LINES: Final = 500
#: separates the two environments of a `way` from the board
WAY: Final = ">"
_LATEST: Final = "latest"
_ITEMS_HELP: Final = later(
    "One subject per line, optionally followed by a space and a version. Without a version, the"
    " latest is used. Referenced schemas are included automatically."
)


@dataclass(frozen=True)
class RequestInput:
    """The inputs of the form or the address; `lines` as they are written."""

    lines: str
    source: str
    target: str
    reason: str
    with_config: bool
    again_of: int | None = None
    labels: str = ""

    def items(self) -> list[tuple[SubjectName, int | str]]:
        """The lines as pairs of subject and version. Raises InvalidInput, InvalidName."""
        lines = [line.strip() for line in self.lines.splitlines() if line.strip()]
        if len(lines) > MAX_LINES:
            raise InvalidInput(
                gettext("There are %(count)s lines. The maximum is %(max_lines)s.")
                % {"count": len(lines), "max_lines": MAX_LINES}
            )
        return [_item(line) for line in lines]


def _item(line: str) -> tuple[SubjectName, int | str]:
    """Subject and version of a line. A name may contain spaces: only a number or `latest` at the end is a version."""
    name, _, version = line.rpartition(" ")
    if name and (version == _LATEST or (version.isascii() and version.isdigit())):
        return parse_subject(name.strip()), version
    return parse_subject(line), _LATEST


def request_input(query: QueryDict, order: Sequence[str]) -> RequestInput:
    """The inputs: from the field, from one `subject` with its `version`, or from the board's selection."""
    source, _, target = given_text(query, "way").partition(WAY)
    source = source or given_text(query, "source") or (order[0] if order else "")
    after = order[order.index(source) + 1 :] if source in order else order
    target = target or given_text(query, "target") or next(iter(after), "")
    lines = query.get("items", "").replace("\0", "").replace("\r\n", "\n").strip("\n")
    if not lines.strip():
        single = f"{given_text(query, 'subject')} {given_text(query, 'version', _LATEST)}".strip()
        marked = [text.replace("\0", "") for text in query.getlist("item")[:MAX_LINES]]
        lines = "\n".join([*([single] if given_text(query, "subject") else []), *marked])
    with_config, again_of = query.get("with_config") == "1", whole_number(given_text(query, "again_of"))
    reason, labels = given_text(query, "reason"), given_text(query, "labels")
    return RequestInput(lines, source, target, reason, with_config, again_of, labels)


def _filled(inputs: RequestInput, actor: Actor) -> RequestInput:
    """The inputs, completed from the resubmitted request if they name only that. Raises RequestNotFound."""
    if inputs.again_of is None or inputs.lines.strip():
        return inputs
    info = readable_request(inputs.again_of, actor)
    return replace(
        inputs,
        lines="\n".join(f"{item.subject.qualified} {item.version}" for item in info.items if item.version),
        source=info.source or inputs.source,
        target=info.target,
        reason=info.reason,
        with_config=info.with_config,
        labels=", ".join(info.labels),
    )


def request_form(request: HttpRequest, problem: SchemadeskError | None = None) -> PromotionForm:
    """The form, filled from the address or the sent values; with the plan once there are items."""
    actor, order = page_actor(request), selectors.list_environments()
    query = request.POST if request.method == "POST" else request.GET
    inputs = _filled(request_input(query, order), actor)
    plan, shown = None, problem
    try:
        clean_labels(written_labels(inputs.labels))
        plan = previewed(inputs, actor) if inputs.lines.strip() else None
    except SchemadeskError as error:
        shown = problem or error
    return PromotionForm(
        frame=make_frame(
            request,
            title=gettext("Request a promotion"),
            section=Section.PROMOTIONS,
            crumbs=(Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),),
            order=order,
        ),
        fields=(*_fields(inputs, order, extent_of(actor, "schema.read")), _labels(inputs, shown)),
        submit=_send(gettext("Request review"), actor),
        draft=_send(gettext("Save as draft"), actor),
        preview_url=reverse("ui:promotion_request"),
        with_config=inputs.with_config,
        again_of=inputs.again_of,
        again=again_link(inputs.again_of),
        problem=Problem(what=shown.placed) if shown and not _is_of_labels(shown) else None,
        **(_preview(plan, inputs) if plan else {}),
    )


def _is_of_labels(problem: SchemadeskError) -> bool:
    return problem.details.get("field") == "labels"


def _labels(inputs: RequestInput, problem: SchemadeskError | None) -> Field:
    """The field of labels, with its error."""
    return Field(
        name="labels",
        label=gettext("Labels"),
        value=inputs.labels,
        errors=(problem.message,) if problem and _is_of_labels(problem) else (),
        help=gettext("Up to %(most)s, separated by commas. Everyone who can read the request sees them.")
        % {"most": MAX_LABELS},
    )


def previewed(inputs: RequestInput, actor: Actor) -> Plan:
    """The plan of the inputs. Raises what the preview raises."""
    return services.preview_promotion(
        source=inputs.source, target=inputs.target, items=inputs.items(), by=actor, with_config=inputs.with_config
    )


def _send(label: str, actor: Actor) -> Action:
    reason = "" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request")
    url = reverse("ui:promotion_request")
    return Action(label=label, url=url, method="post", allowed=not reason, reason=reason, tone="primary")


def _fields(inputs: RequestInput, order: Sequence[str], readable: Extent) -> tuple[Field, ...]:
    def environment_choices(names: Sequence[str], chosen: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=name, label=name, selected=name == chosen) for name in names if readable.has(name))

    rows = max(3, min(12, inputs.lines.count("\n") + 2))
    return (
        Field(
            name="items", label=gettext("Subjects"), kind="textarea", rows=rows, value=inputs.lines, required=True, code=True,
            placeholder="orders-value 3", help=_ITEMS_HELP,
        ),
        Field(name="source", label=gettext("From"), kind="select", choices=environment_choices(order[:-1], inputs.source), required=True),
        Field(name="target", label=gettext("To"), kind="select", choices=environment_choices(order[1:], inputs.target), required=True),
        Field(name="reason", label=gettext("Reason"), kind="textarea", rows=3, value=inputs.reason, help=gettext("What reviewers should know.")),
    )  # fmt: skip


def _preview(plan: Plan, inputs: RequestInput) -> dict[str, Any]:
    stored = plan.to_dict()
    verdict = Verdict.BREAKS if plan.failing else worst(stored["checks"])
    return {
        "headline": _headline(plan, inputs.target),
        "sentence": _sentence(plan, inputs.target),
        "verdict": verdict,
        "checks": tuple(stored["checks"]),
        "plan": plan_steps(plan.steps, inputs.source, inputs.target),
        "ids": id_plan(plan.steps, inputs.source, inputs.target),
        "plan_hash": plan.hash,
        "export_url": f"{reverse('ui:promotion_plan')}?{_query(inputs)}",
    }


def _headline(plan: Plan, target: str) -> str:
    if not plan.has_work:
        return gettext("%(target)s already has all of this") % {"target": target}
    if plan.failing:
        overridable = all(check.overridable for check in plan.failing)
        return gettext("Checks fail (can be overridden)") if overridable else gettext("Checks fail")
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


def _query(inputs: RequestInput) -> str:
    query = QueryDict(mutable=True)
    query.update({"items": inputs.lines, "source": inputs.source, "target": inputs.target})
    if inputs.with_config:
        query["with_config"] = "1"
    return query.urlencode()


def plan_file(request: HttpRequest) -> str:
    """The plan for the address's parameters, as JSON with its hash. Raises what the preview raises."""
    inputs = request_input(request.GET, selectors.list_environments())
    plan = previewed(inputs, page_actor(request))
    document = {
        "source": inputs.source,
        "target": inputs.target,
        "items": [{"subject": name.qualified, "version": version} for name, version in inputs.items()],
        "plan_hash": plan.hash,
        "can_run": plan.can_run,
        **plan.to_dict(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, default=str)
