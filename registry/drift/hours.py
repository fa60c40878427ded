"""Messages by the hour of the time that they carry, from the spans that scans saw. Pure.

A scan counts the messages of a partition and mark by hour, the newest hours; where it didn't (scans from before it did,
messages without a mark) it tells when the first and the last was written. A span within one hour is counted exactly; a
longer one is spread evenly over its hours, and how many messages were placed so is kept beside the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

#: hours that are kept, the newest
MOST_HOURS: Final = 24
_HOUR: Final = 3_600_000
#: times that a calendar has; Kafka takes any number
_LATEST: Final = 253_402_300_799_000


@dataclass(frozen=True)
class ByHour:
    """Messages by hour (`2026-11-21 09:00`, UTC), those that were spread, and those of hours before the ones kept."""

    counts: Mapping[str, int]
    spread: int = 0
    earlier: int = 0

    def to_evidence(self) -> dict[str, Any]:
        """As a finding's evidence keeps it."""
        return {
            "ids_by_hour": dict(self.counts),
            "ids_by_hour_spread": self.spread,
            "ids_by_hour_earlier": self.earlier,
        }

    @staticmethod
    def of_evidence(evidence: Mapping[str, Any]) -> ByHour:
        """What a finding's evidence kept; nothing where an earlier version kept none."""
        counts = evidence.get("ids_by_hour")
        if not isinstance(counts, Mapping):
            return ByHour({})
        return ByHour(
            {str(label): int(number) for label, number in counts.items()},
            int(evidence.get("ids_by_hour_spread", 0)),
            int(evidence.get("ids_by_hour_earlier", 0)),
        )


def by_hour(before: ByHour, parts: Iterable[Mapping[str, Any]]) -> ByHour:
    """The counts with the parts of one more scan, each with `messages`, `first_time`, `last_time`, and `hours` or none."""
    hours: dict[int, int] = {}
    spread, earlier = before.spread, before.earlier
    for part in parts:
        messages, (first, last) = part["messages"], sorted((_hour(part["first_time"]), _hour(part["last_time"])))
        if part.get("hours"):
            earlier += messages - _count(part["hours"], hours)
            continue
        spread += messages if last > first else 0
        begin, placed = max(first, last - MOST_HOURS + 1), 0
        whole = last - first + 1
        for hour in range(begin, last + 1):
            # Up to and with this hour, so that roundings never add up.
            upto = messages * (hour - first + 1) // whole
            before_it = messages * (hour - first) // whole
            hours[hour] = hours.get(hour, 0) + upto - before_it
            placed += upto - before_it
        earlier += messages - placed
    counts = dict(before.counts)
    for hour, number in hours.items():
        if number:
            counts[_label(hour)] = counts.get(_label(hour), 0) + number
    ordered = sorted(counts.items())
    return ByHour(dict(ordered[-MOST_HOURS:]), spread, earlier + sum(number for _, number in ordered[:-MOST_HOURS]))


def without_hours(parts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The parts as evidence keeps them: their hours are in the finding's own, once for all partitions."""
    return [{name: value for name, value in part.items() if name != "hours"} for part in parts]


def _count(counted: Mapping[str, int], hours: dict[int, int]) -> int:
    """Add what a scan counted; gives how many messages that are."""
    for label, number in counted.items():
        hour = _hour(int(label) * _HOUR)
        hours[hour] = hours.get(hour, 0) + number
    return sum(counted.values())


def _hour(milliseconds: int) -> int:
    return min(max(milliseconds, 0), _LATEST) // _HOUR


def _label(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, tz=UTC).strftime("%Y-%m-%d %H:%M")
