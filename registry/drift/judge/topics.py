"""Compares the schemas that a topic's messages name with what is registered, and finds lost offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from registry.drift.judge import versions
from registry.drift.judge.finding_builder import (
    SHOWN,
    SideOfTopic,
    counted,
    mark_evidence,
    mark_words,
    moment,
    owners,
    subject_of_topic,
)
from registry.drift.judge.framing import CUT, judge_framing
from registry.drift.judge.model import JudgedFinding, Mark, Memory, Registered, RegisteredVersion, make_finding
from registry.drift.judge.topic_observations import (
    SIDES,
    PartitionSpan,
    TopicObservations,
    bare_name,
    context_of,
    count_of,
    parts_of,
    subjects_of_side,
)
from registry.drift.judge.undecodable import judge_not_decoded, judge_not_read, mark_names, undecodable_finding
from registry.observations import Observation, OffsetsExpired, TopicRemade

MOST_EXPIRED: Final = 100  # ranges in the evidence


def judge_topic(reading: TopicObservations, registered: Registered, memory: Memory) -> Iterator[JudgedFinding]:
    """Yield the findings of one topic by ids and framing; `fields` has those of its fields."""
    governed = False
    for side in SIDES:
        owner = subjects_of_side((reading.topic, side), reading.marks(side), registered)
        where = SideOfTopic(reading, side, registered, memory, owner.subjects)
        governed = governed or bool(owner.subjects)
        if owner.subjects:
            yield from _of_governed(where)
        else:
            yield from _of_ungoverned(where)
        yield from judge_framing(where)
        yield from judge_not_read(where)
    if reading.others and governed:
        yield _folded(reading, registered, memory)
    yield from judge_not_decoded(reading)


def _of_governed(where: SideOfTopic) -> Iterator[JudgedFinding]:
    for mark in where.reading.marks(where.side):
        yield from _of_mark(where, mark, where.reading.framed[where.side, mark])
    yield from versions.judge_versions(where)


def _of_mark(where: SideOfTopic, mark: Mark, parts: list[PartitionSpan]) -> Iterator[JudgedFinding]:
    """Yield the findings about one mark on a side with a subject."""
    versions = where.registered.versions.get(mark, ())
    own = [version for version in versions if version.subject in where.subjects]
    undecodable = parts_of(where.reading.undecodable.get((where.side, mark), ()))
    if not versions:
        yield _unknown(where, mark, parts)
    elif not own:
        yield where.finding(
            "ID_OF_OTHER_SUBJECT",
            parts,
            {**mark_names(where, mark, versions)},
            key=mark,
            evidence={
                **mark_evidence(mark),
                "owners": owners(versions),
                **({"undecodable_messages": count_of(undecodable)} if where.reading.is_tried(where.side, mark) else {}),
            },
        )
    else:
        yield from _own(where, mark, parts, own)
        if undecodable and (where.side, mark) not in where.reading.twice:
            yield undecodable_finding(
                where, "UNDECODABLE", where.reading.undecodable[where.side, mark], mark, parts, own
            )
        violating = where.reading.violating.get((where.side, mark))
        if violating:
            yield undecodable_finding(where, "SCHEMA_VIOLATED", violating, mark, parts, own)


def _unknown(where: SideOfTopic, mark: Mark, parts: list[PartitionSpan]) -> JudgedFinding:
    """Return the finding of an unknown mark; it names another context if that one has the topic's subject or its GUID.

    Every context counts ids from 1, so the number alone proves nothing; a GUID does.
    """
    elsewhere = where.registered.elsewhere.get(mark, ())
    names = {bare_name(subject) for subject in where.subjects}
    likely = [version for version in elsewhere if mark[0] != "id" or bare_name(version.subject) in names]
    if likely:
        contexts = sorted({context_of(version.subject) for version in likely})
        return where.finding(
            "ID_OF_OTHER_CONTEXT",
            parts,
            {**mark_names(where, mark, likely), "context": where.registered.context},
            key=mark,
            evidence={**mark_evidence(mark), "owners": owners(likely), "contexts": contexts},
        )
    evidence: dict[str, Any] = mark_evidence(mark)
    if elsewhere:
        evidence["same_number_elsewhere"] = owners(elsewhere)
    return where.finding("UNKNOWN_SCHEMA_ID", parts, mark_names(where, mark, ()), key=mark, evidence=evidence)


def _own(
    where: SideOfTopic, mark: Mark, parts: list[PartitionSpan], own: Sequence[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    names = mark_names(where, mark, own)
    evidence = {**mark_evidence(mark), "owners": owners(own)}
    live = [version for version in own if not version.deleted]
    if not live:
        yield where.finding("ID_DELETED", parts, names, key=mark, evidence=evidence, subject=own[0].subject)
        return
    yield from versions.judge_status(where, mark, parts, live, {**names, "owners": owners(live)}, evidence)
    trusted = [version for version in live if version.status != versions.QUARANTINED]
    if trusted and all(version.released is False for version in trusted):
        registered = [
            {"version": version.version, "by": version.registered_by, "at": version.registered_at} for version in own
        ]
        yield where.finding(
            "ID_NOT_RELEASED",
            parts,
            names,
            key=mark,
            evidence={**evidence, "registered": registered},
            subject=own[0].subject,
        )


def _of_ungoverned(where: SideOfTopic) -> Iterator[JudgedFinding]:
    """Yield one finding for known marks on a side without a subject; unknown ones may be any binary data.

    The evidence also counts unknown marks and messages that couldn't be identified.
    """
    versions_by_mark = {
        mark: where.registered.versions[mark]
        for mark in where.reading.marks(where.side)
        if where.registered.versions.get(mark)
    }
    if versions_by_mark:
        parts = [part for mark in versions_by_mark for part in where.reading.framed[where.side, mark]]
        versions = [version for versions_ in versions_by_mark.values() for version in versions_]
        yield where.finding(
            "SUBJECT_MISSING",
            parts,
            {"owners": owners(versions)},
            evidence={
                "marks": [mark_words(mark) for mark in versions_by_mark],
                "owners": owners(versions),
                **_uncounted_messages(where, versions_by_mark),
            },
        )
    for mark, versions_ in versions_by_mark.items():
        yield from _bad_of_ungoverned(where, mark, versions_)


def _uncounted_messages(where: SideOfTopic, known_marks: Collection[Mark]) -> dict[str, Any]:
    """Return messages without a known schema, counted by the reason why they can't be judged."""
    reading, side = where.reading, where.side
    unknown = [part for mark in reading.marks(side) if mark not in known_marks for part in reading.framed[side, mark]]
    bad = [group for mark in known_marks for group in reading.undecodable.get((side, mark), ())]
    cut = [group for group in reading.unframed.get(side, ()) if group.hint == CUT]
    counts = {
        "unknown_id": count_of(unknown),
        "undecodable": count_of(parts_of(bad)),
        "cut_frame": count_of(parts_of(cut)),
    }
    reasons = {name: number for name, number in counts.items() if number}
    return {"not_told": reasons} if reasons else {}


