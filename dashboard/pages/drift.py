"""Sources, a source, a scan in progress, the findings and one of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.presenters.drift import (
    Column,
    EvidenceTable,
    FindingList,
    FindingPage,
    FindingRow,
    ScanProgress,
    ScanRow,
    SourceForm,
    SourceList,
    SourcePage,
    SourceRow,
)
from dashboard.presenters.frame import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Fact,
    Field,
    Filter,
    Link,
    Paging,
    Problem,
    Search,
    Section,
)
from dashboard.presenters.looks import FindingState, ScanState, Severity, SourceKind
from registry.access.roles import refusal
from registry.drift import selectors
from registry.drift.selectors import FindingInfo, ScanInfo, SourceInfo
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import list_registries

SHOWN_SCANS = 15
SHOWN_ROWS = 50
#: numbers that name something; a separator of thousands would spoil them
NAMES = frozenset(
    {"partition", "start", "end", "first_offset", "last_offset", "schema_id", "operator", "version", "batch"}
)


def source_list(request: HttpRequest) -> SourceList:
    """All sources."""
    sources = selectors.list_sources()
    order = list_environments()
    reason = refusal(page_actor(request), "source.manage")
    return SourceList(
        frame=make_frame(request, title="Sources", section=Section.SOURCES),
        rows=tuple(_source_row(request, source, order) for source in sources),
        add=Action(
            label="Add a source",
            url=reverse("ui:source_add"),
            allowed=not reason,
            reason=reason,
            tone="primary",
            icon="plus",
        ),
        coverage=coverage_of(sources),
    )


def coverage_of(sources: list[SourceInfo]) -> str:
    """How much was really looked at, in one sentence."""
    if not sources:
        return ""
    since = timezone.now() - timedelta(hours=24)
    fresh = [
        source
        for source in sources
        if (scan := source.last_scan) and scan.verdict == "scanned" and scan.finished_at and scan.finished_at > since
    ]
    failed = [source for source in sources if source.last_scan and source.last_scan.state == "failed"]
    sentence = f"{len(fresh)} of {len(sources)} sources scanned in the last 24 h"
    if failed:
        sentence += f"; {len(failed)} can't be read: {', '.join(source.name for source in failed[:3])}"
    return f"{sentence}."


def _source_row(request: HttpRequest, source: SourceInfo, order: list[str]) -> SourceRow:
    scan = source.last_scan
    return SourceRow(
        url=reverse("ui:source", args=[source.id]),
        kind=SourceKind.of(source.kind),
        name=source.name,
        environment=environment_of(source.registry, order),
        state=scan_state(scan),
        scanned_at=scan.finished_at if scan else None,
        read=what_was_read(scan) if scan else "",
        open_findings=source.open_findings,
        findings_url=f"{reverse('ui:findings')}?{urlencode({'source': source.id})}",
        next_scan_at=source.next_scan_at,
        error=scan.error if scan else "",
        scan=_scan_action(request, source),
    )


def scan_state(scan: ScanInfo | None) -> ScanState:
    """How a scan is drawn; a scan that read nothing is "not scanned"."""
    return ScanState.of(scan.verdict) if scan else ScanState.NEVER


def what_was_read(scan: ScanInfo) -> str:
    """What a finished scan read, in words; empty before."""
    read = scan.read
    if read is None:
        return ""
    if read.get("nothing"):
        return "nothing to read"
    if "messages" in read:
        text = f"{read['messages']:,} messages of {_plural(len(read['partitions']), 'partition')}"
    else:
        text = f"{_plural(len(read['variables']), 'state variable')}, {read['rows']:,} rows"
    bound = f"; stopped by the bound of {read['bound_reached']}" if read.get("bound_reached") else ""
    return f"{text} in {read['seconds']} s{bound}"


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _scan_action(request: HttpRequest, source: SourceInfo) -> Action:
    reason = refusal(page_actor(request), "source.scan", registry=source.registry)
    return Action(
        label="Scan now",
        url=reverse("ui:source_scan", args=[source.id]),
        method="post",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="scan-search",
    )


def source_form(request: HttpRequest, problem: SchemadeskError | None) -> SourceForm:
    """The form for the kind that the address names, with what was sent."""
    given = request.POST if request.method == "POST" else request.GET
    kind = SourceKind.STATE_STORE if given.get("kind") == "state_store" else SourceKind.KAFKA_TOPIC
    reason = refusal(page_actor(request), "source.manage")
    registries = tuple(
        Choice(value=info.name, label=info.name, selected=info.name == given.get("registry"))
        for info in list_registries()
    )
    name = (
        Field(name="name", label="Topic", value=given.get("name", ""), required=True, code=True, placeholder="orders")
        if kind is SourceKind.KAFKA_TOPIC
        else Field(
            name="name",
            label="Checkpoint folder",
            value=given.get("name", ""),
            required=True,
            code=True,
            help=f"Below {', '.join(map(str, settings.CHECKPOINT_ROOTS))}; the Spark server must be able to open it too.",
        )
    )
    servers = Field(
        name="bootstrap",
        label="Bootstrap servers",
        value=given.get("bootstrap", settings.KAFKA_BOOTSTRAP),
        required=True,
        code=True,
        placeholder="broker-1:9092,broker-2:9092",
    )
    every = Field(
        name="every_seconds",
        label="Scan every … seconds",
        value=given.get("every_seconds", "300"),
        kind="number",
        help="Empty: only when somebody asks.",
    )
    held = Field(name="registry", label="Held against", kind="select", choices=registries, required=True)
    fields = (name, servers, held, every) if kind is SourceKind.KAFKA_TOPIC else (name, held, every)
    return SourceForm(
        frame=make_frame(
            request,
            title="Add a source",
            section=Section.SOURCES,
            crumbs=(Crumb(label="Sources", url=reverse("ui:sources")),),
        ),
        kind=kind,
        kinds=tuple((each, f"{reverse('ui:source_add')}?kind={each.value}") for each in SourceKind),
        fields=fields,
        submit=Action(
            label="Add and scan",
            url=reverse("ui:source_add"),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        ),
        problem=Problem(what=problem.message) if problem else None,
    )


def source_page(request: HttpRequest, source_id: int) -> SourcePage:
    """One source. Raises SourceNotFound."""
    source = selectors.get_source(source_id)
    scans = selectors.list_scans(source_id, limit=SHOWN_SCANS)
    order = list_environments()
    facts = [Fact(label="Held against", value=source.registry)]
    if source.bootstrap:
        facts.append(Fact(label="Cluster", value=source.bootstrap, code=True))
    facts.append(
        Fact(label="Schedule", value=f"every {source.every_seconds} s" if source.every_seconds else "on demand")
    )
    return SourcePage(
        frame=make_frame(
            request,
            title=source.name,
            section=Section.SOURCES,
            code=True,
            crumbs=(Crumb(label="Sources", url=reverse("ui:sources")),),
        ),
        kind=SourceKind.of(source.kind),
        name=source.name,
        environment=environment_of(source.registry, order),
        state=scan_state(source.last_scan),
        facts=tuple(facts),
        scan=_scan_action(request, source),
        scan_id=source.last_scan.id if source.last_scan else None,
        progress=progress_of(source.last_scan) if source.last_scan else None,
        scans=tuple(_scan_row(scan) for scan in scans[1:]),
        findings=tuple(finding_row(info, order) for info in selectors.list_findings(source_id=source_id)),
        findings_url=f"{reverse('ui:findings')}?{urlencode({'source': source.id})}",
        next_scan_at=source.next_scan_at,
    )


def progress_of(scan: ScanInfo) -> ScanProgress:
    """A scan as it stands."""
    return ScanProgress(
        scan_id=scan.id,
        state=scan_state(scan),
        url=reverse("ui:scan_progress", args=[scan.id]),
        running=scan.unfinished,
        phase=scan.phase,
        done=scan.progress_done,
        total=scan.progress_total,
        queued_at=scan.queued_at,
        started_at=scan.started_at,
        finished_at=scan.finished_at,
        queued_by=scan.queued_by,
        summary=what_was_read(scan),
        read=_read_tables(scan.read) if scan.read else (),
        problem=Problem(what=scan.error, cure="Findings of earlier scans stay as they are.") if scan.error else None,
    )


def _scan_row(scan: ScanInfo) -> ScanRow:
    took = (scan.finished_at - scan.started_at).total_seconds() if scan.finished_at and scan.started_at else None
    return ScanRow(
        scan_id=scan.id,
        state=scan_state(scan),
        started_at=scan.started_at,
        queued_by=scan.queued_by,
        took=f"{took:.1f} s" if took is not None else "",
        read=what_was_read(scan),
        error=scan.error,
    )


def _read_tables(read: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    """What a scan read, as tables."""
    tables = (
        _table(
            "Positions",
            read.get("partitions", ()),
            (("Partition", "partition"), ("From offset", "start"), ("To offset", "end"), ("Messages", "messages")),
        ),
        _table(
            "Schema ids seen",
            read.get("ids", ()),
            (("Side", "side"), ("Schema id", "schema_id"), ("Messages", "messages")),
            note=f"{read['tombstones']:,} tombstones, which are normal." if read.get("tombstones") else "",
        ),
        _table(
            "State variables",
            read.get("variables", ()),
            (
                ("Operator", "operator"),
                ("Variable", "variable"),
                ("Kind", "kind"),
                ("Encoding", "encoding"),
                ("Schema version", "version"),
                ("Since batch", "batch"),
                ("Rows", "rows"),
            ),
        ),
        _table(
            "Limits",
            read.get("limits", ()),
            (
                ("Limit", "limit"),
                ("Operator", "operator"),
                ("Variable", "variable"),
                ("Used", "used"),
                ("Of", "allowed"),
            ),
        ),
        _table(
            "Not readable",
            read.get("unreadable", ()),
            (("Operator", "operator"), ("Variable", "variable"), ("Reason", "reason")),
        ),
    )
    return tuple(table for table in tables if table.rows)


def _table(title: str, rows: Any, columns: tuple[tuple[str, str], ...], *, note: str = "") -> EvidenceTable:
    """Rows of JSON objects as a table; a column is a number where all its values are."""
    kinds = ["number" if rows and all(isinstance(row.get(key), int) for row in rows) else "text" for _, key in columns]
    return EvidenceTable(
        title=title,
        columns=tuple(Column(label=label, kind=kind) for (label, _), kind in zip(columns, kinds, strict=True)),
        rows=tuple(
            tuple(str(row[key]) if key in NAMES and key in row else _cell(row.get(key)) for _, key in columns)
            for row in rows[:SHOWN_ROWS]
        ),
        note=note,
        hidden_rows=max(0, len(rows) - SHOWN_ROWS),
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def finding_row(info: FindingInfo, order: list[str]) -> FindingRow:
    """A finding in a list."""
    return FindingRow(
        url=reverse("ui:finding", args=[info.id]),
        severity=Severity.of(info.severity),
        state=FindingState.of(info.state),
        sentence=info.sentence,
        rule=info.rule,
        source=info.source_name,
        source_kind=SourceKind.of(info.source_kind),
        source_url=reverse("ui:source", args=[info.source_id]),
        location=info.location,
        environment=environment_of(info.registry, order),
        count=info.count,
        first_seen=info.first_seen,
        last_seen=info.last_seen,
    )


def finding_list(request: HttpRequest) -> FindingList:
    """Findings, filtered by the query; open ones unless told otherwise."""
    query = request.GET.get("q", "").strip()
    state = request.GET.get("state", "open")
    severity, kind, source = (request.GET.get(name, "") for name in ("severity", "kind", "source"))
    found = selectors.list_findings(
        state="" if state == "all" else state,
        severity=severity,
        kind=kind,
        source_id=int(source) if source.isdigit() else None,
        text=query,
        limit=SHOWN_ROWS * 4,
    )
    order, sources = list_environments(), selectors.list_sources()
    scanned = [s.last_scan for s in sources if s.last_scan and s.last_scan.verdict == "scanned"]
    newest = max((scan.finished_at for scan in scanned if scan.finished_at), default=None)
    return FindingList(
        frame=make_frame(request, title="Findings", section=Section.FINDINGS),
        search=_finding_search(query, state, severity, kind),
        rows=tuple(finding_row(info, order) for info in found),
        paging=Paging(first=1 if found else 0, last=len(found), total=len(found)),
        clean=f"No drift in what {_plural(len(scanned), 'source')} held at the last scan." if scanned else "",
        clean_at=newest,
        coverage=coverage_of(sources),
    )


def _finding_search(query: str, state: str, severity: str, kind: str) -> Search:
    base = reverse("ui:findings")
    chosen = {"q": query, "state": state if state != "open" else "", "severity": severity, "kind": kind}

    def choices(values: dict[str, str], selected: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=key, label=label, selected=key == selected) for key, label in values.items())

    states = {"": "Open", "acknowledged": "Acknowledged", "resolved": "Resolved", "all": "All"}
    severities = {"": "Any severity"} | {each.code: each.look.word for each in Severity}
    kinds = {"": "Any source"} | {each.code: each.look.word for each in SourceKind}
    active = tuple(
        ActiveFilter(
            label=f"{name}: {value}",
            url=f"{base}?{urlencode({k: v for k, v in chosen.items() if v and k != name})}",
        )
        for name, value in chosen.items()
        if value
    )
    return Search(
        url=base,
        query=query,
        label="Search findings",
        placeholder="orders",
        filters=(
            Filter(name="state", label="State", choices=choices(states, chosen["state"])),
            Filter(name="severity", label="Severity", choices=choices(severities, severity)),
            Filter(name="kind", label="Source", choices=choices(kinds, kind)),
        ),
        active=active,
    )


def finding_page(request: HttpRequest, finding_id: int) -> FindingPage:
    """One finding. Raises FindingNotFound."""
    info = selectors.get_finding(finding_id)
    reason = refusal(page_actor(request), "finding.decide", registry=info.registry)
    related = [Link(label=f"Source {info.source_name}", url=reverse("ui:source", args=[info.source_id]))]
    if info.subject:
        related.append(Link(label=f"Subject {info.subject}", url=subject_url(info.registry, info.subject)))
    return FindingPage(
        frame=make_frame(
            request,
            title=info.rule.replace("_", " ").capitalize(),
            section=Section.FINDINGS,
            crumbs=(Crumb(label="Findings", url=reverse("ui:findings")),),
        ),
        finding=finding_row(info, list_environments()),
        what_it_means=info.sentence,
        remedies=tuple(part.strip() for part in info.remedy.split("\n") if part.strip()),
        evidence=_evidence_tables(info.evidence),
        facts=_evidence_facts(info.evidence),
        related=tuple(related),
        acknowledge=Action(
            label="Acknowledge",
            url=reverse("ui:finding_acknowledge", args=[info.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        )
        if info.state == "open"
        else None,
        reason=Field(name="reason", label="Why it can stay for now", required=True, kind="textarea", rows=2)
        if info.state == "open"
        else None,
        acknowledged_by=info.acknowledged_by,
        acknowledged_reason=info.acknowledged_reason,
        resolved_at=info.resolved_at,
    )


FACT_LABELS = {
    "topic": "Topic",
    "side": "Side",
    "schema_id": "Schema id",
    "schema_ids": "Schema ids",
    "expected": "Expected subject",
    "owners": "The id belongs to",
    "messages": "Messages",
    "of_messages": "Of messages with this id",
    "of_messages_read": "Of messages read",
    "undecodable_messages": "Of them not decodable",
    "groups": "Different ids",
    "operator": "Operator",
    "variable": "State variable",
    "kind": "Kind",
    "encoding": "Encoding",
    "batch": "Batch",
    "versions": "Schema versions",
    "field": "Field",
    "added": "New field",
    "type": "Type",
    "rows_before": "Rows before",
    "filled_before": "Of them filled",
    "batch_before": "As of batch",
    "used": "Used",
    "allowed": "Of",
    "reason": "Reason",
}


def _evidence_facts(evidence: dict[str, Any]) -> tuple[Fact, ...]:
    facts = [
        Fact(
            label=label,
            value=str(evidence[key]) if key in NAMES else _fact(evidence[key]),
            code=key in ("topic", "variable", "field", "added", "type"),
        )
        for key, label in FACT_LABELS.items()
        if evidence.get(key) not in (None, "", [])
    ]
    for key, number in evidence.get("looks_like", {}).items():
        facts.append(Fact(label=f"Looks like {key.replace('_', ' ')}", value=_cell(number)))
    return tuple(facts)


def _fact(value: Any) -> str:
    return ", ".join(_cell(item) for item in value) if isinstance(value, list) else _cell(value)


def _evidence_tables(evidence: dict[str, Any]) -> tuple[EvidenceTable, ...]:
    partitions = [
        {**row, "first": _moment(row["first_time"]), "last": _moment(row["last_time"])}
        for row in evidence.get("partitions", ())
    ]
    tables = (
        _table(
            "Where in the topic",
            partitions,
            (
                ("Partition", "partition"),
                ("First offset", "first_offset"),
                ("Last offset", "last_offset"),
                ("Messages", "messages"),
                ("First time", "first"),
                ("Last time", "last"),
            ),
        ),
        _table(
            "What changed", evidence.get("changes", ()), (("Field", "field"), ("Before", "before"), ("After", "after"))
        ),
    )
    return tuple(table for table in tables if table.rows)


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
