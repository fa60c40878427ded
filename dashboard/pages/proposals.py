"""Proposed schemas: the reader's drafts, and the page on which one is written, checked and submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.against_latest import against_latest
from dashboard.pages.finding_row import finding_origin
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.lint import lint_groups
from dashboard.pages.promotions import request_row
from dashboard.pages.promotions_plan import check_rows, worst
from dashboard.pages.proposals_form import Form
from dashboard.pages.report_result import level_results
from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Choice, Crumb, Field, Link, Problem, Section
from dashboard.presenters.looks import Verdict, format_name
from dashboard.presenters.proposals import DraftList, DraftRow, ProposalPage, ProposalResult
from dashboard.presenters.report import LevelResult, LintGroup, ReferenceField, SyntaxProblem, snippet
from dashboard.texts import counted
from registry.access.roles import Actor, may_somewhere, refusal
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats import FORMATS
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import Plan
from registry.promotions.selectors import DraftInfo
from registry.promotions.selectors.readable import may_see
from registry.subjects import selectors as subjects
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry

_EMPTY_ROWS: Final = 2
_RIGHT: Final = "promotion.request"


def draft_list(request: HttpRequest) -> DraftList:
    """The reader's drafts, and proposals that are open."""
    actor, order = page_actor(request), selectors.list_environments()
    reason = _refusal(actor)
    found = selectors.list_requests(state="open", viewer=actor.user_id)
    proposed = [info for info in found if info.kind == PromotionRequest.PROPOSE and may_see(actor, info)]
    return DraftList(
        frame=make_frame(request, title=gettext("Proposals"), section=Section.PROMOTIONS, crumbs=_crumbs()[:1]),
        rows=tuple(draft_row(info, order) for info in (selectors.list_drafts(actor.user_id) if actor.user_id else [])),
        open=tuple(request_row(info, order) for info in proposed),
        propose=Action(
            label=gettext("Propose a schema"),
            url=reverse("ui:propose"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
    )


def _refusal(actor: Actor) -> str:
    return "" if may_somewhere(actor, _RIGHT) else refusal(actor, _RIGHT)


def _crumbs() -> tuple[Crumb, ...]:
    return (
        Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),
        Crumb(label=gettext("Proposals"), url=reverse("ui:proposals")),
    )


def draft_row(info: DraftInfo, order: list[str]) -> DraftRow:
    """A draft of the reader in a list."""
    return DraftRow(
        url=reverse("ui:draft", args=[info.id]),
        subject=info.subject.qualified,
        environment=environment_of(info.registry, order),
        format=format_name(info.schema_type),
        origin=info.origin,
        changed_at=info.changed_at,
        delete=_delete(info.id, gettext("Throw away")),
    )


def _delete(draft_id: int, label: str) -> Action:
    return Action(label=label, url=reverse("ui:draft_delete", args=[draft_id]), method="post", icon="x")


def proposal_page(
    request: HttpRequest, form: Form, *, check: bool = False, error: SchemadeskError | None = None
) -> ProposalPage:
    """The editor; with `check` what the plan says of its text. `error` is what saving or submitting met."""
    actor, order = page_actor(request), selectors.list_environments()
    plan: Plan | None = None
    told: _Told | None = None
    if check and error is None:
        try:
            plan = _previewed(form, actor)
            told = _told(form, actor)
        except SchemadeskError as found:
            error = found
    reason = _refusal(actor)
    return ProposalPage(
        frame=make_frame(request, title=gettext("Propose a schema"), section=Section.PROMOTIONS, crumbs=_crumbs()),
        **_fields(form, order),
        references=tuple(
            ReferenceField(number=number, name=name, subject=subject, version=version)
            for number, (name, subject, version) in enumerate([*form.rows, *[("", "", "")] * _EMPTY_ROWS], start=1)
        ),
        action_url=reverse("ui:propose"),
        check=Action(label=gettext("Check"), url=reverse("ui:propose")),
        save=Action(label=gettext("Save as a draft"), url=reverse("ui:propose"), allowed=not reason, reason=reason),
        submit=Action(label=gettext("Submit for review"), url=reverse("ui:propose"), allowed=not reason, reason=reason),
        draft=form.draft,
        seen=form.seen or "",
        origin=form.origin,
        finding=finding_origin(form.finding, actor),
        finding_number=form.finding,
        delete=_delete(form.draft, gettext("Throw the draft away")) if form.draft else None,
        equal=_equal(plan, form) if plan else None,
        syntax=_syntax(form.text, error) if isinstance(error, InvalidSchema) else None,
        result=_result(plan, form) if plan else None,
        problem=Problem(what=error.message) if error and not isinstance(error, InvalidSchema) else None,
        starts=_starts(form, order),
        levels=told.levels if told else (),
        lint=told.lint if told else (),
        view="split" if request.POST.get("view") == "split" else "unified",
        comparison=told.comparison if told else None,
    )


def _previewed(form: Form, actor: Actor) -> Plan:
    return services.preview_proposal(
        target=form.registry,
        subject=parse_subject(form.subject),
        text=form.text,
        by=actor,
        schema_type=form.schema_type,
        references=form.references(),
        finding=form.finding,
    )


@dataclass(frozen=True)
class _Told:
    """What is told beside the plan: all seven levels, advice, and the changes against the newest version."""

    levels: tuple[LevelResult, ...]
    lint: tuple[LintGroup, ...]
    comparison: Comparison | None


def _told(form: Form, actor: Actor) -> _Told:
    registry, name = get_registry(form.registry), parse_subject(form.subject)
    found = subjects.check_text(
        registry, name, text=form.text, schema_type=form.schema_type, references=form.references()
    )
    comparison = against_latest(
        registry,
        name,
        by=actor,
        text=form.text,
        schema_type=form.schema_type,
        references=form.references(),
        level=found.config.level,
    )
    return _Told(level_results(found.levels, found.config.level), lint_groups(found.lint), comparison)


def _fields(form: Form, order: Sequence[str]) -> dict[str, Any]:
    def chosen(values: Sequence[tuple[str, str]], value: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=each, label=label, selected=each == value) for each, label in values)

    return {
        "registry": Field(
            name="registry",
            label=gettext("For"),
            kind="select",
            choices=chosen([(name, name) for name in order], form.registry),
            required=True,
        ),
        "subject": Field(name="subject", label=gettext("Subject"), value=form.subject, code=True, required=True),
        "text": Field(
            name="schema", label=gettext("Text"), value=form.text, kind="textarea", rows=18, code=True, required=True
        ),
        "reason": Field(
            name="reason",
            label=gettext("Why"),
            value=form.reason,
            kind="textarea",
            rows=3,
            help=gettext("What the reviewer should know."),
        ),
        "format_choices": chosen([(kind, format_name(kind)) for kind in sorted(FORMATS)], form.schema_type),
    }


