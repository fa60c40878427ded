"""Topics of a Kafka cluster as a source: selected, compared with earlier scans, read by Spark, and judged.

Spark reads all topics once, and again those with messages of schemas that it didn't have.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop, ngettext

from registry.drift.judge import in_order, judge, pending
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Source, Topic
from registry.drift.rules import topics as topic_rules
from registry.drift.scan.db_retry import retry_while_database_away
from registry.drift.sources import kafka_cluster
from registry.drift.sources.base import (
    BOUNDS_SET,
    WHAT_TO_READ,
    FieldSet,
    OnProgress,
    ScannedTopic,
    ScanResult,
    SourceDraft,
    SourceKind,
    deadline_seconds,
    note_topics,
    session_of,
    spark_remote,
    volume_of,
)
from registry.drift.sources.kafka_connection import connect, kafka_connection
from registry.drift.sources.kafka_offsets import TopicPlan, backlog_of, plan_topic, read_json
from registry.errors import BrokerUnavailable, InvalidSource, ScanInterrupted
from registry.observations import (
    FIRST_SLICE,
    Bounds,
    FramedMessages,
    Framing,
    Observation,
    OffsetsExpired,
    PartitionRange,
    PartitionRead,
    Profile,
    ScanTotals,
    SchemaNotUsed,
    TopicLost,
    TopicRead,
    TopicRemade,
    TopicScan,
    TopicTotals,
    WriterSchema,
)

SAMPLES = 3  # per schema and topic's side
NO_TIME = "the scan reached its time limit before it could reread the topic with this schema"
NO_TOPIC = "The cluster lists no topic that the source's patterns match. It doesn't list topics that its user may not Describe."
Marks = set[tuple[Framing, str]]


def _bounds(source: Source) -> Bounds:
    """Return the source's limits, or the deployment's if they are lower."""
    return Bounds(
        max_messages=min(source.max_messages, settings.SCAN_MAX_MESSAGES),
        max_bytes=source.max_bytes,
        deadline_seconds=deadline_seconds(source),
        first_slice=source.first_slice or FIRST_SLICE,
    )


def observe(
    source: Source, reads: tuple[TopicRead, ...], *, tag: str, on_progress: OnProgress, changes: bool = False
) -> list[Observation]:
    """Read all topics with Spark once, then again those with registered schemas that it didn't have.

    With `changes`, bodies are also read as Debezium's change events.
    """
    from registry.drift.scan_context.topics import writers_for
    from registry.pipeline.run import run  # imported late: only a scan needs PySpark

    assert source.cluster is not None
    started = time.monotonic()
    spec = TopicScan(
        connection=kafka_connection(source.cluster),
        topics=reads,
        writers=retry_while_database_away(lambda: writers_for(source, [read.topic for read in reads])),
        profile=Profile(samples=SAMPLES if source.keep_samples else 0, changes=changes),
        bounds=_bounds(source),
    )
    remote, session = spark_remote(), session_of(tag)
    first = run(spec, remote=remote, on_progress=on_progress, tag=tag, session_id=session)
    unknown = marks_without_writer(first, spec.writers)
    if not unknown:
        return first
    more = retry_while_database_away(lambda: writers_for(source, list(unknown), _marks(unknown)))
    known_marks = {(writer.framing, writer.mark) for writer in spec.writers}
    better = {(writer.framing, writer.mark) for writer in more} - known_marks
    topics = [name for name, marks in unknown.items() if marks & better]
    if not topics:
        return first
    left = spec.bounds.deadline_seconds - (time.monotonic() - started)
    if left < 1:
        return [*first, *_not_decoded(unknown, better, topics)]
    on_progress(0, 0, "rereading topics whose schemas were unknown before")
    again = replace(
        spec,
        topics=ranges_read(first, topics),
        writers=(*spec.writers, *(writer for writer in more if (writer.framing, writer.mark) in better)),
        bounds=replace(spec.bounds, deadline_seconds=left, first_seconds=0),
    )
    try:
        second = run(again, remote=remote, on_progress=on_progress, tag=tag, session_id=session)
    except ScanInterrupted as error:
        if error.details.get("reason") != "deadline":
            raise
        return [*first, *_not_decoded(unknown, better, topics)]
    except BrokerUnavailable as error:
        return drop_topics(first, dict.fromkeys(topics, error.message))
    away = {item.topic: item.reason for item in second if isinstance(item, TopicLost) and item.may_pass}
    first = drop_topics(first, away)
    topics = [name for name in topics if name not in away]
    unfinished = set(topics) - _complete_topics(second)
    late = _not_decoded(unknown, better, unfinished)
    return [*join_passes(first, second, set(topics), time.monotonic() - started), *late]


def _not_decoded(unknown: Mapping[str, Marks], better: Marks, topics: Collection[str]) -> list[SchemaNotUsed]:
    """Return observations for schemas whose messages couldn't be reread in time. The next scan starts with them."""
    return [
        SchemaNotUsed(framing, mark, NO_TIME, topic)
        for topic in sorted(topics)
        for framing, mark in sorted(unknown[topic] & better)
    ]