def _bad_of_ungoverned(
    where: SideOfTopic, mark: Mark, versions_: Sequence[RegisteredVersion]
) -> Iterator[JudgedFinding]:
    """Yield bodies with a known mark that don't decode or violate their schema, on a side without a subject.

    Lengths and counters in binary data may look like ids, and hardly any of their bodies decodes. So the severity is
    the same as with a subject once most bodies decode; otherwise it is a notice, and only for a live version.
    """
    parts = where.reading.framed[where.side, mark]
    bad = where.reading.undecodable.get((where.side, mark), [])
    is_meant = 2 * count_of(parts_of(bad)) < count_of(parts)
    is_live = any(not version.deleted for version in versions_)
    if bad and (is_meant or is_live) and (where.side, mark) not in where.reading.twice:
        yield undecodable_finding(
            where, "UNDECODABLE", bad, mark, parts, versions_, severity=None if is_meant else "notice"
        )
    violating = where.reading.violating.get((where.side, mark))
    if violating and is_meant:
        yield undecodable_finding(where, "SCHEMA_VIOLATED", violating, mark, parts, versions_)


def _folded(reading: TopicObservations, registered: Registered, memory: Memory) -> JudgedFinding:
    """Return the finding of ids beyond the scan's limit, if a side has a subject: elsewhere any bytes are normal."""
    where = SideOfTopic(reading, None, registered, memory, ())
    groups = max(other.groups for other in reading.others)
    names = {"groups": f"{groups:,}"}
    return where.finding("TOO_MANY_IDS", parts_of(reading.others), names, evidence={"groups": groups})


