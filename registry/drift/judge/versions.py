"""The versions that a topic's side is written with, over all scans: the *current* side of a comparison.

Findings about versions that are deprecated, below the minimum, retired, quarantined or not seen yet, and about subjects
without a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from registry.drift.judge.finding_builder import (
    SideOfTopic,
    both,
    counted,
    either,
    mark_evidence,
    mark_words,
    moment,
    owners,
)
from registry.drift.judge.model import GRACE, JudgedFinding, Mark, Memory, Registered, RegisteredVersion, make_finding
from registry.drift.judge.topic_observations import (
    SIDES,
    PartitionSpan,
    TopicObservations,
    count_of,
    parts_of,
    subjects_of_side,
)

UNNAMED: Final = "message"  # prefix of message indexes whose type's name is unknown; no type's name contains a space


@dataclass(frozen=True)
class VersionMessages:
    """A version with its messages: this scan's (`parts`), and the time of the first one in any scan."""

    version: RegisteredVersion
    first_time: int
    parts: tuple[PartitionSpan, ...]


def judge_versions(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield producers on an old version, keys with two schemas under compaction, several message types."""
    uses = versions_in_use(where)
    for subject in where.subjects:
        yield from _old(where, [use for use in uses if use.version.subject == subject])
    if where.side == "key":
        yield from _keys(where)
    yield from _message_types(where)


def versions_in_use(where: SideOfTopic) -> list[VersionMessages]:
    """Return the versions of the side's subjects in messages, ascending by subject and number."""
    uses: dict[tuple[str, int], VersionMessages] = {}
    for mark, first_time, parts in _marks(where):
        for version in where.registered.versions.get(mark, ()):
            if version.subject not in where.subjects:
                continue
            key = version.subject, version.version
            use = uses.get(key, VersionMessages(version, first_time, ()))
            uses[key] = replace(use, first_time=min(use.first_time, first_time), parts=(*use.parts, *parts))
    return [uses[key] for key in sorted(uses)]


def judge_deleted(
    where: SideOfTopic, mark: Mark, parts: Sequence[PartitionSpan], versions: Iterable[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    """Yield the finding of a mark that only earlier scans saw, if its versions on this side are all deleted."""
    own = [version for version in versions if version.subject in where.subjects]
    if own and all(version.deleted for version in own):
        number = count_of(parts)
        names = {
            "mark": mark_words(mark),
            "expected": either(where.subjects),
            "messages": counted(number, "earlier message"),
        }
        evidence = {**mark_evidence(mark), "owners": owners(own), "seen_before": number}
        yield where.finding("ID_DELETED", parts, names, key=mark, evidence=evidence, subject=own[0].subject)


def _marks(where: SideOfTopic) -> Iterator[tuple[Mark, int, tuple[PartitionSpan, ...]]]:
    """Yield every mark of the side with its first time and the parts of this scan."""
    for (side, mark), parts in sorted(where.reading.framed.items()):
        if side == where.side:
            yield mark, min(part.first_time for part in parts), tuple(parts)
    for use in where.memory.uses_of_side.get((where.reading.topic, where.side), ()) if where.side else ():
        yield (use.framing, use.mark), use.first_time, ()


def _old(where: SideOfTopic, uses: list[VersionMessages]) -> Iterator[JudgedFinding]:
    """Yield versions still written after the grace period since a newer one came into use."""
    for number, use in enumerate(uses[:-1]):
        newer = min(uses[number + 1 :], key=lambda later: (_in_use_since(later), later.version.version))
        since = _in_use_since(newer)
        late = [part for part in use.parts if part.last_time > since + GRACE]
        if late:
            began = max(since, min(part.first_time for part in late))
            names = {
                "version": use.version.version,
                "subject": use.version.subject,
                "newer": newer.version.version,
                "latest": uses[-1].version.version,
                "since": moment(began),
                "newer_since": moment(since),
            }
            evidence = {
                "version": use.version.version,
                "newer": newer.version.version,
                "newer_in_use_since": since,
                "latest_in_use": uses[-1].version.version,
                "days_of_grace": GRACE // 86_400_000,
            }
            yield where.finding(
                "OLD_VERSION_WRITTEN",
                late,
                names,
                key=(use.version.subject, str(use.version.version)),
                evidence=evidence,
                subject=use.version.subject,
            )


def _in_use_since(use: VersionMessages) -> int:
    return max(use.first_time, use.version.registered_at)


def _keys(where: SideOfTopic) -> Iterator[JudgedFinding]:
    topic = where.memory.topics.get(where.reading.topic)
    if topic is None or not topic.compacted or not where.reading.marks("key"):
        return
    first_times: dict[Mark, int] = {}
    for mark, first_time, _ in _marks(where):
        if any(version.subject in where.subjects for version in where.registered.versions.get(mark, ())):
            first_times[mark] = min(first_time, first_times.get(mark, first_time))
    if len(first_times) > 1:
        by_time = sorted(first_times, key=lambda mark: (first_times[mark], mark))
        # The newest keys are the problem; if this scan read none of them, the ones that it read.
        newest = where.reading.framed.get(("key", by_time[-1]))
        parts = newest or [part for mark in by_time for part in where.reading.framed.get(("key", mark), ())]
        evidence: dict[str, Any] = {
            "compacted": True,
            "marks": [{"mark": mark_words(mark), "first_time": first_times[mark]} for mark in by_time],
        }
        names = {"marks": both([mark_words(mark) for mark in by_time])}
        yield where.finding("KEY_SCHEMA_CHANGED", parts, names, evidence=evidence)


def message_types(where: SideOfTopic) -> dict[str, dict[str, list[PartitionSpan]]]:
    """Return this scan's Protobuf message types by subject and full name; `message 0` if the name is unknown."""
    by_subject: dict[str, dict[str, list[PartitionSpan]]] = {}
    for (side, mark), groups in sorted(where.reading.indexes.items()):
        if side != where.side:
            continue
        for version in where.registered.versions.get(mark, ()):
            if version.subject in where.subjects:
                types = by_subject.setdefault(version.subject, {})
                declared = where.registered.declared.get((version.subject, version.version))
                for group in groups:
                    name = declared.messages.get(group.indexes, "") if declared else ""
                    types.setdefault(name or f"{UNNAMED} {group.indexes}", []).extend(parts_of([group]))
    return by_subject


def _message_types(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield several message types under one subject, in this scan or together with recent earlier scans.

    A type that moved to another index of its file is no finding.
    """
    for subject, types in sorted(message_types(where).items()):
        before = _types_before(where, subject, types)
        if len({*types, *before}) < 2:
            continue
        began = {name: min(part.first_time for part in parts) for name, parts in types.items()}
        began |= {name: min(first, began.get(name, first)) for name, first in before.items()}
        by_time = sorted(began, key=lambda name: (began[name], name))
        later = [part for name in by_time[1:] for part in types.get(name, ())]
        evidence = {
            "types": {name: count_of(types[name]) for name in by_time if name in types},
            "types_before": [name for name in by_time if name not in types],
        }
        names = {"subject": subject, "types": both(by_time)}
        yield where.finding(
            "MESSAGE_TYPE_CHANGED",
            later or [part for parts in types.values() for part in parts],
            names,
            key=(subject,),
            evidence=evidence,
            subject=subject,
        )


def _types_before(where: SideOfTopic, subject: str, types: Mapping[str, list[PartitionSpan]]) -> dict[str, int]:
    """Return recent types of earlier scans with their first times; empty if names of this scan's types are unknown."""
    topic = where.memory.topics.get(where.reading.topic)
    if topic is None or where.side is None or any(name.startswith(f"{UNNAMED} ") for name in types):
        return {}
    earlier = topic.message_types.get(where.side, {}).get(subject, {})
    return {name: first for name, (first, last) in earlier.items() if where.memory.is_recent(last)}


TOPIC_GRACE: Final = 7 * 24 * 60 * 60 * 1000  # time that a subject may wait for its topic


@dataclass(frozen=True)
class PendingVersion:
    """A registered version not yet seen in its topic: information, never drift.

    `in_use` are the versions that the topic is written with; `since` is when it was registered.
    """

    topic: str
    side: str
    subject: str
    version: int
    since: int
    in_use: tuple[int, ...]


def subjects_without_topic(registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Yield subjects named after a missing topic of this source (TopicName only); none before a discovery.

    A new subject may wait for its topic, unless the topic existed before.
    """
    if not memory.discovered:
        return
    for name, subject in sorted(registered.subjects.items()):
        topic = next((name[: -len(side) - 1] for side in SIDES if name.endswith(f"-{side}")), "")
        if not topic or not subject.live or topic in memory.all_topics or not _covers(memory, topic):
            continue
        topic_memory = memory.topics.get(topic)
        is_gone = topic_memory is not None and topic_memory.gone
        if not is_gone and memory.as_of - subject.since <= TOPIC_GRACE:
            continue
        names = {
            "subject": subject.name,
            "live": counted(subject.live, "live version"),
            "registry": registered.registry,
            "topic": topic,
            "gone": "no longer exists in the cluster" if is_gone else "doesn't exist in the cluster",
        }
        yield make_finding(
            "SUBJECT_WITHOUT_TOPIC",
            names,
            (subject.name,),
            location=f"subject {subject.name}",
            count=1,
            evidence={"subject": subject.name, "topic": topic, "live_versions": subject.live, "was_there": is_gone},
            subject=subject.name,
        )


def _covers(memory: Memory, topic: str) -> bool:
    """Return whether the source would have found the topic."""
    if any(fnmatchcase(topic, pattern) for pattern in memory.exclude):
        return False
    return not memory.include or any(fnmatchcase(topic, pattern) for pattern in memory.include)


def pending_versions(
    topics: Iterable[TopicObservations], registered: Registered, memory: Memory
) -> list[PendingVersion]:
    """Return the latest live versions that no message carries yet, for topics whose data has other versions."""
    pending = []
    for reading in topics:
        for side in SIDES:
            subjects = subjects_of_side((reading.topic, side), reading.marks(side), registered).subjects
            uses = versions_in_use(SideOfTopic(reading, side, registered, memory, subjects))
            for subject in subjects:
                in_use = [use.version.version for use in uses if use.version.subject == subject]
                latest = _latest(registered, subject)
                if in_use and latest is not None and latest[0] > max(in_use):
                    pending.append(PendingVersion(reading.topic, side, subject, latest[0], latest[1], tuple(in_use)))
    return pending


def _latest(registered: Registered, subject: str) -> tuple[int, int] | None:
    live: Sequence[tuple[int, int]] = [
        (version.version, version.registered_at)
        for version in registered.histories.get(subject, ())
        if not version.deleted
    ]
    return max(live, default=None)


QUARANTINED: Final = "quarantined"
#: active or deprecated, but below the minimum version that producers may write
BELOW: Final = "below the minimum version"
#: status → rule, mildest first
_RULES: Final[Mapping[str, str]] = {
    "deprecated": "ID_DEPRECATED",
    BELOW: "ID_BELOW_MINIMUM_VERSION",
    "retired": "ID_RETIRED",
    QUARANTINED: "ID_QUARANTINED",
}
_ORDER: Final = tuple(_RULES)


def judge_status(
    where: SideOfTopic,
    mark: Mark,
    parts: Sequence[PartitionSpan],
    live: Sequence[RegisteredVersion],
    names: Mapping[str, Any],
    evidence: Mapping[str, Any],
) -> Iterator[JudgedFinding]:
    """Yield the finding of one mark if no live version that it refers to is active.

    Messages written before a version was deprecated or retired, or before the minimum version was set, are fine; for a
    quarantined version, none are.
    """
    if not all(version.status in _RULES for version in live):
        return
    mildest = min(live, key=lambda version: (_ORDER.index(version.status), -version.status_since))
    since = mildest.status_since
    affected = list(parts) if mildest.status == QUARANTINED else [part for part in parts if part.last_time > since]
    if not affected:
        return
    until = mildest.status_until
    is_over = bool(until) and any(part.last_time > until for part in affected)
    deadline = f", to be used until {moment(until)}" if until else ""
    yield where.finding(
        _RULES[mildest.status],
        affected,
        {
            **names,
            "since": moment(since),
            "until": deadline,
            "message": mildest.status_message,
            "minimum": mildest.minimum_version,
        },
        key=mark,
        evidence={
            **evidence,
            "status": mildest.status,
            "since": since,
            "until": until or None,
            **({"minimum_version": mildest.minimum_version} if mildest.minimum_version else {}),
        },
        subject=mildest.subject,
        severity="risk" if is_over else None,
    )
