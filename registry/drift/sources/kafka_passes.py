"""The passes of Spark over topics: one over all, and a second one where messages carry schemas that it didn't know."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from django.conf import settings

from registry.drift.connecting import kafka_connection
from registry.drift.models import Source
from registry.drift.patience import patiently
from registry.drift.sources.base import OnProgress, session_of, spark_remote
from registry.errors import BrokerUnavailable, ScanInterrupted
from registry.observations import (
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

SAMPLES = 3  # of each schema on a topic's side
SECOND_PASS = 2
NO_TIME = "the scan reached its deadline before it could read the topic again with this schema"
Marks = set[tuple[Framing, str]]


def _bounds(source: Source) -> Bounds:
    """The source's bounds, or the deployment's where those are tighter."""
    return Bounds(
        max_messages=min(source.max_messages, settings.SCAN_MAX_MESSAGES),
        max_bytes=source.max_bytes,
        deadline_seconds=float(min(source.max_seconds, settings.SCAN_DEADLINE_SECONDS)),
        first_slice=source.first_slice,
    )


def observe(
    source: Source, reads: tuple[TopicRead, ...], *, tag: str, on_progress: OnProgress, changes: bool = False
) -> list[Observation]:
    """One pass of Spark over all topics, and a second one over those that carry registered schemas it didn't know.

    `changes` reads the bodies as Debezium's change events too.
    """
    from registry.drift.knowledge import writers_for
    from registry.pipeline.run import run  # late: only a scan needs PySpark

    assert source.cluster is not None
    started = time.monotonic()
    spec = TopicScan(
        connection=kafka_connection(source.cluster),
        topics=reads,
        writers=patiently(lambda: writers_for(source, [read.topic for read in reads])),
        profile=Profile(samples=SAMPLES if source.keep_samples else 0, changes=changes),
        bounds=_bounds(source),
    )
    remote, session = spark_remote(), session_of(tag)
    first = run(spec, remote=remote, on_progress=on_progress, tag=tag, session_id=session)
    unknown = marks_without_writer(first, spec.writers)
    if not unknown:
        return first
    more = patiently(lambda: writers_for(source, list(unknown), _marks(unknown)))
    known = {(writer.framing, writer.mark) for writer in spec.writers}
    better = {(writer.framing, writer.mark) for writer in more} - known
    topics = [name for name, marks in unknown.items() if marks & better]
    if not topics:
        return first
    left = spec.bounds.deadline_seconds - (time.monotonic() - started)
    if left < 1:
        return [*first, *_not_decoded(unknown, better, topics)]
    on_progress(0, 0, "reading topics again whose schemas were unknown before")
    again = replace(
        spec,
        topics=ranges_read(first, topics),
        writers=(*spec.writers, *(each for each in more if (each.framing, each.mark) in better)),
        bounds=replace(spec.bounds, deadline_seconds=left),
    )
    try:
        # A session of its own: the first pass has released the other, and Spark opens none of that id again.
        second = run(again, remote=remote, on_progress=on_progress, tag=tag, session_id=session_of(tag, SECOND_PASS))
    except ScanInterrupted as error:
        if error.details.get("reason") != "deadline":
            raise
        return [*first, *_not_decoded(unknown, better, topics)]
    except BrokerUnavailable as error:
        return withheld(first, dict.fromkeys(topics, error.message))
    away = {seen.topic: seen.reason for seen in second if isinstance(seen, TopicLost) and seen.may_pass}
    first = withheld(first, away)
    topics = [name for name in topics if name not in away]
    unfinished = set(topics) - _finished(second)
    late = _not_decoded(unknown, better, unfinished)
    return [*joined(first, second, set(topics), time.monotonic() - started), *late]


def _not_decoded(unknown: Mapping[str, Marks], better: Marks, topics: Collection[str]) -> list[SchemaNotUsed]:
    """What is to say of schemas for whose messages no time was left. The next scan knows them from the start."""
    marks = set().union(*(unknown[topic] & better for topic in topics))
    return [SchemaNotUsed(framing, mark, NO_TIME) for framing, mark in sorted(marks)]


def _finished(second: Sequence[Observation]) -> set[str]:
    """The topics that the second pass read to the end."""
    lost = {seen.topic for seen in second if isinstance(seen, TopicLost)}
    return {seen.topic for seen in second if isinstance(seen, TopicTotals) and seen.bound_reached is None} - lost


def marks_without_writer(observations: Sequence[Observation], writers: Sequence[WriterSchema]) -> dict[str, Marks]:
    """Marks in messages that no writer schema was given for, by topic."""
    known = {(writer.framing, writer.mark) for writer in writers}
    found: dict[str, Marks] = {}
    for seen in observations:
        if isinstance(seen, FramedMessages) and (seen.framing, seen.mark) not in known:
            found.setdefault(seen.topic, set()).add((seen.framing, seen.mark))
    return found


def _marks(by_topic: Mapping[str, Marks]) -> Marks:
    return set().union(*by_topic.values())


def withheld(observations: Sequence[Observation], away: Mapping[str, str]) -> list[Observation]:
    """The observations without topics whose broker went away before they were read with their schemas.

    The next scan reads them again from where the last ended.
    """
    kept = [seen for seen in observations if getattr(seen, "topic", None) not in away]
    return [*kept, *(TopicLost(name, reason, may_pass=True) for name, reason in sorted(away.items()))]


def ranges_read(observations: Sequence[Observation], topics: Collection[str]) -> tuple[TopicRead, ...]:
    """The ranges that the first pass really read, of some topics."""
    ranges: dict[str, list[PartitionRange]] = {name: [] for name in topics}
    for seen in observations:
        if isinstance(seen, PartitionRead) and seen.topic in ranges and seen.start < seen.end:
            ranges[seen.topic].append(PartitionRange(seen.partition, seen.start, seen.end, seen.low, seen.high))
    return tuple(TopicRead(name, tuple(parts)) for name, parts in ranges.items() if parts)


def joined(
    first: Sequence[Observation], second: Sequence[Observation], topics: Collection[str], seconds: float
) -> list[Observation]:
    """The first pass, with the second's observations in place of its own for the topics that were read twice.

    What bound the first pass reached stays said; a topic that was lost in between stays as the first pass saw it.
    """
    done = _finished(second)
    bounds = {seen.topic: seen.bound_reached for seen in first if isinstance(seen, TopicTotals)}
    totals = next(seen for seen in first if isinstance(seen, ScanTotals))
    kept = [
        seen
        for seen in first
        if not isinstance(seen, ScanTotals)
        and (isinstance(seen, TopicLost) or getattr(seen, "topic", None) not in (done & set(topics)))
    ]
    again = [
        replace(seen, bound_reached=bounds.get(seen.topic)) if isinstance(seen, TopicTotals) else seen
        for seen in second
        if getattr(seen, "topic", None) in done
    ]
    unused = [seen for seen in second if getattr(seen, "topic", None) is None and not isinstance(seen, ScanTotals)]
    return [*kept, *again, *unused, replace(totals, seconds=seconds)]
