"""Rules for retiring a version: no, because …; not before a date; yes; or unknown, and what is missing.

Pure: `can_retire` judges collected facts. A version can be retired once no message needs it, no state has its shape,
and no schema refers to it. A date is the earliest: brokers delete whole segments, later than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from registry.drift.usage.subject_topics import Unidentified
from registry.drift.usage.version_usage import Coverage, TopicUse, VersionUse, moment
from registry.errors import first_few
from registry.subjects.usage.evidence import Evidence

Answer = Literal["no", "unknown", "not_before", "yes"]
#: the first of these among all answers is the overall answer
WORST_FIRST: Final[tuple[Answer, ...]] = ("no", "unknown", "not_before", "yes")
#: younger messages mean that producers are still active; topics read this recently count as read to their end
RECENT: Final = timedelta(days=1)


@dataclass(frozen=True)
class Retention:
    """A topic's retention. `deletes`: by age or size; `ms` is -1 for forever, None if unknown.

    `lows` and `highs` are the cluster's current first and next offset of each partition; None if it wasn't asked or
    didn't answer.
    """

    compacted: bool
    deletes: bool
    ms: int | None
    lows: Mapping[int, int] | None = None
    highs: Mapping[int, int] | None = None

    @classmethod
    def stored(cls, topic: Coverage) -> Retention:
        """Return the retention from the last scan: for a compacted topic it is unknown whether it also deletes."""
        return cls(topic.compacted, not topic.compacted, topic.retention_ms)


@dataclass(frozen=True)
class GroupPosition:
    """A consumer group's committed offset in a partition: the next one that it reads."""

    group: str
    topic_id: int
    partition: int
    committed: int


