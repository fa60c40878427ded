"""The result of checking a proposed schema, for display; lint findings are grouped by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext

from dashboard.compare.change_cards import finding_disagreement, verdict_of, with_changes
from dashboard.compare.change_details import shown_value
from dashboard.compare.proof import (
    DIRECTIONS,
    MAX_RENAMES,
    EditView,
    disagreement_note,
    edit_view,
    proof_of,
    rename_views,
)
from dashboard.compatibility.presenters import (
    LevelResult,
    LintGroup,
    MatrixCell,
    MatrixRow,
    PolicyFinding,
    PolicyResult,
    ReportFinding,
    ReportResult,
)
from dashboard.components.badges import Verdict, missing_words
from dashboard.components.links import subject_url
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.templatetags.desk import below_path, position
from registry.access.roles import Actor
from registry.formats.assessment import Assessment
from registry.formats.base import Witness
from registry.formats.compatibility import LEVELS, LevelOverview
from registry.formats.lint import LintFinding
from registry.formats.policies import POLICIES, PolicyItem, PolicyReport
from registry.formats.report import CHECKER_VERSION, Profile, ReportItem
from registry.formats.suggested_edits import Patch
from registry.subjects.comparison.comparison import Proposal
from registry.subjects.versions.qualified_names import SubjectName


def lint_groups(findings: Sequence[LintFinding]) -> tuple[LintGroup, ...]:
    """Group the lint findings by rule, in their order."""
    return tuple(LintGroup(tuple(same)) for _, same in groupby(findings, key=lambda item: item.rule))


#: findings on a page: those that the level checks, those beyond; the limit of each if all are requested
MAX_FINDINGS: Final = 50
MAX_BEYOND: Final = 20
MOST_FINDINGS: Final = 2_000
_PASSED: Final = {
    "consumers first": _("Deploy consumers first"),
    "producers first": _("Deploy producers first"),
    "any order": _("Deploy in any order"),
    "needs a new topic": _("Readers and writers can’t be compatible: use a new topic"),
}
_FAILED: Final = {
    "consumers first": _("Safe only if consumers are deployed first"),
    "producers first": _("Safe only if producers are deployed first"),
    "any order": _("Rejected by the policy"),
    "needs a new topic": _("Needs a new topic or a fix"),
}
_PROFILES: Final = {"confluent": _("by the established rules"), "semantic": _("by effects on data")}
_POLICY: Final = {
    "accepted": (Verdict.OK, _("Accepted")),
    "accepted only with force": (Verdict.CARE, _("Only with force")),
    "rejected": (Verdict.BREAKS, _("Rejected")),
}
_HEAVIEST: Final = ("refusal", "force", "advice")
_Key = tuple[str, int, str, str, str | None]
#: the same problem in several versions is one finding
_Same = list[ReportItem]


def present_proposal(
    registry: str, name: SubjectName, proposal: Proposal, *, by: Actor | None = None, is_whole: bool = False
) -> ReportResult:
    """Return the report: verdict, levels, matrix, findings, policy, renames, clients, dependants and remedies.

    Only the first findings are included, unless `is_whole`.
    """
    assessment = proposal.assessment
    report, strip = assessment.report, assessment.strip
    within, beyond = _findings(assessment)
    profile = report.profile
    limit, limit_beyond = (MOST_FINDINGS, MOST_FINDINGS) if is_whole else (MAX_FINDINGS, MAX_BEYOND)
    same = proposal.equal_version
    return ReportResult(
        verdict=_overall(proposal),
        headline=_headline(proposal),
        sentence=_sentence(proposal),
        level=proposal.config.level,
        profile=_PROFILES[report.profile],
        checked_at=timezone.now(),
        checker=CHECKER_VERSION,
        levels=level_results(strip, proposal.config.level),
        matrix=_matrix(registry, name, proposal),
        findings=tuple(
            _finding(f"finding-{n}", same, profile, is_asked=True) for n, same in enumerate(within[:limit], start=1)
        ),
        beyond=tuple(
            _finding(f"beyond-{n}", same, profile, is_asked=False)
            for n, same in enumerate(beyond[:limit_beyond], start=1)
        ),
        hidden_findings=len(within[limit:]),
        hidden_beyond=len(beyond[limit_beyond:]),
        disagreements=tuple(
            disagreement_note(item, f"disagreement-{n}") for n, item in enumerate(assessment.disagreements)
        ),
        compared_with_data=assessment.compared_with_data,
        policy=_policy(proposal.policy) if proposal.policy else None,
        renames=rename_views(
            assessment.renames, proposal.schema.text, (registry,), name, by=by, limit=None if is_whole else MAX_RENAMES
        ),
        hidden_renames=0 if is_whole else len(assessment.renames[MAX_RENAMES:]),
        clients=assessment.clients,
        dependants=assessment.dependants,
        patch=assessment.patch,
        patch_edit=_patch_edit(assessment.patch, proposal.schema.text) if assessment.patch else None,
        first_version=not strip.matrix,
        lint=lint_groups(assessment.lint),
        no_lint=missing_words(assessment.schema_type, "lint"),
        identical_to=same,
        identical_url=subject_url(registry, name.qualified, version=same) if same else "",
    )


def level_results(strip: LevelOverview, level: str) -> tuple[LevelResult, ...]:
    """Return the seven levels, with the one in force marked."""
    return tuple(
        LevelResult(level=key, verdict=_verdict(report.is_compatible), configured=key == level)
        for key, report in strip.reports.items()
    )


def _verdict(is_compatible: bool, *, care: bool = False) -> Verdict:
    return (Verdict.CARE if care else Verdict.OK) if is_compatible else Verdict.BREAKS


def _headline(proposal: Proposal) -> str:
    """Return when to deploy the schema, considering the versions and affected clients; "" for a first version."""
    assessment = proposal.assessment
    if not assessment.strip.matrix:
        return ""
    if not proposal.is_accepted:
        return str(_FAILED[assessment.strip.upgrade_order])
    if assessment.breaks_clients:
        return gettext("Move the affected clients first")
    if assessment.breaks_dependants:
        return gettext("Breaks subjects that refer to it")
    return with_changes(str(_PASSED[assessment.strip.upgrade_order]), [assessment.report])


def _overall(proposal: Proposal) -> Verdict:
    assessment = proposal.assessment
    breaks_others = assessment.breaks_clients or assessment.breaks_dependants
    return _verdict(proposal.is_accepted, care=bool(assessment.report.hazards) or breaks_others)


def _sentence(proposal: Proposal) -> str:
    report = proposal.assessment.report
    if not proposal.assessment.strip.matrix:
        return gettext("The subject has no versions yet.")
    if not report.versions:
        sentence = gettext("%(level)s checks no versions.") % {"level": report.level}
    else:
        scope = (
            gettext("version %(version)s") % {"version": report.versions[0]}
            if len(report.versions) == 1
            else gettext("all %(count)s versions") % {"count": len(report.versions)}
        )
        broken = len(report.breaks)
        outcome = (
            counted(broken, "%(n)s problem, all listed below.", "%(n)s problems, all listed below.")
            if broken
            else gettext("no breaking changes.")
        )
        sentence = gettext("Checked against %(asked)s: %(found)s") % {"asked": scope, "found": outcome}
        if report.verdict == "differs":
            differs = gettext("The result depends on the decoder: one reads all data unchanged, another doesn’t.")
            sentence = f"{sentence} {differs}"
    if proposal.policy and not proposal.policy.is_accepted():
        return gettext("%(said)s Verdict of the policy %(policy)s: %(verdict)s.") % {
            "said": sentence,
            "policy": proposal.policy.policy,
            "verdict": proposal.policy.verdict,
        }
    return sentence


def _matrix(registry: str, name: SubjectName, proposal: Proposal) -> tuple[MatrixRow, ...]:
    level, versions = LEVELS[proposal.config.level], proposal.assessment.report.versions
    newest = max((row.version for row in proposal.assessment.strip.matrix), default=0)

    def cell(direction: str, version: int, items: Sequence[ReportItem], fits: bool) -> MatrixCell:
        is_asked = direction in level.directions and version in versions
        return MatrixCell(verdict=_verdict(fits, care=bool(items)), failures=len(items), is_asked=is_asked)

    return tuple(
        MatrixRow(
            version=row.version,
            url=subject_url(registry, name.qualified, version=row.version),
            note=gettext("newest") if row.version == newest else "",
            new_reads_old=cell("BACKWARD", row.version, row.backward, row.is_backward),
            old_reads_new=cell("FORWARD", row.version, row.forward, row.is_forward),
        )
        for row in proposal.assessment.strip.matrix
    )


def _key(item: ReportItem) -> _Key:
    return (item.direction, item.against_version, item.rule, item.named_path, item.json_pointer_new)


def _findings(assessment: Assessment) -> tuple[list[_Same], list[_Same]]:
    """Return the findings that the level checks, and those beyond, worst first."""
    proved = {_key(item): item for item in assessment.report.items}
    rows = assessment.strip.matrix
    everything = [item for row in rows for item in (*row.backward, *row.forward)]
    within = _grouped(proved.get(_key(item), item) for item in everything if _key(item) in proved)
    return within, _grouped(item for item in everything if _key(item) not in proved)


def _grouped(items: Iterable[ReportItem]) -> list[_Same]:
    grouped: dict[tuple[str, str, str], _Same] = {}
    for item in items:
        grouped.setdefault((item.direction, item.rule, item.named_path), []).append(item)
    return sorted(grouped.values(), key=lambda same: ("break", "value loss", "warning").index(same[0].severity))


def _finding(anchor: str, same: Sequence[ReportItem], profile: Profile, *, is_asked: bool) -> ReportFinding:
    """Convert a finding; a failing direction that the level doesn't check only needs care."""
    item = next((entry for entry in same if entry.witness and entry.witness.found), same[0])
    verdict = verdict_of(item, profile)
    return ReportFinding(
        anchor=anchor,
        rule=item.rule,
        path=item.named_path or gettext("the whole schema"),
        verdict=verdict if is_asked or verdict is not Verdict.BREAKS else Verdict.CARE,
        sentence=below_path(item.message, item.named_path),
        direction=DIRECTIONS[item.direction],
        versions=tuple(sorted({entry.against_version for entry in same})),
        position=position(item),
        before=shown_value(item.before),
        after=shown_value(item.after),
        why=item.why,
        remedy=item.remedy,
        disagreement=finding_disagreement([item]),
        proof=proof_of(_witness(same), item.direction, f"bytes-{anchor}"),
    )


