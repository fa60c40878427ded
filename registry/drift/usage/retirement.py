"""Retirement of a subject's versions, from stored scans, the clusters' current state, and Spark's state.

Clusters are asked for first and next offsets, retention, and positions of consumer groups, with limits on time and
number; what wasn't asked or didn't answer in time is listed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, OffsetSpec, ResourceType
from django.utils import timezone

from registry.access.permission_filters import extent_of
from registry.access.roles import Actor
from registry.drift.models import Cluster, Topic
from registry.drift.sources.kafka_connection import admin_of
from registry.drift.usage.retirement_rules import (
    GroupPosition,
    Groups,
    Retention,
    Retirement,
    can_retire,
    combined,
    judge_data,
    judge_topics,
)
from registry.drift.usage.version_usage import SubjectUse, VersionUse, usage_of
from registry.errors import SchemadeskError
from registry.subjects.models import Registry
from registry.subjects.usage.evidence import Evidence, InUse, evidence_of
from registry.subjects.versions.qualified_names import SubjectName

SECONDS_A_CLUSTER: Final = 5.0
MAX_CLUSTERS: Final = 5
MAX_GROUPS: Final = 300
MAX_PARTITIONS: Final = 5_000


def query_clusters(
    stored: Mapping[int, Retention], used: Collection[int]
) -> tuple[dict[int, Retention], Groups, tuple[str, ...]]:
    """Return retention by topic number, updated by the clusters, the groups of the topics in `used`, and what failed.

    Topics of a cluster that doesn't answer keep their stored values. Two queries.
    """
    rows = Topic.objects.filter(pk__in=stored, gone_at=None, source__cluster__isnull=False)
    by_cluster: dict[int, list[Topic]] = {}
    for row in rows.select_related("source"):
        by_cluster.setdefault(row.source.cluster_id or 0, []).append(row)
    retention, positions, problems = dict(stored), [], []
    clusters = Cluster.objects.in_bulk(list(by_cluster)[:MAX_CLUSTERS])
    if len(by_cluster) > MAX_CLUSTERS:
        problems.append(f"only {MAX_CLUSTERS} of {len(by_cluster)} clusters were checked")
    for number, cluster in clusters.items():
        asking = _ClusterReader(cluster)
        try:
            retention |= asking.retention(by_cluster[number], stored)
            positions += asking.groups([topic for topic in by_cluster[number] if topic.pk in used])
        except SchemadeskError as error:
            problems.append(f"{cluster.name}: {error.message}")
        except (KafkaException, FutureTimeout) as error:
            problems.append(f"{cluster.name}: {_words(error)}")
        problems += [f"{cluster.name}: {problem}" for problem in asking.problems]
    return retention, Groups(tuple(positions), "; ".join(problems)), tuple(problems)


class _ClusterReader:
    """Calls to one cluster, all within one deadline."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connected: AdminClient | None = None
        self._ends = time.monotonic() + SECONDS_A_CLUSTER
        self.problems: list[str] = []

    @property
    def _admin(self) -> AdminClient:
        if self._connected is None:
            self._connected = admin_of(self._cluster)
            self._ends = time.monotonic() + SECONDS_A_CLUSTER  # connecting has its own limit
        return self._connected

    def retention(self, topics: Sequence[Topic], stored: Mapping[int, Retention]) -> dict[int, Retention]:
        """Return the retention of these topics, with their offsets."""
        admin = self._admin
        listed = [topic for topic in topics if topic.partitions][:MAX_PARTITIONS]
        configs = admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, topic.name) for topic in listed], request_timeout=self._left()
        )
        values = {resource.name: self._result(future) for resource, future in configs.items()}
        lows, highs = self._offsets(listed, OffsetSpec.earliest()), self._offsets(listed, OffsetSpec.latest())
        by_topic = {}
        for topic in listed:
            entry = replace(stored[topic.pk], lows=lows.get(topic.name), highs=highs.get(topic.name))
            config = values.get(topic.name)
            if config is not None:
                policies = {policy.strip() for policy in config["cleanup.policy"].value.split(",")}
                entry = replace(
                    entry,
                    compacted="compact" in policies,
                    deletes="delete" in policies,
                    ms=int(config["retention.ms"].value),
                )
            by_topic[topic.pk] = entry
        return by_topic

    def _offsets(self, topics: Sequence[Topic], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        """Return offsets by topic and partition; omits a topic with a partition that doesn't answer."""
        specs = {
            TopicPartition(topic.name, partition): spec for topic in topics for partition in range(topic.partitions)
        }
        if len(specs) > MAX_PARTITIONS:
            self.problems.append(f"{len(specs):,} partitions are too many to fetch their offsets")
            return {}
        by_topic: dict[str, dict[int, int]] = {}
        missing = set()
        for partition_key, future in self._admin.list_offsets(specs, request_timeout=self._left()).items():
            result = self._result(future)
            if result is None:
                missing.add(partition_key.topic)
            else:
                by_topic.setdefault(partition_key.topic, {})[partition_key.partition] = result.offset
        return {topic: offsets for topic, offsets in by_topic.items() if topic not in missing}

    def groups(self, topics: Sequence[Topic]) -> list[GroupPosition]:
        """Return the offsets that consumer groups committed for these topics."""
        if not topics:
            return []
        cluster = self._result(
            self._admin.describe_cluster(include_authorized_operations=True, request_timeout=self._left())
        )
        if cluster is not None and AclOperation.DESCRIBE not in (cluster.authorized_operations or ()):
            # Without it, the list silently omits groups.
            self.problems.append("its user can't list all consumer groups; grant it Describe on the cluster")
        listed = self._admin.list_consumer_groups(request_timeout=self._left()).result(self._left())
        names = sorted(group.group_id for group in listed.valid)
        if listed.errors:
            self.problems.append(f"not all of its consumer groups were listed: {_words(listed.errors[0])}")
        if len(names) > MAX_GROUPS:
            self.problems.append(f"{MAX_GROUPS} of its {len(names)} consumer groups were checked")
        numbers = {topic.name: topic.pk for topic in topics}
        futures = [
            self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=self._left())[
                name
            ]
            for name in names[:MAX_GROUPS]
        ]
        positions: list[GroupPosition] = []
        for name, future in zip(names, futures, strict=False):
            result = self._result(future)
            partitions = result.topic_partitions if result is not None else ()
            positions += [
                GroupPosition(name, numbers[partition.topic], partition.partition, partition.offset)
                for partition in partitions
                if partition.topic in numbers and partition.offset >= 0
            ]
        return positions

    def _result(self, future: Future[Any]) -> Any:
        """Return an answer; None after recording the problem once."""
        try:
            return future.result(self._left())
        except (KafkaException, FutureTimeout) as error:
            problem = _words(error)
            if problem not in self.problems:
                self.problems.append(problem)
            return None

    def _left(self) -> float:
        return max(0.1, self._ends - time.monotonic())


