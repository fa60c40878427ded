"""Sources, a source, a scan in progress."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from dashboard.pages.evidence import read_tables
from dashboard.pages.finding_row import finding_row
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.presenters.drift import (
    ScanProgress,
    ScanRow,
    SourceForm,
    SourceList,
    SourcePage,
    SourceRow,
)
from dashboard.presenters.frame import (
    Action,
    Choice,
    Crumb,
    Fact,
    Field,
    Problem,
    Section,
)
from dashboard.presenters.looks import ScanState, SourceKind
from registry.access.roles import refusal
from registry.drift import selectors
from registry.drift.selectors import ScanInfo, SourceInfo
from registry.errors import SchemadeskError
from registry.promotions.selectors import list_environments
from registry.subjects.selectors import list_registries

SHOWN_SCANS = 15


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
        text = f"{read['messages']:,} messages of {plural(len(read['partitions']), 'partition')}"
    else:
        text = f"{plural(len(read['variables']), 'state variable')}, {read['rows']:,} rows"
    bound = f"; stopped by the bound of {read['bound_reached']}" if read.get("bound_reached") else ""
    return f"{text} in {read['seconds']} s{bound}"


def plural(number: int, word: str) -> str:
    """A number with its noun."""
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
        read=read_tables(scan.read) if scan.read else (),
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
