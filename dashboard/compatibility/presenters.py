"""The values that the template of a compatibility report reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.utils.translation import gettext

from dashboard.compare.proof import DisagreementNote, EditView, Proof, RenameView
from dashboard.components.badges import Verdict
from dashboard.components.diff import lines_of
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Problem
from dashboard.subjects.descriptions import TagChip
from registry.drift.replay.evidence import EvidenceLine
from registry.drift.replay.schema_replay import ReplayReport
from registry.formats.assessment import ClientAnswer, Dependant
from registry.formats.lint import LintFinding
from registry.formats.policies import PolicyItem
from registry.formats.suggested_edits import Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """The result for one of the seven levels; `configured` marks the one in force."""

    level: str
    verdict: Verdict
    configured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """A version in one direction; `failures` counts the findings; `is_asked` is False if the level doesn't check it."""

    verdict: Verdict
    failures: int = 0
    is_asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """An existing version against the proposed schema, in both directions."""

    version: int
    url: str
    new_reads_old: MatrixCell
    old_reads_new: MatrixCell
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFinding:
    """An incompatibility or warning: its place, versions, direction, reason and remedy.

    `direction` is "New reader, old data", "Old reader, new data" or "Both directions"; `position` is the place in the
    checked text ("line 3, column 7"), "" if unknown. `business`, `meaning` and `tags` are as on a comparison's card.
    """

    anchor: str
    rule: str
    path: str
    verdict: Verdict
    sentence: str
    direction: str
    versions: tuple[int, ...]
    position: str = ""
    before: str | None = None
    after: str | None = None
    why: str = ""
    remedy: str = ""
    disagreement: str = ""
    proof: Proof | None = None
    business: str = ""
    meaning: str = ""
    tags: tuple[TagChip, ...] = ()


#: named places of the folded findings of a group
NAMED_PLACES: Final = 5


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """A finding, and the others that differ from it only in their place."""

    first: ReportFinding
    others: tuple[ReportFinding, ...] = ()

    @property
    def paths(self) -> list[str]:
        """The first places of the others."""
        paths = [item.path for item in self.others[:NAMED_PLACES]]
        return [*paths, "…"] if len(self.others) > NAMED_PLACES else paths


#: fewer findings that differ only in their place are shown one by one
LEAST_GROUPED: Final = 3


def finding_groups(findings: Sequence[ReportFinding]) -> Iterator[FindingGroup]:
    """Yield the findings in their order; those that differ only in their place are one group."""
    groups: dict[ReportFinding, list[ReportFinding]] = {}
    for item in findings:
        key = replace(item, anchor="", path="", position="", proof=None, business="", meaning="", tags=())
        groups.setdefault(key, []).append(item)
    for first, *others in groups.values():
        if len(others) + 1 < LEAST_GROUPED:
            yield from map(FindingGroup, (first, *others))
        else:
            yield FindingGroup(first, tuple(others))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFinding:
    """A policy's finding; `versions` is empty if it is about the new schema alone."""

    anchor: str
    item: PolicyItem
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The verdict of the policy in force, in addition to the levels."""

    title: str
    verdict: Verdict
    word: str
    findings: tuple[PolicyFinding, ...]


@dataclass(frozen=True, slots=True)
class LintGroup:
    """The findings of one lint rule."""

    places: tuple[LintFinding, ...]

    @property
    def rule(self) -> LintFinding:
        """The common values: `rule`, `weight` and `why`."""
        return self.places[0]

    @property
    def cure(self) -> str:
        """The common remedy; empty if they differ."""
        cures = {item.cure for item in self.places}
        return cures.pop() if len(cures) == 1 else ""

    @property
    def more(self) -> int:
        """The number of unlisted places."""
        return sum(item.more for item in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataEvidence:
    """Evidence from real data in addition to the rules: of recent scans, and of a replay if requested.

    `refusal` says why this person can't request a replay; empty if they can.
    """

    notes: tuple[EvidenceLine, ...]
    refusal: str = ""
    replay: ReplayReport | None = None
    problem: Problem | None = None

    @property
    def replay_sentence(self) -> str:
        """The number of messages that the replay read, and of those left out."""
        report = self.replay
        if report is None:
            return ""
        left = (
            (
                report.unreadable,
                counted(
                    report.unreadable, "%(n)s invalid under its own schema", "%(n)s invalid under their own schema"
                ),
            ),
            (report.no_value, counted(report.no_value, "%(n)s without a value", "%(n)s without a value")),
            (report.unframed, counted(report.unframed, "%(n)s without a schema id", "%(n)s without a schema id")),
            (
                report.unknown,
                counted(
                    report.unknown,
                    "%(n)s with an id of no version of the subject",
                    "%(n)s with ids of no version of the subject",
                ),
            ),
            (report.too_large, counted(report.too_large, "%(n)s too large", "%(n)s too large")),
            (report.not_tried, counted(report.not_tried, "%(n)s not tested in time", "%(n)s not tested in time")),
        )
        apart = listing(sentence for count, sentence in left if count)
        sentence = gettext("Read the newest messages: %(looked_at)s in %(seconds)s s") % {
            "looked_at": f"{report.looked_at:,}",
            "seconds": f"{report.seconds:.1f}",
        }
        return gettext("%(said)s: %(apart)s.") % {"said": sentence, "apart": apart} if apart else f"{sentence}."


@dataclass(frozen=True, slots=True, kw_only=True)
class SnippetLine:
    """A line of the text around a syntax error; `caret` is the error's column (from 1) on its line, else None."""

    number: int
    text: str
    caret: int | None = None

    @property
    def pointer(self) -> str:
        """Spaces up to the caret, with tabs kept, and the caret."""
        if self.caret is None:
            return ""
        return "".join("\t" if char == "\t" else " " for char in self.text[: self.caret - 1]) + "^"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxProblem:
    """A syntax error in a text; `line` and `column` count from 1, None if unknown."""

    message: str
    line: int | None = None
    column: int | None = None
    snippet: tuple[SnippetLine, ...] = ()

    @property
    def title(self) -> str:
        """The title with the position."""
        position = {"line": self.line, "column": self.column}
        if self.line and self.column:
            return gettext("The schema can’t be parsed: line %(line)s, column %(column)s") % position
        return (
            gettext("The schema can’t be parsed: line %(line)s") % position
            if self.line
            else gettext("The schema can’t be parsed")
        )


