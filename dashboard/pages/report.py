"""The compatibility report of a schema that somebody pasted: the form, and what the check came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.against_latest import against_latest
from dashboard.pages.data_evidence import by_finding, data_evidence
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.notes import facts_of
from dashboard.pages.numbers import whole_number
from dashboard.pages.report_files import FILES
from dashboard.pages.report_result import present_proposal
from dashboard.pages.subject_head import propose_action
from dashboard.pages.subject_parts import subject_crumbs, subject_parts
from dashboard.pages.subjects import level_order, pretty
from dashboard.presenters.business_words import findings_in_business_words, in_business_words
from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Choice, Field, Problem, Section
from dashboard.presenters.json_layout import laid_out
from dashboard.presenters.looks import format_name
from dashboard.presenters.report import DataEvidence, ReferenceField, ReportPage, ReportResult, SyntaxProblem, snippet
from dashboard.texts import later
from registry.errors import InvalidInput, InvalidReference, InvalidSchema, NotFound, SchemadeskError
from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.formats.compatibility import LEVELS
from registry.formats.report import PROFILES, Profile
from registry.promotions.selectors import list_environments
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.comparison import Proposal
from registry.subjects.selectors.places import Registry, get_registry

MAX_REFERENCES: Final = 100
#: characters of a text of which a line an item would be thousands of lines; and of a line then
LONG_TEXT: Final = 50_000
LINE_WIDTH: Final = 120
_EMPTY_ROWS: Final = 2
_PROFILE_NAMES: Final[dict[Profile, str]] = {
    "confluent": later("the established rules (confluent)"),
    "semantic": later("what the data do (semantic)"),
}
_LATEST: Final = ("latest", "-1", "")


@dataclass(frozen=True)
class _Form:
    """What the form holds; a row of references as it was typed."""

    text: str
    schema_type: str
    profile: str
    rows: tuple[tuple[str, str, str], ...]

    @property
    def carried(self) -> tuple[tuple[str, str], ...]:
        """All but the text, for a form that sends another text."""
        names = ("ref_name", "ref_subject", "ref_version")
        rows = [pair for row in self.rows for pair in zip(names, row, strict=True)]
        return (("format", self.schema_type), ("profile", self.profile), *rows)

    def references(self) -> list[Reference]:
        """The rows as references; raises InvalidReference for a version that is none."""
        found = []
        for name, subject, version in self.rows:
            number = -1 if version in _LATEST else whole_number(version, digits=10)
            if number is None:
                raise InvalidReference(
                    gettext("%(version)s is no version: a number or latest.") % {"version": repr(version[:20])},
                    reference=name,
                )
            found.append(Reference(name, subject, number))
        return found


def report_page(request: HttpRequest, registry: str, subject: str) -> ReportPage:
    """The form and, after it was sent, the report or the syntax error."""
    place, name = get_registry(registry), parse_subject(subject)
    config, order = selectors.effective_config(place, name), list_environments()
    form = _sent(request) if request.method == "POST" else _started(place, name, config.profile)
    syntax, result, comparison, evidence, problem, error = None, None, None, None, None, None
    if request.method == "POST":
        try:
            proposal = _proposal(place, name, form)
            result = present_proposal(registry, name, proposal)
            if request.POST.get("words") == "business":
                result = _in_business_words(place, name, result, form.schema_type)
            evidence = data_evidence(
                request,
                place,
                name,
                proposal.assessment,
                text=form.text,
                schema_type=form.schema_type,
                references=form.references(),
            )
            comparison = _against_latest(request, place, name, form, result, evidence)
        except InvalidSchema as found:
            syntax = _syntax(form.text, found)
        except SchemadeskError as found:
            error = found
            problem = Problem(what=found.message)
    return ReportPage(
        frame=make_frame(
            request,
            title=gettext("Check a new version"),
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=subject_crumbs(registry, name),
            parts=subject_parts(registry, name, "report"),
            url_in=lambda other: subject_url(other, name.qualified, "report"),
            order=order,
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        report_url=subject_url(registry, name.qualified, "report"),
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
    )


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
        found = _proposal(place, name, _sent(request)).assessment
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
    form: _Form,
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
    )
    if found is None or result.identical_to == found.old.version:
        return None
    if result.in_business_words:
        found = in_business_words(found, facts_of(place, name, "latest"), found.new.format)
    return replace(found, partings=(), renames=(), hidden_renames=0)


def _proposal(place: Registry, name: SubjectName, form: _Form) -> Proposal:
    profile = next((item for item in PROFILES if item == form.profile), None)
    return selectors.report_proposal(
        place, name, text=form.text, schema_type=form.schema_type, references=form.references(), profile=profile
    )


def _sent(request: HttpRequest) -> _Form:
    posted = request.POST
    columns = [[text.strip() for text in posted.getlist(f"ref_{part}")] for part in ("name", "subject", "version")]
    if len(columns[0]) > MAX_REFERENCES:
        raise InvalidInput(
            gettext("More than %(max_references)s references can't be sent by this form.")
            % {"max_references": MAX_REFERENCES}
        )
    rows = tuple(row for row in zip(*columns, strict=False) if row[0] or row[1])
    # A browser sends line ends as CRLF; places in the text are counted as they were typed.
    text = posted.get("schema", "").replace("\r\n", "\n")
    return _Form(text, posted.get("format", "AVRO"), posted.get("profile", ""), rows)


def _started(place: Registry, name: SubjectName, profile: str) -> _Form:
    """The form as it opens: with the newest version, if there is one."""
    try:
        newest = selectors.get_version(place, name, "latest")
    except NotFound:
        return _Form("", next(iter(FORMATS)), profile, ())
    rows = tuple((item.name, item.subject, str(item.version)) for item in newest.schema.references)
    return _Form(_editable(newest), newest.schema.schema_type, profile, rows)


def _editable(info: selectors.VersionInfo) -> str:
    """The text to change. Of a long one what fits stays on a line: each line of a field costs a browser time."""
    text = info.schema.text
    is_short = info.schema.schema_type == "PROTOBUF" or len(text) < LONG_TEXT
    return pretty(info) if is_short else laid_out(text, width=LINE_WIDTH)


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
