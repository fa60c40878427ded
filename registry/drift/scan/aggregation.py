"""From scan to scan: counts of a scan added to those of earlier ones, by hour too, and the life cycle of findings.

Pure: no database, no clock.

A mode may read offsets again that were counted before. Of a use that lies wholly beyond the position everything is
new; of one that lies wholly before it nothing is; of one that straddles it the share of its offsets beyond is, which is
an estimate where marks mix. A field's day is taken anew when its messages were read again: shares matter there.

A scan counts the messages of a partition and mark by hour, the newest hours; where it didn't (scans from before it did,
messages without a mark) it has the times of the first and the last. A span within one hour is counted exactly; a
longer one is spread evenly over its hours, and how many messages were placed so is stored beside the counts.

A finding is `open` when it is seen first. A person may acknowledge it; it opens again when the acknowledgement is over
or when it gets worse. It is `resolved` after so many scans in a row that could have seen it and did not, and opens
again when it comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final

from registry.observations import FieldProfile, FramedMessages, Observation, Span, UndecodableMessages

MOST_TYPES: Final = 50
MOST_SCANS: Final = 24
#: topic, side, framing, mark, partition
UseKey = tuple[str, str, str, str, int]
#: topic, side, framing, mark, path
FieldName = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Use:
    """Messages of a partition that carry a mark; times in milliseconds since 1970."""

    messages: int
    undecodable: int
    bytes: int
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


@dataclass(frozen=True)
class FieldCounts:
    """A field's messages on a day; see registry.observations.FieldProfile."""

    messages: int
    present: int
    nulls: int
    kinds: Mapping[str, int]
    values: Mapping[str, int]
    distinct: int | None
    minimum: str
    maximum: str


def uses_of(observations: Iterable[Observation]) -> dict[UseKey, Use]:
    """What one scan saw, by place and mark."""
    found: dict[UseKey, Use] = {}
    undecodable: dict[UseKey, int] = {}
    for seen in observations:
        if not isinstance(seen, FramedMessages | UndecodableMessages) or seen.framing is None:
            continue
        key = (seen.topic, seen.side, seen.framing, seen.mark, seen.partition)
        if isinstance(seen, UndecodableMessages):
            undecodable[key] = undecodable.get(key, 0) + seen.span.messages
        else:
            found[key] = _together(found[key], _use(seen.span)) if key in found else _use(seen.span)
    return {key: replace(use, undecodable=undecodable.get(key, 0)) for key, use in found.items()}


def merged_use(before: Use | None, seen: Use, *, position: int) -> Use:
    """A use with what a scan saw of it; `position` is the first offset that no scan had read before."""
    if before is None:
        return seen
    share = _share_beyond(seen, position)
    if share == 1.0:
        return _together(before, seen)
    fresh = replace(
        seen,
        messages=round(seen.messages * share),
        undecodable=round(seen.undecodable * share),
        bytes=round(seen.bytes * share),
    )
    merged = _together(before, fresh)
    # What is counted can't be less than what stands there now.
    return replace(
        merged,
        messages=max(merged.messages, seen.messages),
        undecodable=max(merged.undecodable, seen.undecodable),
        bytes=max(merged.bytes, seen.bytes),
    )


def _share_beyond(seen: Use, position: int) -> float:
    if seen.first_offset >= position:
        return 1.0
    return max(0, seen.last_offset - position + 1) / (seen.last_offset - seen.first_offset + 1)


def _use(span: Span) -> Use:
    return Use(span.messages, 0, span.bytes, span.first_offset, span.last_offset, span.first_time, span.last_time)


def _together(one: Use, other: Use) -> Use:
    return Use(
        messages=one.messages + other.messages,
        undecodable=one.undecodable + other.undecodable,
        bytes=one.bytes + other.bytes,
        first_offset=min(one.first_offset, other.first_offset),
        last_offset=max(one.last_offset, other.last_offset),
        first_time=min(one.first_time, other.first_time),
        last_time=max(one.last_time, other.last_time),
    )


def fields_of(observations: Iterable[Observation]) -> dict[FieldName, FieldCounts]:
    """What one scan saw of every field."""
    found: dict[FieldName, FieldCounts] = {}
    for seen in observations:
        if isinstance(seen, FieldProfile):
            key = (seen.topic, seen.side, seen.framing or "", seen.mark, seen.path)
            counts = FieldCounts(
                messages=seen.messages,
                present=seen.present,
                nulls=seen.nulls,
                kinds=dict(seen.kinds),
                values=dict(seen.values),
                distinct=seen.distinct,
                minimum=seen.minimum or "",
                maximum=seen.maximum or "",
            )
            found[key] = merged_field(found.get(key), counts, again=False)
    return found


