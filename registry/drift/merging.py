"""What a scan counted, added to what earlier scans counted: rows of SchemaUse and FieldStatistic. Pure.

A mode may read offsets again that were counted before. Of a use that lies wholly beyond the position everything is
new; of one that lies wholly before it nothing is; of one that straddles it the share of its offsets beyond is, which is
an estimate where marks mix. A field's day is taken anew when its messages were read again: shares matter there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

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
