"""Clusters and their sources, a source, a scan in progress."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import ScanState
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import whole_number
from dashboard.components.translation import counted, later, listing
from dashboard.components.widgets import Action, Crumb, Fact, Problem, Section
from dashboard.findings.evidence_tables import read_tables
from dashboard.findings.finding_list import finding_row
from dashboard.findings.presenters import ScanProgress, ScanRow, SourceGroup, SourceList, SourcePage, SourceRow
from dashboard.sources.coverage import coverage_of
from dashboard.sources.inventory import advice_of, connector_of, topic_table
from dashboard.sources.labels import (
    given_text,
    mode_of,
    notes_on,
    patterns_of,
    read_by,
    schedule_of,
    sized,
    source_badge,
    what_was_read,
)
from dashboard.sources.presenters import ClusterHead
from registry.access.permission_filters import Extent, refusal_in_any, require_extent
from registry.access.roles import refusal
from registry.drift import selectors
from registry.drift.selectors import ClusterInfo, ScanInfo, SourceInfo
from registry.drift.sources import SOURCES, kind_of
from registry.errors import SourceNotFound
from registry.promotions.selectors import list_environments
from registry.streams.selectors import query_of_source

__all__ = ["coverage_of", "progress_of", "source_list", "source_page", "what_was_read"]

SHOWN_SCANS = 15
SHOWN_FINDINGS = 8


def source_list(request: HttpRequest) -> SourceList:
    """The sources by cluster, of registries that the reader may read; `registry` in the query names whose."""
    registry = given_text(request.GET, "registry")
    actor = page_actor(request)
    extent = require_extent(actor, "schema.read", registry=registry)
    sources = selectors.list_sources(registry=registry, by=actor)
    clusters = selectors.list_clusters(actor)
    order = list_environments()
    manage, connect = refusal_in_any(actor, "source.manage", registry=registry), refusal(actor, "cluster.manage")
    groups = [
        SourceGroup(
            title=cluster.name,
            cluster=cluster_head(cluster, manage=manage, connect=connect),
            rows=_rows(request, (item for item in sources if item.cluster == cluster.name), order),
        )
        for cluster in clusters
    ]
    without_cluster = [item for item in sources if not item.cluster]
    for name in sorted({item.kind for item in without_cluster}, key=_place):
        rows = _rows(request, (item for item in without_cluster if item.kind == name), order)
        groups.append(SourceGroup(title=gettext(kind_of(name).list_title or kind_of(name).label), rows=rows))
    topics = selectors.topic_coverage([source.id for source in sources])
    return SourceList(
        frame=make_frame(request, title=gettext("Sources"), section=Section.SOURCES),
        groups=tuple(groups),
        add=_action(gettext("Add a source"), reverse("ui:source_add"), manage, icon="plus", tone="primary"),
        connect=_action(gettext("Connect a cluster"), reverse("ui:cluster_add"), connect, icon="database"),
        coverage=coverage_of(sources, topics),
        narrow="" if extent.is_whole else _narrow(extent),
    )


def _place(kind: str) -> int:
    return [*SOURCES, kind].index(kind)


def _narrow(extent: Extent) -> str:
    """What whoever may not read every registry sees here, and whom to ask for more."""
    if extent.has_registries:
        return gettext("Only sources in registries that you can read are shown.")
    return gettext(
        "Sources belong to a whole registry, but your role covers only some subjects. An admin can give you the "
        "reader role in a registry."
    )


def _rows(request: HttpRequest, sources: Iterable[SourceInfo], order: list[str]) -> tuple[SourceRow, ...]:
    return tuple(_source_row(request, source, order) for source in sources)


def _action(label: str, url: str, reason: str, **more: str) -> Action:
    return Action(label=label, url=url, allowed=not reason, reason=reason, **more)


def cluster_head(cluster: ClusterInfo, *, manage: str, connect: str) -> ClusterHead:
    """A cluster above its sources; `manage` and `connect` say why its buttons are off."""
    security = cluster.security_protocol
    if cluster.sasl_mechanism:
        signed_in = {"mechanism": cluster.sasl_mechanism, "user": cluster.username}
        security = f"{security}, {gettext('%(mechanism)s as %(user)s') % signed_in}"
    if cluster.ca_pem:
        security = f"{security}, {gettext('custom CA')}"
    in_use = read_by(cluster.sources) if cluster.sources else ""
    return ClusterHead(
        name=cluster.name,
        bootstrap=cluster.bootstrap,
        security=security,
        edit=_action(gettext("Change"), reverse("ui:cluster_edit", args=[cluster.id]), connect),
        remove=_action(gettext("Remove"), reverse("ui:cluster_remove", args=[cluster.id]), connect or in_use),
        add=_action(
            gettext("Add a source"), f"{reverse('ui:source_add')}?{urlencode({'cluster': cluster.name})}", manage
        ),
    )


def _source_row(request: HttpRequest, source: SourceInfo, order: list[str]) -> SourceRow:
    scan = source.last_scan
    topics = counted(source.topics, "%(n)s topic found", "%(n)s topics found")
    scope = f"{patterns_of(source)} · {topics}" if source.cluster else ""
    return SourceRow(
        url=reverse("ui:source", args=[source.id]),
        kind=source_badge(source.kind),
        name=source.name,
        environment=environment_of(source.registry, order),
        state=scan_state(scan),
        scanned_at=scan.finished_at if scan else None,
        read=what_was_read(source.kind, scan) if scan else "",
        open_findings=source.open_findings,
        findings_url=f"{reverse('ui:findings')}?{urlencode({'source': source.id})}",
        next_scan_at=source.next_scan_at,
        error=scan.error if scan else "",
        scan=scan_action(request, source),
        context=source.context,
        scope=scope,
        how=listing(filter(None, (mode_of(source), schedule_of(source)))),
    )


def scan_state(scan: ScanInfo | None) -> ScanState:
    """How a scan is drawn; a scan that read nothing is "not scanned"."""
    return ScanState.of(scan.verdict) if scan else ScanState.NEVER


def scan_action(request: HttpRequest, source: SourceInfo, label: str = later("Scan now")) -> Action:
    """The button that scans a source; off while a scan runs."""
    reason = refusal(page_actor(request), "source.scan", registry=source.registry)
    if not reason and source.last_scan and source.last_scan.unfinished:
        reason = gettext("Scan %(id)s is %(state)s.") % {"id": source.last_scan.id, "state": source.last_scan.state}
    return Action(
        label=label,
        url=reverse("ui:source_scan", args=[source.id]),
        method="post",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="scan-search",
    )


def source_page(request: HttpRequest, source_id: int) -> SourcePage:
    """One source; `scan` in the query shows an older scan. Raises SourceNotFound, NotAllowed."""
    source = selectors.get_source(source_id, by=page_actor(request))
    scans = selectors.list_scans(source_id, limit=SHOWN_SCANS)
    order = list_environments()
    shown = _asked_scan(request, source, scans)
    finished = next((scan for scan in scans if scan.read), None)
    is_registry = kind_of(source.kind).is_registry
    title = f"{source.name} · {source.registry}" if is_registry else source.name
    older = bool(shown and source.last_scan and shown.id != source.last_scan.id)
    return SourcePage(
        frame=make_frame(
            request,
            title=title,
            section=Section.SOURCES,
            code=not is_registry,
            crumbs=(Crumb(label=gettext("Sources"), url=reverse("ui:sources")),),
        ),
        kind=source_badge(source.kind),
        name=source.name,
        environment=environment_of(source.registry, order),
        state=scan_state(source.last_scan),
        facts=_facts(source),
        scan=scan_action(request, source),
        scan_id=shown.id if shown else None,
        progress=progress_of(request, shown, source) if shown else None,
        scans=tuple(_scan_row(source.kind, scan, shown) for scan in scans),
        findings=tuple(
            finding_row(info, order)
            for info in selectors.list_findings(source_id=source_id, limit=SHOWN_FINDINGS, by=page_actor(request))
        ),
        findings_url=f"{reverse('ui:findings')}?{urlencode({'source': source.id})}",
        next_scan_at=source.next_scan_at,
        actions=_actions(request, source),
        topics=topic_table(request, source, selectors.list_topics(source_id)) if source.cluster else None,
        connector=connector_of(finished) if finished else None,
        advice=advice_of(finished) if finished else (),
        older=older,
        newest_url=reverse("ui:source", args=[source.id]) if older else "",
    )


def _asked_scan(request: HttpRequest, source: SourceInfo, scans: list[ScanInfo]) -> ScanInfo | None:
    """The scan that the address asks for, else the newest. Raises SourceNotFound for one of another source."""
    number = whole_number(request.GET.get("scan", ""))
    if number is None:
        return source.last_scan
    scan = next((item for item in scans if item.id == number), None) or selectors.get_scan(number)
    if scan.source_id != source.id:
        raise SourceNotFound(
            gettext("Scan %(number)s doesn’t belong to %(source)s.") % {"number": number, "source": source.name},
            scan=number,
        )
    return scan


def _facts(source: SourceInfo) -> tuple[Fact, ...]:
    facts = [Fact(label=gettext("Compared with"), value=source.registry)]
    if source.context:
        facts.append(Fact(label=gettext("Context"), value=source.context, code=True))
    if source.cluster:
        facts += [
            Fact(label=gettext("Cluster"), value=source.cluster),
            Fact(label=gettext("Servers"), value=source.bootstrap, code=True),
            Fact(label=gettext("Topics"), value=patterns_of(source), code=bool(source.include)),
            Fact(label=gettext("Reads"), value=mode_of(source)),
            Fact(
                label=gettext("Scan limits"),
                value=gettext("%(max_messages)s messages, %(sized)s, %(max_seconds)s s per scan")
                % {
                    "max_messages": f"{source.max_messages:,}",
                    "sized": sized(source.max_bytes),
                    "max_seconds": source.max_seconds,
                },
            ),
            Fact(
                label=gettext("Samples"),
                value=gettext("stored, masked") if source.keep_samples else gettext("not stored"),
            ),
        ]
    if source.store:
        who = (
            gettext("as %(access_key_id)s, secret %(secret)s")
            % {"access_key_id": source.store.access_key_id, "secret": source.store.secret}
            if source.store.secret
            else gettext("anonymous")
        )
        facts += [
            Fact(label=gettext("Object store"), value=f"{source.store.endpoint}, {source.store.region}", code=True),
            Fact(label=gettext("Asked"), value=who),
        ]
    facts += [
        Fact(label=gettext(item.label), value=str(source.config[item.name]), code=True)
        for item in kind_of(source.kind).fields
        if source.config.get(item.name) not in (None, "")
    ]
    facts += [
        Fact(label=gettext("Schedule"), value=schedule_of(source)),
        Fact(
            label=gettext("Resolves after"), value=counted(source.clean_scans, "%(n)s clean scan", "%(n)s clean scans")
        ),
    ]
    return tuple(facts)


def _actions(request: HttpRequest, source: SourceInfo) -> tuple[Action, ...]:
    reason = refusal(page_actor(request), "source.manage", registry=source.registry)
    query = query_of_source(source.id) if kind_of(source.kind).keeps_state else None
    return (
        *((_action(gettext("View query and state"), reverse("ui:query", args=[query]), ""),) if query else ()),
        _action(gettext("Edit scan settings"), reverse("ui:source_edit", args=[source.id]), reason, icon="pencil"),
        _action(gettext("Remove"), reverse("ui:source_remove", args=[source.id]), reason, icon="x", tone="danger"),
    )


def progress_of(request: HttpRequest, scan: ScanInfo, source: SourceInfo) -> ScanProgress:
    """A scan as it stands; while it runs with the button that ends it."""
    reason = refusal(page_actor(request), "source.scan", registry=source.registry)
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
        detector=scan.detector,
        summary=what_was_read(source.kind, scan),
        read=read_tables(scan.read) if scan.read else (),
        notes=notes_on(scan.read) if scan.read else (),
        problem=Problem(what=scan.error, cure=gettext("Findings of earlier scans don’t change."))
        if scan.error
        else None,
        cancel=Action(
            label=gettext("Cancel the scan"),
            url=reverse("ui:scan_cancel", args=[scan.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            icon="ban",
        )
        if scan.unfinished
        else None,
    )


def _scan_row(kind: str, scan: ScanInfo, shown: ScanInfo | None) -> ScanRow:
    took = (scan.finished_at - scan.started_at).total_seconds() if scan.finished_at and scan.started_at else None
    return ScanRow(
        scan_id=scan.id,
        state=scan_state(scan),
        started_at=scan.started_at,
        queued_by=scan.queued_by,
        took=f"{took:.1f} s" if took is not None else "",
        read=what_was_read(kind, scan),
        error=scan.error,
        url=f"{reverse('ui:source', args=[scan.source_id])}?{urlencode({'scan': scan.id})}",
        shown=bool(shown and scan.id == shown.id),
    )
