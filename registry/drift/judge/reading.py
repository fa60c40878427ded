"""What a scan saw of one topic, in order: the *observed* side of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.drift.judge.model import Mark, TopicSide
from registry.observations import (
    FieldProfile,
    FramedMessages,
    FramedTwice,
    MessageIndexes,
    Observation,
    OtherGroups,
    PartitionRead,
    Sample,
    SchemaNotUsed,
    Side,
    Span,
    TopicLost,
    TopicTotals,
    UndecodableMessages,
    UnframedMessages,
)

SIDES: tuple[Side, ...] = ("key", "value")
SHOWN_PLACES = 4  # partitions named in a location; the evidence has them all


@dataclass(frozen=True, order=True)
class Part:
    """Messages of one partition that a finding is about; `hours` as `FramedMessages` has them, empty where not counted."""

    partition: int
    first_offset: int
    last_offset: int
    messages: int
    first_time: int
    last_time: int
    hours: Mapping[str, int] = field(default_factory=dict, compare=False)


def part_of(partition: int, span: Span, hours: Mapping[str, int] | None = None) -> Part:
    """A span of a partition."""
    return Part(
        partition, span.first_offset, span.last_offset, span.messages, span.first_time, span.last_time, hours or {}
    )


@dataclass
class Reading:
    """A topic's observations by what they are about; lists are in no order until `readings` gives them."""

    topic: str
    messages: int = 0
    complete: bool = True
    starts: dict[int, int] = field(default_factory=dict)
    framed: dict[tuple[str | None, Mark], list[Part]] = field(default_factory=dict)
    undecodable: dict[tuple[str | None, Mark], list[UndecodableMessages]] = field(default_factory=dict)
    violating: dict[tuple[str | None, Mark], list[UndecodableMessages]] = field(default_factory=dict)
    not_read: dict[tuple[str | None, Mark | None], list[UndecodableMessages]] = field(default_factory=dict)
    unframed: dict[str | None, list[UnframedMessages]] = field(default_factory=dict)
    twice: dict[tuple[str | None, Mark], list[FramedTwice]] = field(default_factory=dict)
    indexes: dict[tuple[str | None, Mark], list[MessageIndexes]] = field(default_factory=dict)
    not_json: dict[str | None, list[UndecodableMessages]] = field(default_factory=dict)
    profiles: list[FieldProfile] = field(default_factory=list)
    samples: dict[str | None, list[Sample]] = field(default_factory=dict)
    others: list[OtherGroups] = field(default_factory=list)
    not_used: list[SchemaNotUsed] = field(default_factory=list)

    def marks(self, side: str | None) -> list[Mark]:
        """The marks of a side, sorted."""
        return sorted(mark for each, mark in self.framed if each == side)


def readings(seen: Iterable[Observation]) -> list[Reading]:
    """One reading a topic that was read, by name; the order of the observations doesn't matter.

    A topic that was lost, or of which nothing was read, has none: not scanned is not clean. What was read before its
    broker went away counts.
    """
    found: dict[str, Reading] = {}
    lost: set[str] = set()
    not_used: list[SchemaNotUsed] = []
    for each in sorted(seen, key=repr):
        if isinstance(each, TopicLost):
            lost |= set() if each.may_pass else {each.topic}
        elif isinstance(each, SchemaNotUsed):
            not_used.append(each)
        elif isinstance(each, _OF_A_TOPIC):
            _add(found.setdefault(each.topic, Reading(each.topic)), each)
    for reading in found.values():
        marks = {mark for _, mark in reading.framed}
        reading.not_used = [each for each in not_used if (each.framing, each.mark) in marks]
    return [found[name] for name in sorted(found) if name not in lost and found[name].messages]


_OF_A_TOPIC = (
    PartitionRead,
    FramedMessages,
    UnframedMessages,
    UndecodableMessages,
    FramedTwice,
    MessageIndexes,
    FieldProfile,
    Sample,
    OtherGroups,
    TopicTotals,
)


