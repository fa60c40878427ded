"""A scan's observations of one topic: the *observed* side of a comparison, and the subjects of the topic.

Subjects are found from names and data. TopicName (`orders-value`) applies if that subject is registered. Otherwise the
marks of the messages decide: a subject named after its own record is RecordName, one named after the topic and its
record TopicRecordName. Associations apply in addition. A content type names its subject itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from registry.drift.judge.model import DEFAULT_CONTEXT, Mark, Registered, RegisteredVersion, TopicSide
from registry.observations import (
    ChangeEvents,
    ContractRuleResult,
    FieldProfile,
    FramedMessages,
    FramedTwice,
    LimitExceeded,
    MessageIndexes,
    NullMessages,
    Observation,
    OtherGroups,
    PartitionRead,
    RankedMessages,
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
SHOWN_PLACES = 4  # partitions named in a location; the evidence has all


@dataclass(frozen=True, order=True)
class PartitionSpan:
    """Messages of one partition in a finding; `hours` as in `FramedMessages`, empty if not counted.

    `kind` is the framing, or the hint of messages without one, with their mark; `ranges` are their first and last
    offsets without others in between. Each is empty if unknown.
    """

    partition: int
    first_offset: int
    last_offset: int
    messages: int
    first_time: int
    last_time: int
    hours: Mapping[str, int] = field(default_factory=dict, compare=False)
    kind: tuple[str, str] = field(default=("", ""), compare=False)
    ranges: tuple[tuple[int, int], ...] = field(default=(), compare=False)


def part_of(partition: int, span: Span, hours: Mapping[str, int] | None = None, **known: Any) -> PartitionSpan:
    """Convert a partition and a span to a PartitionSpan."""
    ends = (span.first_offset, span.last_offset, span.messages, span.first_time, span.last_time)
    return PartitionSpan(partition, *ends, hours or {}, **known)


@dataclass
class TopicObservations:
    """A topic's observations by type; `group_by_topic` sorts the lists."""

    topic: str
    messages: int = 0
    complete: bool = True
    starts: dict[int, int] = field(default_factory=dict)
    framed: dict[tuple[str | None, Mark], list[PartitionSpan]] = field(default_factory=dict)
    undecodable: dict[tuple[str | None, Mark], list[UndecodableMessages]] = field(default_factory=dict)
    violating: dict[tuple[str | None, Mark], list[UndecodableMessages]] = field(default_factory=dict)
    not_read: dict[tuple[str | None, Mark | None], list[UndecodableMessages]] = field(default_factory=dict)
    unframed: dict[str | None, list[UnframedMessages]] = field(default_factory=dict)
    nulls: dict[str | None, list[NullMessages]] = field(default_factory=dict)
    has_change_events: bool = False
    twice: dict[tuple[str | None, Mark], list[FramedTwice]] = field(default_factory=dict)
    indexes: dict[tuple[str | None, Mark], list[MessageIndexes]] = field(default_factory=dict)
    not_json: dict[str | None, list[UndecodableMessages]] = field(default_factory=dict)
    profiles: list[FieldProfile] = field(default_factory=list)
    ranked: dict[str | None, list[RankedMessages]] = field(default_factory=dict)
    samples: dict[str | None, list[Sample]] = field(default_factory=dict)
    rules: dict[str | None, list[ContractRuleResult]] = field(default_factory=dict)
    others: list[OtherGroups] = field(default_factory=list)
    not_used: list[SchemaNotUsed] = field(default_factory=list)
    left_out: list[LimitExceeded] = field(default_factory=list)

    def marks(self, side: str | None) -> list[Mark]:
        """Return the marks of a side, sorted."""
        return sorted(mark for mark_side, mark in self.framed if mark_side == side)

    def lacks_fields(self, side: str | None, framing: str, mark: str) -> bool:
        """Return whether fields of these messages weren't counted: a missing field may have exceeded the limit."""
        return any(
            part.limit == "fields" and (part.side, part.framing or "", part.mark) == (side, framing, mark)
            for part in self.left_out
        )

    def is_tried(self, side: str | None, mark: Mark) -> bool:
        """Return whether a scan tried to decode bodies with the mark: otherwise their counts are unknown, not zero."""
        key = (side, mark)
        return (
            key in self.undecodable
            or key in self.violating
            or key in self.not_read
            or any(profile.side == side and (profile.framing, profile.mark) == mark for profile in self.profiles)
        )


