"""Adds a scan's counts to those of earlier scans, also by hour, and updates the states of findings.

Pure: no database, no clock.

A scan mode may read offsets again that were counted before. A use wholly beyond the position is new; one wholly before
it isn't; of one across it, the share of its offsets beyond is new, which is an estimate if marks mix. A field's day is
replaced if its messages were read again: the shares matter.

A scan counts the messages of a partition and mark by hour, for the newest hours. Without these counts (scans from
before they existed, messages without a mark), only the first and the last time are known. A span within one hour is
counted exactly; a longer one is spread evenly over its hours, and the number of spread messages is stored too.

A finding is `open` when first seen. A person may acknowledge it; it opens again when the acknowledgement ends or when
it gets worse. It is `resolved` after enough consecutive scans that could have seen it and didn't, and opens again if it
comes back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from registry.access.name_patterns import name_pattern
from registry.drift.judge.field_history import outer_end
from registry.observations import FieldProfile, FramedMessages, Observation, Span, UndecodableMessages

MOST_TYPES: Final = 50
MOST_SCANS: Final = 24
MOST_REASONS: Final = 20
#: topic, side, framing, mark, partition
UseKey = tuple[str, str, str, str, int]
#: topic, side, framing, mark, path
FieldName = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class PartitionUseTotals:
    """Messages of a partition with a mark; times in milliseconds since 1970."""

    messages: int
    undecodable: int
    bytes: int
    first_offset: int
    last_offset: int
    first_time: int
    last_time: int


@dataclass(frozen=True)
class FieldCounts:
    """A field's counts on one day; see registry.observations.FieldProfile."""

    messages: int
    present: int
    nulls: int
    kinds: Mapping[str, int]
    values: Mapping[str, int]
    distinct: int | None
    minimum: str
    maximum: str


def uses_of(observations: Iterable[Observation]) -> dict[UseKey, PartitionUseTotals]:
    """Return one scan's uses, by partition and mark."""
    uses: dict[UseKey, PartitionUseTotals] = {}
    undecodable: dict[UseKey, int] = {}
    for observation in observations:
        if not isinstance(observation, FramedMessages | UndecodableMessages) or observation.framing is None:
            continue
        key = (observation.topic, observation.side, observation.framing, observation.mark, observation.partition)
        if isinstance(observation, UndecodableMessages):
            undecodable[key] = undecodable.get(key, 0) + observation.span.messages
        else:
            uses[key] = _together(uses[key], _use(observation.span)) if key in uses else _use(observation.span)
    return {key: replace(use, undecodable=undecodable.get(key, 0)) for key, use in uses.items()}


def merged_use(before: PartitionUseTotals | None, scanned: PartitionUseTotals, *, position: int) -> PartitionUseTotals:
    """Merge a use with a scan's counts; `position` is the first offset that no scan had read before."""
    if before is None:
        return scanned
    share = _share_beyond(scanned, position)
    if share == 1.0:
        return _together(before, scanned)
    fresh = replace(
        scanned,
        messages=round(scanned.messages * share),
        undecodable=round(scanned.undecodable * share),
        bytes=round(scanned.bytes * share),
    )
    merged = _together(before, fresh)
    # The total can't be less than what is in the topic now.
    return replace(
        merged,
        messages=max(merged.messages, scanned.messages),
        undecodable=max(merged.undecodable, scanned.undecodable),
        bytes=max(merged.bytes, scanned.bytes),
    )


def _share_beyond(use: PartitionUseTotals, position: int) -> float:
    if use.first_offset >= position:
        return 1.0
    return max(0, use.last_offset - position + 1) / (use.last_offset - use.first_offset + 1)


def _use(span: Span) -> PartitionUseTotals:
    return PartitionUseTotals(
        span.messages, 0, span.bytes, span.first_offset, span.last_offset, span.first_time, span.last_time
    )


def _together(one: PartitionUseTotals, other: PartitionUseTotals) -> PartitionUseTotals:
    return PartitionUseTotals(
        messages=one.messages + other.messages,
        undecodable=one.undecodable + other.undecodable,
        bytes=one.bytes + other.bytes,
        first_offset=min(one.first_offset, other.first_offset),
        last_offset=max(one.last_offset, other.last_offset),
        first_time=min(one.first_time, other.first_time),
        last_time=max(one.last_time, other.last_time),
    )


def fields_of(observations: Iterable[Observation]) -> dict[FieldName, FieldCounts]:
    """Return one scan's counts by field."""
    fields: dict[FieldName, FieldCounts] = {}
    for profile in observations:
        if isinstance(profile, FieldProfile):
            key = (profile.topic, profile.side, profile.framing or "", profile.mark, profile.path)
            counts = FieldCounts(
                messages=profile.messages,
                present=profile.present,
                nulls=profile.nulls,
                kinds=dict(profile.kinds),
                values=dict(profile.values),
                distinct=profile.distinct,
                minimum=profile.minimum or "",
                maximum=profile.maximum or "",
            )
            fields[key] = merged_field(fields.get(key), counts, again=False)
    return fields


