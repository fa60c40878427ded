"""What clusters say now of topics: first and next offsets, what lets data go, and how far consumer groups have read.

Bounded in time and number; what wasn't asked or not answered in time is said.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from registry.drift.connecting import admin_of
from registry.drift.models import Cluster, Topic
from registry.drift.retirement import GroupPosition, Groups, Retention
from registry.errors import SchemadeskError

SECONDS_A_CLUSTER: Final = 5.0
MAX_CLUSTERS: Final = 5
MAX_GROUPS: Final = 300
MAX_PARTITIONS: Final = 5_000


def ask_clusters(
    stored: Mapping[int, Retention], used: Collection[int]
) -> tuple[dict[int, Retention], Groups, tuple[str, ...]]:
    """Retention by topic number with what the clusters add, the groups of the topics in `used`, and what failed.

    A cluster that doesn't answer leaves its topics as they are stored. Two queries.
    """
    rows = Topic.objects.filter(pk__in=stored, gone_at=None, source__cluster__isnull=False)
    by_cluster: dict[int, list[Topic]] = {}
    for row in rows.select_related("source"):
        by_cluster.setdefault(row.source.cluster_id or 0, []).append(row)
    found, positions, problems = dict(stored), [], []
    clusters = Cluster.objects.in_bulk(list(by_cluster)[:MAX_CLUSTERS])
    if len(by_cluster) > MAX_CLUSTERS:
        problems.append(f"only {MAX_CLUSTERS} of {len(by_cluster)} clusters were asked")
    for number, cluster in clusters.items():
        asking = _Asking(cluster)
        try:
            found |= asking.retention(by_cluster[number], stored)
            positions += asking.groups([topic for topic in by_cluster[number] if topic.pk in used])
        except SchemadeskError as error:
            problems.append(f"{cluster.name}: {error.message}")
        except (KafkaException, FutureTimeout) as error:
            problems.append(f"{cluster.name}: {_words(error)}")
        problems += [f"{cluster.name}: {problem}" for problem in asking.problems]
    return found, Groups(tuple(positions), "; ".join(problems)), tuple(problems)


class _Asking:
    """Calls to one cluster, all of them within one deadline."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connected: AdminClient | None = None
        self._ends = time.monotonic() + SECONDS_A_CLUSTER
        self.problems: list[str] = []

    @property
    def _admin(self) -> AdminClient:
        if self._connected is None:
            self._connected = admin_of(self._cluster)
            self._ends = time.monotonic() + SECONDS_A_CLUSTER  # connecting has a limit of its own
        return self._connected

    def retention(self, topics: Sequence[Topic], stored: Mapping[int, Retention]) -> dict[int, Retention]:
        """What lets the data of these topics go, with their offsets."""
        admin = self._admin
        asked = [topic for topic in topics if topic.partitions][:MAX_PARTITIONS]
        configs = admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, topic.name) for topic in asked], request_timeout=self._left()
        )
        values = {resource.name: self._result(future) for resource, future in configs.items()}
        lows, highs = self._offsets(asked, OffsetSpec.earliest()), self._offsets(asked, OffsetSpec.latest())
        found = {}
        for topic in asked:
            known = replace(stored[topic.pk], lows=lows.get(topic.name), highs=highs.get(topic.name))
            config = values.get(topic.name)
            if config is not None:
                policies = {policy.strip() for policy in config["cleanup.policy"].value.split(",")}
                known = replace(
                    known,
                    compacted="compact" in policies,
                    deletes="delete" in policies,
                    ms=int(config["retention.ms"].value),
                )
            found[topic.pk] = known
        return found

    def _offsets(self, topics: Sequence[Topic], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        """By topic and partition; a topic with a partition that doesn't answer is left out."""
        asked = {
            TopicPartition(topic.name, partition): spec for topic in topics for partition in range(topic.partitions)
        }
        if len(asked) > MAX_PARTITIONS:
            self.problems.append(f"{len(asked):,} partitions are too many to ask for their offsets")
            return {}
        found: dict[str, dict[int, int]] = {}
        missing = set()
        for place, future in self._admin.list_offsets(asked, request_timeout=self._left()).items():
            answer = self._result(future)
            if answer is None:
                missing.add(place.topic)
            else:
                found.setdefault(place.topic, {})[place.partition] = answer.offset
        return {topic: offsets for topic, offsets in found.items() if topic not in missing}

    def groups(self, topics: Sequence[Topic]) -> list[GroupPosition]:
        """What the groups have committed for these topics."""
        if not topics:
            return []
        listed = self._admin.list_consumer_groups(request_timeout=self._left()).result(self._left())
        names = sorted(group.group_id for group in listed.valid)
        if listed.errors:
            self.problems.append(f"its groups aren't all told: {_words(listed.errors[0])}")
        if len(names) > MAX_GROUPS:
            self.problems.append(f"{MAX_GROUPS} of its {len(names)} consumer groups were asked")
        numbers = {topic.name: topic.pk for topic in topics}
        futures = [
            self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=self._left())[
                name
            ]
            for name in names[:MAX_GROUPS]
        ]
        found: list[GroupPosition] = []
        for name, future in zip(names, futures, strict=False):
            answer = self._result(future)
            places = answer.topic_partitions if answer is not None else ()
            found += [
                GroupPosition(name, numbers[place.topic], place.partition, place.offset)
                for place in places
                if place.topic in numbers and place.offset >= 0
            ]
        return found

    def _result(self, future: Future[Any]) -> Any:
        """An answer, or None and the problem noted once."""
        try:
            return future.result(self._left())
        except (KafkaException, FutureTimeout) as error:
            problem = _words(error)
            if problem not in self.problems:
                self.problems.append(problem)
            return None

    def _left(self) -> float:
        return max(0.1, self._ends - time.monotonic())


def _words(error: BaseException) -> str:
    if isinstance(error, FutureTimeout):
        return f"it didn't answer within {SECONDS_A_CLUSTER:g} s"
    inner = error.args[0] if error.args else error
    return str(inner.str()) if hasattr(inner, "str") else str(inner)
