"""What points to the producer of a finding's messages: where something stands out in what the scan saw. Pure.

Headers and client ids aren't observed: no broker hands out which client wrote a message. What is known is the partition,
which tells something where a producer writes to its own, or writes one key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: messages without a key go to partitions by turns, a batch each: a few, or those of a moment, say nothing
FEWEST: Final = 10
SHORTEST_MS: Final = 60_000


@dataclass(frozen=True)
class OnePartition:
    """All messages of the finding, in its last scan, lie in this partition of so many."""

    partition: int
    of: int
    messages: int


def one_partition(evidence: Mapping[str, Any], partitions: int) -> OnePartition | None:
    """That the messages lie in one partition alone, where that says something; `partitions` are those of the topic."""
    parts = evidence.get("partitions")
    if partitions < 2 or not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], Mapping):
        return None
    names = ("partition", "messages", "first_time", "last_time")
    values: list[Any] = [parts[0].get(name) for name in names]
    if not all(isinstance(value, int) for value in values):
        return None
    partition, messages, first, last = values
    if messages < FEWEST or last - first < SHORTEST_MS:
        return None
    return OnePartition(partition, partitions, messages)
