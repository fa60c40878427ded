"""The topics of a source: what the cluster has before a scan, what to read of each, and what became of each after it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from django.utils import timezone

from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Source, Topic
from registry.drift.sources import kafka_cluster
from registry.drift.sources.base import ScannedTopic, volume_of
from registry.drift.sources.kafka_connection import connect
from registry.drift.sources.kafka_offsets import TopicPlan, plan_topic
from registry.errors import InvalidSource
from registry.observations import (
    Observation,
    OffsetsExpired,
    PartitionRead,
    TopicLost,
    TopicRead,
    TopicRemade,
    TopicTotals,
)

MAX_TOPICS: Final = 5000
_LITERAL: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class Survey:
    """The state of the cluster before anything is read."""

    topics: Mapping[str, ScannedTopic]
    plans: Mapping[str, TopicPlan]
    order: tuple[str, ...]
    positions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    admin: AdminClient | None = None
    remade: tuple[TopicRemade, ...] = ()

    @property
    def reads(self) -> tuple[TopicRead, ...]:
        """Return what Spark reads, in the topics' order."""
        return tuple(TopicRead(name, self.plans[name].ranges) for name in self.order)


def named_topics(include: Sequence[str]) -> list[str]:
    """Return the patterns that are a topic's name."""
    return [pattern for pattern in include if _LITERAL.fullmatch(pattern)]


def survey_cluster(source: Source) -> Survey:
    """Return the source's topics with what to read of each. Raises the errors of `connect`."""
    assert source.cluster is not None  # the database guarantees a cluster for sources of topics
    connected = connect(source.cluster)
    rows = {row.name: row for row in source.topics.all()}
    names = kafka_cluster.chosen_topics(connected.metadata.topics, source.include, source.exclude)
    if len(names) > MAX_TOPICS:
        raise InvalidSource(f"The patterns match {len(names):,} topics; a source can have up to {MAX_TOPICS:,}.")
    partitions, problems = kafka_cluster.partitions_of(connected.metadata, names)
    offsets = kafka_cluster.offsets_of(connected.admin, partitions, source.cluster.bootstrap, since_ms=_since(source))
    problems |= {name: problem for name, problem in offsets.problems.items() if name not in problems}
    configs = kafka_cluster.configs_of(connected.admin, names)
    positions = {name: _positions(row) for name, row in rows.items()}
    ids = kafka_cluster.topic_ids_of(connected.admin, names)
    plans = {
        name: plan_topic(
            source.mode,
            marks,
            positions.get(name, {}),
            tail=source.tail_messages,
            is_new=name in rows and name in ids and rows[name].cluster_id not in ("", ids[name]),
        )
        for name, marks in offsets.marks.items()
    }
    topics = {}
    for name in names:
        plan, config = plans.get(name), configs.by_topic.get(name)
        topics[name] = ScannedTopic(
            name=name,
            partitions=len(partitions.get(name, ())),
            cluster_id=ids.get(name, ""),
            compacted=config.compacted if config else False,
            retention_ms=config.retention_ms if config else None,
            retention_bytes=config.retention_bytes if config else None,
            again=plan.again if plan else False,
            restarted=plan.restarted if plan else False,
            problem=problems[name].text if name in problems else "",
            settings_problem=configs.problems.get(name, ""),
            waits=name in problems and problems[name].may_pass,
            volume=volume_of(rows[name], sum(mark.high for mark in offsets.marks[name].values()))
            if name in rows and name in offsets.marks and name not in problems
            else None,
        )
    topics |= _missing(connected.admin, rows, names, connected.metadata.topics, source)
    waiting = [name for name in names if name in plans and plans[name].ranges and name not in problems]
    # The topic that waited longest first: under a limit, every topic gets its turn.
    never = datetime.min.replace(tzinfo=UTC)
    order = sorted(waiting, key=lambda name: (rows[name].read_at or never if name in rows else never, name))
    recreated = [topics[name] for name, plan in plans.items() if plan.restarted and not topics[name].problem]
    return Survey(topics, plans, tuple(order), positions, connected.admin, _remade(source, rows, recreated))


