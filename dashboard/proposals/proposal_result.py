"""The result of checking a proposed schema: on demand, or repeatedly while somebody writes."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.comparison import VersionComparison
from dashboard.compare.proof import EditView, edit_view
from dashboard.compare.proposed_schema import against_latest
from dashboard.compatibility.presenters import SyntaxProblem, snippet
from dashboard.compatibility.result import level_results, lint_groups
from dashboard.components.badges import Verdict, format_name, missing_words
from dashboard.components.links import subject_url
from dashboard.components.translation import counted
from dashboard.components.widgets import Action, Link, Problem
from dashboard.promotions.plan import worst
from dashboard.proposals.forms import ChangeLine, Fix, Form, LivePart, ProposalReport, ProposalResult
from registry.access.roles import Actor
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats.assessment import Assessment
from registry.promotions import services
from registry.promotions.plan.types import Plan
from registry.subjects import selectors as subjects
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import parse_subject

#: changes that are listed beside the editor; all of them are below it
SHOWN_CHANGES: Final = 6
#: likely renames whose edit is offered
SHOWN_RENAMES: Final = 3
_WORST_FIRST: Final = (Verdict.BREAKS, Verdict.CARE, Verdict.UNKNOWN, Verdict.OK)


def live_part(request: HttpRequest, form: Form, actor: Actor) -> LivePart:
    """The report beside and below the editor while somebody writes; none for an empty text or subject."""
    is_there = bool(form.text.strip() and form.subject)
    return LivePart(
        report=check_proposal(form, actor, is_whole=draws_all(request)) if is_there else None,
        check=check_action(),
        action_url=editor_url(),
        view=view_of(request),
        is_whole=draws_all(request),
    )


def editor_url() -> str:
    """The address that the editor's form is sent to."""
    return reverse("ui:propose")


def check_action() -> Action:
    """The button that checks the text."""
    return Action(label=gettext("Check"), url=editor_url())


def view_of(request: HttpRequest) -> str:
    """How the two texts are drawn: in one column or side by side."""
    return "split" if request.POST.get("view") == "split" else "unified"


def draws_all(request: HttpRequest) -> bool:
    """Whether all changes are drawn instead of only the worst."""
    return request.POST.get("all") == "1"


def check_proposal(form: Form, actor: Actor, *, is_whole: bool = False) -> ProposalReport:
    """Whether the text parses, the plan's verdict and checks, all seven levels, lint, and the changes from the newest version."""
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
        return _checked(form, plan, actor, is_whole=is_whole)
    except InvalidSchema as error:
        return syntax_report(form.text, error)
    except SchemadeskError as error:
        return ProposalReport(summary=error.message, problem=Problem(what=error.message))


def syntax_report(text: str, error: InvalidSchema) -> ProposalReport:
    """The report for a text that doesn't parse."""
    syntax = SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )
    return ProposalReport(summary=f"{syntax.title}. {error.message}", syntax=syntax)


def _checked(form: Form, plan: Plan, actor: Actor, *, is_whole: bool) -> ProposalReport:
    registry, name = get_registry(form.registry), parse_subject(form.subject)
    report = subjects.check_text(
        registry, name, text=form.text, schema_type=form.schema_type, references=form.references()
    )
    comparison = against_latest(
        registry,
        name,
        by=actor,
        text=form.text,
        schema_type=form.schema_type,
        references=form.references(),
        level=report.config.level,
        is_whole=is_whole,
    )
    result, equal = _result(plan, form), _equal(plan, form)
    tally = comparison.tally if comparison else ""
    return ProposalReport(
        summary=f"{result.headline}. {result.sentence} {tally}".strip(),
        parsed=gettext("The text parses as %(format)s.") % {"format": format_name(form.schema_type)},
        equal=equal,
        result=result,
        levels=level_results(report.levels, report.config.level),
        lint=lint_groups(report.lint),
        no_lint=missing_words(form.schema_type, "lint"),
        comparison=comparison,
        changes=_changes(comparison),
        fixes=_fixes(form, report.assessment) if report.assessment and plan.has_work else (),
    )


def _fixes(form: Form, assessment: Assessment) -> tuple[Fix, ...]:
    """Edits that the assessment suggests under the effective level: likely renames first, then the whole patch."""
    renames = sorted((item for item in assessment.renames if item.edit), key=lambda item: -item.score)[:SHOWN_RENAMES]
    fixes = [
        Fix(
            titles=(item.edit.title,),
            edit=_edit(f"fix-rename-{number}", item.edit.title, form, item.edit.text),
            passes=item.passes,
        )
        for number, item in enumerate(renames, start=1)
        if item.edit
    ]
    if assessment.patch and assessment.patch.text != form.text:
        title = "; ".join(assessment.patch.titles)
        edit = _edit("fix-all", title, form, assessment.patch.text)
        fixes.append(Fix(titles=assessment.patch.titles, edit=edit, passes=assessment.patch.passes))
    return tuple(fixes)


def _edit(anchor: str, title: str, form: Form, text: str) -> EditView:
    return edit_view(anchor, title, form.text, text)


def _changes(comparison: VersionComparison | None) -> tuple[ChangeLine, ...]:
    """The first changes, one line each, worst first."""
    cards = [card for group in comparison.groups for card in group.cards] if comparison else []
    worst_first = sorted(cards, key=lambda card: _WORST_FIRST.index(card.verdict))
    return tuple(
        ChangeLine(verdict=card.verdict, path=card.path, sentence=card.sentence, anchor=card.anchor)
        for card in worst_first[:SHOWN_CHANGES]
    )


def _equal(plan: Plan, form: Form) -> Link | None:
    """The link to the version that already has the text's meaning."""
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
        verdict, headline = Verdict.OK, gettext("%(registry)s already has it") % {"registry": form.registry}
    elif plan.failing:
        verdict = Verdict.BREAKS
        headline = (
            gettext("Breaks compatibility in %(registry)s") % {"registry": form.registry}
            if plan.breaking
            else gettext("Checks fail")
        )
    else:
        verdict, headline = worst(checks), gettext("Can be registered in %(registry)s") % {"registry": form.registry}
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
        checks=tuple(checks),
        report_url=subject_url(form.registry, form.subject, "report"),
    )
