"""The page on which a promotion request is decided: everything that the decision needs, and who has said what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dashboard.compare.comparison import TextSwitch, VersionComparison
from dashboard.compatibility.presenters import DataEvidence
from dashboard.components.badges import Acknowledged, RequestState, ReviewState, Verdict
from dashboard.components.widgets import Action, Choice, Environment, Fact, Field, Frame, Link, Problem
from dashboard.promotions.plan import CheckRow, IdPlan, StepRow
from dashboard.registries.policy_forms import WhyNot
from dashboard.sources.presenters import FindingOrigin

#: clients that don't go on, of which a page has a row
MAX_CONSUMERS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMark:
    """A state on the way of a request; `mood` is "done", "now", "bad" or "" (still to come)."""

    state: RequestState
    mood: str = ""
    at: datetime | None = None
    who: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLink:
    """A schema that would be written; `url` shows its changes. `what` is "version 3 becomes version 2 of prod"."""

    subject: str
    what: str
    url: str
    verdict: Verdict
    chosen: bool = False
    open_threads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """What one person said. `counts` is False for a review of an earlier plan; `override` why checks may fail."""

    reviewer: str
    state: ReviewState
    comment: str = ""
    override: str = ""
    at: datetime | None = None
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRow:
    """A declared client that doesn't go on: what it does, who speaks for it, and who has acknowledged the request.

    `acknowledge` is None where that is done, or the request isn't planned any more; `take_back` is for whoever did it.
    """

    client: str
    subject: str
    state: Acknowledged
    does: str = ""
    contact: str = ""
    people: tuple[str, ...] = ()
    who: str = ""
    at: datetime | None = None
    note: str = ""
    acknowledge: Action | None = None
    take_back: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule of who has to approve: how many of them have, and who could."""

    sentence: str
    needed: int
    approvals: int
    who: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether enough of them have approved."""
        return self.approvals >= self.needed


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentRow:
    """One contribution to a discussion."""

    author: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """A discussion; `subject` and `path` name the field it hangs at, "" for the request as a whole.

    `place_url` leads to the change of that field, "" where the present plan has none.
    """

    number: int
    comments: tuple[CommentRow, ...]
    subject: str = ""
    path: str = ""
    place_url: str = ""
    resolved_by: str = ""
    resolved_at: datetime | None = None
    reply: Action | None = None
    switch: Action | None = None

    @property
    def anchor(self) -> str:
        """The thread's place in the page."""
        return f"thread-{self.number}"

    @property
    def where(self) -> str:
        """The field, or the subject where it is about all of that."""
        return self.path or self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelForm:
    """The labels of a request, each leading to the list of those that have it, and what replaces them."""

    labels: tuple[Link, ...]
    written: Field
    change: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentForm:
    """Where a discussion is begun; `subject` and `path` are the field it will hang at."""

    open: Action
    subject: str = ""
    path: str = ""
    whole_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A moment in a request's life; `mood` is "done", "bad", "now" or "" (still to come)."""

    sentence: str
    at: datetime | None = None
    who: str = ""
    comment: str = ""
    mood: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewForm:
    """Where a reviewer decides: one comment, three buttons. A button that isn't allowed carries its reason.

    `plan_hash` is sent along as the hidden field of that name: what was read is what gets approved. `override` is the
    reason for checks that fail and may be overridden, `typed` the subject's name where a closed environment breaks;
    each None where it isn't asked for. `why` are all the conditions that fail of an approval that isn't allowed.
    """

    approve: Action
    changes: Action
    reject: Action
    comment: Field
    plan_hash: str
    override: Field | None = None
    typed: Field | None = None
    why: tuple[WhyNot, ...] = ()

    @property
    def any_allowed(self) -> bool:
        """Whether the reader may press one of them."""
        return self.approve.allowed or self.changes.allowed or self.reject.allowed

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not, each reason once; what is said of the approval already is left out."""
        actions = (self.approve, self.changes, self.reject)
        sentences = {item.sentence for item in self.why}
        return tuple(dict.fromkeys(a.reason for a in actions if not a.allowed and a.reason not in sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedRow:
    """A request to the same environment that belongs with this one; `goes_first` says that this one waits for it."""

    number: int
    url: str
    subject: str
    state: RequestState
    sentence: str
    goes_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleForm:
    """When to apply; the time is UTC. `now` is what the field starts from; `why` are the conditions that fail."""

    schedule: Action
    value: str
    minimum: str
    why: tuple[WhyNot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReference:
    """What a new schema refers to; `url` is empty for a subject that the reader may not read."""

    name: str
    subject: str
    version: int
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewField:
    """A field of a new schema."""

    path: str
    type: str
    required: bool
    default: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchemaView:
    """A schema that the target has no version of: all of it is to be read."""

    text: str
    format: str
    references: tuple[NewReference, ...] = ()
    fields: tuple[NewField, ...] = ()
    fields_hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionPage:
    """One request. `headline` and `sentence` are the decision in words; `facts` its figures.

    `voided` is what took the force of earlier approvals. `items` are the schemas that would be written, of which the
    chosen one is compared with what the target has: `comparison` is None where there is nothing to compare with, and
    `comparison_note` says why. `nobody` says that nobody can approve, and the cure. `finding` is the one that it answers,
    for a reader who may see it. Actions that aren't relevant are None; `apply_why` are the conditions that fail of
    applying; `again` asks for the same once more; `glass` leads around what can't go on.
    """

    frame: Frame
    number: int
    state: RequestState
    subject: str
    subject_url: str
    what: str
    target: Environment
    requested_by: str
    requested_at: datetime
    verdict: Verdict
    headline: str
    sentence: str
    source: Environment | None = None
    more: int = 0
    reason: str = ""
    finding: FindingOrigin | None = None
    voided: str = ""
    facts: tuple[Fact, ...] = ()
    states: tuple[StateMark, ...] = ()
    items: tuple[ItemLink, ...] = ()
    items_title: str = ""
    items_hidden: int = 0
    comparison: VersionComparison | None = None
    comparison_note: str = ""
    new_schema: NewSchemaView | None = None
    source_findings: tuple[Link, ...] = ()
    source_note: str = ""
    replay: Action | None = None
    replay_topics: tuple[Choice, ...] = ()
    comparison_of: str = ""
    view: str = "unified"
    unified_url: str = ""
    split_url: str = ""
    text_switch: TextSwitch | None = None
    unchanged_shown: bool = False
    unchanged_url: str = ""
    all_url: str = ""
    words_url: str = ""
    in_business_words: bool = False
    checks: tuple[CheckRow, ...] = ()
    checked_at: datetime | None = None
    recheck: Action | None = None
    impact: tuple[CheckRow, ...] = ()
    consumers: tuple[ConsumerRow, ...] = ()
    plan: tuple[StepRow, ...] = ()
    plan_hash: str = ""
    ids: IdPlan | None = None
    reviews: tuple[ReviewRow, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    eligible: tuple[str, ...] = ()
    nobody: str = ""
    policy: tuple[str, ...] = ()
    review: ReviewForm | None = None
    submit: Action | None = None
    withdraw: Action | None = None
    apply: Action | None = None
    apply_why: tuple[WhyNot, ...] = ()
    schedule: ScheduleForm | None = None
    apply_at: datetime | None = None
    unschedule: Action | None = None
    resume: Action | None = None
    give_up: Action | None = None
    threads: tuple[ThreadView, ...] = ()
    comment: CommentForm | None = None
    timeline: tuple[TimelineEntry, ...] = ()
    problem: Problem | None = None
    packs: tuple[Link, ...] = ()
    linked: tuple[LinkedRow, ...] = ()
    again: Action | None = None
    glass: Link | None = None
    labels: LabelForm | None = None

    @property
    def open_threads(self) -> int:
        """Discussions that nobody has resolved."""
        return sum(1 for thread in self.threads if not thread.resolved_by)

    @property
    def consumers_shown(self) -> tuple[ConsumerRow, ...]:
        """The clients that don't go on, as many as the page has."""
        return self.consumers[:MAX_CONSUMERS]

    @property
    def consumers_hidden(self) -> int:
        """How many more there are."""
        return max(0, len(self.consumers) - MAX_CONSUMERS)

    @property
    def consumers_done(self) -> int:
        """How many of them were acknowledged."""
        return sum(row.state is Acknowledged.DONE for row in self.consumers)

    @property
    def failing(self) -> int:
        """Checks that fail."""
        return sum(1 for row in self.checks if row.check.code == "fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPage:
    """What messages at the target read as under a schema of a request; `problem` says why that isn't known.

    `topics` are those that it can be of, where there is a choice.
    """

    frame: Frame
    subject: str
    request_url: str
    again: Action | None = None
    topics: tuple[Choice, ...] = ()
    evidence: DataEvidence | None = None
    problem: Problem | None = None
