"""The page on which a promotion request is decided: everything that the decision needs, and who has said what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dashboard.compare.comparison import TextSwitch, VersionComparison
from dashboard.compatibility.presenters import DataEvidence
from dashboard.components.badges import Acknowledged, FindingState, RequestState, Severity, Verdict
from dashboard.components.widgets import Action, Choice, Environment, Fact, Frame, Link, Problem
from dashboard.promotions.forms import AcknowledgeForm, LabelsForm, ReplyForm, ReviewForm, ScheduleForm, ThreadForm
from dashboard.promotions.plan import IdPlan, StepRow
from dashboard.registries.policy_forms import WhyNot
from registry.formats.base import Reference
from registry.promotions.requests.linked_requests import LinkedRequest
from registry.promotions.requests.resubmit import RequestSummary
from registry.promotions.requests.schema_changes import NewSchema
from registry.promotions.reviews.affected_consumers import Consumer
from registry.promotions.selectors import AcknowledgementInfo, RequestInfo, ThreadInfo

#: clients that don't go on, of which a page has a row
MAX_CONSUMERS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingOrigin:
    """The drift finding that a draft or a request answers, for a reader who may open it."""

    url: str
    sentence: str
    severity: Severity
    state: FindingState


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
    word: str = ""
    chosen: bool = False
    open_threads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRow:
    """An affected client: what it does, and the acknowledgement of the present plan, or else of an earlier one.

    `form` acknowledges it, unless `refused` says why the reader may not; None if that is done, or the request isn't planned any
    more. `is_own` says that the reader acknowledged it and may withdraw that.
    """

    consumer: Consumer
    state: Acknowledged
    does: str
    acknowledgement: AcknowledgementInfo | None = None
    form: AcknowledgeForm | None = None
    refused: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """A discussion; `place_url` leads to the change of its field, "" if the present plan has none.

    `reply` is None for a request that can't be discussed any more, and for one as it was. `switch_refused` says why the reader may
    not resolve or reopen it.
    """

    info: ThreadInfo
    place_url: str = ""
    reply: ReplyForm | None = None
    switch_refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """A moment in a request's life; `mood` is "done", "bad", "now" or "" (still to come)."""

    sentence: str
    at: datetime | None = None
    who: str = ""
    comment: str = ""
    mood: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPanel:
    """Where a reviewer decides: one comment, three buttons. A button that isn't allowed carries its reason.

    `why` are all the conditions that fail of an approval that isn't allowed.
    """

    form: ReviewForm
    approve: Action
    changes: Action
    reject: Action
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
    """A request to the same environment that belongs with this one, and why."""

    request: LinkedRequest | RequestSummary
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchemaView:
    """A schema that the target has no version of: all of it is to be read.

    The address of a reference is "" for a subject that the reader may not read.
    """

    schema: NewSchema
    references: tuple[tuple[Reference, str], ...] = ()
    fields_hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionPage:
    """One request. `headline` and `sentence` are the decision in words; `facts` its figures.

    `voided` is what took the force of earlier approvals or of the plan. `items` are the schemas that would be written, of which the
    chosen one is compared with what the target has: `comparison` is None where there is nothing to compare with, and
    `comparison_note` says why. `finding` is the one that it answers, for a reader who may see it. Actions and forms that aren't
    relevant are None; `apply_why` and `schedule_why` are the conditions that fail; `again` asks for the same once more; `glass`
    says that break-glass leads around what can't go on. `is_past` is for the page as it was, `here_url` is its address as it is
    drawn. `refused` is what a sent form was refused for.
    """

    frame: Frame
    info: RequestInfo
    target: Environment
    verdict: Verdict
    headline: str
    sentence: str
    here_url: str
    source: Environment | None = None
    is_past: bool = False
    refused: Problem | None = None
    finding: FindingOrigin | None = None
    voided: str = ""
    voided_title: str = ""
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
    checks: tuple[Mapping[str, Any], ...] = ()
    recheck: Action | None = None
    impact: tuple[Mapping[str, Any], ...] = ()
    consumers: tuple[ConsumerRow, ...] = ()
    plan: tuple[StepRow, ...] = ()
    ids: IdPlan | None = None
    policy: tuple[str, ...] = ()
    review: ReviewPanel | None = None
    submit: Action | None = None
    withdraw: Action | None = None
    apply: Action | None = None
    apply_why: tuple[WhyNot, ...] = ()
    schedule: ScheduleForm | None = None
    schedule_why: tuple[WhyNot, ...] = ()
    unschedule: Action | None = None
    resume: Action | None = None
    give_up: Action | None = None
    threads: tuple[ThreadRow, ...] = ()
    comment: ThreadForm | None = None
    comment_refused: str = ""
    timeline: tuple[TimelineEntry, ...] = ()
    problem: Problem | None = None
    linked: tuple[LinkedRow, ...] = ()
    again: Action | None = None
    glass: bool = False
    labels: LabelsForm | None = None
    labels_refused: str = ""

    @property
    def open_threads(self) -> int:
        """Discussions that nobody has resolved."""
        return sum(row.info.is_open for row in self.threads)

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
        return sum(check["verdict"] == "fail" for check in self.checks)


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
