"""What is scanned, each scan, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.presenters.frame import Action, Environment, Fact, Field, Frame, Link, Paging, Problem, Search
from dashboard.presenters.looks import FindingState, ScanState, Severity, SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of an evidence table; `kind` is "text", "code" or "number" (aligned right)."""

    label: str
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTable:
    """Facts as a table: one text a cell, in the order of the columns. `hidden_rows` are counted, not drawn.

    For a topic: partition, first and last offset, messages, times. For state: operator, variable, field, batch, rows.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    hidden_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source in the list. `read` says what the last scan read ("5,120 messages of 12 partitions")."""

    url: str
    kind: SourceKind
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceList:
    """All sources. `coverage` is one sentence ("4 of 5 sources scanned in the last 24 h; 1 can't be read: …")."""

    frame: Frame
    rows: tuple[SourceRow, ...]
    add: Action
    coverage: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceForm:
    """The form that adds a source: `fields` for the chosen `kind`; the other kind is a link."""

    frame: Frame
    kind: SourceKind
    kinds: tuple[tuple[SourceKind, str], ...]
    fields: tuple[Field, ...]
    submit: Action
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """A scan as it runs or ended; the page asks `url` for it again each second while `running`.

    `phase` says what it does now; `done` of `total` steps, `total` 0 where not known. Once done: `summary` in words
    ("5,120 messages of 12 partitions read, 3 findings"), `read` as tables. `problem` where it failed.
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
    problem: Problem | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A finding in a list. `sentence` is the finding in words, `location` topic:partition@offset or operator/variable."""

    url: str
    severity: Severity
    state: FindingState
    sentence: str
    rule: str
    source: str
    source_kind: SourceKind
    source_url: str
    location: str
    environment: Environment
    count: int
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """One source: its facts, the scan that runs or ran last, the scans before it, its open findings."""

    frame: Frame
    kind: SourceKind
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingList:
    """Findings under their definition. `clean` says what was looked at when there is none: where nothing was scanned

    it is "" and the page says "not scanned" instead of showing green.
    """

    frame: Frame
    search: Search
    rows: tuple[FindingRow, ...]
    paging: Paging
    clean: str = ""
    clean_at: datetime | None = None
    coverage: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPage:
    """One finding with its evidence. `acknowledge` posts the field `reason`; None where it is closed already.

    `what_it_means` explains the rule, `remedies` are what to do, one sentence each; `related` are links (the subject,
    the schema id's owner, the compare page).
    """

    frame: Frame
    finding: FindingRow
    what_it_means: str
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
