"""Two versions side by side: the changes as people decide on them, then the text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.compare.proof import EvidenceNote, PartingNote, Proof, RenameView
from dashboard.components.badges import ChangeKind, Verdict
from dashboard.components.diff import TextDiff
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Choice, Environment, Frame, Link, Problem
from dashboard.subjects.annotations import TagChip


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison; `subject` is its name where the two sides are of two subjects, else "".

    A text that isn't registered has the version 0 and a `label` that says what it is.
    """

    environment: Environment
    version: int
    url: str
    subject: str = ""
    format: str = ""
    schema_id: int | None = None
    registered_at: datetime | None = None
    registered_by: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCard:
    """One difference.

    `sentence` says it in words; `before` and `after` are the old and new value as text, None where there was none.
    `new_reads_old` and `old_reads_new` are the two directions' verdicts, `verdict` the worse. `why` and `remedy` are
    the rule's own sentences ("" where there is nothing to say). `example` is a value made up by the rules to show it,
    `evidence` what was seen in real data; of most changes there is none.
    `proofs` are data that show it, `parting` says where the established rules and the data part over it. Inside a
    request `comment_url` opens a discussion at the path, and `threads` leads to those that are there. `business` is the
    sentence in the words of those who know the data, "" where the schema's are asked for; `meaning` is the field's doc.
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
    example: str = ""
    evidence: tuple[EvidenceNote, ...] = ()
    parting: str = ""
    proofs: tuple[Proof, ...] = ()
    comment_url: str = ""
    threads: tuple[Link, ...] = ()
    business: str = ""
    meaning: str = ""
    tags: tuple[TagChip, ...] = ()


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
class ExtraChange:
    """A change beside the schema: `part` is what it is of (metadata, rules, a reference), `name` which one.

    `before` and `after` are None where there was or is none.
    """

    part: str
    name: str
    kind: ChangeKind
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class UnchangedField:
    """A field that both sides have alike."""

    path: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """What changed between two versions; used by the compare page and inside a promotion request.

    `sentence` is the summary in words, `headline` the verdict with roles ("Deploy consumers first", "Any order"),
    `verdict` the overall one. `same_meaning` says that only formatting or docs differ. `problem` stands where one side
    can't be parsed or the formats differ: the text is still shown. `partings` say where rules and data part over the
    whole pair, `renames` are suspected ones, `unchanged` what both sides have alike. `formatting_differs` says that the
    texts as submitted differ, `formatting_hidden` in how many more lines than are drawn, `unproved` why there are no proofs, `hidden_changes` how many cards aren't drawn,
    `hidden_renames` how many suspected renames. `extras` are changes of metadata, rules, references and of
    the settings of the two places.
    """

    old: ComparedSide
    new: ComparedSide
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
    partings: tuple[PartingNote, ...] = ()
    renames: tuple[RenameView, ...] = ()
    unchanged: tuple[UnchangedField, ...] = ()
    formatting_differs: bool = False
    formatting_hidden: int = 0
    unproved: str = ""
    hidden_changes: int = 0
    hidden_renames: int = 0
    extras: tuple[ExtraChange, ...] = ()

    @property
    def total(self) -> int:
        """How many changes there are."""
        return self.breaking + self.care + self.safe

    @property
    def tally(self) -> str:
        """How many changes of each verdict there are, the worst first; none is left out."""
        return listing(
            label
            for count, label in (
                (self.breaking, counted(self.breaking, "%(n)s breaking", "%(n)s breaking")),
                (self.care, counted(self.care, "%(n)s with care", "%(n)s with care")),
                (self.safe, counted(self.safe, "%(n)s safe", "%(n)s safe")),
            )
            if count
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceGroup:
    """The choices of one environment in a select."""

    label: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSwitch:
    """The two ways to compare texts: laid out (`formatted` False) or as submitted; the urls choose each."""

    as_submitted: bool
    laid_out_url: str
    submitted_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTools:
    """What can be done with the two texts: their lines wrapped or whole, and each of them to copy."""

    is_wrapped: bool
    wrapped_url: str
    unwrapped_url: str
    old_url: str
    new_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage:
    """`…/compare?from=3&to=prod:4&view=split`: `view` is "unified" or "split", the urls choose the other and swap sides.

    The choices are versions by registry, the reader's drafts and shapes seen in data. `drawn` is what the address says of
    how it is drawn. `other_subject` is the old side's subject where it is another one, `other_places` the registries to
    look for one in.
    `unchanged_shown` says whether the unchanged fields are listed; `unchanged_url` turns it around; `all_url` draws
    every card; `words_url` turns to business words and back. Where one side
    isn't there, `problem` says so and `other_text` is the text of the side `other_side`.
    """

    frame: Frame
    registry: str
    subject: str
    subject_url: str
    compare_url: str
    from_groups: tuple[ChoiceGroup, ...]
    to_groups: tuple[ChoiceGroup, ...]
    swap_url: str
    view: str = "unified"
    unified_url: str = ""
    split_url: str = ""
    text_switch: TextSwitch | None = None
    text_tools: TextTools | None = None
    drawn: tuple[tuple[str, str], ...] = ()
    other_places: tuple[Choice, ...] = ()
    other_subject: str = ""
    other_error: str = ""
    same_subject_url: str = ""
    markdown_url: str = ""
    simulate_url: str = ""
    unchanged_shown: bool = False
    unchanged_url: str = ""
    all_url: str = ""
    words_url: str = ""
    in_business_words: bool = False
    comparison: VersionComparison | None = None
    problem: Problem | None = None
    other_side: ComparedSide | None = None
    other_text: str = ""
