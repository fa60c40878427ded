"""Clusters, sources, their topics and scans."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, F, OuterRef, Q, Subquery
from django.utils import timezone

from registry.access.permission_filters import READ, extent_of, require_extent
from registry.access.roles import Actor
from registry.drift.models import Cluster, ClusterQuerySet, Scan, Source, SourceQuerySet, Topic
from registry.errors import ClusterNotFound, SourceNotFound
from registry.frozen_rows import row_info
from registry.streams.models import CheckpointStore

LATELY: Final = timedelta(hours=24)
MOST_UNREADABLE: Final = 20


@dataclass(frozen=True)
class ClusterInfo:
    """A cluster, with the number of its sources; `secret` is the secret's name."""

    id: int
    name: str
    bootstrap: str
    security_protocol: str
    sasl_mechanism: str
    username: str
    secret: str
    ca_pem: str
    created_at: datetime
    created_by: str
    sources: int


@dataclass(frozen=True)
class ScanInfo:
    """A scan. `read` is None until it is done; `read["nothing"]` is true if there was nothing to read.

    A queued scan with `retry_at` waits until then because a server was away: `error` says which.
    """

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
    attempts: int = 0
    detector: int | None = None
    retry_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """Return how long it took; None until it ends."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()

    @property
    def unfinished(self) -> bool:
        """Return whether the page should refresh."""
        return self.state in ("queued", "running")

    @property
    def verdict(self) -> str:
        """Return queued, running, scanned, not scanned, failed or cancelled: reading nothing is never green."""
        if self.state != "done":
            return self.state
        return "not scanned" if not self.read or self.read.get("nothing") else "scanned"


@dataclass(frozen=True)
class StoreInfo:
    """The object store of a checkpoint; `secret` is the secret's name."""

    endpoint: str
    region: str
    access_key_id: str
    secret: str


@dataclass(frozen=True)
class SourceInfo:
    """A source with its last scan and the number of its open findings, without muted ones.

    `last_ended` is the last done or failed scan; another may be queued or running. `cluster` is its name, `bootstrap`
    its servers; both empty without a cluster. `store` is None except for a checkpoint in an object store; `config` has
    the other fields of its kind.
    """

    id: int
    registry: str
    context: str
    kind: str
    name: str
    cluster: str
    bootstrap: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    mode: str
    tail_messages: int
    window_seconds: int
    max_messages: int
    max_bytes: int
    max_seconds: int
    keep_samples: bool
    clean_scans: int
    every_seconds: int | None
    next_scan_at: datetime | None
    topics: int
    open_findings: int
    last_scan: ScanInfo | None
    last_ended: ScanInfo | None = None
    store: StoreInfo | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicInfo:
    """A topic of a source: how far it was read, whose schemas it carries, and why it can't be read."""

    name: str
    partitions: int
    compacted: bool
    retention_ms: int | None
    retention_bytes: int | None
    positions: Mapping[int, int]
    strategies: Mapping[str, tuple[str, ...]]
    subjects: Mapping[str, tuple[str, ...]]
    messages: int
    problem: str
    discovered_at: datetime
    checked_at: datetime | None
    read_at: datetime | None
    gone_at: datetime | None
    open_findings: int


def list_clusters(by: Actor | None = None) -> list[ClusterInfo]:
    """Return all clusters by name; with `by`, only those of sources that they may read, and only these count.

    People who may read everything also see clusters that no source reads. One query.
    """
    rows = _clusters()
    if by is not None and not extent_of(by, READ).is_whole:
        rows = _clusters(Q(sources__in=Source.objects.visible_to(by))).visible_to(by)
    return [_cluster_info(row) for row in rows.order_by("name")]


def get_cluster(name: str) -> ClusterInfo:
    """Return one cluster. Raises ClusterNotFound."""
    row = _clusters().filter(name=name).first()
    if row is None:
        raise ClusterNotFound(f"There is no cluster {name[:128]!r}.", cluster=name)
    return _cluster_info(row)


