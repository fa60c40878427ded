"""Which messages carry a version's mark: by topic and partition, with offsets, times and share of the traffic.

The answer includes what is unknown: topics that were never scanned, and the first offset scanned of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Literal

from django.db.models import Max

from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may
from registry.drift.models import SIDES, FieldStatistic, SchemaUse, Topic
from registry.drift.usage.subject_topics import (
    OtherVersions,
    Readable,
    Unidentified,
    is_of,
    owner_of,
    referrers_of,
    shared_with,
    topics_of,
    unidentified_in,
    uses_of,
)
from registry.errors import SubjectNotFound, VersionNotFound
from registry.frozen_rows import row_info
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.versions.qualified_names import SubjectName

#: messages by version
Counts = Mapping[int, int]
#: whether a message's topic belongs to this subject, as scans found
Owner = Literal["this", "other", "unknown"]


@dataclass(frozen=True)
class PartitionUse:
    """Messages of one partition; offsets are inclusive."""

    partition: int
    messages: int
    undecodable: int
    bytes: int
    first_offset: int
    last_offset: int
    first_time: datetime
    last_time: datetime


@dataclass(frozen=True)
class Coverage:
    """How far a topic was read, and its retention. Offsets are by partition.

    `is_own`: the topic belongs to the subject, or may; of others, only the same schema ids are known. `read_from` is
    where gapless reading began, `positions` where it ended; `retention_ms` is -1 for forever. `unidentified` are
    messages without a known schema: each may have any version.
    """

    topic_id: int
    topic: str
    source: str
    cluster: str
    is_own: bool
    partitions: int
    messages: int
    read_from: Mapping[int, int]
    positions: Mapping[int, int]
    compacted: bool
    retention_ms: int | None
    checked_at: datetime | None
    read_at: datetime | None
    gone_at: datetime | None
    problem: str
    unidentified: tuple[Unidentified, ...] = ()

    @property
    def sentence(self) -> str:
        """Return what is known about the topic as a sentence."""
        if self.gone_at is not None:
            return f"{self.topic} has been missing from {self.cluster or 'its cluster'} since {moment(self.gone_at)}."
        if self.problem:
            return f"The last scan couldn't read {self.topic}: {self.problem}"
        if self.read_at is None:
            return f"{self.topic} has not been read yet."
        last = moment(self.checked_at or self.read_at)
        parts = [f"{part} from offset {offset:,}" for part, offset in sorted(self.read_from.items()) if offset > 0]
        since = f" Read in part: partition {', '.join(parts[:8])}{' …' if len(parts) > 8 else ''}." if parts else ""
        missing = self.partitions - len(self.read_from)
        if missing > 0:
            since += f" The first offset read is unknown for {missing} of {self.partitions} partitions."
        return f"{self.topic} was last scanned at {last}: {self.messages:,} messages in total.{since}"


@dataclass(frozen=True)
class TopicUse:
    """The messages of a topic's side with a version's mark. `share` is of all messages read of the topic."""

    topic_id: int
    topic: str
    source: str
    cluster: str
    side: str
    framing: str
    mark: str
    owner: Owner
    messages: int
    share: float | None
    first_time: datetime
    last_time: datetime
    partitions: tuple[PartitionUse, ...]


@dataclass(frozen=True)
class VersionUse:
    """All that is known about the use of one version.

    `shared_with` are live versions of other subjects with the same schema id: they keep messages readable. `referrers`
    are versions whose schema refers to this one. In both, versions that the reader may not read are only counted
    (`shared_hidden`, `referrers_hidden`), and so are topics of those subjects (`topics_hidden`).
    """

    version: int
    schema_id: int
    guid: str
    deleted: bool
    is_latest: bool
    shared_with: tuple[str, ...] = ()
    shared_hidden: int = 0
    referrers: tuple[str, ...] = ()
    referrers_hidden: int = 0
    topics: tuple[TopicUse, ...] = ()
    topics_hidden: int = 0
    messages: int = 0
    first_time: datetime | None = None
    last_time: datetime | None = None

    @property
    def is_shared(self) -> bool:
        """Return whether another subject has the same schema id, including one that the reader may not read."""
        return bool(self.shared_with or self.shared_hidden)


@dataclass(frozen=True)
class SubjectUse:
    """The use of a subject's versions, ascending, and how far their topics were read."""

    registry: str
    subject: str
    versions: tuple[VersionUse, ...]
    coverage: tuple[Coverage, ...] = field(default=())

    def version(self, number: int) -> VersionUse:
        """Return one of them. Raises VersionNotFound."""
        match = next((item for item in self.versions if item.version == number), None)
        if match is None:
            raise VersionNotFound(f"Version {number} not found.", version=number)
        return match


