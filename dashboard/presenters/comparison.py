"""Two versions side by side: the changes as people decide on them, then the text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Choice, Environment, Frame, Problem
from dashboard.presenters.looks import ChangeKind, Verdict
from dashboard.presenters.text_diff import TextDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison."""

    environment: Environment
    version: int
    url: str
    schema_id: int | None = None
    registered_at: datetime | None = None
    registered_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCard:
    """One difference.

    `sentence` says it in words; `before` and `after` are the old and new value as text, None where there was none.
    `new_reads_old` and `old_reads_new` are the two directions' verdicts, `verdict` the worse. `why` and `remedy` are
    the rule's own sentences ("" where there is nothing to say). `evidence` is what the data says, "" where unknown.
    """

    anchor: str
    rule: str
    kind: ChangeKind
    path: str
    sentence: str
    verdict: Verdict
    new_reads_old: Verdict
    old_reads_new: Verdict
    before: str | None = None
    after: str | None = None
    why: str = ""
    remedy: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGroup:
    """The changes of one record (or enum), worst first; `name` is its full name."""

    name: str
    cards: tuple[ChangeCard, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionSummary:
    """One direction over all changes: "New reader, old data", who that is, its verdict and how many changes fail."""

    label: str
    who: str
    verdict: Verdict
    failing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What changed between two versions; used by the compare page and inside a promotion request.

    `sentence` is the summary in words, `headline` the verdict with roles ("Deploy consumers first", "Any order"),
    `verdict` the overall one. `same_meaning` says that only formatting or docs differ. `problem` stands where one side
    can't be parsed or the formats differ: the text is still shown.
    """

    old: Side
    new: Side
    verdict: Verdict
    headline: str
    sentence: str
    directions: tuple[DirectionSummary, ...] = ()
    groups: tuple[ChangeGroup, ...] = ()
    breaking: int = 0
    care: int = 0
    safe: int = 0
    text: TextDiff | None = None
    same_meaning: bool = False
    problem: Problem | None = None

    @property
    def total(self) -> int:
        """How many changes there are."""
        return self.breaking + self.care + self.safe


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage:
    """`…/compare?from=3&to=4&view=split`: `view` is "unified" or "split", the urls choose the other and swap sides."""

    frame: Frame
    registry: str
    subject: str
    subject_url: str
    compare_url: str
    from_choices: tuple[Choice, ...]
    to_choices: tuple[Choice, ...]
    swap_url: str
    view: str = "unified"
    unified_url: str = ""
    split_url: str = ""
    comparison: Comparison | None = None
    problem: Problem | None = None