def merged_field(before: FieldCounts | None, scanned: FieldCounts, *, again: bool) -> FieldCounts:
    """Merge a field's day with one scan's counts; `again`: the scan read messages that were already counted."""
    if before is None or again:
        return scanned
    distinct = [number for number in (before.distinct, scanned.distinct) if number is not None]
    return FieldCounts(
        messages=before.messages + scanned.messages,
        present=before.present + scanned.present,
        nulls=before.nulls + scanned.nulls,
        kinds=_sum(before.kinds, scanned.kinds),
        values=_sum(before.values, scanned.values),
        distinct=max(distinct) if distinct else None,
        minimum=outer_end(before.minimum, scanned.minimum, least=True),
        maximum=outer_end(before.maximum, scanned.maximum, least=False),
    )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def merged_types(
    before: Mapping[str, Mapping[str, Sequence[int]]], scanned: Mapping[str, Mapping[str, Sequence[int]]]
) -> dict[str, dict[str, list[int]]]:
    """Merge message types by subject and name with first and last time; keeps the MOST_TYPES last seen per subject."""
    merged: dict[str, dict[str, list[int]]] = {}
    for subject in sorted({*before, *scanned}):
        spans = {name: list(span) for name, span in before.get(subject, {}).items()}
        for name, (first, last) in scanned.get(subject, {}).items():
            times = spans.get(name, [first, last])
            spans[name] = [min(times[0], first), max(times[1], last)]
        newest = sorted(spans, key=lambda name: (-spans[name][1], name))[:MOST_TYPES]
        merged[subject] = {name: spans[name] for name in sorted(newest)}
    return merged


def over_time(before: object, at: datetime, messages: int) -> dict[str, int]:
    """Add a scan's messages to the counts by minute (UTC) of the scan; keeps the last MOST_SCANS.

    `before` has the stored counts of earlier scans.
    """
    counts = {str(label): int(number) for label, number in before.items()} if isinstance(before, Mapping) else {}
    label = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    counts[label] = counts.get(label, 0) + messages
    return dict(sorted(counts.items())[-MOST_SCANS:])


def reasons_before(stored: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return why messages of earlier scans couldn't be read, as evidence; `count` is their number.

    `stored` is the last stored evidence. Earlier releases stored no counts: then no reason is known.
    """
    reasons: dict[str, int] = {}
    for name in ("by_reason", "by_reason_before"):
        counts = stored.get(name)
        for reason, number in counts.items() if isinstance(counts, Mapping) else ():
            reasons[str(reason)] = reasons.get(str(reason), 0) + int(number)
    most = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS])
    others = max(0, count - sum(most.values()))
    return {"by_reason_before": most, **({"other_reasons_before": others} if others else {})}


#: newest hours that are kept
MOST_HOURS: Final = 24
_HOUR: Final = 3_600_000
#: the latest time of a calendar; Kafka accepts any number
_LATEST: Final = 253_402_300_799_000


@dataclass(frozen=True)
class ByHour:
    """Messages by hour (`2026-11-21 09:00`, UTC), the number spread evenly, and the number in earlier hours."""

    counts: Mapping[str, int]
    spread: int = 0
    earlier: int = 0

    def to_evidence(self) -> dict[str, Any]:
        """Return the counts as evidence."""
        return {
            "ids_by_hour": dict(self.counts),
            "ids_by_hour_spread": self.spread,
            "ids_by_hour_earlier": self.earlier,
        }

    @staticmethod
    def of_evidence(evidence: Mapping[str, Any]) -> ByHour:
        """Read the counts from evidence; empty if an earlier version stored none."""
        counts = evidence.get("ids_by_hour")
        if not isinstance(counts, Mapping):
            return ByHour({})
        return ByHour(
            {str(label): int(number) for label, number in counts.items()},
            int(evidence.get("ids_by_hour_spread", 0)),
            int(evidence.get("ids_by_hour_earlier", 0)),
        )


def by_hour(before: ByHour, parts: Iterable[Mapping[str, Any]]) -> ByHour:
    """Add the parts of one more scan, each with `messages`, `first_time`, `last_time`, and perhaps `hours`."""
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
            # Cumulative up to this hour, so that rounding errors never add up.
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
    """Return the parts for evidence, without hours: the finding has them once for all partitions."""
    return [{name: value for name, value in part.items() if name != "hours"} for part in parts]


def _count(counted: Mapping[str, int], hours: dict[int, int]) -> int:
    """Add a scan's counts by hour; return the number of messages."""
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
    """Shell patterns that a mute covers; an empty one means any."""

    rule: str
    subject: str
    location: str


@dataclass(frozen=True)
class FindingStatus:
    """A finding's state before a scan's result is stored."""

    state: str
    severity: str
    count: int


@dataclass(frozen=True)
class FindingUpdate:
    """A finding's state after a scan that saw it."""

    state: str
    count: int
    reopened: bool


def is_muted(mutes: Iterable[MutePattern], rule: str, subject: str, location: str) -> bool:
    """Return whether a mute covers a finding: all of its patterns match."""
    return any(
        all(
            not pattern or name_pattern(pattern).allows(text)
            for pattern, text in ((mute.rule, rule), (mute.subject, subject), (mute.location, location))
        )
        for mute in mutes
    )


def updated_finding(before: FindingStatus, *, severity: str, count: int, adds: bool) -> FindingUpdate:
    """Return a known finding's new state after a scan saw it: resolved ones reopen, acknowledged ones if worse.

    `adds`: the scan read only new messages, so its count is added.
    """
    worse = SEVERITY_RANK[severity] < SEVERITY_RANK[before.severity]
    reopened = before.state == "resolved" or (before.state == "acknowledged" and worse)
    return FindingUpdate(
        state="open" if reopened else before.state, count=before.count + count if adds else count, reopened=reopened
    )


def could_have_seen(topic: str, *, complete: bool, clean_topics: Collection[str]) -> bool:
    """Return whether a scan could have seen a finding of a topic (empty: of none) if it still applied.

    A topic that wasn't read to its end proves nothing; neither does a scan that a limit cut short.
    """
    return topic in clean_topics if topic else complete
