"""The compatibility report of a pasted schema: the page, and the report as a file for people and for CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.business_terms import findings_in_business_words, in_business_words
from dashboard.compare.comparison import VersionComparison
from dashboard.compare.proposed_schema import against_latest, by_finding, data_evidence
from dashboard.compatibility.presenters import (
    DataEvidence,
    ReferenceField,
    RegistryAnswer,
    ReportPage,
    ReportResult,
    SyntaxProblem,
    snippet,
)
from dashboard.compatibility.report_form import Form, form_linked, form_sent, form_started, registry_answer
from dashboard.compatibility.result import present_proposal
from dashboard.components.badges import format_name
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import subject_crumbs, subject_parts, subject_url, switch_url
from dashboard.components.time_travel import PARAMETER
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Choice, Field, Problem, Section
from dashboard.subjects.descriptions import facts_of
from dashboard.subjects.header import propose_action
from dashboard.subjects.page import level_order
from registry.access.roles import Actor, may, refusal
from registry.errors import InvalidReference, InvalidSchema, SchemadeskError
from registry.formats import FORMATS
from registry.formats.assessment import Assessment
from registry.formats.ci_findings import assessment_junit, assessment_sarif
from registry.formats.compatibility import LEVELS
from registry.formats.rendering import assessment_markdown
from registry.formats.report import PROFILES, Profile
from registry.promotions.selectors import list_environments
from registry.promotions.services import save_draft
from registry.subjects import selectors
from registry.subjects.comparison.comparison import Proposal
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True, slots=True)
class ReportFile:
    """One form: how it is made of a report, a registry's name and a subject's, and how it is sent."""

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


_EMPTY_ROWS: Final = 2
#: changes against the newest version that a report draws, beside its findings, unless all are asked for
MAX_CARDS: Final = 20
_PROFILE_NAMES: Final[dict[Profile, str]] = {
    "confluent": later("the established rules (confluent)"),
    "semantic": later("effects on data (semantic)"),
}


def report_page(request: HttpRequest, registry: str, subject: str) -> ReportPage:
    """The form and, after it was sent, the report or the syntax error."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    config, order = selectors.effective_config(registry_row, name), list_environments()
    is_past = bool(page_actor(request).past)
    linked = None if request.method == "POST" else form_linked(request, registry_row, name, config.profile)
    form = (
        form_sent(request) if request.method == "POST" else linked or form_started(registry_row, name, config.profile)
    )
    remote_answer: RegistryAnswer | None = None
    syntax, result, comparison, evidence, problem, error = None, None, None, None, None, None
    if request.method == "POST" or linked:
        try:
            if request.POST.get("do") == "keep":
                form = _form_with_settings(request, registry, name, form)
            proposal = _proposal(registry_row, name, form, page_actor(request))
            result = present_proposal(registry, name, proposal, by=page_actor(request), is_whole=_is_whole(request))
            if request.POST.get("words") == "business":
                result = _in_business_words(registry_row, name, result, form.schema_type)
            if not is_past:  # neither what data showed nor another server's answer is kept over time
                evidence = data_evidence(
                    request,
                    registry_row,
                    name,
                    proposal.assessment,
                    text=form.text,
                    schema_type=form.schema_type,
                    references=form.references(),
                )
                remote_answer = registry_answer(request, registry_row, name, form, proposal.assessment.is_compatible)
            comparison = _against_latest(request, registry_row, name, form, result, evidence or DataEvidence(notes=()))
        except InvalidSchema as exception:
            syntax = _syntax(form.text, exception)
        except SchemadeskError as exception:
            error = exception
            problem = Problem(what=exception.message)
    link = _link(registry, name, form, result) if result else ""
    # what is checked in the past is checked there again
    then = urlencode({PARAMETER: request.GET[PARAMETER]}) if is_past else ""
    report_url = subject_url(registry, name.qualified, "report")
    return ReportPage(
        frame=make_frame(
            request,
            title=gettext("Check new version"),
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=subject_crumbs(registry, name),
            parts=subject_parts(registry, name, "report"),
            url_in=lambda other: switch_url(other, name.qualified, "report"),
            order=order,
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        report_url=f"{report_url}?{then}" if then else report_url,
        level=config.level,
        level_sentence=f"{LEVELS[config.level].description} {level_order(config.level)}.",
        schema=Field(
            name="schema",
            label=gettext("Schema"),
            value=form.text,
            kind="textarea",
            rows=16,
            code=True,
            required=True,
            help=gettext("The full text. It starts as the newest version. Edit it or paste your own."),
        ),
        format_choices=_chosen([(kind, format_name(kind)) for kind in sorted(FORMATS)], form.schema_type),
        profile_choices=_chosen([(key, label) for key, label in _PROFILE_NAMES.items()], form.profile),
        references=_reference_fields(form.rows, error),
        references_open=bool(form.rows),
        carried=form.carried,
        syntax=syntax,
        result=result,
        comparison=comparison,
        evidence=evidence,
        problem=problem,
        propose=_propose(request, registry, name, order),
        registry_answer=remote_answer,
        view="split" if request.POST.get("view") == "split" else "unified",
        is_whole=_is_whole(request),
        level_choices=_chosen(
            [("", gettext("%(level)s (current)") % {"level": config.level}), *((key, key) for key in LEVELS)],
            form.level,
        ),
        link=link,
        whole_link=request.build_absolute_uri(f"{link}&{then}" if then else link) if link else "",
        keep=_keep(request, registry, name) if result else None,
    )


def _link(registry: str, name: SubjectName, form: Form, result: ReportResult) -> str:
    """The address of this very report; empty for a text that is kept nowhere."""
    values = dict(form.link)
    if not values and result.identical_to:
        values = {"version": str(result.identical_to), "profile": form.profile, "level": form.level}
    if not values:
        return ""
    query = urlencode({key: value for key, value in values.items() if value})
    return f"{subject_url(registry, name.qualified, 'report')}?{query}"


def _keep(request: HttpRequest, registry: str, name: SubjectName) -> Action:
    """What keeps the text as the reader's draft, so that the report gets an address."""
    actor, right = page_actor(request), "promotion.request"
    allowed = may(actor, right, registry=registry, subject=name.qualified)
    reason = "" if allowed else refusal(actor, right)
    return Action(label=gettext("Save and get a link"), url="", allowed=allowed, reason=reason)


def _form_with_settings(request: HttpRequest, registry: str, name: SubjectName, form: Form) -> Form:
    """The form with its text kept as the reader's draft. Raises DraftChanged where there is one with another text."""
    number = save_draft(
        registry=registry,
        subject=name,
        text=form.text,
        by=page_actor(request),
        schema_type=form.schema_type,
        references=form.references(),
        origin=gettext("from a compatibility report"),
        state_read="",
    )
    return replace(form, link=(("draft", str(number)), ("profile", form.profile), ("level", form.level)))


def _propose(request: HttpRequest, registry: str, name: SubjectName, order: list[str]) -> Action | None:
    """What takes the form's text, format and references to the editor; absent where nothing can be proposed."""
    action = propose_action(request, registry, name, order=order, live=False)
    return replace(action, label=gettext("Propose this schema"), url=reverse("ui:propose")) if action else None


def report_file(request: HttpRequest, registry: str, subject: str) -> tuple[str, str, str] | None:
    """(text, content type, file name) of the report that the form asks for as a file; None where there is none."""
    file = FILES.get(request.POST.get("as", ""))
    if file is None:
        return None
    registry_row, name = get_registry(registry), parse_subject(subject)
    try:
        assessment = _proposal(registry_row, name, form_sent(request), page_actor(request)).assessment
    except SchemadeskError:
        return None  # the page says what is wrong with the text
    return file.render(assessment, registry, name.qualified), file.content_type, f"compatibility-report.{file.ending}"


def _in_business_words(registry: Registry, name: SubjectName, result: ReportResult, schema_type: str) -> ReportResult:
    """The findings told with what the newest version says of its fields."""
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
    form: Form,
    result: ReportResult,
    evidence: DataEvidence,
) -> VersionComparison | None:
    """The text against the newest version, without what the report says of all versions."""
    comparison = against_latest(
        registry,
        name,
        by=page_actor(request),
        text=form.text,
        schema_type=form.schema_type,
        references=form.references(),
        level=result.level,
        notes=by_finding(evidence.notes),
        limit=MAX_CARDS,
        is_whole=_is_whole(request),
    )
    if comparison is None or result.identical_to == comparison.old.version:
        return None
    if result.in_business_words:
        comparison = in_business_words(comparison, facts_of(registry, name, "latest"), comparison.new.format)
    return replace(comparison, partings=(), renames=(), hidden_renames=0)