def cluster_at(number: int) -> ClusterInfo:
    """Return the cluster with that number. Raises ClusterNotFound."""
    row = _clusters().filter(pk=number).first()
    if row is None:
        raise ClusterNotFound(f"There is no cluster {number}.", cluster=str(number))
    return _cluster_info(row)


def list_sources(*, registry: str = "", by: Actor | None = None) -> list[SourceInfo]:
    """Return all sources, those with open findings first; with `by`, only of registries that they may read wholly.

    A source concerns more than one subject. Two queries.
    """
    queryset = _sources().filter(registry__name=registry) if registry else _sources()
    if by is not None:
        queryset = queryset.visible_to(by)
    rows: list[Any] = list(queryset.order_by(F("open_count").desc(), "kind", "name"))
    return _source_infos(rows)


def checkpoint_sources(registry: str) -> dict[str, int]:
    """Return the numbers of a registry's checkpoint sources, by path."""
    from registry.drift.sources import SOURCES  # imported late: it loads what scans need

    kinds = [kind.name for kind in SOURCES.values() if kind.keeps_state]
    rows = Source.objects.filter(registry__name=registry, kind__in=kinds)
    return dict(rows.values_list("name", "pk"))


def get_source(source_id: int, *, by: Actor | None = None) -> SourceInfo:
    """Return one source. Raises NotSignedIn, NotAllowed, SourceNotFound, also if `by` may not read it."""
    rows = _sources()
    if by is not None:
        require_extent(by, READ)
        rows = rows.visible_to(by)
    row: Any = rows.filter(pk=source_id).first()
    if row is None:
        raise SourceNotFound(f"There is no source {source_id}.", source=source_id)
    return _source_infos([row])[0]


def find_source(name_or_number: str, *, registry: str = "") -> SourceInfo:
    """Return the source with that name or number. Raises SourceNotFound, also if several have the name."""
    rows = Source.objects.filter(name=name_or_number)
    if registry:
        rows = rows.filter(registry__name=registry)
    numbers = list(rows.values_list("pk", flat=True)[:2])
    if len(numbers) == 1:
        return get_source(numbers[0])
    if not numbers and name_or_number.isascii() and name_or_number.isdigit() and len(name_or_number) < 19:
        return get_source(int(name_or_number))
    problem = "Several sources are" if numbers else "No source is"
    raise SourceNotFound(f"{problem} named {name_or_number[:200]!r}. Give its registry or its number.")


def list_scans(source_id: int, *, limit: int = 20) -> list[ScanInfo]:
    """Return the scans of a source, newest first."""
    return [scan_info(row) for row in Scan.objects.filter(source_id=source_id).order_by("-id")[:limit]]


def get_scan(scan_id: int, *, by: Actor | None = None) -> ScanInfo:
    """Return one scan, visible like its source. Raises NotSignedIn, NotAllowed, SourceNotFound."""
    rows = Scan.objects.select_related("source__registry")
    if by is not None:
        require_extent(by, READ)
        rows = rows.visible_to(by)
    row = rows.filter(pk=scan_id).first()
    if row is None:
        raise SourceNotFound(f"There is no scan {scan_id}.", scan=scan_id)
    return scan_info(row)


def list_topics(source_id: int) -> list[TopicInfo]:
    """Return the topics of a source by name, missing ones last; one query."""
    open_ones = Count("findings", filter=Q(findings__state="open", findings__muted=False))
    rows = Topic.objects.filter(source_id=source_id).annotate(open_count=open_ones)
    return [_topic_info(row) for row in rows.order_by(F("gone_at").asc(nulls_first=True), "name")]


@dataclass(frozen=True)
class UnreadableTopic:
    """A topic that the last scan couldn't read, and why; `right` is the ACL that the cluster's user lacks, or ""."""

    name: str
    source_id: int
    reason: str
    right: str


@dataclass(frozen=True)
class TopicCoverage:
    """The number of topics, of fresh ones (read, and checked recently), and at most MOST_UNREADABLE unreadable ones.

    A topic whose offsets were only fetched isn't fresh.
    """

    topics: int
    fresh: int
    unreadable: tuple[UnreadableTopic, ...]
    unreadable_count: int