def judge_expired(
    observations: Iterable[Observation], registered: Registered, memory: Memory
) -> Iterator[JudgedFinding]:
    """Yield a finding per topic with offsets that were deleted before a scan read them."""
    by_topic: dict[str, list[OffsetsExpired]] = {}
    for gap in observations:
        if isinstance(gap, OffsetsExpired) and gap.start < gap.end:
            by_topic.setdefault(gap.topic, []).append(gap)
    for topic, expired in sorted(by_topic.items()):
        expired.sort(key=lambda gap: (gap.partition, gap.start))
        number = sum(gap.end - gap.start for gap in expired)
        yield make_finding(
            "OFFSETS_EXPIRED",
            {"topic": topic, "offsets": counted(number, "offset"), "registry": registered.registry},
            (topic,),
            location=_first_gaps(topic, expired),
            count=number,
            evidence={
                "topic": topic,
                "messages": number,
                "expired": [
                    {"partition": gap.partition, "start": gap.start, "end": gap.end} for gap in expired[:MOST_EXPIRED]
                ],
                **({"expired_left_out": len(expired) - MOST_EXPIRED} if len(expired) > MOST_EXPIRED else {}),
            },
            topic=topic,
            subject=subject_of_topic(topic, registered, memory.topics.get(topic)),
        )


def judge_recreated(
    observations: Iterable[Observation], registered: Registered, memory: Memory
) -> Iterator[JudgedFinding]:
    """Yield a finding per topic that was deleted and recreated since a scan read it."""
    for remade in sorted((item for item in observations if isinstance(item, TopicRemade)), key=lambda item: item.topic):
        facts = {"topic_id_before": remade.id_before, "topic_id": remade.id_now, "unread_before": remade.unread}
        yield make_finding(
            "TOPIC_RECREATED",
            {
                "topic": remade.topic,
                "since": moment(remade.last_read),
                "unread": _unread(remade.unread),
                "registry": registered.registry,
            },
            (remade.topic,),
            location=remade.topic,
            count=remade.unread or 1,
            evidence={
                "topic": remade.topic,
                "last_read_at": remade.last_read,
                "noticed_at": memory.as_of,
                **{name: value for name, value in facts.items() if value not in ("", None)},
            },
            topic=remade.topic,
            subject=subject_of_topic(remade.topic, registered, memory.topics.get(remade.topic)),
        )


def _unread(number: int | None) -> str:
    if number is None:
        return "the number of unread messages is not known"
    return (
        f"{counted(number, 'message')} {'was' if number == 1 else 'were'} unread"
        if number
        else "everything was read by then"
    )


def _first_gaps(topic: str, expired: Sequence[OffsetsExpired]) -> str:
    shown = [_offsets(topic, gap) for gap in expired[:SHOWN]]
    return ", ".join([*shown, *([f"and {len(expired) - SHOWN:,} more"] if len(expired) > SHOWN else [])])


def _offsets(topic: str, expired: OffsetsExpired) -> str:
    last = expired.end - 1
    return f"{topic}:{expired.partition}@{expired.start}" + (f"–{last}" if last > expired.start else "")