def merged_field(before: FieldCounts | None, seen: FieldCounts, *, again: bool) -> FieldCounts:
    """A field's day with what a scan saw of it; `again` tells that it read messages which were counted already."""
    if before is None or again:
        return seen
    distinct = [number for number in (before.distinct, seen.distinct) if number is not None]
    return FieldCounts(
        messages=before.messages + seen.messages,
        present=before.present + seen.present,
        nulls=before.nulls + seen.nulls,
        kinds=_sum(before.kinds, seen.kinds),
        values=_sum(before.values, seen.values),
        distinct=max(distinct) if distinct else None,
        minimum=_end(before.minimum, seen.minimum, least=True),
        maximum=_end(before.maximum, seen.maximum, least=False),
    )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _end(one: str, other: str, *, least: bool) -> str:
    """The smaller or greater of two values: by the number that both begin with (`9`, `12 characters`), else as texts."""
    if not one or not other:
        return one or other
    try:
        first = float(one.split(" ", 1)[0]) < float(other.split(" ", 1)[0])
    except ValueError:
        first = one < other
    return one if first == least else other


def merged_types(
    before: Mapping[str, Mapping[str, Sequence[int]]], seen: Mapping[str, Mapping[str, Sequence[int]]]
) -> dict[str, dict[str, list[int]]]:
    """Message types by subject and name with first and last time, after a scan; the MOST_TYPES last seen of a subject."""
    merged: dict[str, dict[str, list[int]]] = {}
    for subject in sorted({*before, *seen}):
        spans = {name: list(span) for name, span in before.get(subject, {}).items()}
        for name, (first, last) in seen.get(subject, {}).items():
            known = spans.get(name, [first, last])
            spans[name] = [min(known[0], first), max(known[1], last)]
        kept = sorted(spans, key=lambda name: (-spans[name][1], name))[:MOST_TYPES]
        merged[subject] = {name: spans[name] for name in sorted(kept)}
    return merged


def over_time(before: object, at: datetime, messages: int) -> dict[str, int]:
    """Messages by the minute (UTC) in which a scan saw them, this scan's added; of the last MOST_SCANS of them.

    `before` is what an earlier scan kept.
    """
    counts = {str(label): int(number) for label, number in before.items()} if isinstance(before, Mapping) else {}
    label = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    counts[label] = counts.get(label, 0) + messages
    return dict(sorted(counts.items())[-MOST_SCANS:])


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


SEVERITY_RANK: Final = {"break": 0, "risk": 1, "notice": 2}


@dataclass(frozen=True)
class MutePattern:
    """Shell patterns of what a mute covers; an empty one means any."""

    rule: str
    subject: str
    location: str


@dataclass(frozen=True)
class Standing:
    """How a finding stands before a scan is kept."""

    state: str
    severity: str
    count: int


@dataclass(frozen=True)
class Seen:
    """What a scan that saw the finding makes of it."""

    state: str
    count: int
    reopened: bool


def is_muted(mutes: Iterable[MutePattern], rule: str, subject: str, location: str) -> bool:
    """Whether a mute covers a finding: all of its patterns fit."""
    return any(
        all(
            not pattern or fnmatchcase(text, pattern)
            for pattern, text in ((mute.rule, rule), (mute.subject, subject), (mute.location, location))
        )
        for mute in mutes
    )


def seen_again(before: Standing, *, severity: str, count: int, adds: bool) -> Seen:
    """A known finding that a scan saw: resolved ones open again, and acknowledged ones that got worse.

    `adds` tells that the scan read what no scan had read before, so that its count adds to what was counted.
    """
    worse = SEVERITY_RANK[severity] < SEVERITY_RANK[before.severity]
    reopened = before.state == "resolved" or (before.state == "acknowledged" and worse)
    return Seen(
        state="open" if reopened else before.state,
        count=before.count + count if adds else count,
        reopened=reopened,
    )


def could_have_seen(topic: str, *, complete: bool, clean_topics: Collection[str]) -> bool:
    """Whether a scan could have seen a finding of a topic (empty: of none) if it still held.

    A topic that the scan didn't read to its end proves nothing, and neither does a scan that a bound cut short.
    """
    return topic in clean_topics if topic else complete
