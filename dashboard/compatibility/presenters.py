"""The compatibility report of a proposed schema, before it is registered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from dashboard.compare.proof import EditView, EvidenceNote, PartingNote, Proof, RenameView
from dashboard.components.badges import LintWeight, Verdict, Weight
from dashboard.components.diff import lines_of
from dashboard.components.widgets import Problem
from dashboard.subjects.descriptions import TagChip


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
    rule: str
    path: str
    weight: Weight
    sentence: str
    versions: tuple[int, ...] = ()
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The verdict of the policy in force, beside the levels."""

    title: str
    verdict: Verdict
    word: str
    findings: tuple[PolicyFinding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintLocation:
    """Where a rule of advice isn't followed: the field's path, what is said of it, and where it stands in the text."""

    path: str
    sentence: str
    position: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintGroup:
    """The places of one rule; `more` counts those that aren't told, `cure` is that of all, empty where each has its own."""

    rule: str
    weight: LintWeight
    why: str
    locations: tuple[LintLocation, ...]
    cure: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAnswerRow:
    """A declared client of the subject, and whether it goes on with the schema; `version` is empty where it has none."""

    name: str
    verdict: Verdict
    does: str
    sentence: str
    version: str = ""
    contact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependantRow:
    """A subject that refers to this one, and what would become of it."""

    subject: str
    url: str
    version: int
    verdict: Verdict
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchView:
    """Edits that remove findings, one after the other; `passes` says whether the level would then be passed."""

    titles: tuple[str, ...]
    edit: EditView
    passes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """The messages of one writer: which versions it is, and what the proposed schema made of them."""

    writer: str
    messages: int
    read: int
    failed: int
    foreign: int
    first_failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """A replay of real messages with the proposed schema as the reader; `sentence` says what was looked at."""

    topic: str
    sentence: str
    rows: tuple[ReplayRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataEvidence:
    """What real data say beside the rules: of the last weeks' scans, and of a replay where one was asked for.

    `refusal` says why this person can't ask for a replay; empty where they can.
    """

    notes: tuple[EvidenceNote, ...]
    refusal: str = ""
    replay: ReplayResult | None = None
    problem: Problem | None = None


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
    clients: tuple[ClientAnswerRow, ...] = ()
    dependants: tuple[DependantRow, ...] = ()
    patch: PatchView | None = None
    first_version: bool = False
    identical_to: int | None = None
    identical_url: str = ""
    in_business_words: bool = False
    lint: tuple[LintGroup, ...] = ()
    no_lint: str = ""