def _complete_topics(second: Sequence[Observation]) -> set[str]:
    """Return the topics that the second pass read to the end."""
    lost = {item.topic for item in second if isinstance(item, TopicLost)}
    return {item.topic for item in second if isinstance(item, TopicTotals) and item.bound_reached is None} - lost


def marks_without_writer(observations: Sequence[Observation], writers: Sequence[WriterSchema]) -> dict[str, Marks]:
    """Return the marks in messages without a writer schema, by topic."""
    known_marks = {(writer.framing, writer.mark) for writer in writers}
    marks_by_topic: dict[str, Marks] = {}
    for observation in observations:
        if isinstance(observation, FramedMessages) and (observation.framing, observation.mark) not in known_marks:
            marks_by_topic.setdefault(observation.topic, set()).add((observation.framing, observation.mark))
    return marks_by_topic


def _marks(by_topic: Mapping[str, Marks]) -> Marks:
    return set().union(*by_topic.values())


def drop_topics(observations: Sequence[Observation], away: Mapping[str, str]) -> list[Observation]:
    """Return the observations without topics whose broker went away before they were read with their schemas.

    The next scan reads them again from where the last one ended.
    """
    remaining = [observation for observation in observations if getattr(observation, "topic", None) not in away]
    return [*remaining, *(TopicLost(name, reason, may_pass=True) for name, reason in sorted(away.items()))]


def ranges_read(observations: Sequence[Observation], topics: Collection[str]) -> tuple[TopicRead, ...]:
    """Return the ranges that the first pass really read of some topics."""
    ranges: dict[str, list[PartitionRange]] = {name: [] for name in topics}
    for part in observations:
        if isinstance(part, PartitionRead) and part.topic in ranges and part.start < part.end:
            ranges[part.topic].append(PartitionRange(part.partition, part.start, part.end, part.low, part.high))
    return tuple(TopicRead(name, tuple(parts)) for name, parts in ranges.items() if parts)


def join_passes(
    first: Sequence[Observation], second: Sequence[Observation], topics: Collection[str], seconds: float
) -> list[Observation]:
    """Join two passes: for topics read twice, the second pass's observations replace the first's.

    Limits reached in the first pass are kept; a topic lost in between stays as in the first pass.
    """
    done = _complete_topics(second)
    bounds = {item.topic: item.bound_reached for item in first if isinstance(item, TopicTotals)}
    totals = next(item for item in first if isinstance(item, ScanTotals))
    remaining = [
        item
        for item in first
        if not isinstance(item, ScanTotals)
        and (isinstance(item, TopicLost) or getattr(item, "topic", None) not in (done & set(topics)))
    ]
    again = [
        replace(item, bound_reached=bounds.get(item.topic)) if isinstance(item, TopicTotals) else item
        for item in second
        if getattr(item, "topic", None) in done
    ]
    unused = [item for item in second if not hasattr(item, "topic") and not isinstance(item, ScanTotals)]
    return [*remaining, *again, *unused, replace(totals, seconds=seconds)]


MAX_TOPICS = 5000
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


class TopicKind(SourceKind):
    """Base class of kinds that read topics of a cluster."""

    icon = "rows-3"
    has_topics = True

    def amount(self, read: Mapping[str, Any]) -> str:
        """Return the number of messages and topics as text; for scans by earlier releases, of partitions."""
        count = read.get("messages", 0)
        if "topics_asked" not in read:
            parts = len(read.get("partitions", ()))
            text = ngettext(
                "%(messages)s messages in %(n)s partition", "%(messages)s messages in %(n)s partitions", parts
            )
            return text % {"messages": f"{count:,}", "n": f"{parts:,}"}
        topics = ngettext("%(n)s topic", "%(n)s topics", read["topics_asked"]) % {"n": f"{read['topics_asked']:,}"}
        if not count:
            return gettext("no new messages in %(topics)s") % {"topics": topics}
        text = ngettext(
            "%(n)s new message in %(read)s of %(topics)s", "%(n)s new messages in %(read)s of %(topics)s", count
        )
        return text % {"n": f"{count:,}", "read": f"{read['topics_read']:,}", "topics": topics}


