"""How Spark reads a source's topics: once all of them, and again those with messages of schemas that it didn't have."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from django.conf import settings

from registry.drift.models import Source
from registry.drift.scan.db_retry import retry_while_database_away
from registry.drift.sources.base import OnProgress, deadline_seconds, session_of, spark_remote
from registry.drift.sources.kafka_connection import kafka_connection
from registry.errors import BrokerUnavailable, ScanInterrupted
from registry.observations import (
    FIRST_SLICE,
    Bounds,
    FramedMessages,
    Framing,
    Observation,
    PartitionRange,
    PartitionRead,
    Profile,
    ScanTotals,
    SchemaNotUsed,
    TopicLost,
    TopicRead,
    TopicScan,
    TopicTotals,
    WriterSchema,
)

SAMPLES: Final = 3  # per schema and topic's side
NO_TIME: Final = "the scan reached its time limit before it could reread the topic with this schema"
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
