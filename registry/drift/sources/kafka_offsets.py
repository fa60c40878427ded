"""Offsets of topics: what a scan reads, what was read without gaps, and how far scans are behind.

`since_last` continues where the last scan ended, and starts at the oldest message; `tail` reads a number of the newest
messages of every partition, `window` those since a time, `full` everything. Except with `full`, topics without new
messages since the last scan are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from registry.drift.models import Source, Topic
from registry.drift.sources.base import ScannedTopic
from registry.observations import (
    FramedMessages,
    NullMessages,
    Observation,
    OffsetsExpired,
    PartitionRange,
    PartitionRead,
    ScanTotals,
    SchemaNotUsed,
    TopicTotals,
    UnframedMessages,
)


@dataclass(frozen=True)
class Watermarks:
    """The oldest offset of a partition, and the one after its newest committed message.

    `since` is the first offset of the time window, if one was requested.
    """

    low: int
    high: int
    since: int | None = None


@dataclass(frozen=True)
class Expired:
    """Offsets that were deleted before a scan began: from `start` to before `end`."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class TopicPlan:
    """What to read of a topic: no empty ranges, and none at all if nothing is new.

    `restarted`: the topic was deleted and recreated. `again`: offsets are read that an earlier scan has read.
    """

    ranges: tuple[PartitionRange, ...]
    expired: tuple[Expired, ...] = ()
    restarted: bool = False
    again: bool = False


#: mode → (watermarks, position, tail's length) → first offset
STARTS: Mapping[str, Callable[[Watermarks, int | None, int], int]] = {
    "since_last": lambda marks, position, _: marks.low if position is None else max(position, marks.low),
    "tail": lambda marks, _, tail: max(marks.low, marks.high - tail),
    "window": lambda marks, _, __: marks.high if marks.since is None else max(marks.since, marks.low),
    "full": lambda marks, _, __: marks.low,
}


def plan_topic(
    mode: str, marks: Mapping[int, Watermarks], positions: Mapping[int, int], *, tail: int, is_new: bool = False
) -> TopicPlan:
    """Return the ranges to read of one topic; `positions` are the next offsets to read, by partition.

    `is_new`: the cluster has a different topic under this name than before.
    """
    # For clusters without topic ids, an end before the position also shows it: offsets never go back otherwise.
    goes_back = any(partition in marks and marks[partition].high < next_ for partition, next_ in positions.items())
    restarted = bool(positions) and (is_new or goes_back)
    next_offsets = {} if restarted else dict(positions)
    if (
        mode != "full"
        and next_offsets
        and all(
            next_offsets.get(partition, watermarks.low) == watermarks.high for partition, watermarks in marks.items()
        )
    ):
        return TopicPlan((), restarted=restarted)
    ranges, again = [], False
    for partition, watermarks in sorted(marks.items()):
        start = STARTS[mode](watermarks, next_offsets.get(partition), tail)
        if start < watermarks.high:
            ranges.append(PartitionRange(partition, start, watermarks.high, watermarks.low, watermarks.high))
            again = again or start < next_offsets.get(partition, 0)
    expired = tuple(
        Expired(partition, next_offsets[partition], watermarks.low)
        for partition, watermarks in sorted(marks.items())
        if partition in next_offsets and next_offsets[partition] < watermarks.low
    )
    return TopicPlan(tuple(ranges), expired if mode == "since_last" else (), restarted, again)


MAX_ROWS: Final = 1000