def _remade(source: Source, rows: Mapping[str, Topic], recreated: Sequence[ScannedTopic]) -> tuple[TopicRemade, ...]:
    """Return the earlier topics with the same names, as the last scan left them."""
    if not recreated:
        return ()
    last = source.scans.filter(state="done", read__isnull=False).order_by("-pk").first()
    read: Mapping[str, Any] = last.read if last is not None and last.read else {}
    return tuple(
        TopicRemade(
            topic.name,
            rows[topic.name].cluster_id,
            topic.cluster_id,
            milliseconds(rows[topic.name].read_at or rows[topic.name].discovered_at),
            unread_of(topic.name, read),
        )
        for topic in sorted(recreated, key=lambda topic: topic.name)
    )


def unread_of(topic: str, read: Mapping[str, Any]) -> int | None:
    """Return how many offsets of a topic a scan left unread; None if its stored result doesn't say."""
    if "partitions" not in read or any(row.get("topic") == topic for row in read.get("unreadable", ())):
        return None
    own = [row for row in read["partitions"] if row.get("topic") == topic]
    if "partitions" in read.get("left_out", {}) or any("high" not in row for row in own):
        return None
    return sum(max(0, int(row["high"]) - int(row["end"])) for row in own)  # without unchanged partitions


def with_lost_offsets(source: Source, survey: Survey, observations: Sequence[Observation]) -> list[Observation]:
    """Add the offsets that expired before or during the scan.

    A topic that was recreated meanwhile is lost: what was read under its name comes from two topics. So is one that was
    deleted, for which Spark only reports that no broker leads it.
    """
    expired = [
        OffsetsExpired(name, item.partition, item.start, item.end)
        for name, plan in sorted(survey.plans.items())
        for item in plan.expired
    ]
    if survey.admin is None or source.cluster is None:
        return [*observations, *expired, *_readable_remade(survey, observations)]
    observations = settle_lost_topics(survey, survey.admin, observations)
    ids = kafka_cluster.topic_ids_of(survey.admin, survey.order)
    recreated = {name for name, now in ids.items() if survey.topics[name].cluster_id not in ("", now)}
    gaps = [
        part for part in observations if isinstance(part, PartitionRead) and part.gaps and part.topic not in recreated
    ]
    partitions: dict[str, list[int]] = {}
    for part in gaps:
        partitions.setdefault(part.topic, []).append(part.partition)
    lows = kafka_cluster.offsets_of(survey.admin, partitions, source.cluster.bootstrap).marks if partitions else {}
    for part in gaps:
        mark = lows.get(part.topic, {}).get(part.partition)
        expired += [
            OffsetsExpired(part.topic, part.partition, start, min(end, mark.low))
            for start, end in part.gaps
            if mark is not None and start < mark.low
        ]
    return [
        *(item for item in observations if getattr(item, "topic", None) not in recreated),
        *expired,
        *(TopicLost(name, "it was deleted and recreated while it was being read") for name in sorted(recreated)),
        *(item for item in _readable_remade(survey, observations) if item.topic not in recreated),
    ]


def _readable_remade(survey: Survey, observations: Sequence[Observation]) -> list[TopicRemade]:
    """Return the recreated topics that could be read. The others are reported once they can be read."""
    lost = {item.topic for item in observations if isinstance(item, TopicLost)}
    return [item for item in survey.remade if item.topic not in lost]


