"""A cluster's topics: names, partitions, offsets, cleanup policy. One call of each kind for all topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, OffsetSpec, ResourceType

from registry.drift.sources.kafka_connection import TIMEOUT_SECONDS, unavailable
from registry.drift.sources.kafka_offsets import Watermarks

#: internal topics of Kafka, Kafka Connect, Kafka Streams and other registries
INTERNAL: Final = ("__*", "_schemas", "_confluent*", "connect-configs", "connect-offsets", "connect-status")
_ALL: Final = re.compile(r"[*?]+")
CONFIG_KEYS: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
#: errors of a broker that is away, or of a partition that changes its leader
_PASSING: Final = frozenset(
    {
        KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE,
        KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE, KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION,
        KafkaError.KAFKA_STORAGE_ERROR, KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)  # fmt: skip
_DENIED: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_NO_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION)
#: the topic id in clusters without topic ids
NO_TOPIC_ID: Final = str(Uuid(0, 0))


@dataclass(frozen=True)
class TopicConfig:
    """A topic's retention settings; None if the cluster doesn't report them."""

    compacted: bool = False
    retention_ms: int | None = None
    retention_bytes: int | None = None


class TopicProblem(NamedTuple):
    """Why a topic can't be read, as a sentence; `may_pass` if a broker is away that may soon be back."""

    text: str
    may_pass: bool = False


@dataclass(frozen=True)
class Configs:
    """Retention settings by topic, and why those of some topics aren't known."""

    by_topic: Mapping[str, TopicConfig]
    problems: Mapping[str, str]


@dataclass(frozen=True)
class Offsets:
    """Watermarks by topic and partition, and why some topics have none."""

    marks: Mapping[str, Mapping[int, Watermarks]]
    problems: Mapping[str, TopicProblem]


def chosen_topics(names: Iterable[str], include: Sequence[str], exclude: Sequence[str]) -> list[str]:
    """Return the topics that the shell patterns select, sorted; internal ones only if a pattern names them.

    A pattern of only wildcards names nothing.
    """
    return [
        name
        for name in sorted(names)
        if not any(fnmatchcase(name, pattern) for pattern in exclude) and _included(name, include)
    ]


def _included(name: str, include: Sequence[str]) -> bool:
    matching = [pattern for pattern in include if fnmatchcase(name, pattern)]
    if not any(fnmatchcase(name, pattern) for pattern in INTERNAL):
        return bool(matching) or not include
    return any(not _ALL.fullmatch(pattern) for pattern in matching)


def partitions_of(
    metadata: ClusterMetadata, names: Iterable[str]
) -> tuple[dict[str, list[int]], dict[str, TopicProblem]]:
    """Return the partitions by topic, and why some topics can't be read."""
    partitions: dict[str, list[int]] = {}
    problems: dict[str, TopicProblem] = {}
    for name in names:
        topic = metadata.topics[name]
        if topic.error is not None:
            problems[name] = _trouble(name, topic.error)
            continue
        partitions[name] = sorted(topic.partitions)
        leaderless = [part.id for part in topic.partitions.values() if part.leader < 0]
        if leaderless:
            problems[name] = TopicProblem(
                f"Partition {leaderless[0]} of {name} has no leader: its broker is unavailable.", True
            )
    return partitions, problems


def offsets_of(
    admin: AdminClient, partitions: Mapping[str, Collection[int]], bootstrap: str, *, since_ms: int | None = None
) -> Offsets:
    """Return the oldest and newest committed offsets of all partitions: two calls, three with a window.

    If one partition fails, its topic has a problem and no offsets. Raises BrokerUnavailable if all fail.
    """
    listed = [TopicPartition(name, number) for name, numbers in partitions.items() for number in numbers]
    if not listed:
        return Offsets({}, {})
    specs = {"low": OffsetSpec.earliest(), "high": OffsetSpec.latest()}
    if since_ms is not None:
        specs["since"] = OffsetSpec.for_timestamp(since_ms)
    # Send all requests before waiting for the first answer.
    futures_by_spec = {name: _ask(admin, listed, spec) for name, spec in specs.items()}
    offsets: dict[str, dict[int, dict[str, int]]] = {}
    problems: dict[str, TopicProblem] = {}
    error: KafkaException | None = None
    for name, futures in futures_by_spec.items():
        for partition, future in futures.items():
            try:
                offset = future.result().offset
            except KafkaException as failed:
                error = failed
                problems.setdefault(partition.topic, _trouble(partition.topic, failed.args[0]))
                continue
            offsets.setdefault(partition.topic, {}).setdefault(partition.partition, {})[name] = offset
    if error is not None and set(problems) >= set(partitions) and _is_no_answer(error):
        raise unavailable(bootstrap, error) from error
    return Offsets({name: _marks(parts) for name, parts in offsets.items() if name not in problems}, problems)


