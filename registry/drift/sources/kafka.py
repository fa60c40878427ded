"""Topics of a Kafka cluster: found and compared with what was read before, read by Spark, judged against a registry."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from django.utils import timezone

from registry.drift.connecting import connect
from registry.drift.judge import judge, pending
from registry.drift.judge.reading import milliseconds
from registry.drift.models import Source, Topic
from registry.drift.patience import patiently
from registry.drift.sources.backlog import behind_of
from registry.drift.sources.base import Given, OnProgress, ScanResult
from registry.drift.sources.kafka_cluster import (
    chosen_topics,
    configs_of,
    gone_of,
    offsets_of,
    partitions_of,
    topic_ids_of,
    why_missing,
)
from registry.drift.sources.kafka_passes import observe
from registry.drift.sources.kafka_ranges import TopicPlan, plan_topic
from registry.drift.sources.kafka_read import MAX_ROWS, read_json
from registry.drift.topics import TopicSeen, note_topics
from registry.errors import BrokerUnavailable, InvalidSource
from registry.observations import (
    Observation,
    OffsetsExpired,
    PartitionRead,
    ScanTotals,
    TopicLost,
    TopicRead,
    TopicRemade,
    TopicTotals,
)

MAX_TOPICS = 5000
MAX_NAME = 1024
_LITERAL: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class Survey:
    """What the cluster says before anything is read."""

    topics: Mapping[str, TopicSeen]
    plans: Mapping[str, TopicPlan]
    order: tuple[str, ...]
    positions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    admin: AdminClient | None = None
    remade: tuple[TopicRemade, ...] = ()

    @property
    def reads(self) -> tuple[TopicRead, ...]:
        """What Spark reads, in the order in which topics have their turn."""
        return tuple(TopicRead(name, self.plans[name].ranges) for name in self.order)


class KafkaTopics:
    """The committed messages of a cluster's topics."""

    def check(self, given: Given) -> str:
        """The cluster answers, and has the topics that are named without a pattern.

        Raises InvalidSource, BrokerUnavailable, AddressRefused, InvalidSecret.
        """
        if not given.name.strip() or len(given.name) > MAX_NAME or not given.name.isprintable():
            raise InvalidSource(f"Give the source a name: 1 to {MAX_NAME} printable characters.")
        if given.cluster is None:
            raise InvalidSource("Name the cluster whose topics are scanned.")
        connected = connect(given.cluster)
        missing = [name for name in named_topics(given.include) if name not in connected.metadata.topics]
        for reason in why_missing(connected.admin, missing).values():
            raise InvalidSource(reason.text)
        if missing:
            raise InvalidSource(
                f"The cluster {given.cluster.name} has no topic {missing[0]!r}"
                f"{f', nor {len(missing) - 1} others that are named' if len(missing) > 1 else ''}."
                " Correct the name, or write a pattern if it is made later."
            )
        return given.name.strip()

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read what is new in the topics, within the bounds, and judge it."""
        from registry.drift.knowledge import memory_of, registered_for  # late: it loads all formats
        from registry.drift.personal import without_personal

        on_progress(0, 0, "asking the cluster for topics and offsets")
        started = time.monotonic()
        survey = patiently(lambda: survey_cluster(source))
        patiently(lambda: note_topics(source, survey.topics.values()))
        seen = observe(source, survey.reads, tag=tag, on_progress=on_progress) if survey.order else []
        seen = with_lost_offsets(source, survey, seen)
        on_progress(0, 0, "judging")
        topics = topics_after(survey, seen)
        require_any(source, topics)
        observations = patiently(lambda: without_personal(source, seen))
        registered, memory = patiently(lambda: (registered_for(source, observations), memory_of(source, survey.order)))
        findings = judge(observations, registered, memory)
        return ScanResult(
            findings=tuple(findings),
            read=read_json(topics, observations, seconds=time.monotonic() - started)
            | {"behind": patiently(lambda: behind_of(source, observations))}
            | {"pending": [asdict(each) for each in pending(observations, registered, memory)][:MAX_ROWS]},
            # Without an observation nothing was judged, so that nothing unseen is proved to be gone.
            complete=bool(survey.order) and _bound(observations) is None and not any(each.problem for each in topics),
            topics=topics,
            observations=tuple(observations),
            registered=registered,
            waits=waits_of(topics),
        )


def waits_of(topics: Sequence[TopicSeen]) -> str:
    """Why some topics are to be read again soon: a broker is away; empty where none is."""
    return " ".join(topic.problem for topic in topics if topic.waits)


def require_any(source: Source, topics: Sequence[TopicSeen]) -> None:
    """Raise BrokerUnavailable where nothing could be read of any topic, and a broker that is away is to blame."""
    waiting = [topic for topic in topics if topic.waits]
    if waiting and all(not topic.messages and (topic.problem or topic.gone) for topic in topics):
        where = source.cluster.bootstrap if source.cluster else ""
        raise BrokerUnavailable(
            f"A broker of the Kafka cluster at {where} went away, or is away: {waiting[0].problem}"
            " Check that the cluster's brokers run.",
            bootstrap=where,
        )


def named_topics(include: Sequence[str]) -> list[str]:
    """The patterns that are a topic's name."""
    return [pattern for pattern in include if _LITERAL.fullmatch(pattern)]


