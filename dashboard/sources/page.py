"""The pages of clusters with their sources, of a source, and of a running scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import ScanState, SourceBadge
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import crumb, form_text, map_url, whole_number, with_query
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Crumb, Environment, Fact, Frame, Problem, Section
from dashboard.findings.evidence_tables import EvidenceTable, read_tables
from dashboard.findings.finding_list import FindingRow, finding_row
from dashboard.sources.coverage import coverage_of
from dashboard.sources.inventory import AdviceState, ConnectorView, TopicTable, advice_of, connector_of, topic_table
from dashboard.sources.labels import (
    mode_of,
    notes_on,
    patterns_of,
    read_by,
    scan_refusal,
    scan_state,
    schedule_of,
    sized,
    source_badge,
    what_was_read,
)
from registry.access.permission_filters import Extent, refusal_in_any, require_extent
from registry.access.roles import Actor, refusal
from registry.drift import selectors
from registry.drift.selectors import ClusterInfo, ScanInfo, SourceInfo
from registry.drift.sources import SOURCES, kind_of
from registry.errors import SourceNotFound
from registry.promotions.selectors import list_environments
from registry.streams.selectors import query_of_source

SHOWN_SCANS = 15
SHOWN_FINDINGS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A source in the list; `refused` says why the reader may not scan it now ("" if they may)."""

    info: SourceInfo
    environment: Environment
    refused: str

    @property
    def kind(self) -> SourceBadge:
        """The badge of its kind."""
        return source_badge(self.info.kind)

    @property
    def state(self) -> ScanState:
        """The state of its last scan."""
        return scan_state(self.info.last_scan)

    @property
    def read(self) -> str:
        """The result of its last scan, in words."""
        return what_was_read(self.info.kind, self.info.last_scan) if self.info.last_scan else ""

    @property
    def scope(self) -> str:
        """The topics that it reads, in words."""
        topics = counted(self.info.topics, "%(n)s topic found", "%(n)s topics found")
        return f"{patterns_of(self.info)} · {topics}" if self.info.cluster else ""

    @property
    def how(self) -> str:
        """The mode and schedule in words."""
        return listing(filter(None, (mode_of(self.info), schedule_of(self.info))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroup:
    """The sources of a cluster, or those without one under a title."""

    title: str
    rows: tuple[SourceRow, ...]
    cluster: ClusterInfo | None = None

    @property
    def shared(self) -> tuple[str, ...]:
        """The reasons why several rows, or the only one, can't be scanned: shown once below them."""
        reasons = Counter(row.refused for row in self.rows if row.refused)
        return tuple(reason for reason, rows in reasons.items() if rows > 1 or len(self.rows) == 1)

    @property
    def security(self) -> str:
        """The security settings of the cluster, in words."""
        cluster = self.cluster
        if cluster is None:
            return ""
        parts = [cluster.security_protocol]
        if cluster.sasl_mechanism:
            signed_in = {"mechanism": cluster.sasl_mechanism, "user": cluster.username}
            parts.append(gettext("%(mechanism)s as %(user)s") % signed_in)
        return listing([*parts, gettext("custom CA")] if cluster.ca_pem else parts)

    @property
    def in_use(self) -> str:
        """The reason why the cluster can't be removed; "" if it can."""
        return read_by(self.cluster.sources) if self.cluster and self.cluster.sources else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceList:
    """The sources by cluster. `coverage` is one sentence ("214 of 230 topics scanned in 24 h; 3 unreadable: …").

    `manage_refused` and `connect_refused` say why the reader may not add sources or connect clusters; `narrow` says
    what is shown to a reader who may not read all registries.
    """

    frame: Frame
    groups: tuple[SourceGroup, ...]
    manage_refused: str
    connect_refused: str
    coverage: str = ""
    narrow: str = ""


def source_list(request: HttpRequest) -> SourceList:
    """Return the sources by cluster in registries that the reader may read; `registry` in the query filters them."""
    registry, actor = form_text(request.GET, "registry"), page_actor(request)
    extent = require_extent(actor, "schema.read", registry=registry)
    sources = selectors.list_sources(registry=registry, by=actor)
    return SourceList(
        frame=make_frame(request, title=gettext("Sources"), section=Section.SOURCES),
        groups=tuple(_groups(sources, selectors.list_clusters(actor), actor)),
        manage_refused=refusal_in_any(actor, "source.manage", registry=registry),
        connect_refused=refusal(actor, "cluster.manage"),
        coverage=coverage_of(sources, selectors.topic_coverage([source.id for source in sources])),
        narrow="" if extent.is_whole else _narrow(extent),
    )


def _groups(sources: Iterable[SourceInfo], clusters: Iterable[ClusterInfo], actor: Actor) -> Iterable[SourceGroup]:
    order = list_environments()
    rows = [
        SourceRow(info=info, environment=environment_of(info.registry, order), refused=scan_refusal(actor, info))
        for info in sources
    ]
    for cluster in clusters:
        in_cluster = tuple(row for row in rows if row.info.cluster == cluster.name)
        yield SourceGroup(title=cluster.name, cluster=cluster, rows=in_cluster)
    alone = [row for row in rows if not row.info.cluster]
    for name in sorted({row.info.kind for row in alone}, key=lambda name: [*SOURCES, name].index(name)):
        kind = kind_of(name)
        of_kind = tuple(row for row in alone if row.info.kind == name)
        yield SourceGroup(title=gettext(kind.list_title or kind.label), rows=of_kind)


def _narrow(extent: Extent) -> str:
    """Say which sources a reader sees who may not read every registry, and whom to ask for more."""
    if extent.has_registries:
        return gettext("Only sources in registries that you can read are shown.")
    return gettext(
        "Sources belong to a whole registry, but your role covers only some subjects. An admin can give you the "
        "reader role in a registry."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRow:
    """A scan; `is_shown` if the page shows its details; `refused` says why the reader may not cancel it."""

    info: ScanInfo
    kind: str
    is_shown: bool = False
    refused: str = ""

    @property
    def state(self) -> ScanState:
        """The state."""
        return scan_state(self.info)

    @property
    def took(self) -> str:
        """The duration."""
        return "" if self.info.seconds is None else f"{self.info.seconds:.1f} s"

    @property
    def read(self) -> str:
        """The result in words."""
        return what_was_read(self.kind, self.info)

    @property
    def tables(self) -> tuple[EvidenceTable, ...]:
        """The result as tables."""
        return read_tables(self.info.read) if self.info.read else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was omitted or unreadable."""
        return notes_on(self.info.read) if self.info.read else ()

    @property
    def problem(self) -> Problem | None:
        """The reason of its failure, if any."""
        cure = gettext("Findings of earlier scans don’t change.")
        return Problem(what=self.info.error, cure=cure) if self.info.error else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePage:
    """A source: its facts, its latest scan (or the requested one), its topics and findings.

    `connector` is set for a Debezium source, `advice` for a registry, `query` (a number) for a checkpoint.
    `scan_refused` and `manage_refused` say why the reader may not scan or edit it.
    """

    frame: Frame
    info: SourceInfo
    environment: Environment
    facts: tuple[Fact, ...]
    scan_refused: str
    manage_refused: str
    progress: ScanRow | None = None
    scans: tuple[ScanRow, ...] = ()
    findings: tuple[FindingRow, ...] = ()
    topics: TopicTable | None = None
    connector: ConnectorView | None = None
    advice: Sequence[tuple[AdviceState, Mapping[str, Any]]] = ()
    query: int | None = None

    @property
    def kind(self) -> SourceBadge:
        """The badge of its kind."""
        return source_badge(self.info.kind)

    @property
    def state(self) -> ScanState:
        """The state of its last scan."""
        return scan_state(self.info.last_scan)

    @property
    def map_url(self) -> str:
        """The map around its connector or its query; of topics the map of its registry."""
        if self.info.kind == "debezium":
            return map_url(f"connector:{self.info.id}")
        if self.query is not None:
            return map_url(f"query:{self.query}")
        return with_query(reverse("ui:map"), {"registry": self.info.registry})

    @property
    def is_older(self) -> bool:
        """Whether the page shows a scan other than the latest."""
        return bool(self.progress and self.info.last_scan and self.progress.info.id != self.info.last_scan.id)


def source_crumbs(source: SourceInfo | None = None) -> tuple[Crumb, ...]:
    """Return the breadcrumbs to the page of a source."""
    top = (crumb(gettext("Sources"), "sources"),)
    if source is None:
        return top
    return (*top, crumb(source.name, "source", source.id, code=True))


def source_page(request: HttpRequest, source_id: int) -> SourcePage:
    """Return the page of a source; `scan` in the query shows an older scan. Raises SourceNotFound, NotAllowed."""
    actor = page_actor(request)
    source = selectors.get_source(source_id, by=actor)
    scans, order = selectors.list_scans(source_id, limit=SHOWN_SCANS), list_environments()
    shown, kind = _asked_scan(request, source, scans), kind_of(source.kind)
    finished = next((scan for scan in scans if scan.read), None)
    findings = selectors.list_findings(source_id=source_id, limit=SHOWN_FINDINGS, by=actor)
    return SourcePage(
        frame=make_frame(
            request,
            title=f"{source.name} · {source.registry}" if kind.is_registry else source.name,
            section=Section.SOURCES,
            code=not kind.is_registry,
            crumbs=source_crumbs(),
        ),
        info=source,
        environment=environment_of(source.registry, order),
        facts=tuple(_facts(source)),
        scan_refused=scan_refusal(actor, source),
        manage_refused=refusal(actor, "source.manage", registry=source.registry),
        progress=scan_row(actor, shown, source) if shown else None,
        scans=tuple(
            ScanRow(info=scan, kind=source.kind, is_shown=bool(shown and shown.id == scan.id)) for scan in scans
        ),
        findings=tuple(finding_row(info, order) for info in findings),
        topics=topic_table(request, source, selectors.list_topics(source_id)) if source.cluster else None,
        connector=connector_of(finished),
        advice=advice_of(finished),
        query=query_of_source(source.id) if kind.keeps_state else None,
    )


def scan_row(actor: Actor, scan: ScanInfo, source: SourceInfo) -> ScanRow:
    """Return a scan, with the reason if the reader may not cancel it."""
    return ScanRow(info=scan, kind=source.kind, refused=refusal(actor, "source.scan", registry=source.registry))


def _asked_scan(request: HttpRequest, source: SourceInfo, scans: list[ScanInfo]) -> ScanInfo | None:
    """Return the scan in the URL, else the latest. Raises SourceNotFound for a scan of another source."""
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


def _facts(source: SourceInfo) -> Iterable[Fact]:
    yield Fact(label=gettext("Compared with"), value=source.registry)
    if source.context:
        yield Fact(label=gettext("Context"), value=source.context, code=True)
    if source.cluster:
        yield from _topic_facts(source)
    if store := source.store:
        asked = {"access_key_id": store.access_key_id, "secret": store.secret}
        who = gettext("as %(access_key_id)s, secret %(secret)s") % asked if store.secret else gettext("anonymous")
        yield Fact(label=gettext("Object store"), value=f"{store.endpoint}, {store.region}", code=True)
        yield Fact(label=gettext("Asked"), value=who)
    for item in kind_of(source.kind).fields:
        if source.config.get(item.name) not in (None, ""):
            yield Fact(label=gettext(item.label), value=str(source.config[item.name]), code=True)
    clean = counted(source.clean_scans, "%(n)s clean scan", "%(n)s clean scans")
    yield Fact(label=gettext("Schedule"), value=schedule_of(source))
    yield Fact(label=gettext("Resolves after"), value=clean)


def _topic_facts(source: SourceInfo) -> Iterable[Fact]:
    limits = {
        "max_messages": f"{source.max_messages:,}",
        "sized": sized(source.max_bytes),
        "max_seconds": source.max_seconds,
    }
    samples = gettext("stored, masked") if source.keep_samples else gettext("not stored")
    yield Fact(label=gettext("Cluster"), value=source.cluster)
    yield Fact(label=gettext("Servers"), value=source.bootstrap, code=True)
    yield Fact(label=gettext("Topics"), value=patterns_of(source), code=bool(source.include))
    yield Fact(label=gettext("Reads"), value=mode_of(source))
    yield Fact(
        label=gettext("Scan limits"),
        value=gettext("%(max_messages)s messages, %(sized)s, %(max_seconds)s s per scan") % limits,
    )
    yield Fact(label=gettext("Samples"), value=samples)
