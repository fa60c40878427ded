"""Replay: reads real messages of a subject's topic with a proposed schema, before it is registered.

It runs while the caller waits, on at most `MOST_MESSAGES` of the newest messages and within a deadline: the result is a
sample and includes its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from django.db.models import Q

from registry.access.roles import Actor, require
from registry.drift.models import Cluster, SchemaUse, Topic
from registry.drift.sources.base import spark_remote
from registry.drift.sources.kafka_cluster import offsets_of
from registry.drift.sources.kafka_connection import admin_of, kafka_connection
from registry.drift.sources.kafka_offsets import Watermarks
from registry.drift.usage.version_usage import Coverage, coverage_of
from registry.errors import InvalidSource, SchemaTooCostly, SubjectNotFound
from registry.formats import DEFAULT_FORMAT, format_of
from registry.formats.base import ParsedSchema, Reference
from registry.formats.replay_tally import KINDS, Key, ReplaySchema, ReplayTally, WriterTally
from registry.observations import PartitionRange, Side, TopicRead
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.registration.submission import prepare
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.parsed_schemas import parse_stored
from registry.subjects.versions.qualified_names import SubjectName

DEFAULT_MESSAGES: Final = 5_000
MOST_MESSAGES: Final = 20_000  # the pipeline has the same limit
SECONDS: Final = 20.0
DEADLINE_SECONDS: Final = 90.0
MAX_WRITERS: Final = 50


@dataclass(frozen=True)
class Failure:
    """A message that wasn't read: its position, and why."""

    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class WriterReplay:
    """The messages of one writer schema: `read`, `failed` on the reader, or `unreadable` (invalid as written).

    `versions` are those of the subject with the mark; `fields` counts messages by path and outcome of the value: kept,
    converted (the same in another type), changed, lost (it was filled), dropped (null or empty), filled.
    """

    framing: str
    mark: str
    versions: tuple[int, ...]
    messages: int
    read: int
    failed: int
    unreadable: int
    failures: tuple[Failure, ...]
    foreign: tuple[Failure, ...]
    fields: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class ReplayReport:
    """A replay: `looked_at` of `asked` offsets of a topic had a message.

    `messages` carry a writer's mark: those `read`, those the reader `failed` on, and the `unreadable`, which are
    invalid under their own schema and prove nothing. `unknown` carry another mark, `not_tried` came after the deadline,
    `missing` offsets had no message (compacted, or control records of transactions).
    """

    topic: str
    cluster: str
    side: str
    asked: int
    looked_at: int
    messages: int
    read: int
    failed: int
    unreadable: int
    no_value: int
    unframed: int
    unknown: int
    too_large: int
    not_tried: int
    seconds: float
    ranges: tuple[tuple[int, int, int], ...]
    writers: tuple[WriterReplay, ...]

    @property
    def missing(self) -> int:
        """Return the number of offsets without a message."""
        return max(0, self.asked - self.looked_at)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "missing": self.missing}


def replay_proposal(
    registry: Registry,
    subject: SubjectName,
    *,
    by: Actor,
    text: str = "",
    schema_type: str = DEFAULT_FORMAT,
    references: Sequence[Reference] = (),
    version: int | str = "",
    topic: str = "",
    messages: int = DEFAULT_MESSAGES,
    carriers: Sequence[Coverage] | None = None,
) -> ReplayReport:
    """Read the newest messages of the subject's topic with a text, or with a version, as the reader schema.

    `carriers` are those of `topics_of`, if already read. Raises InvalidSchema, InvalidReference, SchemaTooCostly,
    SubjectNotFound, VersionNotFound, InvalidSource if the subject has no topic or more than one, NotAllowed,
    BrokerUnavailable, SparkUnavailable, ScanInterrupted.
    """
    require(by, "source.scan", registry=registry.name, subject=subject.qualified)
    if not 1 <= messages <= MOST_MESSAGES:
        raise InvalidSource(f"A replay reads 1 to {MOST_MESSAGES:,} messages, not {messages:,}.")
    reader = _proposed(registry, subject, text, schema_type, references, version)
    coverage = topic_of(subject, topic, topics_of(registry, subject) if carriers is None else carriers)
    side = side_of(subject)
    writers, versions = _writers(registry, subject, coverage.topic_id, side)
    row = Topic.objects.select_related("source__cluster").get(pk=coverage.topic_id)
    cluster = row.source.cluster
    if cluster is None:  # the database guarantees a cluster for sources of topics
        raise InvalidSource(f"{row.name} has no cluster.")
    ranges = newest_ranges(watermarks_of(cluster, row), messages)
    from registry.pipeline.replay import TopicReplay, replay  # imported late: only a replay needs PySpark

    spec = TopicReplay(
        kafka_connection(cluster), TopicRead(row.name, ranges), side, reader, writers, SECONDS, DEADLINE_SECONDS
    )
    done = replay(spec, remote=spark_remote())
    return _report(coverage, side, ranges, done.tally, done.seconds, versions)


