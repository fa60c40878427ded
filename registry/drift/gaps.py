"""From which offset on a topic was read without leaving a message out: what tells "never seen" from "not looked at"."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from registry.drift.models import Topic
from registry.observations import Observation, PartitionRead


def keep_read_from(
    topics: Mapping[str, Topic],
    observations: Iterable[Observation],
    before: Mapping[str, Mapping[str, int]],
    restarted: Collection[str] = (),
) -> None:
    """Move `Topic.read_from` by what a scan read; `before` are the positions before it, by topic. One query.

    `restarted` topics were deleted and made again: nothing of before counts.
    """
    reads: dict[str, list[PartitionRead]] = {}
    for seen in observations:
        if isinstance(seen, PartitionRead) and seen.topic in topics:
            reads.setdefault(seen.topic, []).append(seen)
    changed = []
    for name, parts in reads.items():
        row = topics[name]
        is_new = name in restarted
        known = {} if is_new else dict(row.read_from)
        positions = {} if is_new else before.get(name, {})
        moved = {str(part.partition): _since(part, known, positions) for part in parts}
        if known | moved != row.read_from:
            row.read_from = known | moved
            changed.append(row)
    Topic.objects.bulk_update(changed, ["read_from"], batch_size=500)


def _since(part: PartitionRead, known: Mapping[str, int], positions: Mapping[str, int]) -> int:
    """The earlier beginning where this reading goes on from it, else its own; what expired unread is no gap."""
    partition = str(part.partition)
    if partition not in known or part.start > max(int(positions.get(partition, 0)), part.low):
        return part.start
    return min(int(known[partition]), part.start)
