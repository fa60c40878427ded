"""Builds findings of a topic's side: their names, evidence, masked samples and most likely cause.

The cause is the last version added to the subject before the first message: only what can change what producers write
is a cause. Another subject's version can't, nor can a level or a mode: they decide which versions may be added, and the
added version is the nearer cause. Numbers, times and marks are formatted for people.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from registry.drift.judge.model import (
    Cause,
    Event,
    JudgedFinding,
    Mark,
    Memory,
    OffendingMessages,
    Registered,
    RegisteredVersion,
    TopicMemory,
    fingerprint_of,
    make_finding,
)
from registry.drift.judge.topic_observations import (
    PartitionSpan,
    TopicObservations,
    count_of,
    parts_of,
    positions,
    where,
)
from registry.drift.rules import RULES, Severity
from registry.formats.policies.spark_state import StateChange
from registry.observations import Limit, LimitExceeded, MessageGroup, Observation, Side, UndecodableMessages

HINTS: Final = {
    "empty": "an empty message",
    "cut_frame": "a truncated frame",
    "glue": "a frame of AWS Glue Schema Registry",
    "azure": "a message of Azure Schema Registry",
    "single_object": "Avro's single-object encoding",
    "json_object": "a JSON object",
    "json_array": "a JSON array",
    "xml": "XML",
    "avro_file": "an Avro file",
    "gzip": "gzip",
    "text": "text",
    "binary": "binary data",
}
FRAMINGS: Final = {
    "id": "a schema id in the body",
    "guid": "a schema GUID",
    "content_type": "a content type that names the schema",
}
_MARKS: Final = {"id": "schema id", "guid": "schema GUID", "content_type": "content type"}
_KINDS: Final = {
    "string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "a list", "null": "null",
}  # fmt: skip
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_LAST_TIME: Final = 253_402_300_799_000  # the end of the year 9999
LONGEST_MARK: Final = 200  # characters of a header's text
SHOWN: Final = 4  # names in a sentence; the evidence has all


def counted(number: int, noun: str) -> str:
    """Return `1 message`, `1,234 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def messages_between(numbers: Collection[int]) -> str:
    """Return `300 messages`, or `280 to 320 messages`."""
    low, high = min(numbers), max(numbers)
    return counted(low, "message") if low == high else f"{low:,} to {counted(high, 'message')}"


def percent(share: float) -> str:
    """Return `3 %`, `0.2 %`; never `0 %` for more than nothing, nor `100 %` for less than all."""
    value = share * 100
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    if value < 0.1:
        return "under 0.1 %"
    if value > 99.9:
        return "over 99.9 %"
    return f"{value:.1f} %" if value < 10 or value > 99 else f"{value:.0f} %"


def share_of(part: int, whole: int) -> str:
    """Return `41 of 5,000 messages`, `all 5,000 messages`."""
    if part == whole:
        return counted(whole, "message") if whole == 1 else f"all {counted(whole, 'message')}"
    return f"{part:,} of {counted(whole, 'message')}"


def moment(milliseconds: int) -> str:
    """Return `2026-11-21 09:14 UTC`; a time outside the calendar as its number."""
    if not 0 <= milliseconds <= _LAST_TIME:
        return f"time {milliseconds:,}"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def span_of_time(milliseconds: int) -> str:
    """Return `3 minutes`, in the largest unit that fits."""
    seconds = max(0, milliseconds) // 1000
    for unit, name in _UNITS:
        if seconds >= unit:
            return counted(seconds // unit, name)
    return "less than a second"


def mark_words(mark: Mark) -> str:
    """Return `schema id 7`, `schema GUID …`, `content type vnd.orders.v1`."""
    framing, text = mark
    if mark == ("id", "0"):
        return "schema id 0 (most likely the first half of an id of 8 bytes)"
    return f"{_MARKS[framing]} {text if len(text) <= LONGEST_MARK else text[:LONGEST_MARK] + '…'}"


def change_words(change: StateChange) -> str:
    """Return `age added (long)`, `age removed (long)`, `age integer → long`; for a POSITION rule, its message."""
    if change.rule.startswith("POSITION"):
        return change.message
    if change.before is None:
        return f"{change.path} added ({change.after})"
    if change.after is None:
        return f"{change.path} removed ({change.before})"
    return f"{change.path} {change.before} → {change.after}"


def capitalised(text: str) -> str:
    """Capitalise only the first character."""
    return text[:1].upper() + text[1:]


def kind_words(kinds: Iterable[str]) -> str:
    """Return `a string or null`."""
    return either([_KINDS.get(kind, kind) for kind in sorted(kinds, key=lambda kind: (kind == "null", kind))])


def either(names: Sequence[str]) -> str:
    """Return `a`, `a or b`, `a, b or c`."""
    return _listed(names, "or")


def both(names: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return _listed(names, "and")


def _listed(names: Sequence[str], word: str) -> str:
    if len(names) > SHOWN + 1:
        names = [*names[:SHOWN], f"{len(names) - SHOWN:,} more"]
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def named(versions: Iterable[RegisteredVersion]) -> list[tuple[str, int]]:
    """Return the distinct (subject, number) pairs."""
    return sorted({(version.subject, version.version) for version in versions})


def owners(versions: Iterable[RegisteredVersion]) -> str:
    """Return `orders-value version 3, archive-value version 1`."""
    names = named(versions)
    shown = [f"{subject} version {version}" for subject, version in names[:SHOWN]]
    return ", ".join(shown + ([f"{len(names) - SHOWN:,} more"] if len(names) > SHOWN else []))


WINDOW: Final = 60 * 60 * 1000  # earlier changes are unlikely causes


def cause_of(
    rule: str,
    identity: Sequence[str],
    parts: Sequence[PartitionSpan],
    *,
    starts: Mapping[int, int],
    registered: Registered,
    memory: Memory,
    subjects: Sequence[str] = (),
) -> Cause:
    """Return the cause, empty if unknown. A known finding keeps its cause: it began in an earlier scan.

    If the first message that the scan read is already affected, the start is unknown and there is no cause.
    """
    earlier = memory.findings.get(fingerprint_of(rule, identity))
    if earlier is not None:
        return earlier.cause
    if not parts:
        return Cause()
    first = min(parts, key=lambda part: (part.first_time, part.partition, part.first_offset))
    if any(part.first_offset <= starts.get(part.partition, -1) for part in parts):
        return Cause()
    return caused_by(first.first_time, registered.events, subjects)


def caused_by(began: int, events: Sequence[Event], subjects: Sequence[str]) -> Cause:
    """Return the last version added to a subject in the hour before `began` as the cause; empty without one."""
    near = [event for event in events if event.subject in subjects and 0 <= began - event.at <= WINDOW]
    if not near:
        return Cause()
    last = max(near, key=lambda event: (event.at, event.sentence))
    sentence = f"Began {moment(began)}, {span_of_time(began - last.at)} after {last.sentence}."
    return Cause(sentence, f"After {last.sentence} at {moment(last.at)}", last.subject)


MOST: Final = 3
LONGEST: Final = 1_000  # characters of one sample
#: rules about unreadable bytes: only their offsets are stored, nothing of their content
OFFSETS_ALONE: Final = frozenset(
    {
        "UNFRAMED_DATA",
        "FRAME_TRUNCATED",
        "UNDECODABLE",
        "SCHEMA_VIOLATED",
        "MESSAGE_NOT_READ",
        "NOT_JSON",
        "FRAMED_TWICE",
    }
)


def samples_of(
    rule: str,
    reading: TopicObservations,
    side: Side | None,
    parts: Sequence[PartitionSpan],
    examples: Sequence[Mapping[str, int]] = (),
) -> list[dict[str, Any]]:
    """Return at most MOST masked messages of the finding: those that the evidence names, then the first ones.

    A sample belongs to the finding if its schema and position are in the parts. Revealed samples are never stored.
    """
    if rule in OFFSETS_ALONE or not parts:
        return []
    marks = _marks_of(reading, side, parts)
    chosen = [
        sample
        for sample in reading.samples.get(side, ())
        if not sample.revealed
        and (sample.framing or "", sample.mark) in marks
        and any(
            part.partition == sample.partition and part.first_offset <= sample.offset <= part.last_offset
            for part in parts
        )
    ]
    places = [(example["partition"], example["offset"]) for example in examples]
    chosen.sort(key=lambda sample: ((sample.partition, sample.offset) not in places, sample.partition, sample.offset))
    return [
        {"partition": sample.partition, "offset": sample.offset, "time": sample.time, "value": _cut(sample.text)}
        for sample in chosen[:MOST]
    ]


def _marks_of(reading: TopicObservations, side: Side | None, parts: Sequence[PartitionSpan]) -> set[tuple[str, str]]:
    """Return the marks of the parts; an empty mark for bytes without one."""
    part_set = frozenset(parts)
    marks: set[tuple[str, str]] = {
        mark for (of, mark), own in reading.framed.items() if of == side and not part_set.isdisjoint(own)
    }
    if not part_set.isdisjoint(parts_of(reading.unframed.get(side, ()))):
        marks.add(("", ""))
    return marks


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def mark_evidence(mark: Mark) -> dict[str, Any]:
    """Return a mark as evidence; a schema id also as a number."""
    framing, text = mark
    evidence: dict[str, Any] = {"framing": framing, "mark": text}
    if framing == "id" and text.isdecimal():
        evidence["schema_id"] = int(text)
    return evidence


def subject_of_topic(name: str, registered: Registered, topic: TopicMemory | None) -> str:
    """Return the subject of a topic as a whole: one found in its messages, or that of its values; empty without one."""
    own = registered.subjects.get(f"{name}-value")
    return next(iter(topic.subjects if topic is not None else ()), own.name if own is not None else "")


@dataclass(frozen=True)
class SideOfTopic:
    """A topic's keys or values (None: both) as read, and everything they are compared with."""

    reading: TopicObservations
    side: Side | None
    registered: Registered
    memory: Memory
    subjects: tuple[str, ...]

    def finding(
        self,
        rule: str,
        parts: Sequence[PartitionSpan],
        names: Mapping[str, Any],
        *,
        key: Sequence[str] = (),
        evidence: Mapping[str, Any] | None = None,
        subject: str = "",
        severity: Severity | None = None,
        count: int | None = None,
    ) -> JudgedFinding:
        """Return a finding about those messages; `key` distinguishes it from others of its rule on this side."""
        topic, side = self.reading.topic, self.side or ""
        whole = count_of(parts)
        number = whole if count is None else count
        identity = (topic, side, *key)
        filled = {
            "topic": topic,
            "side": side,
            "registry": self.registered.registry,
            "messages": counted(number, "message"),
            **names,
        }
        if "mark" in filled:
            filled["Mark"] = capitalised(str(filled["mark"]))
        concerned = subject or (self.subjects[0] if self.subjects else "")
        details = {
            "topic": topic,
            "side": self.side,
            **({"expected": either(self.subjects)} if self.subjects else {}),
            "messages": number,
            "of_messages_read": self.reading.messages,
            **(evidence or {}),
            **positions(parts),
        }
        samples = samples_of(rule, self.reading, self.side, parts, details.get("example", ()))
        if samples:
            details["samples"] = samples
        judged = make_finding(
            rule,
            filled,
            identity,
            location=where((topic, self.side or ""), parts),
            count=max(1, number),
            evidence=details,
            severity=severity,
            topic=topic,
            subject=concerned,
            cause=cause_of(
                rule,
                identity,
                parts if number >= whole else (),  # the time of the first of only some messages is unknown
                starts=self.reading.starts,
                registered=self.registered,
                memory=self.memory,
                subjects=self.subjects,
            ),
        )
        if number < whole or "seen_before" in details:  # only some of these messages are meant, or earlier ones
            return judged
        return replace(judged, offending=tuple(_offending(topic, self.side, part) for part in parts))


def _offending(topic: str, side: Side | None, part: PartitionSpan) -> OffendingMessages:
    if part.messages == part.last_offset - part.first_offset + 1:
        return OffendingMessages(part.partition, ((part.first_offset, part.last_offset),))
    if part.ranges or side is None or not part.kind[0]:
        return OffendingMessages(part.partition, part.ranges)
    group = MessageGroup(topic, side, part.partition, *part.kind, part.first_offset, part.last_offset)
    return OffendingMessages(part.partition, group=group)


def offending_at(places: Iterable[tuple[int, ...]]) -> tuple[OffendingMessages, ...]:
    """Return messages from (partition, first offset, last offset), neighbours as one range."""
    by_partition: dict[int, list[tuple[int, int]]] = {}
    for partition, first, last in sorted(places):
        ranges = by_partition.setdefault(partition, [])
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(last, ranges[-1][1]))
        else:
            ranges.append((first, last))
    return tuple(OffendingMessages(partition, tuple(ranges)) for partition, ranges in by_partition.items())


# ---- what a limit left out ----------------------------------------------------------------------------------------

CHECK_LIMITED: Final = "CHECK_LIMITED"
FINDINGS: Final = "findings"
_WORDS: Final[dict[Limit, str]] = {
    "fields": "counts at most {most} fields of a schema",
    "depth": "follows at most {most} levels of nesting",
    "symbols": "counts at most {most} symbols of an enum",
    "tables": "counts change events of at most {most} tables and operations at a time",
    "connect_schemas": "keeps at most {most} Connect schemas that are embedded in messages",
}


@dataclass(frozen=True)
class CheckedPlace:
    """The place of an omission: a registry, or a topic's side with the schema of its messages."""

    location: str
    topic: str = ""
    side: str = ""
    framing: str = ""
    mark: str = ""

    @property
    def evidence(self) -> dict[str, Any]:
        """Return the place as evidence, without empty values."""
        values = {"topic": self.topic, "side": self.side, "framing": self.framing, "mark": self.mark}
        return {name: value for name, value in values.items() if value}


def side_of(topic: str, side: str, framing: str, mark: str) -> CheckedPlace:
    """Return `orders (value), schema id 7`: a topic's side and a schema; framing and mark are empty for all schemas."""
    schema = f", {mark_words((framing, mark))}" if framing and mark else ""  # type: ignore[arg-type]  # a framing
    return CheckedPlace(f"{topic} ({side}){schema}", topic, side, framing, mark)


def judge_limits(reading: TopicObservations) -> Iterator[JudgedFinding]:
    """Yield what a limit kept from being counted, one finding per limit and place."""
    for part in sorted(reading.left_out, key=repr):
        words = _WORDS[part.limit].format(most=f"{part.most:,}")
        evidence = {"most": part.most}
        evidence |= {"left_out": part.number} if part.number is not None else {}
        evidence |= {"messages": part.messages} if part.messages is not None else {}
        place = side_of(part.topic, part.side, part.framing or "", part.mark)
        yield limited(place, part.limit, f"a scan {words}, and {_rest(part)}", evidence, part.number or part.messages)


def _rest(part: LimitExceeded) -> str:
    if part.number is not None:
        return f"{part.number:,} more {'exists' if part.number == 1 else 'exist'}"
    if part.messages is not None:
        return f"{counted(part.messages, 'message')} {'has' if part.messages == 1 else 'have'} more"
    return "there are more"


def at_most(most: int, findings: Iterable[JudgedFinding], place: CheckedPlace) -> Iterator[JudgedFinding]:
    """Yield the first `most` findings of one rule, and one with the number of the others."""
    others = 0
    for number, finding in enumerate(findings):
        if number < most:
            yield finding
            rule = finding.rule
        else:
            others += 1
    if others:
        reason = (
            f"a scan lists at most {most:,} findings of {rule} here, and {others:,} more "
            f"{'exists' if others == 1 else 'exist'}"
        )
        yield limited(place, FINDINGS, reason, {"most": most, "left_out": others, "rule": rule}, others)


def limited(
    place: CheckedPlace, limit: str, reason: str, evidence: dict[str, Any], count: int | None = None
) -> JudgedFinding:
    """Return a finding that a limit kept a place from being checked in full."""
    rule = RULES[evidence["rule"]].first_id if "rule" in evidence else ""
    return make_finding(
        CHECK_LIMITED,
        {"place": place.location if place.topic else capitalised(place.location), "reason": reason},
        (place.topic or place.location, place.side, place.framing, place.mark, limit, rule),
        location=place.location,
        count=max(1, count or 1),
        evidence={**place.evidence, "limit": limit, **evidence},
        topic=place.topic,
    )


def unproved(findings: Iterable[JudgedFinding]) -> frozenset[tuple[str, str]]:
    """Return (topic, rule) pairs (empty topic: none) with unlisted findings: a missing finding may still apply."""
    return frozenset(
        (finding.topic, str(finding.evidence["rule"]))
        for finding in findings
        if finding.rule == CHECK_LIMITED and finding.evidence["limit"] == FINDINGS
    )


MOST_SENTENCES: Final = 100


def unchecked(findings: Iterable[JudgedFinding], observations: Iterable[Observation]) -> dict[str, Any]:
    """Return `not_decoded` (keys and values), `limits` (sentences) and `limits_left_out` (the number of others).

    Zero and empty values are omitted.
    """
    sentences = [finding.sentence for finding in findings if finding.rule == CHECK_LIMITED]
    values: dict[str, Any] = {
        "not_decoded": sum(
            bodies.span.messages
            for bodies in observations
            if isinstance(bodies, UndecodableMessages) and bodies.problem == "not_read"
        ),
        "limits": sentences[:MOST_SENTENCES],
        "limits_left_out": max(0, len(sentences) - MOST_SENTENCES),
    }
    return {name: value for name, value in values.items() if value}
