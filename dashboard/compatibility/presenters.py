"""The compatibility report of a proposed schema, before it is registered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from dashboard.compare.proof import EditView, PartingNote, Proof, RenameView
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
    """One of the seven levels: would the schema pass it? `configured` marks the one in force."""

    level: str
    verdict: Verdict
    configured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """One version in one direction; `failures` counts the findings; `checked` False where the level doesn't ask."""

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
    """An incompatibility (or a warning): where, against which versions, in which direction, why, and what to do.

    `direction` is "New reader, old data", "Old reader, new data" or "Both directions"; `place` where it stands in the
    text that was checked ("line 3, column 7"), "" where unknown. `business`, `meaning` and `tags` are as on a card of a
    comparison.
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
    parting: str = ""
    proof: Proof | None = None
    business: str = ""
    meaning: str = ""
    tags: tuple[TagChip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFinding:
    """What a policy says of the schema; `versions` is empty where it is of the new schema alone."""

    anchor: str
    item: PolicyItem
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The verdict of the policy in force, beside the levels."""

    title: str
    verdict: Verdict
    word: str
    findings: tuple[PolicyFinding, ...]


@dataclass(frozen=True, slots=True)
class LintGroup:
    """The places of one rule."""

    places: tuple[LintFinding, ...]

    @property
    def rule(self) -> LintFinding:
        """What is the same at all of them: `rule`, `weight` and `why`."""
        return self.places[0]

    @property
    def cure(self) -> str:
        """That of all, empty where each has its own."""
        cures = {item.cure for item in self.places}
        return cures.pop() if len(cures) == 1 else ""

    @property
    def more(self) -> int:
        """How many places aren't told."""
        return sum(item.more for item in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataEvidence:
    """What real data say beside the rules: of the last weeks' scans, and of a replay where one was asked for.

    `refusal` says why this person can't ask for a replay; empty where they can.
    """

    notes: tuple[EvidenceLine, ...]
    refusal: str = ""
    replay: ReplayReport | None = None
    problem: Problem | None = None

    @property
    def replay_sentence(self) -> str:
        """How many messages the replay read, and what it left out."""
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
    """A line of the text around a syntax error; `caret` is the column (from 1) on the line at fault, else None."""

    number: int
    text: str
    caret: int | None = None

    @property
    def pointer(self) -> str:
        """Spaces up to the caret, tabs kept, and the caret."""
        if self.caret is None:
            return ""
        return "".join("\t" if char == "\t" else " " for char in self.text[: self.caret - 1]) + "^"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxProblem:
    """A text that doesn't parse; `line` and `column` count from 1, None where unknown."""

    message: str
    line: int | None = None
    column: int | None = None
    snippet: tuple[SnippetLine, ...] = ()

    @property
    def title(self) -> str:
        """That it doesn't parse, and where."""
        position = {"line": self.line, "column": self.column}
        if self.line and self.column:
            return gettext("The schema can’t be parsed: line %(line)s, column %(column)s") % position
        return (
            gettext("The schema can’t be parsed: line %(line)s") % position
            if self.line
            else gettext("The schema can’t be parsed")
        )


def snippet(text: str, line: int, column: int | None, *, around: int = 2, width: int = 160) -> tuple[SnippetLine, ...]:
    """The lines around a place in a text, long lines cut to a window of `width` characters around the column."""
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
    """What the check came to.

    `headline` says the order of upgrade, `sentence` the verdict in words. `findings` decide under the level in force,
    `beyond` are those that it doesn't ask for; worst first, `hidden_findings` and `hidden_beyond` of each aren't drawn, nor
    `hidden_renames` of the pairs that look renamed.
    `first_version` says there was nothing to compare with;
    `identical_to` a version that says the same, None if none. `compared_with_data` counts the pairs of version and
    direction of which the data were asked.
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
    partings: tuple[PartingNote, ...] = ()
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
