"""A Kafka topic: looked at through the broker's own client, read by Spark, judged against a registry."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from django.conf import settings

from registry.drift.judge import Registered, RegisteredVersion, judge, nothing_read
from registry.drift.sources.base import CheckedSource, OnProgress, Place, ScanResult, session_of, spark_remote
from registry.errors import BrokerUnavailable, InvalidSource
from registry.observations import (
    Bounds,
    FramedMessages,
    KafkaConnection,
    NullMessages,
    Observation,
    PartitionRange,
    PartitionRead,
    Side,
    TopicScan,
    TopicTotals,
)
from registry.subjects.models import Registry
from registry.subjects.selectors import all_versions, self_contained_schemas

TIMEOUT_SECONDS = 8
CONNECT_SECONDS = 3
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
BOOTSTRAP = re.compile(r"[A-Za-z0-9.\-\[\]:]{1,255}:\d{1,5}(,[A-Za-z0-9.\-\[\]:]{1,255}:\d{1,5}){0,9}")


def check_address(name: str, bootstrap: str) -> CheckedSource:
    """The topic and servers in their final form. Raises InvalidSource for what can't be a topic or an address."""
    if not TOPIC.fullmatch(name) or name in (".", ".."):
        raise InvalidSource(f"{name[:80]!r} is not a topic's name: 1 to 249 letters, digits, '.', '_' and '-'.")
    servers = bootstrap.replace(" ", "")
    if not BOOTSTRAP.fullmatch(servers):
        raise InvalidSource(
            f"{bootstrap[:80]!r} is not a list of bootstrap servers; write host:port, or several with commas."
        )
    return CheckedSource(name=name, bootstrap=servers)


def partitions_of(topic: str, bootstrap: str) -> list[int]:
    """The topic's partitions. Raises BrokerUnavailable, InvalidSource for a topic that isn't there."""
    _require_listener(bootstrap)
    admin = AdminClient(_settings(bootstrap))
    try:
        found = admin.list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
    except KafkaException as error:
        raise unavailable(bootstrap, error) from error
    if found.error is not None or not found.partitions:
        raise InvalidSource(f"The cluster at {bootstrap} has no topic {topic!r}.")
    return sorted(found.partitions)


def ranges_of(topic: str, bootstrap: str) -> tuple[PartitionRange, ...]:
    """What every partition holds now, from its low to its high watermark. Raises as partitions_of does."""
    consumer = Consumer(_settings(bootstrap) | {"group.id": "schemadesk-offsets", "enable.auto.commit": False})
    try:
        ranges = []
        for partition in partitions_of(topic, bootstrap):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_SECONDS)
            ranges.append(PartitionRange(partition=partition, start=low, end=high, low=low, high=high))
        return tuple(ranges)
    except KafkaException as error:
        raise unavailable(bootstrap, error) from error
    finally:
        consumer.close()


def _require_listener(bootstrap: str) -> None:
    """Raise BrokerUnavailable at once where no server takes a connection: the client would wait its whole time-out."""
    reasons = []
    for server in bootstrap.split(","):
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{server}: {error}")
        else:
            return
    raise BrokerUnavailable(
        f"No Kafka broker answers at {bootstrap} ({'; '.join(reasons)}). Check the address, and that the broker runs.",
        bootstrap=bootstrap,
    )


def unavailable(bootstrap: str, error: KafkaException) -> BrokerUnavailable:
    """The error of a cluster that doesn't answer, with what the client says."""
    return BrokerUnavailable(
        f"The Kafka cluster at {bootstrap} doesn't answer within {TIMEOUT_SECONDS} s ({error.args[0].str()})."
        " Check the address, and that the broker runs.",
        bootstrap=bootstrap,
    )


def _settings(bootstrap: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "socket.timeout.ms": TIMEOUT_SECONDS * 1000,
        "log_level": 0,
        "allow.auto.create.topics": False,
    }