def _ask(admin: AdminClient, partitions: Sequence[TopicPartition], spec: OffsetSpec) -> Mapping[TopicPartition, Any]:
    futures: Mapping[TopicPartition, Any] = admin.list_offsets(
        dict.fromkeys(partitions, spec), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_SECONDS
    )
    return futures


def _marks(parts: Mapping[int, Mapping[str, int]]) -> dict[int, Watermarks]:
    """Convert offsets to watermarks; a window after the newest message has no offset and starts at the end."""
    return {
        number: Watermarks(
            low=offsets["low"],
            high=max(offsets["high"], offsets["low"]),
            since=None if offsets.get("since", -1) < 0 else offsets["since"],
        )
        for number, offsets in parts.items()
    }


def _is_no_answer(error: KafkaException) -> bool:
    return error.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


def configs_of(admin: AdminClient, names: Collection[str]) -> Configs:
    """Return cleanup policy and retention of topics, and why those of some can't be read: they are scanned anyway."""
    if not names:
        return Configs({}, {})
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    configs, problems = {}, {}
    for resource, future in admin.describe_configs(resources, request_timeout=TIMEOUT_SECONDS).items():
        try:
            entries = future.result()
        except KafkaException as failed:
            problems[resource.name] = _why_no_config(resource.name, failed.args[0])
            continue
        values = {key: entries[key].value for key in CONFIG_KEYS if key in entries}
        configs[resource.name] = TopicConfig(
            compacted="compact" in str(values.get("cleanup.policy")),
            retention_ms=_number(values.get("retention.ms")),
            retention_bytes=_number(values.get("retention.bytes")),
        )
    return Configs(configs, problems)


def _why_no_config(topic: str, error: KafkaError) -> str:
    if error.code() in _DENIED:
        return f"The cluster's user can't read the settings of topic {topic}. Grant it DescribeConfigs on that topic."
    return f"The settings of topic {topic} couldn't be read: {error.str()[:300]}"


def topic_ids_of(admin: AdminClient, names: Collection[str]) -> dict[str, str]:
    """Return the cluster's ids of topics; omits topics without an id and those that can't be described."""
    if not names:
        return {}
    ids = {}
    for name, future in admin.describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT_SECONDS).items():
        try:
            topic_id = str(future.result().topic_id)
        except KafkaException:  # the reason is reported with its partitions
            continue
        if topic_id != NO_TOPIC_ID:
            ids[name] = topic_id
    return ids


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def why_missing(admin: AdminClient, names: Sequence[str]) -> dict[str, TopicProblem]:
    """Return why topics that the cluster no longer lists can't be seen, if they still exist.

    A cluster's list omits a topic without Describe rights like a deleted one; asking by name distinguishes them. One
    call for all topics.
    """
    if not names:
        return {}
    reasons = {}
    for name, future in admin.describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT_SECONDS).items():
        try:
            future.result()
        except KafkaException as failed:
            error = failed.args[0]
            if error.code() not in _NO_TOPIC:
                reasons[name] = _trouble(name, error)
    return reasons


def why_unlisted(admin: AdminClient, names: Collection[str]) -> dict[str, str]:
    """Return why topics that were read can't be read any more, without those that the cluster still lists.

    Empty if it doesn't answer.
    """
    try:
        listed = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    except KafkaException:
        return {}
    unlisted = sorted(set(names) - set(listed))
    problems = why_missing(admin, unlisted)
    deleted = dict.fromkeys(set(unlisted) - set(problems), "it was deleted while it was being read")
    return deleted | {name: problem.text for name, problem in problems.items() if not problem.may_pass}


def _trouble(topic: str, error: KafkaError) -> TopicProblem:
    return TopicProblem(what_kafka_says(topic, error), error.code() in _PASSING)


def what_kafka_says(topic: str, error: KafkaError) -> str:
    """Return a topic's error as a sentence, with the missing right if that is the cause."""
    if error.code() in _DENIED:
        return f"The cluster's user can't describe topic {topic}. Grant it Describe and Read on that topic."
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return f"Topic {topic} no longer exists."
    return f"Topic {topic}: {error.str()[:300]}"
