"""The form of a new request: what should go where, and the plan that this would have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.promotions_again import again_link
from dashboard.pages.promotions_decision import label_field
from dashboard.pages.promotions_plan import check_rows, id_plan, plan_steps, worst
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import Action, Choice, Crumb, Field, Problem, Section
from dashboard.presenters.looks import Verdict
from dashboard.presenters.promotions import PromotionForm
from dashboard.texts import counted, later
from registry.access.extent import Extent, extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.errors import InvalidInput, SchemadeskError
from registry.promotions import selectors, services
from registry.promotions.labels import clean_labels, written_labels
from registry.promotions.plan import Plan
from registry.promotions.selectors.readable import readable_request
from registry.subjects.names import SubjectName, parse_subject

MAX_LINES: Final = 500
#: stands between the environments of a way that the board offers
WAY: Final = ">"
_LATEST: Final = "latest"
_ITEMS_HELP: Final = later(
    "One subject a line, with a version after a space; without one the latest is meant."
    " What they refer to comes along by itself."
)


@dataclass(frozen=True)
class Asked:
    """What the form or the address asks for; `lines` as they are written."""

    lines: str
    source: str
    target: str
    reason: str
    with_config: bool
    again_of: int | None = None
    labels: str = ""

    def items(self) -> list[tuple[SubjectName, int | str]]:
        """The lines as subjects with versions. Raises InvalidInput, InvalidName."""
        lines = [line.strip() for line in self.lines.splitlines() if line.strip()]
        if len(lines) > MAX_LINES:
            raise InvalidInput(
                gettext("These are %(count)s lines; %(max_lines)s are read.")
                % {"count": len(lines), "max_lines": MAX_LINES}
            )
        return [_item(line) for line in lines]


def _item(line: str) -> tuple[SubjectName, int | str]:
    """A subject's name may hold spaces: only a number or `latest` at the end is a version."""
    name, _, version = line.rpartition(" ")
    if name and (version == _LATEST or (version.isascii() and version.isdigit())):
        return parse_subject(name.strip()), version
    return parse_subject(line), _LATEST


def asked_of(given: QueryDict, order: Sequence[str]) -> Asked:
    """What is asked for: in the field, by one `subject` with its `version`, or by the board's marks."""
    source, _, target = given_text(given, "way").partition(WAY)
    source = source or given_text(given, "source") or (order[0] if order else "")
    after = order[order.index(source) + 1 :] if source in order else order
    target = target or given_text(given, "target") or next(iter(after), "")
    lines = given.get("items", "").replace("\0", "").replace("\r\n", "\n").strip("\n")
    if not lines.strip():
        single = f"{given_text(given, 'subject')} {given_text(given, 'version', _LATEST)}".strip()
        marked = [text.replace("\0", "") for text in given.getlist("item")[:MAX_LINES]]
        lines = "\n".join([*([single] if given_text(given, "subject") else []), *marked])
    with_config, again_of = given.get("with_config") == "1", whole_number(given_text(given, "again_of"))
    reason, labels = given_text(given, "reason"), given_text(given, "labels")
    return Asked(lines, source, target, reason, with_config, again_of, labels)


def _filled(asked: Asked, actor: Actor) -> Asked:
    """Where only the request is named that is asked for again, with all that it asked for. Raises RequestNotFound."""
    if asked.again_of is None or asked.lines.strip():
        return asked
    info = readable_request(asked.again_of, actor)
    return replace(
        asked,
        lines="\n".join(f"{item.subject.qualified} {item.version}" for item in info.items if item.version),
        source=info.source or asked.source,
        target=info.target,
        reason=info.reason,
        with_config=info.with_config,
        labels=", ".join(info.labels),
    )


def request_form(request: HttpRequest, problem: SchemadeskError | None = None) -> PromotionForm:
    """The form, filled from the address or from what was sent; with the plan, once something is asked for."""
    actor, order = page_actor(request), selectors.list_environments()
    given = request.POST if request.method == "POST" else request.GET
    asked = _filled(asked_of(given, order), actor)
    plan, shown = None, problem
    try:
        clean_labels(written_labels(asked.labels))
        plan = previewed(asked, actor) if asked.lines.strip() else None
    except SchemadeskError as error:
        shown = problem or error
    return PromotionForm(
        frame=make_frame(
            request,
            title=gettext("Ask for a promotion"),
            section=Section.PROMOTIONS,
            crumbs=(Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),),
        ),
        fields=(*_fields(asked, order, extent_of(actor, "schema.read")), _labels(asked, shown)),
        submit=_send(gettext("Ask for review"), actor),
        draft=_send(gettext("Keep as a draft"), actor),
        preview_url=reverse("ui:promotion_request"),
        with_config=asked.with_config,
        again_of=asked.again_of,
        again=again_link(asked.again_of),
        problem=Problem(what=shown.placed) if shown and not _is_of_labels(shown) else None,
        **(_preview(plan, asked, given) if plan else {}),
    )