def _witness(same: Sequence[ReportItem]) -> Witness | None:
    witnesses = [item.witness for item in same if item.witness]
    return next((witness for witness in witnesses if witness.found), witnesses[0] if witnesses else None)


def _policy(report: PolicyReport) -> PolicyResult:
    """Convert a policy report; equal findings against several versions are merged, the most severe first."""
    verdict, word = _POLICY[report.verdict]
    grouped: dict[tuple[str, str, str, str], list[PolicyItem]] = {}
    for item in report.items:
        key = (item.weight, item.finding.rule, item.finding.path, item.finding.message)
        grouped.setdefault(key, []).append(item)
    ordered = sorted(grouped.values(), key=lambda same: _HEAVIEST.index(same[0].weight))
    return PolicyResult(
        title=POLICIES[report.policy].title,
        verdict=verdict,
        word=word,
        findings=tuple(_policy_finding(f"policy-{number}", same) for number, same in enumerate(ordered, start=1)),
    )


def _policy_finding(anchor: str, same: Sequence[PolicyItem]) -> PolicyFinding:
    versions = {item.version for item in same if item.version is not None}
    return PolicyFinding(anchor=anchor, item=same[0], versions=tuple(sorted(versions)))


def _patch_edit(patch: Patch, text: str) -> EditView:
    return edit_view("patched", "; ".join(patch.titles), text, patch.text)
