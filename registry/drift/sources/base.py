"""What every kind of source gives the scan service."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings

from registry.drift.judge import JudgedFinding, Registered
from registry.drift.models import Cluster, Source
from registry.drift.topics import TopicSeen
from registry.errors import SparkUnavailable
from registry.observations import Observation
from registry.streams.models import CheckpointStore
from registry.streams.seen import QuerySeen
from registry.subjects.models import Registry

MAX_PASSES = 2
#: done, total, phase
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Given:
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
    topics: tuple[TopicSeen, ...] = ()
    observations: tuple[Observation, ...] = ()
    registered: Registered | None = None
    query: QuerySeen | None = None
    out_of_reach: frozenset[str] = frozenset()
    waits: str = ""


__all__ = ["Given", "OnProgress", "ScanResult", "SourceKind", "TopicSeen", "session_of", "sessions_of", "spark_remote"]


def spark_remote() -> str:
    """The address of the Spark Connect server. Raises SparkUnavailable where none is set."""
    if not settings.SPARK_REMOTE:
        raise SparkUnavailable(
            "No Spark Connect server is set: start `up` with Spark, or set SPARK_REMOTE.", is_lasting=True
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

    def check(self, given: Given) -> str:
        """The name under which the source is stored; raises InvalidSource, InvalidCheckpoint or BrokerUnavailable."""

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Observe and judge. Raises Unavailable errors, InvalidSource and InvalidCheckpoint with the reason."""