def moment(time: datetime | None) -> str:
    """Return a time for a sentence, in UTC."""
    return "never" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


def usage_of(registry: Registry, subject: SubjectName, *, by: Actor | None, with_referrers: bool = True) -> SubjectUse:
    """Return the use of all versions of a subject, including soft-deleted ones; six queries. Raises SubjectNotFound.

    `by` sees the names of other subjects and their topics that they may read, and of sources and clusters if they may
    read the whole registry. None, for texts with several readers, sees no other subject.
    """

    def readable(name: str) -> bool:
        return by is not None and may(by, "schema.read", registry=registry.name, subject=name)

    rows = _rows(registry, subject)
    uses = uses_of(registry, subject, rows)
    topics = topics_of(registry, subject, {use.topic_id for use in uses})
    hidden = {number for number, topic in topics.items() if not _is_in_sight(topic, subject, readable)}
    latest = max((row.version for row in rows if row.deleted_at is None), default=None)
    shared, referrers = shared_with(rows, readable), referrers_of(rows, readable) if with_referrers else {}
    versions = []
    for row in rows:
        listed = tuple(_by_topic((use for use in uses if is_of(use, row, subject)), topics, subject))
        shown_topics = tuple(item for item in listed if item.topic_id not in hidden)
        version_use = _version(row, shown_topics, is_latest=row.version == latest)
        same, referring = shared.get(row.schema_id, OtherVersions()), referrers.get(row.pk, OtherVersions())
        versions.append(
            replace(
                version_use,
                topics_hidden=len(listed) - len(shown_topics),
                shared_with=same.names,
                shared_hidden=same.hidden,
                referrers=referring.names,
                referrers_hidden=referring.hidden,
            )
        )
    unidentified = unidentified_in(topics.values(), subject)
    shown = tuple(
        replace(item, unidentified=tuple(unidentified.get(item.topic_id, ())))
        for item in _coverages(rows, uses, topics, subject)
        if item.topic_id not in hidden
    )
    use = SubjectUse(registry.name, subject.qualified, tuple(versions), shown)
    return use if by is None or extent_of(by, "schema.read").has_all_of(registry.name) else _without_sources(use)


def _without_sources(use: SubjectUse) -> SubjectUse:
    """Remove sources and clusters, for people who may read the subject but not the whole registry."""
    versions = (
        replace(version, topics=tuple(replace(topic, source="", cluster="") for topic in version.topics))
        for version in use.versions
    )
    coverage = (replace(item, source="", cluster="") for item in use.coverage)
    return replace(use, versions=tuple(versions), coverage=tuple(coverage))


def _is_in_sight(topic: Topic, subject: SubjectName, readable: Readable) -> bool:
    """Return whether the topic is or may be the subject's, or belongs to a subject that the reader may read."""
    names = topic.subjects if isinstance(topic.subjects, dict) else {}
    listed = [name for side in SIDES for name in names.get(side) or ()]
    if not listed or any(owner_of(topic, side, subject) == "this" for side in SIDES):
        return True
    return any(readable(name) for name in listed)


def coverage_of(registry: Registry, subject: SubjectName) -> tuple[Coverage, ...]:
    """Return only the topics of a subject's use, and how far they were read; three queries. Raises SubjectNotFound."""
    rows = _rows(registry, subject)
    uses = uses_of(registry, subject, rows)
    return _coverages(rows, uses, topics_of(registry, subject, {use.topic_id for use in uses}), subject)


def _version(row: SchemaVersion, topics: tuple[TopicUse, ...], *, is_latest: bool) -> VersionUse:
    mine = [item for item in topics if item.owner != "other"]
    return VersionUse(
        version=row.version,
        schema_id=row.schema.schema_id,
        guid=str(row.schema.guid),
        deleted=row.deleted_at is not None,
        is_latest=is_latest,
        topics=topics,
        messages=sum(item.messages for item in mine),
        first_time=min((item.first_time for item in mine), default=None),
        last_time=max((item.last_time for item in mine), default=None),
    )