def _is_whole(request: HttpRequest) -> bool:
    """Whether all findings and changes are to be drawn, as the form or the report's address says."""
    return "1" in (request.POST.get("all"), request.GET.get("all"))


def _proposal(registry: Registry, name: SubjectName, form: Form, by: Actor) -> Proposal:
    profile = next((item for item in PROFILES if item == form.profile), None)
    return selectors.report_proposal(
        registry,
        name,
        text=form.text,
        schema_type=form.schema_type,
        by=by,
        references=form.references(),
        profile=profile,
        level=form.level or None,
    )


def _chosen(values: Sequence[tuple[str, str]], chosen: str) -> tuple[Choice, ...]:
    return tuple(Choice(value=value, label=label, selected=value == chosen) for value, label in values)


def _reference_fields(
    rows: Sequence[tuple[str, str, str]], error: SchemadeskError | None
) -> tuple[ReferenceField, ...]:
    """The rows that are filled, and a few empty ones; the row that an error names says it."""
    failing_name = error.details.get("reference") if isinstance(error, InvalidReference) else None
    filled = [*rows, *[("", "", "")] * _EMPTY_ROWS]
    return tuple(
        ReferenceField(
            number=number,
            name=name,
            subject=subject,
            version=version,
            error=error.message if error and failing_name is not None and name == failing_name else "",
        )
        for number, (name, subject, version) in enumerate(filled, start=1)
    )


def _syntax(text: str, error: InvalidSchema) -> SyntaxProblem:
    return SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )
