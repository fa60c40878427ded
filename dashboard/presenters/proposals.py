"""Proposed schemas: drafts, and the page on which one is written and checked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.comparison import Comparison
from dashboard.presenters.drift_parts import FindingOrigin
from dashboard.presenters.frame import Action, Choice, Environment, Field, Frame, Link, Problem
from dashboard.presenters.looks import Verdict
from dashboard.presenters.promotions import CheckRow, RequestRow
from dashboard.presenters.proof import EditView
from dashboard.presenters.report import LevelResult, LintGroup, ReferenceField, SyntaxProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRow:
    """A draft of the reader; nobody else sees it."""

    url: str
    subject: str
    environment: Environment
    format: str
    origin: str
    changed_at: datetime
    delete: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftList:
    """The reader's drafts, and proposals that are open."""

    frame: Frame
    rows: tuple[DraftRow, ...]
    open: tuple[RequestRow, ...]
    propose: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalResult:
    """What a check of the text came to: verdict in words, the checks of the plan, the versions it was held against."""

    verdict: Verdict
    headline: str
    sentence: str
    checks: tuple[CheckRow, ...] = ()
    report_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """A change in one line; `anchor` is where all is told of it."""

    verdict: Verdict
    path: str
    sentence: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalTold:
    """What a check of the text came to; `said` is all of it in a sentence, for those who hear the page.

    Either `syntax` or `problem` says why nothing more is told, or `parsed` that the text can be read. `equal` says that a
    version has this meaning already: nothing would be registered. `levels` are all seven. `comparison` is the text
    against the newest version, None where none is, and `changes` are the first of it. `fixes` are edits that the editor takes.
    """

    said: str
    syntax: SyntaxProblem | None = None
    problem: Problem | None = None
    parsed: str = ""
    equal: Link | None = None
    result: ProposalResult | None = None
    levels: tuple[LevelResult, ...] = ()
    lint: tuple[LintGroup, ...] = ()
    comparison: Comparison | None = None
    changes: tuple[ChangeLine, ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Edits that make a refused text pass, or part of it; the editor takes the whole text of `edit`.

    `passes` says whether the level would be passed then; None where that isn't known.
    """

    titles: tuple[str, ...]
    edit: EditView
    passes: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePart:
    """What is told beside the editor and below it while somebody writes; the names are those of the whole page."""

    told: ProposalTold | None
    check: Action
    action_url: str
    view: str
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage:
    """The editor; `told` is what a check came to, and `problem` what saving or submitting met.

    `seen` is the state of the draft that was read. `finding_number` is what the form sends on, `finding` what the reader
    may see of it. `again` is the request that it asks for again; `is_whole` draws all changes.
    """

    frame: Frame
    registry: Field
    subject: Field
    text: Field
    reason: Field
    format_choices: tuple[Choice, ...]
    references: tuple[ReferenceField, ...]
    action_url: str
    check: Action
    save: Action
    submit: Action
    draft: int | None = None
    seen: str = ""
    origin: str = ""
    finding: FindingOrigin | None = None
    finding_number: int | None = None
    delete: Action | None = None
    problem: Problem | None = None
    starts: tuple[Link, ...] = ()
    told: ProposalTold | None = None
    view: str = "unified"
    is_whole: bool = False
    again_of: int | None = None
    again: Link | None = None