# -- rows -----------------------------------------------------------------------------------------------------------


def _rows(registry: Registry, subject: SubjectName) -> list[SchemaVersion]:
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    )
    versions = list(rows.select_related("schema").order_by("version"))
    if not versions:
        message = f"Subject '{subject.qualified}' not found."
        raise SubjectNotFound(message, registry=registry.name, subject=subject.qualified)
    return versions


def _coverages(
    rows: Sequence[SchemaVersion], uses: Sequence[SchemaUse], topics: Mapping[int, Topic], subject: SubjectName
) -> tuple[Coverage, ...]:
    """Return how far each topic was read; own topics have the subject's name or ids and aren't another subject's."""
    own = {
        use.topic_id
        for use in uses
        if owner_of(topics[use.topic_id], use.side, subject) != "other"
        and any(is_of(use, row, subject) for row in rows)
    }
    return tuple(_coverage(topic, topic.pk in own or _is_own(topic, subject)) for topic in topics.values())


def _by_topic(uses: Iterable[SchemaUse], topics: Mapping[int, Topic], subject: SubjectName) -> Iterable[TopicUse]:
    grouped: dict[tuple[int, str, str, str], list[SchemaUse]] = {}
    for use in uses:
        grouped.setdefault((use.topic_id, use.side, use.framing, use.mark), []).append(use)
    for (topic_id, side, framing, mark), group in grouped.items():
        topic = topics[topic_id]
        messages = sum(use.messages for use in group)
        yield TopicUse(
            topic_id=topic_id,
            topic=topic.name,
            source=topic.source.name,
            cluster=_cluster(topic),
            side=side,
            framing=framing,
            mark=mark,
            owner=owner_of(topic, side, subject),
            messages=messages,
            share=min(1.0, messages / topic.messages) if topic.messages else None,
            first_time=min(use.first_time for use in group),
            last_time=max(use.last_time for use in group),
            partitions=tuple(_partition(use) for use in group),
        )


def _partition(use: SchemaUse) -> PartitionUse:
    return row_info(PartitionUse, use)


def _is_own(topic: Topic, subject: SubjectName) -> bool:
    return any(owner_of(topic, side, subject) == "this" for side in SIDES)


def _cluster(topic: Topic) -> str:
    return topic.source.cluster.name if topic.source.cluster else ""


def _coverage(topic: Topic, is_own: bool) -> Coverage:
    return row_info(
        Coverage,
        topic,
        topic_id=topic.pk,
        topic=topic.name,
        source=topic.source.name,
        cluster=_cluster(topic),
        is_own=is_own,
        read_from=_offsets(topic.read_from),
        positions=_offsets(topic.positions),
        unidentified=(),
    )


def _offsets(stored: Any) -> dict[int, int]:
    """Return offsets by partition; JSON has text keys."""
    return {int(partition): int(offset) for partition, offset in (stored or {}).items()}


def traffic_by_day(use: SubjectUse, *, since: date) -> dict[date, Counts]:
    """Return the messages that scans read, by the day of the scan and the version that they carry; one query.

    A message that carries several versions' mark (equal schemas) counts for the newest of them. Only topics in `use`
    count: those that the reader may see.
    """
    versions = {
        (topic.topic_id, topic.side, topic.framing, topic.mark): version.version
        for version in use.versions
        for topic in version.topics
    }
    rows = (
        FieldStatistic.objects.filter(topic_id__in={key[0] for key in versions}, day__gte=since)
        .values_list("topic_id", "side", "framing", "mark", "day")
        .annotate(most=Max("messages"))  # each field of a message has the number of messages
    )
    days: dict[date, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for *key, day, messages in rows:
        if version := versions.get(tuple(key)):
            days[day][version] += messages
    return {day: dict(counts) for day, counts in days.items()}


def versions_by_day(registry: Registry, name: SubjectName, *, since: date) -> dict[date, list[int]]:
    """Return the versions that were registered on each day (UTC) since then, deleted ones too; one query."""
    begin = datetime(since.year, since.month, since.day, tzinfo=UTC)
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=name.context, subject__name=name.subject,
        created_at__gte=begin,
    ).order_by("version")  # fmt: skip
    days: dict[date, list[int]] = defaultdict(list)
    for version, at in rows.values_list("version", "created_at"):
        days[at.astimezone(UTC).date()].append(version)
    return dict(days)