def read_json(
    topics: Sequence[ScannedTopic],
    observations: Sequence[Observation],
    *,
    seconds: float,
    pending: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return totals, positions and messages by schema, for the page.

    `nothing` is true if the source has no topic, or none could be asked: it counts as not scanned. `messages` of 0
    without it means that nothing was new since the last scan. Lists have at most 1,000 rows; `left_out` counts the
    others.
    """
    totals = next((observation for observation in observations if isinstance(observation, ScanTotals)), None)
    bounds = {
        observation.topic: observation.bound_reached
        for observation in observations
        if isinstance(observation, TopicTotals)
    }
    readable = [topic for topic in topics if not topic.gone and (topic.messages or not topic.problem)]
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": [_topic(topic, bounds) for topic in topics if topic.messages or topic.gone or topic.problem],
        "partitions": [
            _partition(observation) for observation in observations if isinstance(observation, PartitionRead)
        ],
        "ids": _marks(observations),
        "unframed": _hints(observations),
        "unreadable": [{"topic": topic.name, "reason": topic.problem} for topic in topics if topic.problem],
        "settings_unknown": [
            {"topic": topic.name, "reason": topic.settings_problem} for topic in topics if topic.settings_problem
        ],
        "schemas_not_used": [
            {
                **({"topic": observation.topic} if observation.topic else {}),
                **({"side": observation.side} if observation.side else {}),
                "framing": observation.framing,
                "mark": observation.mark,
                "reason": observation.reason,
            }
            for observation in observations
            if isinstance(observation, SchemaNotUsed)
        ],
        "expired": [
            {"topic": gap.topic, "partition": gap.partition, "start": gap.start, "end": gap.end}
            for gap in observations
            if isinstance(gap, OffsetsExpired)
        ],
    }
    if pending is not None:
        rows["pending"] = pending
    return {
        "nothing": not readable,
        "messages": totals.messages if totals else 0,
        "bytes": totals.bytes if totals else 0,
        "seconds": round(seconds, 2),
        "bound_reached": totals.bound_reached if totals else None,
        "tombstones": _tombstones(observations),
        "topics_asked": len(readable),
        "topics_read": sum(1 for topic in topics if topic.messages),
        "restarted": sorted(topic.name for topic in topics if topic.restarted),
        "gone": sorted(topic.name for topic in topics if topic.gone),
        **{name: items[:MAX_ROWS] for name, items in rows.items()},
        "left_out": {name: len(items) - MAX_ROWS for name, items in rows.items() if len(items) > MAX_ROWS},
    }


def _topic(topic: ScannedTopic, bounds: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "messages": topic.messages,
        "bound_reached": bounds.get(topic.name),
        "gone": topic.gone,
        "restarted": topic.restarted,
    }


def _partition(read: PartitionRead) -> dict[str, Any]:
    return {
        "topic": read.topic,
        "partition": read.partition,
        "start": read.start,
        "end": read.end,
        "high": read.high,
        "messages": read.messages,
    }


def _marks(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """Return messages by topic, side and mark; `schema_id` is a number if the mark is one."""
    counts: dict[tuple[str, str, str, str], int] = {}
    for observation in observations:
        if isinstance(observation, FramedMessages):
            key = (observation.topic, observation.side, observation.framing, observation.mark)
            counts[key] = counts.get(key, 0) + observation.span.messages
    return [
        {
            "topic": topic,
            "side": side,
            "framing": framing,
            "schema_id": int(mark) if framing == "id" else mark,
            "messages": number,
        }
        for (topic, side, framing, mark), number in sorted(counts.items())
    ]


def _hints(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    counts: dict[tuple[str, str, str], int] = {}
    for observation in observations:
        if isinstance(observation, UnframedMessages):
            key = (observation.topic, observation.side, observation.hint)
            counts[key] = counts.get(key, 0) + observation.span.messages
    return [
        {"topic": topic, "side": side, "hint": hint, "messages": number}
        for (topic, side, hint), number in sorted(counts.items())
    ]


def _tombstones(observations: Iterable[Observation]) -> int:
    return sum(
        observation.span.messages
        for observation in observations
        if isinstance(observation, NullMessages) and observation.side == "value"
    )


Place = tuple[str, int]


@dataclass(frozen=True)
class Backlog:
    """Unread offsets, and the number of their topics.

    `arriving_per_second` is the rate since the previous scan, None without one. `scans` is how many more scans are
    needed at this one's pace, `caught_up_at` the time of the last of them. Both are None if scans don't catch up
    (`falls_back`) or it is unknown: nothing is known about arrivals, or the source is only scanned on demand.
    """

    offsets: int
    topics: int
    arriving_per_second: float | None = None
    scans: int | None = None
    caught_up_at: str | None = None
    falls_back: bool = False


def behind(
    reads: Sequence[PartitionRead],
    before: Mapping[Place, int],
    *,
    now: datetime,
    seconds_between: float | None,
    interval: float | None,
) -> Backlog | None:
    """Return what is left after a scan that ended `now`; None if everything was read.

    `before` are the ends of partitions `seconds_between` ago; `interval` is the time between scans in seconds.
    """
    left = {(read.topic, read.partition): read.high - read.end for read in reads if read.high > read.end}
    if not left:
        return None
    result = Backlog(sum(left.values()), len({topic for topic, _ in left}))
    common = [read for read in reads if (read.topic, read.partition) in before]
    if not common or not seconds_between or seconds_between <= 0:
        return result
    came = sum(max(0, read.high - before[read.topic, read.partition]) for read in common)
    arriving = came / seconds_between
    result = Backlog(result.offsets, result.topics, round(arriving, 3))
    if interval is None:
        return result
    read_by_scan = sum(read.end - read.start for read in reads)
    gain = read_by_scan - arriving * interval
    if gain <= 0:
        return Backlog(result.offsets, result.topics, result.arriving_per_second, falls_back=True)
    scans = math.ceil(result.offsets / gain)
    try:
        at = now + timedelta(seconds=scans * interval)
    except OverflowError:
        return Backlog(result.offsets, result.topics, result.arriving_per_second, falls_back=True)
    return Backlog(result.offsets, result.topics, result.arriving_per_second, scans, at.isoformat(timespec="seconds"))


def backlog_of(source: Source, observations: Sequence[Observation]) -> dict[str, Any] | None:
    """Return the backlog as JSON, from the source's schedule and its last scan; one query."""
    reads = [observation for observation in observations if isinstance(observation, PartitionRead)]
    if all(read.high <= read.end for read in reads):
        return None
    now = timezone.now()
    last = source.scans.filter(state="done").order_by("-pk").values_list("finished_at", "read").first()
    before, between = {}, None
    if last is not None and last[0] is not None and last[1]:
        rows = last[1].get("partitions", ())
        before = {(row["topic"], row["partition"]): row["high"] for row in rows if "high" in row}
        between = (now - last[0]).total_seconds()
    took = next((observation.seconds for observation in observations if isinstance(observation, ScanTotals)), 0.0)
    interval = max(float(source.every_seconds), took) if source.every_seconds else None
    result = behind(reads, before, now=now, seconds_between=between, interval=interval)
    return asdict(result) if result is not None else None


def keep_read_from(
    topics: Mapping[str, Topic],
    observations: Iterable[Observation],
    before: Mapping[str, Mapping[str, int]],
    restarted: Collection[str] = (),
) -> None:
    """Update `Topic.read_from` from what a scan read; `before` are the earlier positions, by topic. One query.

    `restarted` topics were deleted and recreated: earlier values don't count.
    """
    reads: dict[str, list[PartitionRead]] = {}
    for observation in observations:
        if isinstance(observation, PartitionRead) and observation.topic in topics:
            reads.setdefault(observation.topic, []).append(observation)
    changed = []
    for name, parts in reads.items():
        row = topics[name]
        is_new = name in restarted
        begins = {} if is_new else dict(row.read_from)
        positions = {} if is_new else before.get(name, {})
        moved = {str(part.partition): _since(part, begins, positions) for part in parts}
        if begins | moved != row.read_from:
            row.read_from = begins | moved
            changed.append(row)
    Topic.objects.bulk_update(changed, ["read_from"], batch_size=500)


def _since(part: PartitionRead, begins: Mapping[str, int], positions: Mapping[str, int]) -> int:
    """Return the earlier start if this read continues from it, else its own; expired unread offsets aren't a gap."""
    partition = str(part.partition)
    if partition not in begins or part.start > max(int(positions.get(partition, 0)), part.low):
        return part.start
    return min(int(begins[partition]), part.start)
