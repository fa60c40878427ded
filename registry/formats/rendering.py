"""Compatibility reports as terminal text and as Markdown for merge requests; all foreign text is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from registry.formats.assessment import Assessment
from registry.formats.base import Witness
from registry.formats.lint import LintFinding
from registry.formats.report import Direction, Report, ReportItem
from registry.formats.suggested_edits import SuspectedRename

_MARKS = re.compile(r"([\\`*_\[\]<>|#])")
_FENCES = re.compile("`+")


def plain(text: str) -> str:
    """Return the text in one line with Markdown characters escaped."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return an inline code span, whatever backticks the text has."""
    inside = " ".join(text.split())
    fence = "`" * (_longest(inside) + 1)
    return f"{fence} {inside} {fence}" if "`" in inside else f"{fence}{inside}{fence}"


def fenced(text: str, language: str) -> str:
    """Return a fenced code block."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest(text: str) -> int:
    return max((len(run) for run in _FENCES.findall(text)), default=0)


READING: Final[Mapping[Direction, str]] = {
    "BACKWARD": "the new schema reads version {}",
    "FORWARD": "version {} reads the new schema",
}
_MAX_VALUE: Final = 300


def report_text(report: Report) -> str:
    """Render one level's report for a terminal: the verdict, then every item with its place, reason, proof and cure."""
    return "\n".join([_verdict(report), *(item_text(item) for item in report.items)])


def assessment_text(assessment: Assessment) -> str:
    """Render the complete report for a terminal."""
    lines = [report_text(assessment.report), "", f"levels: {_levels(assessment)}"]
    lines.append(f"upgrade order: {assessment.deployment}")
    lines += [f"rules and data disagree: {disagreement.sentence}" for disagreement in assessment.disagreements]
    lines += [rename_text(rename) for rename in assessment.renames]
    lines += [f"client: {client.sentence}" for client in assessment.clients]
    lines += [f"refers to it: {item.subject} version {item.version}: {item.message}" for item in assessment.dependants]
    lines += [f"advice: {lint_text(finding)}" for finding in assessment.lint]
    if assessment.patch:
        lines += ["", f"what to do ({_patch_verdict(assessment)}):"]
        lines += [f"  {number}. {title}" for number, title in enumerate(assessment.patch.titles, start=1)]
        lines += ["", assessment.patch.diff]
    return "\n".join(lines)


def assessment_markdown(assessment: Assessment, *, title: str = "Compatibility report") -> str:
    """Render the complete report as GitHub-flavoured Markdown."""
    parts = [f"# {plain(title)}", f"**{plain(_verdict(assessment.report))}**", _level_table(assessment)]
    parts.append(f"Upgrade order: **{assessment.deployment}**")
    parts += [_matrix_table(assessment)] if assessment.strip.matrix else []
    parts += _section("Findings", [_item_markdown(item) for item in assessment.report.items], "\n\n")
    parts += _section(
        "Where rules and data disagree", [f"- {plain(item.sentence)}" for item in assessment.disagreements]
    )
    parts += _section("Renamed?", [_rename_markdown(item) for item in assessment.renames])
    parts += _section("Declared clients", [f"- {plain(client.sentence)}" for client in assessment.clients])
    parts += _section(
        "Subjects that refer to this one",
        [f"- {code(item.subject)} version {item.version}: {plain(item.message)}" for item in assessment.dependants],
    )
    if assessment.patch:
        titles = [f"{number}. {plain(title)}" for number, title in enumerate(assessment.patch.titles, start=1)]
        parts += _section(f"What to do: {_patch_verdict(assessment)}", titles)
        parts.append(fenced(assessment.patch.diff, "diff"))
    parts += _section("Advice (doesn't affect the verdict)", [_lint_markdown(finding) for finding in assessment.lint])
    return "\n\n".join(parts) + "\n"


def _verdict(report: Report) -> str:
    verdict = "depends on the decoder, so not compatible" if report.verdict == "differs" else report.verdict
    profile = "" if report.profile == "confluent" else f" (profile {report.profile})"
    versions = ", ".join(map(str, report.versions))
    checked = f", checked against version {versions}" if versions else "; nothing to check"
    return f"{verdict} under {report.level}{profile}{checked}"


def _levels(assessment: Assessment) -> str:
    return ", ".join(
        f"{name} {'passes' if report.is_compatible else 'fails'}" for name, report in assessment.strip.reports.items()
    )


def _patch_verdict(assessment: Assessment) -> str:
    patch = assessment.patch
    return "with these edits it passes" if patch and patch.passes else "these edits fix some of the problems"


