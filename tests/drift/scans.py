"""Sources and scans as the tests of the life cycle make them, without a broker and without Spark."""

from __future__ import annotations

from typing import Any

from registry.access.roles import Actor
from registry.drift import services
from registry.drift.judge import JudgedFinding
from registry.drift.models import Cluster, Finding, Scan, Source
from registry.drift.scan.persistence import keep_result
from registry.drift.services import ScanClaim
from registry.drift.sources.base import ScannedTopic, ScanResult
from registry.observations import FramedMessages, Observation, Span
from registry.subjects.models import Registry

READ = {"nothing": False, "messages": 5, "bytes": 9, "seconds": 0.1, "bound_reached": None, "partitions": [], "ids": []}


def make_source(**values: Any) -> Source:
    """A source of topics at a cluster that nobody answers for."""
    cluster, _ = Cluster.objects.get_or_create(name="local", bootstrap="127.0.0.1:1", created_by="tests")
    base = {
        "registry": Registry.objects.get(name="dev"),
        "kind": "kafka",
        "name": "topics",
        "cluster": cluster,
        "created_by": "tests",
    }
    return Source.objects.create(**(base | values))


def judged(name: str = "a", **values: Any) -> JudgedFinding:
    """A finding of topic `orders`."""
    base = {
        "rule": "UNKNOWN_SCHEMA_ID",
        "severity": "break",
        "fingerprint": name * 64,
        "sentence": f"finding {name}",
        "remedy": "look",
        "location": f"orders:0@{name}",
        "count": 1,
        "evidence": {"topic": "orders"},
        "topic": "orders",
        "subject": "orders-value",
    }
    return JudgedFinding(**(base | values))


def topic(name: str = "orders", **values: Any) -> ScannedTopic:
    """A topic of which five new messages were read to the end."""
    base = {"partitions": 1, "positions": {0: 5}, "messages": 5, "fresh": 5, "clean": True}
    return ScannedTopic(name, **(base | values))


def framed(name: str = "orders", mark: str = "7", first: int = 0, last: int = 4, **values: Any) -> FramedMessages:
    """Messages of partition 0 that carry a schema id, one an offset."""
    number = last - first + 1
    span = Span(number, number * 10, first, last, 1_000 + first, 1_000 + last)
    return FramedMessages(
        **({"topic": name, "side": "value", "partition": 0, "framing": "id", "mark": mark, "span": span} | values)
    )


def claim(source: Source, by: Actor) -> ScanClaim:
    """A scan of the source, queued and claimed."""
    claimed = services.claim_scan(services.queue_scan(source_id=source.pk, by=by))
    assert claimed is not None
    return claimed


def scan(
    source: Source,
    by: Actor,
    *findings: JudgedFinding,
    topics: tuple[ScannedTopic, ...] | None = None,
    observations: tuple[Observation, ...] = (),
    complete: bool = True,
    read: dict[str, Any] | None = None,
) -> Scan:
    """A scan that found this, kept."""
    claimed = claim(source, by)
    topic_list = (topic(),) if topics is None else topics
    assert keep_result(claimed, ScanResult(findings, read or READ, complete, topic_list, observations))
    return Scan.objects.get(pk=claimed.scan_id)


def states() -> dict[str, str]:
    """Findings by their sentence."""
    return dict(Finding.objects.values_list("sentence", "state"))
