"""The compatibility report of a pasted schema: the page, and files for people and for CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.business_terms import facts_of, findings_in_business_words, in_business_words
from dashboard.compare.comparison import VersionComparison
from dashboard.compare.proposed_schema import against_latest, by_finding, data_evidence
from dashboard.compatibility.forms import ReportForm, link_of, linked_values, newest_values
from dashboard.compatibility.presenters import DataEvidence, ReportResult
from dashboard.compatibility.result import present_proposal
from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import subject_url
from dashboard.components.time_travel import PARAMETER
from dashboard.components.widgets import Action, Frame, Problem
from dashboard.subjects.header import propose_action
from dashboard.subjects.page import level_order
from registry.access.roles import Actor, may, refusal
from registry.errors import SchemadeskError
from registry.formats.assessment import Assessment
from registry.formats.ci_findings import assessment_junit, assessment_sarif
from registry.formats.compatibility import LEVELS
from registry.formats.rendering import assessment_markdown
from registry.promotions.selectors import list_environments
from registry.promotions.services import save_draft
from registry.subjects import selectors
from registry.subjects.policy.effective_policy import EffectiveConfig
from registry.subjects.policy.registries import mirror_of
from registry.subjects.remote.remote_writer import RemoteVerdict, ask_remote
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file format: how to render a report for a registry and a subject, the content type and the extension."""

    render: Callable[[Assessment, str, str], str]
    content_type: str
    ending: str


def _markdown(assessment: Assessment, registry: str, subject: str) -> str:
    title = gettext("Compatibility of %(qualified)s in %(registry)s") % {"qualified": subject, "registry": registry}
    return assessment_markdown(assessment, title=title)


FILES: Final[Mapping[str, ReportFile]] = {
    "markdown": ReportFile(_markdown, "text/markdown; charset=utf-8", "md"),
    "json": ReportFile(
        lambda assessment, registry, subject: json.dumps(assessment.to_dict(), indent=2), "application/json", "json"
    ),
    "sarif": ReportFile(
        lambda assessment, registry, subject: assessment_sarif(assessment, subject=subject),
        "application/sarif+json",
        "sarif",
    ),
    "junit": ReportFile(
        lambda assessment, registry, subject: assessment_junit(assessment, subject=subject), "application/xml", "xml"
    ),
}


#: changes since the newest version on a report's page, unless all are requested
MAX_CARDS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAnswer:
    """The answer of the server behind a mirror; `verdict` is None if not asked, `agrees` if it gave no verdict."""

    where: str
    verdict: RemoteVerdict | None = None
    agrees: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """The form and, on POST, the result or a problem.

    `propose` sends the text to the editor; None if the registry takes no proposals. `link` is the path of this report,
    `whole_link` its full URL; both are empty if the text isn't stored; `keep_refused` says why the reader can't store
    it.
    """

    frame: Frame
    registry: str
    subject: str
    report_url: str
    level: str
    form: ReportForm
    result: ReportResult | None = None
    comparison: VersionComparison | None = None
    evidence: DataEvidence | None = None
    problem: Problem | None = None
    propose: Action | None = None
    registry_answer: RegistryAnswer | None = None
    link: str = ""
    whole_link: str = ""
    keep_refused: str = ""
    view: str = "unified"
    is_whole: bool = False

    @property
    def level_sentence(self) -> str:
        """The requirements of the level in force."""
        return f"{LEVELS[self.level].description} {level_order(self.level)}."


def report_page(request: HttpRequest, registry: str, subject: str) -> ReportPage:
    """Return the form and, on POST, the report or the error."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    config, order, actor = selectors.effective_config(registry_row, name), list_environments(), page_actor(request)
    form = _form(request, registry_row, name, config)
    parts = _checked(request, registry_row, name, form) if form.is_bound else {}
    link = _link(registry, name, form, parts["result"]) if parts.get("result") else ""
    # a check in the past stays at that moment
    then = urlencode({PARAMETER: request.GET[PARAMETER]}) if actor.past else ""
    report_url = subject_url(registry, name.qualified, "report")
    return ReportPage(
        frame=subject_frame(request, registry, name, "report", title=gettext("Check new version"), order=order),
        registry=registry,
        subject=name.qualified,
        report_url=f"{report_url}?{then}" if then else report_url,
        level=config.level,
        form=form,
        problem=None if form.syntax else form.problem,
        propose=_propose(request, registry, name, order),
        link=link,
        whole_link=request.build_absolute_uri(f"{link}&{then}" if then else link) if link else "",
        keep_refused=_keep_refused(actor, registry, name),
        view="split" if request.POST.get("view") == "split" else "unified",
        is_whole=_is_whole(request),
        **parts,
    )


def _form(request: HttpRequest, registry: Registry, name: SubjectName, config: EffectiveConfig) -> ReportForm:
    if request.method == "POST":
        return ReportForm(request.POST, current=config.level)
    linked = linked_values(request, registry, name)
    if linked is None:
        first = {"profile": config.profile, **newest_values(registry, name)}
        return ReportForm(initial=first, current=config.level)
    form = ReportForm({"profile": config.profile, **linked, **link_of(request)}, current=config.level)
    form.link = link_of(request)
    return form


def _checked(request: HttpRequest, registry: Registry, name: SubjectName, form: ReportForm) -> dict[str, Any]:
    """Return the result and the page's other data about the text; errors are added to the form."""
    actor, parts = page_actor(request), dict[str, Any]()
    try:
        if request.POST.get("do") == "keep" and form.is_valid():
            form.link = _kept(registry.name, name, form, actor)
        if not form.run(actor, registry=registry, subject=name):
            return parts
        result = present_proposal(registry.name, name, form.result, by=actor, is_whole=_is_whole(request))
        if request.POST.get("words") == "business":
            result = _in_business_words(registry, name, result, form.cleaned_data["schema_type"])
        parts["result"] = result
        if not actor.past:  # the past has neither evidence from data nor another server's answer
            assessment = form.result.assessment
            parts["evidence"] = data_evidence(request, registry, name, assessment, **form.schema)
            parts["registry_answer"] = _registry_answer(request, registry, name, form, assessment.is_compatible)
        parts["comparison"] = _against_latest(request, registry, name, form, result, parts.get("evidence"))
    except SchemadeskError as error:
        form.add_service_error(error)
    return parts


