"""Sources, scans and findings, for pages and programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When

from registry.drift.models import SEVERITIES, Finding, Scan, Source
from registry.errors import FindingNotFound, SourceNotFound

WORST_FIRST = Case(
    *(When(severity=severity, then=Value(rank)) for rank, severity in enumerate(SEVERITIES)),
    output_field=IntegerField(),
)


@dataclass(frozen=True)
class ScanInfo:
    """A scan. `read` is None until it is done; `read["nothing"]` is true where there was nothing to read."""

    id: int
    source_id: int
    state: str
    queued_at: datetime
    queued_by: str
    started_at: datetime | None
    finished_at: datetime | None
    phase: str
    progress_done: int
    progress_total: int
    read: dict[str, Any] | None
    error: str

    @property
    def unfinished(self) -> bool:
        """Whether the page should look again."""
        return self.state in ("queued", "running")

    @property
    def verdict(self) -> str:
        """`queued`, `running`, `scanned`, `not scanned`, `failed` or `cancelled`: reading nothing is never green."""
        if self.state != "done":
            return self.state
        return "not scanned" if not self.read or self.read.get("nothing") else "scanned"


@dataclass(frozen=True)
class SourceInfo:
    """A source with its last scan and the number of its open findings."""

    id: int
    registry: str
    kind: str
    name: str
    bootstrap: str
    every_seconds: int | None
    next_scan_at: datetime | None
    open_findings: int
    last_scan: ScanInfo | None


@dataclass(frozen=True)
class FindingInfo:
    """A finding with its evidence."""

    id: int
    source_id: int
    source_name: str
    source_kind: str
    registry: str
    rule: str
    severity: str
    sentence: str
    remedy: str
    location: str
    subject: str
    evidence: dict[str, Any]
    state: str
    count: int
    first_seen: datetime
    last_seen: datetime
    acknowledged_by: str
    acknowledged_reason: str
    resolved_at: datetime | None


def list_sources() -> list[SourceInfo]:
    """All sources, those with open findings first; three queries."""
    rows = list(_sources().order_by(F("open_count").desc(), "kind", "name"))
    scans = Scan.objects.in_bulk([row.last_scan_id for row in rows if row.last_scan_id])
    return [_source_info(row, scans.get(row.last_scan_id)) for row in rows]


def get_source(source_id: int) -> SourceInfo:
    """One source. Raises SourceNotFound."""
    row = _sources().filter(pk=source_id).first()
    if row is None:
        raise SourceNotFound(f"There is no source {source_id}.", source=source_id)
    return _source_info(row, Scan.objects.filter(pk=row.last_scan_id).first())


def list_scans(source_id: int, *, limit: int = 20) -> list[ScanInfo]:
    """The newest scans of a source first."""
    return [_scan_info(row) for row in Scan.objects.filter(source_id=source_id).order_by("-id")[:limit]]


def list_findings(
    *,
    state: str = "open",
    severity: str = "",
    kind: str = "",
    source_id: int | None = None,
    text: str = "",
    limit: int = 200,
) -> list[FindingInfo]:
    """Findings, worst and newest first; an empty filter means all. `text` is looked for in words, place and subject."""
    rows = Finding.objects.select_related("source__registry")
    for word in text.split():
        rows = rows.filter(
            Q(sentence__icontains=word)
            | Q(location__icontains=word)
            | Q(subject_name__icontains=word)
            | Q(rule__icontains=word)
        )
    filters = {"state": state, "severity": severity, "source__kind": kind, "source_id": source_id}
    rows = rows.filter(**{name: value for name, value in filters.items() if value})
    return [_finding_info(row) for row in rows.order_by(WORST_FIRST, "-last_seen", "-id")[:limit]]


def open_findings_by_subject(registry_name: str) -> dict[str, int]:
    """Number of open findings that concern a subject of a registry, by its qualified name."""
    rows = Finding.objects.filter(source__registry__name=registry_name, state="open").exclude(subject_name="")
    return dict(rows.values_list("subject_name").annotate(number=Count("pk")))


def get_scan(scan_id: int) -> ScanInfo:
    """One scan. Raises SourceNotFound."""
    row = Scan.objects.filter(pk=scan_id).first()
    if row is None:
        raise SourceNotFound(f"There is no scan {scan_id}.", scan=scan_id)
    return _scan_info(row)


def count_findings() -> dict[str, int]:
    """Number of findings by state."""
    rows = Finding.objects.values_list("state").annotate(number=Count("pk"))
    return dict(rows)


def get_finding(finding_id: int) -> FindingInfo:
    """One finding. Raises FindingNotFound."""
    row = Finding.objects.select_related("source__registry").filter(pk=finding_id).first()
    if row is None:
        raise FindingNotFound(f"There is no finding {finding_id}.", finding=finding_id)
    return _finding_info(row)


def _sources() -> QuerySet[Source, Any]:
    newest = Scan.objects.filter(source=OuterRef("pk")).order_by("-id").values("pk")[:1]
    return Source.objects.select_related("registry").annotate(
        open_count=Count("findings", filter=Q(findings__state="open")), last_scan_id=Subquery(newest)
    )


def _source_info(row: Any, scan: Scan | None) -> SourceInfo:
    return SourceInfo(
        id=row.pk,
        registry=row.registry.name,
        kind=row.kind,
        name=row.name,
        bootstrap=row.bootstrap,
        every_seconds=row.every_seconds,
        next_scan_at=row.next_scan_at,
        open_findings=row.open_count,
        last_scan=_scan_info(scan) if scan else None,
    )


def _scan_info(row: Scan) -> ScanInfo:
    return ScanInfo(
        id=row.pk,
        source_id=row.source_id,
        state=row.state,
        queued_at=row.queued_at,
        queued_by=row.queued_by,
        started_at=row.started_at,
        finished_at=row.finished_at,
        phase=row.phase,
        progress_done=row.progress_done,
        progress_total=row.progress_total,
        read=row.read,
        error=row.error,
    )


def _finding_info(row: Finding) -> FindingInfo:
    return FindingInfo(
        id=row.pk,
        source_id=row.source_id,
        source_name=row.source.name,
        source_kind=row.source.kind,
        registry=row.source.registry.name,
        rule=row.rule,
        severity=row.severity,
        sentence=row.sentence,
        remedy=row.remedy,
        location=row.location,
        subject=row.subject_name,
        evidence=row.evidence,
        state=row.state,
        count=row.count,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        acknowledged_by=row.acknowledged_by,
        acknowledged_reason=row.acknowledged_reason,
        resolved_at=row.resolved_at,
    )