def survey_cluster(source: Source) -> Survey:
    """The source's topics with what is to be read of each. Raises as `connect` does."""
    assert source.cluster is not None  # the database holds a source of topics to it
    connected = connect(source.cluster)
    known = {row.name: row for row in source.topics.all()}
    names = chosen_topics(connected.metadata.topics, source.include, source.exclude)
    if len(names) > MAX_TOPICS:
        raise InvalidSource(
            f"The patterns choose {len(names):,} topics; up to {MAX_TOPICS:,} are scanned as one source."
        )
    partitions, problems = partitions_of(connected.metadata, names)
    offsets = offsets_of(connected.admin, partitions, source.cluster.bootstrap, since_ms=_since(source))
    problems |= {name: each for name, each in offsets.problems.items() if name not in problems}
    configs = configs_of(connected.admin, names)
    positions = {name: _positions(row) for name, row in known.items()}
    ids = topic_ids_of(connected.admin, names)
    plans = {
        name: plan_topic(
            source.mode,
            marks,
            positions.get(name, {}),
            tail=source.tail_messages,
            is_new=name in known and name in ids and known[name].cluster_id not in ("", ids[name]),
        )
        for name, marks in offsets.marks.items()
    }
    topics = {}
    for name in names:
        plan, config = plans.get(name), configs.get(name)
        topics[name] = TopicSeen(
            name=name,
            partitions=len(partitions.get(name, ())),
            cluster_id=ids.get(name, ""),
            compacted=config.compacted if config else False,
            retention_ms=config.retention_ms if config else None,
            retention_bytes=config.retention_bytes if config else None,
            again=plan.again if plan else False,
            restarted=plan.restarted if plan else False,
            problem=problems[name].text if name in problems else "",
            waits=name in problems and problems[name].may_pass,
        )
    topics |= _missing(connected.admin, known, names, connected.metadata.topics, source)
    waiting = [name for name in names if name in plans and plans[name].ranges and name not in problems]
    # The one that waited longest first: under a bound every topic has its turn.
    never = datetime.min.replace(tzinfo=UTC)
    order = sorted(waiting, key=lambda name: (known[name].read_at or never if name in known else never, name))
    anew = [topics[name] for name, plan in plans.items() if plan.restarted and not topics[name].problem]
    return Survey(topics, plans, tuple(order), positions, connected.admin, _remade(source, known, anew))


def _remade(source: Source, known: Mapping[str, Topic], anew: Sequence[TopicSeen]) -> tuple[TopicRemade, ...]:
    """What is known of the topics that were there before those of the same name."""
    if not anew:
        return ()
    last = source.scans.filter(state="done", read__isnull=False).order_by("-pk").first()
    read: Mapping[str, Any] = last.read if last is not None and last.read else {}
    return tuple(
        TopicRemade(
            topic.name,
            known[topic.name].cluster_id,
            topic.cluster_id,
            milliseconds(known[topic.name].read_at or known[topic.name].discovered_at),
            unread_of(topic.name, read),
        )
        for topic in sorted(anew, key=lambda topic: topic.name)
    )


def unread_of(topic: str, read: Mapping[str, Any]) -> int | None:
    """How many offsets of a topic a scan left unread, by what its row keeps; None where it doesn't say."""
    if "partitions" not in read or any(row.get("topic") == topic for row in read.get("unreadable", ())):
        return None
    own = [row for row in read["partitions"] if row.get("topic") == topic]
    if "partitions" in read.get("left_out", {}) or any("high" not in row for row in own):
        return None
    return sum(max(0, int(row["high"]) - int(row["end"])) for row in own)  # what had nothing new isn't among them


def with_lost_offsets(source: Source, survey: Survey, seen: Sequence[Observation]) -> list[Observation]:
    """The observations with the offsets that expired before the scan and during it.

    A topic that was made anew meanwhile is lost: what was read under its name is of two topics. So is one that was
    deleted, where Spark could tell only that no broker leads it.
    """
    found = [
        OffsetsExpired(name, each.partition, each.start, each.end)
        for name, plan in sorted(survey.plans.items())
        for each in plan.expired
    ]
    if survey.admin is None or source.cluster is None:
        return [*seen, *found, *_told_anew(survey, seen)]
    seen = settled(survey, survey.admin, seen)
    ids = topic_ids_of(survey.admin, survey.order)
    anew = {name for name, now in ids.items() if survey.topics[name].cluster_id not in ("", now)}
    gaps = [part for part in seen if isinstance(part, PartitionRead) and part.gaps and part.topic not in anew]
    places: dict[str, list[int]] = {}
    for part in gaps:
        places.setdefault(part.topic, []).append(part.partition)
    lows = offsets_of(survey.admin, places, source.cluster.bootstrap).marks if places else {}
    for part in gaps:
        mark = lows.get(part.topic, {}).get(part.partition)
        found += [
            OffsetsExpired(part.topic, part.partition, start, min(end, mark.low))
            for start, end in part.gaps
            if mark is not None and start < mark.low
        ]
    return [
        *(each for each in seen if getattr(each, "topic", None) not in anew),
        *found,
        *(TopicLost(name, "it was deleted and made anew while it was read") for name in sorted(anew)),
        *(each for each in _told_anew(survey, seen) if each.topic not in anew),
    ]


