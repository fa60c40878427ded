"""What was found: its evidence, whom it concerns, mutes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.compare.comparison import VersionComparison
from dashboard.components.badges import FindingState, Severity, Shown, SourceBadge
from dashboard.components.diff import TextDiff
from dashboard.components.widgets import Action, Environment, Fact, Field, Frame, Link, Paging, Problem, SearchBox
from dashboard.promotions.plan import RequestRow
from dashboard.sources.coverage import Unreadable
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
