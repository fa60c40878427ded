"""Which versions of its subjects a topic's side is written with, over all scans: the *current* side of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from registry.drift.judge.model import GRACE, JudgedFinding, Mark, RegisteredVersion
from registry.drift.judge.reading import Part, count_of, parts_of
from registry.drift.judge.telling import SideOfTopic
from registry.drift.judge.words import both, mark_words, moment

UNNAMED: Final = "message"  # before the indexes of a message type whose schema isn't known; no type's name has a space


@dataclass(frozen=True)
class VersionUse:
    """A version with its messages: of this scan (`parts`), and since when it was seen by any."""

    version: RegisteredVersion
    first_time: int
    parts: tuple[Part, ...]


def judge_versions(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Producers that stay on an old version, keys of two schemas under compaction, several message types."""
    uses = versions_in_use(where)
    for subject in where.subjects:
        yield from _old(where, [use for use in uses if use.version.subject == subject])
    if where.side == "key":
        yield from _keys(where)
    yield from _message_types(where)


def versions_in_use(where: SideOfTopic) -> list[VersionUse]:
    """The versions of the side's subjects that messages carry, ascending by subject and number."""
    found: dict[tuple[str, int], VersionUse] = {}
    for mark, first_time, parts in _marks(where):
        for version in where.registered.versions.get(mark, ()):
            if version.subject not in where.subjects:
                continue
            key = version.subject, version.version
            use = found.get(key, VersionUse(version, first_time, ()))
            found[key] = replace(use, first_time=min(use.first_time, first_time), parts=(*use.parts, *parts))
    return [found[key] for key in sorted(found)]


def _marks(where: SideOfTopic) -> Iterator[tuple[Mark, int, tuple[Part, ...]]]:
    """Every mark of the side with its first time and the parts of this scan."""
    for (side, mark), parts in sorted(where.reading.framed.items()):
        if side == where.side:
            yield mark, min(part.first_time for part in parts), tuple(parts)
    for use in where.memory.uses_of_side.get((where.reading.topic, where.side), ()) if where.side else ():
        yield (use.framing, use.mark), use.first_time, ()


def _old(where: SideOfTopic, uses: list[VersionUse]) -> Iterator[JudgedFinding]:
    """Versions that are still written longer than the grace after any newer one came into use."""
    for number, use in enumerate(uses[:-1]):
        newer = min(uses[number + 1 :], key=lambda each: (_in_use_since(each), each.version.version))
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


def _in_use_since(use: VersionUse) -> int:
    return max(use.first_time, use.version.registered_at)


def _keys(where: SideOfTopic) -> Iterator[JudgedFinding]:
    topic = where.memory.topics.get(where.reading.topic)
    if topic is None or not topic.compacted or not where.reading.marks("key"):
        return
    known: dict[Mark, int] = {}
    for mark, first_time, _ in _marks(where):
        if any(version.subject in where.subjects for version in where.registered.versions.get(mark, ())):
            known[mark] = min(first_time, known.get(mark, first_time))
    if len(known) > 1:
        by_time = sorted(known, key=lambda mark: (known[mark], mark))
        newest = by_time[-1]
        parts = where.reading.framed.get(("key", newest), [])
        evidence: dict[str, Any] = {
            "compacted": True,
            "marks": [{"mark": mark_words(mark), "first_time": known[mark]} for mark in by_time],
        }
        names = {"marks": both([mark_words(mark) for mark in by_time])}
        yield where.finding("KEY_SCHEMA_CHANGED", parts, names, evidence=evidence)


def message_types(where: SideOfTopic) -> dict[str, dict[str, list[Part]]]:
    """The Protobuf message types of this scan by subject and full name; `message 0` where the name isn't known."""
    found: dict[str, dict[str, list[Part]]] = {}
    for (side, mark), seen in sorted(where.reading.indexes.items()):
        if side != where.side:
            continue
        for version in where.registered.versions.get(mark, ()):
            if version.subject in where.subjects:
                types = found.setdefault(version.subject, {})
                declared = where.registered.declared.get((version.subject, version.version))
                for each in seen:
                    name = declared.messages.get(each.indexes, "") if declared else ""
                    types.setdefault(name or f"{UNNAMED} {each.indexes}", []).extend(parts_of([each]))
    return found


def _message_types(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Several message types under one subject, in this scan or beside what others saw in the last days.

    One type that moved to another index of its file is none.
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


def _types_before(where: SideOfTopic, subject: str, types: Mapping[str, list[Part]]) -> dict[str, int]:
    """The types that earlier scans saw lately, with their first times; none where this scan's aren't known by name."""
    topic = where.memory.topics.get(where.reading.topic)
    if topic is None or where.side is None or any(name.startswith(f"{UNNAMED} ") for name in types):
        return {}
    known = topic.message_types.get(where.side, {}).get(subject, {})
    return {name: first for name, (first, last) in known.items() if where.memory.is_recent(last)}