def newest_ranges(marks: Mapping[int, Watermarks], messages: int) -> tuple[PartitionRange, ...]:
    """Return the newest offsets of all partitions together, distributed as evenly as possible; no empty range."""
    left, parts = messages, sorted(marks.items(), key=lambda item: item[1].high - item[1].low)
    ranges = []
    for done, (partition, mark) in enumerate(parts):
        take = min(mark.high - mark.low, left // (len(parts) - done) + bool(left % (len(parts) - done)))
        left -= take
        if take:
            ranges.append(PartitionRange(partition, mark.high - take, mark.high, mark.low, mark.high))
    return tuple(sorted(ranges, key=lambda part: part.partition))


def watermarks_of(cluster: Cluster, topic: Topic) -> Mapping[int, Watermarks]:
    """Return the offsets of each partition of the topic now."""
    admin: AdminClient = admin_of(cluster)
    offsets = offsets_of(admin, {topic.name: range(topic.partitions)}, cluster.bootstrap)
    if topic.name in offsets.problems:
        raise InvalidSource(offsets.problems[topic.name].text)
    return offsets.marks.get(topic.name, {})


def _proposed(
    registry: Registry,
    subject: SubjectName,
    text: str,
    schema_type: str,
    references: Sequence[Reference],
    version: int | str,
) -> ReplaySchema:
    if text:
        return _as_text(prepare(registry, subject, text, schema_type, references).schema)
    info = get_version(registry, subject, version or "latest", deleted=True)
    row = Schema.objects.get(
        context__registry=registry, context__name=info.schema.context, schema_id=info.schema.schema_id
    )
    return _as_text(parse_stored([row])[0])


def _as_text(schema: ParsedSchema) -> ReplaySchema:
    """Return the schema for the workers. They have no limits of their own, so a costly schema is rejected."""
    if not format_of(schema.schema_type).offers("replay_of"):
        raise InvalidSource(f"Replays: {format_of(schema.schema_type).unavailable}")
    if schema.model is None:
        raise SchemaTooCostly(
            "The schema is too costly to replay. Use fewer alternatives and less nesting.", limit="time"
        )
    return ReplaySchema(schema.schema_type, schema_engine.self_contained(schema))


def topic_of(subject: SubjectName, name: str, carriers: Sequence[Coverage]) -> Coverage:
    """Return the subject's only topic, or the named one."""
    own = [item for item in carriers if item.gone_at is None and item.cluster]
    matches = [item for item in own if not name or name in (item.topic, _with_cluster(item))]
    if not matches:
        known_topics = ", ".join(item.topic for item in own[:5]) or "none"
        raise InvalidSource(
            f"{f'Topic {name}' if name else 'No topic'} is {'not ' if name else ''}known to carry "
            f"{subject.qualified} (known topics: {known_topics}). Add its cluster as a source and scan it."
        )
    if len(matches) > 1:
        names = ", ".join(_with_cluster(item) for item in matches[:5])
        raise InvalidSource(f"Several topics carry {subject.qualified}: {names}. Choose one.")
    return matches[0]


def _with_cluster(item: Coverage) -> str:
    return f"{item.topic} of {item.cluster}"


def names_of_topics(carriers: Sequence[Coverage]) -> tuple[str, ...]:
    """Return the topics that a replay can name; with the cluster if two clusters have a topic with that name."""
    own = [item for item in carriers if item.gone_at is None and item.cluster]
    often = Counter(item.topic for item in own)
    return tuple(sorted({_with_cluster(item) if often[item.topic] > 1 else item.topic for item in own}))


def topics_of(registry: Registry, subject: SubjectName) -> tuple[Coverage, ...]:
    """Return the topics known to carry a subject; empty if it doesn't exist."""
    try:
        return tuple(item for item in coverage_of(registry, subject) if item.is_own)
    except SubjectNotFound:
        return ()


def side_of(subject: SubjectName) -> Side:
    """Return the message side of a subject, from its name; `value` if the name doesn't say."""
    return "key" if subject.subject.endswith("-key") else "value"


def _writers(
    registry: Registry, subject: SubjectName, topic_id: int, side: Side
) -> tuple[dict[Key, ReplaySchema], dict[Key, tuple[int, ...]]]:
    """Return the possible writer schemas by mark, and the subject's versions with each mark.

    They are the subject's newest versions, and other versions whose ids scans saw in the topic. Messages of other
    subjects say nothing about this one's schema.
    """
    rows = list(
        SchemaVersion.objects.filter(
            subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
        )
        .select_related("schema")
        .order_by("-version")[:MAX_WRITERS]
    )
    uses = SchemaUse.objects.filter(topic_id=topic_id, side=side).order_by("-messages")
    ids = [number for number in uses.values_list("schema_id", flat=True)[:MAX_WRITERS] if number]
    guids = uses.filter(framing="guid").values_list("mark", flat=True)[:MAX_WRITERS]
    others = Schema.objects.filter(
        Q(schema_id__in=ids) | Q(guid__in=list(guids)),
        context__registry=registry,
        context__name=subject.context,
        versions__subject__name=subject.subject,
    ).distinct()
    schemas = {row.schema_id: row.schema for row in rows} | {row.pk: row for row in others[:MAX_WRITERS]}
    texts: dict[int, ReplaySchema] = {}
    for pk, parsed in zip(schemas, parse_stored(list(schemas.values())), strict=True):
        if parsed.model is not None:
            texts[pk] = ReplaySchema(parsed.schema_type, schema_engine.self_contained(parsed))
    writers: dict[Key, ReplaySchema] = {}
    for pk, text in texts.items():
        writers["id", str(schemas[pk].schema_id)] = text
        writers["guid", str(schemas[pk].guid)] = text
    versions: dict[Key, tuple[int, ...]] = {}
    for row in rows:
        for key in (("id", str(row.schema.schema_id)), ("guid", str(row.schema.guid))):
            versions[key] = (row.version, *versions.get(key, ()))
        name = ("content_type", f"vnd.{subject.subject}.v{row.version}")
        if row.schema_id in texts:
            writers[name], versions[name] = texts[row.schema_id], (row.version,)
    return writers, versions


def _report(
    coverage: Coverage,
    side: Side,
    ranges: Sequence[PartitionRange],
    tally: ReplayTally,
    seconds: float,
    versions: Mapping[Key, tuple[int, ...]],
) -> ReplayReport:
    writers = tuple(_writer(key, item, versions.get(key, ())) for key, item in sorted(tally.writers.items()))
    return ReplayReport(
        topic=coverage.topic,
        cluster=coverage.cluster,
        side=side,
        asked=sum(part.end - part.start for part in ranges),
        looked_at=tally.looked_at,
        messages=sum(item.messages for item in writers),
        read=sum(item.read for item in writers),
        failed=sum(item.failed for item in writers),
        unreadable=sum(item.unreadable for item in writers),
        no_value=tally.no_value,
        unframed=tally.unframed,
        unknown=tally.unknown,
        too_large=tally.too_large,
        not_tried=tally.not_tried,
        seconds=seconds,
        ranges=tuple((part.partition, part.start, part.end) for part in ranges),
        writers=writers,
    )


def _writer(key: Key, tally: WriterTally, versions: tuple[int, ...]) -> WriterReplay:
    fields: dict[str, dict[str, int]] = {
        path: {kind: counts[kind] for kind in KINDS if kind in counts} for path, counts in sorted(tally.fields.items())
    }
    return WriterReplay(
        framing=key[0],
        mark=key[1],
        versions=versions,
        messages=tally.messages,
        read=tally.read,
        failed=tally.failed,
        unreadable=tally.unreadable,
        failures=tuple(Failure(*item) for item in tally.failures),
        foreign=tuple(Failure(*item) for item in tally.foreign),
        fields=fields,
    )