def group_by_topic(observations: Iterable[Observation]) -> list[TopicObservations]:
    """Return one TopicObservations per topic that was read, by name, whatever the order of the observations.

    A topic that was lost, or of which nothing was read, has none: not scanned isn't clean. What was read before its
    broker went away counts.
    """
    by_topic: dict[str, TopicObservations] = {}
    lost: set[str] = set()
    not_used: list[SchemaNotUsed] = []
    for observation in sorted(observations, key=repr):
        if isinstance(observation, TopicLost):
            lost |= set() if observation.may_pass else {observation.topic}
        elif isinstance(observation, SchemaNotUsed):
            not_used.append(observation)
        elif isinstance(observation, _OF_A_TOPIC):
            _add(by_topic.setdefault(observation.topic, TopicObservations(observation.topic)), observation)
    for reading in by_topic.values():
        marks = {mark for _, mark in reading.framed}
        reading.not_used = [
            observation
            for observation in not_used
            if (observation.framing, observation.mark) in marks and observation.topic in ("", reading.topic)
        ]
    return [by_topic[name] for name in sorted(by_topic) if name not in lost and by_topic[name].messages]


_OF_A_TOPIC = (
    PartitionRead,
    FramedMessages,
    UnframedMessages,
    NullMessages,
    ChangeEvents,
    UndecodableMessages,
    FramedTwice,
    MessageIndexes,
    FieldProfile,
    ContractRuleResult,
    RankedMessages,
    Sample,
    LimitExceeded,
    OtherGroups,
    TopicTotals,
)


def _add(reading: TopicObservations, observation: Any) -> None:
    match observation:
        case PartitionRead():
            reading.starts[observation.partition] = observation.start
        case FramedMessages():
            key = observation.side, (observation.framing, observation.mark)
            reading.framed.setdefault(key, []).append(
                part_of(observation.partition, observation.span, observation.hours, kind=key[1])
            )
        case UnframedMessages():
            reading.unframed.setdefault(observation.side, []).append(observation)
        case NullMessages():
            reading.nulls.setdefault(observation.side, []).append(observation)
        case ChangeEvents():
            reading.has_change_events = True
        case UndecodableMessages(problem="not_read"):
            unread = None if observation.framing is None else (observation.framing, observation.mark)
            reading.not_read.setdefault((observation.side, unread), []).append(observation)
        case UndecodableMessages(framing=None):
            reading.not_json.setdefault(observation.side, []).append(observation)
        case UndecodableMessages():
            mark: Mark = (observation.framing, observation.mark)  # type: ignore[assignment]  # None is handled above
            of_problem = reading.violating if observation.problem == "violates" else reading.undecodable
            of_problem.setdefault((observation.side, mark), []).append(observation)
        case FramedTwice():
            reading.twice.setdefault((observation.side, ("guid", observation.guid)), []).append(observation)
        case MessageIndexes():
            reading.indexes.setdefault((observation.side, (observation.framing, observation.mark)), []).append(
                observation
            )
        case FieldProfile():
            reading.profiles.append(observation)
        case RankedMessages():
            reading.ranked.setdefault(observation.side, []).append(observation)
        case ContractRuleResult():
            reading.rules.setdefault(observation.side, []).append(observation)
        case Sample():
            reading.samples.setdefault(observation.side, []).append(observation)
        case LimitExceeded():
            reading.left_out.append(observation)
        case OtherGroups():
            reading.others.append(observation)
        case TopicTotals():
            reading.messages = max(reading.messages, observation.messages)
            reading.complete = reading.complete and observation.bound_reached is None


def parts_of(observations: Iterable[Any]) -> list[PartitionSpan]:
    """Return the spans of observations that have a partition and a span."""
    return [
        part_of(
            observation.partition,
            observation.span,
            kind=("null" if isinstance(observation, NullMessages) else getattr(observation, "hint", ""), ""),
            ranges=getattr(observation, "ranges", ()),
        )
        for observation in observations
    ]


