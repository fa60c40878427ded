"""What every kind of source gives the scan service, and the rows of its topics."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from registry.drift.judge import JudgedFinding, Registered
from registry.drift.models import Cluster, SchemaUse, Source, Topic
from registry.errors import SparkUnavailable
from registry.observations import Observation
from registry.streams.models import CheckpointStore
from registry.streams.scan_result import ScannedQuery
from registry.subjects.models import Registry

__all__ = [
    "OnProgress",
    "ScanResult",
    "ScannedTopic",
    "SourceDraft",
    "SourceKind",
    "deadline_seconds",
    "session_of",
    "sessions_of",
    "spark_remote",
]


FACTS = ("partitions", "compacted", "retention_ms", "retention_bytes", "problem", "checked_at", "gone_at")


@dataclass(frozen=True)
class ScannedTopic:
    """A topic as one scan found it.

    `positions` are the next offsets to read, of those partitions that moved. `messages` were read, `fresh` of them for the first time. `clean` is true
    where the scan could have seen any finding of it: messages were read, to the end, without a problem. `again` is
    true where offsets were read that an earlier scan had read, so that counts aren't simply added. `restarted` is true
    where the topic was made anew: what was known of its offsets is void. `cluster_id` is the cluster's own id of it,
    empty where there is none. `waits` is true where `problem` is a broker that may be back soon: what was read of the
    topic by then counts. `tables` are those whose changes it carries, as (database, schema, table).
    """

    name: str
    partitions: int = 0
    cluster_id: str = ""
    compacted: bool = False
    retention_ms: int | None = None
    retention_bytes: int | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    messages: int = 0
    fresh: int = 0
    clean: bool = False
    again: bool = False
    restarted: bool = False
    gone: bool = False
    problem: str = ""
    waits: bool = False
    tables: tuple[tuple[str, str, str], ...] = ()


def note_topics(source: Source, topics: Iterable[ScannedTopic]) -> None:
    """Keep what the cluster says of the topics, before anything is read; two queries, however many there are.

    Facts alone: what a scan that fails afterwards leaves behind is still true.
    """
    now = timezone.now()
    gone_since = dict(source.topics.filter(gone_at__isnull=False).values_list("name", "gone_at"))
    rows = [
        Topic(
            source=source,
            name=topic.name,
            partitions=topic.partitions,
            compacted=topic.compacted,
            retention_ms=topic.retention_ms,
            retention_bytes=topic.retention_bytes,
            problem=topic.problem,
            checked_at=now,
            gone_at=gone_since.get(topic.name, now) if topic.gone else None,
        )
        for topic in topics
    ]
    Topic.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["source", "name"], update_fields=FACTS, batch_size=1000
    )


@transaction.atomic
def keep_topics(source: Source, scanned: Iterable[ScannedTopic]) -> dict[str, Topic]:
    """Move positions and counts by what a scan read; gives the rows by name.

    Of a topic that was made anew, what was known of its offsets is dropped first.
    """
    topics = list(scanned)
    rows = {row.name: row for row in source.topics.filter(name__in=[topic.name for topic in topics])}
    now = timezone.now()
    missing = [
        Topic(source=source, name=topic.name, partitions=topic.partitions) for topic in topics if topic.name not in rows
    ]
    if missing:
        rows |= {row.name: row for row in Topic.objects.bulk_create(missing)}
    restarted = [topic.name for topic in topics if topic.restarted and not topic.problem]
    if restarted:
        SchemaUse.objects.filter(topic__source=source, topic__name__in=restarted).delete()
    changed = []
    for topic in topics:
        row = rows[topic.name]
        if topic.name in restarted:
            row.positions, row.messages, row.message_types, row.tables = {}, 0, {}, []
        tables = [list(name) for name in sorted({*(tuple(name) for name in row.tables), *topic.tables})]
        # The id goes with the positions: a scan that fails leaves both, so that the next one notices another topic.
        stays = bool(topic.problem) and not topic.positions
        cluster_id = row.cluster_id if stays else topic.cluster_id or row.cluster_id
        is_same = (row.problem, row.cluster_id, row.tables) == (topic.problem, cluster_id, tables)
        if is_same and not topic.positions and topic.name not in restarted:
            continue
        row.cluster_id, row.tables = cluster_id, tables
        row.positions = row.positions | {str(number): offset for number, offset in topic.positions.items()}
        row.messages += topic.fresh
        row.problem = topic.problem
        row.read_at = now if topic.positions else row.read_at
        changed.append(row)
    if changed:
        Topic.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["positions", "messages", "message_types", "problem", "read_at", "cluster_id", "tables"],
            batch_size=1000,
        )
    return rows


MAX_PASSES = 2
#: done, total, phase
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class SourceDraft:
    """A source as somebody asks for it, before it is stored."""

    registry: Registry
    name: str
    cluster: Cluster | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    connector: Mapping[str, Any] = field(default_factory=dict)
    store: CheckpointStore | None = None


@dataclass(frozen=True)
class ScanResult:
    """What a scan read and what was judged.

    `read` is what the page shows of it; its `nothing` is true where there was nothing to read. `complete` is False
    where a bound cut the scan short: then no finding that concerns no topic may be counted as unseen; nor may one of the
    rules `out_of_reach`, which are about rows that Spark can't open here, and of which nothing is known. `topics`,
    `waits` says which server was away that kept something from the scan: the rest is scanned again after a pause.
    `observations` and `registered` are what the kept knowledge of topics grows by, `query` that of streaming queries.
    """

    findings: tuple[JudgedFinding, ...]
    read: dict[str, Any]
    complete: bool
    topics: tuple[ScannedTopic, ...] = ()
    observations: tuple[Observation, ...] = ()
    registered: Registered | None = None
    query: ScannedQuery | None = None
    out_of_reach: frozenset[str] = frozenset()
    waits: str = ""


def deadline_seconds(source: Source) -> float:
    """How long a scan of a source may take: its own limit, or the deployment's where that is tighter."""
    return float(min(source.max_seconds, settings.SCAN_DEADLINE_SECONDS))


def spark_remote() -> str:
    """The address of the Spark Connect server. Raises SparkUnavailable where none is set."""
    if not settings.SPARK_REMOTE:
        raise SparkUnavailable(
            "No Spark Connect server is configured. Start `up` with Spark, or set SPARK_REMOTE.", is_lasting=True
        )
    return str(settings.SPARK_REMOTE)


def session_of(tag: str, number: int = 1) -> str:
    """The Spark session of a pass of a scan's claim, so that any process can interrupt it by the tag alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, tag if number == 1 else f"{tag}#{number}"))


def sessions_of(tag: str) -> tuple[str, ...]:
    """All sessions that a scan's claim may have."""
    return tuple(session_of(tag, number) for number in range(1, MAX_PASSES + 1))


class SourceKind(Protocol):
    """One kind of source."""

    def check(self, draft: SourceDraft) -> str:
        """The name under which the source is stored; raises InvalidSource, InvalidCheckpoint or BrokerUnavailable."""

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Observe and judge. Raises Unavailable errors, InvalidSource and InvalidCheckpoint with the reason."""