def item_text(item: ReportItem) -> str:
    """Render one finding for a terminal: severity, rule and place, then message, reason, proof and cure."""
    position = f" (line {item.line}, column {item.column})" if item.line is not None else ""
    reading = READING[item.direction].format(item.against_version)
    lines = [
        f"{item.severity.upper()} {item.rule} at {item.named_path or 'the whole schema'}{position}: {reading}",
        f"    {item.message}",
        f"    why: {item.why}" if item.why else "",
        f"    proof: {_proof(item.witness)}" if item.witness else "",
        f"    cure: {item.remedy}" if item.remedy else "",
    ]
    return "\n".join(filter(None, lines))


def lint_text(finding: LintFinding) -> str:
    """Render one piece of advice in one line."""
    position = f" (line {finding.line}, column {finding.column})" if finding.line is not None else ""
    where = f" at {finding.path}" if finding.path else ""
    return f"{finding.rule}{where}{position}: {finding.message}; cure: {finding.cure}{_more(finding)}"


def rename_text(rename: SuspectedRename) -> str:
    """Render a suspected rename for a terminal: the effect on readers, and what to do."""
    lines = [
        f"renamed? {rename.message} (score {rename.score:.2f})",
        f"    effect: {rename.effect}" if rename.effect else "",
        f"    cure: {rename.cure}" if rename.cure else "",
        f"    edit: {rename.edit.title}{_edit_verdict(rename)}" if rename.edit else "",
    ]
    return "\n".join(filter(None, lines))


def _rename_markdown(rename: SuspectedRename) -> str:
    lines = [f"- {plain(rename.message)} (score {rename.score:.2f})"]
    lines += [f"  {plain(rename.effect)}"] if rename.effect else []
    lines += [f"  Fix: {plain(rename.cure)}"] if rename.cure else []
    lines += [f"  Edit: {plain(rename.edit.title)}{_edit_verdict(rename)}"] if rename.edit else []
    return "  \n".join(lines)


def _edit_verdict(rename: SuspectedRename) -> str:
    verdicts = {None: "", True: " (with this edit the check passes)", False: " (the check fails with this edit alone)"}
    return verdicts[rename.passes]


def _lint_markdown(finding: LintFinding) -> str:
    where = f" at {code(finding.path)}" if finding.path else ""
    return f"- {finding.weight} {code(finding.rule)}{where}: {plain(finding.message)}. Fix: {plain(finding.cure)}{_more(finding)}"


def _more(finding: LintFinding) -> str:
    return f" ({finding.more} more places)" if finding.more else ""


def _proof(witness: Witness) -> str:
    if not witness.found:
        return f"none found: {witness.reason}"
    outcome = witness.error or f"is read as {_value(witness.read)}"
    part = f"only of the type at {witness.path}: " if witness.path else ""
    return f"{part}{_value(witness.datum)} (bytes {_short(witness.encoded) or 'none'}): {outcome}"


def _value(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "…"


def _level_table(assessment: Assessment) -> str:
    reports = assessment.strip.reports
    rows = [
        "| " + " | ".join(reports) + " |",
        "|" + "---|" * len(reports),
        "| " + " | ".join("passes" if report.is_compatible else "**fails**" for report in reports.values()) + " |",
    ]
    return "\n".join(rows)


def _matrix_table(assessment: Assessment) -> str:
    labels = {True: "yes", False: "**no**"}
    rows = ["| version | new reads old | old reads new |", "|---|---|---|"]
    rows += [
        f"| {row.version} | {labels[row.is_backward]} | {labels[row.is_forward]} |" for row in assessment.strip.matrix
    ]
    return "\n".join(rows)


def _item_markdown(item: ReportItem) -> str:
    position = f", line {item.line}, column {item.column}" if item.line is not None else ""
    reading = READING[item.direction].format(item.against_version)
    where = code(item.named_path) if item.named_path else "the whole schema"
    lines = [f"- **{item.severity} {code(item.rule)}** at {where}{position}: {reading}", f"  {plain(item.message)}"]
    lines += [f"  Why: {plain(item.why)}"] if item.why else []
    lines += [f"  Proof: {plain(_proof(item.witness))}"] if item.witness else []
    lines += [f"  Fix: {plain(item.remedy)}"] if item.remedy else []
    return "  \n".join(lines)


def _section(title: str, lines: list[str], between: str = "\n") -> list[str]:
    return [f"## {title}", between.join(lines)] if lines else []
