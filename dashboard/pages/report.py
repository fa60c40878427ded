"""The compatibility report of a schema that somebody pasted."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.utils import timezone

from dashboard.links import subject_url
from dashboard.pages.comparison import HEADLINES, SEVERITIES, WORST_FIRST
from dashboard.pages.frame import make_frame, subjects_url
from dashboard.pages.subjects import level_order
from dashboard.presenters.frame import Choice, Crumb, Field, Problem, Section
from dashboard.presenters.looks import Verdict
from dashboard.presenters.report import (
    LevelResult,
    MatrixCell,
    MatrixRow,
    ReportFinding,
    ReportPage,
    ReportResult,
    SyntaxProblem,
    snippet,
)
from registry.errors import InvalidSchema, SchemadeskError
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.formats.report import ReportItem
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.comparison import Proposal
from registry.subjects.selectors.places import get_registry

DIRECTIONS = {"BACKWARD": "New reader, old data", "FORWARD": "Old reader, new data"}


def report_page(request: HttpRequest, registry: str, subject: str) -> ReportPage:
    """The form and, after it was sent, the report or the syntax error."""
    place, name = get_registry(registry), parse_subject(subject)
    text, schema_type = request.POST.get("schema", ""), request.POST.get("format", "AVRO")
    config = selectors.effective_config(place, name)
    syntax, result, problem = None, None, None
    if request.method == "POST":
        try:
            proposal = selectors.report_proposal(place, name, text=text, schema_type=schema_type)
            result = _result(registry, name, proposal)
        except InvalidSchema as error:
            syntax = _syntax(text, error)
        except SchemadeskError as error:
            problem = Problem(what=error.message)
    return ReportPage(
        frame=make_frame(
            request,
            title="Check a new version",
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=(
                Crumb(label="Subjects", url=subjects_url(registry)),
                Crumb(label=name.qualified, url=subject_url(registry, name.qualified), code=True),
            ),
            url_in=lambda other: subject_url(other, name.qualified, "report"),
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        report_url=subject_url(registry, name.qualified, "report"),
        level=config.level,
        level_sentence=f"{LEVELS[config.level].description} {level_order(config.level)}.",
        schema=Field(
            name="schema",
            label="Schema",
            value=text,
            kind="textarea",
            rows=16,
            code=True,
            required=True,
            help="Paste the whole text. Comments are allowed in Avro.",
        ),
        format_choices=tuple(Choice(value=kind, label=kind, selected=kind == schema_type) for kind in sorted(FORMATS)),
        syntax=syntax,
        result=result,
        problem=problem,
    )


def _syntax(text: str, error: InvalidSchema) -> SyntaxProblem:
    return SyntaxProblem(
        message=error.message,
        line=error.line,
        column=error.column,
        snippet=snippet(text, error.line, error.column) if error.line else (),
    )


def _result(registry: str, name: SubjectName, proposal: Proposal) -> ReportResult:
    items = [item for row in proposal.assessment.strip.matrix for item in (*row.backward, *row.forward)]
    report, level = proposal.assessment.report, proposal.config.level
    matrix = proposal.assessment.strip.matrix
    both = all(row.is_backward for row in matrix), all(row.is_forward for row in matrix)
    return ReportResult(
        verdict=_verdict(report.is_compatible, care=bool(report.hazards)),
        headline=HEADLINES[both] if matrix else "",
        sentence=_sentence(proposal),
        level=level,
        checked_at=timezone.now(),
        levels=tuple(
            LevelResult(level=key, verdict=_verdict(found.is_compatible), configured=key == level)
            for key, found in proposal.assessment.strip.reports.items()
        ),
        matrix=_matrix(registry, name, proposal),
        findings=_findings(items),
        first_version=not matrix,
        identical_to=proposal.equal_version,
        identical_url=subject_url(registry, name.qualified, version=proposal.equal_version)
        if proposal.equal_version
        else "",
    )


def _verdict(is_compatible: bool, *, care: bool = False) -> Verdict:
    return (Verdict.CARE if care else Verdict.OK) if is_compatible else Verdict.BREAKS


def _sentence(proposal: Proposal) -> str:
    report = proposal.assessment.report
    if not report.versions:
        return "No version was asked." if proposal.assessment.strip.matrix else "The subject has no version yet."
    asked = f"version {report.versions[0]}" if len(report.versions) == 1 else f"all {len(report.versions)} versions"
    if report.is_compatible:
        return f"Checked against {asked}: nothing breaks."
    broken = len(report.breaks)
    return f"Checked against {asked}: {broken} problem{'s' if broken != 1 else ''}, all listed below."


def _matrix(registry: str, name: SubjectName, proposal: Proposal) -> tuple[MatrixRow, ...]:
    level = LEVELS[proposal.config.level]

    def cell(direction: str, version: int, items: Sequence[ReportItem], fits: bool) -> MatrixCell:
        asked = direction in level.directions and version in proposal.assessment.report.versions
        return MatrixCell(verdict=_verdict(fits, care=bool(items)), failures=len(items), asked=asked)

    return tuple(
        MatrixRow(
            version=row.version,
            url=subject_url(registry, name.qualified, version=row.version),
            new_reads_old=cell("BACKWARD", row.version, row.backward, row.is_backward),
            old_reads_new=cell("FORWARD", row.version, row.forward, row.is_forward),
        )
        for row in proposal.assessment.strip.matrix
    )


def _findings(items: Sequence[ReportItem]) -> tuple[ReportFinding, ...]:
    """The same problem of several versions is one finding that names them all; worst first."""
    grouped: dict[tuple[str, str, str], list[ReportItem]] = {}
    for item in items:
        grouped.setdefault((item.direction, item.rule, item.named_path), []).append(item)
    ordered = sorted(grouped.values(), key=lambda same: WORST_FIRST.index(SEVERITIES[same[0].severity]))
    return tuple(_finding(number, same) for number, same in enumerate(ordered, start=1))


def _finding(number: int, same: Sequence[ReportItem]) -> ReportFinding:
    item = same[0]
    return ReportFinding(
        anchor=f"finding-{number}",
        rule=item.rule,
        path=item.named_path,
        verdict=SEVERITIES[item.severity],
        sentence=item.message,
        direction=DIRECTIONS[item.direction],
        versions=tuple(sorted({found.against_version for found in same})),
        why=item.why,
        remedy=item.remedy,
    )
