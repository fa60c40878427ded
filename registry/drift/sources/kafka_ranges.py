"""Which offsets of a topic a scan reads: mode, watermarks and positions → ranges. Pure.

`since_last` goes on where the last scan ended, and begins at the oldest message; `tail` reads so many of the newest of
every partition, `window` those since a time, `full` all that is there. A topic that has nothing new since the last
scan is left out, but by `full`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from registry.observations import PartitionRange


@dataclass(frozen=True)
class Watermarks:
    """The oldest offset of a partition, and the one after its newest committed message.

    `since` is the first offset of the time window, where one was asked for.
    """

    low: int
    high: int
    since: int | None = None


@dataclass(frozen=True)
class Expired:
    """Offsets that were deleted before a scan began: from `start` up to, not including, `end`."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class TopicPlan:
    """What is read of a topic: no empty range, none at all where nothing is new.

    `restarted` tells that the topic was deleted and made again. `again` tells that offsets are read which an earlier
    scan has read.
    """

    ranges: tuple[PartitionRange, ...]
    expired: tuple[Expired, ...] = ()
    restarted: bool = False
    again: bool = False


#: mode → watermarks, the position, the tail's length → where to begin
STARTS: Mapping[str, Callable[[Watermarks, int | None, int], int]] = {
    "since_last": lambda marks, position, _: marks.low if position is None else max(position, marks.low),
    "tail": lambda marks, _, tail: max(marks.low, marks.high - tail),
    "window": lambda marks, _, __: marks.high if marks.since is None else max(marks.since, marks.low),
    "full": lambda marks, _, __: marks.low,
}


def plan_topic(
    mode: str, marks: Mapping[int, Watermarks], positions: Mapping[int, int], *, tail: int, is_new: bool = False
) -> TopicPlan:
    """The ranges to read of one topic; `positions` are the next offsets to read, by partition.

    `is_new`: the cluster has another topic under this name than the one that was read before.
    """
    # An end before the position says so too, of clusters without topic ids: offsets never go back otherwise.
    goes_back = any(partition in marks and marks[partition].high < next_ for partition, next_ in positions.items())
    restarted = bool(positions) and (is_new or goes_back)
    known = {} if restarted else dict(positions)
    if (
        mode != "full"
        and known
        and all(known.get(partition, each.low) == each.high for partition, each in marks.items())
    ):
        return TopicPlan((), restarted=restarted)
    ranges, again = [], False
    for partition, each in sorted(marks.items()):
        start = STARTS[mode](each, known.get(partition), tail)
        if start < each.high:
            ranges.append(PartitionRange(partition, start, each.high, each.low, each.high))
            again = again or start < known.get(partition, 0)
    expired = tuple(
        Expired(partition, known[partition], each.low)
        for partition, each in sorted(marks.items())
        if partition in known and known[partition] < each.low
    )
    return TopicPlan(tuple(ranges), expired if mode == "since_last" else (), restarted, again)
