"""How far a source's scans are behind its topics, and when they will have caught up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from registry.drift.models import Source
from registry.observations import Observation, PartitionRead, ScanTotals

Place = tuple[str, int]


@dataclass(frozen=True)
class Behind:
    """Offsets that scans haven't read yet, of so many topics.

    `arriving_per_second` is how many came since the scan before, None where there was none. `scans` is how many more it
    takes at the pace of this one, `caught_up_at` the time of the last of them; both None where scans don't catch up
    (`falls_back`), or nobody can tell: nothing is known of what arrives, or the source is scanned on demand alone.
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
) -> Behind | None:
    """What is left after a scan that ended `now`; None where all was read.

    `before` are the ends of partitions `seconds_between` ago; `interval` the seconds from scan to scan.
    """
    left = {(read.topic, read.partition): read.high - read.end for read in reads if read.high > read.end}
    if not left:
        return None
    found = Behind(sum(left.values()), len({topic for topic, _ in left}))
    common = [read for read in reads if (read.topic, read.partition) in before]
    if not common or not seconds_between or seconds_between <= 0:
        return found
    came = sum(max(0, read.high - before[read.topic, read.partition]) for read in common)
    arriving = came / seconds_between
    found = Behind(found.offsets, found.topics, round(arriving, 3))
    if interval is None:
        return found
    read_by_scan = sum(read.end - read.start for read in reads)
    gain = read_by_scan - arriving * interval
    if gain <= 0:
        return Behind(found.offsets, found.topics, found.arriving_per_second, falls_back=True)
    scans = math.ceil(found.offsets / gain)
    try:
        at = now + timedelta(seconds=scans * interval)
    except OverflowError:
        return Behind(found.offsets, found.topics, found.arriving_per_second, falls_back=True)
    return Behind(found.offsets, found.topics, found.arriving_per_second, scans, at.isoformat(timespec="seconds"))


def behind_of(source: Source, observations: Sequence[Observation]) -> dict[str, Any] | None:
    """The same as JSON, by the source's schedule and what its last scan left; one query."""
    reads = [each for each in observations if isinstance(each, PartitionRead)]
    if all(read.high <= read.end for read in reads):
        return None
    now = timezone.now()
    last = source.scans.filter(state="done").order_by("-pk").values_list("finished_at", "read").first()
    before, between = {}, None
    if last is not None and last[0] is not None and last[1]:
        rows = last[1].get("partitions", ())
        before = {(row["topic"], row["partition"]): row["high"] for row in rows if "high" in row}
        between = (now - last[0]).total_seconds()
    took = next((each.seconds for each in observations if isinstance(each, ScanTotals)), 0.0)
    interval = max(float(source.every_seconds), took) if source.every_seconds else None
    found = behind(reads, before, now=now, seconds_between=between, interval=interval)
    return asdict(found) if found is not None else None
