"""Proposed schemas: the reader's drafts, the editor, and the report of a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.compare.comparison import ChangeCard, VersionComparison
from dashboard.compare.proof import EditView, edit_view
from dashboard.compare.proposed_schema import against_latest
from dashboard.compatibility.presenters import LevelResult, LintGroup, SyntaxProblem
from dashboard.compatibility.result import level_results, lint_groups
from dashboard.components.badges import Verdict, missing_words
from dashboard.components.forms import fill_choices
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.translation import counted
from dashboard.components.widgets import Crumb, Frame, Problem, Section
from dashboard.findings.finding_list import finding_origin
from dashboard.promotions.plan import RequestRow, worst
from dashboard.promotions.presenters import FindingOrigin
from dashboard.promotions.request_list import request_row
from dashboard.proposals.forms import ProposalForm, ProposeForm, draft_values, first_values
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.errors import DraftChanged, NotSignedIn, SchemadeskError
from registry.formats.assessment import Assessment
from registry.formats.suggested_edits import PatchStep
from registry.promotions import selectors, services
from registry.promotions.models import PromotionRequest
from registry.promotions.plan.types import Plan
from registry.promotions.requests.drafts import require_author
from registry.promotions.requests.state_machine import require_any_permission
from registry.promotions.selectors import DraftInfo
from registry.subjects import selectors as subjects
from registry.subjects.versions.lookup import get_registry

#: changes listed beside the editor; all of them are below it
SHOWN_CHANGES: Final = 6
#: number of likely renames to offer as edits
SHOWN_RENAMES: Final = 3
_WORST_FIRST: Final = (Verdict.BREAKS, Verdict.CARE, Verdict.UNKNOWN, Verdict.OK)
_RIGHT: Final = "promotion.request"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftList:
    """The reader's drafts and open proposals; `refused` says why the reader may not propose."""

    frame: Frame
    drafts: tuple[DraftInfo, ...]
    open: tuple[RequestRow, ...]
    refused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Edits that fix a refused text, completely or in part; the editor gets the whole text of `edit`.

    `passes` says whether the edited text would pass the level; None if unknown.
    """

    steps: tuple[PatchStep, ...]
    edit: EditView
    passes: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalReport:
    """The report of a check.

    `syntax` or `problem` says why there is nothing else. `equal` is a version with the same meaning, so that nothing
    would be registered. `levels` are all seven. `comparison` is with the newest version, None if there is none, and
    `changes` are its first changes. `fixes` are edits that the editor can apply.
    """

    registry: str = ""
    subject: str = ""
    schema_type: str = ""
    syntax: SyntaxProblem | None = None
    problem: Problem | None = None
    equal: int | None = None
    verdict: Verdict = Verdict.UNKNOWN
    headline: str = ""
    sentence: str = ""
    checks: tuple[Mapping[str, Any], ...] = ()
    levels: tuple[LevelResult, ...] = ()
    lint: tuple[LintGroup, ...] = ()
    no_lint: str = ""
    comparison: VersionComparison | None = None
    changes: tuple[ChangeCard, ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    """The editor; `problem` is the error of saving or submitting, and `refused` says why the reader may do neither.

    `finding` is the finding that it answers, as far as the reader may see it, `again_of` the resubmitted request,
    `draft_id` the draft. Each environment in `starts` has a newest version to start from. `view` and `is_whole` are the
    display of the report's comparison.
    """

    frame: Frame
    form: ProposalForm
    refused: str = ""
    draft_id: int | None = None
    again_of: int | None = None
    finding: FindingOrigin | None = None
    problem: Problem | None = None
    starts: tuple[str, ...] = ()
    report: ProposalReport | None = None
    view: str = "unified"
    is_whole: bool = False


def draft_list(request: HttpRequest) -> DraftList:
    """Return the page of the reader's drafts and open proposals."""
    actor, order = page_actor(request), selectors.list_environments()
    requests = selectors.list_requests(state="open", by=actor)
    return DraftList(
        frame=make_frame(request, title=gettext("Proposals"), section=Section.PROMOTIONS, crumbs=_crumbs()[:1]),
        drafts=tuple(selectors.list_drafts(actor.user_id) if actor.user_id else ()),
        open=tuple(request_row(info, order) for info in requests if info.kind == PromotionRequest.PROPOSE),
        refused=_refusal(actor),
    )


def _refusal(actor: Actor) -> str:
    return "" if may_somewhere(actor, _RIGHT) else refusal(actor, _RIGHT)


def _crumbs() -> tuple[Crumb, ...]:
    return (
        Crumb(label=gettext("Promotions"), url=reverse("ui:promotions")),
        Crumb(label=gettext("Proposals"), url=reverse("ui:proposals")),
    )


def proposal_page(request: HttpRequest, form: ProposalForm, *, check: bool = False) -> ProposalPage:
    """Return the editor with its form's errors; with `check`, also the report of its text."""
    actor, order = page_actor(request), selectors.list_environments()
    readable = extent_of(actor, "schema.read")
    names = [name for name in order if readable.has(name)]
    report = check_proposal(request, form, actor, order) if check else None
    if not check and form.syntax:
        report = ProposalReport(syntax=form.syntax)
    fill_choices([form], registry=names)
    return ProposalPage(
        frame=make_frame(
            request, title=gettext("Propose a schema"), section=Section.PROMOTIONS, crumbs=_crumbs(), order=order
        ),
        form=form,
        refused=_refusal(actor),
        draft_id=form.number("draft_id"),
        again_of=form.number("again_of"),
        finding=finding_origin(form.number("finding"), actor),
        problem=None if check else form.problem,
        starts=tuple(names) if form["subject"].value() else (),
        report=report,
        **_drawing(request),
    )


def _drawing(request: HttpRequest) -> dict[str, Any]:
    """Return whether texts are shown side by side, and whether all changes are shown instead of only the worst."""
    view = "split" if request.POST.get("view") == "split" else "unified"
    return {"view": view, "is_whole": request.POST.get("all") == "1"}


def check_proposal(
    request: HttpRequest, form: ProposalForm, actor: Actor, order: list[str] | None = None
) -> ProposalReport:
    """Check the syntax, the plan with its checks, all seven levels, lint, and changes since the newest version.

    `order` are the environments' names, if already read.
    """
    report = None
    if form.run(actor):
        try:
            report = _report(form, actor, order, is_whole=_drawing(request)["is_whole"])
        except SchemadeskError as error:
            form.add_service_error(error)
    if report:
        return report
    if form.syntax:
        return ProposalReport(syntax=form.syntax)
    return ProposalReport(problem=form.problem or Problem(what=""))


def _report(form: ProposalForm, actor: Actor, order: list[str] | None, *, is_whole: bool) -> ProposalReport:
    registry, name = get_registry(form.cleaned_data["registry"]), form.cleaned_data["subject"]
    plan: Plan = form.result
    report = subjects.check_text(registry, name, **form.schema)
    level = report.config.level
    drawn: dict[str, Any] = {"level": level, "is_whole": is_whole, "newest": report.newest, "order": order}
    comparison = against_latest(registry, name, by=actor, **form.schema, **drawn)
    cards = [card for group in comparison.groups for card in group.cards] if comparison else []
    result = _result(plan, registry.name)
    assessment = report.assessment if plan.has_work else None
    return ProposalReport(
        registry=registry.name,
        subject=name.qualified,
        schema_type=form.cleaned_data["schema_type"],
        **result,
        equal=None if plan.has_work else plan.steps[-1].target_version,
        levels=level_results(report.levels, level),
        lint=lint_groups(report.lint),
        no_lint=missing_words(form.cleaned_data["schema_type"], "lint"),
        comparison=comparison,
        changes=tuple(sorted(cards, key=lambda card: _WORST_FIRST.index(card.verdict))[:SHOWN_CHANGES]),
        fixes=tuple(_fixes(form.cleaned_data["text"], assessment)) if assessment else (),
    )


def _result(plan: Plan, registry: str) -> dict[str, Any]:
    checks = [check for check in plan.to_dict()["checks"] if plan.has_work or check["code"] != "something-to-do"]
    place = {"registry": registry}
    if not plan.has_work:
        verdict, headline = Verdict.OK, gettext("%(registry)s already has it") % place
    elif plan.failing:
        broken = gettext("Breaks compatibility in %(registry)s") % place
        verdict, headline = Verdict.BREAKS, broken if plan.breaking else gettext("Checks fail")
    else:
        verdict = worst(checks)
        careful, plain = (
            gettext("Can be registered in %(registry)s with care"),
            gettext("Can be registered in %(registry)s"),
        )
        headline = (careful if verdict is Verdict.CARE else plain) % place
    versions = sum(step.adds for step in plan.steps)
    added = counted(versions, "%(n)s version would be registered.", "%(n)s versions would be registered.")
    sentence = plan.failing[0].sentence if plan.failing and plan.has_work else added
    return {"verdict": verdict, "headline": headline, "sentence": sentence, "checks": tuple(checks)}


def _fixes(text: str, assessment: Assessment) -> Iterator[Fix]:
    """Yield the assessment's edits under the effective level: likely renames first, then the whole patch."""
    renames = sorted((item for item in assessment.renames if item.edit), key=lambda item: -item.score)
    for number, item in enumerate(renames[:SHOWN_RENAMES], start=1):
        if item.edit:
            edit = edit_view(f"fix-rename-{number}", item.edit.title, text, item.edit.text)
            yield Fix(steps=(PatchStep(item.edit.title, item.edit.effect),), edit=edit, passes=item.passes)
    patch = assessment.patch
    if patch and patch.text != text:
        edit = edit_view("fix-all", "; ".join(patch.titles), text, patch.text)
        yield Fix(steps=patch.steps, edit=edit, passes=patch.passes)


@require_safe
def drafts(request: HttpRequest) -> HttpResponse:
    """Show the reader's drafts and open proposals."""
    require_any_permission(page_actor(request))
    return render(request, "proposals/list.html", {"page": draft_list(request)})


@require_http_methods(["GET", "HEAD", "POST"])
def propose(request: HttpRequest) -> HttpResponse:
    """Show the editor; on POST, check the text, save it as a draft, or request its review.

    The editor's script posts `autosave`.
    """
    actor = page_actor(request)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to propose a schema."))
    if request.method != "POST":
        return _editor(request, ProposalForm(initial=first_values(request, actor)))
    form, do = ProposalForm.sent(request), request.POST.get("do", "check")
    if do == "autosave":
        return _autosaved(form, actor)
    if do == "check" or not form.run(actor):
        return _editor(request, form, check=do == "check")
    messages.success(request, form.message())
    return redirect("ui:promotion" if isinstance(form, ProposeForm) else "ui:draft", form.result)


def _editor(request: HttpRequest, form: ProposalForm, *, check: bool = False) -> HttpResponse:
    page = proposal_page(request, form, check=check)
    return render(request, "proposals/propose.html", {"page": page}, status=422 if form.errors else 200)


def _autosaved(form: ProposalForm, actor: Actor) -> JsonResponse:
    """Save for the editor's script while somebody types; `stop` means that saving would overwrite another text."""
    if not form.run(actor):
        message = gettext("Not saved: %(reason)s") % {"reason": form.problem.what if form.problem else ""}
        stop = isinstance(form.error, DraftChanged)
        return JsonResponse({"said": message, "stop": stop}, status=409 if stop else 422)
    saved = selectors.get_draft(form.result, user_id=actor.user_id or 0)
    time = f"{localtime(saved.changed_at):%H:%M}"
    return JsonResponse(
        {
            "draft_id": form.result,
            "state_read": saved.state,
            "url": reverse("ui:draft", args=[form.result]),
            "said": gettext("Saved %(time)s") % {"time": time},
        }
    )


@require_safe
def draft(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Show one of the reader's drafts in the editor; other people's drafts are not found."""
    actor = page_actor(request)
    require_author(actor)
    if actor.user_id is None:
        raise NotSignedIn(gettext("Sign in to see your drafts."))
    info = selectors.get_draft(draft_id, user_id=actor.user_id)
    return _editor(request, ProposalForm(initial=draft_values(info)))


@require_POST
def draft_delete(request: HttpRequest, draft_id: int) -> HttpResponse:
    """Delete a draft."""
    services.delete_draft(draft_id=draft_id, by=page_actor(request))
    messages.success(request, gettext("Draft deleted."))
    return redirect("ui:proposals")