def _told_anew(survey: Survey, seen: Sequence[Observation]) -> list[TopicRemade]:
    """The topics that were made anew; those that couldn't be read are told of once they can."""
    lost = {each.topic for each in seen if isinstance(each, TopicLost)}
    return [each for each in survey.remade if each.topic not in lost]


def settled(survey: Survey, admin: AdminClient, seen: Sequence[Observation]) -> list[Observation]:
    """The observations, where topics whose broker seemed to be away are told from deleted ones, as the cluster says.

    Of a deleted one nothing half-read is said, nor of one that was made anew before the scan: its earlier positions are
    void, and are dropped once it is read without a break.
    """
    away = {each.topic: each for each in seen if isinstance(each, TopicLost) and each.may_pass}
    if not away:
        return list(seen)
    gone = gone_of(admin, away)
    dropped = gone | {name for name in away if survey.topics[name].restarted}
    kept = [each for each in seen if getattr(each, "topic", None) not in dropped]
    return [
        *kept,
        *(
            TopicLost(name, "it was deleted while it was read") if name in gone else away[name]
            for name in sorted(dropped)
        ),
    ]


def _missing(
    admin: AdminClient, known: Mapping[str, Topic], names: Collection[str], listed: Collection[str], source: Source
) -> dict[str, TopicSeen]:
    """The topics that were there at the last scan or are named, and that the cluster doesn't list."""
    wanted = {*chosen_topics(known, source.include, source.exclude), *named_topics(source.include)}
    lost = sorted(wanted - set(names) - set(listed))
    reasons = why_missing(admin, [name for name in lost if name not in known or known[name].gone_at is None])
    rows = {name: known.get(name, Topic()) for name in lost if name in known or name in reasons}
    return {
        name: TopicSeen(
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


def _bound(observations: Sequence[Observation]) -> str | None:
    return next((seen.bound_reached for seen in observations if isinstance(seen, ScanTotals)), None)


def topics_after(survey: Survey, observations: Sequence[Observation]) -> tuple[TopicSeen, ...]:
    """The topics as the scan left them: how far each was read, and whether all of what was asked for."""
    reads: dict[str, list[PartitionRead]] = {}
    totals: dict[str, TopicTotals] = {}
    lost: dict[str, TopicLost] = {}
    for each in observations:
        if isinstance(each, PartitionRead):
            reads.setdefault(each.topic, []).append(each)
        elif isinstance(each, TopicTotals):
            totals[each.topic] = each
        elif isinstance(each, TopicLost):
            lost[each.topic] = each
    after = []
    for asked in survey.topics.values():
        seen = _with_loss(asked, lost.get(asked.name), has_part=asked.name in totals)
        if seen.name in lost and not (seen.waits and seen.name in totals):
            after.append(seen)  # what was read of it is dropped, and read again by the next scan
            continue
        total, parts = totals.get(seen.name), reads.get(seen.name, [])
        positions = {} if seen.restarted else survey.positions.get(seen.name, {})
        messages = total.messages if total else 0
        after.append(
            replace(
                seen,
                positions={part.partition: part.end for part in parts},
                messages=messages,
                fresh=sum(_fresh(part, positions.get(part.partition, 0)) for part in parts),
                clean=total is not None and total.bound_reached is None and messages > 0 and not seen.problem,
            )
        )
    return tuple(after)


def _with_loss(seen: TopicSeen, lost: TopicLost | None, *, has_part: bool) -> TopicSeen:
    """The topic with why it couldn't be read, where it was lost."""
    if lost is None:
        return seen
    reason = lost.reason.rstrip(".")
    said = f"Topic {seen.name} couldn't be read: {reason}."
    if lost.may_pass and has_part:
        said = f"Topic {seen.name} couldn't be read to its end: {reason}. What was read by then counts."
    return replace(seen, problem=said, waits=lost.may_pass)


def _fresh(part: PartitionRead, position: int) -> int:
    """How many of the messages no scan had read before, by their share of the offsets."""
    if part.start >= position or part.end <= part.start:
        return part.messages
    return part.messages * max(0, part.end - position) // (part.end - part.start)