def _add(reading: Reading, seen: Any) -> None:
    match seen:
        case PartitionRead():
            reading.starts[seen.partition] = seen.start
        case FramedMessages():
            key = seen.side, (seen.framing, seen.mark)
            reading.framed.setdefault(key, []).append(part_of(seen.partition, seen.span, seen.hours))
        case UnframedMessages():
            reading.unframed.setdefault(seen.side, []).append(seen)
        case UndecodableMessages(problem="not_read"):
            unread = None if seen.framing is None else (seen.framing, seen.mark)
            reading.not_read.setdefault((seen.side, unread), []).append(seen)
        case UndecodableMessages(framing=None):
            reading.not_json.setdefault(seen.side, []).append(seen)
        case UndecodableMessages():
            mark: Mark = (seen.framing, seen.mark)  # type: ignore[assignment]  # the case above has those without one
            of_problem = reading.violating if seen.problem == "violates" else reading.undecodable
            of_problem.setdefault((seen.side, mark), []).append(seen)
        case FramedTwice():
            reading.twice.setdefault((seen.side, ("guid", seen.guid)), []).append(seen)
        case MessageIndexes():
            reading.indexes.setdefault((seen.side, (seen.framing, seen.mark)), []).append(seen)
        case FieldProfile():
            reading.profiles.append(seen)
        case Sample():
            reading.samples.setdefault(seen.side, []).append(seen)
        case OtherGroups():
            reading.others.append(seen)
        case TopicTotals():
            reading.messages = max(reading.messages, seen.messages)
            reading.complete = reading.complete and seen.bound_reached is None


def parts_of(seen: Iterable[Any]) -> list[Part]:
    """The parts of observations that have a partition and a span."""
    return [part_of(each.partition, each.span) for each in seen]


def merged(parts: Iterable[Part]) -> list[Part]:
    """One part a partition, ascending."""
    found: dict[int, Part] = {}
    for part in parts:
        one = found.get(part.partition)
        found[part.partition] = (
            part
            if one is None
            else Part(
                part.partition,
                min(one.first_offset, part.first_offset),
                max(one.last_offset, part.last_offset),
                one.messages + part.messages,
                min(one.first_time, part.first_time),
                max(one.last_time, part.last_time),
                _hours_of(one, part),
            )
        )
    return [part for _, part in sorted(found.items())]


def _hours_of(one: Part, other: Part) -> dict[str, int]:
    """Of both together; none where one of them wasn't counted."""
    if not one.hours or not other.hours:
        return {}
    found = dict(one.hours)
    for hour, number in other.hours.items():
        found[hour] = found.get(hour, 0) + number
    return found


def count_of(parts: Iterable[Part]) -> int:
    """Messages in all."""
    return sum(part.messages for part in parts)


def where(side: tuple[str, str], parts: Sequence[Part]) -> str:
    """Where it is, as `orders:0@17–240, orders:1@3 (value)`."""
    topic, name = side
    shown = []
    found = merged(parts)
    for part in found[:SHOWN_PLACES]:
        first, last = part.first_offset, part.last_offset
        shown.append(f"{topic}:{part.partition}@{first}" + (f"–{last}" if last != first else ""))
    if len(found) > SHOWN_PLACES:
        shown.append(f"and {len(found) - SHOWN_PLACES} more partitions")
    return (", ".join(shown) or topic) + (f" ({name})" if name else "")


def positions(parts: Sequence[Part]) -> dict[str, Any]:
    """First and last time, and every partition with its offsets, as evidence."""
    if not parts:
        return {}
    return {
        "first_time": min(part.first_time for part in parts),
        "last_time": max(part.last_time for part in parts),
        "partitions": [
            {
                "partition": part.partition,
                "messages": part.messages,
                "first_offset": part.first_offset,
                "last_offset": part.last_offset,
                "first_time": part.first_time,
                "last_time": part.last_time,
                **({"hours": dict(part.hours)} if part.hours else {}),
            }
            for part in merged(parts)
        ],
    }


def marks_seen(seen: Iterable[Observation]) -> dict[TopicSide, set[Mark]]:
    """The marks of every topic and side of a scan, for whoever looks them up."""
    found: dict[TopicSide, set[Mark]] = {}
    for each in seen:
        if isinstance(each, FramedMessages):
            found.setdefault((each.topic, each.side), set()).add((each.framing, each.mark))
    return found


def milliseconds(at: datetime) -> int:
    """A time as milliseconds since 1970."""
    return round(at.timestamp() * 1000)