def merge_by_partition(parts: Iterable[PartitionSpan]) -> list[PartitionSpan]:
    """Merge spans by partition, ascending."""
    by_partition: dict[int, PartitionSpan] = {}
    for part in parts:
        one = by_partition.get(part.partition)
        by_partition[part.partition] = (
            part
            if one is None
            else PartitionSpan(
                part.partition,
                min(one.first_offset, part.first_offset),
                max(one.last_offset, part.last_offset),
                one.messages + part.messages,
                min(one.first_time, part.first_time),
                max(one.last_time, part.last_time),
                _hours_of(one, part),
            )
        )
    return [part for _, part in sorted(by_partition.items())]


def _hours_of(one: PartitionSpan, other: PartitionSpan) -> dict[str, int]:
    """Add up the hours of both parts; empty if one part has no counts."""
    if not one.hours or not other.hours:
        return {}
    hours = dict(one.hours)
    for hour, number in other.hours.items():
        hours[hour] = hours.get(hour, 0) + number
    return hours


def count_of(parts: Iterable[PartitionSpan]) -> int:
    """Return the total number of messages."""
    return sum(part.messages for part in parts)


def where(side: tuple[str, str], parts: Sequence[PartitionSpan]) -> str:
    """Return the location, such as `orders:0@17–240, orders:1@3 (value)`."""
    topic, name = side
    shown = []
    by_partition = merge_by_partition(parts)
    for part in by_partition[:SHOWN_PLACES]:
        first, last = part.first_offset, part.last_offset
        shown.append(f"{topic}:{part.partition}@{first}" + (f"–{last}" if last != first else ""))
    if len(by_partition) > SHOWN_PLACES:
        shown.append(f"and {len(by_partition) - SHOWN_PLACES} more partitions")
    return (", ".join(shown) or topic) + (f" ({name})" if name else "")


def positions(parts: Sequence[PartitionSpan]) -> dict[str, Any]:
    """Return the first and last time, and every partition with its offsets, as evidence."""
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
            for part in merge_by_partition(parts)
        ],
    }


def collect_marks(observations: Iterable[Observation]) -> dict[TopicSide, set[Mark]]:
    """Return the marks of every topic and side of a scan."""
    marks: dict[TopicSide, set[Mark]] = {}
    for observation in observations:
        if isinstance(observation, FramedMessages):
            marks.setdefault((observation.topic, observation.side), set()).add((observation.framing, observation.mark))
    return marks


def milliseconds(at: datetime) -> int:
    """Return a time as milliseconds since 1970."""
    return round(at.timestamp() * 1000)


TOPIC_NAME: Final = "TopicName"
RECORD_NAME: Final = "RecordName"
TOPIC_RECORD_NAME: Final = "TopicRecordName"
ASSOCIATION: Final = "association"
CONTENT_TYPE: Final = "content type"


@dataclass(frozen=True)
class SideSubjects:
    """The strategies found and the qualified names of the resulting subjects, both sorted."""

    strategies: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


def bare_name(qualified: str) -> str:
    """Return a subject's name without its context."""
    return qualified.split(":", 2)[2] if qualified.startswith(":.") and qualified.count(":") > 1 else qualified


def context_of(qualified: str) -> str:
    """Return a subject's context."""
    return qualified.split(":", 2)[1] if qualified.startswith(":.") and qualified.count(":") > 1 else DEFAULT_CONTEXT


def subjects_of_side(where: TopicSide, marks: Iterable[Mark], registered: Registered) -> SideSubjects:
    """Return the subjects of a topic's side; empty if none governs it."""
    topic, side = where
    subjects: dict[str, str] = {}
    own = registered.subjects.get(f"{topic}-{side}")
    if own is not None:
        subjects[own.name] = TOPIC_NAME
    for name in registered.associated.get(where, ()):
        subjects.setdefault(name, ASSOCIATION)
    for mark in marks:
        for version in registered.versions.get(mark, ()):
            if mark[0] == "content_type":
                subjects.setdefault(version.subject, CONTENT_TYPE)
            elif own is None:
                strategy = _strategy(topic, version)
                if strategy:
                    subjects.setdefault(version.subject, strategy)
    return SideSubjects(tuple(sorted(set(subjects.values()))), tuple(sorted(subjects)))


def _strategy(topic: str, version: RegisteredVersion) -> str:
    name = bare_name(version.subject)
    if version.record and name == version.record:
        return RECORD_NAME
    if version.record and name == f"{topic}-{version.record}":
        return TOPIC_RECORD_NAME
    return ""