def settle_lost_topics(survey: Survey, admin: AdminClient, observations: Sequence[Observation]) -> list[Observation]:
    """Ask the cluster which topics without a broker were deleted or denied, and drop their observations.

    Half-read observations are also dropped for a topic that was recreated before the scan: its earlier positions are
    void, and are deleted once it is read without interruption.
    """
    away = {item.topic: item for item in observations if isinstance(item, TopicLost) and item.may_pass}
    if not away:
        return list(observations)
    unlisted = kafka_cluster.why_unlisted(admin, away)
    dropped = set(unlisted) | {name for name in away if survey.topics[name].restarted}
    remaining = [item for item in observations if getattr(item, "topic", None) not in dropped]
    return [
        *remaining,
        *(TopicLost(name, unlisted[name]) if name in unlisted else away[name] for name in sorted(dropped)),
    ]


def _missing(
    admin: AdminClient, stored: Mapping[str, Topic], names: Collection[str], listed: Collection[str], source: Source
) -> dict[str, ScannedTopic]:
    """Return the topics that existed at the last scan or are named, and that the cluster doesn't list."""
    expected = {*kafka_cluster.chosen_topics(stored, source.include, source.exclude), *named_topics(source.include)}
    lost = sorted(expected - set(names) - set(listed))
    reasons = kafka_cluster.why_missing(
        admin, [name for name in lost if name not in stored or stored[name].gone_at is None]
    )
    rows = {name: stored.get(name, Topic()) for name in lost if name in stored or name in reasons}
    return {
        name: ScannedTopic(
            name=name,
            partitions=row.partitions,
            compacted=row.compacted,
            retention_ms=row.retention_ms,
            retention_bytes=row.retention_bytes,
            gone=name not in reasons,
            problem=reasons[name].text if name in reasons else "",
            waits=name in reasons and reasons[name].may_pass,
        )
        for name, row in rows.items()
    }


def _since(source: Source) -> int | None:
    if source.mode != "window":
        return None
    return int(timezone.now().timestamp() * 1000) - source.window_seconds * 1000


def _positions(row: Topic) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in row.positions.items()}


def topics_after(survey: Survey, observations: Sequence[Observation]) -> tuple[ScannedTopic, ...]:
    """Return the topics after the scan: how far each was read, and whether to its end."""
    reads: dict[str, list[PartitionRead]] = {}
    totals: dict[str, TopicTotals] = {}
    lost: dict[str, TopicLost] = {}
    for observation in observations:
        if isinstance(observation, PartitionRead):
            reads.setdefault(observation.topic, []).append(observation)
        elif isinstance(observation, TopicTotals):
            totals[observation.topic] = observation
        elif isinstance(observation, TopicLost):
            lost[observation.topic] = observation
    after = []
    for surveyed in survey.topics.values():
        topic = _with_loss(surveyed, lost.get(surveyed.name), has_part=surveyed.name in totals)
        if topic.name in lost and not (topic.waits and topic.name in totals):
            after.append(topic)  # its messages are dropped, and read again by the next scan
            continue
        total, parts = totals.get(topic.name), reads.get(topic.name, [])
        positions = {} if topic.restarted else survey.positions.get(topic.name, {})
        messages = total.messages if total else 0
        after.append(
            replace(
                topic,
                positions={part.partition: part.end for part in parts},
                messages=messages,
                fresh=sum(_fresh(part, positions.get(part.partition, 0)) for part in parts),
                clean=total is not None and total.bound_reached is None and messages > 0 and not topic.problem,
            )
        )
    return tuple(after)


def _with_loss(topic: ScannedTopic, lost: TopicLost | None, *, has_part: bool) -> ScannedTopic:
    """Add why a lost topic couldn't be read."""
    if lost is None:
        return topic
    reason = lost.reason.rstrip(".")
    problem = f"Topic {topic.name} couldn't be read: {reason}."
    if lost.may_pass and has_part:
        problem = f"Topic {topic.name} couldn't be read to its end: {reason}. The messages read so far count."
    return replace(topic, problem=problem, waits=lost.may_pass)


def _fresh(part: PartitionRead, position: int) -> int:
    """Estimate how many of the messages no scan had read before, by their share of the offsets."""
    if part.start >= position or part.end <= part.start:
        return part.messages
    return part.messages * max(0, part.end - position) // (part.end - part.start)