class KafkaTopics(TopicKind):
    """The committed messages of a cluster's topics."""

    name = "kafka"
    label = gettext_noop("Kafka topics")
    name_help = gettext_noop("The name shown here, for example orders.")
    rules = (*topic_rules.TOPIC_RULES, *topic_rules.FIELD_RULES)
    connects = True
    form = (
        FieldSet(WHAT_TO_READ, ("cluster", "bootstrap", "include", "exclude", "name")),
        FieldSet(gettext_noop("How"), ("registry", "context", "mode", "every_seconds")),
        BOUNDS_SET,
    )

    def check(self, draft: SourceDraft) -> str:
        """Check that the cluster answers and has the topics that are named without a pattern.

        Raises InvalidSource, BrokerUnavailable, AddressRefused, InvalidSecret.
        """
        name = super().check(draft)
        if draft.cluster is None:
            raise InvalidSource("Give the cluster whose topics are scanned.")
        connected = connect(draft.cluster)
        missing = [name for name in named_topics(draft.include) if name not in connected.metadata.topics]
        for reason in kafka_cluster.why_missing(connected.admin, missing).values():
            raise InvalidSource(reason.text)
        if missing:
            raise InvalidSource(
                f"Cluster {draft.cluster.name} has no topic "
                f"{missing[0]!r}{f' (and {len(missing) - 1} more are missing)' if len(missing) > 1 else ''}. "
                "Correct the name, or use a pattern if the topic will be created later."
            )
        return name

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read new messages of the topics within the limits, and judge them."""
        from registry.drift.scan.offsets import with_offsets
        from registry.drift.scan.personal_data import without_personal
        from registry.drift.scan_context.topics import (  # imported late: it loads all formats
            deleted_in_use,
            memory_of,
            registered_for,
        )

        on_progress(0, 0, "fetching topics and offsets from the cluster")
        started = time.monotonic()
        survey = retry_while_database_away(lambda: survey_cluster(source))
        retry_while_database_away(lambda: note_topics(source, survey.topics.values()))
        scanned = observe(source, survey.reads, tag=tag, on_progress=on_progress) if survey.order else []
        scanned = with_lost_offsets(source, survey, scanned)
        on_progress(0, 0, "judging")
        topics = topics_after(survey, scanned)
        require_any(source, topics)
        observations = retry_while_database_away(lambda: without_personal(source, scanned))
        registered, memory = retry_while_database_away(
            lambda: (registered_for(source, observations), memory_of(source, survey.order, survey.topics))
        )
        before = retry_while_database_away(lambda: deleted_in_use(source, topics, observations, registered, memory))
        findings = with_offsets(
            source, in_order([*judge(observations, registered, memory), *before]), tag=tag, on_progress=on_progress
        )
        return ScanResult(
            findings=tuple(findings),
            read=read_json(
                topics,
                observations,
                seconds=time.monotonic() - started,
                pending=[asdict(item) for item in pending(observations, registered, memory)],
            )
            | {"behind": retry_while_database_away(lambda: backlog_of(source, observations))}
            | ({} if topics else {"notes": [NO_TOPIC]}),
            # Without an observation nothing was judged, so nothing unseen is proved to be gone.
            complete=bool(survey.order) and _bound(observations) is None and not any(item.problem for item in topics),
            topics=topics,
            observations=tuple(observations),
            registered=registered,
            waits=waits_of(topics),
        )


def waits_of(topics: Sequence[ScannedTopic]) -> str:
    """Return why some topics must be read again soon because a broker is away; empty otherwise."""
    return " ".join(topic.problem for topic in topics if topic.waits)


def require_any(source: Source, topics: Sequence[ScannedTopic]) -> None:
    """Raise BrokerUnavailable if no topic could be read and an unavailable broker is the cause."""
    waiting = [topic for topic in topics if topic.waits]
    if waiting and all(not topic.messages and (topic.problem or topic.gone) for topic in topics):
        where = source.cluster.bootstrap if source.cluster else ""
        raise BrokerUnavailable(
            f"A broker of the Kafka cluster at {where} is unavailable: {waiting[0].problem} Check that the "
            "cluster's brokers are running.",
            bootstrap=where,
        )


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


def _bound(observations: Sequence[Observation]) -> str | None:
    return next((item.bound_reached for item in observations if isinstance(item, ScanTotals)), None)


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
