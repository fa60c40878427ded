"""Promotion requests: the list, the form, the page on which one is decided; and the board of environments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.comparison import Comparison
from dashboard.presenters.frame import Action, Environment, Fact, Field, Frame, Paging, Problem, Search
from dashboard.presenters.looks import Check, RequestState, ReviewState, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """A request in a list. `blocked` is one sentence on what it waits for, "" where nothing holds it."""

    number: int
    url: str
    subject: str
    version: int
    source: Environment
    target: Environment
    state: RequestState
    requested_by: str
    requested_at: datetime
    verdict: Verdict = Verdict.UNKNOWN
    reviews: str = ""
    blocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestList:
    """All requests, newest first."""

    frame: Frame
    search: Search
    rows: tuple[RequestRow, ...]
    paging: Paging
    request: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """A check of the plan with its outcome in a sentence."""

    check: Check
    name: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """A step of the plan in words ("Register orders-value version 3 as version 3 of prod"); `detail` below it."""

    sentence: str
    detail: str = ""
    needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """What one person said. `counts` is False for a review of an earlier plan."""

    reviewer: str
    state: ReviewState
    comment: str = ""
    at: datetime | None = None
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A moment in a request's life; `mood` is "done", "bad", "now" or "" (still to come)."""

    sentence: str
    at: datetime | None = None
    who: str = ""
    comment: str = ""
    mood: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionForm:
    """The form of a new request; `preview` is the plan's checks for the chosen version, () until one is chosen."""

    frame: Frame
    fields: tuple[Field, ...]
    submit: Action
    checks: tuple[CheckRow, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewForm:
    """Where a reviewer decides: one comment, two buttons. A button that isn't allowed carries its reason.

    `plan_hash` is sent along as the hidden field of that name: what was read is what gets approved.
    """

    approve: Action
    reject: Action
    comment: Field
    plan_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionPage:
    """One request. `headline` and `sentence` are the decision in words; `facts` its figures (ids, target's version).

    `comparison` is what the target has against what would come, None where the target has nothing: `comparison_note`
    then says so. `rule` is who has to review. Actions that aren't relevant are None.
    """

    frame: Frame
    number: int
    state: RequestState
    subject: str
    subject_url: str
    version: int
    source: Environment
    target: Environment
    requested_by: str
    requested_at: datetime
    verdict: Verdict
    headline: str
    sentence: str
    reason: str = ""
    facts: tuple[Fact, ...] = ()
    comparison: Comparison | None = None
    comparison_note: str = ""
    view: str = "unified"
    unified_url: str = ""
    split_url: str = ""
    checks: tuple[CheckRow, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    reviews: tuple[ReviewRow, ...] = ()
    rule: str = ""
    review: ReviewForm | None = None
    withdraw: Action | None = None
    apply: Action | None = None
    timeline: tuple[TimelineEntry, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCell:
    """A subject in an environment: its newest version there, or None. `note` says what differs, `tone` its colour."""

    environment: Environment
    version: int | None = None
    schema_id: int | None = None
    url: str = ""
    since: datetime | None = None
    note: str = ""
    behind: int = 0
    promote: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A subject across the environments, cells in their order."""

    subject: str
    url: str
    cells: tuple[BoardCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRule:
    """An environment's place and rule in words ("1 review by somebody else; changes by release only")."""

    environment: Environment
    rule: str
    subjects: int = 0
    level: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentBoard:
    """Subjects by environment."""

    frame: Frame
    rules: tuple[EnvironmentRule, ...]
    search: Search
    rows: tuple[BoardRow, ...]
    paging: Paging