@dataclass(frozen=True)
class Groups:
    """The consumer groups of the clusters; `problem` is why they are unknown or incomplete."""

    positions: tuple[GroupPosition, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Reason:
    """One reason for an answer, with its `date` if it has one."""

    answer: Answer
    sentence: str
    topic: str = ""
    date: datetime | None = None


@dataclass(frozen=True)
class Retirement:
    """The answer with all its reasons, most important first. `date` is only given with `not_before`."""

    answer: Answer
    date: datetime | None
    reasons: tuple[Reason, ...] = field(default=())

    @property
    def sentence(self) -> str:
        """Return the answer as a sentence."""
        first = self.reasons[0].sentence if self.reasons else ""
        if self.answer == "not_before" and self.date is not None:
            return f"Not before {moment(self.date)}: {first}"
        return {"no": "No: ", "unknown": "Not known: ", "yes": "Yes: ", "not_before": "Not yet: "}[self.answer] + first


def can_retire(
    use: VersionUse,
    coverage: Sequence[Coverage],
    retention: Mapping[int, Retention],
    groups: Groups,
    state: Sequence[Evidence],
    now: datetime,
    *,
    whole_subject: bool = False,
) -> Retirement:
    """Return the answer for one version; `retention` is by topic number.

    With `whole_subject`, being the newest version doesn't count: nothing is left to write with.
    """
    reasons = list(judge_data(use, coverage, retention, groups, now))
    if use.is_latest and not whole_subject:
        reasons.append(Reason("no", "It is the newest version: producers that use the latest version write with it."))
    if use.referrers or use.referrers_hidden:
        named = _counted(use.referrers, use.referrers_hidden)
        one = len(use.referrers) + use.referrers_hidden == 1
        reasons.append(Reason("no", f"{named} {'refers' if one else 'refer'} to it."))
    reasons += [
        Reason("no" if item.in_use == "yes" else "unknown", item.sentence) for item in state if item.in_use != "no"
    ]
    return combined(reasons)


def _counted(names: Sequence[str], hidden: int) -> str:
    """Return the first of these versions and the number of the others; no name if the reader may read none."""
    more = len(names) - 1 + hidden
    if names:
        return f"{names[0]} and {more} more" if more else names[0]
    return "1 version of another subject" if hidden == 1 else f"{hidden} versions of other subjects"


def combined(reasons: Sequence[Reason]) -> Retirement:
    """Return the worst answer; its date is the latest one."""
    ordered = sorted(reasons, key=lambda item: WORST_FIRST.index(item.answer))
    worst = ordered[0].answer if ordered else "unknown"
    dates = [item.date for item in ordered if item.date is not None]
    if worst == "not_before":
        ordered.sort(key=lambda item: item.date or datetime.min.replace(tzinfo=UTC), reverse=True)
    return Retirement(worst, max(dates, default=None) if worst == "not_before" else None, tuple(ordered))


def judge_data(
    use: VersionUse, coverage: Sequence[Coverage], retention: Mapping[int, Retention], groups: Groups, now: datetime
) -> Iterator[Reason]:
    """Yield reasons from messages: of every topic that has some, and of what wasn't read."""
    if use.is_shared:
        named = _counted(use.shared_with, use.shared_hidden)
        verb = "has" if len(use.shared_with) + use.shared_hidden == 1 else "have"
        yield Reason("yes", f"Messages stay readable: {named} {verb} the same schema id {use.schema_id}.")
        return
    yield from judge_topics(use, coverage, retention, groups, now)
    own = [topic for topic in coverage if topic.is_own]
    for topic in own:
        yield from _not_read(topic, retention[topic.topic_id], now)
        yield from _not_identified(topic, retention[topic.topic_id], now)
    if not own:
        yield Reason(
            "unknown", "No topic in this registry's sources carries the subject, so nothing is known about its data."
        )
    elif not any(item.owner != "other" for item in use.topics):
        yield _never_seen([topic for topic in own if topic.read_at is not None])


def _never_seen(read: Sequence[Coverage]) -> Reason:
    """Return the reason that no message read has the version; without topics that were read, unknown."""
    if not read:
        return Reason("unknown", "No topic of the subject has been read yet.")
    names = ", ".join(topic.topic for topic in read[:3]) + (" …" if len(read) > 3 else "")
    return Reason("yes", f"Never seen in the {sum(topic.messages for topic in read):,} messages read from {names}.")


def judge_topics(
    use: VersionUse, coverage: Sequence[Coverage], retention: Mapping[int, Retention], groups: Groups, now: datetime
) -> Iterator[Reason]:
    """Yield reasons from the messages that were seen, by topic."""
    topics = {topic.topic_id: topic for topic in coverage}
    for item in use.topics:
        if item.owner != "other":
            yield from _of_topic(item, topics[item.topic_id], retention[item.topic_id], groups, now)


def _of_topic(use: TopicUse, topic: Coverage, retention: Retention, groups: Groups, now: datetime) -> Iterator[Reason]:
    if topic.gone_at is not None:
        yield Reason("yes", f"{use.topic} and its data have been missing since {moment(topic.gone_at)}.", use.topic)
        return
    lows = retention.lows
    left = [part for part in use.partitions if lows is None or lows.get(part.partition, 0) <= part.last_offset]
    if not left:
        yield Reason("yes", f"All {use.messages:,} messages with it have been removed from {use.topic}.", use.topic)
        return
    last = max(part.last_time for part in left)
    if now - last <= RECENT:
        yield Reason(
            "no", f"Producers still write with it: the last message in {use.topic} is from {moment(last)}.", use.topic
        )
    behind = _slowest(use, [part.partition for part in left], groups)
    if behind:
        yield Reason("no", behind, use.topic)
    elif groups.problem:
        yield Reason(
            "not_before",
            f"It is not known which consumer groups have yet to read {use.topic}: {groups.problem}",
            use.topic,
        )
    yield _expiry(use, retention, last, now)


def _expiry(use: TopicUse, retention: Retention, last: datetime, now: datetime) -> Reason:
    what = f"{use.messages:,} messages of {use.topic}"
    if retention.compacted and not retention.deletes:
        sentence = f"{use.topic} is compacted: {what.partition(' of ')[0]} stay until their keys are overwritten."
        return Reason("no", sentence, use.topic)
    if retention.ms is None:
        return Reason("unknown", f"The retention of {use.topic} is unknown, and {what} need the version.", use.topic)
    if retention.ms < 0:
        return Reason(
            "no", f"{use.topic} keeps its data forever (retention.ms is -1), and {what} need the version.", use.topic
        )
    date = _after(last, retention.ms)
    if date > now:
        return Reason(
            "not_before",
            f"{what} need the version; the last one expires at {moment(date)} at the earliest.",
            use.topic,
            date,
        )
    if retention.lows is None:
        return Reason(
            "unknown", f"{what} could expire from {moment(date)}; whether they have expired was not checked.", use.topic
        )
    return Reason(
        "no", f"{what} were due to expire at {moment(date)}, but the broker still has some of them.", use.topic
    )


def _after(last: datetime, ms: int) -> datetime:
    """Return `last` plus milliseconds; a retention of thousands of years counts as forever."""
    try:
        return last + timedelta(milliseconds=ms)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _slowest(use: TopicUse, partitions: Sequence[int], groups: Groups) -> str:
    """Return a sentence about the group with the most of these messages unread; empty if there is none."""
    ends = {part.partition: part for part in use.partitions if part.partition in partitions}
    lags: dict[str, int] = {}
    where: dict[str, GroupPosition] = {}
    for position in groups.positions:
        part = ends.get(position.partition) if position.topic_id == use.topic_id else None
        if part is None or position.committed > part.last_offset:
            continue
        lag = part.last_offset + 1 - max(position.committed, part.first_offset)
        lags[position.group] = lags.get(position.group, 0) + lag
        where.setdefault(position.group, position)
    if not lags:
        return ""
    group = max(lags, key=lambda name: (lags[name], name))
    at = where[group]
    last = ends[at.partition].last_offset
    more = f"; the same applies to {len(lags) - 1} more group{'s' if len(lags) > 2 else ''}" if len(lags) > 1 else ""
    return (
        f"Consumer group {group} has yet to read it: the group is at offset {at.committed:,} of partition "
        f"{at.partition} of {use.topic}, and messages with the version go up to {last:,}{more}."
    )


def _not_identified(topic: Coverage, retention: Retention, now: datetime) -> Iterator[Reason]:
    """Yield unknown for messages of a topic without a known schema, unless all must have been deleted."""
    left = [item for item in topic.unidentified if not _is_removed(item, retention, now)]
    if left and topic.gone_at is None:
        messages = sum(item.messages for item in left)
        read = f"of the {topic.messages:,} messages" if topic.messages >= messages else "messages"
        yield Reason(
            "unknown",
            f"{messages:,} {read} read from {topic.topic} could not be matched to a schema. They may need this version.",
            topic.topic,
        )


def _is_removed(item: Unidentified, retention: Retention, now: datetime) -> bool:
    """Return whether the broker has deleted them: certain for the last scan's, by age for earlier ones."""
    if retention.lows is None or not retention.deletes or retention.ms is None or retention.ms < 0:
        return False
    lows = retention.lows
    is_past = all(lows.get(partition, 0) > last for partition, last in item.last_offsets.items())
    return is_past and _after(item.seen_at, retention.ms) < now


def _not_read(topic: Coverage, retention: Retention, now: datetime) -> Iterator[Reason]:
    """Yield unknown for unread parts of a topic: messages there may need any version."""
    if topic.gone_at is not None:
        return
    if topic.problem or topic.read_at is None:
        yield Reason("unknown", topic.sentence, topic.topic)
        return
    gaps = []
    for partition in range(topic.partitions):
        low = retention.lows.get(partition) if retention.lows is not None else 0
        since = topic.read_from.get(partition)
        if since is None and retention.highs is not None and retention.highs.get(partition) == low:
            continue  # it is empty
        if since is None or low is None:
            gaps.append(f"partition {partition}")
        elif since > low:
            gaps.append(f"offsets {low:,} to {since - 1:,} of partition {partition}")
    if gaps:
        yield Reason("unknown", f"Parts of {topic.topic} have never been scanned: {first_few(gaps)}.", topic.topic)
    checked = topic.checked_at or topic.read_at
    if checked is not None and now - checked > RECENT:
        yield Reason("unknown", f"{topic.topic} was last scanned at {moment(checked)}: scan it again.", topic.topic)
