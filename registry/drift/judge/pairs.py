"""Subjects without a topic, and versions that were approved and not seen yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from registry.drift.judge.model import JudgedFinding, Memory, Registered, make_finding
from registry.drift.judge.reading import SIDES, Reading
from registry.drift.judge.strategies import belonging
from registry.drift.judge.telling import SideOfTopic
from registry.drift.judge.versions import versions_in_use
from registry.drift.judge.words import counted

GRACE: Final = 7 * 24 * 60 * 60 * 1000  # in which a subject may wait for its topic


@dataclass(frozen=True)
class Pending:
    """A version that is registered and not yet seen in its topic: information, never drift.

    `in_use` are the versions that the topic is written with; `since` is when it was registered.
    """

    topic: str
    side: str
    subject: str
    version: int
    since: int
    in_use: tuple[int, ...]


def subjects_without_topic(registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Subjects called like a topic of this source's that isn't there, of TopicName alone; none before a discovery.

    A new subject may wait for its topic, unless that was there before.
    """
    if not memory.discovered:
        return
    for name, subject in sorted(registered.subjects.items()):
        topic = next((name[: -len(side) - 1] for side in SIDES if name.endswith(f"-{side}")), "")
        if not topic or not subject.live or topic in memory.all_topics or not _covers(memory, topic):
            continue
        known = memory.topics.get(topic)
        is_gone = known is not None and known.gone
        if not is_gone and memory.as_of - subject.since <= GRACE:
            continue
        names = {
            "subject": subject.name,
            "live": counted(subject.live, "live version"),
            "registry": registered.registry,
            "topic": topic,
            "gone": "is gone from the cluster" if is_gone else "is not there",
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
    """Whether the source would have found the topic."""
    if any(fnmatchcase(topic, pattern) for pattern in memory.exclude):
        return False
    return not memory.include or any(fnmatchcase(topic, pattern) for pattern in memory.include)


def pending_versions(topics: Iterable[Reading], registered: Registered, memory: Memory) -> list[Pending]:
    """The latest live versions that no message carries yet, of topics whose data carry other ones."""
    found = []
    for reading in topics:
        for side in SIDES:
            subjects = belonging((reading.topic, side), reading.marks(side), registered).subjects
            uses = versions_in_use(SideOfTopic(reading, side, registered, memory, subjects))
            for subject in subjects:
                in_use = [use.version.version for use in uses if use.version.subject == subject]
                latest = _latest(registered, subject)
                if in_use and latest is not None and latest[0] > max(in_use):
                    found.append(Pending(reading.topic, side, subject, latest[0], latest[1], tuple(in_use)))
    return found


def _latest(registered: Registered, subject: str) -> tuple[int, int] | None:
    live: Sequence[tuple[int, int]] = [
        (version.version, version.registered_at)
        for version in registered.histories.get(subject, ())
        if not version.deleted
    ]
    return max(live, default=None)