def registered_for(registry: Registry, topic: str) -> Registered:
    """What the registry's default context holds: each id's versions, and the topic's own subjects.

    Subjects are mapped by the topic's name (`orders-key`, `orders-value`).
    """
    versions: dict[int, list[RegisteredVersion]] = {}
    for info in all_versions(registry):
        name = info.subject.qualified
        versions.setdefault(info.schema_id, []).append(RegisteredVersion(name, info.version, info.deleted))
    names = {found.subject for group in versions.values() for found in group}
    sides: tuple[Side, ...] = ("key", "value")
    expected = {side: (f"{topic}-{side}",) for side in sides if f"{topic}-{side}" in names}
    return Registered(
        registry=registry.name, versions={key: tuple(group) for key, group in versions.items()}, expected=expected
    )


class KafkaTopic:
    """The committed messages of a topic."""

    def check(self, *, name: str, bootstrap: str) -> CheckedSource:
        """The topic is there and its cluster answers. Raises InvalidSource, BrokerUnavailable."""
        checked = check_address(name, bootstrap)
        partitions_of(checked.name, checked.bootstrap)
        return checked

    def scan(self, place: Place, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read all that the topic holds now, within the bounds, and judge it."""
        from registry.pipeline.run import run  # late: only a scan needs PySpark

        on_progress(0, 0, "asking the broker for offsets")
        ranges = ranges_of(place.name, place.bootstrap)
        registered = registered_for(place.registry, place.name)
        spec = TopicScan(
            connection=KafkaConnection(bootstrap=place.bootstrap),
            topic=place.name,
            ranges=ranges,
            writer_schemas=writer_schemas(place.registry, registered),
            bounds=Bounds(
                max_messages=settings.SCAN_MAX_MESSAGES, deadline_seconds=float(settings.SCAN_DEADLINE_SECONDS)
            ),
        )
        observations = run(spec, remote=spark_remote(), on_progress=on_progress, tag=tag, session_id=session_of(tag))
        totals = next(seen for seen in observations if isinstance(seen, TopicTotals))
        read = [seen for seen in observations if isinstance(seen, PartitionRead)]
        return ScanResult(
            findings=tuple(judge(observations, registered)),
            read=_what_was_read(observations, totals, read),
            complete=totals.bound_reached is None,
            positions={str(seen.partition): seen.end for seen in read},
        )


def writer_schemas(registry: Registry, registered: Registered) -> dict[int, str]:
    """The Avro texts, self-contained, of the ids that belong to the topic's own subjects."""
    wanted = {name for names in registered.expected.values() for name in names}
    ids = {
        schema_id
        for schema_id, versions in registered.versions.items()
        if any(version.subject in wanted for version in versions)
    }
    return self_contained_schemas(registry, ids, schema_type="AVRO")


def _what_was_read(
    observations: Sequence[Observation], totals: TopicTotals, read: Sequence[PartitionRead]
) -> dict[str, Any]:
    """What the page shows: totals, positions by partition, and messages by side and schema id."""
    ids: dict[tuple[str, int], int] = {}
    tombstones = 0
    for seen in observations:
        if isinstance(seen, FramedMessages):
            ids[seen.side, seen.schema_id] = ids.get((seen.side, seen.schema_id), 0) + seen.span.messages
        if isinstance(seen, NullMessages) and seen.side == "value":
            tombstones += seen.span.messages
    return {
        "nothing": nothing_read(observations),
        "messages": totals.messages,
        "bytes": totals.bytes,
        "seconds": round(totals.seconds, 2),
        "bound_reached": totals.bound_reached,
        "tombstones": tombstones,
        "partitions": [
            {
                "partition": seen.partition,
                "start": seen.start,
                "end": seen.end,
                "high": seen.high,
                "messages": seen.messages,
            }
            for seen in read
        ],
        "ids": [{"side": side, "schema_id": key, "messages": number} for (side, key), number in sorted(ids.items())],
    }
