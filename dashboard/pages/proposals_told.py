"""What a check of a proposed text comes to: pressed for, or asked again and again while somebody writes."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.against_latest import against_latest
from dashboard.pages.lint import lint_groups
from dashboard.pages.promotions_plan import check_rows, worst
from dashboard.pages.proofs import edit_view
from dashboard.pages.proposals_form import Form
from dashboard.pages.report_result import level_results
from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Link, Problem
from dashboard.presenters.looks import Verdict, format_name
from dashboard.presenters.proof import EditView
from dashboard.presenters.proposals import ChangeLine, Fix, LivePart, ProposalResult, ProposalTold
from dashboard.presenters.report import SyntaxProblem, snippet
from dashboard.texts import counted
from registry.access.roles import Actor
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats.assessment import Assessment
from registry.promotions import services
from registry.promotions.plan import Plan
from registry.subjects import selectors as subjects
from registry.subjects.names import parse_subject
from registry.subjects.selectors.places import get_registry

#: changes that stand beside the editor; all of them stand below it
SHOWN_CHANGES: Final = 6
#: likely renames whose edit is offered
SHOWN_RENAMES: Final = 3
_WORST_FIRST: Final = (Verdict.BREAKS, Verdict.CARE, Verdict.UNKNOWN, Verdict.OK)


def live_part(request: HttpRequest, form: Form, actor: Actor) -> LivePart:
    """What stands beside and below the editor while somebody writes; nothing is told of a text or a subject that is empty."""
    is_there = bool(form.text.strip() and form.subject)
    return LivePart(
        told=told_of(form, actor, is_whole=draws_all(request)) if is_there else None,
        check=check_action(),
        action_url=editor_url(),
        view=view_of(request),
        is_whole=draws_all(request),
    )


def editor_url() -> str:
    """Where the editor's form is sent."""
    return reverse("ui:propose")


def check_action() -> Action:
    """What asks for a check."""
    return Action(label=gettext("Check"), url=editor_url())


def view_of(request: HttpRequest) -> str:
    """How the two texts are drawn: in one column or side by side."""
    return "split" if request.POST.get("view") == "split" else "unified"


def draws_all(request: HttpRequest) -> bool:
    """Whether all changes are drawn, and not the worst alone."""
    return request.POST.get("all") == "1"


def told_of(form: Form, actor: Actor, *, is_whole: bool = False) -> ProposalTold:
    """Whether the text parses, the plan's verdict and checks, all seven levels, advice, and the changes against the newest."""
    try:
        plan = services.preview_proposal(
            target=form.registry,
            subject=parse_subject(form.subject),
            text=form.text,
            by=actor,
            schema_type=form.schema_type,
            references=form.references(),
            finding=form.finding,
        )
        return _told(form, plan, actor, is_whole=is_whole)
    except InvalidSchema as error:
        return told_of_syntax(form.text, error)
    except SchemadeskError as error:
        return ProposalTold(said=error.message, problem=Problem(what=error.message))


def told_of_syntax(text: str, error: InvalidSchema) -> ProposalTold:
    """What is told of a text that doesn't parse."""
    syntax = SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )
    return ProposalTold(said=f"{syntax.title}. {error.message}", syntax=syntax)


def _told(form: Form, plan: Plan, actor: Actor, *, is_whole: bool) -> ProposalTold:
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
        is_whole=is_whole,
    )
    result, equal = _result(plan, form), _equal(plan, form)
    tally = comparison.tally if comparison else ""
    return ProposalTold(
        said=f"{result.headline}. {result.sentence} {tally}".strip(),
        parsed=gettext("The text parses as %(format)s.") % {"format": format_name(form.schema_type)},
        equal=equal,
        result=result,
        levels=level_results(found.levels, found.config.level),
        lint=lint_groups(found.lint),
        comparison=comparison,
        changes=_changes(comparison),
        fixes=_fixes(form, found.assessment) if found.assessment and plan.has_work else (),
    )


def _fixes(form: Form, found: Assessment) -> tuple[Fix, ...]:
    """Edits that the report suggests under the level that counts: of likely renames first, then all that makes it pass."""
    renames = sorted((item for item in found.renames if item.edit), key=lambda item: -item.score)[:SHOWN_RENAMES]
    fixes = [
        Fix(
            titles=(item.edit.title,),
            edit=_edit(f"fix-rename-{number}", item.edit.title, form, item.edit.text),
            passes=None,
        )
        for number, item in enumerate(renames, start=1)
        if item.edit
    ]
    if found.patch and found.patch.text != form.text:
        title = "; ".join(found.patch.titles)
        edit = _edit("fix-all", title, form, found.patch.text)
        fixes.append(Fix(titles=found.patch.titles, edit=edit, passes=found.patch.passes))
    return tuple(fixes)


def _edit(anchor: str, title: str, form: Form, text: str) -> EditView:
    return edit_view(anchor, title, form.text, text)


def _changes(comparison: Comparison | None) -> tuple[ChangeLine, ...]:
    """The first changes in a line each, the worst first, as they stand below."""
    cards = [card for group in comparison.groups for card in group.cards] if comparison else []
    worst_first = sorted(cards, key=lambda card: _WORST_FIRST.index(card.verdict))
    return tuple(
        ChangeLine(verdict=card.verdict, path=card.path, sentence=card.sentence, anchor=card.anchor)
        for card in worst_first[:SHOWN_CHANGES]
    )


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
