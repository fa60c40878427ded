"""Parts of the pages of drift: clusters, topics, a connector and its tables, the checklist, mutes, what is confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.components.badges import FindingState, ScanState, Severity, Shown, SourceBadge
from dashboard.components.diff import TextDiff
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Environment, Fact, Field, Frame, Link, Paging, Problem, SearchBox


class TableState(Shown):
    """How table, registered schema and events of a captured table stand to each other; UNKNOWN is never green."""

    IN_STEP = ("in_step", "ok", "circle-check", later("In sync"))
    DRIFT = ("drift", "breaks", "octagon-x", later("Differ"))
    UNKNOWN = ("unknown", "unknown", "circle-dashed", later("Unknown"))
    SHARED = ("shared", "unknown", "circle-slash", later("Not compared"))


class AdviceState(Shown):
    """Whether a piece of advice is followed."""

    YES = ("yes", "ok", "circle-check", later("Followed"))
    NO = ("no", "breaks", "octagon-x", later("Not followed"))
    NOT_KNOWN = ("not known", "unknown", "circle-question-mark", later("Unknown"))
    DOES_NOT_APPLY = ("does not apply", "unknown", "circle-slash", later("Not applicable"))


class TaskState(Shown):
    """The state of a connector or of one of its tasks, as Kafka Connect tells it."""

    RUNNING = ("RUNNING", "ok", "circle-check", later("Running"))
    PAUSED = ("PAUSED", "care", "clock", later("Paused"))
    FAILED = ("FAILED", "breaks", "octagon-x", later("Failed"))
    STOPPED = ("STOPPED", "care", "ban", later("Stopped"))
    UNASSIGNED = ("UNASSIGNED", "care", "hourglass", later("Not assigned"))
    RESTARTING = ("RESTARTING", "info", "loader", later("Restarting"))
    OTHER = ("", "unknown", "circle-dashed", later("Unknown"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedRow:
    """A client or a query that a finding concerns; `seen_at` is of a client that wasn't heard of for long."""

    name: str
    sentence: str
    url: str = ""
    contact: str = ""
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """Whom a finding concerns; `hidden` clients aren't named, `usage_url` leads to all of them."""

    clients: tuple[AffectedRow, ...] = ()
    queries: tuple[AffectedRow, ...] = ()
    hidden: int = 0
    usage_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHead:
    """A connected cluster above its sources. `security` in words; `ca` says whether it has an authority of its own."""

    name: str
    bootstrap: str
    security: str
    edit: Action
    remove: Action
    add: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A topic. `keeps` says what lets data go; `strategies` and `subjects` are per side, as found in the data.

    `read_to` is how far it was read, partition by partition; `problem` why it can't be read.
    """

    name: str
    partitions: int
    keeps: str
    messages: int
    read_to: str
    sides: tuple[TopicSide, ...] = ()
    checked_at: datetime | None = None
    read_at: datetime | None = None
    gone_at: datetime | None = None
    problem: str = ""
    open_findings: int = 0
    findings_url: str = ""
    state: ScanState = ScanState.NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSide:
    """What a topic's keys or values were found to be."""

    side: str
    strategies: str
    subjects: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTable:
    """The topics of a source, filtered and paged; `total` counts all that the cluster has."""

    search: SearchBox
    rows: tuple[TopicRow, ...]
    paging: Paging
    total: int
    patterns: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task of a connector; `trace` is the reason of its failure, as the worker gave it."""

    number: int
    state: TaskState
    worker: str
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTable:
    """A captured table: its identity in words, how its three sides stand, and what happened to its rows.

    `behind` says which side is behind and how; `operations` are labels with their counts.
    """

    name: str
    topic: str
    state: TableState
    identity: str
    identity_sentence: str
    published: bool
    refused: tuple[str, ...] = ()
    known_sides: str = ""
    behind: str = ""
    changes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    operations: tuple[tuple[str, int], ...] = ()
    row_filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorView:
    """A Debezium connector as its last scan saw it."""

    name: str
    state: TaskState
    tasks: tuple[TaskRow, ...]
    facts: tuple[Fact, ...]
    tables: tuple[CapturedTable, ...]
    slot: tuple[Fact, ...] = ()
    slot_care: str = ""
    not_understood: tuple[str, ...] = ()
    tables_left_out: int = 0
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceLine:
    """A line of the checklist for a registry."""

    sentence: str
    followed: AdviceState
    known_from: str
    findings: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldGroup:
    """Fields of a form under a heading; `folded` ones are shown on demand."""

    title: str
    fields: tuple[Field, ...]
    note: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterForm:
    """The form that connects or changes a cluster. `answered` is what a test of the connection found, in words."""

    frame: Frame
    groups: tuple[FieldGroup, ...]
    submit: Action
    test: Action
    secrets: tuple[str, ...] = ()
    answered: str = ""
    warning: str = ""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPage:
    """What is lost by a step that can't be taken back, and its button."""

    frame: Frame
    sentence: str
    losses: tuple[str, ...]
    stays: tuple[str, ...]
    confirm: Action
    back_url: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MuteRow:
    """A mute; `patterns` are labels with their pattern."""

    number: int
    environment: Environment
    patterns: tuple[tuple[str, str], ...]
    reason: str
    by: str
    since: datetime
    until: datetime | None
    end: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class MutePage:
    """The mutes, and the form of a new one. `preview` says how many findings it would cover; `covered` are some."""

    frame: Frame
    rows: tuple[MuteRow, ...]
    fields: tuple[Field, ...]
    submit: Action
    preview_url: str
    preview: str = ""
    covered: tuple[Link, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A decision on a finding, or what a scan made of it, from the audit."""

    at: datetime
    who: str
    what: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingOrigin:
    """The drift finding that a draft or a request answers, for a reader who may open it."""

    url: str
    sentence: str
    severity: Severity
    state: FindingState


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A state with how many are in it; `url` is the list of them, `current` whether that is what is shown."""

    look: Shown | SourceBadge
    count: int
    url: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value among others; `percent` of the largest, for the bar that is drawn beside the number.

    `marks` are the deployments of that hour.
    """

    label: str
    count: int
    percent: int
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BarTable:
    """Counts by label, as a table with bars."""

    title: str
    label: str
    bars: tuple[Bar, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to copy; `anchor` is its element."""

    label: str
    text: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A topic or source that couldn't be read, and why; `right` is a command that grants what is missing."""

    name: str
    reason: str
    url: str
    right: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspected:
    """Something that was done shortly before a finding began: how long before, in words, and where it is to be seen.

    `url` is empty where it is nowhere to be seen, `elsewhere` says that it leads out of the product.
    """

    before: str
    sentence: str
    url: str
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectedList:
    """When a finding began, and what was done in the hour before, the nearest first."""

    began: datetime
    rows: tuple[Suspected, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """The value of a state variable before and after a batch, as DDL line by line; `batch` None where it isn't known."""

    variable: str
    batch: int | None
    text: TextDiff
