"""The compatibility report of a schema that somebody pasted: the form, and what the check came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url, switch_url
from dashboard.pages.against_latest import against_latest
from dashboard.pages.data_evidence import by_finding, data_evidence
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.notes import facts_of
from dashboard.pages.report_answer import registry_answer
from dashboard.pages.report_files import FILES
from dashboard.pages.report_form import Form, form_linked, form_sent, form_started
from dashboard.pages.report_result import present_proposal
from dashboard.pages.subject_head import propose_action
from dashboard.pages.subject_parts import subject_crumbs, subject_parts
from dashboard.pages.subjects import level_order
from dashboard.presenters.business_words import findings_in_business_words, in_business_words
from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Choice, Field, Problem, Section
from dashboard.presenters.looks import format_name
from dashboard.presenters.report import (
    DataEvidence,
    ReferenceField,
    RegistryAnswer,
    ReportPage,
    ReportResult,
    SyntaxProblem,
    snippet,
)
from dashboard.texts import later
from dashboard.travel import PARAMETER
from registry.access.roles import Actor, may, refusal
from registry.errors import InvalidReference, InvalidSchema, SchemadeskError
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.formats.report import PROFILES, Profile
from registry.promotions.selectors import list_environments
from registry.promotions.services import save_draft
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.comparison import Proposal
from registry.subjects.selectors.places import Registry, get_registry

_EMPTY_ROWS: Final = 2
#: changes against the newest version that a report draws, beside its findings, unless all are asked for
MAX_CARDS: Final = 20
_PROFILE_NAMES: Final[dict[Profile, str]] = {
    "confluent": later("the established rules (confluent)"),
    "semantic": later("what the data do (semantic)"),
}


def report_page(request: HttpRequest, registry: str, subject: str) -> ReportPage:
    """The form and, after it was sent, the report or the syntax error."""
    place, name = get_registry(registry), parse_subject(subject)
    config, order = selectors.effective_config(place, name), list_environments()
    is_past = bool(page_actor(request).past)
    linked = None if request.method == "POST" else form_linked(request, place, name, config.profile)
    form = form_sent(request) if request.method == "POST" else linked or form_started(place, name, config.profile)
    answer: RegistryAnswer | None = None
    syntax, result, comparison, evidence, problem, error = None, None, None, None, None, None
    if request.method == "POST" or linked:
        try:
            if request.POST.get("do") == "keep":
                form = _kept(request, registry, name, form)
            proposal = _proposal(place, name, form, page_actor(request))
            result = present_proposal(registry, name, proposal, by=page_actor(request), is_whole=_is_whole(request))
            if request.POST.get("words") == "business":
                result = _in_business_words(place, name, result, form.schema_type)
            if not is_past:  # neither what data showed nor another server's answer is kept over time
                evidence = data_evidence(
                    request,
                    place,
                    name,
                    proposal.assessment,
                    text=form.text,
                    schema_type=form.schema_type,
                    references=form.references(),
                )
                answer = registry_answer(request, place, name, form, proposal.assessment.is_compatible)
            comparison = _against_latest(request, place, name, form, result, evidence or DataEvidence(notes=()))
        except InvalidSchema as found:
            syntax = _syntax(form.text, found)
        except SchemadeskError as found:
            error = found
            problem = Problem(what=found.message)
    link = _link(registry, name, form, result) if result else ""
    # what is checked in the past is checked there again
    then = urlencode({PARAMETER: request.GET[PARAMETER]}) if is_past else ""
    report_url = subject_url(registry, name.qualified, "report")
    return ReportPage(
        frame=make_frame(
            request,
            title=gettext("Check a new version"),
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
            help=gettext("The whole text. It starts as the newest version: change it, or paste your own."),
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
        answer=answer,
        view="split" if request.POST.get("view") == "split" else "unified",
        is_whole=_is_whole(request),
        level_choices=_chosen(
            [("", gettext("%(level)s, the one in force") % {"level": config.level}), *((key, key) for key in LEVELS)],
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
    return Action(label=gettext("Keep it for a link"), url="", allowed=allowed, reason=reason)


def _kept(request: HttpRequest, registry: str, name: SubjectName, form: Form) -> Form:
    """The form with its text kept as the reader's draft. Raises DraftChanged where there is one with another text."""
    number = save_draft(
        registry=registry,
        subject=name,
        text=form.text,
        by=page_actor(request),
        schema_type=form.schema_type,
        references=form.references(),
        origin=gettext("from a compatibility report"),
        seen="",
    )
    return replace(form, link=(("draft", str(number)), ("profile", form.profile), ("level", form.level)))


def _propose(request: HttpRequest, registry: str, name: SubjectName, order: list[str]) -> Action | None:
    """What takes the form's text, format and references to the editor; absent where nothing can be proposed."""
    found = propose_action(request, registry, name, order=order, live=False)
    return replace(found, label=gettext("Propose this text"), url=reverse("ui:propose")) if found else None


def report_file(request: HttpRequest, registry: str, subject: str) -> tuple[str, str, str] | None:
    """(text, content type, file name) of the report that the form asks for as a file; None where there is none."""
    file = FILES.get(request.POST.get("as", ""))
    if file is None:
        return None
    place, name = get_registry(registry), parse_subject(subject)
    try:
        found = _proposal(place, name, form_sent(request), page_actor(request)).assessment
    except SchemadeskError:
        return None  # the page says what is wrong with the text
    return file.render(found, registry, name.qualified), file.content_type, f"compatibility-report.{file.ending}"


def _in_business_words(place: Registry, name: SubjectName, result: ReportResult, schema_type: str) -> ReportResult:
    """The findings told with what the newest version says of its fields."""
    facts = {} if result.first_version else facts_of(place, name, "latest")
    return replace(
        result,
        findings=findings_in_business_words(result.findings, facts, schema_type),
        beyond=findings_in_business_words(result.beyond, facts, schema_type),
        in_business_words=True,
    )


def _against_latest(
    request: HttpRequest,
    place: Registry,
    name: SubjectName,
    form: Form,
    result: ReportResult,
    evidence: DataEvidence,
) -> Comparison | None:
    """The text against the newest version, without what the report says of all versions."""
    found = against_latest(
        place,
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
    if found is None or result.identical_to == found.old.version:
        return None
    if result.in_business_words:
        found = in_business_words(found, facts_of(place, name, "latest"), found.new.format)
    return replace(found, partings=(), renames=(), hidden_renames=0)


def _is_whole(request: HttpRequest) -> bool:
    """Whether all findings and changes are to be drawn, as the form or the report's address says."""
    return "1" in (request.POST.get("all"), request.GET.get("all"))


def _proposal(place: Registry, name: SubjectName, form: Form, by: Actor) -> Proposal:
    profile = next((item for item in PROFILES if item == form.profile), None)
    return selectors.report_proposal(
        place,
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
    wrong = error.details.get("reference") if isinstance(error, InvalidReference) else None
    filled = [*rows, *[("", "", "")] * _EMPTY_ROWS]
    return tuple(
        ReferenceField(
            number=number,
            name=name,
            subject=subject,
            version=version,
            error=error.message if error and wrong is not None and name == wrong else "",
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