def _registry_answer(
    request: HttpRequest, registry: Registry, name: SubjectName, form: ReportForm, ours: bool
) -> RegistryAnswer | None:
    """Return the answer of the server behind a mirror, or that it wasn't asked; None for a local registry."""
    mirror = mirror_of(registry)
    if mirror is None or request.POST.get("ask") != "registry":
        return RegistryAnswer(where=mirror.url) if mirror else None
    verdict = ask_remote(registry, name, by=page_actor(request), **form.schema)
    if verdict is None:
        return None
    agrees = None if verdict.is_compatible is None else verdict.is_compatible == ours
    return RegistryAnswer(where=verdict.where, verdict=verdict, agrees=agrees)


def _link(registry: str, name: SubjectName, form: ReportForm, result: ReportResult) -> str:
    """Return the URL of this report; empty if its text isn't stored."""
    values = form.link or ({"version": str(result.identical_to), **form.wishes} if result.identical_to else {})
    query = urlencode({key: value for key, value in values.items() if value})
    return f"{subject_url(registry, name.qualified, 'report')}?{query}" if query else ""


def _keep_refused(actor: Actor, registry: str, name: SubjectName) -> str:
    right = "promotion.request"
    is_allowed = may(actor, right, registry=registry, subject=name.qualified)
    return "" if is_allowed else refusal(actor, right)


def _kept(registry: str, name: SubjectName, form: ReportForm, actor: Actor) -> dict[str, str]:
    """Save the text as a draft; return the parameters of its link.

    Raises DraftChanged if the draft has another text.
    """
    origin = gettext("from a compatibility report")
    number = save_draft(registry=registry, subject=name, by=actor, origin=origin, state_read="", **form.schema)
    return {"draft": str(number), **form.wishes}


def _propose(request: HttpRequest, registry: str, name: SubjectName, order: list[str]) -> Action | None:
    """Return the action that sends the form's schema to the editor; None if nothing can be proposed."""
    action = propose_action(request, registry, name, order=order, live=False)
    return replace(action, label=gettext("Propose this schema"), url=reverse("ui:propose")) if action else None


def report_file(request: HttpRequest, registry: str, subject: str) -> tuple[str, str, str] | None:
    """Return the requested file's content, type and name; None if none is requested or the text is invalid."""
    file = FILES.get(request.POST.get("as", ""))
    if file is None:
        return None
    registry_row, name = get_registry(registry), parse_subject(subject)
    form = ReportForm(request.POST, current="")
    if not form.run(page_actor(request), registry=registry_row, subject=name):
        return None  # the page shows the error of the text
    text = file.render(form.result.assessment, registry, name.qualified)
    return text, file.content_type, f"compatibility-report.{file.ending}"


def _in_business_words(registry: Registry, name: SubjectName, result: ReportResult, schema_type: str) -> ReportResult:
    """Return the result with its findings in business words, from the newest version's field descriptions."""
    facts = {} if result.first_version else facts_of(registry, name, "latest")
    return replace(
        result,
        findings=findings_in_business_words(result.findings, facts, schema_type),
        beyond=findings_in_business_words(result.beyond, facts, schema_type),
        in_business_words=True,
    )


def _against_latest(
    request: HttpRequest,
    registry: Registry,
    name: SubjectName,
    form: ReportForm,
    result: ReportResult,
    evidence: DataEvidence | None,
) -> VersionComparison | None:
    """Compare the text with the newest version."""
    comparison = against_latest(
        registry,
        name,
        by=page_actor(request),
        level=result.level,
        notes=by_finding(evidence.notes if evidence else ()),
        limit=MAX_CARDS,
        is_whole=_is_whole(request),
        **form.schema,
    )
    if comparison is None or result.identical_to == comparison.old.version:
        return None
    if result.in_business_words:
        comparison = in_business_words(comparison, facts_of(registry, name, "latest"), comparison.new.format)
    return replace(comparison, disagreements=(), renames=(), hidden_renames=0)


def _is_whole(request: HttpRequest) -> bool:
    """Return whether the form or the URL requests all findings and changes."""
    return "1" in (request.POST.get("all"), request.GET.get("all"))