def _equal(plan: Plan, form: Form) -> Link | None:
    """The version that has the text's meaning already."""
    if plan.has_work:
        return None
    number = plan.steps[-1].target_version
    return Link(
        label=gettext("version %(number)s of %(registry)s") % {"number": number, "registry": form.registry},
        url=subject_url(form.registry, form.subject, version=number),
    )


def _result(plan: Plan, form: Form) -> ProposalResult:
    stored = plan.to_dict()["checks"]
    checks = [check for check in stored if plan.has_work or check["code"] != "something-to-do"]
    if not plan.has_work:
        verdict, headline = Verdict.OK, gettext("%(registry)s has it already") % {"registry": form.registry}
    elif plan.failing:
        verdict = Verdict.BREAKS
        headline = (
            gettext("It would break what %(registry)s has") % {"registry": form.registry}
            if plan.breaking
            else gettext("Checks fail")
        )
    else:
        verdict, headline = worst(checks), gettext("%(registry)s would take it") % {"registry": form.registry}
    return ProposalResult(
        verdict=verdict,
        headline=headline,
        sentence=plan.failing[0].sentence
        if plan.failing and plan.has_work
        else counted(
            sum(step.adds for step in plan.steps),
            "%(n)s version would be registered.",
            "%(n)s versions would be registered.",
        ),
        checks=check_rows(checks),
        report_url=subject_url(form.registry, form.subject, "report"),
    )


def _syntax(text: str, error: InvalidSchema) -> SyntaxProblem:
    return SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )


def _starts(form: Form, order: Sequence[str]) -> tuple[Link, ...]:
    """Addresses that open the editor with the newest version of each environment."""
    if not form.subject:
        return ()
    url = reverse("ui:propose")
    return tuple(
        Link(
            label=gettext("the newest version of %(place)s") % {"place": place},
            url=f"{url}?{urlencode({'registry': form.registry, 'subject': form.subject, 'from': f'{place}:latest'})}",
        )
        for place in order
    )
