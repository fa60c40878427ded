"""The values that the template of a request's page reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dashboard.compare.comparison import TextSwitch, VersionComparison
from dashboard.compatibility.presenters import DataEvidence
from dashboard.components.badges import Acknowledged, FindingState, RequestState, Severity, Verdict
from dashboard.components.diff import TextDiff
from dashboard.components.widgets import Action, Choice, Environment, Fact, Frame, Link, Problem
from dashboard.promotions.forms import AcknowledgeForm, LabelsForm, ReplyForm, ReviewForm, ScheduleForm, ThreadForm
from dashboard.promotions.plan import IdPlan, StepRow
from dashboard.registries.policy_forms import WhyNot
from registry.formats.base import Reference
from registry.promotions.plan.types import PlanStep
from registry.promotions.requests.linked_requests import LinkedRequest
from registry.promotions.requests.resubmit import RequestSummary
from registry.promotions.requests.schema_changes import NewSchema
from registry.promotions.reviews.affected_consumers import Consumer
from registry.promotions.selectors import AcknowledgementInfo, RequestInfo, ThreadInfo

#: affected clients shown on a page
MAX_CONSUMERS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingOrigin:
    """The finding that a draft or a request answers, for a reader who may read it."""

    url: str
    sentence: str
    severity: Severity
    state: FindingState


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMark:
    """A state in a request's progress; `mood` is "done", "now", "bad" or "" (expected)."""

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
    """An affected client: what it does, and its acknowledgement for the present plan, else for an earlier one.

    `form` acknowledges it, unless `refused` says why the reader may not; None if it is acknowledged, or if the request
    no longer needs it. `is_own` says that the reader acknowledged it and may withdraw that.
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
    """A discussion; `place_url` links to the change of its field, "" if the present plan has none.

    `change` is the suggested one, which a reader who `can_take` it takes. `reply` is None for a closed request and in the
    past. `switch_refused` says why the reader may not resolve or reopen it.
    """

    info: ThreadInfo
    place_url: str = ""
    change: TextDiff | None = None
    can_take: bool = False
    reply: ReplyForm | None = None
    switch_refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """An entry of a request's history; `mood` is "done", "bad", "now" or "" (expected)."""

    sentence: str
    at: datetime | None = None
    who: str = ""
    comment: str = ""
    mood: str = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPanel:
    """A reviewer's form: one comment, three buttons. A disabled button has its reason.

    `why` are all failing conditions of an approval.
    """

    form: ReviewForm
    approve: Action
    changes: Action
    reject: Action
    why: tuple[WhyNot, ...] = ()

    @property
    def any_allowed(self) -> bool:
        """Whether a button is enabled."""
        return self.approve.allowed or self.changes.allowed or self.reject.allowed

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of disabled buttons without duplicates, except those already given for the approval."""
        actions = (self.approve, self.changes, self.reject)
        sentences = {item.sentence for item in self.why}
        return tuple(dict.fromkeys(a.reason for a in actions if not a.allowed and a.reason not in sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedRow:
    """A linked request to the same environment, and why it is linked."""

    request: LinkedRequest | RequestSummary
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchemaView:
    """A schema without a version in the target, shown in full.

    The URL of a reference is "" for a subject that the reader may not read.
    """

    schema: NewSchema
    references: tuple[tuple[Reference, str], ...] = ()
    fields_hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The schemas that would be written, the selected one, and its comparison or the reason why there is none."""

    items: tuple[ItemLink, ...] = ()
    hidden: int = 0
    chosen: PlanStep | None = None
    comparison: VersionComparison | None = None
    note: str = ""
    new: NewSchemaView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionPage:
    """The page of a request. `headline` and `sentence` are the decision in words; `facts` its figures.

    `voided` says what voided earlier approvals or the plan. `finding` is the finding that it answers, if the reader may
    see it. Actions and forms that don't apply are None; `apply_why` and `schedule_why` are failing conditions; `again`
    resubmits the request; `glass` says that break-glass can bypass a blocked request. `is_past` says that the page shows
    the past; `here_url` is its URL with the display options. `refused` is the reason why a sent form was refused.
    `channels` are where the people of the subjects talk.
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
    changes: Changes = Changes()
    items_title: str = ""
    source_findings: tuple[Link, ...] = ()
    source_note: str = ""
    replay: Action | None = None
    replay_topics: tuple[Choice, ...] = ()
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
    restarts: tuple[Link, ...] = ()
    consumers: tuple[ConsumerRow, ...] = ()
    channels: tuple[Link, ...] = ()
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
        """The number of unresolved discussions."""
        return sum(row.info.is_open for row in self.threads)

    @property
    def consumers_shown(self) -> tuple[ConsumerRow, ...]:
        """The affected clients on the page."""
        return self.consumers[:MAX_CONSUMERS]

    @property
    def consumers_hidden(self) -> int:
        """The number of affected clients that aren't shown."""
        return max(0, len(self.consumers) - MAX_CONSUMERS)

    @property
    def consumers_done(self) -> int:
        """The number of acknowledged clients."""
        return sum(row.state is Acknowledged.DONE for row in self.consumers)

    @property
    def failing(self) -> int:
        """The number of failing checks."""
        return sum(check["verdict"] == "fail" for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPage:
    """The result of reading the target's messages with a request's schema, or the `problem` that prevented it.

    `topics` are the topics to choose from, if there are several.
    """

    frame: Frame
    subject: str
    request_url: str
    again: Action | None = None
    topics: tuple[Choice, ...] = ()
    evidence: DataEvidence | None = None
    problem: Problem | None = None