def snippet(text: str, line: int, column: int | None, *, around: int = 2, width: int = 160) -> tuple[SnippetLine, ...]:
    """Return the lines around a place in a text; long lines are cut to `width` characters around the column."""
    lines = lines_of(text)
    start = max(0, line - 1 - around)
    shown = []
    offset = max(0, (column or 1) - 1 - width // 2)
    for index, content in enumerate(lines[start : line + around], start=start + 1):
        cut = content[offset : offset + width]
        caret = column - offset if index == line and column is not None else None
        shown.append(SnippetLine(number=index, text=cut, caret=caret))
    return tuple(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    """The result of the check.

    `headline` is the deployment order, `sentence` the verdict in words. `findings` decide under the level in force,
    `beyond` are those that it doesn't check; both are worst first. `hidden_findings`, `hidden_beyond` and
    `hidden_renames` count the omitted ones. `first_version` says that there was nothing to compare with; `identical_to`
    is a version with the same meaning, or None. `compared_with_data` counts the pairs of version and direction that
    were tested on data.
    """

    verdict: Verdict
    headline: str
    sentence: str
    level: str
    checked_at: datetime
    checker: str
    levels: tuple[LevelResult, ...]
    profile: str = ""
    matrix: tuple[MatrixRow, ...] = ()
    findings: tuple[ReportFinding, ...] = ()
    beyond: tuple[ReportFinding, ...] = ()
    hidden_findings: int = 0
    hidden_beyond: int = 0
    disagreements: tuple[DisagreementNote, ...] = ()
    compared_with_data: int = 0
    policy: PolicyResult | None = None
    renames: tuple[RenameView, ...] = ()
    hidden_renames: int = 0
    clients: tuple[ClientAnswer, ...] = ()
    dependants: tuple[Dependant, ...] = ()
    patch: Patch | None = None
    patch_edit: EditView | None = None
    first_version: bool = False
    identical_to: int | None = None
    identical_url: str = ""
    in_business_words: bool = False
    lint: tuple[LintGroup, ...] = ()
    no_lint: str = ""

    @property
    def finding_groups(self) -> tuple[FindingGroup, ...]:
        """The findings that decide, grouped."""
        return tuple(finding_groups(self.findings))

    @property
    def beyond_groups(self) -> tuple[FindingGroup, ...]:
        """The findings that the level doesn't check, grouped."""
        return tuple(finding_groups(self.beyond))
