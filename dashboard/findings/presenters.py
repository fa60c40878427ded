"""What is scanned, each scan, and what was found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from dashboard.compare.comparison import VersionComparison
from dashboard.components.badges import FindingState, ScanState, Severity, SourceBadge
from dashboard.components.widgets import Action, Environment, Fact, Field, Frame, Link, Paging, Problem, SearchBox
from dashboard.promotions.plan import RequestRow
from dashboard.sources.presenters import (
    AdviceLine,
    Affected,
    BarTable,
    BeforeAfter,
    ClusterHead,
    Command,
    ConnectorView,
    FieldGroup,
    HistoryRow,
    SuspectedList,
    Tally,
    TopicTable,
    Unreadable,
)
from registry.promotions.selectors import DraftInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of an evidence table; `kind` is "text", "code" or "number" (aligned right)."""

    label: str
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """Facts as a table: one text a cell, in the order of the columns. `hidden_rows` are counted, not drawn.

    For a topic: partition, first and last offset, messages, times. For state: operator, variable, field, batch, rows.
    `spans` are drawn behind the rows, where rows have a time: left edge and width in percent of the whole time.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    hidden_rows: int = 0
    spans: tuple[tuple[int, int], ...] = ()
    spans_label: str = ""

    @property
    def drawn(self) -> tuple[tuple[tuple[tuple[Column, str], ...], tuple[int, int] | None], ...]:
        """Each row as columns with their texts, and its span."""
        spans = self.spans or (None,) * len(self.rows)
        return tuple(
            (tuple(zip(self.columns, row, strict=True)), span) for row, span in zip(self.rows, spans, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source in the list. `read` says what the last scan read ("5,120 messages of 12 partitions").

    `scope` says what of the cluster (patterns, or how many topics), `how` mode and schedule.
    """

    url: str
    kind: SourceBadge
    name: str
    environment: Environment
    state: ScanState
    scanned_at: datetime | None = None
    read: str = ""
    open_findings: int = 0
    findings_url: str = ""
    next_scan_at: datetime | None = None
    error: str = ""
    scan: Action | None = None
    context: str = ""
    scope: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroup:
    """The sources of a cluster, or those without one under a title."""

    title: str
    rows: tuple[SourceRow, ...]
    cluster: ClusterHead | None = None

    @property
    def shared(self) -> tuple[str, ...]:
        """The reasons for which several rows can't be scanned, or the only one: said once below them."""
        reasons = Counter(row.scan.reason for row in self.rows if row.scan and not row.scan.allowed)
        return tuple(reason for reason, rows in reasons.items() if rows > 1 or len(self.rows) == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceList:
    """The sources by cluster. `coverage` is one sentence ("214 of 230 topics scanned in 24 h; 3 unreadable: …").

    `narrow` says what somebody sees of them who may not read all.
    """

    frame: Frame
    groups: tuple[SourceGroup, ...]
    add: Action
    connect: Action | None = None
    coverage: str = ""
    narrow: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceForm:
    """The form that adds a source, or changes one (then `kinds` is empty): fields of the chosen `kind` in groups.

    `also` leads to another way of adding one.
    """

    frame: Frame
    kind: SourceBadge
    kinds: tuple[tuple[SourceBadge, str], ...]
    groups: tuple[FieldGroup, ...]
    submit: Action
    back_url: str
    lede: str = ""
    problem: Problem | None = None
    also: Link | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """A scan as it runs or ended; the page asks `url` for it again each second while `running`.

    `phase` says what it does now; `done` of `total` steps, `total` 0 where not known. Once done: `summary` in words
    ("5,120 messages of 12 partitions read, 3 findings"), `notes` on what was left out, `read` as tables. `problem`
    where it failed. `cancel` while it runs.
    """

    scan_id: int
    state: ScanState
    url: str
    running: bool
    phase: str = ""
    done: int = 0
    total: int = 0
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    queued_by: str = ""
    summary: str = ""
    read: tuple[EvidenceTable, ...] = ()
    notes: tuple[str, ...] = ()
    problem: Problem | None = None
    cancel: Action | None = None
    detector: int | None = None

    @property
    def percent(self) -> int | None:
        """How far, in percent; None where not known."""
        return min(100, self.done * 100 // self.total) if self.total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRow:
    """A past scan. `took` in words ("12 s")."""

    scan_id: int
    state: ScanState
    started_at: datetime | None
    queued_by: str
    took: str = ""
    read: str = ""
    error: str = ""
    url: str = ""
    shown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A finding in a list. `sentence` is the finding in words, `location` topic:partition@offset or operator/variable.

    `producer` is what points to the producer. `rebaselined` says that a newer detector alone brought it up. `resolving` leads to the open requests that answer it; `snooze` acknowledges it from where it stands, None where that
    isn't offered.
    """

    url: str
    severity: Severity
    state: FindingState
    sentence: str
    rule: str
    source: str
    source_kind: SourceBadge
    source_url: str
    location: str
    environment: Environment
    count: int
    first_seen: datetime
    last_seen: datetime
    number: int = 0
    subject: str = ""
    subject_url: str = ""
    assignee: str = ""
    hint: str = ""
    producer: str = ""
    muted: bool = False
    rebaselined: str = ""
    resolving: tuple[Link, ...] = ()
    snooze: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """One source: its facts, the scan that runs or ran last (or the one that was asked for), its topics and findings.

    `connector` for a Debezium source, `advice` for a registry; `older` says that the scan shown is not the newest.
    """

    frame: Frame
    kind: SourceBadge
    name: str
    environment: Environment
    state: ScanState
    facts: tuple[Fact, ...]
    scan: Action
    scan_id: int | None = None
    progress: ScanProgress | None = None
    scans: tuple[ScanRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    findings_url: str = ""
    next_scan_at: datetime | None = None
    problem: Problem | None = None
    actions: tuple[Action, ...] = ()
    topics: TopicTable | None = None
    connector: ConnectorView | None = None
    advice: tuple[AdviceLine, ...] = ()
    older: bool = False
    newest_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """The form that decides on several findings at once; not allowed, `reason` says why."""

    url: str
    allowed: bool
    reason: str
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingList:
    """Findings under their definition. `clean` says what was looked at and when where there is none, `next_scan_at` when

    it is looked at again. Where nothing was scanned `clean` is "" and the page says "not scanned" instead of showing green. The tallies are of open findings.
    """

    frame: Frame
    search: SearchBox
    rows: tuple[FindingRow, ...]
    paging: Paging
    clean: str = ""
    clean_at: datetime | None = None
    next_scan_at: datetime | None = None
    coverage: str = ""
    unreadable: tuple[Unreadable, ...] = ()
    problems: tuple[Problem, ...] = ()
    by_severity: tuple[Tally, ...] = ()
    by_kind: tuple[Tally, ...] = ()
    muted: int = 0
    muted_url: str = ""
    mutes_url: str = ""
    bulk: Bulk | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPage:
    """One finding with its evidence. `acknowledge` posts the field `reason`; None where it is closed already.

    The row's sentence says what is wrong, `remedies` are what to do, one sentence each; `related` are links (the subject,
    the schema id's owner, the compare page). `commands` fetch the messages. `assign` and `reopen` as `acknowledge`.
    `drafts` of the reader and `requests` were begun from it; `released` are the versions that came of them.
    `affected` are the clients and queries that it concerns; `before_after` is a state variable's value, of state findings.
    `observed` is the shape that the data have against what is declared, `observed_note` what is to say of it and
    `observed_all_url` the page with all of it.
    """

    frame: Frame
    finding: FindingRow
    remedies: tuple[str, ...]
    evidence: tuple[EvidenceTable, ...]
    facts: tuple[Fact, ...] = ()
    related: tuple[Link, ...] = ()
    acknowledge: Action | None = None
    reason: Field | None = None
    acknowledged_by: str = ""
    acknowledged_reason: str = ""
    resolved_at: datetime | None = None
    problem: Problem | None = None
    cause: str = ""
    suspected: SuspectedList | None = None
    until: Field | None = None
    acknowledged_until: datetime | None = None
    commands: tuple[Command, ...] = ()
    bars: tuple[BarTable, ...] = ()
    assign: Action | None = None
    assignee: Field | None = None
    reopen: Action | None = None
    mute: Action | None = None
    propose: Action | None = None
    drafts: tuple[DraftInfo, ...] = ()
    requests: tuple[RequestRow, ...] = ()
    released: tuple[Link, ...] = ()
    scan: Action | None = None
    history: tuple[HistoryRow, ...] = ()
    reopened: int = 0
    detector: int | None = None
    clean_scans: str = ""
    observed: VersionComparison | None = None
    observed_note: str = ""
    observed_all_url: str = ""
    affected: Affected | None = None
    before_after: BeforeAfter | None = None