#: the cluster's error → the right that its user lacks
_DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "its user may not read the settings of a topic; grant it DescribeConfigs",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "its user may not read the offsets of a consumer group; grant it Describe",
}


def _words(error: BaseException) -> str:
    if isinstance(error, FutureTimeout):
        return f"it didn't answer within {SECONDS_A_CLUSTER:g} s"
    inner = error.args[0] if error.args else error
    if isinstance(inner, KafkaError) and inner.code() in _DENIED:
        return _DENIED[inner.code()]
    return str(inner.str()) if hasattr(inner, "str") else str(inner)


_NOT_ASKED: Final = Groups((), "the clusters were not checked")
#: for people who may not read the whole registry that these clusters belong to
_NOT_ALL_ASKED: Final = "not all clusters could be checked"
_IN_USE: Final[Mapping[str, InUse]] = {"no": "yes", "not_before": "yes", "unknown": "unknown", "yes": "no"}


@dataclass(frozen=True)
class SubjectRetirement:
    """The use of a subject, whether each version (by number) can be retired, and the subject as a whole.

    `problems` says which clusters didn't answer; `asked_at` is when they were read, None if nothing was.
    """

    use: SubjectUse
    versions: Mapping[int, Retirement]
    subject: Retirement
    evidence: Mapping[int, tuple[Evidence, ...]]
    problems: tuple[str, ...]
    asked_at: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with times unconverted."""
        return {
            "registry": self.use.registry,
            "subject": self.use.subject,
            "retirement": _retirement_dict(self.subject),
            "versions": [
                {
                    **asdict(version),
                    "retirement": _retirement_dict(self.versions[version.version]),
                    "evidence": [item.to_dict() for item in self.evidence.get(version.version, ())],
                }
                for version in self.use.versions
            ],
            "coverage": [asdict(item) | {"sentence": item.sentence} for item in self.use.coverage],
            "problems": list(self.problems),
            "asked_at": self.asked_at,
        }


def retirement_of(registry: Registry, subject: SubjectName, *, by: Actor, ask: bool = True) -> SubjectRetirement:
    """Return whether a subject's versions can be retired; `ask` also queries the clusters, for some seconds each.

    Subjects that `by` may not read are counted, never named. Raises SubjectNotFound.
    """
    use = usage_of(registry, subject, by=by)
    stored = {topic.topic_id: Retention.stored(topic) for topic in use.coverage}
    now, asked_at = timezone.now(), None
    retention, groups = dict(stored), _NOT_ASKED
    problems: tuple[str, ...] = ()
    if ask:
        used = {topic.topic_id for version in use.versions for topic in version.topics}
        retention, groups, problems = query_clusters(stored, used)
        asked_at = now if retention != stored else None
        if problems and not extent_of(by, "schema.read").has_all_of(registry.name):
            problems, groups = (_NOT_ALL_ASKED,), replace(groups, problem=_NOT_ALL_ASKED)
    numbers = [version.version for version in use.versions]
    evidence = evidence_of(registry, subject, numbers, kinds=("state", "clients"), by=by)

    def judged(version: VersionUse, *, whole: bool) -> Retirement:
        state = evidence[version.version]
        return can_retire(version, use.coverage, retention, groups, state, now, whole_subject=whole)

    versions = {version.version: judged(version, whole=False) for version in use.versions}
    together = [
        replace(reason, sentence=f"Version {version.version}: {reason.sentence}")
        for version in use.versions
        for reason in judged(_without_own(version, use.subject), whole=True).reasons
    ]
    return SubjectRetirement(use, versions, combined(together), evidence, problems, asked_at)


def _without_own(version: VersionUse, subject: str) -> VersionUse:
    """Return the version without references from its own subject, which would be deleted too."""
    others = tuple(name for name in version.referrers if name.rpartition(" version ")[0] != subject)
    return replace(version, referrers=others)


def data_evidence(registry: Registry, subject: SubjectName, versions: Sequence[int]) -> dict[int, list[Evidence]]:
    """Return what scans know about versions, as evidence for a delete: only from the database.

    It names no other subject, as plans and errors with it have any reader.
    """
    use = usage_of(registry, subject, by=None, with_referrers=False)
    # Messages that were seen and whose retention is unknown are assumed to exist still.
    stored = {topic.topic_id: Retention.stored(topic) for topic in use.coverage}
    lasting = {number: item if item.ms is not None else replace(item, ms=-1) for number, item in stored.items()}
    own = [topic for topic in use.coverage if topic.is_own and topic.gone_at is None]
    as_of = min((topic.checked_at for topic in own if topic.checked_at), default=None)  # the oldest check
    now, by_version = timezone.now(), {}
    for version in use.versions:
        if version.version not in versions:
            continue
        # What wasn't read doesn't weigh against what was seen.
        has_messages = version.messages and not version.is_shared
        judge = judge_topics if has_messages else judge_data
        judged = combined(list(judge(version, use.coverage, lasting, Groups(), now)))
        in_use = _IN_USE[judged.answer]
        by_version[version.version] = [Evidence("data", in_use, judged.reasons[0].sentence, judged.date, as_of)]
    return by_version


def _retirement_dict(retirement: Retirement) -> dict[str, Any]:
    return asdict(retirement) | {"sentence": retirement.sentence}