def _is_of_labels(problem: SchemadeskError) -> bool:
    return problem.details.get("field") == "labels"


def _labels(asked: Asked, problem: SchemadeskError | None) -> Field:
    """The labels, which say themselves what is wrong with them."""
    return label_field(asked.labels, *([problem.message] if problem and _is_of_labels(problem) else []))


def previewed(asked: Asked, actor: Actor) -> Plan:
    """The plan of what is asked for. Raises what the preview raises."""
    return services.preview_promotion(
        source=asked.source, target=asked.target, items=asked.items(), by=actor, with_config=asked.with_config
    )


def _send(label: str, actor: Actor) -> Action:
    reason = "" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request")
    url = reverse("ui:promotion_request")
    return Action(label=label, url=url, method="post", allowed=not reason, reason=reason, tone="primary")


def _fields(asked: Asked, order: Sequence[str], readable: Extent) -> tuple[Field, ...]:
    def places(names: Sequence[str], chosen: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=name, label=name, selected=name == chosen) for name in names if readable.has(name))

    rows = max(3, min(12, asked.lines.count("\n") + 2))
    return (
        Field(
            name="items", label=gettext("What"), kind="textarea", rows=rows, value=asked.lines, required=True, code=True,
            placeholder="orders-value 3", help=_ITEMS_HELP,
        ),
        Field(name="source", label=gettext("From"), kind="select", choices=places(order[:-1], asked.source), required=True),
        Field(name="target", label=gettext("To"), kind="select", choices=places(order[1:], asked.target), required=True),
        Field(name="reason", label=gettext("Why"), kind="textarea", rows=3, value=asked.reason, help=gettext("What the reviewer should know.")),
    )  # fmt: skip


def _preview(plan: Plan, asked: Asked, given: QueryDict) -> dict[str, Any]:
    stored = plan.to_dict()
    verdict = Verdict.BREAKS if plan.failing else worst(stored["checks"])
    return {
        "headline": _headline(plan, asked.target),
        "sentence": _sentence(plan, asked.target),
        "verdict": verdict,
        "checks": check_rows(stored["checks"]),
        "plan": plan_steps(plan.steps, asked.source, asked.target),
        "ids": id_plan(plan.steps, asked.source, asked.target),
        "plan_hash": plan.hash,
        "export_url": f"{reverse('ui:promotion_plan')}?{_query(asked)}",
    }


def _headline(plan: Plan, target: str) -> str:
    if not plan.has_work:
        return gettext("%(target)s has all of this already") % {"target": target}
    if plan.failing:
        overridable = all(check.overridable for check in plan.failing)
        return (
            gettext("It could be asked for; it fails as it is, and could be overridden")
            if overridable
            else gettext("It could be asked for; it fails as it is")
        )
    return gettext("%(target)s would take it") % {"target": target}


def _sentence(plan: Plan, target: str) -> str:
    if plan.failing and plan.has_work:
        return plan.failing[0].sentence
    return counted(
        sum(step.adds for step in plan.steps),
        "%(n)s version would be written to %(target)s.",
        "%(n)s versions would be written to %(target)s.",
        target=target,
    )


def _query(asked: Asked) -> str:
    query = QueryDict(mutable=True)
    query.update({"items": asked.lines, "source": asked.source, "target": asked.target})
    if asked.with_config:
        query["with_config"] = "1"
    return query.urlencode()


def plan_file(request: HttpRequest) -> str:
    """The plan that the address asks for, as a JSON text that names its hash. Raises what the preview raises."""
    asked = asked_of(request.GET, selectors.list_environments())
    plan = previewed(asked, page_actor(request))
    found = {
        "source": asked.source,
        "target": asked.target,
        "items": [{"subject": name.qualified, "version": version} for name, version in asked.items()],
        "plan_hash": plan.hash,
        "can_run": plan.can_run,
        **plan.to_dict(),
    }
    return json.dumps(found, indent=2, ensure_ascii=False, default=str)