def topic_coverage(source_ids: Sequence[int]) -> TopicCoverage:
    """Return the coverage of these sources' topics in the last 24 hours; two queries."""
    rows = Topic.objects.filter(source__in=source_ids, gone_at=None)
    recent = Q(checked_at__gte=timezone.now() - LATELY, read_at__isnull=False, problem="")
    counts = rows.aggregate(
        topics=Count("pk"), fresh=Count("pk", filter=recent), unreadable=Count("pk", filter=~Q(problem=""))
    )
    refused = rows.exclude(problem="").order_by("name", "pk")
    values = refused.values_list("name", "source_id", "problem", "source__cluster__username")[:MOST_UNREADABLE]
    unreadable = tuple(
        UnreadableTopic(name, source, problem, missing_right(name, problem, user or ""))
        for name, source, problem, user in values
    )
    return TopicCoverage(counts["topics"], counts["fresh"], unreadable, counts["unreadable"])


def missing_right(topic: str, problem: str, user: str) -> str:
    """Return the kafka-acls command for the missing right; "" if that isn't the problem."""
    operations = [f"--operation {name}" for name in ("Describe", "Read") if re.search(rf"\b{name}\b", problem)]
    if not operations or not re.search(r"can't (describe|read)|may not|(not|isn't) allowed|lacks", problem):
        return ""
    who = shlex.quote(f"User:{user or 'ANONYMOUS'}")
    return f"kafka-acls --add --allow-principal {who} {' '.join(operations)} --topic {shlex.quote(topic)}"


def _clusters(counted: Q | None = None) -> ClusterQuerySet:
    return Cluster.objects.annotate(source_count=Count("sources", filter=counted))


def _sources() -> SourceQuerySet:
    newest = Scan.objects.filter(source=OuterRef("pk")).order_by("-id").values("pk")
    topics = (
        Topic.objects.filter(source=OuterRef("pk"), gone_at=None)
        .order_by()
        .values("source")
        .annotate(number=Count("pk"))
        .values("number")
    )
    return Source.objects.select_related("registry", "cluster", "store").annotate(
        open_count=Count("findings", filter=Q(findings__state="open", findings__muted=False)),
        topic_count=Subquery(topics),
        last_scan_id=Subquery(newest[:1]),
        last_ended_id=Subquery(newest.filter(state__in=("done", "failed"))[:1]),
    )


def _cluster_info(row: Any) -> ClusterInfo:
    return row_info(ClusterInfo, row, sources=row.source_count)


def _source_infos(rows: Sequence[Any]) -> list[SourceInfo]:
    numbers = {number for row in rows for number in (row.last_scan_id, row.last_ended_id) if number}
    scans = {number: scan_info(scan) for number, scan in Scan.objects.in_bulk(numbers).items()}
    return [_source_info(row, scans) for row in rows]


def _source_info(row: Any, scans: Mapping[int, ScanInfo]) -> SourceInfo:
    return row_info(
        SourceInfo,
        row,
        registry=row.registry.name,
        cluster=row.cluster.name if row.cluster else "",
        bootstrap=row.cluster.bootstrap if row.cluster else "",
        include=tuple(row.include),
        exclude=tuple(row.exclude),
        topics=row.topic_count or 0,
        open_findings=row.open_count,
        last_scan=scans.get(row.last_scan_id),
        last_ended=scans.get(row.last_ended_id),
        store=_store_info(getattr(row, "store", None)),
        config=row.config,
    )


def _store_info(row: CheckpointStore | None) -> StoreInfo | None:
    return None if row is None else StoreInfo(row.endpoint, row.region, row.access_key_id, row.secret)


def scan_info(row: Scan) -> ScanInfo:
    """Convert a row to a ScanInfo."""
    return row_info(ScanInfo, row)


def _topic_info(row: Any) -> TopicInfo:
    return row_info(
        TopicInfo,
        row,
        positions={int(number): offset for number, offset in row.positions.items()},
        strategies={side: tuple(names) for side, names in row.strategies.items()},
        subjects={side: tuple(names) for side, names in row.subjects.items()},
        open_findings=row.open_count,
    )
