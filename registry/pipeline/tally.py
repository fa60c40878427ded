"""What the slices of a scan add up to, by topic and partition: framing, and where it lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from registry.observations import (
    FramedMessages,
    FramedTwice,
    Hint,
    NullMessages,
    Observation,
    OtherGroups,
    Side,
    Span,
    UnframedMessages,
)
from registry.pipeline.framing import SIDES, as_framing, mark_of
from registry.pipeline.grouping import MOST_HOURS

# topic, partition, side, class, mark ("" for unframed bytes)
GroupKey = tuple[str, int, Side, str, str]


@dataclass
class Tally:
    """The groups found so far; what lies beyond the bound of groups is folded into one a partition."""

    groups: dict[GroupKey, Span] = field(default_factory=dict)
    # hour since 1970 → messages, of each group the newest hours
    hours: dict[GroupKey, dict[int, int]] = field(default_factory=dict)
    folded: dict[tuple[str, int], tuple[int, Span]] = field(default_factory=dict)
    # topic, partition, side, GUID, schema id
    twice: dict[tuple[str, int, Side, str, int], Span] = field(default_factory=dict)
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        """Bytes of all keys and values counted."""
        return sum(self.bytes.values())

    def add(self, row: Any) -> None:
        """Count one row of the grouping: for its partition, and for both of its sides."""
        place, span = (row.topic, row.partition), span_of(row)
        self.partitions[place] = self.partitions.get(place, 0) + span.messages
        self.messages[row.topic] = self.messages.get(row.topic, 0) + span.messages
        self.bytes[row.topic] = self.bytes.get(row.topic, 0) + span.bytes
        if row.folded:
            groups, before = self.folded.get(place, (0, None))
            self.folded[place] = (groups + row.groups, joined(before, span))
            return
        for key in keys_of(row):
            self.groups[key] = joined(self.groups.get(key), span)
            self.hours[key] = newest_hours(self.hours.get(key, {}), row.hours or ())
            inner = row[f"{key[2]}_inner"]
            if inner is not None:
                twice = (*place, key[2], key[4], int.from_bytes(inner, "big"))
                self.twice[twice] = joined(self.twice.get(twice), span)

    def forget(self, topic: str) -> None:
        """Drop what was counted of a topic that was lost."""
        self.groups = {key: span for key, span in self.groups.items() if key[0] != topic}
        self.hours = {key: hours for key, hours in self.hours.items() if key[0] != topic}
        self.twice = {key: span for key, span in self.twice.items() if key[0] != topic}
        self.folded = {place: some for place, some in self.folded.items() if place[0] != topic}
        self.partitions = {place: count for place, count in self.partitions.items() if place[0] != topic}
        self.messages.pop(topic, None)
        self.bytes.pop(topic, None)

    def fold_beyond(self, most: int, known: frozenset[tuple[str, str]]) -> None:
        """Keep `most` groups, those with a known mark and the largest first.

        What slices found apart may be more together than each was allowed.
        """
        ranked = sorted(self.groups.items(), key=lambda item: (_is_foreign(item[0], known), -item[1].messages))
        for key, span in ranked[most:]:
            place = key[:2]
            groups, before = self.folded.get(place, (0, None))
            self.folded[place] = (groups + 1, joined(before, span))
            del self.groups[key]
            self.hours.pop(key, None)

    def observations(self) -> Iterator[Observation]:
        """The groups as observations, sorted."""
        for (topic, partition, side, kind, mark), span in sorted(self.groups.items()):
            framing = as_framing(kind)
            if kind == "null":
                yield NullMessages(topic, side, partition, span)
            elif framing is None:
                yield UnframedMessages(topic, side, partition, cast("Hint", kind), span)
            else:
                hours = self.hours.get((topic, partition, side, kind, mark), {})
                counted = {str(hour): number for hour, number in sorted(hours.items())}
                yield FramedMessages(topic, side, partition, framing, mark, span, counted)
        for (topic, partition, side, guid, schema_id), span in sorted(self.twice.items()):
            yield FramedTwice(topic, side, partition, guid, schema_id, span)
        for (topic, partition), (groups, span) in sorted(self.folded.items()):
            yield OtherGroups(topic, partition, groups, span)


def keys_of(row: Any) -> Iterator[GroupKey]:
    """The groups of both sides that a row of the grouping stands for; none for a folded one."""
    if row.folded:
        return
    for side in SIDES:
        raw, kind = row[f"{side}_mark"], row[f"{side}_class"]
        yield row.topic, row.partition, side, kind, mark_of(kind, raw) if raw is not None else ""


def newest_hours(before: Mapping[int, int], more: Iterable[Any]) -> dict[int, int]:
    """The hours with those of one more row, the newest alone.

    An hour that a row left out has as many newer ones there: it is left out here too, and what stays is counted whole.
    """
    found = dict(before)
    for each in more:
        found[each.hour] = found.get(each.hour, 0) + each.messages
    return dict(sorted(found.items(), reverse=True)[:MOST_HOURS])


def span_of(row: Any) -> Span:
    """The span in the columns of a row."""
    return Span(row.messages, row.bytes, row.first_offset, row.last_offset, row.first_time, row.last_time)


def joined(one: Span | None, other: Span) -> Span:
    """Two spans of one partition as one."""
    if one is None:
        return other
    return Span(
        one.messages + other.messages,
        one.bytes + other.bytes,
        min(one.first_offset, other.first_offset),
        max(one.last_offset, other.last_offset),
        min(one.first_time, other.first_time),
        max(one.last_time, other.last_time),
    )


def _is_foreign(key: GroupKey, known: frozenset[tuple[str, str]]) -> bool:
    return as_framing(key[3]) is not None and (key[3], key[4]) not in known
